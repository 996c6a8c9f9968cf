# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients where an op's parts overflow, vanish or meet at a point, as PyTorch's own formulas give
them. No call is compared by Weft itself: later batches hold what the first one did not."""

import copy

import pytest
import torch
import torch.nn.functional as F

import weft

ROWS = [
    [-25.0, -3.0, -1.0, -0.5, 0.0, 0.3, 0.7, 1.0, 1e10, -1e10, 1e38, 90.0, -90.0, 1e-40, 20.0],
    [2.0, 5.0, 25.0, -0.7, 0.5, -0.1, 0.9, 100.0, 0.0, 1.0, 2.0, -90.0, 1e-30, 1.0, 1e30],
]
OF_ONE = {
    name: getattr(torch, name)
    for name in (
        *("abs", "acosh", "asinh", "atan", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "log"),
        *("log10", "log1p", "log2", "reciprocal", "rsqrt", "sigmoid", "sinc", "sinh", "sqrt"),
        *("square", "tan", "tanh"),
    )
} | {
    name: getattr(F, name)
    for name in (
        *("celu", "elu", "gelu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu"),
        *("logsigmoid", "mish", "relu6", "selu", "silu", "softplus", "softsign", "tanhshrink"),
    )
}
OF_ONE |= {
    "entr": torch.special.entr,
    "logit": torch.logit,
    "logit_within": lambda x: torch.logit(x, 0.1),
    "logit_of_crossed_bounds": lambda x: torch.logit(x, 0.6),
    "inverse_square": lambda x: x**-2,
}
OF_TWO = {
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "logaddexp": torch.logaddexp,
    "maximum": torch.maximum,
    "power": lambda x, y: torch.pow(x.abs(), y),
    "quotient": torch.div,
    "xlogy": torch.xlogy,
    "xlog1py": torch.special.xlog1py,
    "kl_div": lambda x, y: F.kl_div(x, y, reduction="none"),
    "floor_quotient": lambda x, y: torch.div(x, y, rounding_mode="floor") + x,
    "remainder": lambda x, y: torch.remainder(x, y.clamp(min=0.3)),
    "clamp": lambda x, y: torch.clamp(x, y - 1, y + 1),
}
ROWWISE = {
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "norm": lambda x: x.norm(dim=-1),
}


@pytest.mark.parametrize("kind", ["one", "two", "rowwise"])
def test_gradients_are_pytorchs(kind, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    functions = {"one": OF_ONE, "two": OF_TWO, "rowwise": ROWWISE}[kind]

    def all_of(xs):
        given = [(x, x.flip(0)) if kind == "two" else (x,) for x in xs]
        return [f(*each) for f, each in zip(functions.values(), given)]

    def gradients(call, factor):
        xs = [torch.tensor(ROWS).requires_grad_() for _ in functions]
        results = call(xs)
        return torch.autograd.grad(results, xs, [torch.full_like(y, factor) for y in results])

    compiled = weft.compile(all_of)
    for factor in (1.0, 0.0, -0.3):
        found, expected = gradients(compiled, factor), gradients(all_of, factor)
        for name, mine, theirs in zip(functions, found, expected):
            torch.testing.assert_close(
                mine,
                theirs,
                rtol=3e-5,
                atol=1e-6,
                equal_nan=True,
                msg=lambda m, n=name: f"{n}: {m}",
            )
    assert not weft.stats(compiled)["breaks"]


NAN = float("nan")


def products(*rows):
    x = torch.stack(rows)
    each = [f(row) for row in rows for f in (torch.prod, lambda x: x.cumprod(0))]
    return torch.cat([y.flatten() for y in (*each, x.prod(), x.prod(1), x.cumprod(1))])


CASES = {
    "xlogy": (torch.xlogy, [[0.0, 0.0, 0.0, 2.0, 0.0], [0.0, -2.0, NAN, NAN, 0.5]]),
    "xlog1py": (torch.special.xlog1py, [[0.0, 0.0, 0.0, 2.0, 0.0], [-1.0, -2.0, NAN, 1.0, 0.5]]),
    "clamp": (lambda x: x.clamp(-1, 1), [[NAN, -1.0, 1.0, 2.0, 0.0]]),
    "crossed": (torch.clamp, [[0.0, 1.0, 3.0, NAN], [2.0, 2.0, 2.0, 0.0], [2.0, 1.0, 2.0, 1.0]]),
    "remainder": (torch.remainder, [[-90.0, 7.0, -7.5, 6.0], [0.3, -2.0, 2.0, 3.0]]),
    "logit": (torch.logit, [[0.0, 1.0, -0.5, 1.5, NAN, 0.25]]),
    "entr": (torch.special.entr, [[0.0, 1.0, -0.5, 0.3]]),
    **{
        f"norm_{order}": (lambda x, p=order: torch.linalg.vector_norm(x, p), [[0.0] * 4])
        for order in (0.5, 1.5, 3, -1)
    },
    "clamp_by_nan": (
        lambda x: torch.cat([x.clamp(NAN, 1), x.clamp(1, NAN)]),
        [[NAN, 0.0, 1.0, 2.0]],
    ),
    "products": (products, [[0.0, NAN, 2.0], [0.0, 0.0, NAN], [NAN, 0.0, 1.0]]),
    "products_without_zeros": (products, [[1.0, NAN, 2.0], [torch.inf, 3.0, 2.0]]),
    "products_beside_zeros": (products, [[1.0, torch.inf, 2.0], [0.0, -torch.inf, 2.0], [3.0] * 3]),
    "safe_softmax": (
        lambda *rows: torch.ops.aten._safe_softmax(torch.stack(rows), 1),
        [[-torch.inf] * 3, [1.0, -torch.inf, 2.0]],
    ),
    "norm_with_zeros": (lambda x: torch.linalg.vector_norm(x, 0.5), [[0.0, 2.0, 0.0, -3.0]]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_gradients_at_single_points(name, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    function, values = CASES[name]

    def gradients(call, factor):
        xs = [torch.tensor(row).requires_grad_() for row in values]
        result = call(*xs)
        return torch.autograd.grad(result, xs, torch.full_like(result, factor))

    compiled = weft.compile(function)
    if name == "clamp_by_nan":  # as PyTorch differentiates the graph's meaning
        xs = [torch.tensor(row).requires_grad_() for row in values]
        found, expected = (
            torch.autograd.grad(call(*xs).sum(), xs, create_graph=True)
            for call in (compiled, function)
        )
        torch.testing.assert_close(found, expected)
    for factor in (1.0, 0.0, -0.3):
        for mine, theirs in zip(gradients(compiled, factor), gradients(function, factor)):
            torch.testing.assert_close(mine, theirs, equal_nan=True)
    assert weft.stats(compiled)["hits"] and not weft.stats(compiled)["breaks"]


OF_EXTREMES = {
    "amax": lambda x: x.amax(1),
    "max_of_all": lambda x: x.max(),
    "infinite_norm": lambda x: torch.linalg.vector_norm(x, torch.inf, 1),
    "median": lambda x: x.median(1).values,
    "median_of_all": lambda x: x.median(),
}


@pytest.mark.parametrize("name", OF_EXTREMES)
def test_extremes_of_rows_with_nan(name, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    function = OF_EXTREMES[name]
    x = torch.tensor([[1.0, 3.0, 3.0], [NAN, 2.0, 1.0], [0.0, NAN, 4.0], [5.0, 5.0, 4.0]])
    x.requires_grad_()
    compiled = weft.compile(function)
    for factor in (1.0, 0.0, -0.3):
        found, expected = (
            torch.autograd.grad(result, x, torch.full_like(result, factor))[0]
            for result in (compiled(x), function(x))
        )
        torch.testing.assert_close(found, expected, equal_nan=True)
    assert weft.stats(compiled)["hits"]


@pytest.mark.parametrize("size", [1, 3, 4])
def test_of_equal_ones_in_a_window_the_first_has_the_slope(size, monkeypatch):
    """Images that a relu has made zero."""
    monkeypatch.setattr(weft.config, "verify", "off")
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 8).round().clamp(max=1).relu().requires_grad_()
    weights = torch.randn(2, 3, size, size)
    compiled = weft.compile(lambda x: F.adaptive_max_pool2d(x, size))
    for _ in range(2):
        found, expected = (
            torch.autograd.grad(call(x), x, weights)[0]
            for call in (compiled, lambda x: F.adaptive_max_pool2d(x, size))
        )
        assert torch.equal(found, expected)


def test_no_gradient_comes_from_running_statistics(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(4)

        def forward(self, x):
            norm = self.norm
            return norm(x).sin() * norm.running_var - norm.running_mean * x

    model = Model().double()
    twin, compiled = copy.deepcopy(model), weft.compile(model)
    for _ in range(3):
        x = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
        gradients = [torch.autograd.grad(each(x).sum(), x)[0] for each in (compiled, twin)]
        torch.testing.assert_close(*gradients)


def test_distances_of_a_row_to_itself_have_the_slope_zero(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(lambda x: torch.cdist(x, x))
    for rows in (3, 30):
        x = torch.randn(rows, 5, dtype=torch.float64, requires_grad=True)
        gradients = [
            torch.autograd.grad(each(x, x) if each is torch.cdist else each(x), x,
                                torch.ones(rows, rows, dtype=torch.float64))[0]
            for each in (compiled, torch.cdist)
        ]  # fmt: skip
        torch.testing.assert_close(*gradients)


def test_of_windows_with_nan_the_last_one_has_the_slope(monkeypatch):
    """And the value is NaN; of others the first of equal ones has it."""
    monkeypatch.setattr(weft.config, "verify", "off")
    x = torch.tensor([[NAN, 1.0, NAN, 2.0], [0.0, NAN, 3.0, 3.0], [5.0, 5.0, 3.0, NAN]])
    x = x.repeat(2, 3, 2, 2).requires_grad_()
    for kernel, stride in ((2, 2), (3, 1), ((2, 4), (2, 4))):

        def pooled(x, kernel=kernel, stride=stride):
            return F.max_pool2d(x, kernel, stride)

        compiled = weft.compile(pooled)
        weights = torch.randn_like(pooled(x))
        for _ in range(2):
            found, expected = (
                torch.autograd.grad(call(x), x, weights)[0] for call in (compiled, pooled)
            )
            torch.testing.assert_close(found, expected)


@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
def test_variances_along_no_dims_divide_by_zero(monkeypatch):
    """PyTorch's derivatives count one element, less the correction."""
    monkeypatch.setattr(weft.config, "verify", "off")

    def spread(x):
        return x.std(()), x.var((), keepdim=True), x.std()

    gradients = []
    for function in (spread, weft.compile(spread)):
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        one, other, whole = (each.sum() for each in function(x))
        gradients.append([
            *torch.autograd.grad(one, x, retain_graph=True),
            *torch.autograd.grad(other, x, retain_graph=True),
            *torch.autograd.grad(whole, x),
        ])  # fmt: skip
    torch.testing.assert_close(*gradients)
    assert gradients[0][0].isinf().all()
