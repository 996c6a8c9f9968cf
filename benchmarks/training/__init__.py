# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What training by the compiler saves, and where its curves lead."""
