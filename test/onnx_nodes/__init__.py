# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX's own node tests against `weft.from_onnx`: `python -m onnx_nodes --help`."""
