# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of te kernels with arrays of JAX, which test_te_jax.py runs in a process of its own: the
threads that JAX starts would be in the way of the tests that fork."""

import gc

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import weft
from weft import te


@pytest.fixture
def affine():
    """Z = 2 X + Y, of 6 by 10."""
    x, y = te.placeholder((6, 10), name="X"), te.placeholder((6, 10), name="Y")
    z = te.compute((6, 10), lambda i, j: x[i, j] * 2 + y[i, j], "Z")
    return te.build(te.create_schedule(z), [x, y, z], name="affine")


@pytest.fixture
def arrays():
    random = np.random.default_rng(0)
    return [random.standard_normal((6, 10)).astype(np.float32) for _ in range(2)]


def test_arrays_are_read_where_they_lie(affine, arrays, monkeypatch):
    a, b = arrays
    x, y = jnp.asarray(a), jnp.asarray(b)
    seen, run = [], affine._program.run

    class Watching:
        def run(self, inputs, results, host):
            seen.extend(t.data_ptr() for t in (*inputs, *results))
            run(inputs, results, host)

    with monkeypatch.context() as patch:
        patch.setattr(affine, "_program", Watching())
        patch.setattr(affine, "_direct", lambda *_: False)
        result = affine(x, y)
    assert affine._direct(x, y, torch.zeros(6, 10))
    pointers = [each.unsafe_buffer_pointer() for each in (x, y, result)]
    assert seen == pointers and type(result) is type(x)
    # Through all of them and back, nothing is copied; the memory outlives those who had it.
    chain = affine(torch.from_dlpack(result), np.from_dlpack(y))
    np.testing.assert_allclose(chain.numpy(), (a * 2 + b) * 2 + b, rtol=1e-6)
    held = np.from_dlpack(result)
    del result, x
    gc.collect()
    np.testing.assert_allclose(held, a * 2 + b, rtol=1e-6)
    f = weft.dlpack.convert(affine, type(y), lambda t: t.__dlpack__(), jnp.from_dlpack)
    np.testing.assert_allclose(f(y, y), b * 3, rtol=1e-6)
    wide = jnp.asarray(np.concatenate([a, b], 1))
    np.testing.assert_allclose(affine(wide[:, :10], wide[:, 10:].T.T), a * 2 + b, rtol=1e-6)


def test_arrays_are_not_written(affine, arrays):
    out = jnp.zeros((6, 10))
    with pytest.raises(weft.errors.ArgumentError, match="'Z': .* an array of JAX, which is immut"):
        affine(*arrays, out)
    assert not np.asarray(out).any()
