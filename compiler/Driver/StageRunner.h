// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the stages over one module, with dumps, timings and a reproducer when a pass fails.
#ifndef WEFT_COMPILER_DRIVER_STAGERUNNER_H
#define WEFT_COMPILER_DRIVER_STAGERUNNER_H

#include "compiler/Driver/Stages.h"
#include "mlir/IR/BuiltinOps.h"
#include <atomic>

namespace weft {

class StageRunner {
public:
  using Timings = std::vector<std::pair<std::string, double>>;

  /// cancelled: once set, no further stage begins.
  StageRunner(StageSettings settings, Timings &seconds,
              const std::atomic<bool> *cancelled = nullptr);

  /// Bring `module` from the stage `first` to `last`. Fails after a diagnostic, the last note
  /// of which names the reproducer.
  llvm::LogicalResult run(mlir::ModuleOp module, llvm::StringRef last,
                          llvm::StringRef first = "graph");

private:
  llvm::LogicalResult runStage(mlir::ModuleOp module, const Stage &stage) const;
  std::string reproduce(mlir::ModuleOp before, const Stage *first, const Stage &failing) const;
  llvm::LogicalResult dump(mlir::ModuleOp module, const Stage &stage) const;

  StageSettings settings;
  Timings &seconds;
  std::string dumpFolder; ///< empty: none
  bool verifyEachPass;
  const std::atomic<bool> *cancelled;
};

} // namespace weft

#endif
