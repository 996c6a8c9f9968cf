# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The site that `make docs` makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    sources, pages = folder / "sources", folder / "pages"
    subprocess.run([sys.executable, ROOT / "tools/write-site.py", sources], check=True)
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    config |= {"docs_dir": str(sources), "site_dir": str(pages)}
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(config))
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f"]
    subprocess.run([*build, folder / "mkdocs.yml"], check=True)
    return pages


def test_every_page_of_the_contents_is_there(site):
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    for entry in config["nav"]:
        ((_, page),) = entry.items()
        assert (site / page).with_suffix(".html").is_file(), page


def test_stages_have_real_ir_and_pictures(site):
    text = (site / "stages.html").read_text("utf-8")
    for part in ("weft.dot_general", "linalg.generic", "llvm.func", " reduction [", ".text"):
        assert part in text, part
    assert "<svg" in (site / "kernels.svg").read_text("utf-8")


def test_the_reference_has_every_op_and_pass(site):
    ops = (site / "reference" / "ops.html").read_text("utf-8")
    passes = (site / "reference" / "passes.html").read_text("utf-8")
    from weft.ir.emission import DEFINITIONS

    for name in DEFINITIONS:
        assert name in ops, name
    for name in ("weft-fuse-kernels", "weft-lower-to-linalg", "weft-partition"):
        assert name in passes, name
