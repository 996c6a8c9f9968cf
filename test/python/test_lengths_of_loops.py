# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of Python over a size that differs from call to call share a program."""

import mmap

import pytest
import torch
from torch import nn

import weft
from weft.capture import symbolic_trace
from weft.capture.skipped_loop import SkippedLoop


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.back = nn.Linear(9, 6), nn.Linear(9, 6)

    def step(self, x, hidden):
        return torch.tanh(self.cell(torch.cat([x, hidden], 1)))


class Elements(Net):
    def forward(self, xs, done):
        hidden, outputs = xs.new_zeros(xs.shape[1], 6), []
        for x in xs.unbind(0):
            hidden = self.step(x, hidden)
            outputs.append(hidden)
        return torch.stack(outputs), hidden


class Resets(Net):
    def forward(self, xs, done):
        hidden, outputs = xs.new_zeros(xs.shape[1], 6), []
        for t in range(len(xs)):
            hidden = self.step(xs[t], hidden * (1 - done[t]).unsqueeze(1))
            outputs.append(hidden)
        return {"all": torch.stack(outputs, 1), "mean": torch.stack(outputs).sum(0) / len(outputs)}


class BothWays(Net):
    def forward(self, xs, done):
        ahead, behind, there, back = *[xs.new_zeros(xs.shape[1], 6)] * 2, [], []
        for x in xs:
            ahead = self.step(x, ahead)
            there.append(ahead)
        for t in reversed(range(xs.shape[0])):
            behind = torch.tanh(self.back(torch.cat([xs[t], behind], 1)))
            back.append(behind)
        return torch.cat([torch.stack(there), torch.stack(back[::-1])], -1)


class Averages(Net):
    """Steps of elementwise ops alone."""

    def forward(self, xs, done):
        mean, outputs = xs.new_zeros(xs.shape[1:]), []
        for t in range(len(xs)):
            mean = 0.9 * mean * (1 - done[t]).unsqueeze(1) + torch.tanh(xs[t])
            outputs.append(mean)
        return torch.stack(outputs), mean


class Sums(Net):
    """Of the states of all steps, as a list has them."""

    def forward(self, xs, done):
        hidden, outputs = xs.new_zeros(xs.shape[1], 6), []
        for x in xs:
            hidden = self.step(x, hidden)
            outputs.append(hidden)
        half = outputs[0]
        for each in outputs[1:]:
            half = half + each
        return sum(outputs) / len(outputs), half / 2, sum(outputs[:4])


class Rows(Net):
    """Of tensors that were made ahead of the loop."""

    def forward(self, xs, done):
        states, outputs = xs.new_zeros(len(xs) + 1, xs.shape[1], 6), torch.empty_like(xs)
        for t in range(len(xs)):
            states[t + 1] = self.step(xs[t], states[t])
            outputs[t] = states[t + 1][:, :3] * 2
        return states * 1, outputs, states[1:].mean(0)


class InPlace(Net):
    """Sums, and a state, that steps change."""

    def forward(self, xs, done):
        hidden, loss, total = xs.new_zeros(xs.shape[1], 6), 0, xs.new_zeros(xs.shape[1], 6)
        for t in range(len(xs) - 1):
            hidden = self.step(xs[t], hidden)
            loss += (self.cell(xs.new_ones(2, 9) * hidden[:, :1])[:, :3] - xs[t + 1]).pow(2).mean()
            hidden *= 0.9
            total.add_(hidden)
        return loss / len(xs), total, hidden


class Decoder(Net):
    """Its net is called for each step, and what that gives is appended."""

    def __init__(self):
        super().__init__()
        self.net = nn.LSTM(3, 6)

    def forward(self, xs, done):
        state, outputs = None, xs.new_zeros(1, xs.shape[1], 6)
        for t in range(len(xs)):
            output, state = self.net(xs[t].unsqueeze(0), state)
            outputs = torch.cat([outputs, output], 0)
        return 2 * outputs[1:], state[1]


class PartOfRows(Net):
    """Of a tensor that is no result itself."""

    def forward(self, xs, done):
        states = xs.new_zeros(len(xs) + 1, xs.shape[1], 6)
        for t in range(len(xs)):
            states[t + 1] = self.step(xs[t], states[t])
        return states[1:]


class LastRow(Net):
    """A view of the other result."""

    def forward(self, xs, done):
        hidden, outputs = xs.new_zeros(xs.shape[1], 6), xs.new_zeros(len(xs), xs.shape[1], 6)
        for t in range(len(xs)):
            hidden = self.step(xs[t], hidden)
            outputs[t] = hidden
        return outputs, outputs[-1]


class Numbers(Net):
    """Of the steps, which are computed with."""

    def forward(self, xs, done):
        ends, hidden, outputs = 15 + done[0], xs.new_zeros(xs.shape[1], 6), []
        for t, x in enumerate(xs):
            hidden = torch.where((t < ends).unsqueeze(1), self.step(x, hidden), hidden)
            outputs.append(hidden)
        last = hidden
        for t in reversed(range(len(xs))):
            hidden = self.step(xs[t], hidden) * torch.cos(0.1 * ends.unsqueeze(1) * t)
        return torch.stack(outputs), last, hidden


class OtherAtTwenty(Elements):
    def forward(self, xs, done):
        states, last = super().forward(xs, done)
        return (2 * states if len(xs) == 20 else states), last


class WeightOfLength(Elements):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([torch.randn(6) for _ in range(25)])

    def forward(self, xs, done):
        return super().forward(xs, done)[0] * self.weights[len(xs)]


class Catching(Elements):
    def forward(self, xs, done):
        try:
            return super().forward(xs, done)
        except RuntimeError:
            raise
        except Exception:
            return xs.new_zeros(xs.shape[0], xs.shape[1], 6), xs[0]


class ListOfStates(Elements):
    def forward(self, xs, done):
        return list(super().forward(xs, done)[0])


def results_of(kind, lengths, monkeypatch, others=None):
    """The statistics behind calls of these lengths, whose results are eager execution's. others: of
    the sizes."""
    monkeypatch.setattr(weft.config, "verify", "first")
    torch.manual_seed(0)
    net = kind().double().eval()
    along = {0: weft.Range(2, 24), **(others or {})}
    compiled = weft.compile(net, shapes={"xs": along, "done": along})
    for steps in lengths:
        xs = torch.randn(steps, 2, 3, dtype=torch.float64)
        done = (torch.rand(steps, 2) < 0.2).double()
        for _ in range(2):
            torch.testing.assert_close(compiled(xs, done), net(xs, done), rtol=1e-12, atol=1e-12)
    return compiled.stats()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "kind",
    [Elements, Resets, BothWays, Averages, Sums, Rows, InPlace, Decoder, PartOfRows, LastRow],
)
def test_lengths_share_a_program(kind, no_grad, monkeypatch):
    stats = results_of(kind, (19, 24, 9, 20), monkeypatch)
    assert stats["graphs"] == 1 and not stats["breaks"]
    assert list(stats["ranges"]) == ["f64[8..24, 2, 3], f64[8..24, 2]"]


def test_numbers_of_steps_are_a_sequence(no_grad, monkeypatch):
    """Its second loop begins with a state that the first one has left."""
    stats = results_of(Numbers, (19, 24, 9), monkeypatch)
    assert stats["graphs"] == 1 and not stats["breaks"]
    assert list(stats["ranges"]) == ["f64[8..24, 2, 3], f64[8..24, 2]"]


def test_a_length_at_which_the_code_does_something_else(no_grad, monkeypatch):
    stats = results_of(OtherAtTwenty, (19, 20, 18), monkeypatch)
    assert stats["graphs"] == 2 and not stats["breaks"]


@pytest.mark.at_length
def test_other_weights_at_each_length(no_grad, monkeypatch):
    stats = results_of(WeightOfLength, (19, 18), monkeypatch)
    assert stats["graphs"] == 2 and not stats["breaks"]


def test_the_trace_with_symbols_ends_at_a_loop(no_grad, monkeypatch):
    ended, export, end = mmap.mmap(-1, 1), symbolic_trace.exported_with_symbols, SkippedLoop.end

    def counting(*args):
        def counted(loop):
            ended[0] += 1
            end(loop)

        SkippedLoop.end = counted  # in a process of its own
        return export(*args)

    monkeypatch.setattr(symbolic_trace, "exported_with_symbols", counting)
    stats = results_of(Catching, (19, 18), monkeypatch, {1: weft.Range(2, 4)})
    assert stats["graphs"] == 1 and not stats["breaks"]
    assert list(stats["ranges"]) == ["f64[8..24, 2..4, 3], f64[8..24, 2..4]"]
    assert ended[0] == 0


def test_short_loops_have_programs_of_their_own(no_grad, monkeypatch):
    stats = results_of(Elements, (3, 19, 2), monkeypatch)
    assert stats["graphs"] == 3 and "f64[8..24, 2, 3], f64[8..24, 2]" in stats["ranges"]


def test_a_short_sequence_comes_first(no_grad, monkeypatch):
    stats = results_of(Elements, (8, 19, 10), monkeypatch)
    assert stats["graphs"] == 1 and not stats["breaks"]


@pytest.mark.at_length
def test_as_many_results_as_steps(no_grad, monkeypatch):
    stats = results_of(ListOfStates, (19, 18), monkeypatch)
    assert stats["graphs"] == 2 and not stats["breaks"]
    # Of one length each; the states are a list, and the other argument is not read.
    assert [each.partition(",")[0] for each in stats["ranges"]] == ["f64[19..19", "f64[18..18"]
