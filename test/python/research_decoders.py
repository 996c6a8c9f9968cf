# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over time whose steps read the past, their own outputs or another loop's, and policies."""

from __future__ import annotations

from collections import deque

import torch
import torch.nn.functional as F
from research_loops import INPUTS, Research


class AttentionOverAllPast(Research):
    """Keys and values grow by one row at each step."""

    def forward(self, xs):
        h, past, outputs = self.zeros(xs), [self.zeros(xs)], []
        for x in xs:
            keys = torch.stack(past, 1)
            scores = (keys @ self.second(h).unsqueeze(2)).squeeze(2)
            context = (F.softmax(scores, 1).unsqueeze(1) @ keys).squeeze(1)
            h = self.step(x, h + context)
            past.append(h)
            outputs.append(h)
        return torch.stack(outputs)


class AttentionOverWindow(Research):
    """Attention over the last four states, kept in a deque."""

    def forward(self, xs):
        past, outputs = deque([self.zeros(xs)] * 4, maxlen=4), []
        for x in xs:
            keys = torch.stack(list(past), 1)
            weights = F.softmax(self.second(keys).sum(2), 1)
            h = self.step(x, (weights.unsqueeze(2) * keys).sum(1))
            past.append(h)
            outputs.append(h)
        return torch.stack(outputs)


class AttentionOverInputs(Research):
    """A decoder: each step reads the whole encoded sequence."""

    def forward(self, xs):
        encoded = torch.tanh(self.enter(xs)).transpose(0, 1)
        h, outputs = self.zeros(xs), []
        for _ in range(len(xs)):
            scores = torch.bmm(encoded, self.second(h).unsqueeze(2))
            context = (scores.softmax(1) * encoded).sum(1)
            h = self.upper(context, h)
            outputs.append(self.leave(h))
        return torch.stack(outputs)


class TeacherForcing(Research):
    """A decoder that is given the true input of the step before."""

    def forward(self, xs):
        previous, h, loss = torch.zeros_like(xs[0]), self.zeros(xs), 0.0
        for t in range(len(xs)):
            h = self.gru(previous, h)
            loss = loss + F.mse_loss(self.leave(h), xs[t])
            previous = xs[t]
        return loss / len(xs)


class FreeRunning(Research):
    """A decoder that reads its own output, after a prefix to warm up."""

    def forward(self, xs):
        h, outputs = self.zeros(xs), []
        for x in xs:
            h = self.gru(x, h)
        y = xs[-1]
        for _ in range(20):
            h = self.gru(y, h)
            y = self.leave(h)
            outputs.append(y)
        return torch.stack(outputs)


class ScheduledSampling(Research):
    """A mask that is made before the loop selects the steps that read the true input."""

    def forward(self, xs):
        chosen = torch.sin(torch.arange(len(xs)) * 2.3) > 0.2
        y, h, outputs = torch.zeros_like(xs[0]), self.zeros(xs), []
        for t in range(len(xs)):
            h = self.gru(torch.where(chosen[t], xs[t], y), h)
            y = self.leave(h)
            outputs.append(y)
        return torch.stack(outputs)


class ScheduledByPython(Research):
    """`ScheduledSampling` with a branch in Python, so that the steps differ."""

    def forward(self, xs):
        y, h, outputs = torch.zeros_like(xs[0]), self.zeros(xs), []
        for t in range(len(xs)):
            h = self.gru(xs[t] if t % 3 else y, h)
            y = self.leave(h)
            outputs.append(y)
        return torch.stack(outputs)


class PonderSteps(Research):
    """A loop within a loop."""

    def forward(self, xs):
        h, outputs = self.zeros(xs), []
        for x in xs:
            x = self.enter(x)
            for _ in range(3):
                h = h + 0.3 * torch.tanh(x + self.recall(h))
            outputs.append(h)
        return torch.stack(outputs)


class HierarchyOfRates(Research):
    """The upper cell runs every fourth step."""

    def forward(self, xs):
        low, high, outputs = self.zeros(xs), self.zeros(xs), []
        for t, x in enumerate(xs):
            low = self.step(x, low + high)
            if t % 4 == 3:
                high = self.upper(low, high)
            outputs.append(low)
        return torch.stack(outputs), high


class Bidirectional(Research):
    def forward(self, xs):
        ahead, back = self.zeros(xs), self.zeros(xs)
        first, second = [], []
        for x, y in zip(xs, xs.flip(0), strict=True):
            ahead, back = self.gru(x, ahead), self.rnn(y, back)
            first.append(ahead)
            second.insert(0, back)
        return torch.cat([torch.stack(first), torch.stack(second)], -1)


class EncoderDecoder(Research):
    """The last state of one loop starts another loop, whose inputs are in reverse order."""

    def forward(self, xs):
        h = self.zeros(xs)
        for x in xs:
            h = self.gru(x, h)
        y, outputs = xs.new_zeros(xs.shape[1], INPUTS), []
        for x in reversed(list(xs)):
            h = self.gru(y, h)
            outputs.append(self.leave(h))
            y = x
        return torch.stack(outputs[::-1])


class Policy(Research):
    """Recurrent actor and critic with resets between episodes."""

    def forward(self, xs):
        done = (torch.sin(torch.arange(xs.shape[0] * xs.shape[1]) * 3.1) > 0.8).view(
            *xs.shape[:2], 1
        )
        h, c, logits, values = self.zeros(xs), self.zeros(xs), [], []
        for t in range(len(xs)):
            alive = 1.0 - done[t].to(xs.dtype)
            h, c = self.lstm(xs[t], (alive * h, alive * c))
            logits.append(self.leave(h))
            values.append(self.second(h)[:, 0])
        return torch.stack(logits).log_softmax(-1), torch.stack(values)


class DiscountedReturns(Research):
    """Advantages: a loop backwards over time, which reads values from a loop forwards."""

    def forward(self, xs):
        h, values = self.zeros(xs), []
        for x in xs:
            h = self.step(x, h)
            values.append(self.second(h).mean(1))
        advantage, advantages = torch.zeros_like(values[0]), [None] * (len(xs) - 1)
        for t in reversed(range(len(xs) - 1)):
            delta = xs[t].mean(1) + 0.99 * values[t + 1].detach() - values[t]
            advantage = delta + 0.99 * 0.95 * advantage
            advantages[t] = advantage
        return torch.stack(advantages)


DECODERS = [
    AttentionOverAllPast,
    AttentionOverWindow,
    AttentionOverInputs,
    TeacherForcing,
    FreeRunning,
    ScheduledSampling,
    ScheduledByPython,
    PonderSteps,
    HierarchyOfRates,
    Bidirectional,
    EncoderDecoder,
    Policy,
    DiscountedReturns,
]
