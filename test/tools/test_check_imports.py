# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/check-imports.py: what the arrows allow passes, everything else is named."""

import pytest


def test_arrows_allow(run_tool):
    files = {
        "python/weft/compiled/module.py": "from weft import _core, frontend\n",
        "python/weft/capture/state.py": "import os\nfrom weft.capture.outputs import make\n",
        "python/weft/artifacts/builds.py": "def build():\n    from weft import _compiler\n",
        "python/weft/cli/commands.py": "from weft import compile, report\n",
        "test/python/test_any.py": "from weft.compiled import api\n",
    }
    checked = run_tool("check-imports.py", files)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    "path, line, package",
    [
        ("python/weft/frontend/graph.py", "from weft import _core", "_core when it is loaded"),
        ("python/weft/capture/state.py", "from weft.compiled.api import compile", "compiled"),
        ("python/weft/capture/state.py", "import weft.compiled.api", "compiled"),
        ("python/weft/artifacts/builds.py", "from weft import _compiler", "_compiler when it is"),
        ("python/weft/capture/state.py", "def f():\n    from weft import ir", "ir"),
    ],
)
def test_no_arrow(run_tool, path, line, package):
    checked = run_tool("check-imports.py", {path: f"{line}\n"})
    assert checked.returncode == 1
    assert checked.stderr.startswith(f"{path}:")
    assert f"not to import {package}" in checked.stderr


def test_new_package(run_tool):
    checked = run_tool("check-imports.py", {"python/weft/elsewhere/search.py": "import os\n"})
    assert checked.returncode == 1
    assert "expected a package of the table" in checked.stderr
