# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole training steps, the functional form of a module, and the report of what is saved."""
