// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Caches and the processors that share them, from Linux's sysfs.
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
  /// More than any processor has of a third-level cache: AMD's stacked ones have 12 MiB a core.
  static constexpr int64_t mostBytesOfProcessor = int64_t(16) << 20;

  /// `folder`: contains cpu0, cpu1 … `cpus`: processors that this process may run on.
  CacheTopology(llvm::StringRef folder, llvm::ArrayRef<int64_t> cpus);

  /// The topology of this machine, for the processors of this process.
  static CacheTopology host();

  /// The size in bytes of a data cache of `level`; the smallest, on machines with several kinds of
  /// cores. At most `mostBytesOfProcessor` for each processor that shares it: a virtual machine
  /// shows the whole cache of its host. Nothing if the system does not report it.
  std::optional<int64_t> bytes(int64_t level) const;

  /// The capacity of `level` per thread, for `threads` threads running at once, spread evenly over
  /// the processors.
  std::optional<int64_t> bytesOfThread(int64_t level, int64_t threads) const;

private:
  struct Cache {
    int64_t level, bytes;
    int64_t sharers; ///< processors of this process that share it
  };
  void read(const std::string &folder);

  llvm::SmallVector<int64_t> cpus; ///< sorted
  llvm::SmallVector<Cache> caches; ///< one per level and processor
};

/// Parses a size such as "48K\n", to bytes.
std::optional<int64_t> parseCacheSize(llvm::StringRef text);

/// Parses a list such as "0-3,8\n".
llvm::SmallVector<int64_t> parseCpuList(llvm::StringRef text);

} // namespace weft

#endif
