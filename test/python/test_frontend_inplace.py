# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In-place ops: which ones their out-of-place forms stand for, and that values stay right; also of
lists of tensors."""

import io

import pytest
import torch

import weft
import weft.frontend.ops  # noqa: F401 (fills the table)
from weft.frontend.inplace import mutates_beyond, out_of_place
from weft.frontend.table import TABLE

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")


def chain(x):
    y = x @ x.t()
    y.relu_().add_(1)
    return y.mul_(2).flatten()


def view_before_the_write(x):
    y = x + 1
    row = y[0]
    y.mul_(2)
    return row + 1


def pieces_before_the_write(x):
    y = x + 1
    pieces = y.split(1)
    y.mul_(2)
    return pieces[0] + pieces[1]


def write_through_a_view(x):
    y = x + 1
    y[0].mul_(3)
    return y + 0


def argument(x):
    x.mul_(2)
    return x + 1


def promoted(x):
    y = x + 1
    y.add_(torch.ones(3, dtype=torch.float64))
    return y * 2


def view_after_the_write(x):
    y = (x + 1).mul_(2)
    return y.view(-1) + y.t().reshape(-1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("function", "simple"),
    [
        (chain, True),
        (view_after_the_write, True),
        (view_before_the_write, False),
        (pieces_before_the_write, False),
        (write_through_a_view, False),
        (argument, False),
        (promoted, False),
    ],
)
def test_writes(function, simple):
    class Root(torch.nn.Module):
        def forward(self, x):
            return function(x)

    x = torch.randn(3, 3)
    graph = torch.export.export(Root(), (x.clone(),), strict=False).graph
    assert mutates_beyond(graph) is not simple
    compiled = weft.compile(function)
    for _ in range(2):
        mine, theirs = x.clone(), x.clone()
        torch.testing.assert_close(compiled(mine), function(theirs))
        torch.testing.assert_close(mine, theirs)


def test_out_of_place_forms():
    aten = torch.ops.aten
    assert out_of_place(aten.relu_.default) is aten.relu.default
    assert out_of_place(aten.add_.Tensor) is aten.add.Tensor
    for op in (aten.relu.default, aten.add.out, aten.index_put.default):
        assert out_of_place(op) is None


def in_place_forms():
    """Those of one or two tensors whose out-of-place form has a rule."""
    for packet in (getattr(torch.ops.aten, name) for name in dir(torch.ops.aten)):
        if not isinstance(packet, torch._ops.OpOverloadPacket):
            continue
        for op in (getattr(packet, overload) for overload in packet.overloads()):
            functional = out_of_place(op)
            required = [a for a in op._schema.arguments if not a.has_default_value()]
            if functional is None or str(functional) not in TABLE:
                continue
            if all(str(a.type) == "Tensor" for a in required) and len(required) <= 2:
                yield str(op), len(required)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "count"), in_place_forms())
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_forms(name, count, dtype):
    """Rules that tell ops apart by the name that they are called by know this one."""
    _, packet, overload = name.split(".")
    op = getattr(getattr(torch.ops.aten, packet), overload)
    x, *others = ((torch.rand(5, 3) * 0.7 + 1).to(dtype) for _ in range(count))

    def function(x, *others):
        return op(x.clone(), *others) + 0

    try:
        expected = function(x, *others)
    except RuntimeError:
        return  # not of this type
    compiled = weft.compile(function)
    found = compiled(x, *others)
    torch.testing.assert_close(found, expected, equal_nan=True)


def lists(a, b, c):
    x, y = a * 1.5, b.clone()
    torch._foreach_mul_([x, y], 2.0)
    torch._foreach_add_([x, y], [c[:3], c[:2]], alpha=0.5)
    torch._foreach_div_([x, y], [2.0, 3.0])
    torch._foreach_addcmul_([x, y], [x + 1, y], [y.sum().expand(3), y], value=0.3)
    torch._foreach_addcdiv_([x, y], [x + 1, y], [x + 3, y + 2], [0.3, 2])
    torch._foreach_lerp_([x, y], [c[:3], c[:2]], 0.9)
    torch._foreach_maximum_([x, y], 0.3)
    torch._foreach_clamp_max_([x, y], [5.0, 0.4])
    torch._foreach_pow_([x, y], 2)
    norms = torch._foreach_norm([x, y], 1, dtype=torch.float64)
    powers = torch._foreach_pow(2.0, [x, y])
    whole = torch._foreach_maximum([torch.arange(3), y], [1, 0.5])
    copies = torch._foreach_clone(torch._foreach_minimum([x, y], [c[:3], c[:2]]))
    torch._foreach_copy_([a, b], torch._foreach_mul([x, y], c.sum()))
    twice = [x.clone()] * 2
    torch._foreach_add_(twice, 1)
    torch._foreach_zero_(copies[:1])
    return norms, powers, whole, copies, twice, torch._foreach_max([x, y])


def test_lists_of_tensors():
    compiled = weft.compile(lists)
    arguments = (torch.rand(3), torch.rand(2), torch.rand(4))
    for _ in range(2):
        mine, theirs = ([each.clone() for each in arguments] for _ in range(2))
        torch.testing.assert_close(compiled(*mine), lists(*theirs))
        torch.testing.assert_close(mine, theirs)
    report = io.StringIO()
    weft.report(compiled, file=report)
    assert "aten." not in report.getvalue()  # PyTorch runs none of them
