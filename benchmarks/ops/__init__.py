# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single ops and small compositions at everyday sizes, beside eager PyTorch: `python -m
benchmarks.ops`."""
