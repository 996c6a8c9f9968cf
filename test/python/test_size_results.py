# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where results of programs for a range of sizes lie in memory: strides that are products of sizes,
parts of larger memory, and views of arguments, of weights and of one another."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import weft

TABLE = torch.arange(50.0 * 8).reshape(50, 8).sin()


def strided(x):
    n = x.shape[1]
    scores = x @ x.transpose(1, 2)
    return (x * 2).transpose(0, 1)[1:], F.pad(scores, (1, 0)).reshape(-1, n + 1, n)[:, 1:]


def views_of_a_result(x):
    y = x * 2
    return y, y[:, 0], y[:, 1:], y.transpose(1, 2), y.view(-1), y


def views_of_what_is_no_result(x):
    y, half = x.exp(), x.shape[1] // 2
    return y[:, :half], y[:, half:], y[1]


def views_of_arguments(x):
    return x[:, 1:], x, x + 1, x.transpose(1, 2)[0], TABLE[: x.shape[1]]


def turned(x):
    y = x.transpose(1, 2) + x.shape[1]
    return y, y.mT, y.transpose(0, 2)[1:]


FUNCTIONS = [
    *(strided, views_of_a_result, views_of_what_is_no_result, views_of_arguments, turned),
]


def sharing(values):
    memory = [each.untyped_storage().data_ptr() for each in values]
    return [[one == other for one in memory] for other in memory]


def agree(actual, expected, x):
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-5, atol=1e-5)
        assert one.stride() == other.stride()
        assert one.storage_offset() == other.storage_offset()
    assert sharing([*actual, x, TABLE]) == sharing([*expected, x, TABLE])
    assert [one is actual[0] for one in actual] == [one is expected[0] for one in expected]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_every_size(function, monkeypatch):
    """Nothing but this comparison stands between a wrong program and the user."""
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(function, shapes={"x": {1: weft.Range(2, 16)}})
    torch.manual_seed(0)
    with torch.no_grad():
        for size in (9, *range(4, 17)):
            x = torch.randn(2, size, 8)
            agree(compiled(x), function(x), x)
    stats = compiled.stats()
    assert stats["specialized"] == [] and stats["breaks"] == []
    assert sum(stats["ranges"].values()) == 14 and stats["graphs"] == 1


def test_layouts_are_compared_first(verified):
    compiled = weft.compile(views_of_what_is_no_result, shapes={"x": {1: weft.Range(2, 16)}})
    with torch.no_grad():
        for size in (9, 5, 16):
            x = torch.randn(2, size, 8)
            agree(compiled(x), views_of_what_is_no_result(x), x)
    stats = compiled.stats()
    assert stats["specialized"] == [] and list(stats["ranges"].values()) == [
        2
    ]  # the first is compared


def test_a_view_of_one_tensor_at_some_sizes_alone():
    def first(x):
        y = x * 2
        return y, y[:8] if x.shape[0] != 11 else y[:8] + 1

    compiled = weft.compile(first, shapes={"x": {0: weft.Range(9, 16)}})
    with torch.no_grad():
        for size in (12, 9, 11, 16):
            x = torch.randn(size, 3)
            for one, other in zip(compiled(x), first(x), strict=True):
                torch.testing.assert_close(one, other)


def test_a_write_to_a_view_reaches_what_it_shows():
    compiled = weft.compile(views_of_a_result, shapes={"x": {1: weft.Range(2, 16)}})
    with torch.no_grad():
        for size in (9, 5):
            whole, first, *_ = compiled(torch.ones(2, size, 8))
            first.zero_()
            assert whole[:, 0].eq(0).all() and whole[:, 1:].eq(2).all()


def test_indices_into_sizes(verified, automatic_sizes):
    """A graph's edges name its nodes: the fewer nodes of the range's ends have fewer indices."""

    def summed(x, edges):
        source, target = edges
        return torch.zeros_like(x).index_add(0, target, x[source]), x[source].amax(0)

    compiled = weft.compile(summed)
    for nodes, edges in [(12, 30), (13, 31), (16, 32), (14, 27), (15, 20)]:
        x, pairs = torch.randn(nodes, 3), torch.randint(nodes, (2, edges))
        torch.testing.assert_close(compiled(x, pairs), summed(x, pairs))
    stats = compiled.stats()
    assert stats["graphs"] == 2 and stats["hits"] >= 3 and not stats["breaks"]


def test_results_that_show_tokens_cut_short_have_programs_of_their_own(automatic_sizes):
    def shown(tokens):
        return tokens + 1, tokens[:, 1:], tokens.flatten()

    compiled = weft.compile(shown)
    for size in (12, 16, 9):
        tokens = torch.randint(0, 20, (3, size))[:, :-1]
        actual, expected = compiled(tokens), shown(tokens)
        for own, other in zip(actual, expected, strict=True):
            assert torch.equal(own, other) and own.stride() == other.stride()
        assert actual[1].data_ptr() == expected[1].data_ptr()
    reason = "an argument whose size is a symbol is not contiguous"
    assert compiled.stats()["specialized"] == [reason]


def test_what_is_written_to_arguments_of_a_range(verified):
    """The program has padded copies of them."""

    def step(cache, rows, place):
        cache.index_copy_(1, place, rows[:, :1])
        rows.mul_(2)
        return cache, cache.sum(1), rows + 1

    both = weft.Range(2, 16)
    compiled = weft.compile(step, shapes={"cache": {1: both}, "rows": {1: both}})
    with torch.no_grad():
        for size, length in ((9, 5), (2, 16), (16, 3), (7, 7), (12, 2)):
            given = torch.randn(2, size, 4), torch.randn(2, length, 4), torch.tensor([size - 2])
            own = [each.clone() for each in given]
            results, expected = compiled(*own), step(*given)
            for one, other in zip((*results, *own), (*expected, *given), strict=True):
                torch.testing.assert_close(one, other)
            assert results[0] is own[0] and [each._version for each in own] == [1, 1, 0]
    stats = compiled.stats()
    assert stats["graphs"] == 1 and sum(stats["ranges"].values()) == 4 and not stats["breaks"]


def test_a_write_to_what_a_padded_argument_is_a_part_of(verified):
    def step(memory, x):
        memory.add_(1)
        return x * 2

    compiled = weft.compile(step, shapes={"x": {0: weft.Range(2, 16)}})
    with torch.no_grad():
        for length in (5, 9):
            assert torch.equal(
                compiled(torch.zeros(32), torch.ones(length)), 2 * torch.ones(length)
            )
        memory = torch.zeros(32)
        assert torch.equal(compiled(memory, memory[:9]), 2 * torch.ones(9))
    assert sum(compiled.stats()["ranges"].values()) == 1
