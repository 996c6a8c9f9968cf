# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of Python over time that fill a tensor element by element, each of one kind, as those of
`stepped_loops.py`: FILLED are those whose steps tracing skips, MIXED the others."""

from __future__ import annotations

import torch
from stepped_loops import WIDTH


def rows(net, xs):
    h, outputs = net.zeros(xs), torch.zeros(*xs.shape[:2], WIDTH, dtype=xs.dtype)
    for t, x in enumerate(xs):
        h = net.step(x, h)
        outputs[t] = h
    return outputs, h


def columns_of_empty(net, xs):
    xs = xs.transpose(0, 1)
    h, outputs = xs.new_zeros(xs.shape[0], WIDTH), xs.new_empty(*xs.shape[:2], WIDTH)
    for t in range(xs.shape[1]):
        h = net.step(xs[:, t], h)
        outputs[:, t, :] = h
    return outputs


def along_the_last_dim(net, xs):
    h, outputs = net.zeros(xs), xs.new_full((xs.shape[1], WIDTH, len(xs)), 3.0)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[..., t] = h
    return outputs * 2


def slices_of_one(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(xs.shape[1], len(xs), WIDTH)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[:, t : t + 1] = h.unsqueeze(1)
    return outputs


def from_the_end(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t in reversed(range(len(xs))):
        h = net.step(xs[t], h)
        outputs[t] = h
    return outputs


def behind_a_first_row(net, xs):
    """Part of the tensor stays as it was made."""
    h, outputs = net.zeros(xs), xs.new_ones(len(xs) + 3, xs.shape[1], WIDTH)
    outputs[0] = h + 2
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[t + 1] = h
    return outputs, outputs[: len(xs)].sum(0)


def both_ways_in_two(net, xs):
    there, back = torch.zeros_like(net.enter(xs)), torch.zeros_like(net.enter(xs))
    ahead, behind = net.zeros(xs), net.zeros(xs)
    for t in range(len(xs)):
        ahead = net.step(xs[t], ahead)
        there[t] = ahead
    for t in range(len(xs) - 1, -1, -1):
        behind = net.step(xs[t], behind)
        back[t] = behind
    return torch.cat([there, back], -1)


def gates_and_states(net, xs):
    h, states, gates = net.zeros(xs), *[xs.new_empty(*xs.shape[:2], WIDTH) for _ in range(2)]
    for t in range(len(xs)):
        gates[t] = torch.sigmoid(net.second(h))
        h = net.step(xs[t], h) * torch.sigmoid(net.second(h))
        states[t] = h
    return states, gates


def asked_for_sizes(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t in range(outputs.size(0)):
        h = net.step(xs[t], h)
        outputs[t] = h.to(outputs.dtype).reshape(outputs.shape[1:])
    return outputs if outputs.requires_grad == h.requires_grad else None


def states_in_rows(net, xs):
    """Eager execution has no gradients of them."""
    states = xs.new_zeros(len(xs) + 1, xs.shape[1], WIDTH)
    with torch.no_grad():
        states[0] = 0.5 * net.zeros(xs) + 1
        for t in range(len(xs)):
            states[t + 1] = net.step(xs[t], states[t])
    return states, net.second(states)


def zeros_in_rows(net, xs):
    states = xs.new_zeros(len(xs) + 1, xs.shape[1], WIDTH)
    with torch.no_grad():
        for t in range(len(xs)):
            states[t + 1] = net.step(xs[t], states[t])
    return states, net.second(states[1:])


def last_row_returned(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[t] = h
    return outputs, outputs[-1]


def first_and_last_row_returned(net, xs):
    """Views of a tensor that is no result."""
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[t] = h
    return outputs[0], outputs[-1]


FILLED = [
    *(rows, columns_of_empty, along_the_last_dim, slices_of_one, from_the_end),
    *(behind_a_first_row, both_ways_in_two, gates_and_states, asked_for_sizes),
    *(states_in_rows, zeros_in_rows, last_row_returned, first_and_last_row_returned),
]


def view_made_ahead(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    last, total = outputs[-1], 0
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[t] = h
        total = total + last
    return outputs, total + last


def view_written_through(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(len(xs) + 1, xs.shape[1], WIDTH)
    outputs[-1].fill_(3)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[t] = h
    return outputs


def row_read_and_written_again(net, xs):
    """What has been read is a view: it changes as the row does."""
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[t] = h
        row = outputs[t]
        outputs[t] = 2 * h
        h = h + 0.1 * row
    return outputs


def row_changed_in_place(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[t] = h
        outputs[t] += 1
        outputs[t, :, 2].mul_(3)
    return outputs


def value_changed_behind_its_write(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t in range(len(xs)):
        h = torch.relu(net.step(xs[t], h))
        outputs[t] = h
        h.add_(1)
    return outputs


def value_that_is_filled(net, xs):
    h, outputs, row = net.zeros(xs), *[xs.new_zeros(each) for each in [(60, 3, 7), (3, 7)]]
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        row[t % 3] = h[0]
        outputs[t] = row
    return outputs


def read_row_of_a_changed_tensor(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[t] = h
    row = outputs[3]
    outputs.mul_(2)
    return outputs, row * 1


def read_row_returned(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(len(xs) + 2, xs.shape[1], WIDTH)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[t] = h
    return outputs, outputs[len(xs) - 1]


def broadcast_rows(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[t] = h.mean(0)
    return outputs


def every_row_twice(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for scale in (1, 2):
        for t in range(len(xs)):
            h = net.step(xs[t], h)
            outputs[t] = scale * h
    return outputs


def two_dims(net, xs):
    """The element where they cross was written last along the second one."""
    h, outputs = net.zeros(xs), xs.new_zeros(len(xs), len(xs), WIDTH)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[t] = h[:1].expand(len(xs), -1)
        outputs[:, t] = h[1:2].expand(len(xs), -1)
    return outputs


def without_gradients(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        with torch.no_grad():
            outputs[t] = h
    return outputs, h


def read_within_vmap(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(*xs.shape[:2], WIDTH)
    for t in range(len(xs)):
        h = net.step(xs[t], h)
        outputs[t] = h
    return torch.func.vmap(lambda row: row.sum(0) * 2)(outputs), outputs


MIXED = [
    *(view_made_ahead, view_written_through, row_read_and_written_again, row_changed_in_place),
    *(value_changed_behind_its_write, value_that_is_filled, read_row_of_a_changed_tensor),
    *(read_row_returned, broadcast_rows, every_row_twice, two_dims, without_gradients),
    read_within_vmap,
]
