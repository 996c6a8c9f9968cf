// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What passes ask of ops, by no more than yes or no, and each op's definition answers.
#ifndef WEFT_COMPILER_GRAPH_OPTRAITS_H
#define WEFT_COMPILER_GRAPH_OPTRAITS_H

#include "mlir/IR/OpDefinition.h"

namespace weft {

/// No lowering takes the op apart: an emitter reads it whole. If it is the anchor of a kernel, that
/// kernel is of a kind of its own, which has the op's name.
template <typename OpT> class EmittedWhole : public mlir::OpTrait::TraitBase<OpT, EmittedWhole> {};

/// An op that is emitted whole and keeps its logical types, as its emitter reads any layout; others
/// become ops on row-major physical tensors.
template <typename OpT>
class EmittedWithLayouts : public mlir::OpTrait::TraitBase<OpT, EmittedWithLayouts> {};

/// Sums of products of two or more operands, of which each is read repeatedly and from memory, in
/// the precision of the operands with sums of float32.
template <typename OpT>
class LinearContraction : public mlir::OpTrait::TraitBase<OpT, LinearContraction> {};

/// In PyTorch the result shares the memory of the first operand: saving both takes no more memory
/// than saving one.
template <typename OpT> class SharesMemory : public mlir::OpTrait::TraitBase<OpT, SharesMemory> {};

} // namespace weft

#endif
