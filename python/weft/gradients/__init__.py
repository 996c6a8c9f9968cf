# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that compute gradients: their graphs, what they save, and gradients of gradients."""
