# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results without values (weft.frontend.plain_fakes) have the shapes, strides and types of the
kernels' results."""

import functools
import itertools

import pytest
import torch
from torch._decomp import meta_table
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_impls import op_implementations_dict

from weft.frontend.fakes import fakes_completed
from weft.frontend.plain_fakes import PLAIN_FAKES

aten = torch.ops.aten

LAYOUTS = {
    "rows": lambda tensor: tensor,
    "columns": lambda tensor: tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor,
    "strided": lambda tensor: torch.stack([tensor, tensor], -1)[..., 0],
}


def laid_out(layout, dtype, *sizes):
    return layout(torch.ones(sizes, dtype=dtype))


def cases(make):
    """make: a tensor of the sizes."""
    for rows, depth, columns in itertools.product((0, 1, 4), (0, 1, 3), (1, 5)):
        a, b = make(rows, depth), make(depth, columns)
        yield aten.addmm.default, make(columns), a, b
        yield aten.addmm.default, make(columns), a, make(columns, depth).t()
        yield aten.addmm.default, make(1), a, b
        yield aten.addmm.default, make(rows, columns), a, b
    for sizes in ((4,), (0, 4), (2, 3, 4), (2, 0, 4), (2, 3, 4, 5)):
        for count, with_weights in itertools.product((1, 2), (False, True)):
            normalized = list(sizes[-count:])
            weights = (make(*normalized), make(*normalized)) if with_weights else (None, None)
            yield aten.native_layer_norm.default, make(*sizes), normalized, *weights, 1e-5
        yield aten.relu.default, make(*sizes)
        yield aten.gelu.default, make(*sizes)
        for dim in (-1, 0, len(sizes)):
            yield aten._log_softmax.default, make(*sizes), dim, False
        for training, with_weights in itertools.product((False, True), repeat=2):
            channels = sizes[1] if len(sizes) > 1 else 4
            weights = (make(channels), make(channels)) if with_weights else (None, None)
            moments = (make(channels), make(channels))
            x = make(*sizes)
            yield aten.native_batch_norm.default, x, *weights, *moments, training, 0.1, 1e-5
    for reduction, with_weights, rows in itertools.product((0, 1, 2), (False, True), (0, 1, 3)):
        weight, targets = make(4) if with_weights else None, torch.zeros(rows, dtype=torch.int64)
        yield aten.nll_loss_forward.default, make(rows, 4), targets, weight, reduction, -100
        yield aten.nll_loss_forward.default, make(rows, 4), targets[1:], weight, reduction, -100
    yield aten.nll_loss_forward.default, make(4), torch.tensor(2), None, 1, -100


def described(results):
    results = [results] if isinstance(results, torch.Tensor) else results
    return [(tuple(each.shape), each.stride(), each.dtype) for each in results]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_as_the_kernels_give_them(dtype):
    known = set()
    mode = FakeTensorMode()
    for layout in LAYOUTS.values():
        for op, *args in cases(functools.partial(laid_out, layout, dtype)):
            fakes = [mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in args]
            found = PLAIN_FAKES[op].__wrapped__(*fakes)
            if found is not None:
                known.add(op)
                assert described(found) == described(op(*args)), (op, args)
    assert known == (set() if dtype is torch.bfloat16 else set(PLAIN_FAKES))


def test_the_rest_is_left_to_decompositions():
    with fakes_completed(), FakeTensorMode():
        x = torch.empty(4, 6, dtype=torch.bfloat16)
        normal = aten.native_layer_norm(x, [6], None, None, 1e-5)[0]
        assert normal.shape == (4, 6) and normal.dtype is torch.bfloat16
        with pytest.raises(RuntimeError):
            aten.addmm(torch.empty(5), torch.empty(2, 3), torch.empty(4, 5))


def test_what_torch_itself_has_is_put_back():
    before = [dict(table) for table in (op_implementations_dict, meta_table)]
    with fakes_completed(), fakes_completed():
        assert before[0] != op_implementations_dict
    assert before == [op_implementations_dict, meta_table]
