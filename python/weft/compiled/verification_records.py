# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records, next to its artifact, that a program has reproduced eager execution.

A record is valid for the artifact, for the way in which its results become what the user gets, and
for the version of torch, whose results they were compared with.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from weft import config
from weft.compiled.specialize import Specialized, strides_beside_own
from weft.gradients.eager_saves import Saves


@dataclass
class Verified:
    """A record. file: its path, None if nothing can be recorded. strides: those with which the user
    gets each result, None for the program's own. offsets: where each result begins in its memory.
    requires, connected: those of the program's Training."""

    file: Path | None
    strides: list[tuple[int, ...] | None]
    offsets: list[int]
    requires: list[bool] = field(default_factory=list)
    connected: list[list[bool]] = field(default_factory=list)
    saves: Saves | None = None

    @staticmethod
    def find(specialized: Specialized) -> Verified | None:
        """An earlier record of an equal program."""
        file = _file(specialized)
        if file is None or config.verify != "first":
            return None
        try:
            record = json.loads(file.read_text(encoding="ascii"))
            strides = [None if each is None else tuple(each) for each in record["strides"]]
            offsets = [int(each) for each in record["offsets"]]
            saves = Saves.of_record(record["saves"])
        except (OSError, ValueError, KeyError, TypeError):  # there is no record, or a damaged one
            return None
        results = specialized.manifest["entries"]["main"]["results"]
        fits = len(strides) == len(offsets) == len(results)
        training = specialized.training
        if training is None:
            return Verified(file, strides, offsets) if fits else None
        requires, connected = record.get("requires", []), record.get("connected", [])
        fits = fits and len(requires) == len(connected) == len(training.outputs)
        fits = fits and all(len(row) == len(training.wrt) for row in connected)
        if not fits:
            return None
        return Verified(file, strides, offsets, requires, connected, saves)

    @staticmethod
    def of(specialized: Specialized, learnt: dict[int, tuple[tuple[int, ...], int]]) -> Verified:
        """The record of a program. learnt: by result, the strides and offset that the user got from
        eager execution."""
        wanted = {number: strides for number, (strides, _) in learnt.items()}
        strides = strides_beside_own(specialized.manifest, wanted)
        offsets = [learnt[number][1] if number in learnt else 0 for number in range(len(strides))]
        verified = Verified(_file(specialized), strides, offsets)
        if specialized.training is not None:
            verified.requires = specialized.training.requires
            verified.connected = specialized.training.connected
            verified.saves = specialized.training.saves
        return verified

    def apply(self, specialized: Specialized) -> None:
        specialized.core.lay_out_results(self.strides, self.offsets)
        if specialized.training is not None:
            specialized.training.learnt(self.requires, self.connected, self.saves)
        specialized.verified = True

    def save(self) -> None:
        """Writes the record. If the cache cannot be written, the next process has to compare
        again."""
        if self.file is None:
            return
        with contextlib.suppress(OSError):
            handle, name = tempfile.mkstemp(dir=self.file.parent, prefix=".verified-")
            with os.fdopen(handle, "w", encoding="ascii") as draft:
                facts = {name: value for name, value in vars(self).items() if name != "file"}
                facts["saves"] = None if self.saves is None else self.saves.record()
                json.dump(facts, draft)
            os.replace(name, self.file)


def _file(specialized: Specialized) -> Path | None:
    build, wiring = specialized.build, specialized.wiring
    if build is None or wiring is None or build.path is None:
        return None
    lowered = wiring.lowered
    facts: Any = [torch.__version__, wiring.digest, repr(wiring.structure)]
    facts.append(sorted(wiring.slots.items()))
    if specialized.numbers is not None:  # the artifact shows only the results of these
        facts.append(specialized.numbers.inputs)
    facts += [(s.kind, s.index, s.name, s.dense) for s in lowered.inputs]
    for target in lowered.outputs:
        facts.append((target.kind, target.index, target.name, repr(target.value), target.result))
        facts.append(None if target.view is None else repr(target.view))
        facts.append(target.valid)
    digest = hashlib.blake2b(repr(facts).encode(), digest_size=12).hexdigest()
    return build.path.with_name(f"{build.path.name}.{digest}.verified")
