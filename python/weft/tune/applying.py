# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling programs with the schedules that a file of records holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.artifacts.builds import Options
from weft.tune.kernel_text import kernels_of
from weft.tune.model_tasks import varied
from weft.tune.records import Records


@dataclass(frozen=True)
class RecordedSchedules:
    """The schedules of a file of records. Raises: records.RecordsError if the file exists and is
    not a file of records."""

    path: str

    def __post_init__(self) -> None:
        if Path(self.path).exists():
            Records(self.path).close()

    def chosen(self, graph: bytes, options: Options) -> tuple[Options, tuple[str, ...]]:
        """The options with the fastest correct schedule of each kernel that is in the records, and
        the names of the kernels that are not.

        Raises: records.RecordsError; errors.CompileError.
        """
        from weft.tune.tuning import compiler, target

        kernels = kernels_of(graph, options)
        if not Path(self.path).exists():
            return options, tuple(each.name for each in kernels)
        sections, missing = [options.schedule] if options.schedule else [], []
        with Records(self.path) as records:
            for kernel in kernels:
                record = records.fastest(kernel.digest, target(), compiler())
                if record is None:
                    missing.append(kernel.name)
                elif record.steps:
                    sections.append(f"{kernel.name}:{record.steps}")
        return replace(options, schedule=";".join(sections)), tuple(missing)

    def note(self, calls: Sequence[dict[str, Any]], others: Sequence[str]) -> str:
        """A note on the kernels that could have had other schedules but of which none was measured;
        empty if there are none."""
        schedules = {each["kernel"]: each["schedule"] for each in calls if "kernel" in each}
        names = [name for name in others if varied(schedules.get(name, {}))]
        if not names:
            return ""
        return (
            f"fallback configuration: the records have nothing of {', '.join(names)}; "
            "weft.tune.run measures them"
        )
