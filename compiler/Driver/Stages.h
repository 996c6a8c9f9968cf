// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stages of compilation: one table, shared by the compiler and weft-opt.
#ifndef WEFT_COMPILER_DRIVER_STAGES_H
#define WEFT_COMPILER_DRIVER_STAGES_H

#include "compiler/Target/TargetInfo.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"

namespace weft {

/// What contractions of float32 read: operands as they are, or rounded to bfloat16.
enum class Precision { Float32, BFloat16 };

/// "float32" or "bf16". Another name is an error that lists them.
llvm::Expected<Precision> parsePrecision(llvm::StringRef name);

/// Levels of optimisation: at 0 every computation is a kernel of its own and tensors are
/// row-major; at 1 the graph is cleaned up and computations are fused; at 2 it is rewritten, as for
/// attention; at 3 weights are prepared, and layouts chosen.
constexpr int64_t highestLevel = 3;

/// What the passes of all stages may depend on.
struct StageSettings {
  TargetInfo target;
  std::string schedule; ///< fixed numbers of contractions' schedules: ScheduleOverride::parse
  Precision precision = Precision::Float32;
  int64_t level = highestLevel; ///< of optimisation
  llvm::StringSet<> without{};  ///< passes that are left out
};

/// One step from the graph to LLVM; `build` adds the passes that end in it.
struct Stage {
  llvm::StringRef name;
  void (*build)(mlir::OpPassManager &, const StageSettings &);
};

/// All stages in order. The first, "graph", is what importGraph makes and has no passes.
llvm::ArrayRef<Stage> stages();

/// The stages after `from` up to and including `to`. An unknown or misplaced name is an
/// error that lists the choices.
llvm::Expected<llvm::ArrayRef<Stage>> stagesBetween(llvm::StringRef from, llvm::StringRef to);

/// The dialects and interfaces of every stage.
void registerDialects(mlir::DialectRegistry &registry);

/// Every pass and pipeline of the compiler, by name.
void registerPasses();

} // namespace weft

#endif
