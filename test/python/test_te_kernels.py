# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""te kernels on tensors: gradients against PyTorch's, and calls inside compiled programs."""

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import weft
from weft import te


@te.kernel
def product(x, y):
    r = te.reduce_axis((0, x.shape[1]), "r")
    shape = (x.shape[0], y.shape[1])
    return te.compute(shape, lambda i, j: te.sum(x[i, r] * y[r, j], axis=r), "product")


@te.kernel
def softmax(x):
    m, n = x.shape
    a, b = te.reduce_axis((0, n), "a"), te.reduce_axis((0, n), "b")
    most = te.compute((m,), lambda i: te.max(x[i, a], axis=a), "most")
    e = te.compute((m, n), lambda i, j: te.exp(x[i, j] - most[i]), "e")
    total = te.compute((m,), lambda i: te.sum(e[i, b], axis=b), "total")
    return te.compute((m, n), lambda i, j: e[i, j] / total[i], "soft")


@te.kernel
def stencil(x, weight):
    (n,), (k,) = x.shape, weight.shape
    d = te.reduce_axis((0, k), "d")

    def padded(i):
        at = i + d - k // 2
        return te.if_then_else(te.all(at >= 0, at < n), x[at], 0.0)

    return te.compute((n,), lambda i: te.sum(padded(i) * weight[d], axis=d), "stencil")


@te.kernel
def strided(x):
    return te.compute((x.shape[0] // 2,), lambda i: te.tanh(x[2 * i]) * x[2 * i + 1], "strided")


@te.kernel
def taken(table, rows):
    return te.compute((rows.shape[0], table.shape[1]), lambda i, j: table[rows[i], j] ** 2, "taken")


@te.kernel
def mixed(x, y, scale):
    return te.compute(
        x.shape,
        lambda i, j: (te.maximum(x[i, j], y[j]) * scale, te.sqrt(te.abs(x[i, j]) + 1) / (y[j] + 9)),
        "mixed",
    )


@te.kernel
def filled(x):
    """A branch without derivative, whose dtype is not that of the other one."""
    fill = te.const(-1.0, "float32")
    return te.compute(x.shape, lambda i: te.if_then_else(x[i] > 0, x[i] * 3, fill), "filled")


def eager_stencil(x, weight):
    return torch.nn.functional.conv1d(x[None, None], weight[None, None], padding="same")[0, 0]


ROWS = torch.tensor([3, 0, 3, 2])
CASES = {
    "product": (product, torch.mm, [(7, 9), (9, 5)]),
    "softmax": (softmax, lambda x: torch.softmax(x, -1), [(5, 12)]),
    "stencil": (stencil, eager_stencil, [(20,), (5,)]),
    "strided": (strided, lambda x: torch.tanh(x[::2]) * x[1::2], [(16,)]),
    "filled": (filled, lambda x: torch.where(x > 0, x * 3, -1), [(11,)]),
    "taken": (lambda t: taken(t, ROWS), lambda t: t[ROWS] ** 2, [(6, 4)]),
    "mixed": (
        lambda x, y: mixed(x, y, 3)[0] + mixed(x, y, 3)[1],
        lambda x, y: torch.maximum(x, y) * 3 + (x.abs() + 1).sqrt() / (y + 9),
        [(4, 6), (6,)],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_are_pytorchs(name, dtype):
    ours, eager, shapes = CASES[name]
    torch.manual_seed(0)
    given = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    bound = 1e-5 if dtype == torch.float32 else 1e-12
    found, expected = ours(*given), eager(*given)
    torch.testing.assert_close(found, expected, rtol=bound, atol=bound)
    seed = torch.randn_like(expected)
    for mine, right in zip(
        torch.autograd.grad(found, given, seed), torch.autograd.grad(expected, given, seed)
    ):
        torch.testing.assert_close(mine, right, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", ["product", "strided", "taken"])
def test_gradients_of_gradients(name):
    ours, _, shapes = CASES[name]
    torch.manual_seed(0)
    given = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(ours, given)
    assert torch.autograd.gradgradcheck(ours, given)


@pytest.mark.parametrize("name", ["strided", "taken", "mixed"])
def test_transforms_of_torch_func(name):
    """Those by which PyTorch's own ops would be transformed, and differentiating forward."""
    ours, theirs, shapes = CASES[name]
    torch.manual_seed(0)
    given = tuple(torch.randn(shape, dtype=torch.float64) for shape in shapes)
    moved = tuple(torch.randn_like(each) for each in given)
    batches = tuple(torch.stack([each, each + 1, each * 2], 1) for each in given)
    last = len(given) - 1

    def forward(function):
        with forward_ad.dual_level():
            made = [forward_ad.make_dual(*each) for each in zip(given, moved)]
            return forward_ad.unpack_dual(function(*made)).tangent

    for transformed in (
        lambda f: torch.func.jvp(f, given, moved)[1],
        lambda f: torch.func.vjp(f, *given)[1](f(*given)),
        lambda f: torch.func.vmap(f, in_dims=1, out_dims=1)(*batches),
        lambda f: torch.func.vmap(torch.func.grad(lambda *a: f(*a).sum(), last), 1)(*batches),
        lambda f: torch.func.jvp(
            torch.func.grad(lambda *a: f(*a).square().sum(), last), given, moved
        )[1],
        forward,
    ):
        torch.testing.assert_close(transformed(ours), transformed(theirs))


def test_transforms_of_several_results_and_of_none():
    x, y = torch.randn(3, 4, 6), torch.randn(6)
    found = torch.vmap(mixed, in_dims=(0, None, None))(x, y, 3)
    for each, alone in zip(found, zip(*(mixed(one, y, 3) for one in x))):
        assert torch.equal(each, torch.stack(alone))
    empty = torch.vmap(mixed, in_dims=(0, None, None))(x[:0], y, 3)
    assert [each.shape for each in empty] == [(0, 4, 6)] * 2
    table = torch.randn(6, 4)
    rows = torch.func.jvp(lambda table: taken(table, ROWS), (table,), (torch.ones(6, 4),))[1]
    torch.testing.assert_close(rows, 2 * table[ROWS])


def test_a_module_with_a_kernel_trains():
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(9, 5))
    x, target = torch.randn(7, 9), torch.randn(7, 5)
    optimizer = torch.optim.SGD([weight], 0.05)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = (product(x, weight) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_ties_share_a_maximums_gradient():
    @te.kernel
    def most(x):
        r = te.reduce_axis((0, x.shape[0]), "r")
        return te.compute((), lambda: te.max(x[r], axis=r), "most")

    x = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
    most(x).backward()
    assert x.grad.tolist() == [0, 0.5, 0.5]


def test_a_compiled_program_calls_it(capsys):
    def program(x, y):
        return torch.relu(product(x + 1, y)) * 2

    compiled = weft.compile(program)
    x, y = torch.randn(7, 9), torch.randn(9, 5)
    for _ in range(3):
        torch.testing.assert_close(compiled(x, y), torch.relu((x + 1) @ y) * 2)
    weft.report(compiled)
    assert "weft_te.product" in capsys.readouterr().out.replace("::", ".")


def test_equal_formulas_share_an_op_and_its_schedule_is_kept():
    x, y = torch.randn(7, 9), torch.randn(9, 5)
    assert product.op(x, y) is product.op(torch.zeros(7, 9), y)
    assert product.op(x, y) is not product.op(x.double(), y.double())

    @te.kernel
    def scheduled(x):
        z = te.compute(x.shape, lambda i, j: x[i, j] + 1, "z")
        s = te.create_schedule(z)
        s[z].vectorize(z.op.axis[1])
        return s

    assert torch.equal(scheduled(x), x + 1)
    assert scheduled.op(x).schedule.save() == "vectorize z j\n"


def test_products_have_derivatives_where_they_are_zero():
    @te.kernel
    def all_of(x):
        r, q = te.reduce_axis((1, x.shape[1]), "r"), te.reduce_axis((0, x.shape[2]), "q")
        return te.compute((x.shape[0],), lambda i: te.prod(x[i, r, q] + 0.5, axis=[r, q]), "all")

    x = torch.randn(4, 3, 3, dtype=torch.float64)
    x[1, 1, 1], x[2, 1, 0], x[2, 2, 2] = -0.5, -0.5, -0.5
    x.requires_grad_()
    all_of(x).square().sum().backward()
    found, x.grad = x.grad, None
    (x[:, 1:] + 0.5).flatten(1).prod(1).square().sum().backward()
    torch.testing.assert_close(found, x.grad)
    assert torch.autograd.gradgradcheck(all_of, x[:2].detach().requires_grad_())


def test_arrays_of_others_are_not_taken_for_constants():
    given = np.ones((4, 3), np.float32)
    for args in [(given, torch.ones(3, 2)), (torch.ones(4, 3), [given])]:
        with pytest.raises(te.TEError, match="expected tensors of PyTorch and hashable values"):
            product(*args)


class Trained(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(5, 7))
        self.scale = torch.nn.Parameter(torch.randn(7))

    def forward(self, x):
        y = torch.relu(product(x + 1, self.weight))
        a, b = mixed(y, self.scale, 3)
        return (a * 2 + b).sum() + product(x, x.t().contiguous()).mean()


def eagerly(model, x):
    y = torch.relu((x + 1) @ model.weight)
    a, b = torch.maximum(y, model.scale) * 3, (y.abs() + 1).sqrt() / (model.scale + 9)
    return (a * 2 + b).sum() + (x @ x.t()).mean()


@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
def test_programs_train_through_kernels():
    torch.manual_seed(0)
    model = Trained()
    compiled = weft.compile(model)
    for _ in range(3):
        x = torch.randn(3, 5, requires_grad=True)
        wanted = [x, model.weight, model.scale]
        found = torch.autograd.grad(compiled(x), wanted)
        expected = torch.autograd.grad(eagerly(model, x), wanted)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@te.kernel
def gated(x):
    return te.compute(x.shape, lambda i: te.sigmoid(x[i] * x[i] * x[i]), "gated")


@te.kernel
def raised(x, y):
    return te.compute(x.shape, lambda i: te.power(te.abs(x[i]), y[i]), "raised")


def test_gradients_where_functions_are_flat_or_infinite():
    x = torch.linspace(-12, 12, 49, requires_grad=True)
    (found,) = torch.autograd.grad(gated(x).sum(), x)
    (expected,) = torch.autograd.grad(torch.sigmoid(x**3).sum(), x)
    assert found.isfinite().all()
    torch.testing.assert_close(found, expected)
    base = torch.tensor([0.0, 0.0, 0.0, 2.0, -2.0, 3.0], requires_grad=True)
    power = torch.tensor([0.0, 2.0, 1.0, 0.0, 3.0, -1.0], requires_grad=True)
    found = torch.autograd.grad(raised(base, power).sum(), (base, power))
    expected = torch.autograd.grad((base.abs() ** power).sum(), (base, power))
    torch.testing.assert_close(found, expected)
