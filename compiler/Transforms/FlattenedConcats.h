// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Concats of what other concats were cut into.
#ifndef WEFT_COMPILER_TRANSFORMS_FLATTENEDCONCATS_H
#define WEFT_COMPILER_TRANSFORMS_FLATTENEDCONCATS_H

#include "mlir/IR/Block.h"

namespace weft {

/// A tensor that a loop fills row by row is traced as one concat a step, of a part of the one
/// before, the row, and the rest of the one before. Such chains become one concat of the rows, and
/// slices of a concat that lie within one operand are taken of that operand.
void flattenConcats(mlir::Block &block);

} // namespace weft

#endif
