// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A graph in, a shared object out: the stages, code generation and linking in order.
#ifndef WEFT_COMPILER_DRIVER_COMPILE_H
#define WEFT_COMPILER_DRIVER_COMPILE_H

#include "compiler/Driver/Api.h"
#include "compiler/Driver/Stages.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <string>
#include <utility>
#include <vector>

namespace weft {

struct CompileOptions {
  std::string isa = "native";        ///< as TargetInfo::host takes it
  int64_t threads = 1;               ///< the most that the artifact has scratch memory for
  std::string schedule;              ///< fixed numbers of contractions' schedules: ScheduleOverride
  std::string precision = "float32"; ///< as parsePrecision takes it
  std::string role;                  ///< of training: TrainingOptions::parse
  std::string wrt;                   ///< numbers of inputs whose gradients are wanted
  std::string differentiated;        ///< numbers of outputs that have cotangents
  double memoryBudget = -1;     ///< share of what training would save that it may; none if negative
  int64_t level = highestLevel; ///< of optimisation
  std::string without;          ///< passes that are left out: parsePassesLeftOut
};

/// The same without and with LLVM's types.
CompileOptions optionsOf(const api::Options &options);

struct CompileReport {
  /// Wall time of each step in order: stages by name, then "object" and "link".
  std::vector<std::pair<std::string, double>> seconds;
};

/// What the options and the environment ask for; an error names the one that makes no sense.
llvm::Expected<StageSettings> resolveSettings(const CompileOptions &options);

/// Compile `graph`, in JSON or as the IR of the stage `from`, into the shared object
/// `outputPath`, which appears complete or not at all. An error carries the diagnostics, each with
/// the user's line, and, when a pass failed, names a reproducer for weft-opt. It also fails, soon
/// and without writing, when `cancelled` comes to be set.
///
/// The environment has its say: WEFT_ISA replaces `options.isa`; WEFT_DUMP=folder leaves
/// `NN-stage.mlir` after each stage; WEFT_VERIFY=1 verifies the IR after every pass.
llvm::Expected<CompileReport> compileGraph(llvm::StringRef graph, CompileOptions options,
                                           llvm::StringRef outputPath,
                                           const std::atomic<bool> *cancelled = nullptr,
                                           llvm::StringRef from = "graph");

/// The IR of `graph`, in JSON or as IR, after `stage`, as text with locations. With a role the
/// stages `joint` and `partitioned` follow `graph`, and the later ones are of that role.
llvm::Expected<std::string> lowerGraph(llvm::StringRef graph, CompileOptions options,
                                       llvm::StringRef stage);

} // namespace weft

#endif
