# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared objects: built or found in the cache, loaded, and given PyTorch's kernels for what Weft
cannot compute.
"""
