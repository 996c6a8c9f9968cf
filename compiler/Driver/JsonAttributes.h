// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types and attributes as the JSON graph writes them.
#ifndef WEFT_COMPILER_DRIVER_JSONATTRIBUTES_H
#define WEFT_COMPILER_DRIVER_JSONATTRIBUTES_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace weft {

/// The element type called `name` ("f32", "bool", ...), or null.
mlir::Type parseDType(llvm::StringRef name, mlir::MLIRContext &context);

/// The row-major tensor type of ["f32", [2, 3]].
llvm::Expected<mlir::RankedTensorType> parseTensorType(const llvm::json::Value &value,
                                                       mlir::MLIRContext &context);

/// The integers of a JSON array.
llvm::Expected<llvm::SmallVector<int64_t>> parseIntegers(const llvm::json::Value *value);

/// An attribute by its JSON type: true, 1 (i64), 1.5 (f64), [1, 2] (array<i64>), "text", or
/// {"mlir": "any attribute in MLIR's syntax"}. JSON knows one kind of number, so a negative
/// whole number is an integer; write a float such as -1.0 as {"mlir": "-1.0 : f64"}.
/// With `type`, the value of a constant: {"splat": x} or {"dense": [x, ...]} in row-major
/// order, where a float may also be "inf", "-inf" or "nan".
llvm::Expected<mlir::Attribute> parseJsonAttribute(const llvm::json::Value &value,
                                                   mlir::RankedTensorType type,
                                                   mlir::MLIRContext &context);

} // namespace weft

#endif
