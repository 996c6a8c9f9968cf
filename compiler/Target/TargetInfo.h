// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The target machine: the only source of vector widths, registers and cache sizes.
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
  /// For IR that is inspected, not run: the same on every machine.
  static constexpr int64_t defaultThreads = 2;

  std::string triple;
  std::string features;     ///< LLVM feature string, "+avx2,+fma,-avx512f"
  int64_t vectorBytes = 16; ///< width of a vector register
  int64_t vectorRegisters = 16;
  int64_t threads = defaultThreads; ///< the most that a call runs on
  int64_t l1Bytes = 32 << 10;       ///< L1 data cache per thread of the team
  int64_t l2Bytes = 1 << 20;        ///< L2 cache per thread of the team
  int64_t l3Bytes = 32 << 20;       ///< L3 cache, shared by several cores
  bool hasMaskedVectors = false;    ///< masked loads and stores are as fast as plain ones
  bool hasMatrixUnit = false;       ///< AMX with bfloat16, which the system allows this process
  bool splitsFloat32 = false;       ///< float32 in bfloat16 parts on AMX, if requested
  bool hasBFloat16 = false;         ///< conversions to bfloat16, and dot products of bf16 pairs

  /// Size of the thread team that schedules are for, at least 2. Tiles, and with them the order of
  /// long sums, follow from it: a program for one thread gives the bits of one for two.
  int64_t team() const { return std::max<int64_t>(threads, 2); }

  /// Lanes of a register for elements of `bits` bits.
  int64_t lanes(unsigned bits) const { return vectorBytes * 8 / bits; }

  /// The host, restricted to `isa`: "native"; "amx", with float32 on AMX as well; "avx512", without
  /// AMX; "avx2". An unknown or unsupported name is an error that lists the choices.
  /// WEFT_CPU_CACHES (32K,1M or 32K,1M,32M) overrides cache sizes.
  static llvm::Expected<TargetInfo> host(llvm::StringRef isa = "native",
                                         int64_t threads = defaultThreads);

  /// The host, with the features of `isa` even if it lacks them: for IR that is inspected, not run.
  static llvm::Expected<TargetInfo> supposed(llvm::StringRef isa, int64_t threads = defaultThreads);

  using FeatureSet = std::set<std::string>; ///< sorted: `features` is part of cache keys

  /// The host as if it had exactly the instruction sets `features` (LLVM's names).
  static llvm::Expected<TargetInfo> withFeatures(FeatureSet features,
                                                 llvm::StringRef isa = "native",
                                                 int64_t threads = defaultThreads);
};

} // namespace weft

#endif
