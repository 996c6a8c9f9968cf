# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lit suite: IR in, IR out, through weft-opt and FileCheck."""

import os

import lit.formats

config.name = "weft"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.weft_binary_dir
config.environment["PATH"] = os.pathsep.join(
    [config.weft_tools_dir, config.weft_check_dir, config.llvm_tools_dir, os.environ["PATH"]]
)
# Schedules follow the caches: these, whatever the host has.
config.environment["WEFT_CPU_CACHES"] = "48K,1M"

# Instruction sets are supposed where the host lacks them, but for this extension of one, and where
# kernels run (weft-check-kernels).
with open("/proc/cpuinfo", encoding="ascii") as cpuinfo:
    flags = set(cpuinfo.read().split())
if "avx512_bf16" in flags:
    config.available_features.add("avx512bf16")
if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
    config.available_features.add("avx512")
