# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of programs, whole training steps, and the functional form of a module."""
