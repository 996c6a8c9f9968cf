# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elementwise ops of random programs: each draws one line of Python on values that exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from random_lines import (
    FLOATS,
    INTEGERS,
    MOST_TO_INTEGER,
    Draw,
    Line,
    any_type,
    floats,
    integers,
    numbers,
    op,
)

if TYPE_CHECKING:
    from random_programs import Writer


_SMOOTH = (
    "torch.neg({0})",
    "torch.abs({0})",
    "torch.exp(-{0}.abs())",
    "torch.tanh({0})",
    "torch.sigmoid({0})",
    "torch.relu({0})",
    "F.gelu({0})",
    "F.gelu({0}, approximate='tanh')",
    "F.silu({0})",
    "F.softplus({0})",
    "F.elu({0})",
    "F.leaky_relu({0}, 0.1)",
    "F.hardtanh({0})",
    "F.hardswish({0})",
    "F.mish({0})",
    "torch.erf({0})",
    "torch.sqrt({0}.abs() + 0.5)",
    "torch.rsqrt({0}.abs() + 0.5)",
    "torch.log1p({0}.abs())",
    "torch.log({0}.abs() + 0.5)",
    "torch.expm1(-{0}.abs())",
    "torch.sin({0})",
    "torch.cos({0})",
    "torch.atan({0})",
    "torch.square({0})",
    "torch.reciprocal({0}.abs() + 0.5)",
    "torch.clamp({0}, -1.5, 2)",
    "torch.nan_to_num({0})",
    "{0} * 0.5 + 1",
    "2 - {0}",
    "{0} ** 2",
    "{0} / 3",
)


@op
def smooth(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, floats)
    return name and Line(draw.choice(_SMOOTH), (name,))


_STEPPED = (
    "torch.floor({0})",
    "torch.ceil({0})",
    "torch.round({0})",
    "torch.trunc({0})",
    "torch.sign({0})",
    "torch.frac({0})",
    "{0} > 0",
    "{0} == 0",
    "{0}.bool()",
    "torch.isfinite({0})",
    "torch.signbit({0})",
    "torch.heaviside({0}, {0} + 1)",
    "{0} % 3",
    "{0} // 2",
)


@op
def stepped(writer: Writer, draw: Draw) -> Line | None:
    """Step functions such as floor, for exact values alone, where rounding cannot decide the
    result."""
    name = writer.pick(draw, floats, exact=True)
    return name and Line(draw.choice(_STEPPED), (name,), arithmetic=False)


_OF_INTEGERS = (
    "-{0}",
    "{0} + 3",
    "{0} * 2 - 1",
    "{0} % 5",
    "{0} // 3",
    "{0} >> 1",
    "{0} << 2",
    "~{0}",
    "{0} & 7",
    "{0} | 9",
    "{0} ^ 5",
    "{0} > 2",
    "{0}.clamp(1, 5)",
    "{0} ** 2",
    "torch.abs({0})",
    "{0} / 4",
    "torch.sqrt({0}.abs() + 1)",
    "torch.bitwise_not({0})",
)


@op
def of_integers(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, integers)
    return name and Line(draw.choice(_OF_INTEGERS), (name,))


_OF_TWO = (
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "torch.maximum({0}, {1})",
    "torch.minimum({0}, {1})",
    "torch.add({0}, {1}, alpha=2)",
    "torch.where({0} == {0}, {0}, {1})",
)
_OF_TWO_FLOATS = (
    "{0} / ({1}.abs() + 0.5)",
    "torch.atan2({0}, {1}.abs() + 0.5)",
    "torch.hypot({0}, {1} + 0.25)",
    "torch.lerp({0}, {1}.to({0}.dtype), 0.25)",
    "torch.logaddexp({0}, {1})",
)
_OF_TWO_EXACT = (
    "{0} < {1}",
    "{0} >= {1}",
    "{0} == {1}",
    "{0} != {1}",
    "torch.fmod({0}, {1}.abs() + 1)",
    "torch.remainder({0}, {1}.abs() + 1)",
    "torch.div({0}, {1}.abs() + 1, rounding_mode='trunc')",
    "torch.div({0}, {1}.abs() + 1, rounding_mode='floor')",
    "torch.logical_and({0}, {1})",
    "torch.logical_xor({0}, {1})",
)


@op
def of_two(writer: Writer, draw: Draw) -> Line | None:
    names = writer.pick_pair(draw, numbers)
    return names and Line(draw.choice(_OF_TWO), names)


@op
def of_two_floats(writer: Writer, draw: Draw) -> Line | None:
    names = writer.pick_pair(draw, floats)
    return names and Line(draw.choice(_OF_TWO_FLOATS), names)


@op
def of_two_exact(writer: Writer, draw: Draw) -> Line | None:
    names = writer.pick_pair(draw, numbers, exact=True)
    return names and Line(draw.choice(_OF_TWO_EXACT), names, arithmetic=False)


@op
def of_booleans(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, lambda tensor: tensor.dtype == torch.bool)
    forms = (
        "~{0}",
        "{0}.logical_not()",
        "{0}.to(<float32>)",
        "{0}.long()",
        "{0} & ~{0}",
        "{0} | True",
    )
    return name and Line(draw.choice(forms), (name,), arithmetic=False)


@op
def chosen(writer: Writer, draw: Draw) -> Line | None:
    mask = writer.pick(draw, lambda tensor: tensor.dtype == torch.bool)
    names = mask and writer.pick_pair(draw, numbers, beside=mask)
    if not names:
        return None
    form = draw.choice(("torch.where({0}, {1}, {2})", "{1}.masked_fill({0}, 2)"))
    return Line(form, (mask, *names), arithmetic=False)


@op
def converted(writer: Writer, draw: Draw) -> Line | None:
    name = writer.pick(draw, any_type)
    kind = draw.choice((*FLOATS, *INTEGERS, torch.bool))
    if name is None:
        return None
    if floats(writer.value(name)) and kind not in FLOATS:
        name = writer.pick(draw, floats, exact=True)
        if name is None or (writer.value(name).abs() > MOST_TO_INTEGER).any():
            return None
        if kind == torch.uint8:  # the conversion of a negative number is undefined
            return Line("{0}.abs().to(<uint8>)", (name,))
    return Line(f"{{0}}.to(<{str(kind)[6:]}>)", (name,))
