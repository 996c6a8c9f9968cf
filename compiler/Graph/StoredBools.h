// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bools are stored as i8: what tells them from numbers where that matters.
#ifndef WEFT_COMPILER_GRAPH_STOREDBOOLS_H
#define WEFT_COMPILER_GRAPH_STOREDBOOLS_H

#include "llvm/ADT/StringRef.h"

namespace weft::attr {

/// On an op on stored tensors: its operand's elements, i8, are zeros and ones.
constexpr llvm::StringLiteral storedBools = "weft.stored_bools";

} // namespace weft::attr

#endif
