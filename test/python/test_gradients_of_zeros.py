# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which tensors get a gradient, if only of zeros: whatever autograd leads to, read or not. An
optimizer's decay and momentum move a parameter whose gradient is zeros, and leave one that has none
where it is."""

import copy

import pytest
import torch
import torch.nn.functional as F

import weft


def overwritten(m, x):
    y = m.p * 2
    y[:] = x * m.q
    return y


def overwritten_by_an_argument_alone(m, x):
    y = m.p * 2
    y[:] = x
    return y


def filled(m, x):
    y = m.p * 2
    y.fill_(1.0)
    return y + m.q * x


def written_through_a_view(m, x):
    y = m.p * 2
    y.t()[:] = x.t()
    return y + m.q


def view_of_what_is_zeroed(m, x):
    y = m.p * 2
    view = y[:2]
    y.zero_()
    return view + m.q[:2]


def padded_away(m, x):
    return F.pad(m.p * x, (-5, 5)) + m.q


def replaced_slice(m, x):
    return torch.slice_scatter(m.p * x, m.q * x, 0, 0, 4)


def times_nothing(m, x):
    return torch.addmm(m.p, x, m.q.t() @ m.q, beta=0)


def no_elements(m, x):
    return m.q * x + m.p[0:0].sum()


def no_elements_alone(m, x):
    return m.p[:0].sin().sum() + 1


def of_one_result(m, x):
    y = m.p * 2
    y[:] = x * m.q
    return y, m.q + x


def without_gradients(m, x):
    with torch.no_grad():
        y = m.p * 2
    return y * m.q + x


def detached(m, x):
    y = m.p.detach() * 2
    y[:] = x * m.q
    return y


def written_without_gradients(m, x):
    y = m.p * 2
    with torch.no_grad():
        y.zero_()
    return y * x + m.q


PROGRAMS = [
    overwritten,
    overwritten_by_an_argument_alone,
    filled,
    written_through_a_view,
    view_of_what_is_zeroed,
    padded_away,
    replaced_slice,
    times_nothing,
    no_elements,
    no_elements_alone,
    of_one_result,
    without_gradients,
    detached,
    written_without_gradients,
]


class Holder(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        self.p = torch.nn.Parameter(torch.randn(4, 5, generator=generator))
        self.q = torch.nn.Parameter(torch.randn(4, 5, generator=generator))
        self.function = function

    def forward(self, x):
        return self.function(self, x)


def trained(model, module, x, create_graph=False):
    """The gradients of `module`'s parameters and of x."""
    x = x.clone().requires_grad_()
    found = model(x)
    results = [r for r in (found if isinstance(found, tuple) else (found,)) if r.requires_grad]
    module.zero_grad()
    sum(result.square().sum() for result in results).backward(create_graph=create_graph)
    return [each.grad for each in (*module.parameters(), x)]


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")  # with create_graph
@pytest.mark.parametrize("compared", [True, False])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_none_is_none_and_zeros_are_zeros(function, compared, request):
    if compared:
        request.getfixturevalue("verified")
    eager = Holder(function)
    own = copy.deepcopy(eager)
    compiled = weft.compile(own)
    for seed in range(4):
        x = torch.randn(4, 5, generator=torch.Generator().manual_seed(seed))
        create = seed == 2
        expected, given = trained(eager, eager, x, create), trained(compiled, own, x, create)
        assert [each is None for each in given] == [each is None for each in expected]
        torch.testing.assert_close(given, expected, rtol=1e-5, atol=1e-5)
    assert weft.stats(compiled)["hits"] and not weft.stats(compiled)["breaks"]


def test_parameters_that_a_function_closes_over_get_zeros():
    p, q = (torch.nn.Parameter(torch.ones(4, 5)) for _ in range(2))

    def function(x):
        y = p * 2
        y[:] = x * q
        return y

    compiled = weft.compile(function)
    for _ in range(2):
        p.grad = q.grad = None
        compiled(torch.ones(4, 5)).sum().backward()
        assert p.grad is not None and not p.grad.count_nonzero()
    assert weft.stats(compiled)["hits"]


def test_what_has_two_names_is_one_input(verified):
    """A weight that is tied, and a parameter that is an argument as well."""
    tied = torch.nn.Sequential(torch.nn.Embedding(6, 4), torch.nn.Linear(4, 6, bias=False))
    tied[1].weight = tied[0].weight
    compiled = weft.compile(tied)
    layer = torch.nn.Linear(3, 3)
    called = weft.compile(lambda ps, x: torch.func.functional_call(layer, ps, (x,)))
    for _ in range(2):
        for function, module, x in (
            (compiled, tied, torch.arange(6)),
            (lambda x: called(dict(layer.named_parameters()), x), layer, torch.ones(2, 3)),
        ):
            found = torch.autograd.grad(function(x).square().sum(), list(module.parameters()))
            expected = torch.autograd.grad(module(x).square().sum(), list(module.parameters()))
            torch.testing.assert_close(found, expected)
    for each in (compiled, called):
        assert weft.stats(each)["hits"] and not weft.stats(each)["breaks"]
