# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random tensor expressions under random schedules have NumPy's values, or are refused."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from te_reference import evaluate
from te_strategies import arrays_for, scheduled_programs

from weft import te


def check(inputs, output, schedule, seed):
    arrays = arrays_for(inputs, seed)
    expected = evaluate(output, dict(arrays))
    function = te.build(schedule, [*inputs, output], default=False)
    found = function(*(arrays[each] for each in inputs))
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if expected.dtype.kind == "f":
        bound = 2e-4  # of float32, which any expression may go through
        np.testing.assert_allclose(found, expected, rtol=bound, atol=bound * _scale(expected))
    else:
        np.testing.assert_array_equal(found, expected)


def _scale(values):
    finite = np.abs(values[np.isfinite(values)])
    return max(1.0, float(finite.max())) if finite.size else 1.0


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(scheduled_programs())
def test_random_schedules_of_random_expressions(program):
    inputs, output, s = program
    assert s.copy() == s and hash(s.copy()) == hash(s)
    assert te.load_script(s.script(), output) == s
    check(inputs, output, s, seed=len(s.steps))
