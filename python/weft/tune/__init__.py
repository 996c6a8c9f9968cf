# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning: schedules that were measured, kept in a file of records.

records = "kernels.db"
weft.tune.run(model, *inputs, records=records)
faster = weft.compile(model, records=records)
"""

from weft.tune.records import RecordsError, export_records, import_records
from weft.tune.task import Candidate, Task
from weft.tune.tuning import best, build, run, tasks

__all__ = [
    "Candidate",
    "RecordsError",
    "Task",
    "best",
    "build",
    "export_records",
    "import_records",
    "run",
    "tasks",
]
