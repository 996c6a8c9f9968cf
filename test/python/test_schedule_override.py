# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The option `schedule` of weft.compile: any schedule that fits gives the right numbers."""

import json
import math
import re

import pytest
import torch
from processor import ISAS

import weft

nn = torch.nn
pytestmark = pytest.mark.usefixtures("no_grad")

ANYWHERE = ["rows=1,groups=1", "rows=3,groups=2,chunk=25", "rows=2,groups=2,panels=1", "chunk=15"]
FITTING = {"avx2": ANYWHERE, "avx512": [*ANYWHERE, "rows=2,groups=3,panels=1"]}


def schedule_of(compiled):
    loops = compiled.ir("loops")
    return loops[loops.index("chunk = ") :].partition("}")[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("isa", "schedule"), [(isa, schedule) for isa in ISAS for schedule in FITTING[isa]]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.usefixtures("compiled_only")
def test_numbers(isa, schedule, dtype):
    model, x = nn.Linear(75, 53).to(dtype), torch.randn(70, 75, dtype=dtype)
    results = []
    for threads in (1, 2):
        before = weft.get_num_threads()
        weft.set_num_threads(threads)
        try:
            compiled = weft.compile(model, isa=isa, schedule=schedule, threads=2)
            results.append(compiled(x))
        finally:
            weft.set_num_threads(before)
    for number in schedule.split(","):
        name, _, value = number.partition("=")
        assert f"{name} = {value} : i64" in schedule_of(compiled)
    assert torch.equal(*results)
    exact = model.double()(x.double())
    tolerance = 1e-5 if dtype == torch.float32 else 1e-13
    assert (results[0].double() - exact).abs().max() < tolerance


# strips: with each of ISAS.
@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("tokens", "columns", "depth", "schedule", "strips"),
    [
        (64, 1025, 1030, "rows=2,groups=1", (48, 48)),
        (64, 1025, 1030, "rows=4,groups=2,chunk=515", (48, 48)),
        (64, 1025, 1030, "chunk=206", (48, 48)), (128, 1392, 768, "", (48, 48)),
        (48, 2752, 387, "", (48, 16)), (33, 3500, 301, "", (16, 16)), (80, 520, 2061, "", (48, 16)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.usefixtures("compiled_only")
def test_numbers_where_weights_are_copied_into_strips(
    isa, tokens, columns, depth, schedule, strips
):
    function, x = strips_after_blocks(tokens, columns, depth)
    compiled = weft.compile(function, isa=isa, schedule=schedule)
    error = (compiled(x).double() - function(x, torch.float64)).abs().max()
    found = re.findall(r"\bstrip = (\d+)", compiled.ir("loops"))
    assert found == ["0", str(strips[ISAS.index(isa)])]
    assert error < 1e-4


def strips_after_blocks(tokens: int, columns: int, depth: int):
    """A weight as (in, out) behind a larger one as (out, in), which has tokens in blocks."""
    wide = depth * math.ceil((columns + 1) / depth)
    blocks, strips = torch.randn(depth, wide) / wide**0.5, torch.randn(depth, columns) / 32

    def function(x, dtype=torch.float32):
        return nn.functional.linear(x.to(dtype), blocks.to(dtype)) @ strips.to(dtype)

    return function, torch.randn(tokens, wide)


def test_rows_cut_strips_evenly():
    function, x = strips_after_blocks(64, 1025, 1030)
    compiled = weft.compile(function, schedule="rows=5,groups=1", capture="export")
    with pytest.warns(weft.errors.WeftWarning, match="rows to divide the strip of 48, found 5"):
        compiled(x)


def test_one_that_does_not_fit_is_named_and_pytorch_runs():
    model, x = nn.Linear(75, 13), torch.randn(70, 75)
    compiled = weft.compile(model, schedule="chunk=7", capture="export")
    with pytest.warns(weft.errors.WeftWarning, match="expected chunk to divide 75, found 7"):
        assert torch.equal(compiled(x), model(x))
    assert compiled.eager_reasons


def test_is_part_of_the_cache_key():
    from weft.artifacts.builds import Options, cache_key

    graph = json.dumps({"nodes": []}).encode()
    keys = {cache_key(graph, Options(schedule=text)) for text in ("", "rows=1", "rows=2")}
    assert len(keys) == 3
