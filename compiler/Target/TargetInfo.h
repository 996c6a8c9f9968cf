// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one machine can do: the only place that knows vectors, registers and caches.
#ifndef WEFT_COMPILER_TARGET_TARGETINFO_H
#define WEFT_COMPILER_TARGET_TARGETINFO_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

namespace weft {

struct TargetInfo {
  /// Of code that is read, not run: the same on every machine.
  static constexpr int64_t defaultThreads = 2;

  std::string triple;
  std::string features;     ///< LLVM feature string, "+avx2,+fma,-avx512f"
  int64_t vectorBytes = 16; ///< width of one vector register
  int64_t vectorRegisters = 16;
  int64_t threads = defaultThreads; ///< the most that a call runs on
  int64_t l1Bytes = 32 << 10;       ///< of data, that one thread of the team has
  int64_t l2Bytes = 1 << 20;        ///< the same
  int64_t l3Bytes = 32 << 20;       ///< that all have together which share it
  bool hasMaskedVectors = false;    ///< masked loads and stores cost no more than plain ones
  bool hasMatrixUnit = false;       ///< AMX with bfloat16, and the system lets this process use it
  bool splitsFloat32 = false;       ///< float32 in bfloat16 parts on the matrix unit: asked for
  bool hasBFloat16 = false; ///< rounds vectors to bfloat16, and sums products of pairs in float32

  /// Threads that a schedule divides work among. Tiles, and with them the order of long sums,
  /// follow from it: a program for one thread gives the bits of one for two.
  int64_t team() const { return std::max<int64_t>(threads, 2); }

  /// Lanes of one register for elements of `bits` bits.
  int64_t lanes(unsigned bits) const { return vectorBytes * 8 / bits; }

  /// The machine this runs on, narrowed to `isa`: "amx", with float32 on the matrix unit as
  /// well; "native"; "avx512", without a matrix unit; "avx2".
  /// An unknown name, or one that the machine lacks, is an error that lists the choices.
  /// Sizes of caches in WEFT_CPU_CACHES, as 32K,1M or 32K,1M,32M, stand for the machine's.
  static llvm::Expected<TargetInfo> host(llvm::StringRef isa = "native",
                                         int64_t threads = defaultThreads);

  /// This machine, with what `isa` requires where it lacks that: for code that is read, not run.
  static llvm::Expected<TargetInfo> supposed(llvm::StringRef isa, int64_t threads = defaultThreads);

  using FeatureSet = std::set<std::string>; ///< sorted: `features` is part of cache keys

  /// This machine, had it the instruction sets `features`, by LLVM's names, and no others.
  static llvm::Expected<TargetInfo> withFeatures(FeatureSet features,
                                                 llvm::StringRef isa = "native",
                                                 int64_t threads = defaultThreads);
};

} // namespace weft

#endif
