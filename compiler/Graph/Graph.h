// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The weft dialect: everything that users of the graph IR include.
#ifndef WEFT_COMPILER_GRAPH_GRAPH_H
#define WEFT_COMPILER_GRAPH_GRAPH_H

#include "compiler/Graph/OpTraits.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace weft {

/// Starts the diagnostic of a violated constraint.
using ErrorFn = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// Whether the types agree in everything but their layouts.
bool equalUpToLayout(mlir::TypeRange lhs, mlir::TypeRange rhs);
/// The same, or f32 where half precision is inferred: sums that are not rounded.
bool areSumsOf(mlir::TypeRange inferred, mlir::TypeRange found);

} // namespace weft

#include "compiler/Graph/Dialect.h.inc"
#include "compiler/Graph/Enums.h.inc"
#include "compiler/Graph/Interfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/Graph/Attributes.h.inc"
#define GET_OP_CLASSES
#include "compiler/Graph/Ops.h.inc"

namespace weft {

/// The layout of `type`, or null for row-major.
LayoutAttr layoutOf(mlir::RankedTensorType type);

/// Whether `layout`, which may be null, has blocks of a dim.
bool isTiled(LayoutAttr layout);

/// `type` with its elements laid out as `layout` says (null: row-major).
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, LayoutAttr layout);

/// The tensor type that memory really holds: row-major, padded, without an encoding.
mlir::RankedTensorType physicalType(mlir::RankedTensorType type);

/// How many elements of memory lie between neighbours along each dim; along a tiled one,
/// between neighbouring tiles.
llvm::SmallVector<int64_t> stridesInMemory(mlir::RankedTensorType type);

} // namespace weft

#endif
