# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The key of an artifact: all that its code depends on, the machine included."""

from __future__ import annotations

import pytest

from weft.artifacts import builds
from weft.artifacts.builds import Options, cache_key


def test_team_is_part_of_it():
    assert len({cache_key(b"{}", Options(threads=threads)) for threads in (1, 2, 8)}) == 3


@pytest.mark.parametrize("fact", ["cpu_flags", "caches"])
def test_machine_is_part_of_it(fact, monkeypatch):
    before = cache_key(b"{}", Options())
    assert cache_key(b"{}", Options()) == before
    monkeypatch.setattr(builds, fact, lambda: "another machine's")
    assert cache_key(b"{}", Options()) != before


def test_caches_are_those_of_each_processor():
    for cpu, level, kind, size, sharers in builds.caches():
        assert cpu.isdigit() and level.isdigit()
        assert kind in ("Data", "Instruction", "Unified")
        assert size[:-1].isdigit() and sharers
