# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python test/python/machine_code.py FOLDER` writes the machine code of programs with every kind
of kernel, one text file for each program, instruction set and number of threads.

To prove that a change leaves machine code unchanged, run this before and after it, with two
folders, and compare them with `diff -r`. Addresses are left out, as they depend on the size of the
manifest.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from guard_cases import KINDS
from guarded import Call, compile_calls
from processor import ISAS

SIZES = (9, 33)
CALLS_OF_A_PROGRAM = 60
CONFIGURATIONS = [(isa, threads) for isa in [*ISAS, "native"] for threads in (1, 2)]


def large() -> dict[str, tuple[Callable[..., object], tuple[tuple[int, ...], ...]]]:
    """Programs whose kernels are divided among threads: by name, a function and its arguments'
    shapes."""
    nn = torch.nn
    rows = torch.randint(0, 512, (4096,))
    encoder = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True).eval()
    images = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    ).eval()  # fmt: skip
    mixer = nn.Sequential(nn.Linear(196, 256), nn.GELU(), nn.Linear(256, 196)).eval()
    return {
        "pointwise": (lambda x, y: (x * y).tanh() + y.t(), ((512, 512), (512, 512))),
        "softmax": (lambda x: x.softmax(-1), ((512, 1024),)),
        "columns": (lambda x: (x.sum(0), x.mean(1), x.amax(0), x.var(0)), ((512, 1024),)),
        "norms": (lambda x, w: F.layer_norm(x, w.shape, w, w), ((512, 768), (768,))),
        "scans": (lambda x: (x.cumsum(0), x.cumsum(1)), ((256, 512),)),
        "moves": (lambda x: (torch.cat([x, x.flip(1)], 1), x.t().contiguous()), ((512, 512),)),
        "scatters": (lambda x, y: x.index_add(0, rows, y), ((512, 256), (4096, 256))),
        "sorts": (lambda x: (x.sort(stable=True)[0], x.topk(5)[0], x.topk(100)[0]), ((64, 4096),)),
        "bytes": (lambda x: ((x > 0) & (x < 1)).logical_not(), ((512, 512),)),
        "encoder": (encoder, ((2, 64, 128),)),
        "images": (images, ((2, 3, 64, 64),)),
        "mixer": (lambda x: mixer(x.transpose(1, 2)).transpose(1, 2) + x, ((2, 196, 384),)),
        "decoder step": (nn.Linear(768, 3072).eval(), ((1, 768),)),
        "recurrent": (nn.GRU(64, 128).eval(), ((16, 4, 64),)),
    }


def programs() -> Iterator[tuple[str, list[Call]]]:
    for name, (function, shapes) in large().items():
        yield name, [Call(name, function, tuple(torch.randn(shape) for shape in shapes))]
    for kind, calls_of in KINDS.items():
        calls = calls_of(SIZES)
        for part in itertools.count():
            if not (calls_now := list(itertools.islice(calls, CALLS_OF_A_PROGRAM))):
                break
            yield f"{kind}-{part}", calls_now


def code_of(path: str) -> str:
    """The disassembly of an artifact, without addresses."""
    text = subprocess.run(
        ["llvm-objdump-22", "--disassemble", "--no-show-raw-insn", "--no-leading-addr", path],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    text = text.partition("Disassembly of")[2]
    text = re.sub(r"\s*#.*", "", text)  # comments, which have the addresses of operands
    text = re.sub(r"-?0x[0-9a-f]+\(%rip\)", "(%rip)", text)
    return re.sub(r"(0x)?[0-9a-f]+ <", "<", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="a regular expression that a file's name has")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["WEFT_CACHE_DIR"] = cache
        for name, calls in programs():
            for isa, threads in CONFIGURATIONS:
                place = folder / f"{name.replace(' ', '-')}-{isa}-{threads}.txt"
                if not re.search(arguments.only, place.name):
                    continue
                program = compile_calls(calls, isa, threads, native=False)
                if program is None:
                    print(f"{name}: an op is left to PyTorch", file=sys.stderr)
                    break
                place.write_text(code_of(program.path))
                print(place, flush=True)


if __name__ == "__main__":
    main()
