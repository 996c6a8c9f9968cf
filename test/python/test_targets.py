# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.compile(target=…)`: strings that name processors, checked before anything is compiled."""

import pytest
import torch

import weft
from weft import errors
from weft.artifacts import builds, targets

HAS_AVX512 = "avx512vl" in builds.cpu_flags().split()


@pytest.mark.parametrize(
    "target, isa",
    [
        ("native", "native"),
        ("llvm", "native"),
        ("x86-64-v3", "avx2"),
        ("skylake", "avx2"),
        ("llvm -mcpu=haswell -model=anything", "avx2"),
        ("llvm -mtriple=x86_64-pc-linux-gnu -mcpu=x86-64-v3", "avx2"),
    ],
)
def test_what_a_target_means(target, isa):
    assert targets.isa_of(target) == isa


@pytest.mark.skipif(not HAS_AVX512, reason="this machine has no AVX-512")
def test_targets_of_avx512():
    for target in ("x86-64-v4", "llvm -mcpu=znver4", "sapphirerapids"):
        assert targets.isa_of(target) == "avx512"


def test_a_target_is_what_is_compiled_for():
    compiled = weft.compile(lambda x: x * 3 - 1, target="x86-64-v3")
    assert torch.equal(compiled(torch.ones(20)), torch.full((20,), 2.0))
    features = weft.load(compiled.artifact_path).manifest["cpu_features"]
    assert "avx2" in features and not any(each.startswith("avx512") for each in features)


@pytest.mark.parametrize(
    "target, message",
    [
        ("x86-64-v5", "x86-64-v3, .*x86-64-v4, .*found 'x86-64-v5'"),
        ("", "found ''"),
        ("llvm -mcpu=m68k", "found 'm68k'"),
        ("llvm -mattr=+avx", "target options among -mcpu=…, -mtriple=…, -model=…"),
        ("llvm -mcpu", "target options among"),
        ("skylake -model=x", "options behind 'llvm' alone"),
        ("llvm -mtriple=aarch64-linux-gnu", "a triple of x86_64 Linux"),
        (3, "expected a target as a string, found 3"),
    ],
)
def test_wrong_targets_are_refused_at_once(target, message):
    with pytest.raises(errors.ConfigError, match=message):
        weft.compile(torch.relu, target=target)


def test_what_this_machine_lacks_is_named(monkeypatch):
    monkeypatch.setattr(targets, "cpu_flags", lambda: "avx2 bmi1 bmi2 f16c fma avx512f")
    assert targets.isa_of("x86-64-v3") == "avx2"
    with pytest.raises(errors.ConfigError, match="does not have avx512bw, avx512cd"):
        targets.isa_of("x86-64-v4")


def test_isa_and_target_are_one_too_many():
    with pytest.raises(errors.ConfigError, match="isa or target, found both"):
        weft.compile(torch.relu, isa="avx2", target="x86-64-v3")


def test_as_a_decorator_and_of_a_copy():
    @weft.compile(target="x86-64-v3")
    def plus_one(x):
        return x + 1

    assert torch.equal(plus_one(torch.zeros(2)), torch.ones(2))
