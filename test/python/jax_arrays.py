# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls te kernels with arrays of JAX. test_te_jax.py runs this in a child process, since JAX
starts threads, which tests that fork cannot have."""

import gc

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from te_affine import affine_kernel, arrays

import weft


@pytest.fixture
def affine():
    return affine_kernel()


def test_arrays_are_read_where_they_lie(affine, monkeypatch):
    a, b = arrays()
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
    # The array passes through all frameworks without a copy; the memory outlives its first owners.
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


def test_arrays_are_not_written(affine):
    out = jnp.zeros((6, 10))
    with pytest.raises(weft.errors.ArgumentError, match="'Z': .* an array of JAX, which is immut"):
        affine(*arrays(), out)
    assert not np.asarray(out).any()
