// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fields of a contraction's schedule fixed by the user of the compiler, to search or to measure
// what the analytical choice would not try.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_SCHEDULEOVERRIDE_H
#define WEFT_COMPILER_KERNELS_EMISSION_SCHEDULEOVERRIDE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>

namespace weft {

/// Applies to every contraction of a module; absent fields are chosen analytically.
struct ScheduleOverride {
  std::optional<int64_t> rows, groups, chunk, panels;

  /// Parses "rows=6,groups=4,chunk=768,panels=2", any subset in any order, possibly empty. The
  /// error names what was not understood.
  static llvm::Expected<ScheduleOverride> parse(llvm::StringRef text);

  bool empty() const { return !rows && !groups && !chunk && !panels; }
};

} // namespace weft

#endif
