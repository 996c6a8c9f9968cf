// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Detects the host: instruction sets through LLVM, caches through Linux's sysfs, with the C library
// as a fallback, unless the user gives them.
#include "compiler/Target/TargetInfo.h"
#include "compiler/Target/CacheTopology.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include <cstdlib>
#include <sys/syscall.h>
#include <unistd.h>

using namespace llvm;
using namespace weft;

namespace {

using FeatureSet = TargetInfo::FeatureSet;

constexpr StringLiteral matrixIsa = "amx";

/// The features that tensor code benefits from; an artifact requires no others. LLVM lists features
/// of new processors before kernels can report them, and hypervisors hide some that no kernel uses.
constexpr StringLiteral usedFeatures[] = {
    // x86-64
    "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "lzcnt", "bmi", "bmi2", "movbe", "prfchw",
    "f16c", "avx", "avx2", "fma", "avxvnni", "gfni", "avx512f", "avx512cd", "avx512dq", "avx512bw",
    "avx512vl", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bitalg",
    "avx512vpopcntdq", "avx512bf16", "avx512fp16", "amx-tile", "amx-bf16", "amx-int8",
    // AArch64
    "fp-armv8", "neon", "fullfp16", "dotprod"};

struct Isa {
  StringRef name;
  SmallVector<StringRef> required;
  SmallVector<StringRef> removedPrefixes;
};

/// The names that a user may choose besides "native". "avx2" removes "avx512"; its other prefixes
/// are of extensions that imply AVX-512.
const Isa isas[] = {
    {matrixIsa, {"avx512f", "avx512bw", "avx512vl", "amx-tile", "amx-bf16"}, {}},
    {"avx512", {"avx512f", "avx512bw", "avx512vl", "avx512dq"}, {"amx"}},
    {"avx2", {"avx2", "fma"}, {"avx512", "avx10", "amx"}},
};

void removePrefixed(FeatureSet &features, ArrayRef<StringRef> prefixes) {
  std::erase_if(features, [&](StringRef feature) {
    return any_of(prefixes, [&](StringRef prefix) { return feature.starts_with(prefix); });
  });
}

/// Linux grants AMX's tile state on request, for the process as a whole.
bool systemAllowsMatrixUnit() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
#else
  return false;
#endif
}

FeatureSet hostFeatures() {
  FeatureSet present;
  for (const auto &entry : sys::getHostCPUFeatures())
    if (entry.second)
      present.insert(entry.first().str());
  return present;
}

bool hasAll(const FeatureSet &features, ArrayRef<StringRef> names) {
  return all_of(names, [&](StringRef name) { return features.count(name.str()); });
}

Error narrow(FeatureSet &features, StringRef name) {
  if (name == "native")
    return Error::success();
  std::string choices = "native";
  for (const Isa &isa : isas) {
    if (!hasAll(features, isa.required))
      continue;
    choices += (", " + isa.name).str();
    if (isa.name != name)
      continue;
    removePrefixed(features, isa.removedPrefixes);
    return Error::success();
  }
  return createStringError("expected isa to be one of: " + choices + "; found '" + name + "'");
}

/// A cache level, and the field for its size.
struct CacheSize {
  int sysconfName;
  int64_t level;
  bool isShared; ///< the whole size, not that per thread
  int64_t &bytes;
};

/// Sizes given by the user take precedence; the third may be omitted. Containers and virtual
/// machines often hide sysfs or the C library's values; the defaults apply if both are missing. For
/// the third level the C library reports the sum over all cores, of which each shares only a part.
Error describeCaches(TargetInfo &info) {
  constexpr const char *variable = "WEFT_CPU_CACHES";
  CacheSize levels[] = {{_SC_LEVEL1_DCACHE_SIZE, 1, false, info.l1Bytes},
                        {_SC_LEVEL2_CACHE_SIZE, 2, false, info.l2Bytes},
                        {_SC_LEVEL3_CACHE_SIZE, 3, true, info.l3Bytes}};
  const char *given = std::getenv(variable);
  if (!given || !*given) {
    CacheTopology topology = CacheTopology::host();
    for (const CacheSize &level : levels)
      if (std::optional<int64_t> bytes = level.isShared
                                             ? topology.bytes(level.level)
                                             : topology.bytesOfThread(level.level, info.team()))
        level.bytes = *bytes;
      else if (long bytes = sysconf(level.sysconfName); bytes > 0)
        level.bytes = bytes;
    return Error::success();
  }
  SmallVector<StringRef> texts;
  StringRef(given).split(texts, ',');
  bool isWrong = texts.size() < 2 || texts.size() > std::size(levels);
  for (auto [level, text] : llvm::zip(levels, texts)) {
    std::optional<int64_t> bytes = parseCacheSize(text);
    isWrong |= !bytes;
    level.bytes = bytes.value_or(level.bytes);
  }
  if (isWrong)
    return createStringError(
        StringRef(variable) +
        ": expected the sizes of two or three levels, such as 32K,1M; found '" + given + "'");
  return Error::success();
}

void describeVectors(TargetInfo &info, const FeatureSet &features) {
  bool has512 = hasAll(features, {"avx512f", "avx512vl"});
  info.hasMatrixUnit = hasAll(features, {"avx512bw", "amx-tile", "amx-bf16"});
  info.hasMaskedVectors = hasAll(features, {"avx512vl", "avx512bw"});
  info.hasBFloat16 = hasAll(features, {"avx512f", "avx512vl", "avx512bf16"});
  info.vectorBytes = features.count("avx512f") ? 64 : features.count("avx2") ? 32 : 16;
  info.vectorRegisters = has512 || features.count("neon") ? 32 : 16;
}

} // namespace

Expected<TargetInfo> TargetInfo::withFeatures(FeatureSet features, StringRef isa, int64_t threads) {
  std::erase_if(features, [](StringRef feature) { return !is_contained(usedFeatures, feature); });
  if (Error error = narrow(features, isa))
    return error;
  TargetInfo info;
  info.threads = threads;
  info.triple = sys::getProcessTriple();
  info.features = join(map_range(features, [](const std::string &f) { return "+" + f; }), ",");
  describeVectors(info, features);
  info.splitsFloat32 = isa == matrixIsa;
  if (Error error = describeCaches(info))
    return error;
  return info;
}

Expected<TargetInfo> TargetInfo::host(StringRef isa, int64_t threads) {
  FeatureSet features = hostFeatures();
  if (features.count("amx-tile") && !systemAllowsMatrixUnit()) {
    if (isa == matrixIsa)
      return createStringError("isa 'amx': the system does not let this process use the unit");
    removePrefixed(features, {"amx"});
  }
  return withFeatures(std::move(features), isa, threads);
}

Expected<TargetInfo> TargetInfo::supposed(StringRef isa, int64_t threads) {
  const Isa *known = find_if(isas, [&](const Isa &each) { return each.name == isa; });
  if (known == std::end(isas))
    return host(isa, threads);
  FeatureSet features = hostFeatures();
  for (StringRef feature : known->required)
    features.insert(feature.str());
  return withFeatures(std::move(features), isa, threads);
}
