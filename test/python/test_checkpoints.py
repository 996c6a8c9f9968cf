# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled calls within regions of torch.utils.checkpoint: their backward makes them again, and has
to save what their forward did."""

import copy
import gc

import pytest
import torch
from torch.utils import checkpoint

import weft
from weft.compiled import checkpoints

pytestmark = pytest.mark.usefixtures("verified")


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(8)
        self.wide = torch.nn.Linear(8, 16)
        self.narrow = torch.nn.Linear(16, 8)
        self.drop = torch.nn.Dropout(0.3)

    def forward(self, x):
        return x + self.drop(self.narrow(torch.tanh(self.wide(self.norm(x)))))


class EachBlock(torch.nn.Module):
    """A region for each block."""

    def __init__(self, reentrant):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.head = torch.nn.Linear(8, 3)
        self.reentrant = reentrant

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint.checkpoint(block, x, use_reentrant=self.reentrant)
        return self.head(x)


class AllBlocks(EachBlock):
    """One region, in which PyTorch saves values as well."""

    def forward(self, x):
        def run(x):
            for block in self.blocks:
                x = block(x).sin()
            return x

        return self.head(checkpoint.checkpoint(run, x, use_reentrant=self.reentrant).cos())


def step(net, x, seed):
    """What a step gives and leaves behind."""
    torch.manual_seed(seed)
    x = x.clone().requires_grad_()
    net.zero_grad()
    out = net(x)
    out.square().sum().backward()
    gradients = [parameter.grad for parameter in net.parameters()]
    return out, x.grad, gradients, [*net.buffers()], torch.rand(1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "kind, training, shared, stops_early",
    [
        (EachBlock, True, False, True),
        (EachBlock, False, False, True),
        (AllBlocks, True, True, False),
        (AllBlocks, False, True, True),
    ],
)
def test_blocks_that_are_only_called_within_regions_are_compiled(
    kind, training, shared, stops_early
):
    torch.manual_seed(0)
    net = kind(reentrant=False).train(training)
    if shared:
        net.blocks[1] = net.blocks[0]
    twin = copy.deepcopy(net)
    compiled = {each: weft.compile(each) for each in net.blocks}
    for number, each in enumerate(net.blocks):
        net.blocks[number] = compiled[each]
    with checkpoint.set_checkpoint_early_stop(stops_early):
        for seed, rows in enumerate((4, 4, 4, 5, 5, 4)):
            x = torch.randn(rows, 8)
            torch.testing.assert_close(
                step(net, x, seed), step(twin, x, seed), rtol=1e-4, atol=1e-5
            )
    for each in compiled.values():
        stats = weft.stats(each)
        assert stats["hits"] >= 3
        assert not stats["breaks"]


@pytest.mark.parametrize("kind", [EachBlock, AllBlocks])
def test_reentrant_regions(kind):
    torch.manual_seed(0)
    net = kind(reentrant=True)
    twin = copy.deepcopy(net)
    for number, each in enumerate(net.blocks):
        net.blocks[number] = weft.compile(each)
    for seed in range(4):
        x = torch.randn(4, 8)
        torch.testing.assert_close(step(net, x, seed), step(twin, x, seed), rtol=1e-4, atol=1e-5)
    assert weft.stats(net.blocks[0])["hits"] >= 2


class Regions(torch.nn.Module):
    """A region around layers, written as `by`."""

    def __init__(self, by):
        super().__init__()
        self.by = by
        self.first, self.last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.drop = torch.nn.Dropout(0.3)
        self.scale = torch.nn.Parameter(torch.ones(8))

    def layers(self, x):
        return self.drop(torch.tanh(self.first(x)))

    def several(self, x, y):
        return self.first(x) + self.last(y), 3 * y, self.first(x).argmax(1)

    def alone(self, x):
        return self.layers(x), torch.arange(8.0)

    def forward(self, x):
        if self.by == "one after another":
            x = checkpoint.checkpoint(self.layers, x, use_reentrant=True)
            return self.last(checkpoint.checkpoint(self.layers, self.last(x), use_reentrant=True))
        if self.by == "several":
            p, q, n = checkpoint.checkpoint(
                self.several, x, self.scale.expand_as(x), use_reentrant=True
            )
            return p.sin() * q + n[:, None]
        p, q = checkpoint.checkpoint(self.alone, x, use_reentrant=True)
        return self.last(p * q)


@pytest.mark.parametrize("requires", [True, False])
@pytest.mark.parametrize("by", ["one after another", "several", "alone"])
@pytest.mark.parametrize("verify", ["first", "off"])
def test_reentrant_regions_within_a_program(monkeypatch, verify, by, requires):
    """Their results require gradients where an argument does, so that without any the layers have
    none at all; a result that depends on nothing that does is PyTorch's."""
    monkeypatch.setattr(weft.config, "verify", verify)
    torch.manual_seed(0)
    net = Regions(by)
    twin = copy.deepcopy(net)
    compiled = weft.compile(net)

    def ran(run, module, number):
        torch.manual_seed(number)
        x = torch.randn(4, 8).requires_grad_(requires)
        module.zero_grad()
        out = run(x)
        out.square().sum().backward()
        return out.detach(), x.grad, *[each.grad for each in module.parameters()]

    for number in range(3):
        for own, eager in zip(ran(compiled, net, number), ran(twin, twin, number), strict=True):
            assert (own is None) == (eager is None)
            if eager is not None:
                torch.testing.assert_close(own, eager, rtol=1e-4, atol=1e-5)
    stats = weft.stats(compiled)
    if by != "alone" or not requires:
        assert stats["hits"] >= 2 and not stats["breaks"], stats
    else:
        assert "use_reentrant=True" in str(stats["breaks"])


def test_what_a_first_call_saves_is_let_go_of():
    """Nothing that PyTorch saves for the comparison outlives it."""

    def f(x):
        return (x.sin() * x.exp()).tanh()

    compiled = weft.compile(f)
    x = torch.randn(64, requires_grad=True)
    out = checkpoint.checkpoint(compiled, x, use_reentrant=False)
    kept = [each for each in gc.get_objects() if type(each) is checkpoints.Saved]
    assert kept and all(each.tensor is None for each in kept)
    out.sum().backward()
    torch.testing.assert_close(x.grad, torch.autograd.grad(f(x).sum(), x)[0])
    assert weft.stats(compiled)["graphs"] == 1


def test_programs_that_are_compiled_beside_the_calls():
    def f(x):
        return (x.sin() * x.exp()).tanh()

    compiled = weft.compile(f, background=True)
    x = torch.randn(64, requires_grad=True)
    for _ in range(4):
        out = checkpoint.checkpoint(compiled, x, use_reentrant=False)
        compiled.wait()
        (gradient,) = torch.autograd.grad(out.sum(), x)
        torch.testing.assert_close(gradient, torch.autograd.grad(f(x).sum(), x)[0])
    assert weft.stats(compiled)["hits"] >= 2


def agrees(net, count):
    """The module compiled, after as many steps as its twin's."""
    twin = copy.deepcopy(net)
    compiled = weft.compile(net)
    for seed in range(count):
        x = torch.randn(4, 8)
        torch.testing.assert_close(
            step(compiled, x, seed), step(twin, x, seed), rtol=1e-4, atol=1e-5
        )
    return compiled


@pytest.mark.parametrize("kind", [EachBlock, AllBlocks])
@pytest.mark.parametrize("reentrant", [False, True])
def test_statistics_are_updated_again_by_the_backward(kind, reentrant):
    """Within a module that is compiled as a whole."""
    torch.manual_seed(0)
    agrees(kind(reentrant), 3)


class Dropped(torch.nn.Module):
    """Regions in each other, of which one may draw random numbers anew in the backward."""

    def __init__(self, reentrant, preserves, drops=0.4):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.drop = torch.nn.Dropout(drops)
        self.reentrant, self.preserves = reentrant, preserves

    def region(self, function, x, preserves):
        return checkpoint.checkpoint(
            function, x, use_reentrant=self.reentrant, preserve_rng_state=preserves
        )

    def within(self, x):
        return self.drop(torch.tanh(self.first(x)))

    def outside(self, x):
        return self.drop(self.second(self.region(self.within, x, self.preserves[1]))).sin()

    def forward(self, x):
        return self.region(self.outside, x, self.preserves[0])


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize(
    "preserves", [(False, False), (False, True), (True, False), (True, True)], ids=str
)
def test_regions_that_draw_anew(reentrant, preserves):
    """Their backward has other masks than their forward, in eager execution."""
    torch.manual_seed(0)
    compiled = agrees(Dropped(reentrant, preserves), 4)
    breaks = weft.stats(compiled)["breaks"]
    assert all(preserves) or "preserve_rng_state=False" in str(breaks), breaks


def test_regions_that_could_draw_anew_and_do_not():
    torch.manual_seed(0)
    net = Dropped(False, (False, False), drops=0.0).train()
    net.drop.eval()
    compiled = agrees(net, 3)
    assert weft.stats(compiled)["hits"] == 2 and not weft.stats(compiled)["breaks"]
