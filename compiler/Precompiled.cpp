// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Holds the precompiled header that every library under compiler/ shares.
