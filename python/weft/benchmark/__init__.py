# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures one program in several systems at once: what `weft bench` and the repository's
`benchmarks/` share."""
