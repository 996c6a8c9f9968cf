# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Targets as strings, in the words of LLVM and TVM: `weft.compile(model, target="x86-64-v3")`."""

from __future__ import annotations

from weft import errors
from weft.artifacts.builds import cpu_flags

_V3 = ("avx2", "bmi1", "bmi2", "f16c", "fma")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_NEEDED = {"avx2": _V3, "avx512": _V4, "native": ()}

# Levels of the x86-64 psABI and names of LLVM's -mcpu, with the `isa` of their vectors.
_PROCESSORS = {
    "native": "native",
    **dict.fromkeys(
        "x86-64-v3 haswell broadwell skylake alderlake raptorlake znver1 znver2 znver3".split(),
        "avx2",
    ),
    **dict.fromkeys(
        "x86-64-v4 skylake-avx512 cascadelake cooperlake cannonlake icelake-client icelake-server "
        "tigerlake rocketlake sapphirerapids emeraldrapids graniterapids znver4 znver5".split(),
        "avx512",
    ),
}
_OPTIONS = ("-mcpu", "-mtriple", "-model")


def isa_of(target: str) -> str:
    """The `isa` of a target: a processor's name, or "llvm" with options of TVM's.

    -mcpu: the processor, by default this one. -mtriple: x86_64 on Linux. -model: any text.
    Raises: errors.ConfigError, for another processor, option or triple, or one whose instructions
    this machine lacks.
    """
    if not isinstance(target, str):
        raise errors.ConfigError(f"expected a target as a string, found {target!r}")
    first, *options = target.split() or [""]
    processor = first
    if first == "llvm":
        processor = _processor(options)
    elif options:
        raise errors.ConfigError(f"expected options behind 'llvm' alone, found {target!r}")
    if processor not in _PROCESSORS:
        known = ", ".join(_PROCESSORS)
        raise errors.ConfigError(
            f"expected a target among {known}, or 'llvm' with -mcpu=one of these, "
            f"found {processor!r}"
        )
    isa = _PROCESSORS[processor]
    missing = sorted(set(_NEEDED[isa]) - set(cpu_flags().split()))
    if missing:
        raise errors.ConfigError(
            f"target {processor!r}: this machine does not have {', '.join(missing)}"
        )
    return isa


def _processor(options: list[str]) -> str:
    found = "native"
    for option in options:
        name, sign, value = option.partition("=")
        if name not in _OPTIONS or not sign or not value:
            names = ", ".join(f"{each}=…" for each in _OPTIONS)
            raise errors.ConfigError(f"expected target options among {names}, found {option!r}")
        if name == "-mcpu":
            found = value
        if name == "-mtriple" and not (value.startswith("x86_64-") and "linux" in value):
            raise errors.ConfigError(f"expected a triple of x86_64 Linux, found {value!r}")
    return found
