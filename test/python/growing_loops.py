# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of Python over time that lengthen a tensor step by step, each of one kind, as those of
`stepped_loops.py`: GROWING are those whose steps tracing skips, ASKED the others."""

from __future__ import annotations

import torch
from stepped_loops import WIDTH


def appended(net, xs):
    h, outputs = net.zeros(xs), None
    for x in xs:
        h = net.step(x, h)
        outputs = h[None] if outputs is None else torch.cat([outputs, h[None]])
    return outputs, h


def prepended(net, xs):
    h, outputs = net.zeros(xs), xs.new_zeros(xs.shape[1], 0, WIDTH)
    for t in reversed(range(len(xs))):
        h = net.step(xs[t], h)
        outputs = torch.cat((h.unsqueeze(1), outputs), dim=1)
    return outputs * 2, h


def on_both_sides(net, xs):
    h, outputs = net.zeros(xs), net.zeros(xs)
    for x in xs:
        h = net.step(x, h)
        outputs = torch.cat([outputs, h], -1)
        outputs = torch.cat([2 * h, outputs], -1)
    return outputs


def two_of_them(net, xs):
    h, states, gates = net.zeros(xs), net.zeros(xs)[None], net.zeros(xs)[None]
    for x in xs:
        h = net.step(x, h)
        states = torch.cat([states, h[None]], 0)
        gates = torch.cat([gates, torch.sigmoid(net.second(h))[None]], 0)
    return states[1:], gates


def scaled_behind(net, xs):
    h, outputs = net.zeros(xs), net.zeros(xs)
    for x in xs:
        h = net.enter(x) + torch.sin(net.recall(h))
        outputs = torch.cat([outputs, h])
        h *= 0.5
    outputs *= 2
    return outputs, h


GROWING = [appended, prepended, on_both_sides, two_of_them, scaled_behind]


def past_that_is_read(net, xs):
    h, past = net.zeros(xs), net.zeros(xs)[None]
    for x in xs:
        weights = torch.softmax((past * h).sum(-1), 0)
        h = net.step(x, h) + (weights.unsqueeze(-1) * past).sum(0)
        past = torch.cat([past, h[None]])
    return past


def piece_that_is_changed(net, xs):
    h, outputs = net.zeros(xs), net.zeros(xs)
    for x in xs:
        h = net.step(x, h)
        piece = h * 1
        outputs = torch.cat([outputs, piece])
        piece[0] = 7
        h = h + piece.mean(0)
    return outputs


def beginning_that_is_changed(net, xs):
    h, outputs = net.zeros(xs), torch.cat([net.zeros(xs), net.zeros(xs)])
    first = outputs
    for x in xs:
        h = net.step(x, h)
        outputs = torch.cat([outputs, h])
    first[0] = 3
    return outputs, first


def branches(net, xs):
    h, outputs = net.zeros(xs), [torch.cat([net.zeros(xs), net.zeros(xs)])] * 2
    for x in xs:
        h = net.step(x, h)
        outputs = [torch.cat([outputs[0], h]), torch.cat([outputs[0], -h])]
    return outputs


def one_without_gradients(net, xs):
    h, outputs = net.zeros(xs), net.zeros(xs)
    for x in xs:
        h = net.step(x, h)
        with torch.no_grad():
            outputs = torch.cat([outputs, h])
    return outputs, h


ASKED = [
    *(past_that_is_read, piece_that_is_changed, beginning_that_is_changed, branches),
    one_without_gradients,
]
