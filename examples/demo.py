# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m examples.demo [SENTENCES]`: Weft's main job on real input.

Trains and compiles classifiers of Fashion-MNIST, one of them by compiled steps, embeds the
sentences of a text file, compiles BERT-base; compares everything with PyTorch and says where
to look inside. Writes to `demo-output/`. Exits with 1 if a check fails.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import weft
from examples import fashion_mnist, models, sentences
from examples.sheet import draw_sheet
from examples.train_fashion_mnist import train_both
from examples.trial import NotCompiled, Trial, run_trial, table, waiting

OUTPUT = Path("demo-output")
WEFT_OPT = Path("build/release/tools/weft-opt/weft-opt")
IMAGES_ON_SHEET = 24
LEAST_COSINE = 1 - 1e-6
MOST_ERROR = 1.5  # times PyTorch's own
STEPS = 100  # of training by PyTorch and by Weft
MOST_DRIFT = 10  # in these, times PyTorch's own; errors of a step grow in those that follow


class Checks:
    """What has to hold. Every check is printed; `failed` counts those that did not."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.failed = 0

    def require(self, holds: bool, claim: str) -> None:
        self.failed += not holds
        self.console.print("[green]✓[/]" if holds else "[red]✗[/]", claim)


class Demo:
    def __init__(self, console: Console, rounds: int) -> None:
        self.console = console
        self.rounds = rounds
        self.checks = Checks(console)
        self.trials: list[Trial] = []
        self.trained_steps: list[Trial] = []

    def trial(self, name: str, case: models.Case) -> Trial:
        trial = run_trial(name, case, self.console, self.rounds)
        self.trials.append(trial)
        self.checks.require(
            trial.weft_error <= MOST_ERROR * trial.eager_error,
            f"{case.title}: the error against float64 is at most {MOST_ERROR} times PyTorch's",
        )
        return trial

    def fashion_mnist(self) -> None:
        """Trains, compiles and compares both classifiers; the convolutional one draws the sheet."""
        self.console.rule("Fashion-MNIST")
        images, labels = fashion_mnist.load("t10k")
        for name, kind in (("mlp", fashion_mnist.Mlp), ("conv", fashion_mnist.ConvNet)):
            model = self.trained(kind)
            first = images[: models.IMAGES_PER_CALL]
            case = models.MODELS[name]()
            trial = self.trial(name, models.Case(case.title, model, (first,)))
            predicted = self.compare(trial, model, images, labels)
        path = OUTPUT / "fashion-mnist.png"
        shown = slice(0, IMAGES_ON_SHEET)
        draw_sheet(images[shown], labels[shown], predicted[shown]).save(path)
        self.console.print(f"{IMAGES_ON_SHEET} images with labels and predictions: {path}")

    def trained(self, kind: Callable[[], torch.nn.Module]) -> torch.nn.Module:
        torch.manual_seed(0)
        model = kind()
        images, labels = fashion_mnist.load("train")
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console) as progress, torch.enable_grad():
            task = progress.add_task(f"training {kind.__name__} for an epoch", total=len(images))
            fashion_mnist.train(model, images, labels, on_batch=lambda n: progress.advance(task, n))
        return model

    def training(self) -> None:
        """Trains the first classifier anew, a step by PyTorch and a step by one program in turn."""
        self.console.rule("Training")
        images, labels = fashion_mnist.load("train")
        title = f"MLP, steps of AdamW, batch {models.IMAGES_PER_CALL}"
        with waiting(self.console, f"{STEPS} steps by each"), torch.enable_grad():

            def trained(images: torch.Tensor):
                batch = models.IMAGES_PER_CALL
                return train_both(fashion_mnist.Mlp, images, labels, STEPS, batch)[1:]

            (eager, own), step = trained(images)
            (exact, _), _ = trained(images.double())
        if not step.steps:
            raise NotCompiled(f"{title}: not one program: {', '.join(step.reasons)}")
        eager_error, weft_error = (
            max(abs(a - b) for a, b in zip(curve.losses, exact.losses, strict=True))
            for curve in (eager, own)
        )
        self.trained_steps.append(
            Trial(
                "mlp-training",
                title,
                step.compiled,
                step.compiled.artifact_path,
                step.compiled.compile_seconds,
                statistics.median(eager.seconds),
                statistics.median(own.seconds),
                eager_error,
                weft_error,
            )
        )
        self.checks.require(
            weft_error <= MOST_DRIFT * eager_error,
            f"{title}: {STEPS} losses, from {own.losses[0]:.2f} to {own.losses[-1]:.2f}, as near "
            f"those of float64 as {MOST_DRIFT} times PyTorch's",
        )

    def compare(
        self,
        trial: Trial,
        model: torch.nn.Module,
        images: torch.Tensor,
        labels: torch.Tensor,
    ) -> torch.Tensor:
        """The compiled program's classes, after comparing them with PyTorch's."""
        batch = models.IMAGES_PER_CALL
        predicted = torch.cat([*fashion_mnist.predictions(trial.compiled, images, batch)])
        expected = torch.cat([*fashion_mnist.predictions(model, images, batch)])
        differing = int((predicted != expected).sum())
        right = float((predicted == labels).double().mean())
        self.checks.require(
            differing == 0,
            f"{trial.title}: {len(images)} predictions, {differing} differ from PyTorch's; "
            f"{right:.1%} are right",
        )
        return predicted

    def sentences(self, path: Path) -> None:
        """Embeds each line of a file and prints which other line is nearest to it."""
        self.console.rule("Sentence encoder MiniLM-L6-v2")
        trial = self.trial("minilm", models.build("minilm"))
        lines = sentences.read_sentences(path)
        tokens = [sentences.tokenize(line) for line in lines]
        with waiting(self.console, f"embedding {len(lines)} sentences of {path}"):
            for each in tokens:  # a first call of a shape is PyTorch's
                trial.compiled(*each)
            vectors = torch.cat([trial.compiled(*each) for each in tokens])
        eager = torch.cat([trial.compiled.original(*each) for each in tokens])
        cosine = torch.nn.functional.cosine_similarity(vectors.double(), eager.double())
        self.print_neighbours(lines, vectors)
        self.checks.require(
            float(cosine.min()) >= LEAST_COSINE,
            f"cosine to PyTorch's embedding at least 1 - {1 - float(cosine.min()):.1e}",
        )

    def print_neighbours(self, lines: list[str], vectors: torch.Tensor) -> None:
        neighbours = Table("sentence", "nearest neighbour", "cosine")
        for line, cosine, row in zip(lines, *sentences.nearest(vectors), strict=True):
            neighbours.add_row(line, lines[row], f"{cosine:.3f}")
        self.console.print(neighbours)

    def bert(self) -> None:
        self.console.rule("BERT-base")
        for name in ("bert", "bert-b8"):
            self.trial(name, models.build(name))

    def from_cache(self) -> None:
        """Compiles everything once more in a fresh process."""
        self.console.rule("A second process")
        by_name = {trial.name: trial for trial in self.trials}
        command = [sys.executable, "-m", "examples.recompile", *by_name]
        with waiting(self.console, "compiling all of them again, from the cache"):
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        for line in output.splitlines():
            again = json.loads(line)
            by_name[again["name"]].cached = again["seconds"]
        compiled = [t.title for t in self.trials if t.cached is None or "load compiler" in t.cached]
        self.checks.require(
            not compiled, f"all programs come from the cache {', '.join(compiled)}".rstrip()
        )

    def where_to_look(self) -> None:
        trial = self.trials[0]
        graph = OUTPUT / f"{trial.name}.mlir"
        graph.write_text(trial.compiled.ir("graph"), "utf-8")
        self.console.rule("Inside")
        for each in self.trials:
            size = each.artifact.stat().st_size / 1024
            self.console.print(f"{each.title}: {size:.0f} KiB, {each.artifact}", soft_wrap=True)
        python = os.path.relpath(sys.executable)
        show = f"{python} -m examples.inside {trial.name}"
        for command, meaning in (
            (f"{show} report", "compiled.report(): kernels, their lines, times, share of peak"),
            (f"{show} kernels", 'compiled.ir("kernels"), or any other stage'),
            (f"{WEFT_OPT} {graph} --weft-optimize --weft-fuse-kernels", "passes, one by one"),
            (f"WEFT_DUMP=dump WEFT_CACHE_DIR=fresh {show} report", "a file for each stage"),
            (f"llvm-objdump-22 -d {trial.artifact}", "the machine code"),
        ):
            self.console.print(f"  [bold]{command}[/]\n      {meaning}", soft_wrap=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    default = Path(__file__).parent / "sentences.txt"
    parser.add_argument("sentences", type=Path, nargs="?", default=default, help="a text file")
    parser.add_argument("--rounds", type=int, default=7, help="of interleaved measurements")
    return parser.parse_args(arguments)


def main() -> int:
    options = parse()
    # A cache of its own, empty, so that the first compilation is one.
    cache = OUTPUT / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True)
    os.environ["WEFT_CACHE_DIR"] = str(cache.resolve())
    torch.set_num_threads(weft.get_num_threads())

    # Into a file or pipe as wide as the table is.
    console = Console() if sys.stdout.isatty() else Console(width=140)
    demo = Demo(console, options.rounds)
    with torch.no_grad():
        encoder = functools.partial(demo.sentences, options.sentences)
        for part in (demo.fashion_mnist, demo.training, encoder, demo.bert):
            try:
                part()
            except NotCompiled as error:
                demo.checks.require(False, str(error))
    demo.from_cache()
    console.print(table([*demo.trials, *demo.trained_steps]))
    demo.where_to_look()
    if demo.checks.failed:
        console.print(f"[red]{demo.checks.failed} checks failed[/]")
    return 1 if demo.checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
