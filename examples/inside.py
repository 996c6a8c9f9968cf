# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m examples.inside NAME [report|STAGE]`: what a model of the demo was compiled to."""

from __future__ import annotations

import argparse

import torch

import weft
from examples.models import MODELS, build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(": ")[2])
    parser.add_argument("name", choices=MODELS)
    parser.add_argument("what", default="report", nargs="?", help="report, or a stage of the IR")
    options = parser.parse_args()
    case = build(options.name)
    compiled = weft.compile(case.module)
    with torch.no_grad():
        for _ in range(2):  # the first call is PyTorch's
            compiled(*case.args)
    if options.what == "report":
        compiled.report()
    else:
        print(compiled.ir(options.what))


if __name__ == "__main__":
    main()
