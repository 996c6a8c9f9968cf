# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed sequences: into recurrent modules, out of them, and with lengths that change."""

import re

import pytest
import torch
from agreeing import check_replayed
from counting import latest
from torch import nn
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
)
from training_cases import assert_same, gradients

import weft
from weft.frontend.packed import groups_of, runs_of

NETS = [
    nn.LSTM(5, 7, proj_size=3),
    nn.GRU(5, 7, bidirectional=True),
    nn.RNN(5, 7, 2, nonlinearity="relu", bias=False),
]


class Padded(nn.Module):
    """From padded sequences to padded sequences; settings: of the packing."""

    def __init__(self, net: nn.Module, lengths: list[int] | None = None, **settings):
        super().__init__()
        self.net, self.lengths, self.settings = net, lengths, settings

    def forward(self, x, lengths=None):
        lengths = self.lengths if lengths is None else lengths
        outputs, state = self.net(pack_padded_sequence(x, lengths, **self.settings))
        batch_first = self.settings.get("batch_first", False)
        padded, found = pad_packed_sequence(outputs, batch_first=batch_first)
        state = state if isinstance(state, tuple) else (state,)
        return padded, *state, found


def check(net: nn.Module, *inputs):
    """Values to 1e-12 and gradients to 1e-10, in float64."""
    net = net.double()
    compiled = weft.compile(net)
    with torch.no_grad():
        for _ in range(2):
            assert_same(flat(compiled(*inputs)), flat(net(*inputs)), 1e-12)
    assert not compiled.eager_reasons, compiled.eager_reasons
    assert not latest(compiled).lowered.fallbacks
    trained = weft.compile(net)
    floats = [x for x in flat(inputs) if x.is_floating_point()]
    wanted = [x.requires_grad_() for x in floats] + list(net.parameters())

    def gradients_of(call):
        return gradients(lambda *_: flat(call(*inputs)), wanted)

    gradients_of(trained)
    assert_same(gradients_of(trained), gradients_of(net), 1e-10)
    check_replayed(trained)
    return compiled


def flat(value) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [leaf for each in value if each is not None for leaf in flat(each)]


def sequences(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("net", NETS, ids=str)
def test_padded(net):
    check(Padded(net, [9, 9, 4]), sequences(9, 3, 5))


@pytest.mark.at_length
def test_unsorted_lengths_of_many_sizes():
    """More sizes than scans: steps of ended sequences keep states."""
    lengths = [3, 17, 1, 12, 12, 9, 17, 5, 2, 14, 6]
    net = Padded(nn.LSTM(5, 7, bidirectional=True, batch_first=True), lengths)
    net.settings = {"enforce_sorted": False, "batch_first": True}
    compiled = check(net, sequences(11, 17, 5))
    assert compiled.ir("kernels").count("weft.loop @") <= 8


@pytest.mark.parametrize("lengths", [[1], [2, 2, 2]])
def test_few_lengths(lengths):
    check(Padded(nn.GRU(5, 7), lengths), sequences(lengths[0], len(lengths), 5))


@pytest.mark.parametrize("enforce_sorted", [False, True])
def test_packed_in_and_out(enforce_sorted):
    net = nn.LSTM(5, 7)
    x = pack_padded_sequence(sequences(6, 3, 5), [6, 4, 4], enforce_sorted=enforce_sorted)
    check(net, x)
    with torch.no_grad():
        outputs, _ = weft.compile(net)(x)
    assert isinstance(outputs, PackedSequence) and torch.equal(outputs.batch_sizes, x.batch_sizes)


def test_initial_states():
    net = nn.LSTM(5, 7).double()
    x = pack_padded_sequence(sequences(6, 3, 5), [4, 6, 2], enforce_sorted=False)
    check(net, x, (sequences(1, 3, 7), sequences(1, 3, 7)))


def test_lists_of_sequences():
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.LSTM(5, 7)

        def forward(self, *xs):
            packed = pack_sequence(xs, enforce_sorted=False)
            padded, lengths = pad_packed_sequence(
                self.net(packed)[0], padding_value=-1.0, total_length=20
            )
            return padded, lengths, self.net(pad_sequence(xs))[0]

    check(Listed(), sequences(4, 5), sequences(9, 5), sequences(1, 5))


def test_lengths_that_change(no_grad):
    """One program for the first, one for all others; none answers for what PyTorch refuses."""
    net = Padded(nn.LSTM(5, 7), enforce_sorted=False).double()
    compiled, x = weft.compile(net), sequences(6, 3, 5)
    lengths = [torch.tensor(each) for each in ([6, 4, 4], [6, 5, 3], [2, 6, 1], [6, 4, 4])]
    for each in lengths:
        assert_same(flat(compiled(x, each)), flat(net(x, each)), 1e-12)
    lengths[0][1] = 2
    assert_same(flat(compiled(x, lengths[0])), flat(net(x, lengths[0])), 1e-12)
    assert not compiled.eager_reasons
    assert weft.stats(compiled)["captures"] == 2
    for each in ([6, 0, 1], [7, 2, 1]):
        with pytest.raises(RuntimeError) as expected:
            net(x, torch.tensor(each))
        with pytest.raises(RuntimeError, match=re.escape(str(expected.value))):
            compiled(x, torch.tensor(each))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.LSTM(5, 7, batch_first=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        outputs, state = self.net(packed)
        return pad_packed_sequence(outputs, batch_first=True)[0], *state


def test_sizes_that_change_with_lengths(no_grad, automatic_sizes):
    """One program for a range of sizes, in which the longest sequence has as many steps as there
    are; PyTorch refuses longer ones, and shorter ones have programs of their size."""
    net = Encoder().double()
    compiled = weft.compile(net)
    for lengths in ([11, 8, 2], [4, 9, 4], [5, 1, 7], [9, 10, 5], [1, 2, 3]):
        x = sequences(3, max(lengths), 5), torch.tensor(lengths)
        assert_same(flat(compiled(*x)), flat(net(*x)), 1e-12)
    stats = weft.stats(compiled)
    assert stats["captures"] == 2 and [*stats["ranges"].values()] == [4], stats
    x = sequences(3, 9, 5), torch.tensor([2, 8, 7])
    assert_same(flat(compiled(*x)), flat(net(*x)), 1e-12)
    assert not compiled.eager_reasons


def test_training_on_batches_padded_to_their_longest(automatic_sizes):
    """What no sequence has a step for has no part in gradients either, in any of the range's."""
    net = Encoder().double()
    compiled, wanted = weft.compile(net), list(net.parameters())
    for lengths in ([11, 8, 2], [4, 9, 4], [5, 1, 7], [9, 10, 5], [1, 2, 3]):
        x = sequences(3, max(lengths), 5).requires_grad_()
        found = []
        for function in (compiled, net):
            results = flat(function(x, torch.tensor(lengths)))
            total = sum((each * each.detach().cos()).sum() for each in results)
            found.append([*results, *torch.autograd.grad(total, [x, *wanted])])
        assert_same(*found, 1e-11)
    assert list(compiled.stats()["ranges"].values()) == [3]
    assert not compiled.eager_reasons


def test_packed_sequences_that_change(no_grad, automatic_sizes):
    """The first lengths are a guard; from then on they are data, and the rows a range."""
    net = nn.GRU(5, 7).double()
    compiled = weft.compile(net)
    for lengths, captures in (([6, 4, 4], 1), ([6, 5, 3], 2), ([6, 4, 4], 2), ([7, 5, 3], 3)):
        x = pack_padded_sequence(sequences(7, 3, 5), lengths)
        assert_same(flat(compiled(x)), flat(net(x)), 1e-12)
        assert weft.stats(compiled)["captures"] == captures
    for lengths in ([6, 3, 5], [7, 2, 1], [5, 5, 5], [1, 8, 8]):
        x = pack_padded_sequence(sequences(8, 3, 5), lengths, enforce_sorted=False)
        assert_same(flat(compiled(x)), flat(net(x)), 1e-12)
    assert not compiled.eager_reasons


class PackedHead(nn.Module):
    """Rows are normed ahead of the net, and read behind it, packed and padded."""

    def __init__(self):
        super().__init__()
        self.norm, self.head = nn.LayerNorm(5), nn.Linear(14, 3)
        self.net = nn.LSTM(5, 7, bidirectional=True)

    def forward(self, x, target):
        outputs, (hidden, _) = self.net(x._replace(data=self.norm(x.data)))
        padded, lengths = pad_packed_sequence(outputs, batch_first=True, padding_value=-1.0)
        rows = self.head(outputs.data)
        return outputs._replace(data=rows), padded, hidden, (rows - target.data).square().mean()


@pytest.mark.parametrize("ranges", [False, True])
def test_training_on_packed_arguments(ranges, monkeypatch):
    """Of any lengths, in ranges of rows and steps or with as many as the call has."""
    monkeypatch.setattr(weft.config, "automatic_sizes", ranges)
    net = PackedHead().double()
    compiled, wanted = weft.compile(net), list(net.parameters())
    every = ([5, 9, 2], [4, 9, 3], [2, 5, 9], [9, 6, 1], [7, 3, 4], [8, 1, 3])
    for lengths in every:
        given = pack_padded_sequence(sequences(9, 3, 5), lengths, enforce_sorted=False)
        target = given._replace(data=sequences(len(given.data), 3))
        rows, found = given.data.requires_grad_(), []
        for call in (compiled, net):
            results = [x for x in flat(call(given, target)) if x.is_floating_point()]
            total = sum((each * each.detach().cos()).sum() for each in results)
            found.append([*results, *torch.autograd.grad(total, [rows, *wanted])])
        assert_same(*found, 1e-11)
    assert not compiled.eager_reasons
    assert len(compiled.artifact_paths) < len(every) + 3


def test_two_packed_arguments_have_lengths_of_their_own(no_grad, automatic_sizes):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = nn.GRU(5, 7), nn.GRU(5, 7)

        def forward(self, x, y):
            return self.one(x)[1] + self.other(y)[1], self.one(x)[0]

    net = Both().double()
    compiled = weft.compile(net)
    for lengths in ([5, 9, 2], [4, 9, 3], [9, 6, 1], [7, 3, 4]):
        x = pack_padded_sequence(sequences(9, 3, 5), lengths, enforce_sorted=False)
        y = pack_padded_sequence(sequences(9, 3, 5), lengths[::-1], enforce_sorted=False)
        for given in ((x, x), (x, y), (x, x._replace(data=x.data + 1))):
            assert_same(flat(compiled(*given)), flat(net(*given)), 1e-12)
    assert not compiled.eager_reasons


def test_packed_arguments_of_other_kinds(no_grad, automatic_sizes):
    """No program of any lengths answers where steps have more sequences than those before, none, or
    in all fewer than there are rows."""
    net = nn.GRU(5, 7).double()
    compiled = weft.compile(net)
    for lengths in ([6, 4, 4], [6, 5, 3]):
        compiled(pack_padded_sequence(sequences(6, 3, 5), lengths))
    for sizes in ([3, 3, 2, 2, 2, 1], [3, 3, 3, 3, 2, 0]):
        x = PackedSequence(sequences(14, 5), torch.tensor(sizes))
        assert_same(flat(compiled(x)), flat(net(x)), 1e-12)
    x = PackedSequence(sequences(14, 5), torch.tensor([2, 3, 3, 3, 2, 1]))
    with pytest.raises(RuntimeError, match="must match the size"):
        compiled(x)


@pytest.mark.parametrize("lengths", [[4, 6], [6, 0], [7, 6], [6, 5, 4]])
def test_errors_are_eagers(lengths, no_grad):
    net, x = Padded(nn.LSTM(5, 7), lengths), torch.randn(6, 2, 5)
    with pytest.raises((RuntimeError, ValueError)) as expected:
        net(x)
    with pytest.raises(expected.type, match=re.escape(str(expected.value))):
        weft.compile(net)(x)


def test_groups_waste_the_fewest_rows():
    runs = runs_of([8] * 5 + [7] + [4] * 5 + [3] + [1] * 9)
    assert [run.size for run in runs] == [8, 7, 4, 3, 1] and runs[2].first == 47
    groups = groups_of(runs, 3)
    assert [[run.size for run in group] for group in groups] == [[8, 7], [4, 3], [1]]
    assert groups_of(runs, 5) == [[run] for run in runs]
