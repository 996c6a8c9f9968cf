// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collects the errors of one compilation as text for the user.
#ifndef WEFT_COMPILER_DRIVER_DIAGNOSTICS_H
#define WEFT_COMPILER_DRIVER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include <string>

namespace weft {

/// While it lives, errors with their notes go into `text`, one per line, each after the line
/// of the user's program that it is about: "model.py:12: error: ...". What is no error goes
/// on to the next handler.
class DiagnosticLog {
public:
  explicit DiagnosticLog(mlir::MLIRContext &context);
  std::string text;

private:
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace weft

#endif
