# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of modules, and which ops repeat."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import weft
from weft import errors, ir
from weft.ir import ops
from weft.ir.repetition import find_repetition

DOT = """\
digraph weft {
	node [fontname=Helvetica fontsize=11 margin="0.08,0.04"]
	edge [color="#555555" fontname=Helvetica fontsize=8]
	graph [fontname=Helvetica fontsize=11 nodesep=0.2 ranksep=0.3]
	n3 [label="mul
f32[3, 4]
operand 1: 2" fillcolor="#f2f2f2" shape=box style="filled,rounded"]
	n1 -> n3
	n4 [label="add
f32[3, 4]" fillcolor="#f2f2f2" shape=box style="filled,rounded"]
	n3 -> n4
	n2 -> n4
	n5 [label="transpose
f32[4, 3]
perm: [1, 0]" fillcolor="#f2f2f2" shape=box style="filled,rounded"]
	n4 -> n5
	n1 [label="x
f32[3, 4]" fillcolor="#e3f1dc" shape=ellipse style=filled]
	n2 [label="y
f32[3, 4]" fillcolor="#e3f1dc" shape=ellipse style=filled]
	n6 [label="result
f32[4, 3]" fillcolor="#e3f1dc" shape=ellipse style=filled]
	n5 -> n6
}
"""


@ir.function(name="main")
def small(x: ir.tensor(3, 4), y: ir.tensor(3, 4)):
    return ops.transpose(ops.add(x * 2, y), [1, 0])


def dot(module, path, **options) -> str:
    module.visualize(path / "picture.dot", **options)
    return (path / "picture.dot").read_text()


def test_variables_ops_attributes_and_constants(tmp_path):
    assert dot(small.module, tmp_path) == DOT


def test_formats(tmp_path):
    module = small.module
    module.visualize(tmp_path / "picture.svg")
    module.visualize(tmp_path / "picture.png")
    assert "<svg" in (tmp_path / "picture.svg").read_text()
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(errors.IRError, match=r"ends in .svg, .png or .dot; found '.*\.gif'"):
        module.visualize(tmp_path / "picture.gif")


def test_attributes_by_choice(tmp_path):
    module = small.module
    assert "perm" not in dot(module, tmp_path, attributes=[])
    gold = dot(module, tmp_path, node_attributes=lambda op: {"fillcolor": "gold"})
    assert gold.count("fillcolor=gold") == 3


def test_constants_of_ten_elements_are_nodes(tmp_path):
    @ir.function(name="main")
    def main(x: ir.tensor(3), y: ir.tensor(10)):
        few, many = np.arange(3, dtype=np.float32), np.arange(10, dtype=np.float32)
        return ops.add(x, few), ops.add(y, many)

    text = dot(main.module, tmp_path)
    assert "operand 1: [0.0, 1.0, 2.0]" in text
    assert "constant\nf32[10]\n10 elements" in text
    assert "result 0\nf32[3]" in text and "result 1\nf32[10]" in text


def test_several_results_are_numbered(tmp_path):
    @ir.function(name="main")
    def main(x: ir.tensor(4, 4)):
        values, places = ops.sort(x, 1, False, 4)
        return ops.add(values, values), places

    text = dot(main.module, tmp_path)
    assert re.search(r"n\d+ -> n\d+ \[label=0\]", text)
    assert re.search(r"n\d+ -> n\d+ \[label=1\]", text)


def test_kernels_are_clusters_named_by_their_ops(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    module = ir.of(model, torch.randn(3, 8))
    text = dot(module, tmp_path, stage="kernels")
    labels = re.findall(r'label="(dot_general_\d [^"]*)"', text)
    assert labels == [
        "dot_general_0 (contraction): dot_general broadcast_in_dim add max",
        "dot_general_1 (contraction): dot_general broadcast_in_dim add",
    ]
    assert text.count("subgraph cluster_") == 2
    assert "linalg.generic" in dot(module, tmp_path, stage="linalg")


def test_an_op_without_a_picture_is_an_error(tmp_path):
    module = small.module
    with pytest.raises(errors.IRError, match="expected a stage among graph, .*; found 'loops'"):
        module.visualize(tmp_path / "picture.svg", stage="loops")
    text = "module { func.func @main() { %0 = memref.alloc() : memref<4xf32>\n return } }"
    with pytest.raises(errors.IRError, match="expected an op that pictures show, found memref"):
        ir.Module.parse(text).visualize(tmp_path / "picture.svg")


def test_equal_layers_are_drawn_once(tmp_path):
    layers = [torch.nn.Linear(8, 8) if i % 2 == 0 else torch.nn.ReLU() for i in range(48)]
    module = ir.of(torch.nn.Sequential(*layers), torch.randn(2, 8))
    text = dot(module, tmp_path)
    assert text.count('label="dot_general\n') == 1 and 'label="24 times"' in text
    assert text.count("style=dashed") == 1, "from one layer to the next"
    assert dot(module, tmp_path, fold=False).count('label="dot_general\n') == 24


def test_forward_and_backward_have_colours(tmp_path):
    model = torch.nn.Linear(4, 2)
    compiled = weft.compile(model)
    compiled(torch.randn(3, 4)).sum().backward()
    for stage in ("joint", "partitioned"):
        compiled.visualize(tmp_path / "picture.dot", stage=stage)
        text = (tmp_path / "picture.dot").read_text()
        forward, backward = text.count("#c9dcf5"), text.count("#f7cfc9")
        assert forward == 3 and backward >= 2
    weft.visualize(compiled, tmp_path / "picture.svg", stage="kernels")
    assert "<svg" in (tmp_path / "picture.svg").read_text()


@pytest.mark.parametrize(
    "keys, found",
    [
        ("abababab", (0, 2, 4)),
        ("xyzabcabcabcw", (3, 3, 3)),
        ("abcdef", None),
        ("", None),
        ("aaaaaa", (0, 2, 3)),
    ],
)
def test_repetition(keys, found):
    repetition = find_repetition(keys)
    assert (
        None if repetition is None else (repetition.start, repetition.period, repetition.count)
    ) == found
