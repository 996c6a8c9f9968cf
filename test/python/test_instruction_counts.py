# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Guards of the key kernels' speed that no clock decides: instructions that a call executes, and
cycles that a contraction's inner loop takes in LLVM's model of a processor.

A record may be exceeded by 5 %. When one is, on purpose (the code is faster, or right only now,
though it executes more), measure with `python -m benchmarks.run` that it is no slower, and write
the new number here in the same commit, whose message says why. When one has become much smaller,
write that down too: a record guards only what it is near to.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from processor import ISAS

import weft
from weft import _core

nn = torch.nn
pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")

ALLOWED = 1.05
RUN_ARTIFACT = Path(_core.__file__).parents[2] / "test/gtest/runtime/weft-run-artifact"

# Instructions of one call on AVX2, which callgrind knows.
INSTRUCTIONS = {
    "contraction": (lambda: nn.Linear(96, 72), (64, 96), 96_880),
    "softmax": (lambda: nn.Softmax(-1), (64, 100), 61_236),
    "layer norm": (lambda: nn.LayerNorm(100), (64, 100), 17_929),
}
# For an instruction set: a processor that LLVM has a model of, the vector register, and cycles
# per multiply-add of the inner loop.
LOOPS = {
    "avx2": ("haswell", "ymm", 0.502),
    "avx512": ("skylake-avx512", "zmm", 0.501),
}


def artifact(module, *shape, isa):
    compiled = weft.compile(module.eval(), isa=isa, threads=1)
    compiled(torch.randn(*shape))
    return compiled.artifact_path


def advice(what, found, recorded):
    return (
        f"{what}: found {found:g}, recorded {recorded:g}, {100 * (found / recorded - 1):+.1f} %; "
        "the head of this file says what to do if that is right"
    )


def instructions(path, folder):
    valgrind = shutil.which("valgrind")
    assert valgrind is not None, "expected valgrind, a package of apt-packages.txt"
    done = subprocess.run(
        [
            valgrind, "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind.out",
            "--collect-atstart=no", "--toggle-collect=callEntry", RUN_ARTIFACT, path,
        ],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


@pytest.mark.parametrize("kernel", INSTRUCTIONS)
def test_instructions(kernel, tmp_path):
    make, shape, recorded = INSTRUCTIONS[kernel]
    found = instructions(artifact(make(), *shape, isa="avx2"), tmp_path)
    assert found <= ALLOWED * recorded, advice(f"instructions of a {kernel}", found, recorded)


def inner_loops(path):
    """The loops without a jump inside, each a list of instructions without its last jump."""
    text = subprocess.run(
        ["llvm-objdump-22", "--disassemble", "--no-show-raw-insn", path],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    code = re.findall(r"^ +([0-9a-f]+): +\t?(.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    start = 0
    for number, (address, instruction) in enumerate(code):
        jump = re.match(r"j\w+\s+0x([0-9a-f]+)", instruction)
        if jump is None:
            continue
        target = int(jump[1], 16)
        if int(code[start][0], 16) <= target <= int(address, 16):
            yield [each for at, each in code[start:number] if int(at, 16) >= target]
        start = number + 1


def cycles_per_fma(path, cpu, register):
    """Of the inner loop with most multiply-adds on whole registers."""

    def fmas(loop):
        return sum("vfmadd" in each and register in each for each in loop)

    loop = max(inner_loops(path), key=fmas)
    iterations = 200
    done = subprocess.run(
        ["llvm-mca-22", "-mtriple=x86_64", f"-mcpu={cpu}", f"-iterations={iterations}"],
        input="\n".join(loop) + "\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(re.search(r"Total Cycles: +(\d+)", done.stdout)[1]) / (iterations * fmas(loop))


@pytest.mark.parametrize("isa", ISAS)
def test_inner_loop_of_a_contraction(isa):
    cpu, register, recorded = LOOPS[isa]
    path = artifact(nn.Linear(768, 768), 128, 768, isa=isa)
    found = cycles_per_fma(path, cpu, register)
    assert found <= ALLOWED * recorded, advice(f"cycles per FMA on {cpu}", found, recorded)
