// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers of a contraction's schedule that the caller of the compiler fixes, to search or to
// measure what the analytical choice would not try.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_SCHEDULEOVERRIDE_H
#define WEFT_COMPILER_KERNELS_EMISSION_SCHEDULEOVERRIDE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>

namespace weft {

/// What is absent is chosen as ever. Holds for every contraction of a module.
struct ScheduleOverride {
  std::optional<int64_t> rows, groups, chunk, panels;

  /// Read "rows=6,groups=4,chunk=768,panels=2", any of them in any order; empty is none. An
  /// error names what is not understood.
  static llvm::Expected<ScheduleOverride> parse(llvm::StringRef text);

  bool empty() const { return !rows && !groups && !chunk && !panels; }
};

} // namespace weft

#endif
