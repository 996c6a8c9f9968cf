# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Declares what NumPy's functions read and write, and the generators of random numbers."""

from __future__ import annotations

import random

import numpy

from weft import _capture

# The results of these depend on their arguments alone. A call with `out` is not observed.
_ARRAY_FUNCTIONS = (
    "arange array asarray zeros ones full empty eye identity linspace logspace zeros_like "
    "ones_like full_like empty_like floor ceil rint trunc round sqrt square exp log log2 log10 "
    "sin cos tan arctan arctan2 tanh abs absolute sign power mod add subtract multiply divide "
    "maximum minimum clip sum prod mean std var max min argmax argmin argsort sort cumsum cumprod "
    "any all isnan isinf isfinite meshgrid stack concatenate vstack hstack reshape transpose "
    "expand_dims squeeze where unique outer dot matmul tile repeat tril triu diag flip roll "
    "deg2rad rad2deg size shape ndim argwhere result_type percentile median quantile atleast_1d "
    "ravel swapaxes count_nonzero array_equal pad log1p floor_divide"
).split()
_ARRAY_METHODS = (
    "reshape astype sum mean transpose copy tolist item max min argmax argmin flatten ravel "
    "squeeze repeat round cumsum dot any all take swapaxes std var prod nonzero"
).split()
_NUMPY_DRAWS = (
    "rand randn randint random random_sample uniform normal choice permutation standard_normal "
    "beta binomial"
).split()


def declare_arrays() -> None:
    _capture.set_operator("array", numpy.ndarray)
    _capture.set_operator("array scalar", numpy.number)
    _capture.declare_plain(numpy.bool_)
    for kind in vars(numpy.dtypes).values():
        if isinstance(kind, type):
            _capture.declare_plain(kind)
    for name in _ARRAY_FUNCTIONS:
        _capture.declare(getattr(numpy, name), "arrays")
    for name in _ARRAY_METHODS:
        _capture.declare(getattr(numpy.ndarray, name), "arrays")
    for kind in (numpy.float32, numpy.float64, numpy.int32, numpy.int64):
        _capture.declare(kind, "pure")
        for name in ("item", "astype", "__int__", "__float__", "round"):
            _capture.declare(getattr(kind, name), "pure")
    for name in _NUMPY_DRAWS:
        _capture.declare(vars(numpy.random.RandomState)[name], "draws")
    _capture.declare(numpy.random.seed, "seeds")
    _capture.set_operator("seed arrays", numpy.random.seed)
    _capture.set_operator("array generator", numpy.random.random.__self__)
    for name in ("random", "getrandbits", "seed"):
        _capture.declare(getattr(random.Random, name), "draws")
