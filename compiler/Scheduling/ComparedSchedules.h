// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a choice compares, for remarks.
#ifndef WEFT_COMPILER_SCHEDULING_COMPAREDSCHEDULES_H
#define WEFT_COMPILER_SCHEDULING_COMPAREDSCHEDULES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace weft {

/// The schedules that were compared for one part of a kernel, with predicted times.
class ComparedSchedules {
public:
  /// A schedule as text, such as "rows=6 groups=4", and the cycles that one core would take.
  void add(std::string fields, double cycles);
  /// The schedules compared so far do not count: what follows is compared.
  void restart() { entries.clear(); }
  /// What was taken, in the same words as `add` has it.
  void take(std::string fields) { taken = std::move(fields); }

  /// An analysis remark: what was taken over what, the fastest first, as if `threads` threads
  /// divided the work.
  void remark(mlir::Location location, llvm::StringRef kernel, llvm::StringRef emitter,
              int64_t threads) const;

private:
  struct Entry {
    std::string fields;
    double cycles;
  };
  llvm::SmallVector<Entry, 0> entries;
  std::string taken;
};

/// "rows=6 groups=4".
std::string fieldsOf(std::initializer_list<std::pair<llvm::StringRef, int64_t>> fields);

} // namespace weft

#endif
