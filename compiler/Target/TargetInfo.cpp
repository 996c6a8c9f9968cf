// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the machine this runs on: instruction sets through LLVM, caches through Linux's sysfs or,
// where that says nothing, through the C library, unless the user gives them.
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

/// What code for tensors gains from, of all that LLVM knows of processors. An artifact asks a
/// machine for nothing else: LLVM lists what newer processors have before systems can say that
/// they have it, and hypervisors hide parts that no kernel uses.
constexpr StringLiteral usedFeatures[] = {
    // x86-64
    "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "lzcnt", "bmi", "bmi2", "movbe", "prfchw",
    "f16c", "avx", "avx2", "fma", "avxvnni", "gfni", "avx512f", "avx512cd", "avx512dq", "avx512bw",
    "avx512vl", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bitalg",
    "avx512vpopcntdq", "avx512bf16", "avx512fp16", "amx-tile", "amx-bf16",
    // AArch64
    "fp-armv8", "neon", "fullfp16", "dotprod"};

struct Isa {
  StringRef name;
  SmallVector<StringRef> required;
  SmallVector<StringRef> removedPrefixes;
};

/// The names that a user may ask for besides "native". The first prefix of what "avx2"
/// removes is the point; the others are extensions that imply it.
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

/// Linux hands out the large state of the matrix unit on demand, to a process as a whole.
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

/// A level of caches, and where its size goes.
struct CacheSize {
  int sysconfName;
  int64_t level;
  bool isShared; ///< counted whole, whoever shares it
  int64_t &bytes;
};

/// Sizes that the user gives stand for the machine's; the third may be left out. Containers and
/// virtual machines often hide one of its two sources; what is assumed stands when both are
/// silent. Of a third level the C library gives the size that all cores have together, of which
/// only some share a part.
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
