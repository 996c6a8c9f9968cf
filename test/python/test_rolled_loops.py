# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of Python over time: traced step by step, compiled as loops."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from compiled_cases import check
from torch import nn
from torch._higher_order_ops.scan import scan

import weft


class Cell(nn.Module):
    """Parameters for the loops below. WIDTH: of the state."""

    WIDTH = 7

    def __init__(self, inputs: int = 5):
        super().__init__()
        self.enter = nn.Linear(inputs, 4 * self.WIDTH)
        self.recall = nn.Linear(self.WIDTH, 4 * self.WIDTH)
        self.gate = nn.Linear(inputs, self.WIDTH)
        self.candidate = nn.Linear(inputs, self.WIDTH)
        self.again = nn.Linear(self.WIDTH, self.WIDTH)
        self.norm = nn.LayerNorm(4 * self.WIDTH)

    def zeros(self, x):
        return torch.zeros(x.shape[0], self.WIDTH, dtype=x.dtype)

    def lstm_step(self, gates, cell):
        enter, keep, leave, new = gates.chunk(4, 1)
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(enter) * torch.tanh(new)
        return torch.sigmoid(leave) * torch.tanh(cell), cell


class LayerNormLSTM(Cell):
    def forward(self, xs):
        hidden = cell = self.zeros(xs[0])
        outputs = []
        for x in xs.unbind(0):
            gates = self.norm(self.enter(x) + self.recall(hidden))
            hidden, cell = self.lstm_step(gates, cell)
            outputs.append(hidden)
        return torch.stack(outputs), hidden, cell


class BatchFirst(Cell):
    def forward(self, xs):
        xs = xs.transpose(0, 1)
        hidden = cell = self.zeros(xs[:, 0])
        outputs = []
        for step in range(xs.shape[1]):
            gates = self.enter(xs[:, step]) + self.recall(hidden)
            hidden, cell = self.lstm_step(gates, cell)
            outputs.append(hidden[:, None])
        return torch.cat(outputs, 1)


class Backwards(Cell):
    def forward(self, xs):
        hidden = self.zeros(xs[0])
        outputs = [None] * len(xs)
        for step in reversed(range(len(xs))):
            hidden = torch.tanh(self.gate(xs[step]) + self.again(hidden))
            outputs[step] = hidden
        return torch.stack(outputs), hidden


class BothWays(Cell):
    def forward(self, xs):
        return torch.cat([self.run(xs), self.run(xs.flip(0)).flip(0)], 2)

    def run(self, xs):
        hidden, outputs = self.zeros(xs[0]), []
        for x in xs:
            hidden = torch.tanh(self.gate(x) + self.again(hidden))
            outputs.append(hidden)
        return torch.stack(outputs)


class MinimalGated(Cell):
    """What depends on the input alone is computed step by step, too."""

    def forward(self, xs):
        hidden, outputs = self.zeros(xs[0]), []
        for x in xs:
            gate = torch.sigmoid(self.gate(x))
            hidden = (1 - gate) * hidden + gate * self.candidate(x)
            outputs.append(hidden)
        return torch.stack(outputs)


class Resets(Cell):
    def forward(self, xs):
        done = (xs[..., 0] > 1).to(xs.dtype)
        hidden, outputs = self.zeros(xs[0]), []
        for step in range(len(xs)):
            hidden = hidden * (1 - done[step])[:, None]
            hidden = torch.tanh(self.gate(xs[step]) + self.again(hidden))
            outputs.append(hidden)
        return torch.stack(outputs), hidden


class ExponentialGates(Cell):
    """The stabilised cell of xLSTM (Beck et al. 2024), equations 8 to 17."""

    def forward(self, xs):
        hidden = cell = count = self.zeros(xs[0])
        largest, outputs = hidden - 10, []
        for x in xs:
            new, enter, keep, leave = (self.enter(x) + self.recall(hidden)).chunk(4, 1)
            keep = F.logsigmoid(keep) + largest
            largest = torch.maximum(keep, enter)
            enter, keep = torch.exp(enter - largest), torch.exp(keep - largest)
            cell, count = keep * cell + enter * torch.tanh(new), keep * count + enter
            hidden = torch.sigmoid(leave) * cell / torch.clamp(count, min=1)
            outputs.append(hidden)
        return torch.stack(outputs), largest


class StackOfLayers(Cell):
    """All layers in one loop; the state of one is the input of the next."""

    def forward(self, xs):
        first = second = self.zeros(xs[0])
        outputs = []
        for x in xs:
            first = torch.tanh(self.gate(x) + self.again(first))
            second = torch.tanh(self.recall(first)[:, : self.WIDTH] + self.again(second))
            outputs.append(second)
        return torch.stack(outputs), first


class AttentionOverThePast(Cell):
    """The last states are a state; scores of each are contractions of states alone."""

    def forward(self, xs):
        hidden = self.zeros(xs[0])
        past, outputs = hidden[:, None].repeat(1, 4, 1), []
        for x in xs:
            scores = torch.softmax(torch.einsum("bkh,bh->bk", past, self.again(hidden)), -1)
            hidden = torch.tanh(self.gate(x) + torch.einsum("bk,bkh->bh", scores, past))
            past = torch.cat([past[:, 1:], hidden[:, None]], 1)
            outputs.append(hidden)
        return torch.stack(outputs)


class DeltaRule(Cell):
    """A matrix as the state (Schlag et al. 2021, equations 23 and 24)."""

    def forward(self, xs):
        keys, values = torch.softmax(self.gate(xs), -1), self.candidate(xs)
        state, outputs = xs.new_zeros(xs.shape[1], self.WIDTH, self.WIDTH), []
        for step in range(len(xs)):
            recalled = torch.einsum("bk,bkv->bv", keys[step], state)
            state = state + torch.einsum("bk,bv->bkv", keys[step], values[step] - recalled)
            outputs.append(torch.einsum("bk,bkv->bv", values[step], state))
        return torch.stack(outputs)


class SecondOrder(Cell):
    """Reads the states of the last two steps."""

    def forward(self, xs):
        hidden = before = self.zeros(xs[0])
        outputs = []
        for x in xs:
            fresh = self.gate(x) + self.again(hidden) - before
            hidden, before = torch.tanh(fresh), hidden
            outputs.append(hidden)
        return torch.stack(outputs)


class ListOfPastStates(Cell):
    def forward(self, xs):
        hidden = self.zeros(xs[0])
        past, outputs = [hidden] * 3, []
        for x in xs:
            scores = torch.softmax((torch.stack(past, 1) * self.again(hidden)[:, None]).sum(2), 1)
            seen = (scores[:, :, None] * torch.stack(past, 1)).sum(1)
            hidden = torch.tanh(self.gate(x) + seen)
            past = past[1:] + [hidden]
            outputs.append(hidden)
        return torch.stack(outputs)


class WritesRows(Cell):
    """Into a tensor that it made."""

    def forward(self, xs):
        states = xs.new_zeros(len(xs), xs.shape[1], self.WIDTH)
        hidden = self.zeros(xs[0])
        for step in range(len(xs)):
            hidden = torch.tanh(self.gate(xs[step]) + self.again(hidden))
            states[step] = hidden
        return states


class ListsOfLayers(Cell):
    """One layer after another; what the second reads is a list that the first appended to."""

    def forward(self, xs):
        hidden, sequence = self.zeros(xs[0]), []
        for x in xs.unbind(0):
            hidden = torch.tanh(self.gate(x) + self.again(hidden))
            sequence.append(hidden)
        hidden, outputs = self.zeros(xs[0]), []
        for x in reversed(sequence):
            hidden = torch.tanh(self.recall(x)[:, : self.WIDTH] + self.again(hidden))
            outputs.insert(0, hidden)
        return torch.stack([torch.cat(pair, 1) for pair in zip(sequence, outputs, strict=True)])


class BothWaysAtOnce(Cell):
    """Both directions in one loop, with cells of the same sizes."""

    def forward(self, xs):
        ahead = back = self.zeros(xs[0])
        outputs = []
        for step in range(len(xs)):
            ahead = torch.tanh(self.gate(xs[step]) + self.again(ahead))
            back = torch.tanh(self.candidate(xs[-1 - step]) + self.again(back))
            outputs.append((ahead, back))
        aheads, backs = zip(*outputs, strict=True)
        return torch.cat([torch.stack(aheads), torch.stack(backs[::-1])], 2)


class SumOfLosses(Cell):
    def forward(self, xs):
        hidden, losses = self.zeros(xs[0]), []
        for step in range(len(xs) - 1):
            hidden = torch.tanh(self.gate(xs[step]) + self.again(hidden))
            losses.append(F.mse_loss(hidden[:, :5], xs[step + 1]))
        return sum(losses)


class FeedsItself(Cell):
    """After the last element, from what it gave itself."""

    def forward(self, xs):
        hidden, outputs = self.zeros(xs[0]), []
        for x in xs:
            hidden = torch.tanh(self.gate(x) + self.again(hidden))
            outputs.append(hidden[:, :5])
        for _ in range(3):
            hidden = torch.tanh(self.gate(outputs[-1]) + self.again(hidden))
            outputs.append(hidden[:, :5])
        return torch.stack(outputs)


class SeveralOfAKind(Cell):
    """A step does the same four times (Runge and Kutta's method)."""

    def forward(self, xs):
        state, states = self.gate(xs[0]), []
        for _ in range(12):
            first = torch.tanh(self.again(state))
            second = torch.tanh(self.again(state + 0.05 * first))
            third = torch.tanh(self.again(state + 0.05 * second))
            fourth = torch.tanh(self.again(state + 0.1 * third))
            state = state + 0.1 / 6 * (first + 2 * second + 2 * third + fourth)
            states.append(state)
        return torch.stack(states)


class FirstStepDiffers(Cell):
    def forward(self, xs):
        hidden, outputs = None, []
        for x in xs:
            fresh = self.gate(x)
            hidden = torch.tanh(fresh if hidden is None else fresh + self.again(hidden))
            outputs.append(hidden)
        return torch.stack(outputs)


class NumberedSteps(Cell):
    def forward(self, xs):
        hidden = self.zeros(xs[0])
        for step, x in enumerate(xs):
            hidden = torch.tanh(self.again(hidden) + self.gate(x) * (step / len(xs)))
        return hidden


class ExchangedStates(Cell):
    def forward(self, xs):
        one, other = self.zeros(xs[0]), self.zeros(xs[0]) + 1
        for x in xs:
            one, other = other, torch.tanh(self.again(one) + self.gate(x))
        return one, other


ALL = [
    *(LayerNormLSTM, BatchFirst, Backwards, BothWays, MinimalGated, Resets, ExponentialGates),
    *(StackOfLayers, FirstStepDiffers, NumberedSteps, AttentionOverThePast, DeltaRule),
    *(SecondOrder, ListOfPastStates, WritesRows, BothWaysAtOnce, SumOfLosses, FeedsItself),
    *(ListsOfLayers, SeveralOfAKind),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ALL)
def test_loops(kind, dtype):
    compiled = check(kind().to(dtype), torch.randn(17, 3, 5, dtype=dtype))
    loops = compiled.ir("kernels").count("weft.loop @")
    # ListsOfLayers has two layers, and joins what they give step by step.
    assert loops == {BothWays: 2, ListsOfLayers: 3}.get(kind, 1)


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("kind", [LayerNormLSTM, Backwards, MinimalGated])
def test_short_loops(kind, steps):
    check(kind(), torch.randn(steps, 1, 5))


def test_states_that_change_places():
    check(ExchangedStates(), torch.randn(17, 3, 5))


def test_wide_states_on_all_threads(own_threads, no_grad):
    """Some kernels of a step are divided, others are not."""
    net, x, results = LayerNormLSTM(67), torch.randn(19, 130, 67), []
    check(net, x)
    for threads in (1, 2):
        weft.set_num_threads(threads)
        results.append(weft.compile(net, threads=2)(x)[0])
    assert torch.equal(*results)


def test_artifacts_do_not_grow_with_the_number_of_steps(no_grad):
    sizes = []
    for steps in (10, 100):
        compiled = weft.compile(Backwards())
        compiled(torch.randn(steps, 3, 5))
        sizes.append(Path(compiled.artifact_paths[0]).stat().st_size)
    assert sizes[1] <= 1.1 * sizes[0], sizes


def test_many_rows_that_are_cut_ahead(no_grad):
    net, xs = MinimalGated(), torch.randn(70, 1, 5)
    compiled = weft.compile(net)
    torch.testing.assert_close(compiled(xs), net(xs))
    assert compiled.ir("kernels").count("weft.loop @") == 1


def test_elementwise_steps_of_many_elements_are_fused(no_grad):
    """Whether their numbers differ, so that the compiler finds them, or not, so that the trace
    does. Of few elements they are loops."""

    def function(x, y):
        for step in range(70):
            x = x * 0.9 + 0.1 * step
        for _ in range(70):
            y = y * 0.9 + 0.1
        return x, y

    for size, loops in ((1025, 0), (32, 2)):
        compiled, x = weft.compile(function), torch.randn(size, dtype=torch.float64)
        for _ in range(2):
            torch.testing.assert_close(compiled(x, x + 1), function(x, x + 1))
        assert compiled.ir("kernels").count("weft.loop @") == loops


class Layers(nn.Module):
    """No recurrence: each layer has weights of its own."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(7, 7) for _ in range(9))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def test_layers_stay():
    compiled = check(Layers(), torch.randn(3, 7))
    assert "weft.loop" not in compiled.ir("kernels")


def all_states(x, weight):
    """Each is a result by itself."""
    states = [x]
    for _ in range(9):
        states.append(torch.tanh(states[-1] @ weight))
    return states


def test_states_that_are_read_one_by_one():
    compiled = check(all_states, torch.randn(3, 7), torch.randn(7, 7) / 9)
    assert compiled.ir("kernels").count("weft.loop @") == 1


class Characters(Cell):
    """An embedding, whose indices are checked at each step."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 5)

    def forward(self, ids):
        hidden = self.recall.weight.new_zeros(ids.shape[1], self.WIDTH)
        outputs = []
        for step in range(len(ids)):
            hidden = torch.tanh(self.gate(self.embed(ids[step])) + self.again(hidden))
            outputs.append(hidden)
        return torch.stack(outputs)


def test_checks_of_steps(no_grad):
    net, ids = Characters(), torch.randint(0, 10, (11, 3))
    compiled = check(net, ids)
    assert compiled.ir("kernels").count("weft.loop @") == 1
    ids[5, 1] = 10
    with pytest.raises(IndexError, match="index out of range in self"):
        compiled(ids)


class HigherOrderScan(Cell):
    """reverse: from the last element to the first."""

    def __init__(self, reverse: bool):
        super().__init__()
        self.reverse = reverse

    def forward(self, xs):
        def step(hidden, x):
            hidden = torch.tanh(self.gate(x) + self.again(hidden))
            return hidden, hidden * 2

        return scan(step, self.zeros(xs[0]), xs, reverse=self.reverse)


class MissingCharacters(Characters):
    """Dropout between the checks of the indices of two steps."""

    def forward(self, ids):
        hidden, outputs = torch.zeros(ids.shape[1], 7), []
        for now in ids:
            hidden = torch.tanh(self.gate(F.dropout(self.embed(now), 0.3)) + self.again(hidden))
            outputs.append(hidden)
        return torch.stack(outputs)


def test_checks_beside_draws():
    torch.manual_seed(0)
    net = MissingCharacters()
    compiled = weft.compile(net)
    ids = torch.randint(0, 10, (12, 3))

    def seeded(call, ids):
        torch.manual_seed(1)
        return call(ids)

    for _ in range(3):
        torch.testing.assert_close(seeded(compiled, ids), seeded(net, ids))
    assert compiled.ir("kernels").count("weft.loop @") == 1
    ids[7, 1] = 10
    left = []
    for call in (net, compiled):
        with pytest.raises(IndexError, match="index out of range in self"):
            seeded(call, ids)
        left.append(torch.get_rng_state())
    assert torch.equal(*left)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reverse", [False, True])
def test_higher_order_scans(reverse, dtype):
    compiled = check(HigherOrderScan(reverse).to(dtype), torch.randn(9, 3, 5, dtype=dtype))
    assert compiled.ir("kernels").count("weft.loop @") == 1


def sum_of_determinants(xs):
    def step(state, x):
        return state + torch.linalg.det(x), state * 1

    return scan(step, xs[0, 0, 0], xs)


def test_scans_of_what_pytorch_must_run_are_left_to_it(no_grad):
    xs = torch.randn(9, 3, 3)
    compiled = weft.compile(sum_of_determinants, capture="export")
    found, expected = compiled(xs), sum_of_determinants(xs)
    assert any("in the steps of a scan" in reason for reason in compiled.eager_reasons)
    torch.testing.assert_close(found, expected)
