# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The corpus: a file for each concept, a factory for each construct."""
