# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transforms of torch.func that a compiled call makes itself."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, jvp, vjp, vmap

import weft

pytestmark = pytest.mark.usefixtures("verified")


class Field(nn.Module):
    def __init__(self, program):
        super().__init__()
        self.wide, self.narrow = nn.Linear(4, 8), nn.Linear(8, 1)
        self.program = program

    def hidden(self, x):
        return torch.tanh(self.wide(x))

    def energy(self, x):
        return self.narrow(self.hidden(x)).sum()

    def forward(self, x):
        return self.program(self, x)


def forces(net, x):
    return -grad(net.energy)(x)


def of_each(net, x):
    return vmap(lambda row: net.hidden(row) * row.sum())(x)


def forces_of_each(net, x):
    return vmap(grad(net.energy))(x) + net.energy(x)


def values_and_slopes(net, x):
    slopes, values = vmap(grad_and_value(net.energy))(x)
    return slopes * values[:, None]


def jacobians(net, x):
    return vmap(jacrev(net.hidden))(x)


def gradients_of_gradients(net, x):
    return grad(lambda y: grad(net.energy)(y).square().sum())(x)


def of_parameters(net, x):
    def loss(parameters):
        return functional_call(net.wide, parameters, (x,)).square().mean()

    found = grad(loss)(dict(net.wide.named_parameters()))
    return net.hidden(x) - 0.1 * found["bias"]


def with_a_constant(net, x):
    """The user's detach stops the gradients further outside as well."""
    return grad(lambda y: (net.hidden(y) * net.hidden(y).detach()).sum())(x)


def with_constants_by_name(net, x):
    """By the op itself, as by `torch.ops.aten.detach`, which autograd calls as well."""

    def energy(y):
        by_packet = torch.ops.aten.detach(net.hidden(y))
        by_overload = torch.ops.aten.detach.default(net.hidden(y).sin())
        return (net.hidden(y) * by_packet + y.sum() * by_overload).sum()

    return grad(energy)(x)


def with_random_numbers(net, x):
    return vmap(lambda row: torch.dropout(net.hidden(row), 0.5, True), randomness="different")(x)


def pulled_back(net, x):
    y, pull = vjp(net.hidden, x)
    return y.sum() + pull(y)[0] + pull(torch.ones_like(y))[0]


def pulled_back_with_others(net, x):
    """Two functions at once, one with several results, a structure and what it gives besides."""
    y, pull, kept = vjp(
        lambda z, scale: ({"a": net.hidden(z), "b": z.sum() * scale}, z.cos()),
        x,
        net.wide.weight.mean(),
        has_aux=True,
    )
    z, other = vjp(torch.sin, kept)
    by_x, by_scale = pull({"a": y["a"].square(), "b": y["b"]})
    return by_x * by_scale + other(z.exp())[0]


def whole_jacobians(net, x):
    jacobian, kept = jacrev(lambda z: (net.hidden(z).sum(0), z.exp()), has_aux=True)(x)
    return jacobian.sum(0) * kept + jacrev(net.hidden, chunk_size=5)(x).sum((0, 1))


def pulled_back_through_random_numbers(net, x):
    """Drawn once, and the pullback has the same ones."""
    y, pull = vjp(lambda z: torch.dropout(net.hidden(z), 0.5, True), x)
    return y.sum() + pull(torch.ones_like(y))[0] + pull(y)[0]


def through_convolutions_and_norms(net, x):
    """Of which one is given a gradient for the input alone, and the other for its weight."""

    def energy(y, weight):
        kernel = net.narrow.weight.reshape(4, 1, 2)
        scale, mean, variance = kernel[:, 0, 0], *torch.ones(2, 4, dtype=y.dtype)
        wide = F.conv1d(y.reshape(1, 2, 6), kernel, scale, stride=2, padding=1, groups=2)
        wide = F.batch_norm(wide, None, None, scale, training=True)
        narrow = F.conv_transpose1d(wide, weight.reshape(4, 4, 2), None, 2, 1, 1, groups=2)
        narrow = F.batch_norm(narrow[:, :4], mean, variance, scale)
        return F.layer_norm(narrow, narrow.shape[-1:]).exp().mul(narrow).sum()

    of_x, of_weight = grad(energy, (0, 1))(x, net.wide.weight)
    return of_x * of_weight.sum()


def tangents(net, x):
    return jvp(net.hidden, (x,), (torch.ones_like(x),))[1]


def hessians(net, x):
    return vmap(hessian(net.energy))(x)


_TRAINED = [
    forces,
    of_each,
    forces_of_each,
    values_and_slopes,
    jacobians,
    gradients_of_gradients,
    of_parameters,
    with_a_constant,
    with_constants_by_name,
    with_random_numbers,
    pulled_back,
    pulled_back_with_others,
    whole_jacobians,
    pulled_back_through_random_numbers,
    tangents,
]


def pair(program):
    torch.manual_seed(0)
    net = Field(program).double()
    return net, copy.deepcopy(net)


def batches(count=4):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(3, 4, dtype=torch.float64, generator=generator) for _ in range(count)]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "program", [*_TRAINED, through_convolutions_and_norms], ids=lambda program: program.__name__
)
def test_their_results_have_gradients(program):
    net, twin = pair(program)
    fast = weft.compile(net)

    def results(run, module, x):
        torch.manual_seed(0)
        y = run(x)
        return y, torch.autograd.grad(y.square().sum(), [*module.parameters()], allow_unused=True)

    for x in batches():
        torch.testing.assert_close(results(fast, net, x), results(twin, twin, x))
    stats = weft.stats(fast)
    assert stats["hits"] >= 3 and not stats["breaks"], stats


def test_parameters_in_a_dict_outside():
    layer = nn.Linear(4, 3).double()
    parameters = dict(layer.named_parameters())

    def program(x):
        return vmap(lambda row: functional_call(layer, parameters, (row,)).tanh())(x)

    compiled = weft.compile(program)
    for x in batches():
        results = [
            (y, *torch.autograd.grad(y.square().sum(), [*layer.parameters()]))
            for y in (compiled(x), program(x))
        ]
        torch.testing.assert_close(*results)
    stats = weft.stats(compiled)
    assert stats["hits"] >= 3 and not stats["breaks"], stats


def test_writes_in_place_that_a_pullback_goes_through_have_gradients():
    """Of a vector a linear layer adds its bias in place, into a view."""

    def program(net, x):
        y, pull = vjp(net.hidden, x)
        return pull(y)[0]

    net, twin = pair(program)
    fast = weft.compile(net)
    for batch in batches():
        x = batch[0].requires_grad_()
        wanted = [x, *net.wide.parameters()]
        own = torch.autograd.grad(fast(x).square().sum(), wanted)
        eager = torch.autograd.grad(twin(x).square().sum(), [x, *twin.wide.parameters()])
        torch.testing.assert_close(own, eager)
    stats = weft.stats(fast)
    assert stats["hits"] >= 3 and not stats["breaks"], stats


@pytest.mark.sampled(6)
def test_a_second_transform_of_one_weight():
    """Tracing makes its constants again, by a no_grad of its own."""
    weight = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)

    def energy(y):
        return torch.tanh(y @ weight).sum()

    def program(x):
        return grad(energy)(x).square().sum() + jvp(energy, (x,), (2 * x,))[1]

    fast = weft.compile(program)
    for x in batches(3):
        found, expected = (
            torch.autograd.grad(each(x.requires_grad_()), (weight, x)) for each in (fast, program)
        )
        torch.testing.assert_close(found, expected)
    stats = weft.stats(fast)
    assert stats["hits"] == 2 and not stats["breaks"], stats


@pytest.mark.parametrize("program", [*_TRAINED, hessians], ids=lambda program: program.__name__)
def test_without_gradients(program):
    net, twin = pair(program)
    fast = weft.compile(net)
    with torch.no_grad():
        for x in batches():
            torch.manual_seed(0)
            found = fast(x)
            torch.manual_seed(0)
            torch.testing.assert_close(found, twin(x))
    stats = weft.stats(fast)
    assert stats["hits"] == 3 and not stats["breaks"], stats


@pytest.mark.parametrize(
    "cotangent",
    [lambda y: y[:1], lambda y: (y, y)],
    ids=["shape", "structure"],
)
def test_cotangents_that_pytorch_refuses(cotangent):
    def program(net, x):
        y, pull = vjp(net.hidden, x)
        return pull(cotangent(y))[0]

    net, twin = pair(program)
    fast = weft.compile(net)
    for x in batches(2):
        with pytest.raises(RuntimeError) as eager:
            twin(x)
        with pytest.raises(RuntimeError) as own:
            fast(x)
        assert str(own.value) == str(eager.value)


def half_kept_from_gradients(net, x):
    def energy(y):
        with torch.no_grad():
            kept = net.hidden(y)
        return (net.hidden(y) * kept).sum()

    return grad(energy)(x)


def test_what_a_transform_keeps_from_gradients_is_pytorchs(monkeypatch):
    """Not found out by a comparison, either."""
    monkeypatch.setattr(weft.config, "verify", "off")
    net, twin = pair(half_kept_from_gradients)
    fast = weft.compile(net)
    for x in batches(2):
        found, expected = fast(x), twin(x)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(
            *(
                torch.autograd.grad(y.square().sum(), module.wide.weight)
                for y, module in ((found, net), (expected, twin))
            )
        )
    assert "calls no_grad" in str(weft.stats(fast)["breaks"])
    with torch.no_grad():
        for x in batches(3):
            torch.testing.assert_close(fast(x), twin(x))
    assert weft.stats(fast)["hits"]


def pulled_back_with_gradients_alone(x):
    with torch.no_grad():
        _, pull = vjp(lambda z: z.sin() * z, x)
    return pull(x)[0]


def pulled_back_without_a_graph(x):
    _, pull = vjp(lambda z: z.sin() * z, x)
    return x + pull(x, create_graph=False)[0]


def pulled_back_once(x):
    _, pull = vjp(lambda z: z.sin() * z, x)
    return pull(x, retain_graph=False)[0] + pull(x)[0]


def pulled_back_through_what_is_written(x):
    y, pull = vjp(torch.exp, x)
    y.mul_(0)
    return pull(torch.ones_like(y))[0]


@pytest.mark.parametrize(
    "program",
    [
        pulled_back_with_gradients_alone,
        pulled_back_without_a_graph,
        pulled_back_once,
        pulled_back_through_what_is_written,
    ],
)
def test_pullbacks_that_are_pytorchs(monkeypatch, program):
    """Where its graph is not that of the forward, or is gone: with PyTorch's values and errors. Not
    found out by a comparison, either."""
    monkeypatch.setattr(weft.config, "verify", "off")

    def outcome(function, x):
        x = x.clone().requires_grad_()
        try:
            return torch.autograd.grad(function(x).sum(), x)[0]
        except RuntimeError as error:
            return str(error)

    fast = weft.compile(program)
    for _ in range(3):
        x = torch.randn(3, 4)
        own, eager = outcome(fast, x), outcome(program, x)
        assert type(own) is type(eager), (own, eager)
        if isinstance(own, str):
            assert own == eager
        else:
            torch.testing.assert_close(own, eager)


@pytest.mark.parametrize("function", [torch.relu, torch.nn.functional.logsigmoid])
def test_gradients_of_gradients_of_pullbacks(monkeypatch, function):
    """The derivatives of relu_backward are zeros that depend on nothing, and log_sigmoid_backward
    has an argument without any."""
    monkeypatch.setattr(weft.config, "verify", "off")

    def program(x):
        y, pull = vjp(function, x)
        return pull(y + x)[0] * x

    fast = weft.compile(program)
    for _ in range(3):
        x, w = torch.randn(2, 3, 4)
        x.requires_grad_()
        found = []
        for each in (fast, program):
            (slope,) = torch.autograd.grad((each(x) ** 2).sum(), x, create_graph=True)
            found.append((slope.detach(), *torch.autograd.grad((slope * w).sum(), x)))
        torch.testing.assert_close(*found)
    assert weft.stats(fast)["hits"] == 3


def test_numbers_that_a_layer_of_vmap_wraps():
    """A loss of one row converts a number, which is an argument of an op, not a tensor."""
    compiled, loss = (
        weft.compile(vmap(F.multilabel_soft_margin_loss)),
        F.multilabel_soft_margin_loss,
    )
    x, target = torch.linspace(-2, 2, 10).reshape(2, 5), torch.ones(2, 5)
    for _ in range(3):
        torch.testing.assert_close(compiled(x, target), vmap(loss)(x, target))
    assert weft.stats(compiled)["hits"] == 2 and not weft.stats(compiled)["breaks"]
