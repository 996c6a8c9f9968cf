# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes under `no_grad` and through `detach`: the elements change, their history does not. No call
is compared by Weft itself."""

import pytest
import torch
import torch.nn.functional as F

import weft


@pytest.fixture(autouse=True)
def unverified(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")


def clamped(x):
    y = x * 2
    with torch.no_grad():
        y.clamp_(min=0)
    return y * x


def part_filled(x):
    y = x.clone()
    with torch.no_grad():
        y[:2] = 5.0
    return y * y


def view_scaled(x):
    y = x * 3
    with torch.no_grad():
        y[1:].mul_(2)
    return y * y


def replaced(x):
    y = x * 3
    with torch.no_grad():
        y.copy_(x.exp())
    return y * y


def detached(x):
    y = x * 3
    y.detach().mul_(2)
    return y * x


def data_clamped(x):
    y = x * 3
    y.data.clamp_(min=0)
    return y * x


def added_to_zeros(x):
    y = torch.zeros(5)
    with torch.no_grad():
        y += x
    return y * x


def added_seen_before(x):
    y = torch.zeros(5)
    y += x
    with torch.no_grad():
        y.mul_(2)
    return y * x


def gaussian_loss(x):
    return F.gaussian_nll_loss(x, x.detach() + 1, x.abs() + 0.1, reduction="none")


FUNCTIONS = [clamped, part_filled, view_scaled, replaced, detached, data_clamped]
FUNCTIONS += [added_to_zeros, added_seen_before, gaussian_loss]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_is_written_keeps_its_history(function):
    compiled = weft.compile(function)
    for seed in range(3):
        x = torch.randn(5, generator=torch.Generator().manual_seed(seed)).requires_grad_()
        mine, theirs = compiled(x), function(x)
        assert torch.equal(mine, theirs)
        (found,), (expected,) = (torch.autograd.grad(y.sum(), x) for y in (mine, theirs))
        torch.testing.assert_close(found, expected)
    assert weft.stats(compiled)["hits"]


def scaled_by_itself(x):
    y = x.clone()
    with torch.no_grad():
        y.mul_(x)
    return (y * x).sum(), y[1:] * 2


def gaussian_loss_of_all(x):
    return F.gaussian_nll_loss(x, x.detach() + 1, x.abs() * 2, full=True, eps=0.3)


@pytest.mark.parametrize(
    "function", [clamped, scaled_by_itself, gaussian_loss, gaussian_loss_of_all]
)
def test_writes_to_what_nothing_has_read_are_compiled(function, capsys):
    compiled = weft.compile(function)
    for seed in range(3):
        x = torch.randn(5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        x.requires_grad_()
        results = [torch.utils._pytree.tree_leaves(call(x)) for call in (compiled, function)]
        torch.testing.assert_close(*results)
        found, expected = (
            torch.autograd.grad(sum((y * y).sum() for y in each), x, create_graph=True)[0]
            for each in results
        )
        torch.testing.assert_close(found, expected)
        seconds = [torch.autograd.grad(first.sum(), x)[0] for first in (found, expected)]
        torch.testing.assert_close(*seconds)
    weft.report(compiled)
    assert "operations run" not in capsys.readouterr().out
    assert weft.stats(compiled)["hits"] and not weft.stats(compiled)["breaks"]


def shown_before(x):
    y = x + 1
    first = y[0]
    with torch.no_grad():
        y.clamp_(min=0.5)
    return first * y


def read_before(x):
    y = x * 3
    z = y.sin()
    with torch.no_grad():
        y.mul_(2)
    return y + z.detach()


def saved(x):
    y = x.exp()
    with torch.no_grad():
        y.clamp_(min=1)
    return y * 2


@pytest.mark.parametrize("function", [shown_before, read_before, saved])
def test_what_was_read_or_saved_before_is_pytorchs(function):
    compiled = weft.compile(function)
    for _ in range(3):
        x = torch.randn(5, requires_grad=True)
        outcomes = []
        for call in (compiled, function):
            try:
                outcomes.append(torch.autograd.grad(call(x).sum(), x)[0])
            except RuntimeError as error:
                outcomes.append(str(error).partition(":")[0])
        assert type(outcomes[0]) is type(outcomes[1])
        if isinstance(outcomes[0], torch.Tensor):
            torch.testing.assert_close(*outcomes)


def test_buffers_and_masks_may_be_written_without_gradients():
    """They have no history, so that the training program is whole."""

    class Averaged(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.scale = torch.nn.Parameter(torch.ones(4))
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            x = x * self.scale
            positive = x > 0
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), 0.1)
                positive.logical_not_()
            return self.linear(x) * positive - self.mean

    torch.manual_seed(0)
    module = Averaged()
    compiled = weft.compile(module)
    x = torch.randn(3, 4)
    for _ in range(2):
        before = module.mean.clone()
        compiled(x).sum().backward()
        torch.testing.assert_close(module.mean, before.lerp(x.mean(0), 0.1))
    assert weft.stats(compiled)["hits"] == 2 and not weft.stats(compiled)["breaks"]


def test_reads_of_data_are_part_of_the_program():
    compiled = weft.compile(lambda x: x * x.data.abs().amax() + torch.zeros_like(x.data.view(-1)))
    x = torch.tensor([1.0, -4.0, 2.0], requires_grad=True)
    result = compiled(x)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert torch.equal(result, x.detach() * 4) and torch.equal(gradient, torch.full((3,), 4.0))
    assert "PyTorch runs" not in str(compiled.explain(x))


class Holder:
    pass


def held(x):
    holder = Holder()
    holder.memory = x.data
    return holder, x * 2


@pytest.mark.parametrize("function", [lambda x: (x.data.view(-1), x * 2), held])
def test_data_that_is_returned_counts_its_own_writes(function):
    compiled = weft.compile(function)
    for _ in range(3):
        x = torch.ones(3)
        data, doubled = compiled(x)
        (data.memory if isinstance(data, Holder) else data).add_(1)
        assert torch.equal(x, torch.full((3,), 2.0)) and x._version == 0
        assert torch.equal(doubled, torch.full((3,), 2.0))


def collected(x):
    """Into a tensor that has no history before, step by step."""
    y = torch.zeros(4, 3, dtype=x.dtype)
    for row in range(3):
        y[row] = x[row] * x.sum()
    return y * y


def collected_unseen(x):
    y = torch.zeros(4, 3, dtype=x.dtype)
    apart = y.detach()
    y[0] = x[0] * 2
    apart[0] = 5.0
    return y * y


def test_tensors_that_writes_give_a_history():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    for function in (collected, collected_unseen):
        compiled = weft.compile(function)
        found, expected = [
            (value := call(x), torch.autograd.grad(value.sum(), x)[0])
            for call in (compiled, function)
        ]
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
        if function is collected:
            assert compiled.graph_for(x)
    with pytest.raises(weft.errors.Error, match="autograd does not see"):
        compiled.graph_for(x)
