# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Settings, facts of tensors and of the process that Python code reads: later calls may find them
otherwise, so that they are watched or the call is left to PyTorch."""

import builtins
import functools
import gc
import sys
import time

import numpy
import pytest
import torch
from torch import nn

import weft

pytestmark = [
    pytest.mark.usefixtures("no_grad", "verified"),
    pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning"),
]


SETTINGS = {
    "anomalies": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, True, False),
    "warnings": (torch.is_warn_always_enabled, torch.set_warn_always, True, False),
    "flash": (
        lambda: torch.backends.cuda.flash_sdp_enabled(),
        torch.backends.cuda.enable_flash_sdp,
        *(False, True),
    ),
    "fast path": (
        lambda: torch.backends.mha.get_fastpath_enabled(),
        torch.backends.mha.set_fastpath_enabled,
        *(False, True),
    ),
    "cudnn": (
        lambda: torch.backends.cudnn.benchmark,
        torch._C._set_cudnn_benchmark,  # tests of torch's own may have locked the attribute
        *(True, False),
    ),
    "onednn": (lambda: torch.backends.mkldnn.enabled, torch._C._set_mkldnn_enabled, False, True),
    "numpy": (
        lambda: numpy.geterr()["divide"] == "ignore",
        lambda value: numpy.seterr(divide="ignore" if value else "warn"),
        *(True, False),
    ),
    "collector": (gc.get_threshold, lambda value: gc.set_threshold(*value), (9, 9, 9), (700, 9, 9)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SETTINGS)
def test_settings(name):
    get, put, changed, usual = SETTINGS[name]
    before = get()

    def f(x):
        return x * (2 if get() == changed else 3)

    compiled, x = weft.compile(f), torch.ones(2)
    try:
        for value in (usual, changed, usual):
            put(value)
            for _ in range(3):
                assert compiled(x).tolist() == f(x).tolist()
    finally:
        put(before)


TENSORS = {
    "version": lambda x: x * 0 + x._version,
    "base": lambda x: x * 0 + (x._base is None),
    "offset": lambda x: x * 0 + x.storage_offset(),
    "storage": lambda x: x * 0 + x.untyped_storage().nbytes(),
    "shared": lambda x: x * 0 + x.is_shared(),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TENSORS)
def test_what_a_tensor_tells_of_itself(name):
    function = TENSORS[name]
    compiled = weft.compile(function)
    longer = torch.arange(8.0)
    tensors = [torch.arange(4.0), torch.arange(4.0).add_(1).add_(1), longer[:4], longer[4:]]
    for x in [*tensors, torch.arange(4.0).share_memory_()]:
        for _ in range(3):
            assert compiled(x).tolist() == function(x).tolist()


class Clocked(nn.Module):
    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.deadline = time.perf_counter() + 1e9

    def forward(self, x):
        return x * 2 if self.clock() < self.deadline else x * 3


@pytest.mark.parametrize(
    "clock", [time.perf_counter, functools.partial(time.time)], ids=["attribute", "partial"]
)
def test_a_clock_in_an_attribute(clock):
    compiled = weft.compile(Clocked(clock))
    compiled(torch.ones(2))
    (reason,) = weft.stats(compiled)["breaks"]
    assert "no guard" in reason


def test_a_clock_that_no_code_reads():
    model = Clocked(time.perf_counter)
    model.forward = lambda x: x * 2
    compiled = weft.compile(model)
    for _ in range(3):
        assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert weft.stats(compiled)["hits"]


def test_variables_of_callers():
    compiled = weft.compile(lambda x: x * len(sys._getframe().f_back.f_locals))
    for _ in range(2):
        compiled(torch.ones(2))
    (reason,) = weft.stats(compiled)["breaks"]
    assert "callers" in reason


def test_metaclasses():
    class Meta(type):
        factor = 2.0

    class Model(nn.Module, metaclass=Meta):
        def forward(self, x):
            return x * type(self).factor

    compiled = weft.compile(Model())
    for factor in (2.0, 5.0):
        Meta.factor = factor
        for _ in range(3):
            assert compiled(torch.ones(2)).tolist() == [factor, factor]
    assert weft.stats(compiled)["hits"]


def test_patched_builtins(monkeypatch):
    compiled = weft.compile(lambda x: x * abs(-3))
    for value in (3, 100):
        monkeypatch.setattr(builtins, "abs", lambda _, value=value: value)
        for _ in range(3):
            assert compiled(torch.ones(1)).item() == value
    assert weft.stats(compiled)["hits"]
