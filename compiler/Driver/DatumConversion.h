// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attributes and types as their plain counterparts, and back.
#ifndef WEFT_COMPILER_DRIVER_DATUMCONVERSION_H
#define WEFT_COMPILER_DRIVER_DATUMCONVERSION_H

#include "compiler/Driver/Session.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/Types.h"
#include "llvm/Support/Error.h"

namespace weft {

api::Datum toDatum(mlir::Attribute attribute);
llvm::Expected<mlir::Attribute> toAttribute(const api::Datum &datum, mlir::MLIRContext &context);

api::TypeInfo toTypeInfo(mlir::Type type);
/// The type written `text`, as MLIR does.
llvm::Expected<mlir::Type> toType(llvm::StringRef text, mlir::MLIRContext &context);

} // namespace weft

#endif
