# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose sizes are symbols → graphs that serve a range of sizes."""
