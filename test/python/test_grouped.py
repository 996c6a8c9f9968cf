# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows in groups, each against a matrix of its own: mixtures of experts."""

import pytest
import torch
import transformers
import transformers.integrations.moe  # noqa: F401  defines the op
from counting import latest

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")


def grouped(x, weights, ends):
    return torch.ops.transformers.grouped_mm_fallback(x, weights.transpose(1, 2), ends)


def check(compiled, x, weights, ends):
    expected = grouped(x.double(), weights.double(), ends)
    torch.testing.assert_close(compiled(x, weights, ends).double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ["native", "avx2"])
@pytest.mark.parametrize(
    ("columns", "depth"), [(48, 16), (96, 64), (100, 70), (131, 300), (400, 517)]
)
def test_groups(isa, columns, depth):
    """Of no row, of one, of several blocks, and rows that no group holds."""
    x, weights = torch.randn(150, depth), torch.randn(6, columns, depth)
    compiled = weft.compile(grouped, isa=isa)
    for counts in (
        [0, 1, 17, 100, 32, 0],
        [25] * 6,
        [0] * 6,
        [150, 0, 0, 0, 0, 0],
        [3, 2, 1, 1, 9, 70],
    ):
        check(compiled, x, weights, torch.tensor(counts).cumsum(0).to(torch.int32))
    assert "weft.grouped_dot" in compiled.ir("graph")


def test_ends_beyond_the_rows():
    x, weights = torch.randn(20, 32), torch.randn(3, 64, 32)
    check(weft.compile(grouped), x, weights, torch.tensor([5, 90, 10**12]))


def test_what_is_not_a_number_stays_in_its_group():
    x, weights = torch.randn(40, 32), torch.randn(3, 64, 32)
    x[7], weights[2] = torch.nan, torch.inf
    found = weft.compile(grouped)(x, weights, torch.tensor([7, 8, 30]))
    assert found[:7].isfinite().all() and found[7].isnan().all()
    assert not found[8:30].isfinite().any() and (found[30:] == 0).all()


@pytest.mark.at_length
def test_rows_that_lie_otherwise():
    """As columns, or as heads that are joined."""
    weights, ends = torch.randn(3, 64, 48), torch.tensor([5, 9, 21])
    for rows in (lambda x: x.t(), lambda x: x.view(4, 24, 12).permute(1, 0, 2).reshape(24, 48)):
        x = torch.randn(48, 24)
        compiled = weft.compile(lambda x, rows=rows: grouped(rows(x), weights, ends))
        torch.testing.assert_close(compiled(x), grouped(rows(x), weights, ends))


@pytest.mark.parametrize("columns", [64, 63])
def test_product_of_torch(columns):
    """Its results lie with rows of whole 16 bytes."""
    x, weights = torch.randn(20, 32), torch.randn(3, columns, 32)
    ends = torch.tensor([5, 9, 20], dtype=torch.int32)

    def function(x, weights, ends):
        return torch.nn.functional.grouped_mm(x, weights.transpose(1, 2), offs=ends)

    compiled = weft.compile(function)
    found, expected = compiled(x, weights, ends), function(x, weights, ends)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert found.stride() == expected.stride()
    assert "weft.grouped_dot" in compiled.ir("graph")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("x", "weights"), [((8, 24), (24, 16)), ((3, 8, 16), (16, 24)), ((3, 5, 32), (3, 32, 64))]
)
def test_other_products_of_torch(x, weights, dtype):
    ends = None if len(weights) == 3 else torch.tensor([8, 8, 24], dtype=torch.int32)
    x, weights = torch.randn(x).to(dtype), torch.randn(weights).to(dtype)
    function = torch.nn.functional.grouped_mm
    found = weft.compile(lambda x, w: function(x, w, offs=ends))(x, weights)
    torch.testing.assert_close(found, function(x, weights, offs=ends))
    assert found.stride() == function(x, weights, offs=ends).stride()


def test_product_in_a_program_that_writes():
    """torch makes it functional, and has to know its shape there too."""
    x, weights = torch.randn(20, 32), torch.randn(3, 64, 32)
    ends = torch.tensor([5, 9, 20], dtype=torch.int32)

    def function(x):
        rows = torch.nn.functional.grouped_mm(x, weights.transpose(1, 2), offs=ends)
        rows[:, 1:][2:] = 0
        return rows

    torch.testing.assert_close(weft.compile(function)(x), function(x), rtol=1e-4, atol=1e-4)


def test_no_matrix():
    x, weights, ends = torch.randn(9, 32), torch.randn(0, 64, 32), torch.zeros(0, dtype=torch.int32)
    assert torch.equal(weft.compile(grouped)(x, weights, ends), torch.zeros(9, 64))


def test_threads_do_not_matter():
    x, weights, ends = torch.randn(90, 64), torch.randn(4, 500, 64), torch.tensor([9, 50, 51, 90])
    compiled, before, results = weft.compile(grouped, threads=3), weft.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            weft.set_num_threads(threads)
            results.append(compiled(x, weights, ends))
    finally:
        weft.set_num_threads(before)
    assert all(torch.equal(each, results[0]) for each in results)


def test_matrices_that_lie_otherwise_are_not_copied():
    """(groups, in, out): PyTorch has them where they are."""
    x, weights, ends = torch.randn(9, 32), torch.randn(2, 32, 64), torch.tensor([4, 9])
    compiled = weft.compile(torch.ops.transformers.grouped_mm_fallback.default)
    expected = torch.ops.transformers.grouped_mm_fallback(x, weights, ends)
    torch.testing.assert_close(compiled(x, weights, ends), expected)
    assert "weft.transpose" not in compiled.ir("graph")


def test_mixture_of_experts():
    config = transformers.Qwen3MoeConfig(
        vocab_size=100,
        hidden_size=64,
        moe_intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        num_experts=8,
        num_experts_per_tok=2,
        use_cache=False,
    )
    model = transformers.Qwen3MoeModel(config).eval()
    ids = torch.randint(100, (1, 33))
    compiled = weft.compile(model)
    found, expected = compiled(ids).last_hidden_state, model(ids).last_hidden_state
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    # In which order it leaves equal elements, such as a token's experts, PyTorch does not say.
    places = {"aten.topk.default", "aten.sort.default"}
    assert {each.target for each in latest(compiled).lowered.fallbacks} <= places


def test_histogram():
    x = torch.cat([torch.randn(1000), torch.tensor([-1.0, 2.0, -1.0000001, 2.0000002, torch.nan])])
    x = torch.cat([x, torch.arange(-128, -118) / 64])
    for low, high, bins in ((-2.0, -1.9, 16), (0.1, 0.7, 10), (-1, 2, 7)):
        compiled = weft.compile(lambda x, *args: torch.histc(x, *args))
        assert torch.equal(compiled(x, bins, low, high), torch.histc(x, bins, low, high))
    assert "weft.torch_fallback" not in compiled.ir("graph")


@pytest.mark.parametrize("counts", [[5, 0, 17, 8], [30, 0, 0, 0], [0, 3, 3, 3]])
def test_gradients(counts):
    x, weights = torch.randn(30, 48), torch.randn(4, 64, 48)
    ends = torch.tensor(counts).cumsum(0).to(torch.int32)
    cotangent = torch.randn(30, 64)

    def gradients(function):
        inputs = [x.clone().requires_grad_(), weights.clone().requires_grad_()]
        rows = function(*inputs, ends)[: sum(counts)]  # what no group holds is uninitialised
        return torch.autograd.grad(rows, inputs, cotangent[: sum(counts)])

    def function(x, weights, ends):
        return torch._grouped_mm(x, weights.transpose(1, 2), offs=ends)

    compiled = weft.compile(function)
    with torch.enable_grad():
        for _ in range(3):
            found = gradients(compiled)
        expected = gradients(lambda x, w, ends: by_group(x, w, counts))
    for own, eager in zip(found, expected, strict=True):
        torch.testing.assert_close(own, eager, rtol=1e-4, atol=1e-4)
    assert weft.stats(compiled)["hits"] >= 1, weft.stats(compiled)


def by_group(x, weights, counts):
    parts = x[: sum(counts)].split(counts)
    return torch.cat([part @ each.t() for part, each in zip(parts, weights, strict=True)])
