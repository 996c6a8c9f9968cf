# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A te kernel, and arrays of NumPy to call it with."""

import numpy as np

from weft import te


def affine_kernel():
    """The kernel Z = 2 X + Y, whose operands are 6 by 10."""
    x, y = te.placeholder((6, 10), name="X"), te.placeholder((6, 10), name="Y")
    z = te.compute((6, 10), lambda i, j: x[i, j] * 2 + y[i, j], "Z")
    return te.build(te.create_schedule(z), [x, y, z], name="affine")


def arrays(seed=0):
    random = np.random.default_rng(seed)
    return [random.standard_normal((6, 10)).astype(np.float32) for _ in range(2)]
