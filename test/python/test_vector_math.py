# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elementary functions of vector code, against float64, over a sweep of all floats."""

import pytest
from ulps import FUNCTIONS, bit_patterns, worst_error

import weft

STRIDE = 1021  # a prime: every exponent is met with mantissas of all kinds
CHUNK = 2**20


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(name, no_grad, compiled_only):
    function, bound = FUNCTIONS[name]
    compiled = weft.compile(function)
    worst, where = max(worst_error(name, x, compiled(x)) for x in bit_patterns(STRIDE, CHUNK))
    assert worst <= bound, f"{name}({where!r})"
