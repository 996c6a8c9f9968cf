// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fields of a contraction's schedule fixed by the user of the compiler, to search or to measure
// what the analytical choice would not try.
#ifndef WEFT_COMPILER_SCHEDULING_SCHEDULEOVERRIDE_H
#define WEFT_COMPILER_SCHEDULING_SCHEDULEOVERRIDE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>

namespace weft {

/// Fields of a contraction's schedule that a user has fixed; absent ones are chosen analytically.
struct ScheduleOverride {
  std::optional<int64_t> rows, groups, chunk, panels;

  /// Parses "rows=6,groups=4,chunk=768,panels=2", any subset in any order, possibly empty. The
  /// error names what was not understood.
  static llvm::Expected<ScheduleOverride> parse(llvm::StringRef text);

  bool empty() const { return !rows && !groups && !chunk && !panels; }
};

/// The overrides of a module's kernels, by name.
class ScheduleOverrides {
public:
  /// Parses sections separated by ';', each a ScheduleOverride for every contraction, or, as
  /// "dot_general_0:rows=4", for the kernel of that name, where its fields replace the others. A
  /// name that a module does not have says nothing there.
  static llvm::Expected<ScheduleOverrides> parse(llvm::StringRef text);

  const ScheduleOverride &of(llvm::StringRef kernel) const;

private:
  ScheduleOverride all;
  llvm::StringMap<ScheduleOverride> named;
};

} // namespace weft

#endif
