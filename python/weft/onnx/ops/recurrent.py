# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent nets, written out step by step.

Gates lie in ONNX's order: i, o, f, c of an LSTM; z, r, h of a GRU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.onnx.table import Node, op

_RECURRENT = "activation_alpha activation_beta activations clip direction hidden_size layout"
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
# Where no alpha or beta is given.
_ALPHA = {"LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "HardSigmoid": 0.2, "Elu": 1.0, "Affine": 1.0}
_BETA = {"HardSigmoid": 0.5, "Affine": 0.0}

Activation = Callable[[Tensor], Tensor]


def _activation(node: Node, name: str, alpha: float, beta: float) -> Activation:
    known: dict[str, Activation] = {
        "Affine": lambda x: alpha * x + beta,
        "Elu": lambda x: F.elu(x, alpha),
        "HardSigmoid": lambda x: (alpha * x + beta).clamp(0, 1),
        "LeakyRelu": lambda x: F.leaky_relu(x, alpha),
        "Relu": torch.relu,
        "ScaledTanh": lambda x: alpha * torch.tanh(beta * x),
        "Sigmoid": torch.sigmoid,
        "Softplus": F.softplus,
        "Softsign": F.softsign,
        "Tanh": torch.tanh,
        "ThresholdedRelu": lambda x: torch.where(x > alpha, x, torch.zeros_like(x)),
    }
    found = next((each for each in known if each.lower() == name.lower()), None)
    if found is None:
        raise node.unsupported(f"activation {name} is not known")
    return known[found]


def _activations(node: Node, directions: int) -> list[list[Activation]]:
    """The activations by direction. Alphas and betas go, in order, to those that take one."""
    each = _DEFAULTS[node.op]
    names = node.get("activations", each * directions)
    alphas, betas = list(node.get("activation_alpha", [])), list(node.get("activation_beta", []))
    made = []
    for name in names:
        alpha, beta = _ALPHA.get(name, 1.0), _BETA.get(name, 0.0)
        if (name in _ALPHA or name == "ScaledTanh") and alphas:
            alpha = alphas.pop(0)
        if (name in _BETA or name == "ScaledTanh") and betas:
            beta = betas.pop(0)
        made.append(_activation(node, name, alpha, beta))
    return [made[i * len(each) : (i + 1) * len(each)] for i in range(directions)]


@dataclass
class _Cell:
    """The cell of one direction. w: (gates·h, in), r: (gates·h, h), b: (2·gates·h) or None."""

    node: Node
    activations: list[Activation]
    w: Tensor
    r: Tensor
    b: Tensor | None
    peepholes: Tensor | None = None

    @property
    def hidden(self) -> int:
        return self.r.shape[-1]

    def bias(self, part: int) -> Tensor:
        """0: of the input; 1: of the recurrence."""
        count = self.w.shape[0]
        if self.b is None:
            return torch.zeros(count, dtype=self.w.dtype)
        return self.b[part * count : (part + 1) * count]

    def clip(self, x: Tensor) -> Tensor:
        bound = self.node.get("clip")
        return x if bound is None else x.clamp(-bound, bound)

    def step(self, given: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """given: w·x and its bias, (batch, gates·h)."""
        return {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self.node.op](given, *state)

    def _rnn(self, given: Tensor, h: Tensor) -> tuple[Tensor]:
        (f,) = self.activations
        return (f(self.clip(given + F.linear(h, self.r, self.bias(1)))),)

    def _gru(self, given: Tensor, h: Tensor) -> tuple[Tensor]:
        f, g = self.activations
        size = self.hidden
        recurrent, bias = self.r.split(size), self.bias(1).split(size)
        of_z, of_r, of_h = given.split(size, -1)
        z = f(self.clip(of_z + F.linear(h, recurrent[0], bias[0])))
        r = f(self.clip(of_r + F.linear(h, recurrent[1], bias[1])))
        if self.node.get("linear_before_reset", 0):
            candidate = of_h + r * F.linear(h, recurrent[2], bias[2])
        else:
            candidate = of_h + F.linear(r * h, recurrent[2], bias[2])
        return ((1 - z) * g(self.clip(candidate)) + z * h,)

    def _lstm(self, given: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        f, g, last = self.activations
        gates = given + F.linear(h, self.r, self.bias(1))
        i, o, forget, candidate = gates.split(self.hidden, -1)
        peep = [None] * 3 if self.peepholes is None else self.peepholes.split(self.hidden)
        i = f(self.clip(i if peep[0] is None else i + peep[0] * c))
        if self.node.get("input_forget", 0):
            forget = 1 - i
        else:
            forget = f(self.clip(forget if peep[2] is None else forget + peep[2] * c))
        c = forget * c + i * g(self.clip(candidate))
        o = f(self.clip(o if peep[1] is None else o + peep[1] * c))
        return o * last(c), c


def _recurrent(
    node: Node,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None,
    lengths: Tensor | None,
    initial: list[Tensor | None],
    peepholes: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """x: (time, batch, in), or (batch, time, in) with layout 1."""
    batch_first = bool(node.get("layout", 0))
    if batch_first:
        x = x.transpose(0, 1)
        initial = [None if each is None else each.transpose(0, 1) for each in initial]
    direction = node.get("direction", "forward")
    directions = 2 if direction == "bidirectional" else 1
    activations = _activations(node, directions)
    outputs, states = [], []
    for i in range(directions):
        peep = None if peepholes is None else peepholes[i]
        cell = _Cell(node, activations[i], w[i], r[i], None if b is None else b[i], peep)
        empty = torch.zeros(x.shape[1], cell.hidden, dtype=x.dtype)
        state = tuple(empty if each is None else each[i] for each in initial)
        backwards = direction == "reverse" or i == 1
        y, state = _run(cell, x, state, lengths, backwards)
        outputs.append(y)
        states.append(state)
    y = torch.stack(outputs, 1)  # (time, direction, batch, hidden)
    last = [torch.stack(each) for each in zip(*states)]
    if batch_first:
        y, last = y.permute(2, 0, 1, 3), [each.transpose(0, 1) for each in last]
    return (y, *last)


def _run(
    cell: _Cell,
    x: Tensor,
    state: tuple[Tensor, ...],
    lengths: Tensor | None,
    backwards: bool,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Outputs behind a sequence's end are zeros, and its state is that of its end."""
    given = F.linear(x, cell.w, cell.bias(0))
    found: list[Tensor] = []
    steps = range(x.shape[0])
    for time in reversed(steps) if backwards else steps:
        new = cell.step(given[time], state)
        y = new[0]
        if lengths is not None:
            within = (time < lengths).unsqueeze(-1)
            state = tuple(torch.where(within, a, b) for a, b in zip(new, state))
            y = torch.where(within, y, torch.zeros_like(y))
        else:
            state = new
        found.append(y)
    if backwards:
        found.reverse()
    return torch.stack(found), state


@op("RNN", _RECURRENT, since=7)
@op("GRU", f"{_RECURRENT} linear_before_reset", since=7)
def rnn_or_gru(
    node: Node,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
) -> tuple[Tensor, ...]:
    return _recurrent(node, x, w, r, b, lengths, [h])


@op("LSTM", f"{_RECURRENT} input_forget", since=7)
def lstm(
    node: Node,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
    c: Tensor | None = None,
    peepholes: Tensor | None = None,
) -> tuple[Tensor, ...]:
    return _recurrent(node, x, w, r, b, lengths, [h, c], peepholes)
