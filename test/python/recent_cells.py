# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrences of structured cells, linear attention and others, as loops of Python over time.
Inputs are (time, batch, `INPUTS`); results are (time, batch, ...) tensors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from published_cells import INPUTS, LSTM, WIDTH, Loop
from torch import nn

HEADS, HEAD = 2, 4


class ChildSumTree(Loop):
    """Tai et al. 2015, equations 2 to 8, of a tree in which a node's children are the two before
    it: lists that are read by number, of which the first have fewer."""

    gates = 3

    def __init__(self):
        super().__init__()
        self.forget, self.again = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, xs):
        hiddens, memories = [], []
        for t in range(len(xs)):
            children = [child for child in (t - 1, t - 2) if child >= 0]
            hidden = memory = self.zeros(xs, 1, WIDTH)
            if children:
                hidden = torch.stack([hiddens[child] for child in children], 1)
                memory = torch.stack([memories[child] for child in children], 1)
            gates = self.enter(xs[t]) + F.linear(hidden.sum(1), self.recall.weight)
            enter, leave, new = gates.chunk(3, -1)
            keep = torch.sigmoid(self.forget(xs[t]).unsqueeze(1) + self.again(hidden))
            memories.append(torch.sigmoid(enter) * torch.tanh(new) + (keep * memory).sum(1))
            hiddens.append(torch.sigmoid(leave) * torch.tanh(memories[-1]))
        return torch.stack(hiddens)


class HyperLSTM(LSTM):
    """Ha et al. 2017, equations 10 to 13: a small LSTM scales the rows of the weights."""

    def __init__(self):
        super().__init__()
        self.small = nn.LSTMCell(INPUTS + WIDTH, 4)
        self.scales = nn.ModuleList(nn.Linear(4, 4 * WIDTH) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(4))

    def initial(self, xs):
        return *super().initial(xs), self.zeros(xs, 4), self.zeros(xs, 4)

    def step(self, x, state):
        hidden, memory, *small = state
        small = self.small(torch.cat([x, hidden], -1), small)
        of_x, of_h = (scale(small[0]) for scale in self.scales)
        gates = (of_x * self.enter(x) + of_h * self.recall(hidden)).chunk(4, 1)
        enter, keep, new, leave = (norm(gate) for norm, gate in zip(self.norms, gates, strict=True))
        memory = torch.sigmoid(keep) * memory + torch.sigmoid(enter) * torch.tanh(new)
        hidden = torch.sigmoid(leave) * torch.tanh(memory)
        return (hidden, memory, *small), hidden


class RecurrentBatchNorm(LSTM):
    """Cooijmans et al. 2017, equations 6 to 8, with statistics of all steps in one: each step
    writes them."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.BatchNorm1d(4 * WIDTH) for _ in range(2))
        self.norm = nn.BatchNorm1d(WIDTH)

    def step(self, x, state):
        hidden, memory = state
        gates = self.norms[0](self.enter(x)) + self.norms[1](self.recall(hidden))
        enter, keep, new, leave = gates.chunk(4, 1)
        memory = torch.sigmoid(keep) * memory + torch.sigmoid(enter) * torch.tanh(new)
        hidden = torch.sigmoid(leave) * torch.tanh(self.norm(memory))
        return (hidden, memory), hidden


class Heads(nn.Module):
    """Queries, keys and values of several heads."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.gate = (nn.Linear(INPUTS, HEADS * HEAD) for _ in range(4))
        self.norm = nn.GroupNorm(HEADS, HEADS * HEAD)


class Retention(Heads):
    """Sun et al. 2023, equations 6 and 8: a decay for each head, norms by groups."""

    def forward(self, xs):
        steps, batch, _ = xs.shape
        decay = 1 - 2.0 ** (-5 - torch.arange(HEADS, dtype=xs.dtype))
        state, outputs = xs.new_zeros(batch, HEADS, HEAD, HEAD), []
        for n in range(steps):
            q, k, v = (each(xs[n]).view(batch, HEADS, HEAD) for each in (self.q, self.k, self.v))
            state = decay.view(1, -1, 1, 1) * state + k.unsqueeze(-1) * v.unsqueeze(-2)
            read = (q.unsqueeze(-2) @ state).squeeze(-2).reshape(batch, -1)
            outputs.append(F.silu(self.gate(xs[n])) * self.norm(read))
        return torch.stack(outputs)


class GatedLinearAttention(Heads):
    """Yang et al. 2024, equation 4, batch first, with outputs that are written in place."""

    def forward(self, xs):
        batch = xs.shape[1]

        def heads(map_):
            return map_(xs.transpose(0, 1)).view(batch, -1, HEADS, HEAD).transpose(1, 2)

        q, k, v = map(heads, (self.q, self.k, self.v))
        decay = (F.logsigmoid(heads(self.gate)) / 16).exp()
        state, outputs = xs.new_zeros(batch, HEADS, HEAD, HEAD), torch.zeros_like(v)
        for i in range(len(xs)):
            state = state * decay[:, :, i, :, None] + k[:, :, i, :, None] * v[:, :, i, None, :]
            outputs[:, :, i] = (q[:, :, i, :, None] * state).sum(-2)
        return outputs.transpose(1, 2).reshape(batch, len(xs), -1).transpose(0, 1)


class RollingConvolution(Loop):
    """Steps of Mamba as it decodes: a window of inputs that is rolled and written in place, then a
    selective update of the state."""

    def __init__(self):
        super().__init__()
        self.window, self.rate = nn.Parameter(torch.randn(WIDTH, 4)), nn.Linear(WIDTH, WIDTH)
        self.select = nn.Linear(WIDTH, 2 * HEAD)
        self.log = nn.Parameter(torch.rand(WIDTH, HEAD))

    def forward(self, xs):
        window, state = self.zeros(xs, WIDTH, 4), self.zeros(xs, WIDTH, HEAD)
        outputs = []
        for x in xs:
            window = torch.roll(window, shifts=-1, dims=-1)
            window[:, :, -1] = self.enter(x)
            x = F.silu((window * self.window).sum(-1))
            rate = F.softplus(self.rate(x))[..., None]
            b, c = self.select(x).split(HEAD, dim=-1)
            state = state * torch.exp(-rate * self.log.exp()) + x[..., None] * rate * b[:, None]
            outputs.append((state @ c.unsqueeze(-1)).squeeze(-1))
        return torch.stack(outputs)


class RealGatedUnit(Loop):
    """RG-LRU, De et al. 2024, equations 1 to 4; the first step's input is not scaled."""

    gates = 2

    def __init__(self):
        super().__init__()
        self.map, self.decay = nn.Linear(INPUTS, WIDTH), nn.Parameter(torch.rand(WIDTH))

    def forward(self, xs):
        hidden, outputs = self.zeros(xs), []
        for t, x in enumerate(xs):
            reset, enter = torch.sigmoid(self.enter(x)).chunk(2, -1)
            log = -8.0 * reset * F.softplus(self.decay)
            scale = torch.sqrt(1 - torch.exp(2 * log)) if t > 0 else 1.0
            hidden = torch.exp(log) * hidden + scale * (enter * self.map(x))
            outputs.append(hidden)
        return torch.stack(outputs)


class RungeKutta(Loop):
    """A neural ODE by the classical method, whose force knows the time."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(WIDTH + INPUTS + 1, 8), nn.Linear(8, WIDTH)

    def force(self, t, y, x):
        time = torch.full_like(y[:, :1], t)
        return self.outer(torch.tanh(self.inner(torch.cat([y, x, time], -1))))

    def forward(self, xs):
        y, outputs, dt = self.zeros(xs), [], 0.1
        for n in range(len(xs)):
            t, x = n * dt, xs[n]
            k1 = self.force(t, y, x)
            k2 = self.force(t + dt / 2, y + dt / 2 * k1, x)
            k3 = self.force(t + dt / 2, y + dt / 2 * k2, x)
            k4 = self.force(t + dt, y + dt * k3, x)
            y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            outputs.append(y)
        return torch.stack(outputs)


class DiffusionConvolution(nn.Module):
    """DCRNN, Li et al. 2018, equations 2 and 5: gates are convolutions on a graph."""

    def __init__(self):
        super().__init__()
        self.register_buffer("walk", torch.softmax(torch.randn(INPUTS, INPUTS), -1))
        self.gates, self.new = nn.Linear(12, 6), nn.Linear(12, 3)

    def diffused(self, x, hidden):
        first = torch.cat([x, hidden], -1)
        second = torch.einsum("nm,bmf->bnf", self.walk, first)
        third = 2 * torch.einsum("nm,bmf->bnf", self.walk, second) - first
        return torch.cat([first, second, third], -1)

    def forward(self, xs):
        hidden, outputs = xs.new_zeros(xs.shape[1], INPUTS, 3), []
        for x in xs.unsqueeze(-1):
            reset, update = torch.sigmoid(self.gates(self.diffused(x, hidden))).split(3, -1)
            new = torch.tanh(self.new(self.diffused(x, reset * hidden)))
            hidden = update * hidden + (1 - update) * new
            outputs.append(hidden.flatten(1))
        return torch.stack(outputs)


class SegmentMemory(Heads):
    """Attention of each step to the four before it, a memory by cat and slice (Dai et al. 2019)."""

    def forward(self, xs):
        batch = xs.shape[1]
        memory, outputs = xs.new_zeros(batch, 4, INPUTS), []
        for x in xs:
            context = torch.cat([memory, x.unsqueeze(1)], 1)

            def heads(map_, of):
                return map_(of).view(batch, -1, HEADS, HEAD).transpose(1, 2)

            given = heads(self.q, x.unsqueeze(1)), heads(self.k, context), heads(self.v, context)
            read = F.scaled_dot_product_attention(*given).transpose(1, 2).flatten(1)
            read = self.norm(read + self.gate(x))
            memory = torch.cat([memory, torch.tanh(read[:, None, :INPUTS])], 1)[:, -4:]
            outputs.append(read)
        return torch.stack(outputs)


class HierarchicalMultiscale(Loop):
    """Chung et al. 2017, equations 1 to 7, of two layers: boundaries with straight-through
    gradients."""

    def __init__(self):
        super().__init__()
        self.low = nn.Linear(INPUTS + 2 * WIDTH, 4 * WIDTH + 1)
        self.high = nn.Linear(2 * WIDTH, 4 * WIDTH)

    def initial(self, xs):
        zeros = self.zeros(xs)
        return zeros, zeros, zeros, zeros, self.zeros(xs, 1)

    def step(self, x, state):
        low, memory, high, upper, boundary = state
        gates = self.low(torch.cat([x, low, boundary * high], -1))
        enter, keep, leave, new = gates[:, :-1].chunk(4, -1)
        added = torch.sigmoid(enter) * torch.tanh(new)
        memory = torch.where(boundary > 0.5, added, torch.sigmoid(keep) * memory + added)
        low = torch.sigmoid(leave) * torch.tanh(memory)
        slope = torch.clamp((gates[:, -1:] + 1) / 2, 0, 1)
        boundary = (slope > 0.5).to(slope.dtype) + slope - slope.detach()
        enter, keep, leave, new = self.high(torch.cat([low, high], -1)).chunk(4, -1)
        next_ = torch.sigmoid(keep) * upper + torch.sigmoid(enter) * torch.tanh(new)
        upper = torch.where(boundary > 0.5, next_, upper)
        high = torch.where(boundary > 0.5, torch.sigmoid(leave) * torch.tanh(next_), high)
        return (low, memory, high, upper, boundary), torch.cat([low, high], -1)


class EchoState(Loop):
    """Jaeger 2001: a reservoir without gradients, and a layer that reads its states."""

    def forward(self, xs):
        hidden, states = self.zeros(xs), []
        with torch.no_grad():
            for x in xs:
                hidden = 0.7 * hidden + 0.3 * torch.tanh(self.enter(x) + 0.5 * hidden)
                states.append(hidden)
        return self.recall(torch.stack(states))


RECENT = [
    ChildSumTree,
    HyperLSTM,
    RecurrentBatchNorm,
    Retention,
    GatedLinearAttention,
    RollingConvolution,
    RealGatedUnit,
    RungeKutta,
    DiffusionConvolution,
    SegmentMemory,
    HierarchicalMultiscale,
    EchoState,
]
