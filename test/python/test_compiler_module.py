# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""weft._compiler: JSON graphs in, shared objects or one clear error out."""

import json

import pytest

from weft import _compiler

LOCATION = ["model.py", 12, "forward"]


def graph(node, outputs=(1,)):
    return json.dumps(
        {
            "version": 3,
            "name": "main",
            "inputs": [
                {"name": "x", "kind": "input", "dtype": "f32", "shape": [4, 8], "order": [0, 1]}
            ],
            "nodes": [node],
            "outputs": [{"value": number, "order": [0, 1]} for number in outputs],
            "locs": {"lines": [LOCATION], "nodes": [0]},
        }
    ).encode()


EXP = {"op": "weft.exp", "in": [0], "attrs": {}}


def test_lower_stops_at_a_stage():
    text = _compiler.lower(graph(EXP), "graph")
    assert "weft.exp" in text
    assert '"model.py":12:0' in text


def test_compile_writes_one_complete_file(tmp_path):
    report = json.loads(_compiler.compile(graph(EXP), str(tmp_path / "a.so"), {"threads": 2}))
    assert list(report["seconds"]) == [
        "graph", "optimized", "kernels", "linalg", "scheduled", "loops", "llvm", "object", "link",
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["a.so"]


def test_an_error_names_the_line_and_leaves_no_file(tmp_path):
    bad = graph({"op": "weft.softmax", "in": [0], "attrs": {"dim": 7}})
    with pytest.raises(_compiler.CompileError, match=r"^model\.py:12: error: .*found 7$"):
        _compiler.compile(bad, str(tmp_path / "a.so"))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(_compiler.OutputError, match="missing"):
        _compiler.compile(graph(EXP), str(tmp_path / "missing" / "a.so"))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"isa": "mmx"}, _compiler.CompileError, "expected isa to be one of: native"),
        ({"threads": 0}, _compiler.CompileError, "expected at least 1 thread, found 0"),
        (
            {"precision": "f8"},
            _compiler.CompileError,
            "expected precision to be one of: float32, bf16; found 'f8'",
        ),
        (
            {"speed": 3},
            ValueError,
            "expected option isa, threads, schedule, precision, role, wrt, differentiated, "
            "memory_budget, level or without, found 'speed'",
        ),
    ],
)
def test_options_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        _compiler.lower(graph(EXP), "graph", options)


def test_the_environment_replaces_the_isa(monkeypatch):
    monkeypatch.setenv("WEFT_ISA", "mmx")
    with pytest.raises(_compiler.CompileError, match="found 'mmx'"):
        _compiler.lower(graph(EXP), "graph", {"isa": "native"})


def test_dump_leaves_a_file_per_stage(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_DUMP", str(tmp_path / "dump"))
    _compiler.lower(graph(EXP), "kernels")
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert names == ["00-graph.mlir", "01-optimized.mlir", "02-kernels.mlir"]
