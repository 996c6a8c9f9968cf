# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measurements of kernels, kept in a SQLite file.

Table `measurements`, schema version 1 (PRAGMA user_version), one row for each candidate:

    kernel    digest of formulas, dtypes and shapes
    target    digest of the processor's features, vector width and threads
    compiler  versions of Weft and LLVM
    steps     the schedule's text; for a model's kernel "" if it is the compiler's own choice
    outcome   right, wrong, timeout or failed
    seconds   time of a call if right, else NULL: in the kernel's first row its least time, in
              others that time multiplied by the ratio of both least times in alternating runs
    note      why the outcome is not right, else empty

If a schedule is measured again it gets another row, which replaces the earlier ones.

The file is written in WAL mode with one transaction for each row: a process that dies loses at most
the row that it was about to write, and several processes may write at the same time.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from weft.errors import Error

VERSION = 1
_PATIENCE = 60  # s, to wait for other processes that write
_CLEARLY = 0.03  # of the default's time: smaller differences are noise
OUTCOMES = ("right", "wrong", "timeout", "failed")


class RecordsError(Error, OSError):
    """The file is not a file of records, or one of another version; it is left unchanged."""


@dataclass(frozen=True)
class Record:
    kernel: str
    target: str
    compiler: str
    steps: str
    outcome: str
    seconds: float | None = None
    note: str = ""


_COLUMNS = ", ".join(each.name for each in fields(Record))


class Records:
    """An open file of records. Each thread needs one of its own."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the file, or creates it.

        Raises: RecordsError for another kind of file, or a schema of another version.
        """
        self.path = Path(path)
        with self._explained():
            self._database = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
            # Both are read by one statement, since another process may be creating the file.
            version, tables = self._database.execute(
                "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
            ).fetchone()
            if version != VERSION and (version or tables):
                raise sqlite3.DatabaseError(f"expected schema version {VERSION}, found {version}")
            self._write_ahead()
            if not version:
                self._make()

    def _write_ahead(self) -> None:
        """Switches to WAL mode. While others read, SQLite refuses this at once instead of waiting
        for `timeout`, so that it is tried again."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                self._database.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
            time.sleep(0.01)

    def _make(self) -> None:
        """Creates the table, unless another process has just created it."""
        self._database.execute("BEGIN IMMEDIATE")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS measurements ("
            "number INTEGER PRIMARY KEY, kernel TEXT NOT NULL, target TEXT NOT NULL, "
            "compiler TEXT NOT NULL, steps TEXT NOT NULL, outcome TEXT NOT NULL, "
            "seconds REAL, note TEXT NOT NULL)"
        )
        self._database.execute(
            "CREATE INDEX IF NOT EXISTS by_kernel ON measurements (kernel, target, compiler)"
        )
        self._database.execute(f"PRAGMA user_version={VERSION}")
        self._database.execute("COMMIT")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise RecordsError(f"{self.path} holds no records: {error}") from None

    def add(self, record: Record) -> None:
        places = ", ".join("?" for _ in fields(Record))
        with self._explained():
            self._database.execute(
                f"INSERT INTO measurements ({_COLUMNS}) VALUES ({places})",
                tuple(asdict(record).values()),
            )

    def all_of(self, kernel: str, target: str, compiler: str) -> list[Record]:
        """All measurements of a kernel, in order."""
        with self._explained():
            rows = self._database.execute(
                f"SELECT {_COLUMNS} FROM measurements WHERE kernel=? AND target=? AND compiler=? "
                "ORDER BY number",
                (kernel, target, compiler),
            )
            return [Record(*row) for row in rows]

    def of(self, kernel: str, target: str, compiler: str) -> list[Record]:
        """The latest row of each schedule, the fastest first; those that are not right come
        last."""
        latest = {each.steps: each for each in self.all_of(kernel, target, compiler)}
        unknown = float("inf")
        return sorted(latest.values(), key=lambda e: unknown if e.seconds is None else e.seconds)

    def fastest(self, kernel: str, target: str, compiler: str) -> Record | None:
        """The row of the schedule to use: the default one where no other is clearly faster."""
        right = [e for e in self.of(kernel, target, compiler) if e.outcome == "right"]
        for each in right:
            if not each.steps and (each.seconds or 0.0) * (1 - _CLEARLY) <= (right[0].seconds or 0):
                return each
        return right[0] if right else None

    def all(self) -> list[Record]:
        with self._explained():
            rows = self._database.execute(f"SELECT {_COLUMNS} FROM measurements ORDER BY number")
            return [Record(*row) for row in rows]

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def export_records(records: str | os.PathLike[str], path: str | os.PathLike[str]) -> int:
    """Writes all rows to `path` as JSON, one row on each line. Returns how many.

    Raises: RecordsError.
    """
    if not Path(records).exists():
        raise RecordsError(f"{records} does not exist")
    with Records(records) as opened:
        lines = [json.dumps(asdict(each)) for each in opened.all()]
    Path(path).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return len(lines)


def import_records(path: str | os.PathLike[str], records: str | os.PathLike[str]) -> int:
    """Adds the rows of an exported file that are not in the records yet. Returns how many.

    Raises: RecordsError for a line that is not a record; nothing is added then.
    """
    rows = []
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        try:
            row = Record(**json.loads(line))
        except (TypeError, ValueError) as error:
            raise RecordsError(f"{path}, line {number} is no record: {error}") from None
        if row.outcome not in OUTCOMES:
            raise RecordsError(f"{path}, line {number}: {row.outcome!r} is no outcome")
        rows.append(row)
    with Records(records) as opened:
        present = set(opened.all())
        fresh = [row for row in dict.fromkeys(rows) if row not in present]
        for row in fresh:
            opened.add(row)
    return len(fresh)
