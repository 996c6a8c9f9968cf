# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients that come in segments where somebody waits for the first ones: a hook that runs once a
gradient is accumulated, or the reducer of DistributedDataParallel."""

import copy
import os
import socket

import pytest
import torch
from torch import nn

import weft
from weft.compiled import backward_segments


class Net(nn.Module):
    """A weight that is used twice, one that is frozen, and one that some calls leave alone."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 8)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 3)
        self.second.bias.requires_grad_(False)
        self.unused = nn.Linear(8, 3)

    def forward(self, x, wide=False):
        y = torch.tanh(self.second(torch.tanh(self.second(self.first(x)))))
        y = self.norm(y)
        return self.head(y) * self.unused(y) if wide else self.head(y)


@pytest.fixture
def ran(monkeypatch):
    """What runs: the numbers of segments."""
    events = []
    part = backward_segments.InSegments.part

    def noted(self, segment):
        events.append(segment)
        return part(self, segment)

    monkeypatch.setattr(backward_segments.InSegments, "part", noted)
    return events


def pair():
    torch.manual_seed(0)
    net = Net()
    return net, copy.deepcopy(net)


def batches(count):
    return torch.randn(count, 5, 6, generator=torch.Generator().manual_seed(1))


def test_hooks_run_between_the_segments(verified, ran):
    """In eager execution's order; gradients are those of eager execution."""
    net, twin = pair()
    fast, seen = weft.compile(net), []
    for module, events in ((net, ran), (twin, seen)):
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(
                    lambda p, n=name, e=events: e.append(n)
                )
    for x in batches(5):
        ran.clear(), seen.clear()
        for run in (fast, twin):
            run.zero_grad()
            run(x).square().sum().backward()
        for own, eager in zip(net.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(own.grad, eager.grad)
    assert weft.stats(fast)["hits"] == 4
    assert [each for each in ran if isinstance(each, str)] == seen
    assert ran[0] == 0 and ran[1] == "head.bias" and isinstance(ran[-1], str)
    assert [each for each in ran if isinstance(each, int)] == [0, 1]
    assert ran.index("head.weight") < ran.index(1) < ran.index("first.weight")


def test_other_ways_through_a_chain(ran):
    """Gradients of few inputs, several backwards, gradients of gradients, an unused result."""
    net, twin = (each.double() for each in pair())
    fast = weft.compile(lambda x: (net(x), net.first(x).sin()))

    def eager(x):
        return twin(x), twin.first(x).sin()

    for module in (net, twin):
        module.head.bias.register_post_accumulate_grad_hook(lambda p: None)

    def results(call, module, x):
        few = [module.head.weight, module.norm.weight]
        late = [module.first.weight]
        y, other = call(x)
        whole = (y * 2).sum() + other.sum()
        found = [torch.autograd.grad(whole, each, retain_graph=True) for each in (few, late)]
        (slope,) = torch.autograd.grad(whole, late, create_graph=True)
        found.append(torch.autograd.grad(slope.square().sum(), [*few, *late], retain_graph=True))
        found.append(torch.autograd.grad(y.sum(), [*few, *late], retain_graph=True))
        for _ in range(2):
            whole.backward(retain_graph=True)
        found.append([p.grad for p in module.parameters()])
        module.zero_grad()
        return found

    for x in batches(4).double():
        torch.testing.assert_close(results(fast, net, x), results(eager, twin, x))
    assert ran and weft.stats(fast)["hits"] >= 3, weft.stats(fast)


def stepping(optimizer, parameter):
    own = optimizer([parameter], lr=0.01)

    def step(_):
        own.step()
        own.zero_grad()

    return step


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_an_optimizer_that_steps_within_the_backward(verified, ran, optimizer):
    """A weight changes once its gradient is there, while the rest is computed."""
    net, twin = (each.double() for each in pair())
    fast = weft.compile(net)
    for module in (net, twin):
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(stepping(optimizer, parameter))
    for x in batches(6).double():
        for run in (fast, twin):
            run(x).square().sum().backward()
        for own, eager in zip(net.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(own, eager)
            assert own.grad is None
    assert 1 in ran and weft.stats(fast)["hits"] >= 5


def test_hooks_that_change_what_a_later_segment_reads(ran):
    """PyTorch's error."""
    net, twin = pair()
    fast, changed = weft.compile(net), []

    def change(parameter):
        with torch.no_grad():
            for each in changed:
                each.mul_(2)

    for module, run in ((net, fast), (twin, twin)):
        module.head.bias.register_post_accumulate_grad_hook(change)
        for x in batches(3):
            x.requires_grad_()
            changed.clear()
            run(x).square().sum().backward()  # the first one is run as a whole, too
            for each in (x, module.first.weight):
                changed[:] = [each]
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    run(x).square().sum().backward()
    assert 0 in ran


@pytest.mark.parametrize("fails", ["not", "compiled", "compared"])
def test_the_report_tells_of_them(monkeypatch, capsys, fails):
    def refused(*_):
        raise weft.errors.CompileError("no pass for it")

    def differs(*_):
        raise backward_segments.Differs("gradient 1 differs")

    if fails == "compiled":
        monkeypatch.setattr(backward_segments.Segments, "of", refused)
    if fails == "compared":
        monkeypatch.setattr(backward_segments, "compare_values", differs)
    net, twin = pair()
    net.head.weight.register_post_accumulate_grad_hook(lambda p: None)
    fast = weft.compile(net)
    for x in batches(3):
        for run in (fast, twin):
            run.zero_grad()
            run(x).square().sum().backward()
        torch.testing.assert_close(net.head.weight.grad, twin.head.weight.grad)
    weft.report(fast)
    told = " ".join(capsys.readouterr().out.split())
    expected = {
        "not": "Gradients that somebody waits for come in 2 segments.",
        "compiled": "All gradients come at once, though somebody waits for some: no segments of it "
        "are compiled: no pass for it.",
        "compared": "All gradients come at once, though somebody waits for some: in segments "
        "gradient 1 differs.",
    }
    assert expected[fails] in told


def test_without_anybody_who_waits(ran):
    net, twin = pair()
    fast = weft.compile(net)
    for x in batches(3):
        fast(x).sum().backward()
        twin(x).sum().backward()
    assert not ran
    torch.testing.assert_close(net.head.weight.grad, twin.head.weight.grad)


def _free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def _trained(rank, port, folder):
    """A process of two, which compares compiled with eager training in each way of a reducer."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    events = []
    part = backward_segments.InSegments.part

    def noted(self, segment):
        events.append(segment)
        return part(self, segment)

    backward_segments.InSegments.part = noted

    def hook(_, bucket):
        events.append(f"bucket {bucket.index()}")
        future = torch.distributed.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0] / 2)

    def wrapped(net, **options):
        # A bucket for each few tensors.
        return nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.0001, **options)

    for options in ({"find_unused_parameters": True}, {"static_graph": True}, {}):
        net, twin = pair()
        if not options:
            del net.unused, twin.unused
        fast, eager = wrapped(weft.compile(net), **options), wrapped(twin, **options)
        if "static_graph" not in options:
            fast.register_comm_hook(None, hook)
        for step in range(6):
            x = torch.randn(5, 6, generator=torch.Generator().manual_seed(10 * step + rank))
            wide = "find_unused_parameters" in options and step > 3
            events.clear()
            for each in (fast, eager):
                each.zero_grad()
                if step > 1:  # a static graph is seen in the first ones
                    with each.no_sync():
                        each(x * 2, wide).square().sum().backward()
                each(x, wide).square().sum().backward()
            for own, other in zip(net.parameters(), twin.parameters(), strict=True):
                torch.testing.assert_close(own.grad, other.grad, rtol=1e-4, atol=1e-5)
            if step == 3:
                assert [each for each in events if isinstance(each, int)] == [0, 1], events
                if "static_graph" not in options:
                    # What the first segment gives is on its way before the second one runs.
                    assert events.index("bucket 0") < events.index(1), events
        assert weft.stats(fast.module)["hits"] >= 6, weft.stats(fast.module)
    torch.distributed.destroy_process_group()
    (folder / str(rank)).touch()


@pytest.mark.at_length
def test_a_reducer_has_its_buckets_while_the_rest_is_computed(tmp_path):
    torch.multiprocessing.start_processes(
        _trained, args=(_free_port(), tmp_path), nprocs=2, start_method="spawn"
    )
    assert len([*tmp_path.iterdir()]) == 2
