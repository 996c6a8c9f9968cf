# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of Python over time, each of one kind: those whose steps tracing skips, those whose steps
it has to trace, and others."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

INPUTS, WIDTH = 5, 7


class Net(nn.Module):
    """`run` takes (net, xs), where xs is (time, batch, inputs), and gives the results."""

    def __init__(self, run):
        super().__init__()
        self.run = run
        self.enter, self.recall = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)

    def step(self, x, h):
        return torch.tanh(self.enter(x) + self.recall(h))

    def zeros(self, xs):
        return xs.new_zeros(xs.shape[1], WIDTH)

    def forward(self, xs):
        return self.run(self, xs)


def elements(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs.unbind(0):
        h = net.step(x, h)
        outputs.append(h)
    return torch.stack(outputs), h


def indices(net, xs):
    h, outputs = net.zeros(xs), []
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs.append(h)
    return torch.stack(outputs, 1)


def columns(net, xs):
    h, outputs, xs = net.zeros(xs), [], xs.transpose(0, 1)
    for t in range(xs.shape[1]):
        h = net.step(xs[:, t], h)
        outputs.append(h.unsqueeze(1))
    return torch.cat(outputs, dim=1)


def properties(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = torch.tanh(net.enter(x) + h @ net.recall.weight.T + (net.second.weight @ h.T).mT)
        outputs.append(h)
    return torch.stack(outputs)


def backwards(net, xs):
    h, outputs = net.zeros(xs), []
    for t in reversed(range(len(xs))):
        h = net.step(xs[t], h)
        outputs.append(h)
    return torch.stack(outputs[::-1])


def slices(net, xs):
    h, outputs = net.zeros(xs), []
    for t in range(len(xs)):
        h = net.step(xs[t : t + 1], h)
        outputs.append(h)
    return torch.cat(outputs)


def every_second(net, xs):
    h, outputs = net.zeros(xs), []
    for t in range(0, len(xs) - 1, 2):
        h = net.step(xs[t] - xs[t + 1], h)
        outputs.append(h)
    return torch.stack(outputs)


def wrapping_index(net, xs):
    h, outputs = net.zeros(xs), []
    for t in range(len(xs)):
        h = net.step(xs[t] + xs[t - 1], h)
        outputs.append(h)
    return torch.stack(outputs)


def layers(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        outputs.append(h)
    inputs, h, outputs = outputs, net.zeros(xs), []
    for x in inputs:
        h = torch.tanh(net.second(x) + net.recall(h))
        outputs.append(h)
    return torch.stack(outputs), h


def both_directions(net, xs):
    forth, back, there, here = [], [], net.zeros(xs), net.zeros(xs)
    for t in range(len(xs)):
        there = net.step(xs[t], there)
        forth.append(there)
    for t in range(len(xs) - 1, -1, -1):
        here = torch.sigmoid(net.enter(xs[t]) + net.second(here))
        back.append(here)
    return torch.stack([torch.cat([a, b], -1) for a, b in zip(forth, reversed(back), strict=True)])


def list_of_outputs(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        outputs.append(h)
    return outputs


def older_state(net, xs):
    h, before, long_before, outputs = net.zeros(xs), net.zeros(xs), net.zeros(xs), []
    for x in xs:
        h, before, long_before = net.step(x, h + long_before * 0.5), h, before
        outputs.append(h)
    return torch.stack(outputs), long_before


def resets(net, xs):
    h, outputs, done = net.zeros(xs), [], (xs[:, :, :1] > 0.5).to(xs.dtype)
    for t in range(len(xs)):
        h = net.step(xs[t], h * (1 - done[t]))
        outputs.append(h)
    return torch.stack(outputs)


def nothing_read(net, xs):
    h = net.enter(xs[0])
    for _ in range(len(xs)):
        h = h + 0.1 * torch.tanh(net.recall(h))
    return h


def no_first_state(net, xs):
    h, outputs = None, []
    for x in xs:
        h = torch.tanh(net.enter(x)) if h is None else net.step(x, h)
        outputs.append(h)
    return torch.stack(outputs)


def other_late_step(net, xs):
    h, outputs = net.zeros(xs), []
    for t, x in enumerate(xs):
        entered = net.enter(x)
        h = torch.relu(entered) if t == 25 else torch.tanh(entered + net.recall(h))
        outputs.append(h)
    return torch.stack(outputs)


def ends_within_step(net, xs):
    h, outputs = net.zeros(xs), []
    for t, x in enumerate(xs):
        entered = net.enter(x)
        if t == 30:
            break
        h = torch.tanh(entered + net.recall(h))
        outputs.append(h)
    return torch.stack(outputs), entered


def view_returned(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        outputs.append(h.view(-1))
    return outputs[-1], h


def written_behind(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        outputs.append(h)
    outputs[3].view(-1).mul_(2)
    return torch.stack(outputs)


def changing_number(net, xs):
    h, outputs = net.zeros(xs), []
    for t, x in enumerate(xs):
        number = 1 + t / 64  # larger ones would amplify each step's rounding
        h = net.step(x, h) * number
        outputs.append(h / number)
    return torch.stack(outputs)


def other_number_late(net, xs):
    h, outputs = net.zeros(xs), []
    for t, x in enumerate(xs):
        h = net.step(x, h) * (0.5 if t == 20 else 0.9)
        outputs.append(h)
    return torch.stack(outputs)


def other_operand_late(net, xs):
    h, outputs = net.zeros(xs), []
    for t in range(len(xs)):
        h = net.step(xs[0 if t == 20 else t], h)
        outputs.append(h)
    return torch.stack(outputs)


def loop_within_loop(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs[:14]:
        h = net.step(x, h)
        for _ in range(14):
            h = h + 0.1 * torch.tanh(net.second(h))
        outputs.append(h)
    return torch.stack(outputs)


def gates(net, xs):
    h, c, outputs = net.zeros(xs), net.zeros(xs), []
    for x in net.enter(xs):
        keep, new = torch.cat([x, net.recall(h)], 1).chunk(2, 1)
        c = torch.sigmoid(keep) * c + torch.tanh(new)
        h = F.layer_norm(F.dropout(c, 0.5, net.training), (WIDTH,))
        outputs.append(h)
    return torch.stack(outputs), (h, c)


def no_gradient_through_state(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h.detach())
        outputs.append(h)
    return torch.stack(outputs)


def buffer_written_behind(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        outputs.append(h)
    xs.add_(1)
    return torch.stack(outputs), xs * 1


def last_of_several(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        outputs.append(h)
    return outputs[-1] + outputs[0] + outputs[len(outputs) // 2], torch.stack(outputs[2:-2])


def initial_value_cut_off(net, xs):
    h, outputs = net.enter.bias.expand(xs.shape[1], WIDTH), []
    for x in xs:
        h = torch.tanh(x @ net.recall.weight[:INPUTS] + net.recall(h.detach()))
        outputs.append(h)
    return torch.stack(outputs)


def cut_off_state(net, xs):
    h, slow, outputs = net.zeros(xs), net.zeros(xs), []
    for x in xs:
        slow = 0.9 * slow.detach() + net.second(h)
        h = net.step(x, h) + slow.detach()
        outputs.append(h)
    return torch.stack(outputs)


def state_that_no_result_reads(net, xs):
    h, other, outputs = net.zeros(xs), net.zeros(xs), []
    for x in xs:
        h, other = net.step(x, h), torch.tanh(net.second(other) + h)
        outputs.append(h)
    return torch.stack(outputs)


def states_that_meet_after_steps(net, xs):
    a, b, c, outputs = net.zeros(xs), net.zeros(xs), net.zeros(xs), []
    for x in xs:
        a, b, c = net.step(x, a) + b, torch.tanh(b + c), torch.tanh(net.second(c))
        outputs.append(a)
    return torch.stack(outputs), c


def state_without_gradient(net, xs):
    h, count, outputs = net.zeros(xs), torch.zeros(xs.shape[1], 1, dtype=torch.int64), []
    for x in xs:
        h = net.step(x, h) / (1 + count)
        count = count + (net.second(h) > 0).sum(1, keepdim=True)
        outputs.append(h)
    return torch.stack(outputs), count


def within_no_grad(net, xs):
    h, mean, outputs = net.zeros(xs), net.zeros(xs), []
    for x in xs:
        h = net.step(x, h) - mean
        with torch.no_grad():
            mean = 0.9 * mean + 0.1 * torch.tanh(net.second(h))
        outputs.append(h)
    return torch.stack(outputs), mean


def all_within_no_grad(net, xs):
    """A reservoir, and a layer that is trained to read it."""
    with torch.no_grad():
        states, h = elements(net, xs)
    return net.second(states), h


def cut_layers(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        outputs.append(h)
    inputs, h, outputs = outputs, net.zeros(xs), []
    for x in inputs:
        h = torch.tanh(x.detach() + net.second(h))
        outputs.append(h)
    return torch.stack(outputs)


def numbers_of_a_step(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        scale = torch.tensor([0.5, -0.0, *[0.25] * (WIDTH - 2)], dtype=xs.dtype)
        h = net.step(x, h * scale)
        outputs.append(h + torch.tensor(3))
    return torch.stack(outputs)


def numbers_behind_steps(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        outputs.append(h)
    return torch.stack(outputs) * torch.tensor(2.0), h + torch.tensor([0.5], dtype=xs.dtype)


def numbers_of_steps(net, xs):
    h, outputs = net.zeros(xs), []
    for t, x in enumerate(xs):
        h = net.step(x, h * torch.tensor([t, 1 - t, 2, 3, 4, 5, 6]))
        outputs.append(h)
    return torch.stack(outputs)


def numbers_written_over(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        scale = torch.tensor([0.5] * WIDTH, dtype=xs.dtype)
        scale[0] = 2
        h = net.step(x, h * scale)
        outputs.append(h)
    return torch.stack(outputs)


def number_of_the_step(net, xs):
    """Sequences that have ended, and a phase."""
    lengths, h, outputs = torch.tensor([40, 3, 17]), net.zeros(xs), []
    for t, x in enumerate(xs):
        phase = torch.cos((t - net.second.bias) / 7) + 0.1 / (1 + (h * t) ** 2)
        h = torch.where((t < lengths).unsqueeze(1), net.step(x, h) * phase, h)
        outputs.append(h * torch.lt(lengths, 1 + t).unsqueeze(1))
    return torch.stack(outputs), h


def number_of_steps_left(net, xs):
    h, outputs = net.zeros(xs), []
    for t in reversed(range(len(xs))):
        h = net.step(xs[t], h) / (2 * t + 3) + 0.01 * (h - t)
        outputs.append(h + h.new_ones(3, 1, dtype=torch.int64).sub(t))
    return torch.stack(outputs)


def last_row_of_the_stack(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        outputs.append(h)
    outputs = torch.stack(outputs)
    return outputs, outputs[-1], outputs.transpose(0, 1)


def state_and_views_of_it(net, xs):
    h = net.zeros(xs)
    for x in xs:
        h = net.step(x, h)
    return h, h[0], h.T


def pieces(net, xs):
    h, outputs = net.zeros(xs), []
    for x in torch.split(xs, 1):
        h = net.step(x.squeeze(0), h)
        outputs.append(h)
    for x in reversed(xs.transpose(0, 1).chunk(len(xs), 1)):
        h = net.step(x[:, 0], h)
        outputs.append(h)
    return torch.stack(outputs)


def windows(net, xs):
    h, outputs = net.zeros(xs), []
    for t in range(len(xs) - 2):
        h = net.step(xs[t : t + 3].sum(0) - xs.narrow(0, t, 2).amax(0), h)
        outputs.append(h)
    return torch.stack(outputs), h


def blocks(net, xs):
    """Of which the last one is shorter."""
    xs, h, outputs = torch.cat([xs, 2 * xs, xs + 1])[:-1], net.zeros(xs), []
    for part in xs.split(3):
        h = net.step(part.mean(0), h)
        outputs.append(part * h[:, :INPUTS])
    for t in range(len(xs) - 2, 0, -2):
        h = net.step(xs[t : t + 2].amax(0), h)
    return torch.cat(outputs), h


def uneven_pieces(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs.split([1] * (len(xs) - 3) + [3]):
        h = net.step(x.sum(0), h)
        outputs.append(h)
    return torch.stack(outputs)


def layer_along_time(net, xs):
    """Which each step calls with one element: what it drops, it drops between layers."""
    weights = [net.enter.weight, net.recall.weight, net.enter.bias, net.recall.bias]
    h, outputs = net.zeros(xs)[None], []
    for x in xs:
        output, h = torch.rnn_tanh(x[None], h, weights, True, 1, 0.5, net.training, False, False)
        outputs.append(net.second(output[0]))
    return torch.stack(outputs), h


def two_for_each_step(net, xs):
    h, outputs, views = net.zeros(xs), [], [net.zeros(xs)[None]]
    for x in xs:
        h = net.step(x, h)
        outputs += [h, net.second(h)]
        views.extend([h[None], 2 * h[None], h[None]])
    return torch.stack(outputs, 1), torch.cat(views), torch.stack(outputs[5::-1])


def embedded_numbers(net, xs):
    """Which are looked up, and have to be in range."""
    h, outputs, numbers = net.zeros(xs), [], (xs[:, :, 0].abs() * 2).long().clamp(max=WIDTH - 1)
    for t in range(len(xs)):
        h = torch.tanh(F.embedding(numbers[t], net.second.weight) + net.recall(h))
        outputs.append(h)
    return torch.stack(outputs)


SKIPPED = [
    *(
        elements,
        indices,
        columns,
        properties,
        backwards,
        slices,
        every_second,
        layers,
        both_directions,
    ),
    *(list_of_outputs, older_state, resets, nothing_read, no_first_state, other_late_step),
    *(ends_within_step, other_number_late, other_operand_late, gates, no_gradient_through_state),
    *(last_of_several, wrapping_index, initial_value_cut_off, cut_off_state, cut_layers),
    *(state_that_no_result_reads, states_that_meet_after_steps, state_without_gradient),
    *(numbers_of_a_step, numbers_behind_steps, all_within_no_grad),
    *(number_of_the_step, number_of_steps_left, last_row_of_the_stack, state_and_views_of_it),
    *(pieces, windows, blocks, embedded_numbers, layer_along_time, two_for_each_step),
]
TRACED = [
    *(view_returned, written_behind, changing_number),
    *(numbers_of_steps, numbers_written_over),
]
OTHERS = [loop_within_loop, buffer_written_behind, uneven_pieces]
