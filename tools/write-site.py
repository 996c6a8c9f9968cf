# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers what mkdocs makes the site of: the pages of docs, the stages of a small network with
their real IR and pictures, and the reference of ops and passes from their definitions.

    tools/write-site.py build/site
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path

import torch

from weft import ir

ROOT = Path(__file__).parents[1]
TABLEGEN = ["mlir-tblgen-22", "-I", str(ROOT), "-I", "/usr/lib/llvm-22/include"]
ROOMS = ("Autodiff", "Transforms", "Scheduling", "Kernels", "Lowering")
MOST_LINES = 60


class Network(torch.nn.Module):
    """One linear layer and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)).softmax(-1)


def copy_pages(folder: Path) -> None:
    shutil.copytree(ROOT / "docs", folder, dirs_exist_ok=True)
    # Files outside the site are where the repository has them.
    for page in folder.rglob("*.md"):
        text = page.read_text("utf-8")
        page.write_text(re.sub(r"\]\((?:\.\./)+(?:examples|tools)/[^)]*\)", "]", text), "utf-8")


def write_stages(folder: Path) -> None:
    torch.manual_seed(0)
    module = ir.of(Network().eval(), torch.randn(32, 64))
    parts = [
        "# The stages\n\n`softmax(relu(linear(x)))` on its way, as `weft.ir` shows it: "
        "`module.lower(stage)`. Each stage is written by the build of this page.\n"
    ]
    texts = _true_after_stages()
    for stage in ir.STAGES:
        lowered, text = module.lower(stage), texts[stage]
        parts.append(f"## {stage}\n\n{text}\n")
        if stage in ("graph", "kernels"):
            lowered.visualize(folder / f"{stage}.svg")
            parts.append(f"![The stage {stage} as a picture]({stage}.svg)\n")
        parts.append(f"```mlir\n{_shortened(lowered.text())}\n```\n")
        if stage == "linalg":
            shown = "\n\n".join(each.loops() for each in lowered if each.is_loops)
            parts.append(f"`function.loops()` shows its loops for people:\n\n```\n{shown}\n```\n")
    assembly = _shortened(module.assembly())
    parts.append(f"## assembly\n\n`module.assembly()`.\n\n```asm\n{assembly}\n```\n")
    (folder / "stages.md").write_text("\n".join(parts), "utf-8")


def _true_after_stages() -> dict[str, str]:
    """What is true after each stage, as the architecture's table of stages says."""
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| .*\|$", page.partition("## Stages")[2], re.M)
    return {stage: f"{text[0].upper()}{text[1:]}." for stage, text in rows}


def _shortened(text: str) -> str:
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"… {len(lines) - MOST_LINES} more lines"]
    return "\n".join(line if len(line) <= 400 else f"{line[:399]}…" for line in lines)


def write_reference(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    ops = _generated("-gen-op-doc", "-dialect=weft", "compiler/Graph/Attributes.td")
    (folder / "ops.md").write_text(f"# Ops of the graph\n\n{ops}", "utf-8")
    passes = (_generated("-gen-pass-doc", f"compiler/{room}/Passes.td") for room in ROOMS)
    parts = (f"# {room}\n\n{text}" for room, text in zip(ROOMS, passes))
    (folder / "passes.md").write_text("\n\n".join(parts), "utf-8")


def _generated(*arguments: str) -> str:
    *options, file = arguments
    command = [*TABLEGEN, *options, str(ROOT / file)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    copy_pages(folder)
    write_stages(folder)
    write_reference(folder / "reference")
    print(f"wrote {sum(1 for _ in folder.rglob('*.md'))} pages into {folder}")


if __name__ == "__main__":
    main()
