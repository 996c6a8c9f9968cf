# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records in use: the schedules that a program is compiled with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.artifacts.builds import Options
from weft.tune.kernel_text import kernels_of
from weft.tune.model_tasks import varied
from weft.tune.records import Records


def with_records(graph: bytes, options: Options) -> tuple[Options, tuple[str, ...]]:
    """The options with the fastest right schedule of each kernel that the records have, and the
    kernels of which they have none.

    Raises: records.RecordsError; errors.CompileError.
    """
    from weft.tune.tuning import compiler, target

    kernels = kernels_of(graph, options)
    if not Path(options.records).exists():
        return options, tuple(each.name for each in kernels)
    sections, missing = [options.schedule] if options.schedule else [], []
    with Records(options.records) as records:
        for kernel in kernels:
            record = records.fastest(kernel.digest, target(), compiler())
            if record is None:
                missing.append(kernel.name)
            elif record.steps:
                sections.append(f"{kernel.name}:{record.steps}")
    return replace(options, schedule=";".join(sections)), tuple(missing)


def fallback_note(calls: Sequence[dict[str, Any]], missing: Sequence[str]) -> str:
    """What a report says of kernels with schedules to choose among, of which none was measured;
    nothing if there are none. calls: of the manifest."""
    schedules = {each["kernel"]: each["schedule"] for each in calls if "kernel" in each}
    names = [name for name in missing if varied(schedules.get(name, {}))]
    if not names:
        return ""
    return (
        f"fallback configuration: the records have nothing of {', '.join(names)}; "
        "weft.tune.run measures them"
    )
