# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A fixed tenth of ONNX's own tests; `PYTHONPATH=test python -m onnx_nodes` takes all."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from onnx_nodes.cases import DATA, cases
from onnx_nodes.judge import Verdict, judge

SHARE, SEED, LEAST_NATIVE = 0.1, 46, 0.8


@pytest.mark.skipif(not DATA.is_dir(), reason="Debian's libonnx-testdata is not installed")
def test_a_tenth_of_the_node_tests_is_right():
    found = cases(["node"])
    chosen = random.Random(SEED).sample(found, int(SHARE * len(found)))
    judged = [judge(case) for case in chosen]
    wrong = [f"{each.case}: {each.why}" for each in judged if each.verdict == Verdict.WRONG]
    assert not wrong, "\n".join(wrong)
    native = sum(each.verdict == Verdict.NATIVE for each in judged)
    assert native >= LEAST_NATIVE * len(judged)
