# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `weft inspect` prints: an artifact's signature, kernels, fallbacks and CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from weft import _core
from weft.artifacts.kernels import kernel_calls
from weft.reporting.tables import merged, table_of


def print_artifact(path: Path, console: Console) -> None:
    """Prints what an artifact contains. Raises: errors.ArtifactError, as `weft.load` does."""
    manifest = json.loads(_core.Artifact.load(path).manifest)
    console.print(f"{path}: weft {manifest['weft']}, LLVM {manifest['llvm']}, ABI", end=" ")
    console.print(f"{manifest['abi']}, for {manifest['threads_hint']} threads")
    main = manifest["entries"]["main"]
    console.print(_tensors("arguments", main["arguments"]))
    console.print(_tensors("results", main["results"]))
    for name, entry in manifest["entries"].items():
        console.print(_kernels(name, manifest))
        console.print(f"  memory: {entry['arena_bytes']} bytes a call")
    targets = sorted({fallback["target"] for fallback in manifest["fallbacks"]})
    console.print(f"  run by PyTorch: {', '.join(targets) or 'nothing'}")
    console.print(f"  CPU features: {' '.join(manifest['cpu_features'])}")


def _tensors(title: str, specs: list[dict[str, Any]]) -> Table:
    table = table_of("name", "kind", "dtype", "shape", "strides", "alias of", title=title)
    for number, spec in enumerate(specs):
        alias = spec.get("alias") or {}
        table.add_row(
            spec.get("name", str(number)), spec["kind"], spec["dtype"], str(spec["shape"]),
            str(spec["strides"]), " ".join(f"{kind} {index}" for kind, index in alias.items()),
        )  # fmt: skip
    return table


def _kernels(entry: str, manifest: dict[str, Any]) -> Table:
    table = table_of(
        "kind", "kernel", ">×", "lines", ">GFLOP", ">MB", "schedule", title=f"kernels of @{entry}"
    )
    for row in merged(kernel_calls(manifest, entry=entry)):
        table.add_row(*row.names(), *row.work(), _told(row.calls[0].schedule))
    return table


def _told(schedule: dict[str, Any]) -> str:
    """The fields of a schedule as text, without empty ones: empty lists, "none" and -1."""
    fields = []
    for name, value in schedule.items():
        if value in ([], "none", -1):
            continue
        shown = ",".join(map(str, value)) if isinstance(value, list) else value
        fields.append(f"{name}={shown}")
    return " ".join(fields)
