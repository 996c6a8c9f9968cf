// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler for callers that are built with exceptions and RTTI, which LLVM is not: no
// type of LLVM's or MLIR's appears here.
#ifndef WEFT_COMPILER_DRIVER_API_H
#define WEFT_COMPILER_DRIVER_API_H

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::api {

struct Options {
  std::string isa = "native";
  int64_t threads = 1;
  std::string schedule; ///< such as "rows=6,groups=4,chunk=768,panels=2"; empty: all chosen
  std::string precision = "float32"; ///< of what contractions read: "float32" or "bf16"
  std::string role;           ///< of training: "forward", "backward", "step"; empty: the graph
  std::string wrt;            ///< such as "0,2": inputs whose gradients are wanted
  std::string differentiated; ///< such as "0": outputs that have cotangents
  double memoryBudget = -1;   ///< share of what training would save that it may; none if negative
  int64_t level = 3;          ///< of optimisation, 0 to 3: Stages.h
  std::string without;        ///< passes that are left out: parsePassesLeftOut
};

struct Outcome {
  bool succeeded;
  std::string text;         ///< what was asked for, or the diagnostics
  bool cannotWrite = false; ///< the program is right, but its file found no room
};

/// compileGraph; the text is {"seconds": {"graph": 0.01, ...}}.
///
/// Once `cancelled` is set, by any thread, it fails at the next step or kernel and writes nothing.
Outcome compile(std::string_view graph, const std::string &outputPath, const Options &options,
                const std::atomic<bool> &cancelled, const std::string &from = "graph");

/// lowerGraph; the text is IR.
Outcome lower(std::string_view graph, const std::string &stage, const Options &options);

/// The passes that `Options::without` may name.
std::vector<std::string> optionalPasses();

/// The LLVM this compiler generates code with, such as "22.1.8".
std::string llvmVersion();

} // namespace weft::api

#endif
