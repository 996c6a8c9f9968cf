# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes of arguments, parameters and results between a forward and its backward: changed in
place, where what eager execution has saved decides whether that is an error, or given other memory,
which what has saved a tensor itself reads, and what has saved a view of it does not."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import weft


@pytest.fixture(scope="module", autouse=True)
def verified():
    """What eager execution saves is learnt from the first call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weft.config, "verify", "first")
        yield


class Model(nn.Module):
    """The results of all `functions` of an argument and a parameter, each apart from the others."""

    def __init__(self, functions, weight):
        super().__init__()
        self.functions, self.weight = functions, nn.Parameter(weight)

    def forward(self, *xs):
        return [f(x, self.weight) for f, x in zip(self.functions, xs, strict=True)]


def pair(functions, *shape):
    eager = Model(functions, torch.rand(*shape) + 0.5)
    compiled = weft.compile(copy.deepcopy(eager))
    for _ in range(2):
        xs = [(torch.rand(4, 6) + 0.5).requires_grad_() for _ in functions]
        sum(each.sum() for each in compiled(*xs)).backward()
    assert weft.stats(compiled)["breaks"] == []
    return eager, compiled


def both(models, change, count):
    """For each of the functions, of both models: the gradients, or the error of the backward.
    change: of (model, arguments, results), between forward and backward."""
    found = []
    start = [torch.rand(4, 6) + 0.5 for _ in range(count)]
    cotangent = torch.randn(4, 6)
    for model in models:
        weight = model.weight.detach().clone()
        xs = [each.clone().requires_grad_() for each in start]
        results = model(*xs)
        with torch.no_grad():
            change(model, xs, results)
        own = []
        for x, result in zip(xs, results):
            given = cotangent.flatten()[: result.numel()].view(result.shape)
            try:
                own.append(torch.autograd.grad(result, [x, model.weight], given, allow_unused=True))
            except RuntimeError as error:
                own.append("modified by an inplace operation" in str(error))
        found.append(own)
        model.weight = nn.Parameter(weight)
    return found


def assert_same(eager, own):
    for theirs, ours in zip(eager, own, strict=True):
        if isinstance(theirs, bool) or isinstance(ours, bool):
            assert theirs is ours is True
        else:
            torch.testing.assert_close(ours, theirs)


def give_memory(model, xs, results):
    model.weight.data = model.weight.data * 3 + 1


def write_to_memory(model, xs, results):
    for result in results:
        result.data.mul_(2)


def write_to_memory_of_arguments(model, xs, results):
    for x in xs:
        x.data.neg_()


def write_to_weight(model, xs, results):
    model.weight.mul_(2)


def write_to_arguments(model, xs, results):
    for x in xs:
        x.mul_(2)


def write_to_results(model, xs, results):
    for result in results:
        result.mul_(2)


OF_WEIGHTS = (
    lambda x, w: F.linear(x, w),
    lambda x, w: F.relu(F.linear(x, w)),
    lambda x, w: F.linear(torch.tanh(F.linear(x, w)), w.t()),
    lambda x, w: torch.einsum("bi,oi->bo", x, w),
    lambda x, w: x @ w,
    lambda x, w: x * w[0],
)
OF_ARGUMENTS = (
    lambda x, w: x.reciprocal(),
    lambda x, w: F.leaky_relu(x) * w[0],
    lambda x, w: x.max(-1)[0],
    lambda x, w: x.pow(3),
    lambda x, w: F.layer_norm(x, (6,), w[0]),
    lambda x, w: x / x.sum(-1, keepdim=True),
    lambda x, w: F.mse_loss(x, w[:4]),
    lambda x, w: x.softmax(-1),
    lambda x, w: x.logsumexp(-1),
    lambda x, w: F.max_pool1d(x, 2),
    lambda x, w: x.cummax(-1)[0],
)


@pytest.fixture(scope="module", params=[(0, 1), (2, 5), (3, 4)])
def of_weights(request):
    return pair([OF_WEIGHTS[number] for number in request.param], 6, 6)


@pytest.fixture(scope="module")
def of_arguments():
    return pair(OF_ARGUMENTS, 6, 6)


@pytest.mark.parametrize("change", [give_memory, write_to_weight])
def test_a_changed_weight(of_weights, change):
    assert_same(*both(of_weights, change, 2))


@pytest.mark.parametrize(
    "change",
    [write_to_arguments, write_to_results, write_to_memory, write_to_memory_of_arguments],
)
def test_what_eager_execution_saves_decides(of_arguments, change):
    eager, own = both(of_arguments, change, len(OF_ARGUMENTS))
    if change is write_to_memory:
        # Weft has saved less: its gradients are those of the forward.
        eager, own = ([x for n, x in enumerate(each) if n not in (0, 8)] for each in (eager, own))
    if change is write_to_memory_of_arguments:
        # Of these eager execution reads no element: where the maximum was is in what it saves.
        eager, own = ([each[n] for n in (2, 9, 10)] for each in (eager, own))
    assert_same(eager, own)


def test_memory_from_before_is_differentiated_twice(of_weights):
    """Under create_graph as well, where it is PyTorch that goes on."""
    found = []
    x, cotangent = torch.rand(4, 6), torch.randn(6)
    for model in of_weights:
        weight = model.weight.detach().clone()
        own = x.clone().requires_grad_()
        first, second = model(own, own)
        give_memory(model, own, None)
        (gradient,) = torch.autograd.grad((first * cotangent).sum(), own, create_graph=True)
        found.append(gradient.detach())
        model.weight = nn.Parameter(weight)
    torch.testing.assert_close(*found)


class Drawing(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.drop, self.norm = nn.Dropout(0.5), nn.BatchNorm1d(6)

    def forward(self, x):
        return self.drop(self.first(x)), self.norm(self.second(x)), x + 1


def test_results_of_calls_that_draw_and_write_are_gone_backwards_from_one_by_one():
    eager = Drawing()
    compiled = weft.compile(copy.deepcopy(eager))
    for _ in range(3):
        x, gradients = torch.randn(5, 6), []
        for model in (eager, compiled):
            model.zero_grad()
            torch.manual_seed(1)
            own = x.clone().requires_grad_()
            dropped, normed, shifted = model(own)
            dropped.sum().backward()
            normed.pow(2).sum().backward(retain_graph=True)
            normed.pow(3).sum().backward()
            for _ in range(2):  # saves nothing, so that nothing is gone
                shifted.sum().backward()
            with pytest.raises(RuntimeError, match="second time"):
                dropped.sum().backward()
            gradients.append([own.grad, *(each.grad for each in model.parameters())])
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(compiled.norm.running_var, eager.norm.running_var)
    assert weft.stats(compiled)["breaks"] == []
