# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/check-includes.py: what the arrows allow passes, everything else is named."""

import pytest


def test_arrows_allow(run_tool):
    files = {
        "compiler/Kernels/Nest/Scans.cpp": '#include "compiler/Graph/Graph.h"\n#include <vector>\n',
        "compiler/Lowering/Entries/A.cpp": '#include "runtime/Abi.h"\n#include "mlir/IR/Block.h"\n',
        "runtime/Cache.cpp": '#include "runtime/Cache.h"\n#include <sys/mman.h>\n',
        "test/gtest/Any.cpp": '#include "compiler/Driver/Link.h"\n',
    }
    checked = run_tool("check-includes.py", files)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    "path, include",
    [
        ("compiler/Graph/Dialect.cpp", '"compiler/Transforms/Passes.h"'),
        ("compiler/Transforms/Simplify.cpp", '"compiler/Kernels/Kernels.h"'),
        ("compiler/Lowering/LowerToLLVM.cpp", '"runtime/Cache.h"'),
        ("compiler/Driver/Link.cpp", '"python/bindings/Core.h"'),
        ("compiler/Driver/Link.cpp", "<Python.h>"),
        ("runtime/Cache.cpp", '"llvm/ADT/STLExtras.h"'),
        ("runtime/Cache.cpp", '"compiler/Target/TargetInfo.h"'),
        ("python/bindings/Core.cpp", "<torch/torch.h>"),
        ("tools/weft-opt/weft-opt.cpp", '"compiler/Graph/Graph.h"'),
    ],
)
def test_no_arrow(run_tool, path, include):
    checked = run_tool("check-includes.py", {path: f"// A file.\n#include {include}\n"})
    assert checked.returncode == 1
    assert checked.stderr.startswith(f"{path}:2: expected ")
    assert checked.stderr.rstrip().endswith(f"not to include {include[1:-1]}")
