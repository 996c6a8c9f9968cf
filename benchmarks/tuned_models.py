# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models as they are compiled, and as they are compiled from the records of a tuner.

    python -m benchmarks.tuned_models [MODEL...] [--records FILE.db] [--trials N] [--rounds N]

Each model is tuned, which goes on where an earlier run was ended, and then both programs are timed
in turns: a row has the least times, the kernels that had another schedule, and how long the tuning
took. The last line has the geometric mean of untuned ÷ tuned.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import weft
from benchmarks.models import MODELS
from benchmarks.tensor_expressions import best_of
from weft.benchmark.case import Case
from weft.tune.model_tasks import tasks_of_model

# BERT, MiniLM, GPT-2, ResNet-50, MobileNetV2, ConvNeXt, a U-Net and an MLP.
USUAL = ("bert", "minilm", "gpt2", "resnet50", "mobilenet", "convnext", "unet", "mlp-b64")


@dataclass
class Row:
    """seconds of a call; changed, tasks: kernels that records give another schedule, and all."""

    title: str
    untuned: float
    tuned: float
    changed: int
    tasks: int
    tuning: float

    @property
    def ratio(self) -> float:
        return self.untuned / self.tuned


def measured(case: Case, records: Path, trials: int, rounds: int) -> Row:
    """Tunes a model, and times both of its programs.

    Raises: weft.errors.NotCompiledError, where PyTorch runs its calls; AssertionError, if the
    programs' results differ by more than other sums' rounding.
    """
    with torch.no_grad():
        plain = weft.compile(case.module, capture="export")
        start = time.perf_counter()
        tasks = tasks_of_model(plain, case.args, case.kwargs)
        weft.tune.run(*tasks, records=records, trials=trials, progress="bars")
        tuning = time.perf_counter() - start
        tuned = weft.compile(case.module, capture="export", records=records)
        calls: dict[str, Callable[[], Any]] = {
            "untuned": lambda: plain(*case.args, **case.kwargs),
            "tuned": lambda: tuned(*case.args, **case.kwargs),
        }
        for call in calls.values():
            for _ in range(3):
                call()
        _check(calls["untuned"](), calls["tuned"]())
        seconds = best_of(calls, rounds)
    changed = sum(bool(weft.tune.best(each, records)) for each in tasks)
    return Row(case.title, seconds["untuned"], seconds["tuned"], changed, len(tasks), tuning)


def _check(one: Any, other: Any) -> None:
    pairs = zip(torch.utils._pytree.tree_leaves(one), torch.utils._pytree.tree_leaves(other))
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


def table(rows: list[Row]) -> str:
    lines = [
        "| model | untuned, ms | tuned, ms | untuned ÷ tuned | kernels changed | tuning, s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        lines.append(
            f"| {row.title} | {row.untuned * 1e3:.3f} | {row.tuned * 1e3:.3f} | {row.ratio:.3f} | "
            f"{row.changed} of {row.tasks} | {row.tuning:.0f} |"
        )
    mean = math.exp(statistics.fmean(math.log(row.ratio) for row in rows))
    return "\n".join([*lines, f"\ngeometric mean of untuned ÷ tuned: {mean:.3f}"])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=USUAL, metavar="MODEL")
    parser.add_argument("--records", type=Path, help="default: a file that is thrown away")
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    for name in options.models:
        if name not in MODELS:
            parser.error(f"expected one of {', '.join(MODELS)}; found {name!r}")
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        records = options.records or Path(folder) / "kernels.db"
        rows = [
            measured(MODELS[name](), records, options.trials, options.rounds)
            for name in options.models
        ]
    print(table(rows))


if __name__ == "__main__":
    main()
