# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values and gradients of all differentiable elementwise functions and of reductions of two, at
zeros, denormals, the largest numbers, infinities and NaN, in every pair, as PyTorch's vectors have
them. Where a slope is nothing but rounding, an argument is left out."""

import math

import pytest
import torch
import torch.nn.functional as F

import weft

OF_ONE = {
    **{
        name: getattr(torch, name)
        for name in (
            *("abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "cos", "cosh"),
            *("erf", "erfc", "exp", "exp2", "expm1", "frac", "log", "log10", "log1p", "log2"),
            *("reciprocal", "rsqrt", "sigmoid", "sin", "sinc", "sinh", "sqrt", "square", "tan"),
            *("tanh", "nan_to_num"),
        )
    },
    **{
        name: getattr(F, name)
        for name in (
            *("celu", "elu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu"),
            *("logsigmoid", "mish", "relu", "relu6", "selu", "silu", "softplus", "softshrink"),
            *("softsign", "tanhshrink"),
        )
    },
    **{
        f"power {exponent}": (lambda x, y=exponent: x**y)
        for exponent in (0, 0.5, -0.5, 1, -1, 2, -2, 3, -3, 4, 1.5, -1.5, 0.3, 7, math.inf)
    },
    "entr": torch.special.entr,
    "logit": torch.logit,
    "logit within": lambda x: torch.logit(x, 0.1),
    "celu of 2": lambda x: F.celu(x, 2.0),
    "softplus of 3": lambda x: F.softplus(x, 3.0, 5.0),
    "clamp": lambda x: x.clamp(-1, 1),
    "clamp by NaN": lambda x: x.clamp(max=math.nan),
    "clamp crossed": lambda x: x.clamp(1, -1),
    "power of 0": lambda x: torch.pow(0.0, x),
    "power of -2": lambda x: torch.pow(-2.0, x),
    "xlogy of 0": lambda x: torch.xlogy(0.0, x),
    "xlogy by infinity": lambda x: torch.xlogy(x, math.inf),
    "bce": lambda x: F.binary_cross_entropy(
        x.nan_to_num(0.5).clamp(0, 1), torch.full_like(x, 0.3), reduction="none"
    ),
}
OF_TWO = {
    **{
        name: getattr(torch, name)
        for name in (
            *("add", "mul", "div", "copysign", "fmax", "fmin", "logaddexp", "maximum"),
            *("minimum", "pow", "xlogy"),
        )
    },
    "xlog1py": torch.special.xlog1py,
    "remainder": torch.remainder,
    "hypot": torch.hypot,
    "quotient cut off": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "quotient rounded down": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=-2),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=3),
    "clamp above": lambda x, y: x.clamp(min=y),
    "clamp": lambda x, y: x.clamp(y - 1, y + 1),
    "clamp crossed": lambda x, y: x.clamp(y + 1, y - 1),
    "clamp mixed": lambda x, y: torch.clamp(x, y, y * 2),
    "mse": lambda x, y: F.mse_loss(x, y, reduction="none"),
    "smooth l1": lambda x, y: F.smooth_l1_loss(x, y, reduction="none", beta=0.5),
    "l1 without a bend": lambda x, y: F.smooth_l1_loss(x, y, reduction="none", beta=0.0),
    "huber": lambda x, y: F.huber_loss(x, y, reduction="none", delta=0.5),
    "bce with logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"),
    **{
        f"norm {order}": (lambda x, y, p=order: torch.linalg.vector_norm(torch.stack([x, y]), p, 0))
        for order in (0.5, 1, 1.5, 2, 3, -1, math.inf, -math.inf)
    },
    **{
        name: (lambda x, y, f=function: f(torch.stack([x, y], 1)))
        for name, function in {
            "amax": lambda t: t.amax(1),
            "amin": lambda t: t.amin(1),
            "max": lambda t: t.max(1).values,
            "max of all": lambda t: t.max(),
            "logsumexp": lambda t: t.logsumexp(1),
            "var": lambda t: t.var(1),
            "nansum": lambda t: t.nansum(1),
            "nanmean": lambda t: t.nanmean(1),
            "median": lambda t: t.median(1).values,
            "median of all": lambda t: t.median(),
            "cummax": lambda t: t.cummax(1).values,
            "distance by sizes": lambda t: torch.cdist(t[:, None], t[:, None].flip(-1), p=1.0),
            "adaptive max": lambda t: F.adaptive_max_pool1d(t[None], 1),
        }.items()
    },
}


def denormal(dtype: torch.dtype) -> float:
    return torch.tensor(1e-42 if dtype == torch.float32 else 1e-310, dtype=dtype).item()


def holds(size: float, *xs: torch.Tensor) -> torch.Tensor:
    return torch.stack([x.abs() == size for x in xs]).any(0)


def is_largest(*xs: torch.Tensor) -> torch.Tensor:
    return holds(torch.finfo(xs[0].dtype).max, *xs)


# Of NaN torch's vectors give NaN and what is left behind them the cotangent; likewise -0.0.
LEFT_OUT = {
    "adaptive max": lambda x, y: x.isnan() & y.isnan(),
    # The cotangent's product with a denormal is rounded, and so is a quotient by one.
    "hypot": lambda x, y: holds(denormal(x.dtype), x, y),
    # Overflows on the way, or an infinite fmod's quotient.
    "remainder": lambda x, y: (x / y).abs() > 1e6,
    # Squares and sums that only float64 holds, or not even that.
    **{name: is_largest for name in ("logsumexp", "norm 3", "var")},
    **{
        name: lambda x, y: is_largest(x, y) | holds(math.inf, x, y)
        for name in ("norm 0.5", "norm -1", "norm 1.5")
    },
}


def arguments(dtype: torch.dtype, count: int) -> list[torch.Tensor]:
    finfo = torch.finfo(dtype)
    sizes = [0.0, finfo.tiny, denormal(dtype), 0.3, 0.5, 1.0, 3.0, 20.0, 100.0, finfo.max, math.inf]
    x = torch.tensor([sign * size for size in sizes for sign in (1, -1)] + [math.nan], dtype=dtype)
    xs = [x] if count == 1 else [x.repeat_interleave(len(x)), x.repeat(len(x))]
    # Whole vectors: PyTorch has other slopes for what is left behind them.
    return [F.pad(each, (0, -len(each) % 64), value=0.5) for each in xs]


def same(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """A slope of 1e-9 is not zero, though its difference from 1 has few digits."""
    least, relative = torch.finfo(found.dtype).tiny, 1e-4 if found.dtype == torch.float32 else 1e-6
    return torch.allclose(found, expected, rtol=relative, atol=4 * least, equal_nan=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [1, 2])
def test_values_and_gradients_are_pytorchs(count, dtype, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    functions = OF_ONE if count == 1 else OF_TWO
    given = arguments(dtype, count)

    def all_of(xs):
        return [function(*each) for function, each in zip(functions.values(), xs, strict=True)]

    def run(call, factor):
        xs = [[x.clone().requires_grad_() for x in given] for _ in functions]
        results = call(xs)
        flat = [x for each in xs for x in each]
        found = torch.autograd.grad(results, flat, [torch.full_like(y, factor) for y in results])
        return [y.detach() for y in results], [found[i::count] for i in range(count)]

    compiled, failures = weft.compile(all_of), set()
    for factor in (1.0, 0.0, -0.3):
        (values, found), (wanted, expected) = run(compiled, factor), run(all_of, factor)
        for number, name in enumerate(functions):
            kept = ~LEFT_OUT.get(name, lambda x, *_: torch.zeros_like(x, dtype=torch.bool))(*given)
            pairs = [(found[i][number][kept], expected[i][number][kept]) for i in range(count)]
            if values[number].shape == kept.shape:
                pairs.append((values[number][kept], wanted[number][kept]))
            failures |= {(name, factor) for mine, theirs in pairs if not same(mine, theirs)}
    assert not failures
    assert not weft.stats(compiled)["breaks"]


@pytest.mark.parametrize("order", [1, 2, 2.5, math.inf])
def test_slices_that_renorm_leaves_have_their_own_slope(order, monkeypatch):
    """Those with NaN among them, and zeros."""
    monkeypatch.setattr(weft.config, "verify", "off")
    x = torch.tensor([[math.nan, 1, 3], [0, 0, 0], [1, 2, -3], [0.1, -0.2, 0]])

    def run(call):
        given = x.clone().requires_grad_()
        value = call(given)
        cotangent = torch.arange(1.0, 13).reshape(4, 3)
        return value.detach(), *torch.autograd.grad(value, given, cotangent)

    compiled = weft.compile(lambda x: x.renorm(order, 0, 1.5))
    expected = run(lambda x: x.renorm(order, 0, 1.5))
    for mine, theirs in zip(run(compiled), expected, strict=True):
        torch.testing.assert_close(mine, theirs, equal_nan=True)
    assert not weft.stats(compiled)["breaks"]


@pytest.mark.parametrize(
    "x", [[0.0, -0.0, 0.0, 1.0, -1.0], [3.0, 3.0, 1.0, 5.0, 5.0, 0.5], [math.nan, 1.0, math.nan]]
)
def test_equal_elements_share_the_slope_of_their_median(x, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled, found = weft.compile(torch.median), []
    for median in (compiled, torch.median):
        given = torch.tensor(x, requires_grad=True)
        found.append(torch.autograd.grad(median(given), given)[0])
    assert torch.equal(*found) and not weft.stats(compiled)["breaks"]


ORDINARY = [0.0, -0.0, 0.3, -0.3, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 20.0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("count", [1, 2])
def test_second_derivatives_are_pytorchs(count, monkeypatch):
    """Of arguments without extremes, but with the kinks and zeros at which a formula of parts has
    another slope; where PyTorch has one, and one that is finite."""
    monkeypatch.setattr(weft.config, "verify", "off")
    x = torch.tensor(ORDINARY, dtype=torch.float64)
    given = [x] if count == 1 else [x.repeat_interleave(len(x)), x.repeat(len(x))]
    # Of what is outside its domain, or at the ends of it.
    left_out = {"bce", "logit", "xlogy", "xlog1py"}
    functions = {
        name: function
        for name, function in (OF_ONE if count == 1 else OF_TWO).items()
        if name not in left_out and has_second(function, given)
    }
    assert len(functions) > (60 if count == 1 else 20)

    def all_of(xs):
        return [function(*each) for function, each in zip(functions.values(), xs, strict=True)]

    def run(call):
        xs = [[x.clone().requires_grad_() for x in given] for _ in functions]
        results, flat = call(xs), [x for each in xs for x in each]
        gradients = derivatives_of(results, flat, create_graph=True)
        return derivatives_of(gradients, flat)

    compiled = weft.compile(all_of)
    expected = run(all_of)
    for _ in range(4):
        found = run(compiled)
    for number, name in enumerate(functions):
        for place in range(count):
            mine, theirs = (each[number * count + place] for each in (found, expected))
            if mine is None or theirs is None:
                assert all(each is None or not each.any() for each in (mine, theirs)), name
                continue
            kept = theirs.isfinite()
            torch.testing.assert_close(
                mine[kept],
                theirs[kept],
                rtol=1e-7,
                atol=1e-7,
                msg=lambda m, n=name: f"{n}: {m}",
            )
    assert weft.stats(compiled)["hits"] and not weft.stats(compiled)["breaks"]


def derivatives_of(results, xs, create_graph=False):
    sloping = [y for y in results if y is not None and y.requires_grad]
    ones = [torch.ones_like(y) for y in sloping]
    return torch.autograd.grad(sloping, xs, ones, create_graph=create_graph, allow_unused=True)


def has_second(function, given) -> bool:
    xs = [x.clone().requires_grad_() for x in given]
    gradients = derivatives_of([function(*xs)], xs, create_graph=True)
    try:
        return any(x is not None for x in derivatives_of(gradients, xs))
    except RuntimeError:  # PyTorch has none, or a slope is constant
        return False


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_slope_beside_zero_does_not_cancel(dtype, monkeypatch):
    """Of 1e-8 the parts of sinc's slope are 1e8, and it is -3e-8."""
    monkeypatch.setattr(weft.config, "verify", "off")
    given = torch.tensor([1e-8, -1e-8, 3e-8, 1e-5, -1e-4, 1e-3, 0.1, 1e-25, 0.0], dtype=dtype)

    def run(function):
        x = given.clone().requires_grad_()
        (found,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
        return found.detach(), torch.autograd.grad(found.sum(), x)[0]

    (found, second), (expected, _) = run(weft.compile(lambda x: torch.sinc(x))), run(torch.sinc)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-7)
    assert (second.abs() < 8).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("eps", [1e-8, 1.5])
def test_norms_below_the_bound_of_a_cosine_have_a_slope(eps, dtype, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    for shapes, dim in [([(5, 3), (5, 3)], 1), ([(4, 2, 3), (1, 3)], -2), ([(4, 1), (4, 1)], 1)]:
        torch.manual_seed(0)
        given = [torch.randn(shape, dtype=dtype) for shape in shapes]
        given[0][0] = 0

        def cosine(x, y, dim=dim):
            return F.cosine_similarity(x, y, dim, eps)

        def run(function, given=given):
            xs = [x.clone().requires_grad_() for x in given]
            result = function(*xs)
            return [result.detach(), *torch.autograd.grad(result.cos().sum(), xs)]

        compiled = weft.compile(cosine)
        torch.testing.assert_close(run(compiled), run(cosine))
        assert not weft.stats(compiled)["breaks"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "function",
    [F.hardswish, F.softplus, lambda x: F.softplus(x, 2.0, 3.0)],
    ids=["hardswish", "softplus", "softplus of 2"],
)
def test_second_slopes_at_bounds(function, dtype):
    """Of functions in pieces: at the bounds between them, at infinities and NaN."""
    numbers = [0.0, -0.0, 3, -3, 2.5, -2.5, 1.5, 20, 21, -20, math.inf, -math.inf, math.nan, 1, -1]
    x = torch.tensor(numbers * 32, dtype=dtype, requires_grad=True)
    w = torch.linspace(-2, 2, len(x), dtype=dtype)
    found = []
    for each in (weft.compile(function), function):
        along = torch.ones_like(x, requires_grad=True)
        (slope,) = torch.autograd.grad(each(x), x, along, create_graph=True)
        found.append((slope.detach(), *torch.autograd.grad((slope * w).sum(), (x, along))))
    torch.testing.assert_close(*found, equal_nan=True)
