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
    "ravel swapaxes count_nonzero array_equal pad log1p floor_divide histogram histogram2d "
    "histogram_bin_edges bincount digitize searchsorted interp hypot isclose allclose array_split "
    "split hsplit vsplit column_stack nan_to_num diff gradient cross kron trace average ptp cov "
    "corrcoef convolve polyfit polyval logical_and logical_or logical_not logical_xor isin "
    "intersect1d union1d setdiff1d flatnonzero nonzero ascontiguousarray broadcast_to rot90 fliplr "
    "flipud indices vander inner tensordot einsum cbrt expm1 exp2 fabs fmod remainder sinh cosh "
    "arcsin arccos arcsinh arccosh arctanh degrees radians nanmean nansum nanmax nanmin nanstd "
    "argpartition partition lexsort take take_along_axis delete insert append moveaxis dstack "
    "float_power true_divide negative reciprocal angle real imag triu_indices tril_indices "
    "unravel_index ravel_multi_index geomspace hanning hamming blackman kaiser bartlett sinc "
    "around greater less equal greater_equal less_equal not_equal isscalar issubdtype "
    "can_cast"
).split()
_ARRAY_METHODS = (
    "reshape astype sum mean transpose copy tolist item max min argmax argmin flatten ravel "
    "squeeze repeat round cumsum dot any all take swapaxes std var prod nonzero"
).split()
_NUMPY_DRAWS = (
    "rand randn randint random random_sample uniform normal choice permutation standard_normal "
    "beta binomial exponential gamma poisson laplace"
).split()
_GENERATOR_DRAWS = (
    "random integers uniform normal choice permutation standard_normal beta binomial exponential "
    "gamma poisson laplace permuted standard_gamma lognormal multivariate_normal dirichlet"
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
    for writer in (numpy.ndarray.fill, numpy.ndarray.sort, numpy.ndarray.put, numpy.copyto):
        _capture.declare(writer, "array writes")
    _capture.declare(numpy.fill_diagonal, "array writes")
    for kind in (numpy.float32, numpy.float64, numpy.int32, numpy.int64):
        _capture.declare(kind, "pure")
        for name in ("item", "astype", "__int__", "__float__", "round"):
            _capture.declare(getattr(kind, name), "pure")
    for name in _NUMPY_DRAWS:
        _capture.declare(vars(numpy.random.RandomState)[name], "draws")
    for name in _GENERATOR_DRAWS:
        _capture.declare(vars(numpy.random.Generator)[name], "draws")
    for make in (numpy.random.default_rng, numpy.random.RandomState, random.Random):
        _capture.declare(make, "seeded")
    _capture.set_operator("generator of arrays", numpy.random.Generator)
    _capture.set_operator("older generator of arrays", numpy.random.RandomState)
    _capture.declare(numpy.random.seed, "seeds")
    _capture.set_operator("seed arrays", numpy.random.seed)
    _capture.set_operator("array generator", numpy.random.random.__self__)
    _capture.set_operator("generator of Python", random.Random)
    for name in ("random", "getrandbits", "seed"):
        _capture.declare(getattr(random.Random, name), "draws")
