# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.training.saved`: bytes saved for the backward, beside AOTAutograd's.

Theirs are those of `min_cut_rematerialization_partition` with Inductor's decompositions. On both
sides values of the forward count that the backward reads: parameters and inputs, which are there
anyway, do not, and a value counts once however many views of it are saved.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import torch
import torch._inductor.lowering  # which the decompositions look up
from functorch.compile import aot_module, min_cut_rematerialization_partition, nop
from rich.console import Console
from rich.table import Table
from torch._inductor.decomposition import select_decomp_table

import weft
from benchmarks.training.models import MODELS, Made
from weft.compiled.module import callable_of


def theirs(made: Made) -> int:
    """Saved by AOTAutograd's partitioner."""
    found: list[int] = []

    def partition(joint: torch.fx.GraphModule, inputs: Any, **settings: Any) -> Any:
        count = settings["num_fwd_outputs"]
        forward, backward = min_cut_rematerialization_partition(joint, inputs, **settings)
        found.append(_bytes_of(forward, count))
        return forward, backward

    model, inputs = made
    compiled = aot_module(
        model,
        fw_compiler=nop,
        partition_fn=partition,
        decompositions=select_decomp_table(),
    )
    _total(compiled(*inputs)).backward()
    return found[0]


def ours(made: Made) -> int:
    model, inputs = made
    weft.config.verify = "off"  # which programs stand for the call is all that is asked
    compiled = weft.compile(model)
    _total(compiled(*inputs)).backward()
    training = callable_of(compiled).face.programs.latest().training
    return sum(size for _, size in training.saved_bytes)


def _bytes_of(forward: torch.fx.GraphModule, count: int) -> int:
    (output,) = forward.graph.find_nodes(op="output")
    storages: dict[int, int] = {}
    placeholders = {_storage(node) for node in forward.graph.find_nodes(op="placeholder")}
    for node in output.args[0][count:]:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and _storage(node) not in placeholders:
            storages[_storage(node)] = value.untyped_storage().nbytes()
    return sum(storages.values())


def _storage(node: torch.fx.Node) -> int:
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else id(node)


def _total(value: torch.Tensor) -> torch.Tensor:
    return value if value.dim() == 0 else value.square().mean()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.training.saved", description=__doc__)
    parser.add_argument(
        "models", nargs="*", help="of benchmarks/training/models.py; all by default"
    )
    chosen = parser.parse_args(arguments).models or [*MODELS]
    table = Table("model", "AOTAutograd", "Weft", "Weft ÷ AOTAutograd")
    ratios = []
    for name in chosen:
        sizes = []
        for system in (theirs, ours):
            torch.manual_seed(0)
            sizes.append(system(MODELS[name]()))
        ratios.append(sizes[1] / sizes[0])
        table.add_row(name, *(f"{size:,}" for size in sizes), f"{ratios[-1]:.2f}")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    table.add_row(f"geometric mean of {len(ratios)}", "", "", f"{mean:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
