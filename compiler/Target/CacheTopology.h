// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which processors share which caches, as Linux tells in sysfs.
#ifndef WEFT_COMPILER_TARGET_CACHETOPOLOGY_H
#define WEFT_COMPILER_TARGET_CACHETOPOLOGY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace weft {

class CacheTopology {
public:
  /// folder: with a cpu0, cpu1 … for each processor. cpus: those that this process may run on.
  CacheTopology(llvm::StringRef folder, llvm::ArrayRef<int64_t> cpus);

  /// Of this machine and process.
  static CacheTopology host();

  /// The size of a data cache of `level`; of several kinds of cores, the smallest. Nothing where
  /// the system does not tell.
  std::optional<int64_t> bytes(int64_t level) const;

  /// What one of `threads` has of it while they all run, spread evenly over the processors.
  std::optional<int64_t> bytesOfThread(int64_t level, int64_t threads) const;

private:
  struct Cache {
    int64_t level, bytes;
    int64_t sharers; ///< processors of this process that it serves
  };
  void read(const std::string &folder);

  llvm::SmallVector<int64_t> cpus; ///< sorted
  llvm::SmallVector<Cache> caches; ///< one of each level for each processor
};

/// The size in a text such as "48K\n".
std::optional<int64_t> parseCacheSize(llvm::StringRef text);

/// The numbers in a text such as "0-3,8\n".
llvm::SmallVector<int64_t> parseCpuList(llvm::StringRef text);

} // namespace weft

#endif
