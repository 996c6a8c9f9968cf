# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.cache`: what is counted, what is removed, and who goes on beside it."""

import os
import time

import pytest
import torch
from counting import latest
from processes import python

import weft

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("WEFT_CACHE_DIR", str(folder))
    return folder


def compiled(factor=2.0):
    program = weft.compile(lambda x: x * factor + 1)
    assert torch.equal(program(torch.ones(3)), torch.full((3,), factor + 1))
    return program


def test_a_cleared_cache_is_compiled_into_anew(folder):
    compiled()
    assert latest(compiled()).build.cached
    assert weft.cache.path() == folder
    counted = weft.cache.size()
    assert counted.programs == 1 and counted.bytes > 0
    assert weft.cache.clear() == counted
    assert weft.cache.size() == weft.cache.clear() == (0, 0)
    assert not latest(compiled()).build.cached
    assert weft.cache.size().programs == 1


def test_programs_in_use_run_on(folder):
    programs = [compiled(factor) for factor in (2.0, 3.0)]
    assert weft.cache.clear().programs == 2
    for program, expected in zip(programs, (3.0, 4.0)):
        assert torch.equal(program(torch.ones(3)), torch.full((3,), expected))
        assert not weft.stats(program)["breaks"]


def test_records_of_comparisons_go_too(folder, verified):
    compiled()
    assert [path.suffix for path in folder.iterdir() if path.is_file()].count(".verified") == 1
    weft.cache.clear()
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_what_is_not_ours_stays(folder):
    compiled()
    own = [path for path in folder.iterdir() if path.is_file()]
    others = [folder / "notes.txt", folder / "libfoo.so", folder / "drafts" / "mine.so"]
    fresh = folder / "drafts" / f"{'a' * 40}.1.0.so"  # what another process may be writing
    old = folder / "drafts" / f"{'b' * 40}.1.0.so"
    for path in (*others, fresh, old):
        path.write_text("content")
    yesterday = time.time() - 25 * 60 * 60
    os.utime(old, (yesterday, yesterday))
    target = folder.parent / "elsewhere.so"
    target.write_text("content")
    (folder / f"{'c' * 40}.so").symlink_to(target)
    weft.cache.clear()
    assert not any(path.exists() for path in (*own, old))
    assert all(path.exists() for path in (*others, fresh, target))


def test_without_a_folder(folder):
    assert weft.cache.size() == weft.cache.clear() == (0, 0)
    assert not folder.exists()


def test_a_cache_that_is_emptied_while_a_program_is_published(folder, monkeypatch):
    """Another process does so between the artifact's last step into the cache and its loading."""
    from weft import _core
    from weft.artifacts import builds

    real, left = _core.Artifact.load, [1]

    class Emptied:
        @staticmethod
        def load(path):
            if left.pop() if left else False:
                weft.cache.clear()
            return real(path)

    class Core:
        Artifact = Emptied

        def __getattr__(self, name):
            return getattr(_core, name)

    monkeypatch.setattr(builds, "_core", Core())
    program = compiled()
    assert not left and not weft.stats(program)["breaks"]


CLEARING = """
import weft
print(weft.cache.clear().programs)
"""


def test_beside_another_process(folder):
    program = compiled()
    result = python(CLEARING, WEFT_CACHE_DIR=str(folder))
    assert result.stdout.strip() == "1", result.stderr
    assert torch.equal(program(torch.ones(3)), torch.full((3,), 3.0))
    assert not latest(compiled()).build.cached
