# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of Python over time that change tensors in place, each of one kind, as those of
`stepped_loops.py`: IN_PLACE are those whose steps tracing skips, SHOWN have other names for what
they change."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from stepped_loops import INPUTS, WIDTH


def loss_and_total(net, xs):
    h, loss, total = net.zeros(xs), 0, xs.new_zeros(xs.shape[1], WIDTH)
    for t in range(len(xs) - 1):
        h = net.step(xs[t], h)
        loss += F.mse_loss(net.second(h)[:, :INPUTS], xs[t + 1])
        total += h
    return loss / len(xs), total, h


def state_scaled(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.enter(x) + torch.sin(net.recall(h))
        h *= 0.5
        h -= 0.1
        outputs.append(h)
    return torch.stack(outputs), h


def residual(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        y = net.second(h)[:, :INPUTS] * 2
        y += x
        y /= 3
        outputs.append(y)
    return torch.stack(outputs)


def activations(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = F.relu(net.enter(x) + net.recall(h), inplace=True)
        outputs.append(h)
    return torch.stack(outputs)


def statements(net, xs):
    """Which bind no name to what they change."""
    h, total, outputs = net.zeros(xs), net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        total.mul_(0.9).add_(h, alpha=0.1)
        outputs.append(h + total)
    return torch.stack(outputs), total


def states_copied(net, xs):
    state, outputs = net.zeros(xs), []
    with torch.no_grad():  # autograd refuses what is written to a state that it has kept
        for x in xs:
            state.copy_(net.step(x, state)).clamp_(max=0.8)
            outputs.append(state * 2)
    return net.second(torch.stack(outputs)), state


def ended(net, xs):
    h, done, outputs = net.zeros(xs), xs.new_zeros(xs.shape[1], 1, dtype=torch.bool), []
    for x in xs:
        h = torch.where(done.clone(), h, net.step(x, h))
        done |= x[:, :1] > 1.5
        outputs.append(h.clone().masked_fill_(done.clone(), 0))
    return torch.stack(outputs), done


def changed_behind(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.enter(x) + torch.sin(net.recall(h))
        outputs.append(h)
    outputs = torch.stack(outputs)
    outputs *= 2
    h += 1
    return outputs, h


def total_that_is_kept(net, xs):
    """Each item of the list is the same tensor."""
    h, total, outputs = net.zeros(xs), net.zeros(xs) + 1, []
    for x in xs:
        h = net.step(x, h)
        total += h
        outputs.append(total)
    return sum(outputs[:3]), h, total


def other_name(net, xs):
    h, total = net.zeros(xs), net.zeros(xs)
    first = total
    for x in xs:
        h = net.step(x, h)
        total += h
    return {"of both": [first, (total, h)]}


IN_PLACE = [
    *(loss_and_total, state_scaled, residual, activations, statements, states_copied, ended),
    *(changed_behind, total_that_is_kept, other_name),
]


def view_made_before(net, xs):
    h, total, outputs = net.zeros(xs), net.zeros(xs) + 1, []
    for x in xs:
        h = net.step(x, h)
        shown = total.T
        total += h
        outputs.append(shown * 1)
    return torch.stack(outputs), h


def view_of_a_state(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        outputs.append(h.unsqueeze(0))
    h += 1
    return torch.cat(outputs), h


def view_read_by_the_next_step(net, xs):
    h, shown, outputs = net.zeros(xs), net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        outputs.append(shown * 1)
        shown = h.T.T
        h += 1
    return torch.stack(outputs), h


def view_changed(net, xs):
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        first = h[:1]
        first += 1
        outputs.append(h * 1)
    return torch.stack(outputs), h


def type_kept(net, xs):
    """What `type_as` gives is its argument, here."""
    h, outputs = net.zeros(xs), []
    for x in xs:
        h = net.step(x, h)
        same = h.type_as(xs)
        same += 1
        outputs.append(h * 1)
    return torch.stack(outputs), h


def row_that_was_written(net, xs):
    """The row keeps what it was given."""
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t, x in enumerate(xs):
        h = net.enter(x) + net.recall(h)
        outputs[t] = h
        h *= 0.5
    outputs += 1
    return outputs, h


def row_that_was_read(net, xs):
    """The row is a view of all of them."""
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t, x in enumerate(xs):
        h = net.enter(x) + net.recall(h)
        outputs[t] = h
    row = outputs[3]
    outputs *= 2
    row += 1
    return outputs * 1, row * 1


def attribute_of_a_tensor(net, xs):
    h, total = net.zeros(xs), net.zeros(xs)
    total.count = 0
    for x in xs:
        h = net.step(x, h)
        total += h
        total.count += 1
    return h + total.count, total * 1


def argument_that_was_given(net, xs):
    h = net.zeros(xs)
    for x in xs:
        h = net.step(x, h)
        xs += 0.125
    return h


def other_type(net, xs):
    h, total = net.zeros(xs), torch.zeros(xs.shape[1], WIDTH, dtype=torch.float32)
    for x in xs:
        h = net.step(x, h)
        total += h
    return h, total


SHOWN = [
    *(
        view_made_before,
        view_of_a_state,
        view_read_by_the_next_step,
        view_changed,
        type_kept,
        row_that_was_written,
    ),
    *(row_that_was_read, attribute_of_a_tensor, argument_that_was_given, other_type),
]
