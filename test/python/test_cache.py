# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The artifact cache: hits, damage, folders that cannot be written, settings."""

import os
import subprocess
import sys

import pytest
import torch

import weft
from weft.errors import WeftWarning

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("WEFT_CACHE_DIR", str(folder))
    return folder


def run_once():
    compiled = weft.compile(lambda x: x * 2 + 1)
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 3.0))
    return compiled


def build_of(compiled):
    return compiled._latest().build


def test_second_compilation_is_found(cache):
    assert not build_of(run_once()).cached
    second = run_once()
    assert build_of(second).cached
    assert second.artifact_path.parent == cache


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty"])
def test_damaged_entry_is_rebuilt(cache, damage):
    path = run_once().artifact_path
    content = bytearray(path.read_bytes())
    if damage == "truncate":
        del content[len(content) // 2 :]
    elif damage == "flip":
        content[len(content) // 2] ^= 0xFF
    else:
        content.clear()
    path.unlink()  # the loaded file itself stays whole
    path.write_bytes(content)
    with pytest.warns(WeftWarning):
        again = run_once()
    assert not build_of(again).cached
    assert build_of(run_once()).cached


def test_cache_folder_that_cannot_be_made(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("no folder")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(file / "cache"))
    with pytest.warns(WeftWarning):
        run_once()


def python(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def test_import_loads_neither_torch_nor_the_compiler():
    code = "import sys, weft; print([n in sys.modules for n in ('torch', 'weft._compiler')])"
    assert python(code).stdout.strip() == "[False, False]"


def test_nonsense_number_of_threads():
    code = "import weft; weft.get_num_threads()"
    result = python(code, WEFT_THREADS="abc")
    assert "ConfigError" in result.stderr and "abc" in result.stderr


def test_number_of_threads():
    before = weft.get_num_threads()
    try:
        weft.set_num_threads(1)
        assert weft.get_num_threads() == 1
        with pytest.raises(weft.errors.ConfigError):
            weft.set_num_threads(0)
    finally:
        weft.set_num_threads(before)
