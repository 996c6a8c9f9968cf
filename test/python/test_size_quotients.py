# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that windows with steps give: quotients of those of the arguments."""

from __future__ import annotations

import pytest
import sympy
import torch
import torch.nn.functional as F
from torch.utils._sympy.functions import (
    CeilToInt,
    FloorDiv,
    IntTrueDiv,
    Mod,
    ToFloat,
    TruncToInt,
)

import weft
from weft.capture.symbolic_trace import ONE_SIZE
from weft.frontend.sizes.extents import fit, sample_sizes
from weft.frontend.sizes.quotients import (
    grows_to,
    quotients_among,
    single_quotients,
    telling_samples,
    with_quotients,
)

N, M = sympy.symbols("n m", integer=True, positive=True)


def symbols_of(sizes, ranges):
    domains = [range(low, high + 1) for low, high in ranges]
    quotients = quotients_among(sizes, [N, M][: len(ranges)], domains)
    samples = sample_sizes(domains, range(len(ranges)))
    return quotients, telling_samples(samples, domains, quotients)


def test_each_function_has_one_symbol():
    """Steps of steps are steps, and one more than a quotient is one."""
    half = FloorDiv(N - 1, 2) + 1
    sizes = [half, FloorDiv(half - 1, 2) + 1, FloorDiv(N + 3, 4), FloorDiv(N - 1, 4) + 1]
    quotients, samples = symbols_of(sizes, [(2, 70)])
    assert {(0, 1, 2), (0, 3, 4)} < set(single_quotients(1, quotients))
    assert len({each[1:] for each in single_quotients(1, quotients)}) == len(quotients) + 1
    for divisor in (2, 4):
        found = fit([-(-each[0] // divisor) for each in samples], samples, 1)
        for size in range(2, 71):
            assert found.at(with_quotients([size], quotients)) == -(-size // divisor)


def test_sizes_of_two_symbols_are_told_apart():
    ranges = [(17, 32), (17, 32)]
    quotients, samples = symbols_of([FloorDiv(N, 2), FloorDiv(M, 2), FloorDiv(M + 1, 2)], ranges)
    for place, more in ((0, 0), (1, 0), (1, 1)):
        found = fit([(each[place] + more) // 2 for each in samples], samples, 2)
        assert grows_to(found, [range(17, 33)] * 2, quotients)
        for n, m in ((17, 30), (29, 18), (32, 31)):
            sizes = with_quotients((n, m), quotients)
            assert found.at(sizes) == (sizes[place] + more) // 2


def test_steps_from_two_places_are_told_apart(monkeypatch):
    """Windows of 11 and 13 elements at steps of 8 are as many at most sizes."""
    ranges = [(65, 128)]
    quotients, samples = symbols_of([FloorDiv(N - 3, 8), FloorDiv(N - 5, 8)], ranges)
    for less in (3, 5):
        found = fit([(each[0] - less) // 8 for each in samples], samples, 1)
        for size in range(65, 129):
            assert found.at(with_quotients([size], quotients)) == (size - less) // 8
    monkeypatch.setattr(weft.config, "verify", "off")

    def means(x):
        return x.unfold(-1, 11, 8).mean(-1), x.unfold(-1, 13, 8).mean(-1)

    compiled = weft.compile(means, shapes={"x": {0: weft.Range(65, 128)}})
    for size in range(96, 112):
        x = torch.arange(float(size))
        for own, expected in zip(compiled(x), means(x), strict=True):
            torch.testing.assert_close(own, expected)
    assert len(weft.stats(compiled)["ranges"]) == 1


def test_what_shrinks_is_no_size_of_padded_tensors():
    quotients, samples = symbols_of([Mod(N, 4)], [(2, 31)])
    rest = fit([each[0] % 4 for each in samples], samples, 1)
    assert grows_to(rest, [range(2, 32)], quotients)  # which ends where the rest is largest
    quotients, samples = symbols_of([Mod(N, 4)], [(2, 30)])
    rest = fit([each[0] % 4 for each in samples], samples, 1)
    assert not grows_to(rest, [range(2, 31)], quotients)


def stem(x):
    weight = torch.linspace(-1, 1, 4 * 2 * 9).reshape(4, 2, 3, 3)
    x = F.conv2d(x, weight, stride=2, padding=1).relu()
    x = F.max_pool2d(x, 3, 2, 1)
    y = F.conv2d(x, weight.reshape(2, 4, 3, 3), stride=2, padding=1)
    return x, y, y.mean((2, 3)), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dims", [[2], [3], [2, 3]], ids=str)
def test_an_image_of_every_size(dims, monkeypatch):
    """Nothing but this comparison stands between a wrong program and the user."""
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(stem, shapes={"x": {dim: weft.Range(12, 40) for dim in dims}})
    torch.manual_seed(0)
    with torch.no_grad():
        for size in (21, *range(12, 41)):
            shape = [1, 2, 19, 20]
            for step, dim in enumerate(dims):
                shape[dim] = 12 + (size - 12 + 5 * step) % 29
            x = torch.randn(shape)
            for one, other in zip(compiled(x), stem(x), strict=True):
                torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
                assert one.stride() == other.stride()
    stats = compiled.stats()
    assert stats["specialized"] == [] and stats["breaks"] == []
    assert sum(stats["ranges"].values()) == 30


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("factor", "mode"),
    [(0.5, "bilinear"), (1.5, "nearest"), (0.7, "bicubic"), (2.0, "bilinear")],
    ids=str,
)
def test_images_made_larger_and_smaller(factor, mode, monkeypatch):
    """Sizes are multiples by numbers that are not whole, rounded as floating-point numbers are."""
    monkeypatch.setattr(weft.config, "verify", "off")

    def scaled(x):
        return F.interpolate(x, scale_factor=factor, mode=mode) * 2, F.interpolate(
            x, scale_factor=(factor, 1.0), mode=mode, recompute_scale_factor=False
        )

    compiled = weft.compile(scaled, shapes={"x": {d: weft.Range(12, 40) for d in (2, 3)}})
    torch.manual_seed(0)
    for size in (21, *range(12, 41)):
        x = torch.randn(1, 2, size, 12 + (size + 5) % 29)
        for one, other in zip(compiled(x), scaled(x), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
            assert one.stride() == other.stride()
    stats = compiled.stats()
    assert stats["specialized"] == [] and sum(stats["ranges"].values()) == 30


@pytest.mark.sampled(2)
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_another_images_size(mode, align_corners, monkeypatch):
    """Steps are quotients of sizes; where two are equal, infinite neighbours are not read."""
    monkeypatch.setattr(weft.config, "verify", "off")
    table = torch.randn(1, 2, 5, 6)

    def resized(x):
        small = F.avg_pool2d(x, 2)
        how = {"mode": mode, "align_corners": align_corners}
        back = F.interpolate(small, size=x.shape[2:], **how)
        large = F.interpolate(table, size=x.shape[2:], **how)
        return large + x, F.interpolate(x, size=(24, 6), **how), back * 2

    compiled = weft.compile(resized, shapes={"x": {2: weft.Range(12, 40)}})
    torch.manual_seed(0)
    for size in (21, *range(12, 41)):
        x = torch.randn(1, 2, size, 6)
        if size == 24:
            x[0, 0, 3, 4], x[0, 1, 23, 1] = torch.inf, torch.nan
        for one, other in zip(compiled(x), resized(x), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=2e-5, equal_nan=True)
            assert one.stride() == other.stride()
    stats = compiled.stats()
    assert stats["specialized"] == [] and sum(stats["ranges"].values()) == 30


def test_what_is_no_quotient_at_every_size_is_none():
    """0.7 * 90 is less than 63 as floating-point numbers."""
    product = TruncToInt(0.7 * ToFloat(N))
    assert quotients_among([product], [N], [range(2, 100)]) == ()
    (part,) = quotients_among([product], [N], [range(2, 41)])
    (half,) = quotients_among([TruncToInt(0.5 * ToFloat(N))], [N], [range(2, 100)])
    (up,) = quotients_among([CeilToInt(IntTrueDiv(N, 3))], [N], [range(2, 100)])
    for size in range(2, 100):
        assert half.at([size]) == size // 2 and up.at([size]) == -(-size // 3)
        assert size > 40 or part.at([size]) == int(0.7 * size)


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("verified")
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[: x.shape[0] % 4] * 2,
        lambda x: F.pad(x, (0, 0, 0, -x.shape[0] % 4)).reshape(-1, 4, 3).sum(1),
        lambda x: x[: x.shape[0] // 4 * 4].reshape(-1, 4, 3).sum(1),
        lambda x: x[x.shape[0] // 2 :].cumsum(0),
        lambda x: x[:: max(x.shape[0] // 5, 1)] + 1,
    ],
    ids=["rest", "filled", "blocks", "half", "steps"],
)
def test_sizes_that_are_computed(function):
    compiled = weft.compile(function, shapes={"x": {0: weft.Range(4, 31)}})
    for size in (11, 12, 13, 4, 31, 30, 18):
        x = torch.randn(size, 3)
        torch.testing.assert_close(compiled(x), function(x))


def stepped(x):
    signal = x.T[None]
    weight = torch.ones(2, 8, 3) / 24
    half = F.conv1d(signal, weight, stride=2, padding=1)
    third = F.conv1d(half.relu(), weight[:, :2], stride=3, padding=1)
    return half, third, x[::2] * 2, x[1::3].exp(), x[::2].sum(0)


def grouped(x):
    signal, weight = torch.stack([x.T, x.T * 2 + 1]), torch.linspace(-1, 1, 8)
    image = torch.stack([signal, signal + 3], 2)
    return F.group_norm(signal, 8, weight, weight + 1), F.group_norm(image, 2), x.T.var(1)


@pytest.mark.parametrize("family", [stepped, grouped], ids=lambda each: each.__name__)
def test_sizes_of_windows_with_steps(family, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(family, shapes={"x": {0: weft.Range(12, 40)}})
    torch.manual_seed(0)
    with torch.no_grad():
        for size in (21, *range(12, 41)):
            x = torch.randn(size, 8)
            for found, expected in zip(compiled(x), family(x), strict=True):
                torch.testing.assert_close(found, expected, rtol=2e-5, atol=1e-5)
                assert found.stride() == expected.stride()
    stats = compiled.stats()
    assert stats["specialized"] == [] and stats["breaks"] == []
    assert sum(stats["ranges"].values()) == 30


def unshuffled(x):
    return F.pixel_unshuffle(x.T.reshape(2, 4, -1), 2) * 2


def attended_in_blocks(x):
    """Each row within its block of four; whole blocks are padded otherwise than others."""
    n = x.shape[0]
    behind = -n % 4
    if behind:
        x = F.pad(x, (0, 0, 0, behind))
    blocks = x.view(-1, 4, 8)
    return ((blocks @ blocks.mT).softmax(-1) @ blocks).view(-1, 8)[:n] + x[:n]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("function", "programs"), [(unshuffled, 1), (attended_in_blocks, 2)])
def test_sizes_that_a_condition_leaves_are_of_one_program(function, programs, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(function, shapes={"x": {0: weft.Range(4, 40)}})
    torch.manual_seed(0)
    step = 2 if function is unshuffled else 1
    with torch.no_grad():
        for size in (22, *range(6, 41, step)):
            x = torch.randn(size, 8)
            torch.testing.assert_close(compiled(x), function(x), rtol=2e-5, atol=1e-5)
    stats = compiled.stats()
    assert stats["specialized"] == [] and stats["breaks"] == []
    assert len(stats["ranges"]) == stats["graphs"] == programs
    if function is unshuffled:
        with pytest.raises(RuntimeError, match="divisible"):
            compiled(torch.randn(9, 8))


def test_a_condition_on_a_part_of_a_size(monkeypatch):
    """torch writes such conditions with functions of its own."""
    monkeypatch.setattr(weft.config, "verify", "off")

    def doubled(x):
        return x * 2 if int(x.shape[0] * 0.5) >= 10 else x * 3

    compiled = weft.compile(doubled, shapes={"x": {0: weft.Range(17, 32)}})
    for size in (25, 17, 19, 20, 21, 32):
        x = torch.arange(float(size))
        torch.testing.assert_close(compiled(x), doubled(x))
    # Python's int makes a number of it: 8 is that of 17 alone, as 16 is below the range.
    assert set(weft.stats(compiled)["specialized"]) <= {ONE_SIZE}
    assert weft.stats(compiled)["ranges"]
