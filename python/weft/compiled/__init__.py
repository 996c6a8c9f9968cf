# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The callable that the user holds: its programs, how each is made, verified and trained, and the
module face.
"""
