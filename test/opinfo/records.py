# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What was judged, one JSON object a line: a run that was interrupted goes on behind it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import weft
from opinfo.entry import Judged, Verdict
from opinfo.samples import Choice, Entry

_WORST_FIRST = (Verdict.CRASH, Verdict.WRONG, Verdict.EAGER)


@dataclass
class Record:
    """verdict: the worst of the calls'. counts: of calls by verdict. reasons: of those that PyTorch
    runs. wrong: [label, what differs] of wrong calls and crashes. build: of Weft and the judge."""

    op: str
    dtype: str
    kind: str
    verdict: str
    counts: dict[str, int]
    reasons: dict[str, int]
    wrong: list[list[str]]
    seconds: float
    settings: list[Any]
    build: str = field(default_factory=lambda: build_of_weft())

    @property
    def entry(self) -> Entry:
        return Entry(self.op, self.dtype, self.kind)


def record_of(entry: Entry, judged: list[Judged], seconds: float, choice: Choice) -> Record:
    counts = Counter(each.verdict for each in judged)
    bad = (Verdict.WRONG, Verdict.CRASH)
    return Record(
        **vars(entry),
        verdict=next((v for v in _WORST_FIRST if counts[v]), Verdict.PASS),
        counts={str(verdict): count for verdict, count in counts.items()},
        reasons=dict(Counter(each.why for each in judged if each.verdict == Verdict.EAGER)),
        wrong=[[each.label, each.why] for each in judged if each.verdict in bad],
        seconds=round(seconds, 2),
        settings=_settings(entry.kind, choice),
    )


def _settings(kind: str, choice: Choice) -> list[Any]:
    """What the samples of this kind depend on."""
    return [choice.seed, choice.most, choice.variations if kind == "varied" else None]


class Records:
    """Those of a file that belong to this build and a choice of samples."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def read(self, choice: Choice) -> dict[Entry, Record]:
        found: dict[Entry, Record] = {}
        if self._path.exists():
            for line in self._path.read_text(encoding="utf-8").splitlines():
                record = Record(**json.loads(line))
                if record.build == build_of_weft() and record.settings == _settings(
                    record.kind, choice
                ):
                    found[record.entry] = record
        return found

    def add(self, record: Record) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record)) + "\n")

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)


def build_of_weft() -> str:
    """Another one for every change of Weft or of the judge."""
    global _BUILD
    if _BUILD is None:
        found = hashlib.blake2b(digest_size=8)
        for folder in (Path(weft.__file__).parent, Path(__file__).parent):
            for path in sorted(folder.rglob("*")):
                if path.suffix in (".py", ".so"):
                    status = path.stat()
                    found.update(f"{path.name} {status.st_size} {status.st_mtime_ns}".encode())
        _BUILD = found.hexdigest()
    return _BUILD


_BUILD: str | None = None
