# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gated recurrent cells of the literature, written as their papers have them: a loop of Python over
time. Inputs are (time, batch, `INPUTS`); results are (time, batch, ...) tensors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

INPUTS, WIDTH = 5, 6


class Loop(nn.Module):
    """A loop over time. gates: the number of maps of width `WIDTH` from the input and from the
    state. A step takes the input and the states, and gives the next states and the output."""

    gates = 1

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(INPUTS, self.gates * WIDTH)
        self.recall = nn.Linear(WIDTH, self.gates * WIDTH)

    def initial(self, xs: Tensor) -> object:
        return self.zeros(xs)

    def zeros(self, xs: Tensor, *sizes: int) -> Tensor:
        return xs.new_zeros(xs.shape[1], *(sizes or (WIDTH,)))

    def step(self, x: Tensor, state):
        raise NotImplementedError

    def forward(self, xs: Tensor) -> Tensor:
        state, outputs = self.initial(xs), []
        for x in xs.unbind(0):
            state, output = self.step(x, state)
            outputs.append(output)
        return torch.stack(outputs)


class IndRNN(Loop):
    """Li et al. 2018, equation 2."""

    def __init__(self):
        super().__init__()
        self.own = nn.Parameter(torch.rand(WIDTH))

    def step(self, x, hidden):
        hidden = F.relu(self.enter(x) + self.own * hidden)
        return hidden, hidden


class SRU(Loop):
    """Lei et al. 2018, equations 1 to 4."""

    gates = 4

    def __init__(self):
        super().__init__()
        self.keep, self.pass_ = (nn.Parameter(torch.randn(WIDTH)) for _ in range(2))

    def forward(self, xs):
        memory, outputs = self.zeros(xs), []
        mapped = self.enter(xs)
        for t in range(xs.shape[0]):
            new, keep, passed, skip = mapped[t].chunk(4, -1)
            keep = torch.sigmoid(keep + self.keep * memory)
            passed = torch.sigmoid(passed + self.pass_ * memory)
            memory = keep * memory + (1 - keep) * new
            outputs.append(passed * memory + (1 - passed) * skip)
        return torch.stack(outputs, 0)


class QRNN(nn.Module):
    """Bradbury et al. 2017, section 2: a convolution over time, then fo-pooling."""

    def __init__(self):
        super().__init__()
        self.convolve = nn.Conv1d(INPUTS, 3 * WIDTH, 2)

    def forward(self, xs):
        mapped = self.convolve(F.pad(xs.permute(1, 2, 0), (1, 0)))
        new, keep, leave = mapped.chunk(3, 1)
        new, keep, leave = torch.tanh(new), torch.sigmoid(keep), torch.sigmoid(leave)
        memory, outputs = torch.zeros_like(new[..., 0]), []
        for t in range(xs.shape[0]):
            memory = keep[..., t] * memory + (1 - keep[..., t]) * new[..., t]
            outputs.append(leave[..., t] * memory)
        return torch.stack(outputs)


class JANET(Loop):
    """van der Westhuizen and Lasenby 2018, equation 4, with chrono initialisation's beta."""

    gates = 2

    def step(self, x, memory):
        keep, new = (self.enter(x) + self.recall(memory)).split(WIDTH, 1)
        memory = torch.sigmoid(keep) * memory + (1 - torch.sigmoid(keep - 1)) * torch.tanh(new)
        return memory, memory


class MGU(Loop):
    """Zhou et al. 2016, equations 5 to 7."""

    gates = 2

    def step(self, x, hidden):
        enter_keep, enter_new = self.enter(x).chunk(2, 1)
        keep = torch.sigmoid(enter_keep + F.linear(hidden, self.recall.weight[:WIDTH]))
        new = torch.tanh(enter_new + F.linear(keep * hidden, self.recall.weight[WIDTH:]))
        hidden = (1 - keep) * hidden + keep * new
        return hidden, hidden


class LSTM(Loop):
    gates = 4

    def initial(self, xs):
        return self.zeros(xs), self.zeros(xs)

    def step(self, x, state):
        hidden, memory = state
        enter, keep, new, leave = (self.enter(x) + self.recall(hidden)).chunk(4, 1)
        memory = torch.sigmoid(keep) * memory + torch.sigmoid(enter) * torch.tanh(new)
        hidden = torch.sigmoid(leave) * torch.tanh(memory)
        return (hidden, memory), hidden


class PhasedLSTM(LSTM):
    """Neil et al. 2016, equations 6 to 10: a gate that opens periodically."""

    def __init__(self):
        super().__init__()
        self.period = nn.Parameter(torch.rand(WIDTH) * 5 + 2)
        self.shift, self.ratio = nn.Parameter(torch.rand(WIDTH)), 0.3

    def forward(self, xs):
        (hidden, memory), outputs = self.initial(xs), []
        for t, x in enumerate(xs):
            phase = torch.remainder(t - self.shift, self.period) / self.period
            open_ = torch.where(
                phase < self.ratio / 2,
                2 * phase / self.ratio,
                torch.where(phase < self.ratio, 2 - 2 * phase / self.ratio, 1e-3 * phase),
            )
            (new_hidden, new_memory), _ = self.step(x, (hidden, memory))
            memory = open_ * new_memory + (1 - open_) * memory
            hidden = open_ * new_hidden + (1 - open_) * hidden
            outputs.append(hidden)
        return torch.stack(outputs)


class ConvLSTM(nn.Module):
    """Shi et al. 2015, equation 3, without peepholes. A row of inputs is a picture of 5 x 5."""

    CHANNELS = 3

    def __init__(self):
        super().__init__()
        self.gates = nn.Conv2d(1 + self.CHANNELS, 4 * self.CHANNELS, 3, padding=1)

    def forward(self, xs):
        frames = (xs[:, :, :, None] * xs[:, :, None, :])[:, :, None]
        hidden = memory = xs.new_zeros(xs.shape[1], self.CHANNELS, INPUTS, INPUTS)
        outputs = []
        for frame in frames:
            gates = self.gates(torch.cat([frame, hidden], dim=1))
            enter, keep, leave, new = torch.split(gates, self.CHANNELS, dim=1)
            memory = torch.sigmoid(keep) * memory + torch.sigmoid(enter) * torch.tanh(new)
            hidden = torch.sigmoid(leave) * torch.tanh(memory)
            outputs.append(hidden)
        return torch.stack(outputs)


class MultiplicativeLSTM(LSTM):
    """Krause et al. 2017, equations 18 to 22."""

    def __init__(self):
        super().__init__()
        self.mix_x = nn.Linear(INPUTS, WIDTH, bias=False)
        self.mix_h = nn.Linear(WIDTH, WIDTH, bias=False)

    def step(self, x, state):
        hidden, memory = state
        return super().step(x, (self.mix_x(x) * self.mix_h(hidden), memory))


class RecurrentHighway(Loop):
    """Zilly et al. 2017, equations 7 to 9: a highway of several layers in each step."""

    gates = 2
    DEPTH = 3

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, 2 * WIDTH) for _ in range(self.DEPTH))

    def step(self, x, hidden):
        for depth, layer in enumerate(self.layers):
            mapped = layer(hidden)
            if depth == 0:
                mapped = mapped + self.enter(x)
            new, carry = mapped.chunk(2, 1)
            carry = torch.sigmoid(carry)
            hidden = torch.tanh(new) * carry + hidden * (1 - carry)
        return hidden, hidden


class Clockwork(Loop):
    """Koutnik et al. 2014, section 3: parts of the state move every 1, 2, 4 steps."""

    def forward(self, xs):
        hidden, outputs = self.zeros(xs), []
        periods = torch.tensor([1, 1, 2, 2, 4, 4])
        for t in range(xs.shape[0]):
            moves = (t % periods == 0).to(xs.dtype)
            fresh = torch.tanh(self.enter(xs[t]) + self.recall(hidden))
            hidden = moves * fresh + (1 - moves) * hidden
            outputs.append(hidden)
        return torch.stack(outputs)


class ClockworkBranches(Loop):
    """`Clockwork` with branches in Python, so that the steps of the loop differ."""

    def forward(self, xs):
        hidden, outputs = self.zeros(xs), []
        for t in range(xs.shape[0]):
            fresh = torch.tanh(self.enter(xs[t]) + self.recall(hidden))
            if t % 2 == 0:
                hidden = fresh
            else:
                hidden = torch.cat([fresh[:, :3], hidden[:, 3:]], 1)
            outputs.append(hidden)
        return torch.stack(outputs)


class GRUD(Loop):
    """Che et al. 2018, equations 3 to 10: missing values, and decay by the time since a value. The
    mask and the times are made from the input."""

    gates = 3

    def __init__(self):
        super().__init__()
        self.mask = nn.Linear(INPUTS, 3 * WIDTH, bias=False)
        self.decay_x = nn.Parameter(torch.randn(INPUTS))
        self.decay_h = nn.Linear(INPUTS, WIDTH)

    def forward(self, xs):
        seen = (xs > -0.5).to(xs.dtype)
        mean = (xs * seen).sum(0) / seen.sum(0).clamp(min=1)
        last, since, hidden, outputs = mean, torch.zeros_like(mean), self.zeros(xs), []
        for t in range(xs.shape[0]):
            x, mask = xs[t], seen[t]
            decay = torch.exp(-F.relu(self.decay_x * since))
            forget = torch.exp(-F.relu(self.decay_h(since)))
            last = torch.where(mask > 0, x, last)
            x = mask * x + (1 - mask) * (decay * last + (1 - decay) * mean)
            hidden = forget * hidden
            entered = (self.enter(x) + self.mask(mask)).chunk(3, 1)
            recalled = self.recall(hidden).chunk(3, 1)
            update = torch.sigmoid(entered[0] + recalled[0])
            reset = torch.sigmoid(entered[1] + recalled[1])
            new = torch.tanh(entered[2] + reset * recalled[2])
            hidden = (1 - update) * hidden + update * new
            since = 1 + (1 - mask) * since
            outputs.append(hidden)
        return torch.stack(outputs)


class SLSTM(Loop):
    """xLSTM, Beck et al. 2024, equations 8 to 17."""

    gates = 4

    def initial(self, xs):
        zeros = self.zeros(xs)
        return zeros, zeros, zeros, zeros

    def step(self, x, state):
        hidden, memory, count, largest = state
        new, enter, keep, leave = (self.enter(x) + self.recall(hidden)).chunk(4, 1)
        keep = F.logsigmoid(keep) + largest
        largest = torch.max(keep, enter)
        enter, keep = torch.exp(enter - largest), torch.exp(keep - largest)
        memory, count = keep * memory + enter * torch.tanh(new), keep * count + enter
        hidden = torch.sigmoid(leave) * memory / count
        return (hidden, memory, count, largest), hidden


class PeepholeLSTM(LSTM):
    """Gers et al. 2002."""

    def __init__(self):
        super().__init__()
        self.peep = nn.Parameter(torch.randn(3, WIDTH))

    def step(self, x, state):
        hidden, memory = state
        enter, keep, new, leave = (self.enter(x) + self.recall(hidden)).chunk(4, 1)
        enter = torch.sigmoid(enter + self.peep[0] * memory)
        keep = torch.sigmoid(keep + self.peep[1] * memory)
        memory = keep * memory + enter * torch.tanh(new)
        hidden = torch.sigmoid(leave + self.peep[2] * memory) * torch.tanh(memory)
        return (hidden, memory), hidden


class Zoneout(LSTM):
    """Krueger et al. 2017, equation 2: in training a mask is drawn at each step."""

    def step(self, x, state):
        (hidden, memory), _ = super().step(x, state)
        if self.training:
            keep = torch.rand_like(hidden) < 0.2
            hidden = torch.where(keep, state[0], hidden)
        else:
            hidden = 0.2 * state[0] + 0.8 * hidden
        return (hidden, memory), hidden


class VariationalDropout(LSTM):
    """Gal and Ghahramani 2016: one mask for all steps, on inputs and states."""

    def forward(self, xs):
        keep = 0.75
        on_x = torch.bernoulli(torch.full_like(xs[0], keep)) / keep
        on_h = torch.bernoulli(xs.new_full((xs.shape[1], WIDTH), keep)) / keep
        state, outputs = self.initial(xs), []
        for x in xs:
            state, output = self.step(x * on_x, (state[0] * on_h, state[1]))
            outputs.append(output)
        return torch.stack(outputs)


class DropoutEachStep(LSTM):
    """Semeniuta et al. 2016: dropout of what enters the memory, drawn at each step."""

    def step(self, x, state):
        hidden, memory = state
        enter, keep, new, leave = (self.enter(x) + self.recall(hidden)).chunk(4, 1)
        new = F.dropout(torch.tanh(new), 0.25, self.training)
        memory = torch.sigmoid(keep) * memory + torch.sigmoid(enter) * new
        hidden = torch.sigmoid(leave) * torch.tanh(memory)
        return (hidden, memory), hidden


class LayerNormGRU(Loop):
    """Ba et al. 2016, supplementary, equations 16 to 19."""

    gates = 3

    def __init__(self):
        super().__init__()
        self.norm_x, self.norm_h = (nn.LayerNorm(3 * WIDTH) for _ in range(2))

    def step(self, x, hidden):
        r, z, n = self.norm_x(self.enter(x)).chunk(3, 1)
        r_, z_, n_ = self.norm_h(self.recall(hidden)).chunk(3, 1)
        z = torch.sigmoid(z + z_)
        hidden = (1 - z) * torch.tanh(n + torch.sigmoid(r + r_) * n_) + z * hidden
        return hidden, hidden


class AntisymmetricRNN(Loop):
    """Chang et al. 2019, equations 14 and 15: W - W^T - gamma I."""

    gates = 2

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(WIDTH, WIDTH))

    def step(self, x, hidden):
        w = self.w - self.w.T - 0.1 * torch.eye(WIDTH, dtype=x.dtype)
        new, gate = self.enter(x).chunk(2, 1)
        mapped = hidden @ w.T
        hidden = hidden + 0.1 * torch.sigmoid(mapped + gate) * torch.tanh(mapped + new)
        return hidden, hidden


class HighwayRNN(Loop):
    """A highway (Srivastava et al. 2015) from the last state, coupled gates, batch first."""

    gates = 2

    def forward(self, xs):
        xs = xs.transpose(0, 1)
        hidden, outputs = xs.new_zeros(xs.size(0), WIDTH), []
        for t in range(xs.size(1)):
            both = torch.cat([xs[:, t, :], hidden], dim=-1)
            weight = torch.cat([self.enter.weight, self.recall.weight], 1)
            gate, new = F.linear(both, weight, self.enter.bias).chunk(2, dim=-1)
            gate = gate.sigmoid()
            hidden = torch.lerp(hidden, new.tanh(), gate)
            outputs += [hidden.unsqueeze(1)]
        return torch.cat(outputs, dim=1).transpose(0, 1)


class MaskedLengths(LSTM):
    """States stop where a sequence has ended; lengths are computed from the input."""

    def forward(self, xs):
        lengths = (xs[0, :, 0] > 0).long() * 7 + 5
        mask = torch.arange(xs.shape[0])[:, None] < lengths[None]
        state, outputs = self.initial(xs), []
        for t in range(xs.shape[0]):
            fresh, output = self.step(xs[t], state)
            live = mask[t].unsqueeze(-1)
            state = tuple(
                torch.where(live, new, old) for new, old in zip(fresh, state, strict=True)
            )
            outputs.append(output.masked_fill(~live, 0.0))
        return torch.stack(outputs)


GATED = [
    IndRNN,
    SRU,
    QRNN,
    JANET,
    MGU,
    LSTM,
    PhasedLSTM,
    ConvLSTM,
    MultiplicativeLSTM,
    RecurrentHighway,
    Clockwork,
    ClockworkBranches,
    GRUD,
    SLSTM,
    PeepholeLSTM,
    Zoneout,
    VariationalDropout,
    DropoutEachStep,
    LayerNormGRU,
    AntisymmetricRNN,
    HighwayRNN,
    MaskedLengths,
]
