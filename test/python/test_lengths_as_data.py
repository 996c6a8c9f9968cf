# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed sequences of any lengths by one program."""

import pytest
import torch
from counting import latest
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from training_cases import assert_same, gradients

import weft

STEPS, BATCH = 12, 4


class Net(nn.Module):
    """settings: of the padding."""

    def __init__(self, net: nn.Module, enforce_sorted: bool = False, **settings):
        super().__init__()
        self.net, self.enforce_sorted, self.settings = net, enforce_sorted, settings

    def forward(self, x, lengths):
        batch_first = self.net.batch_first
        packed = pack_padded_sequence(
            x,
            lengths.clamp(min=1),
            batch_first=batch_first,
            enforce_sorted=self.enforce_sorted,
        )
        outputs, state = self.net(packed)
        padded, found = pad_packed_sequence(outputs, batch_first=batch_first, **self.settings)
        state = state if isinstance(state, tuple) else (state,)
        return padded, *state, found


def batch(lengths: list[int], batch_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """What stands behind the end of a sequence is no number."""
    x, lengths = torch.randn(len(lengths), STEPS, 5, dtype=torch.float64), torch.tensor(lengths)
    x[torch.arange(STEPS) >= lengths[:, None]] = float("nan")
    return (x if batch_first else x.transpose(0, 1).contiguous()), lengths


def floats_of(call, lengths: torch.Tensor):
    return lambda x, *_: call(x, lengths)[:-1]


LENGTHS = [[5, 12, 1, 7], [12, 12, 12, 12], [1, 12, 1, 1], [9, 2, 12, 9]]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "net",
    [
        Net(nn.LSTM(5, 7, bidirectional=True, proj_size=3, batch_first=True), padding_value=0.5),
        Net(nn.RNN(5, 7, nonlinearity="relu", bias=False), True, total_length=STEPS + 2),
    ],
    ids=["lstm", "rnn"],
)
def test_gradients(net):
    net = net.double()
    compiled = weft.compile(net)
    for lengths in LENGTHS:
        lengths = sorted(lengths, reverse=True) if net.enforce_sorted else lengths
        x, lengths = batch(lengths, net.net.batch_first)
        wanted = [x.requires_grad_(), *net.parameters()]
        found, expected = (gradients(floats_of(each, lengths), wanted) for each in (compiled, net))
        assert_same(found, expected, 1e-10)
    assert not compiled.eager_reasons and not latest(compiled).lowered.fallbacks
    assert weft.stats(compiled)["captures"] == 2


def test_longest(no_grad):
    """Where the padded result is as long as the longest sequence, that is one number."""
    net = Net(nn.LSTM(5, 7, 2, bidirectional=True, batch_first=True), padding_value=-1.0).double()
    compiled = weft.compile(net)
    # PyTorch's sort leaves more than 16 equal elements in some order.
    for lengths in ([7, 7, 8, 3], *LENGTHS[:2], [1, 1, 8, 4]):
        given = batch(lengths * 5, True)
        assert_same(compiled(*given), net(*given), 1e-12)
    assert not compiled.eager_reasons and weft.stats(compiled)["captures"] == 3


def test_packed_results(no_grad):
    """Rows are computed alone, and packed as they are returned."""

    class Packing(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.GRU(5, 7, batch_first=True)

        def forward(self, x, lengths):
            lengths, order = lengths.sort(descending=True)
            packed = pack_padded_sequence(x[order], lengths, batch_first=True)
            scaled = PackedSequence(packed.data.tanh() * 2, packed.batch_sizes)
            return self.net(scaled)[0]

    net = Packing().double()
    compiled = weft.compile(net)
    for lengths in LENGTHS:
        given = batch(lengths, True)
        found, expected = compiled(*given), net(*given)
        assert_same([found.data, found.batch_sizes], [expected.data, expected.batch_sizes], 1e-12)
    assert not compiled.eager_reasons and weft.stats(compiled)["captures"] == 2


def test_fewer_steps_than_the_batch_has(no_grad):
    """A program has steps for the longest sequence there was, and for some longer ones."""
    net = Net(nn.RNN(5, 7, batch_first=True), total_length=12).double()
    compiled = weft.compile(net)
    for longest in (6, 7, 12, 3, 9):
        x, lengths = torch.randn(2, 24, 5, dtype=torch.float64), torch.tensor([2, longest])
        assert_same(compiled(x, lengths), net(x, lengths), 1e-12)
    assert not compiled.eager_reasons and weft.stats(compiled)["captures"] == 3


def test_equal_lengths_in_packed_results(no_grad):
    """They lie as PyTorch's sort leaves them, which no program of any lengths knows."""

    class Packing(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.RNN(5, 7)

        def forward(self, x, lengths):
            return self.net(pack_padded_sequence(x, lengths, enforce_sorted=False))[0]

    net = Packing().double()
    compiled = weft.compile(net)
    for lengths in LENGTHS[:2]:
        given = batch(lengths * 5, False)
        found, expected = compiled(*given), net(*given)
        assert_same([*found], [*expected], 1e-12)
    assert not compiled.eager_reasons


def test_dropout_between_layers():
    """Its noise has as many rows as there are steps in all, in the order of the packed ones."""
    net = Net(nn.GRU(5, 7, 2, dropout=0.5, bidirectional=True), total_length=STEPS).double()
    compiled = weft.compile(net)
    for lengths in LENGTHS[:3]:
        x, lengths = batch(lengths, False)
        wanted, found = [x.requires_grad_(), *net.parameters()], []
        for call in (compiled, net):
            torch.manual_seed(0)
            found.append(gradients(floats_of(call, lengths), wanted))
        assert_same(*found, 1e-10)
    assert not compiled.eager_reasons and weft.stats(compiled)["captures"] == 2


def test_dropout_between_layers_in_a_range_of_sizes():
    net = Net(nn.RNN(5, 7, 2, dropout=0.5)).double()
    compiled = weft.compile(net, shapes={"x": {0: weft.Range(2, STEPS)}})
    for lengths in ([5, 9, 2, 7], [4, 6, 1, 3]):
        x, lengths = batch(lengths, False)
        x = x[: int(lengths.max())].nan_to_num(0.0)
        wanted, found = [x.requires_grad_(), *net.parameters()], []
        for call in (compiled, net):
            torch.manual_seed(0)
            found.append(gradients(floats_of(call, lengths), wanted))
        assert_same(*found, 1e-10)
    assert not compiled.eager_reasons and weft.stats(compiled)["captures"] == 1


def test_lengths_that_are_computed(no_grad):
    """Of a mask, or of tokens, they are computed again to find the program of a call."""

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.net = nn.Embedding(9, 5), nn.GRU(5, 7, batch_first=True)

        def forward(self, tokens, mask):
            x, settings = self.table(tokens), {"batch_first": True, "enforce_sorted": False}
            short = pack_padded_sequence(x, (tokens != 0).sum(1).cpu(), **settings)
            long = pack_padded_sequence(x, mask.long().sum(-1), **settings)
            padded = pad_packed_sequence(self.net(short)[0], True, total_length=STEPS)[0]
            return padded, self.net(long)[1]

    net = Counting().double()
    compiled = weft.compile(net)
    for lengths in LENGTHS:
        places, lengths = torch.arange(STEPS), torch.tensor(lengths)[:, None]
        tokens = torch.randint(1, 9, (len(lengths), STEPS)).where(places < lengths, 0)
        given = tokens, places <= lengths
        assert_same(compiled(*given), net(*given), 1e-12)
    assert not compiled.eager_reasons and not latest(compiled).lowered.fallbacks
    assert weft.stats(compiled)["captures"] == 1


def test_lists_of_lengths(no_grad):
    """`tolist` gives numbers that make the same lengths again, unless they have changed since."""

    class Listing(nn.Module):
        def __init__(self, changes: bool):
            super().__init__()
            self.net, self.changes = nn.GRU(5, 7, batch_first=True), changes

        def forward(self, x, lengths):
            lengths = lengths.clone()
            numbers = lengths.tolist()
            if self.changes:
                lengths.sub_(1)
            packed = pack_padded_sequence(x, numbers, batch_first=True, enforce_sorted=False)
            outputs, state = self.net(packed)
            return *pad_packed_sequence(outputs, batch_first=True, total_length=STEPS), state

    net, changing = Listing(False).double(), Listing(True).double()
    compiled = weft.compile(net)
    for lengths in LENGTHS:
        given = batch(lengths, True)
        assert_same(compiled(*given), net(*given), 1e-12)
    assert not compiled.eager_reasons and not latest(compiled).lowered.fallbacks
    assert weft.stats(compiled)["captures"] == 2
    given = batch(LENGTHS[0], True)
    assert_same(weft.compile(changing)(*given), changing(*given), 1e-12)


def test_numbers_as_lengths(no_grad, automatic_sizes):
    """Numbers of a list among the arguments are inputs once they vary, and lengths as others."""

    class Packing(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.LSTM(5, 7, batch_first=True)

        def forward(self, x, lengths):
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            outputs, state = self.net(packed)
            return *pad_packed_sequence(outputs, batch_first=True, total_length=STEPS), *state

    net = Packing().double()
    compiled = weft.compile(net)
    for lengths in ([5, 12, 1, 7], [12, 2, 12, 11], [1, 1, 3, 9], [9, 7, 12, 9]):
        x, _ = batch(lengths, True)
        assert_same(compiled(x, lengths), net(x, lengths), 1e-12)
    assert not compiled.eager_reasons and not latest(compiled).lowered.fallbacks
    assert weft.stats(compiled)["captures"] == 2
    with pytest.raises(RuntimeError, match="greater than 0"):
        compiled(x, [5, 0, 3, 1])
