# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State spaces, memories and differential equations of the literature, as loops of Python over
time. Inputs are (time, batch, `INPUTS`); results are (time, batch, ...) tensors."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from published_cells import INPUTS, WIDTH, Loop
from torch import nn


class NeuralTuringMachine(Loop):
    """Graves et al. 2014, section 3: content addressing, a shift, a sharpened weighting, erase and
    add, with a controller of one layer."""

    SLOTS, WORD = 4, 3

    def __init__(self):
        super().__init__()
        self.control = nn.Linear(INPUTS + self.WORD, WIDTH)
        self.head = nn.Linear(WIDTH, 3 * self.WORD + 3 + 3)

    def initial(self, xs):
        memory = self.zeros(xs, self.SLOTS, self.WORD) + 0.1
        weights = self.zeros(xs, self.SLOTS) + 1 / self.SLOTS
        return memory, weights, self.zeros(xs, self.WORD)

    def step(self, x, state):
        memory, weights, read = state
        hidden = torch.tanh(self.control(torch.cat([x, read], 1)))
        head = self.head(hidden)
        key, erase, add, shift, others = head.split([self.WORD] * 3 + [3, 3], 1)
        strength, gate, sharp = others.unbind(1)
        close = F.cosine_similarity(memory, key[:, None], dim=2)
        content = torch.softmax(F.softplus(strength)[:, None] * close, 1)
        gate = torch.sigmoid(gate)[:, None]
        weights = gate * content + (1 - gate) * weights
        shift = torch.softmax(shift, 1)
        weights = sum(
            shift[:, by, None] * torch.roll(weights, by - 1, 1) for by in range(shift.shape[1])
        )
        weights = (weights + 1e-6) ** (1 + F.softplus(sharp))[:, None]
        weights = weights / weights.sum(1, keepdim=True)
        erased = memory * (1 - weights[:, :, None] * torch.sigmoid(erase)[:, None])
        memory = erased + weights[:, :, None] * torch.tanh(add)[:, None]
        read = torch.bmm(weights[:, None], memory)[:, 0]
        return (memory, weights, read), torch.cat([hidden, read], 1)


class LegendreMemory(Loop):
    """Voelker et al. 2019, equations 1 to 7."""

    ORDER, LENGTH = 4, 20.0

    def __init__(self):
        super().__init__()
        order = torch.arange(self.ORDER, dtype=torch.float64)
        row, column = order[:, None], order[None]
        sign = torch.where(row < column, -1.0, (-1.0) ** (row - column + 1))
        a = (2 * row + 1) * sign / self.LENGTH
        b = ((2 * order + 1) * (-1.0) ** order / self.LENGTH)[:, None]
        self.register_buffer("a", torch.matrix_exp(a).float())
        self.register_buffer("b", b.float())
        self.e_x, self.e_h = nn.Linear(INPUTS, 1, bias=False), nn.Linear(WIDTH, 1, bias=False)
        self.e_m = nn.Linear(self.ORDER, 1, bias=False)
        self.w_m = nn.Linear(self.ORDER, WIDTH, bias=False)

    def initial(self, xs):
        return self.zeros(xs), self.zeros(xs, self.ORDER)

    def step(self, x, state):
        hidden, memory = state
        u = self.e_x(x) + self.e_h(hidden) + self.e_m(memory)
        memory = memory @ self.a.T + u @ self.b.T
        hidden = torch.tanh(self.enter(x) + self.recall(hidden) + self.w_m(memory))
        return (hidden, memory), hidden


class StateSpace(nn.Module):
    """The parameters of the two state spaces below."""

    STATE = 4

    def __init__(self):
        super().__init__()
        self.log_rate = nn.Parameter(torch.randn(WIDTH, self.STATE) * 0.3)
        self.frequency = nn.Parameter(torch.randn(WIDTH, self.STATE))
        self.c = nn.Parameter(torch.randn(WIDTH, self.STATE, 2))
        self.enter = nn.Linear(INPUTS, WIDTH)


class DiagonalStateSpace(StateSpace):
    """S4D, Gu et al. 2022, in real numbers: pairs of real and imaginary parts."""

    def __init__(self):
        super().__init__()
        self.d, self.log_dt = nn.Parameter(torch.randn(WIDTH)), nn.Parameter(torch.randn(WIDTH))

    def forward(self, xs):
        us = self.enter(xs)
        dt = torch.exp(self.log_dt - 2)[:, None]
        size, angle = torch.exp(-torch.exp(self.log_rate) * dt), self.frequency * dt
        a_re, a_im = size * torch.cos(angle), size * torch.sin(angle)
        re = im = us.new_zeros(us.shape[1], WIDTH, self.STATE)
        outputs = []
        for u in us:
            re, im = a_re * re - a_im * im + dt * u[..., None], a_re * im + a_im * re
            outputs.append((self.c[..., 0] * re - self.c[..., 1] * im).sum(-1) + self.d * u)
        return torch.stack(outputs)


class ComplexStateSpace(StateSpace):
    """`DiagonalStateSpace` in complex numbers."""

    def forward(self, xs):
        us = self.enter(xs)
        a = torch.exp(torch.complex(-torch.exp(self.log_rate), self.frequency) * 0.1)
        c = torch.view_as_complex(self.c)
        state = torch.zeros(us.shape[1], WIDTH, self.STATE, dtype=a.dtype)
        outputs = []
        for u in us:
            state = a * state + u[..., None]
            outputs.append(2 * (c * state).sum(-1).real)
        return torch.stack(outputs)


class TimeMix(nn.Module):
    """RWKV-4, Peng et al. 2023, equations 11 to 16, with the stable form of its appendix D."""

    def __init__(self):
        super().__init__()
        self.receive, self.key, self.value = (
            nn.Linear(INPUTS, WIDTH, bias=False) for _ in range(3)
        )
        self.mu = nn.Parameter(torch.rand(3, INPUTS))
        self.decay, self.bonus = nn.Parameter(torch.randn(WIDTH)), nn.Parameter(torch.randn(WIDTH))
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, xs):
        last = torch.zeros_like(xs[0])
        a = b = xs.new_zeros(xs.shape[1], WIDTH)
        p, outputs = a - 1e38, []
        decay = -torch.exp(self.decay)
        for t in range(xs.shape[0]):
            x = xs[t]
            mixed = [x * mu + last * (1 - mu) for mu in self.mu]
            r, k, v = (
                torch.sigmoid(self.receive(mixed[0])),
                self.key(mixed[1]),
                self.value(mixed[2]),
            )
            q = torch.maximum(p, self.bonus + k)
            e1, e2 = torch.exp(p - q), torch.exp(self.bonus + k - q)
            wkv = (e1 * a + e2 * v) / (e1 * b + e2)
            q = torch.maximum(p + decay, k)
            e1, e2 = torch.exp(p + decay - q), torch.exp(k - q)
            a, b, p, last = e1 * a + e2 * v, e1 * b + e2, q, x
            outputs.append(self.out(r * wkv))
        return torch.stack(outputs)


class SelectiveScan(nn.Module):
    """Mamba, Gu and Dao 2023, algorithm 2, batch first, as its reference implementation has it."""

    STATE = 4

    def __init__(self):
        super().__init__()
        self.enter, self.to_dt = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.to_bc = nn.Linear(WIDTH, 2 * self.STATE, bias=False)
        self.a_log = nn.Parameter(
            torch.log(torch.arange(1, self.STATE + 1).float()).repeat(WIDTH, 1)
        )
        self.d = nn.Parameter(torch.ones(WIDTH))

    def forward(self, xs):
        u = self.enter(xs.transpose(0, 1))
        delta = F.softplus(self.to_dt(u))
        b, c = self.to_bc(u).chunk(2, -1)
        a = -torch.exp(self.a_log)
        delta_a = torch.exp(torch.einsum("bld,dn->bldn", delta, a))
        delta_b_u = torch.einsum("bld,bln,bld->bldn", delta, b, u)
        state, ys = u.new_zeros(u.shape[0], WIDTH, self.STATE), []
        for i in range(u.shape[1]):
            state = delta_a[:, i] * state + delta_b_u[:, i]
            ys.append(torch.einsum("bdn,bn->bd", state, c[:, i]))
        y = torch.stack(ys, 1)
        return (y + u * self.d).transpose(0, 1)


class MLSTM(nn.Module):
    """xLSTM, Beck et al. 2024, equations 19 to 27: a matrix as memory."""

    def __init__(self):
        super().__init__()
        self.qkv, self.gates = nn.Linear(INPUTS, 3 * WIDTH), nn.Linear(INPUTS, 2)
        self.leave = nn.Linear(INPUTS, WIDTH)

    def forward(self, xs):
        batch = xs.shape[1]
        memory, norm = xs.new_zeros(batch, WIDTH, WIDTH), xs.new_zeros(batch, WIDTH)
        largest, outputs = xs.new_zeros(batch, 1), []
        for x in xs:
            q, k, v = self.qkv(x).chunk(3, -1)
            k = k / math.sqrt(WIDTH)
            enter, keep = self.gates(x).chunk(2, -1)
            keep = F.logsigmoid(keep)
            before, largest = largest, torch.maximum(keep + largest, enter)
            keep, enter = torch.exp(keep + before - largest), torch.exp(enter - largest)
            memory = keep[..., None] * memory + enter[..., None] * (v[:, :, None] @ k[:, None, :])
            norm = keep * norm + enter * k
            bound = torch.maximum((norm * q).sum(-1, keepdim=True).abs(), torch.exp(-largest))
            read = (memory @ q[..., None]).squeeze(-1) / bound
            outputs.append(torch.sigmoid(self.leave(x)) * read)
        return torch.stack(outputs)


class EulerSteps(Loop):
    """A neural ODE (Chen et al. 2018) by Euler's method, five steps for each input."""

    def step(self, x, hidden):
        force = self.enter(x)
        for _ in range(5):
            hidden = hidden + 0.1 * torch.tanh(self.recall(hidden) + force)
        return hidden, hidden


class LiquidTimeConstant(Loop):
    """Hasani et al. 2021, algorithm 1: the fused solver."""

    def __init__(self):
        super().__init__()
        self.tau, self.a = nn.Parameter(torch.rand(WIDTH)), nn.Parameter(torch.randn(WIDTH))

    def step(self, x, hidden):
        for _ in range(3):
            f = torch.sigmoid(self.enter(x) + self.recall(hidden))
            hidden = (hidden + 0.1 * f * self.a) / (1 + 0.1 * (1 / (self.tau + 1) + f))
        return hidden, hidden


class FastWeights(Loop):
    """Ba et al. 2016b, equations 2 to 4: an outer product memory and layer norm, inner steps."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def initial(self, xs):
        return self.zeros(xs), self.zeros(xs, WIDTH, WIDTH)

    def step(self, x, state):
        hidden, fast = state
        sustained = self.enter(x) + self.recall(hidden)
        fast = 0.95 * fast + 0.5 * torch.bmm(hidden.unsqueeze(2), hidden.unsqueeze(1))
        inner = torch.tanh(sustained)
        for _ in range(2):
            inner = torch.tanh(
                self.norm(sustained + torch.bmm(inner.unsqueeze(1), fast).squeeze(1))
            )
        return (inner, fast), inner


class BahdanauDecoder(Loop):
    """Bahdanau et al. 2015: an encoder in both directions, and a decoder that attends to it."""

    def __init__(self):
        super().__init__()
        self.back = nn.GRUCell(INPUTS, WIDTH)
        self.ahead = nn.GRUCell(INPUTS, WIDTH)
        self.query, self.key = nn.Linear(WIDTH, 4), nn.Linear(2 * WIDTH, 4)
        self.score = nn.Linear(4, 1)
        self.decoder = nn.GRUCell(2 * WIDTH + INPUTS, WIDTH)
        self.out = nn.Linear(WIDTH, INPUTS)

    def forward(self, xs):
        ahead, back, aheads, backs = self.zeros(xs), self.zeros(xs), [], []
        for x in xs:
            ahead = self.ahead(x, ahead)
            aheads.append(ahead)
        for x in reversed(xs):
            back = self.back(x, back)
            backs.append(back)
        encoded = torch.cat([torch.stack(aheads), torch.stack(backs[::-1])], -1)
        keys, hidden, fed, outputs = self.key(encoded), ahead, xs[-1], []
        for _ in range(20):
            scores = self.score(torch.tanh(keys + self.query(hidden)[None])).squeeze(-1)
            read = (torch.softmax(scores, 0)[..., None] * encoded).sum(0)
            hidden = self.decoder(torch.cat([fed, read], 1), hidden)
            fed = self.out(hidden)
            outputs.append(fed)
        return torch.stack(outputs)


class GatedDeltaNet(nn.Module):
    """Yang et al. 2024, equation 10, with keys of length one."""

    def __init__(self):
        super().__init__()
        self.qkv, self.gates = nn.Linear(INPUTS, 3 * WIDTH), nn.Linear(INPUTS, 2)

    def forward(self, xs):
        state, outputs = xs.new_zeros(xs.shape[1], WIDTH, WIDTH), []
        for x in xs.unbind():
            q, k, v = self.qkv(x).chunk(3, -1)
            k = F.normalize(k, dim=-1)
            alpha, beta = torch.sigmoid(self.gates(x)).unsqueeze(-1).unbind(1)
            state = state * alpha[..., None]
            seen = torch.einsum("bvk,bk->bv", state, k)
            state = state + torch.einsum("bv,bk->bvk", beta * (v - seen), k)
            outputs.append(torch.einsum("bvk,bk->bv", state, q))
        return torch.stack(outputs)


class CoupledOscillators(Loop):
    """coRNN, Rusch and Mishra 2021, equation 3."""

    def __init__(self):
        super().__init__()
        self.damp = nn.Linear(WIDTH, WIDTH, bias=False)

    def initial(self, xs):
        return self.zeros(xs), self.zeros(xs)

    def step(self, x, state):
        y, z = state
        force = torch.tanh(self.recall(y) + self.damp(z) + self.enter(x)) - 2.7 * y - 4.7 * z
        z = z + 0.042 * force
        y = y + 0.042 * z
        return (y, z), y


class StackAugmented(Loop):
    """Joulin and Mikolov 2015, equations 3 to 6: a stack that is pushed and popped softly."""

    DEPTH = 4

    def __init__(self):
        super().__init__()
        self.act, self.push = nn.Linear(WIDTH, 3), nn.Linear(WIDTH, 1)
        self.peek = nn.Linear(1, WIDTH, bias=False)

    def initial(self, xs):
        return self.zeros(xs), self.zeros(xs, self.DEPTH)

    def step(self, x, state):
        hidden, stack = state
        hidden = torch.sigmoid(self.enter(x) + self.recall(hidden) + self.peek(stack[:, :1]))
        push, pop, stay = torch.softmax(self.act(hidden), -1).split(1, -1)
        down = torch.cat([torch.sigmoid(self.push(hidden)), stack[:, :-1]], 1)
        up = torch.cat([stack[:, 1:], torch.zeros_like(stack[:, :1])], 1)
        stack = push * down + pop * up + stay * stack
        return (hidden, stack), hidden


class UnitaryEvolution(Loop):
    """A state that is rotated in planes and passed through modReLU (Arjovsky et al. 2016)."""

    def __init__(self):
        super().__init__()
        self.angle, self.bias = nn.Parameter(torch.randn(WIDTH // 2)), nn.Parameter(torch.randn(3))

    def step(self, x, hidden):
        re, im = hidden[:, ::2], hidden[:, 1::2]
        cos, sin = torch.cos(self.angle), torch.sin(self.angle)
        turned = torch.stack([cos * re - sin * im, sin * re + cos * im], -1)
        fresh = turned.roll(1, 1) + self.enter(x).view(x.shape[0], -1, 2)
        size = (fresh.square().sum(-1) + 1e-6).sqrt()
        fresh = (F.relu(size + self.bias) / size).unsqueeze(-1) * fresh
        hidden = fresh.flatten(1)
        return hidden, hidden


class AdaptiveSteps(Loop):
    """Adaptive computation time (Graves 2016) of a fixed number of inner steps: halting weights."""

    def __init__(self):
        super().__init__()
        self.halt = nn.Linear(WIDTH, 1)

    def step(self, x, hidden):
        left, mixed = torch.ones_like(hidden[:, :1]), torch.zeros_like(hidden)
        for inner in range(4):
            hidden = torch.tanh(self.enter(x) + self.recall(hidden) + (0.1 if inner == 0 else 0.0))
            share = left if inner == 3 else torch.sigmoid(self.halt(hidden)) * left
            left = left - share
            mixed = mixed + share * hidden
        return mixed, mixed


MEMORIES = [
    NeuralTuringMachine,
    LegendreMemory,
    DiagonalStateSpace,
    ComplexStateSpace,
    TimeMix,
    SelectiveScan,
    MLSTM,
    EulerSteps,
    LiquidTimeConstant,
    FastWeights,
    BahdanauDecoder,
    GatedDeltaNet,
    CoupledOscillators,
    StackAugmented,
    UnitaryEvolution,
    AdaptiveSteps,
]
