# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the processor that the tests run on can do."""

from pathlib import Path

FLAGS = frozenset(Path("/proc/cpuinfo").read_text().split())
HAS_PAIRS = "avx512_bf16" in FLAGS
ISAS = ["avx2", "avx512"] if "avx512vl" in FLAGS else ["avx2"]
WIDEST_ISA = ISAS[-1]
"""Matrix units apart."""
