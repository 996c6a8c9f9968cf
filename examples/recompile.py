# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m examples.recompile NAME...`: compiles models of the demo in a fresh process.

Prints one line of JSON each: name, and the seconds of every step. With the cache of an
earlier run in WEFT_CACHE_DIR the compiler is not even loaded.
"""

from __future__ import annotations

import json
import sys

import torch

import weft
from examples.models import build


def compile_once(name: str) -> dict[str, float]:
    """Seconds by step of compiling and calling a model for the first time."""
    case = build(name)
    compiled = weft.compile(case.module)
    with torch.no_grad():
        compiled(*case.args)
    return compiled.compile_seconds


def main(names: list[str]) -> None:
    for name in names:
        print(json.dumps({"name": name, "seconds": compile_once(name)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
