# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the Python tests: seeds are fixed, and the folder's helpers can be imported."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(0)
