// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collects the remarks of passes for the user of a session.
#ifndef WEFT_COMPILER_DRIVER_REMARKLOG_H
#define WEFT_COMPILER_DRIVER_REMARKLOG_H

#include "compiler/Driver/Session.h"
#include "mlir/IR/MLIRContext.h"

namespace weft {

/// While it lives, remarks made in `context` are appended to `remarks`; without one, MLIR's
/// remark engine is off and drops them at no cost.
class RemarkLog {
public:
  RemarkLog(mlir::MLIRContext &context, std::vector<api::Remark> &remarks);
  ~RemarkLog();

private:
  mlir::MLIRContext &context;
};

} // namespace weft

#endif
