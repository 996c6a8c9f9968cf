# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of `te.scan`, against autograd in float64."""

import numpy as np
import torch
from te_reference import normal, placeholder
from test_te_scans import lstm, recurrent, sums

from weft import te


def check(args, outputs, reference):
    heads = [placeholder(f"head{n}", *each.shape) for n, each in enumerate(outputs)]
    gradients = te.gradients(list(outputs), heads, list(args))
    given = [normal(*each.shape) for each in (*args, *heads)]
    found = te.build(gradients, [*args, *heads, *gradients])(*given)
    leaves = [torch.from_numpy(each).double() for each in given]
    inputs = [each.requires_grad_() for each in leaves[: len(args)]]
    results = reference(*inputs)
    expected = torch.autograd.grad(results, inputs, leaves[len(args) :])
    found = found if isinstance(found, (list, tuple)) else [found]
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def summed(x, factor=0.5):
    values = [x[0]]
    for row in x[1:]:
        values.append(values[-1] * factor + row)
    return torch.stack(values)


def test_a_recurrence_with_a_reduction_in_each_step():
    x, w, _, _, result = recurrent()

    def reference(x, w):
        values = [x[0]]
        for row in x[1:]:
            values.append(torch.tanh(w @ values[-1] + row))
        return [torch.stack(values)]

    check([x, w], [result], reference)


def test_two_states_and_what_only_later_steps_read():
    """`X[t - 1]` has a step less than the scan."""
    args, _, results = lstm(6, 3, 5, 8)

    def reference(x, wi, wh):
        h = c = torch.zeros(3, 8, dtype=torch.float64)
        hidden, cells = [h], [c]
        for row in x:
            gates = torch.einsum("ia,gja->gij", row, wi) + torch.einsum("ib,gjb->gij", h, wh)
            into, new, keep, out = gates[0].sigmoid(), gates[1].tanh(), *gates[2:].sigmoid()
            c = keep * c + into * new
            h = out * c.tanh()
            hidden.append(h)
            cells.append(c)
        return [torch.stack(hidden), torch.stack(cells)]

    check(args, results, reference)


def test_two_steps_back_first_steps_that_depend_and_what_reads_the_scan():
    y, state = placeholder("Y", 8, 4), placeholder("S", 8, 4)
    first = te.compute((2, 4), lambda t, i: y[t, i] * y[t, i], "first")
    update = te.compute(
        (8, 4), lambda t, i: te.sin(state[t - 1, i]) * state[t - 2, 3 - i] + y[t, i], "update"
    )
    result = te.scan(first, update, state, name="R")
    read = te.compute((8,), lambda t: result[t, 0] * result[7 - t, 1], "read")

    def reference(y):
        values = [y[0] ** 2, y[1] ** 2]
        for row in y[2:]:
            values.append(values[-1].sin() * values[-2].flip(0) + row)
        result = torch.stack(values)
        return [result[:, 0] * result.flip(0)[:, 1]]

    check([y], [read], reference)


def test_largest_elements_of_earlier_steps():
    x, state, k = placeholder("X", 6, 4), placeholder("S", 6, 4), te.reduce_axis((0, 4), "k")
    most = te.compute((6,), lambda t: te.max(state[t - 1, k], axis=k), "most")
    update = te.compute((6, 4), lambda t, i: state[t - 1, i] - most[t] + x[t, i], "update")
    first = te.compute((1, 4), lambda _, i: x[0, i], "first")

    def reference(x):
        values = [x[0]]
        for row in x[1:]:
            values.append(values[-1] - values[-1].amax() + row)
        return [torch.stack(values)]

    check([x], [te.scan(first, update, state)], reference)


def test_second_derivatives():
    x, _, _, _, result = sums(5, 3, 0.5)
    squares = te.compute((5, 3), lambda t, i: result[t, i] * result[t, i], "squares")
    head = placeholder("head", 5, 3)
    (gradient,) = te.gradients([squares], [head], [x])

    def reference(x, head):
        total = (summed(x) ** 2 * head).sum()
        return torch.autograd.grad(total, x, create_graph=True)

    check([x, head], [gradient], reference)


def test_sizes_that_are_variables():
    n = te.var("n")
    x, _, _, _, result = sums(n, 4)
    head = placeholder("head", n, 4)
    (gradient,) = te.gradients([result], [head], [x])
    f = te.build([gradient], [x, head, gradient])
    for steps in (1, 9):
        given = normal(steps, 4)
        expected = np.cumsum(given[::-1], 0)[::-1]
        np.testing.assert_allclose(f(normal(steps, 4), given), expected, rtol=1e-5, atol=1e-5)


def test_a_kernel_records_gradients():
    @te.kernel
    def decayed(x):
        state = te.placeholder(x.shape, x.dtype, "S")
        first = te.compute((1, x.shape[1]), lambda _, i: x[0, i], "first")
        update = te.compute(x.shape, lambda t, i: state[t - 1, i] * 0.5 + x[t, i], "update")
        return te.scan(first, update, state)

    x = torch.randn(6, 40, requires_grad=True)
    head = torch.randn(6, 40)
    slopes = [torch.autograd.grad(function(x), x, head)[0] for function in (decayed, summed)]
    torch.testing.assert_close(*slopes)
