// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A switch for each pass that a program can do without, to see what it is worth.
#ifndef WEFT_COMPILER_DRIVER_PASSESLEFTOUT_H
#define WEFT_COMPILER_DRIVER_PASSESLEFTOUT_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

namespace weft {

/// The names in `text`, separated by commas. An error names what is no pass that can be left out,
/// and lists those that can.
llvm::Expected<llvm::StringSet<>> parsePassesLeftOut(llvm::StringRef text);

/// While it lives, passes of these names do nothing in a context. `weft-fuse-kernels` is none of
/// them: it makes kernels in any case, and reads itself whether it is to fuse.
class PassesLeftOut {
public:
  PassesLeftOut(mlir::MLIRContext &context, const llvm::StringSet<> &names);
  ~PassesLeftOut();
  PassesLeftOut(const PassesLeftOut &) = delete;
  PassesLeftOut &operator=(const PassesLeftOut &) = delete;

private:
  mlir::MLIRContext &context;
  bool any;
};

} // namespace weft

#endif
