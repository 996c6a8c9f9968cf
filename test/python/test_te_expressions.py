# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor expressions: values against PyTorch, dtypes, formulas, and errors in the user's words."""

import itertools
import math
import re

import numpy as np
import pytest
import torch

import weft
from weft import te
from weft.te import dtypes

TORCH = {name: getattr(torch, name) for name in dtypes.NAMES}


def run(output, *pairs):
    """The output's values, for (placeholder, tensor) pairs."""
    tensors = [each for each, _ in pairs]
    return te.build(te.create_schedule(output), [*tensors, output])(*(t for _, t in pairs))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("a, b", list(itertools.product(dtypes.NAMES, repeat=2)))
def test_dtypes_are_promoted_as_in_pytorch(a, b):
    assert TORCH[dtypes.promoted(a, b)] == torch.promote_types(TORCH[a], TORCH[b])


@pytest.mark.parametrize("dtype", dtypes.NAMES)
@pytest.mark.parametrize("number", [True, 2, 2.5])
def test_numbers_promote_as_in_pytorch(dtype, number):
    x = te.placeholder((2,), dtype, "x")
    expected = torch.zeros(2, dtype=TORCH[dtype])
    assert TORCH[(x[0] * number).dtype] == (expected * number).dtype
    assert TORCH[(x[0] / 2).dtype] == (expected / 2).dtype
    assert TORCH[(x[0] < number).dtype] == torch.bool


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("size", [1, 21])
def test_elementary_functions(dtype, size):
    x = te.placeholder((size,), dtype, "x")
    values = torch.linspace(0.05, 0.95, size).to(TORCH[dtype])
    bound = {"float32": 1e-6, "float64": 1e-13, "bfloat16": 8e-3, "float16": 1e-3}[dtype]
    for name in "exp log sqrt rsqrt tanh sin cos erf asin atanh expm1 log1p floor round".split():
        y = te.compute((size,), lambda i, name=name: getattr(te, name)(x[i]), "y")
        expected = getattr(torch, name)(values)
        torch.testing.assert_close(run(y, (x, values)), expected, rtol=bound, atol=bound)


def test_ranges_that_depend_on_axes():
    x = te.placeholder((7, 9), name="x")
    values = torch.randn(7, 9)

    def before(i, j):
        return te.sum(x[i, r := te.reduce_axis((0, j + 1), "r")], axis=r)

    sums = te.compute((7, 9), before, "sums")
    torch.testing.assert_close(run(sums, (x, values)), values.cumsum(1))
    s = te.create_schedule(sums)
    i, j = sums.op.axis
    outer, inner = s[sums].split(sums.op.reduce_axis[0], 4)
    s[sums].reorder(outer, i, inner, j)
    s[sums].vectorize(j)
    scheduled = te.build(s, [x, sums], default=False)
    torch.testing.assert_close(scheduled(values), values.cumsum(1))

    def behind(i):
        r = te.reduce_axis((i, 9), "r")
        return te.max(x[i, r], axis=r, where=r != 8)

    most = te.compute((7,), behind, "most")
    expected = torch.stack([values[i, i:8].max() for i in range(7)])
    torch.testing.assert_close(run(most, (x, values)), expected)

    def first(i):
        r = te.reduce_axis((0, i + 2), "r")
        return argmax((r, x[i, r]), axis=r)

    argmax = te.comm_reducer(
        lambda a, b: (te.where(a[1] >= b[1], a[0], b[0]), te.where(a[1] >= b[1], a[1], b[1])),
        lambda index, value: (te.const(-1, index), te.min_value(value)),
    )
    where, _ = te.compute((7,), first, "first")
    expected = torch.stack([values[i, : i + 2].argmax() for i in range(7)])
    torch.testing.assert_close(run(where, (x, values)), expected)
    none = te.compute((3,), lambda i: te.sum(x[0, 0], te.reduce_axis((5, i), "r")), "none")
    assert not run(none, (x, values)).any()
    with pytest.raises(te.TEError, match="r: expected a range of known length, found one from `0`"):
        te.compute((3,), lambda i: te.sum(x[0, 0], te.reduce_axis((0, i * i), "r")), "y")
    leaked = te.reduce_axis((0, sums.op.axis[0] + 1), "r")
    with pytest.raises(te.TEError, match="the axis i belongs to another tensor"):
        te.compute((3,), lambda j: te.sum(x[0, leaked], leaked), "y")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("size", [1, 21])
def test_sigmoid_is_pytorchs(dtype, size):
    x = te.placeholder((size,), dtype, "x")
    values = torch.linspace(-200, 200, size).to(TORCH[dtype]) if size > 1 else torch.zeros(1)
    y = te.compute((size,), lambda i: te.sigmoid(x[i]), "y")
    values = values.to(TORCH[dtype])
    torch.testing.assert_close(run(y, (x, values)), torch.sigmoid(values))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int8", "uint8"])
def test_arithmetic_has_pytorchs_values(dtype):
    torch.manual_seed(0)
    a, b = te.placeholder((50,), dtype, "a"), te.placeholder((50,), dtype, "b")
    if dtype.startswith("f"):
        x, y = torch.randn(50).to(TORCH[dtype]) * 5, torch.randn(50).to(TORCH[dtype]) * 3
    else:
        low = 0 if dtype == "uint8" else -40
        x, y = (torch.randint(low, 50, (50,)).to(TORCH[dtype]) for _ in range(2))
        y[y == 0] = 7
    operations = {
        "add": lambda p, q: p + q,
        "sub": lambda p, q: p - q,
        "mul": lambda p, q: p * q,
        "div": lambda p, q: p / q,
        "floordiv": lambda p, q: p // q,
        "mod": lambda p, q: p % q,
        "neg": lambda p, q: -p,
        "mixed": lambda p, q: 2.5 - p * 3,
        "less": lambda p, q: p < q,
        "square": lambda p, q: p**2,
        "cube": lambda p, q: q**3,
        "one": lambda p, q: q**0 + p,
    }
    for name, operation in operations.items():
        z = te.compute((50,), lambda i, op=operation: op(a[i], b[i]), name)
        torch.testing.assert_close(run(z, (a, x), (b, y)), operation(x, y), msg=name)


def test_integer_division_by_zero_gives_zero_as_in_numpy():
    a = te.placeholder((3,), "int32", "a")
    z = te.compute((3,), lambda i: 7 // a[i] + (-(2**31)) // a[i] * 0 + 5 % a[i], "z")
    given = np.array([0, -1, 2], np.int32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(z, (a, given)), 7 // given + 5 % given)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats_become_integers_as_in_pytorch(dtype):
    """What they do not hold, too."""
    numbers = [0.0, -1.5, 255.7, -300.0, 7e4, 3e9, -4e9, 1e10, 1e20, -1e20]
    values = torch.tensor([*numbers, math.nan, math.inf, -math.inf]).to(getattr(torch, dtype))
    integers = ["uint8", "int8", "int16", "int32", "int64"]
    x = te.placeholder((len(values),), dtype, "x")
    nan, large = te.const(math.nan, dtype), te.const(3e4 if dtype == "float16" else 3e9, dtype)

    def body(i):
        converted = [te.cast(x[i], each) for each in integers]
        constants = [te.cast(each, to) for each in (nan, large) for to in ("int32", "int64")]
        return (*converted, te.cast(te.cast(x[i], "int32"), "int64"), *constants)

    results = te.compute(values.shape, body, "z")
    torch_types = [getattr(torch, each) for each in integers]
    constants = torch.tensor([math.nan, large.value], dtype=values.dtype)
    expected = [values.to(each) for each in torch_types] + [values.int().long()]
    for each in constants:
        expected += [each.to(to).expand(len(values)) for to in (torch.int32, torch.int64)]
    for default in (True, False):
        found = te.build(te.create_schedule(list(results)), [x, *results], default=default)(values)
        assert all(map(torch.equal, found, expected))


def test_numbers_that_a_dtype_does_not_hold():
    """They wrap around where PyTorch's do; where it raises they are refused."""
    x = te.placeholder((4,), "uint8", "x")
    z = te.compute((4,), lambda i: (x[i] + 300) * -1, "z")
    values = torch.arange(4, dtype=torch.uint8)
    assert torch.equal(te.build(z, [x, z])(values), (values + 300) * -1)
    for make in (
        lambda: te.max(x[0], -1),
        lambda: te.if_then_else(x[0] > 1, 256, x[0]),
        lambda: te.const(300, "uint8"),
        lambda: te.const(math.nan, "uint8"),
    ):
        with pytest.raises(te.TEError, match="expected a number from 0 to 255 for uint8, found"):
            make()
    with pytest.raises(te.TEError, match="for int64, found 1180591620717411303424"):
        te.cast(x[0], "float32") + 2**70


def test_sums_of_halves_are_added_in_float32():
    x = te.placeholder((4, 3000), "bfloat16", "x")
    r = te.reduce_axis((0, 3000), "r")
    z = te.compute((4,), lambda i: te.sum(x[i, r], axis=r), "z")
    values = torch.ones(4, 3000, dtype=torch.bfloat16)
    for default in (True, False):
        f = te.build(te.create_schedule(z), [x, z], default=default)
        torch.testing.assert_close(f(values), torch.full((4,), 3000.0).bfloat16())
    s = te.create_schedule(z)
    s[z].reorder(s[z].op.reduce_axis[0], z.op.axis[0])
    torch.testing.assert_close(te.build(s, [x, z])(values), f(values))


def test_gathers_pads_and_several_outputs():
    table = te.placeholder((10, 20), name="table")
    rows = te.placeholder((7,), "int64", "rows")
    taken = te.compute((7, 20), lambda i, j: table[rows[i], j], "taken")
    values, numbers = torch.randn(10, 20), torch.randint(0, 10, (7,))
    assert torch.equal(run(taken, (table, values), (rows, numbers)), values[numbers])

    padded = te.compute(
        (12, 22),
        lambda i, j: te.if_then_else(
            te.all(i > 0, i < 11, j > 0, j < 21), table[i - 1, j - 1], 0.0
        ),
        "padded",
    )
    expected = torch.nn.functional.pad(values, (1, 1, 1, 1))
    assert torch.equal(run(padded, (table, values)), expected)

    both = te.compute((10, 20), lambda i, j: (table[i, j] * 2, table[i, j] + i), "both")
    f = te.build(te.create_schedule(list(both)), [table, *both], name="both")
    twice, more = f(values)
    assert torch.equal(twice, values * 2)
    assert torch.equal(more, values + torch.arange(10)[:, None])

    first = te.compute((10, 20), lambda i, j: table[i, j] * 2, "first")
    second = te.compute((10, 20), lambda i, j: first[i, j] + 1, "second")
    f = te.build(te.create_schedule(second), [table, second, first])
    more, twice = f(values)  # one computed from the other
    assert torch.equal(twice, values * 2) and torch.equal(more, twice + 1)


def test_a_gather_beyond_the_tensor_is_an_error():
    table, rows = te.placeholder((4,), name="table"), te.placeholder((2,), "int64", "rows")
    taken = te.compute((2,), lambda i: table[rows[i]], "taken")
    f = te.build(te.create_schedule(taken), [table, rows, taken])
    out = torch.empty(2)
    for wrong in (4, -1, 10**12, -(10**12)):
        with pytest.raises(
            weft.errors.AssertError,
            match=re.escape("taken: index rows[i] of table out of range: dim 0 has 4"),
        ):
            f(torch.arange(4.0), torch.tensor([1, wrong]), out)
    f(torch.arange(4.0), torch.tensor([3, 0]), out)
    assert out.tolist() == [3, 0]

    guarded = te.compute(
        (2,), lambda i: te.if_then_else(rows[i] >= 0, table[rows[i]], -1.0), "guarded"
    )
    assert run(guarded, (table, torch.arange(4.0)), (rows, torch.tensor([-9, 2]))).tolist() == [
        -1,
        2,
    ]

    # What depends on computed tensors is clamped.
    moved = te.compute((2,), lambda i: rows[i] * 2, "moved")
    s = te.create_schedule(te.compute((2,), lambda i: table[moved[i]], "far"))
    far = te.build(s, [table, rows, *s.outputs], default=False)
    assert far(torch.arange(4.0), torch.tensor([-9, 10**9])).tolist() == [0, 3]


def test_formulas():
    x, y = te.placeholder((4, 5), name="x"), te.placeholder((5,), "int64", "y")
    r = te.reduce_axis((0, 5), "r")
    z = te.compute((4,), lambda i: te.max((x[i, y[r]] - 1) * -(x[i, r] + 2.5), axis=r), "z")
    assert str(z) == (
        "z[i] = max((x[i, y[r]] - 1) * ((x[i, r] + 2.5) * -1), axis=r)  for i < 4, r < 5"
    )
    assert str(x) == "x: float32[4, 5]"


X = te.placeholder((4, 5), name="X")
R = te.reduce_axis((0, 5), "r")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: X[1] + 1, "X: expected 2 indices for the shape [4, 5], found 1"),
        (lambda: X[0, 5], "X: expected an index of dim 1 from 0 to 4, found 5"),
        (lambda: X[0, 1.5], "X: expected an integer index for dim 1, found `1.5` of float32"),
        (lambda: X + 1, "expected an element such as X[i], found the tensor X"),
        (lambda: X[0, :], "X: expected an index for dim 1, found a slice"),
        (lambda: te.placeholder((2.5,)), "expected sizes that are integers, found 2.5"),
        (lambda: te.placeholder((-1,)), "expected sizes of at least 0, found -1"),
        (lambda: te.placeholder((1,), "complex64"), "expected a dtype among bool"),
        (lambda: te.sum(X[0, 0], axis=3), "te.sum: expected axes made by te.reduce_axis, found 3"),
        (lambda: te.compute((4,), lambda i, j: i), "expected a function of 1 indices"),
        (lambda: te.compute((4,), 3), "expected a function of the indices, found 3"),
        (lambda: te.compute((4,), lambda i: X), "expected an element such as X[i]"),
        (lambda: te.compute((4,), lambda i: "x"), "expected an expression or a number, found 'x'"),
        (
            lambda: te.compute((4,), lambda i: te.sum(X[i, R], axis=R) + 1, "Z"),
            "Z: expected `sum(X[i, r], axis=r)` to be the whole body",
        ),
        (
            lambda: te.compute((4,), lambda i: X[i, R], "Z"),
            "Z: the axis r is not reduced over in `X[i, r]`",
        ),
        (
            lambda: te.compute((4,), lambda i: X[i, i + 2], "Z"),
            "Z: `X[i, i + 2]` reads from 2 to 5 in dim 1 of X, which has 5: read it inside "
            "te.if_then_else",
        ),
        (
            lambda: te.compute((4,), lambda i: 1 if X[i, 0] > 0 else 2),
            "the truth of `X[i, 0] > 0` is not known before the kernel runs",
        ),
        (lambda: te.create_schedule(X), "expected a computed tensor, found the placeholder X"),
        (
            lambda: te.cast(X[0, 0], "int32") ** te.cast(X[0, 1], "int32"),
            "expected an exponent from 0 to 63 in `int32(X[0, 0]) ** int32(X[0, 1])` of int32",
        ),
        (lambda: te.if_then_else(X[0, 0], 1, 2), "expected a condition, found `X[0, 0]`"),
    ],
)
def test_bad_expressions_are_refused(make, text):
    with pytest.raises(te.TEError, match=re.escape(text)):
        make()


def test_arguments_that_do_not_fit_the_schedule():
    z = te.compute((4, 5), lambda i, j: X[i, j] + 1, "z")
    s = te.create_schedule(z)
    with pytest.raises(te.TEError, match="expected X among the arguments: the kernel reads it"):
        te.build(s, [z])
    with pytest.raises(te.TEError, match="expected z among the arguments: it is computed"):
        te.build(s, [X])
    with pytest.raises(te.TEError, match="found X twice"):
        te.build(s, [X, X, z])
