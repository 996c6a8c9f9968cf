# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules of nests that were edited: right values, or an error that names the field."""

import random
import re
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from weft import errors, ir

pytestmark = pytest.mark.usefixtures("no_grad")

CASES = {
    "pointwise": lambda x: x * 2 + 1,
    "softmax": lambda x: F.softmax(x, -1),
    "columns": lambda x: (x.sum(0), x.amax(0)),
    "rows": lambda x: (x - x.mean(1, keepdim=True)).exp(),
    "scan": lambda x: x.cumsum(1),
    "transpose": lambda x: x.t() + 1,
    "join": lambda x: torch.cat([x, x * 2], 1),
    "pad": lambda x: F.pad(x * 2, (1, 2)),
    "padded sums": lambda x: F.pad(x.sum(1), (1, 2)),
}
EDITS = 12
_SCHEDULE = re.compile(r"#weft\.schedule<loop_nest( serial)? \{([^}]*)\}")
_NUMBERS = {
    "block": (1, 40), "claim": (1, 9), "groups": (1, 6), "lane": (-1, 2), "lanes": (1, 16),
    "load": (-1, 2), "unroll": (0, 40),
}  # fmt: skip
_LISTS = {
    "cached_operands": (-1, 1), "cell": (0, 2), "grid": (0, 2), "interiors": (0, 1),
    "loops": (1, 40), "reduced_lanes": (-1, 1), "rows": (0, 2), "targets": (0, 1),
}  # fmt: skip
_NAMES = {
    "scans": ["none", "rows", "lanes", "squares"],
    "transpose": ["none", "results", "reads"],
}


def edited(fields: str, draw: random.Random) -> str:
    """With one or two other values, in the range of their fields or a little beyond the loops."""
    for name in draw.sample([*_NUMBERS, *_LISTS, *_NAMES], draw.choice((1, 1, 2))):
        if name in _NUMBERS:
            value = f"{draw.randint(*_NUMBERS[name])} : i64"
        elif name in _LISTS:
            values = [str(draw.randint(*_LISTS[name])) for _ in range(draw.choice((0, 1, 1, 2)))]
            value = f"array<i64: {', '.join(values)}>" if values else "array<i64>"
        else:
            value = f'"{draw.choice(_NAMES[name])}"'
        fields = re.sub(rf"\b{name} = (array<i64[^>]*>|[^,]+)", f"{name} = {value}", fields)
    return fields


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES)
def test_edited_schedules(case):
    draw = random.Random(case)
    torch.manual_seed(0)
    x = torch.randn(20, 33)
    function = CASES[case]
    wanted = function(x)
    scheduled = str(ir.of(function, x).lower("scheduled", isa="avx2", threads=2))
    assert _SCHEDULE.search(scheduled)
    honoured = 0
    for _ in range(EDITS):
        text = _SCHEDULE.sub(
            lambda found: f"#weft.schedule<loop_nest{found[1] or ''} {{{edited(found[2], draw)}}}",
            scheduled,
            count=1,
        )
        try:
            module = ir.Module.parse(text, stage="scheduled")
            found = ir.run(module, "scheduled", x, isa="avx2", threads=2)
        except (errors.CompileError, errors.ParseError) as error:
            assert "schedule" in str(error), text
            continue
        torch.testing.assert_close(found, wanted, msg=partial("{1}\n{0}".format, text))
        honoured += 1
    assert honoured
