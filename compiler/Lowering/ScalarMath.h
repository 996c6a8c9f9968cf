// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The semantics of graph ops on single elements, in arith and math.
#ifndef WEFT_COMPILER_LOWERING_SCALARMATH_H
#define WEFT_COMPILER_LOWERING_SCALARMATH_H

#include "compiler/Graph/Graph.h"
#include "mlir/IR/Builders.h"

namespace weft {

/// The type that bodies compute in: bool as i1, u8 as i8, half precision as f32.
mlir::Type computeType(mlir::Type element);
/// The element type in memory: bool and u8 as i8.
mlir::Type storageElementType(mlir::Type element);
/// Whether integers of this type are unsigned (bool and u8).
bool hasUnsignedElements(mlir::Type element);

/// Converts a stored element to its compute type, and back.
mlir::Value decode(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value stored,
                   mlir::Type element);
mlir::Value encode(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value computed,
                   mlir::Type element);

/// The elementwise `op` on elements in their compute types; null if it has no scalar form.
mlir::Value emitScalar(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange operands);

/// Combine two elements in their compute type.
mlir::Value emitCombine(mlir::OpBuilder &builder, mlir::Location loc, ReduceKind kind,
                        mlir::Value lhs, mlir::Value rhs, bool isUnsigned);

/// The neutral element of `kind`, in the storage type of `element`.
mlir::TypedAttr reduceIdentity(mlir::OpBuilder &builder, ReduceKind kind, mlir::Type element);

} // namespace weft

#endif
