# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over time as research code has them: states in containers and attributes, masks made ahead,
truncated gradients, decoders that feed themselves. Inputs are (time, batch, `INPUTS`)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

INPUTS, WIDTH = 5, 6


class Research(nn.Module):
    """A module with layers for the loops below."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.recall = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.second, self.leave = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, INPUTS)
        self.lstm, self.gru = nn.LSTMCell(INPUTS, WIDTH), nn.GRUCell(INPUTS, WIDTH)
        self.rnn, self.upper = nn.RNNCell(INPUTS, WIDTH), nn.GRUCell(WIDTH, WIDTH)

    def zeros(self, xs: Tensor) -> Tensor:
        return xs.new_zeros(xs.shape[1], WIDTH)

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.enter(x) + self.recall(h))


class LSTMCells(Research):
    def forward(self, xs):
        state, outputs = None, []
        for x in xs:
            state = self.lstm(x, state)
            outputs.append(state[0])
        return torch.stack(outputs), state


class GRUCells(Research):
    def forward(self, xs):
        h, outputs = self.zeros(xs), []
        for t in range(xs.size(0)):
            h = self.gru(xs[t], h)
            outputs += [h]
        return torch.stack(outputs, dim=1)


class CellsInLayers(Research):
    """A ModuleList of cells, states in a list that is written to."""

    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(INPUTS, WIDTH), nn.GRUCell(WIDTH, WIDTH)])

    def forward(self, xs):
        states, outputs = [self.zeros(xs) for _ in self.cells], []
        for x in xs:
            for number, cell in enumerate(self.cells):
                x = states[number] = cell(x, states[number])
            outputs.append(x)
        return torch.stack(outputs), torch.stack(states)


class LSTMsInLayers(Research):
    """Tuples of states in a list, residuals between layers, and dropout that is off."""

    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTMCell(WIDTH, WIDTH) for _ in range(3)])
        self.drop = nn.Dropout(0.0)

    def forward(self, xs):
        states, outputs = [(self.zeros(xs), self.zeros(xs)) for _ in self.cells], []
        for x in self.enter(xs):
            after = []
            for cell, state in zip(self.cells, states, strict=True):
                h, c = cell(x, state)
                x = x + self.drop(h)
                after.append((h, c))
            states = after
            outputs.append(x)
        return torch.stack(outputs), states


class StateInDict(Research):
    def forward(self, xs):
        state = {"h": self.zeros(xs), "trace": self.zeros(xs)}
        outputs = []
        for x in xs:
            h = self.step(x, state["h"] + state["trace"])
            state = {"h": h, "trace": 0.9 * state["trace"] + 0.1 * torch.sigmoid(self.second(h))}
            outputs.append(state["h"])
        return {"outputs": torch.stack(outputs), **state}


class Memory(NamedTuple):
    hidden: Tensor
    cell: Tensor


class StateInNamedTuple(Research):
    def forward(self, xs):
        state, outputs = Memory(self.zeros(xs), self.zeros(xs)), []
        for x in xs:
            cell = 0.5 * state.cell + self.step(x, state.hidden)
            state = state._replace(hidden=torch.tanh(self.second(cell)), cell=cell)
            outputs.append(state.hidden)
        return torch.stack(outputs), state


@dataclass
class Belief:
    mean: Tensor
    deviation: Tensor


class StateInDataclass(Research):
    """A recurrent state space's filter."""

    def forward(self, xs):
        belief, outputs = Belief(self.zeros(xs), self.zeros(xs) + 1), []
        for x in xs:
            mean = self.step(x, belief.mean)
            belief = Belief(mean, F.softplus(self.second(mean)) + 0.1 * belief.deviation)
            outputs.append(torch.cat([belief.mean, belief.deviation], -1))
        return torch.stack(outputs)


class StateAsAttribute(Research):
    """During a call the state is an attribute of the module."""

    def forward(self, xs):
        self.state, outputs = self.zeros(xs), []
        for x in xs:
            outputs.append(self.advance(x))
        del self.state
        return torch.stack(outputs)

    def advance(self, x):
        self.state = self.step(x, self.state)
        return self.second(self.state)


class LearnedStart(Research):
    def __init__(self):
        super().__init__()
        self.start = nn.Parameter(torch.randn(1, WIDTH))

    def forward(self, xs):
        h, outputs = self.start.expand(xs.shape[1], -1), []
        for x in xs:
            h = self.step(x, h)
            outputs.append(h)
        return torch.stack(outputs)


class RaggedLengths(Research):
    """States stay as they are past the end of a sequence."""

    def forward(self, xs):
        steps, batch, _ = xs.shape
        lengths = torch.tensor([steps - 3 * each for each in range(batch)])
        mask = (torch.arange(steps)[:, None] < lengths).unsqueeze(-1)
        h, c, outputs = self.zeros(xs), self.zeros(xs), []
        for t in range(steps):
            new_h, new_c = self.lstm(xs[t], (h, c))
            h, c = torch.where(mask[t], new_h, h), torch.where(mask[t], new_c, c)
            outputs.append(h.masked_fill(~mask[t], 0.0))
        return torch.stack(outputs), h


class ShrinkingBatch(Research):
    """Sorted sequences: a step has only the rows of sequences that have not ended."""

    def forward(self, xs):
        steps, batch, _ = xs.shape
        h, outputs, last = self.zeros(xs), [], []
        for t in range(steps):
            left = batch - 3 * t // steps
            if left < h.shape[0]:
                last.append(h[left:])
                h = h[:left]
            h = self.step(xs[t, :left], h)
            outputs.append(h)
        return torch.cat(outputs), torch.cat([h, *reversed(last)])


class EarlyExit(Research):
    def forward(self, xs):
        h, outputs = self.zeros(xs), []
        for t, x in enumerate(xs):
            h = self.step(x, h)
            outputs.append(h)
            if t >= len(xs) - 3:
                break
        return torch.stack(outputs), outputs[-1]


class TruncatedBackward(Research):
    """States are detached every five steps."""

    def forward(self, xs):
        h, c, outputs = self.zeros(xs), self.zeros(xs), []
        for t, x in enumerate(xs):
            if t % 5 == 0:
                h, c = h.detach(), c.detach()
            h, c = self.lstm(x, (h, c))
            outputs.append(h)
        return torch.stack(outputs)


class ChunkedBackward(Research):
    """Backward truncated by chunks of the sequence, with a loss for each chunk."""

    def forward(self, xs):
        h, losses = self.zeros(xs), []
        for chunk in xs.split(16):
            h = h.detach()
            for x in chunk:
                h = self.gru(x, h)
                losses.append((self.leave(h) - x).pow(2).mean())
        return sum(losses) / len(losses)


class ZoneoutMasks(Research):
    """Masks that are inputs of the call, one for each step."""

    def forward(self, xs):
        keep = (torch.sin(torch.arange(xs.shape[0] * WIDTH) * 1.7) > 0).view(-1, 1, WIDTH)
        h, c, outputs = self.zeros(xs), self.zeros(xs), []
        for t in range(len(xs)):
            new_h, new_c = self.lstm(xs[t], (h, c))
            mask = keep[t].to(xs.dtype)
            h, c = mask * h + (1 - mask) * new_h, mask * c + (1 - mask) * new_c
            outputs.append(h)
        return torch.stack(outputs)


class VariationalMask(Research):
    """One mask of the state for all steps, drawn before the loop."""

    def forward(self, xs):
        mask = F.dropout(torch.ones_like(self.zeros(xs)), 0.3, self.training)
        h, outputs = self.zeros(xs), []
        for x in xs:
            h = self.step(x, h * mask)
            outputs.append(h)
        return torch.stack(outputs)


class LockedDropout(Research):
    """Dropout of inputs and outputs with one mask for all steps, with a loop in between."""

    def forward(self, xs):
        xs = xs * torch.bernoulli(torch.full_like(xs[:1], 0.7)) / 0.7
        h, outputs = self.zeros(xs), []
        for x in xs:
            h = self.gru(x, h)
            outputs.append(h)
        out = torch.stack(outputs)
        return out * torch.bernoulli(torch.full_like(out[:1], 0.7)) / 0.7


class RunningStatistics(Research):
    """A norm by running means, through which no gradients pass."""

    def forward(self, xs):
        h, mean, square, outputs = self.zeros(xs), self.zeros(xs), self.zeros(xs) + 1, []
        for x in xs:
            h = self.step(x, (h - mean) / (square + 1e-3).sqrt())
            mean = 0.9 * mean + 0.1 * h.detach()
            square = 0.9 * square + 0.1 * h.detach() ** 2
            outputs.append(h)
        return torch.stack(outputs)


class CosineAnnealing(Research):
    """Values computed from the step's number: its sine, and a decaying rate."""

    def forward(self, xs):
        h, outputs = self.zeros(xs), []
        for t, x in enumerate(xs):
            h = self.step(x, h) * (1 - t / len(xs))
            outputs.append(h)
        return torch.stack(outputs)


class PositionEmbeddings(Research):
    def __init__(self):
        super().__init__()
        self.places = nn.Embedding(64, WIDTH)

    def forward(self, xs):
        h, outputs = self.zeros(xs), []
        for t, x in enumerate(xs):
            h = torch.tanh(self.enter(x) + self.recall(h) + self.places.weight[t])
            outputs.append(h)
        return torch.stack(outputs)


class Preallocated(Research):
    """Outputs are rows of a tensor that is made before the loop."""

    def forward(self, xs):
        outputs = torch.empty(*xs.shape[:2], WIDTH, dtype=xs.dtype)
        h = self.zeros(xs)
        for t in range(xs.shape[0]):
            h = self.gru(xs[t], h)
            outputs[t] = h
        return outputs


class StatesByName(Research):
    """Several streams in an OrderedDict, mixed at each step."""

    def forward(self, xs):
        states = OrderedDict((name, self.zeros(xs)) for name in ("low", "high"))
        outputs = OrderedDict((name, []) for name in states)
        for x in xs:
            mixed = sum(states.values())
            states["low"] = self.step(x, mixed)
            states["high"] = self.upper(states["low"], states["high"])
            for name, state in states.items():
                outputs[name].append(state)
        return {name: torch.stack(each) for name, each in outputs.items()}


class GradientOfState(Research):
    """Gradients of the outputs of chosen steps alone."""

    def forward(self, xs):
        h, chosen = self.zeros(xs), []
        for t, x in enumerate(xs):
            h = self.gru(x, h)
            if t % 7 == 0 or t == len(xs) - 1:
                chosen.append(self.leave(h))
        return torch.stack(chosen)


class Mixture(Research):
    """Matrices as states, einsum and outer products."""

    def forward(self, xs):
        memory = xs.new_zeros(xs.shape[1], WIDTH, WIDTH)
        outputs = []
        for x in xs:
            key, value = self.enter(x).softmax(-1), torch.tanh(self.enter(x))
            read = torch.einsum("bij,bj->bi", memory, key)
            memory = memory + torch.einsum("bi,bj->bij", value - read, key)
            outputs.append(self.second(torch.einsum("bij,bj->bi", memory, key)))
        return torch.stack(outputs), memory


LOOPS = [
    LSTMCells,
    GRUCells,
    CellsInLayers,
    LSTMsInLayers,
    StateInDict,
    StateInNamedTuple,
    StateInDataclass,
    StateAsAttribute,
    LearnedStart,
    RaggedLengths,
    ShrinkingBatch,
    EarlyExit,
    TruncatedBackward,
    ChunkedBackward,
    ZoneoutMasks,
    VariationalMask,
    LockedDropout,
    RunningStatistics,
    CosineAnnealing,
    PositionEmbeddings,
    Preallocated,
    StatesByName,
    GradientOfState,
    Mixture,
]
