# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The artifact cache: hits, damage, folders that cannot be written, settings."""

import os
import signal
import subprocess
import tempfile
import threading

import pytest
import torch
from counting import latest
from processes import python

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
    return latest(compiled).build


def test_second_compilation_is_found(cache):
    assert not build_of(run_once()).cached
    second = run_once()
    assert build_of(second).cached
    assert second.artifact_path.parent == cache


def test_sizes_of_the_processors_caches_count(cache, monkeypatch):
    run_once()
    monkeypatch.setenv("WEFT_CPU_CACHES", "16K,256K")
    assert not build_of(run_once()).cached
    assert build_of(run_once()).cached


def test_wrong_sizes_of_the_processors_caches(cache, monkeypatch):
    monkeypatch.setenv("WEFT_CPU_CACHES", "16K")
    with pytest.warns(WeftWarning, match="WEFT_CPU_CACHES: expected the sizes of two or three"):
        run_once()


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


def test_import_loads_neither_torch_nor_the_compiler():
    code = "import sys, weft; print([n in sys.modules for n in ('torch', 'weft._compiler')])"
    assert python(code).stdout.strip() == "[False, False]"


@pytest.fixture
def interruptible():
    """A shell starts its background jobs with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_interrupted_compilation(cache, monkeypatch, interruptible, moment):
    from weft import _compiler

    real = _compiler.compile

    def interrupted(*arguments):
        if moment == "after":
            real(*arguments)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(_compiler, "compile", interrupted)
    compiled = weft.compile(lambda x: x * 2 + 1)
    x = torch.ones(3)
    with pytest.raises(KeyboardInterrupt):
        compiled(x)
    assert [path for path in cache.rglob("*") if path.is_file()] == []
    monkeypatch.undo()
    monkeypatch.setenv("WEFT_CACHE_DIR", str(cache))
    assert torch.equal(compiled(x), torch.full((3,), 3.0))
    assert not build_of(compiled).cached


SMALL_ROOM = """
import resource, sys, warnings
import torch, weft
room, kind = sys.argv[1:]
if kind == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), resource.RLIM_INFINITY))
with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 6))
    compiled, x = weft.compile(model), torch.randn(3, 4)
    torch.testing.assert_close(compiled(x), model(x))
    torch.testing.assert_close(compiled(x), model(x))
print("eager" if compiled.eager_reasons else "native", *(w.category.__name__ for w in caught))
"""


def test_files_may_not_grow(cache):
    """Nothing can be written anywhere: PyTorch runs the call."""
    result = python(SMALL_ROOM, "1000", "limit")
    assert result.stdout.startswith("eager WeftWarning"), result.stderr
    assert [path for path in cache.rglob("*") if path.is_file()] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small file system")
def test_full_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no file system may be mounted here")
    try:
        result = python(SMALL_ROOM, "0", "disk", WEFT_CACHE_DIR=str(folder))
        assert result.stdout.strip() == "native WeftWarning", result.stderr
        assert [path for path in folder.rglob("*") if path.is_file()] == []
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def many_kernels(x):
    for number in range(40):
        x = torch.cat([x, (x * number).sum(-1, keepdim=True)], -1).softmax(-1)
    return x


def test_compilation_is_cancelled_by_a_signal(cache, monkeypatch, interruptible):
    from weft import _compiler

    real, written = _compiler.compile, []

    def compile_under_fire(graph, path, options):
        sender = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        sender.start()
        try:
            return real(graph, path, options)
        finally:
            written.append(os.path.exists(path))
            sender.join()

    compiled, x = weft.compile(many_kernels), torch.randn(4, 5)
    monkeypatch.setattr(_compiler, "compile", compile_under_fire)
    with pytest.raises(KeyboardInterrupt):
        compiled(x)
    assert written == [False]
    assert [path for path in cache.rglob("*") if path.is_file()] == []
    monkeypatch.setattr(_compiler, "compile", real)
    torch.testing.assert_close(compiled(x), many_kernels(x))
    assert not build_of(compiled).cached


READ_ONLY = """
import os, pwd, sys, warnings
import torch, weft

def known(x): return x * 2 + 1
def unknown(x): return x * 3 - 1

def run(function):
    compiled, x = weft.compile(function), torch.ones(3)
    assert torch.equal(compiled(x), function(x)) and not compiled.eager_reasons
    return compiled.face.programs.latest().build.cached

with torch.no_grad():
    run(known)  # everything is loaded while its files may be read
    os.chmod(sys.argv[1], 0o555)
    if os.geteuid() == 0:  # who may write everything
        os.setuid(pwd.getpwnam("nobody").pw_uid)
    assert not os.access(sys.argv[1], os.W_OK)
    for function in (known, unknown):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(run(function), *(w.message for w in caught))
"""


def test_read_only_cache_folder():
    with tempfile.TemporaryDirectory(prefix="weft-read-only-") as folder:
        os.chmod(folder, 0o755)
        result = python(READ_ONLY, folder, WEFT_CACHE_DIR=folder)
        os.chmod(folder, 0o755)
        assert result.returncode == 0, result.stderr
        found, compiled = result.stdout.splitlines()
        assert found == "True"
        assert compiled.startswith(f"False the cache folder {folder} cannot be written")
