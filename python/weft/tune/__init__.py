# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning of te kernels: schedules that were measured, kept in a file of records.

records = "kernels.db"
weft.tune.run(te_function, records=records)
faster = weft.tune.build(Z, [X, Y, Z], records=records)
"""

from weft.tune.records import RecordsError, export_records, import_records
from weft.tune.tuning import Task, best, build, run, tasks

__all__ = [
    "RecordsError",
    "Task",
    "best",
    "build",
    "export_records",
    "import_records",
    "run",
    "tasks",
]
