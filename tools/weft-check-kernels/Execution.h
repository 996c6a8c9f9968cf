// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a compiled artifact on inputs that a seed gives.
#ifndef WEFT_TOOLS_CHECK_KERNELS_EXECUTION_H
#define WEFT_TOOLS_CHECK_KERNELS_EXECUTION_H

#include "Number.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>
#include <vector>

namespace weft::check {

/// From which values of an input are drawn, uniformly: integers from `low` to `high`, floats at
/// least `low` and below `high`.
struct Range {
  double low, high;
};

/// The values of an input or a result, in row-major order.
using Numbers = std::vector<Number>;

struct Run {
  std::vector<std::string> inputNames;
  std::vector<Numbers> inputs;
  std::vector<Numbers> results;
  /// Why what ran is wrong whatever the numbers are: memory that no result owns was written, or an
  /// input was. Empty if nothing is.
  std::string fault;
};

/// Makes the shared object at `path` an artifact that may be loaded.
llvm::Error seal(const std::string &path);

/// Loads the artifact at `path`, draws its inputs and calls it on `threads` threads. `ranges`: of
/// inputs, by name; others are drawn from what suits their type. An error has the runtime's words,
/// such as those of a failed assert.
llvm::Expected<Run> runArtifact(const std::string &path, const std::map<std::string, Range> &ranges,
                                uint64_t seed, int32_t threads);

} // namespace weft::check

#endif
