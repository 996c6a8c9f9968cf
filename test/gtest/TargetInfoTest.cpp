// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine description on whatever machine the tests run on.
#include "compiler/Target/TargetInfo.h"
#include <gtest/gtest.h>

using weft::TargetInfo;

namespace {

/// Nothing where this machine lacks `isa`.
std::optional<TargetInfo> hostIfPossible(llvm::StringRef isa) {
  auto info = TargetInfo::host(isa);
  if (info)
    return *info;
  llvm::consumeError(info.takeError());
  return std::nullopt;
}

TEST(TargetInfo, NativeDescribesThisMachine) {
  auto info = TargetInfo::host();
  ASSERT_TRUE(bool(info));
  EXPECT_FALSE(info->triple.empty());
  EXPECT_FALSE(info->features.empty());
  EXPECT_GE(info->vectorBytes, 16);
  EXPECT_EQ(info->lanes(32), info->vectorBytes / 4);
  EXPECT_GE(info->l1Bytes, 8 << 10);
  EXPECT_GE(info->l2Bytes, info->l1Bytes);
}

TEST(TargetInfo, FeaturesAreDeterministic) {
  auto first = TargetInfo::host(), second = TargetInfo::host();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->features, second->features);
}

TEST(TargetInfo, Avx2LeavesNoAvx512) {
  std::optional<TargetInfo> info = hostIfPossible("avx2");
  if (!info)
    GTEST_SKIP() << "this machine lacks AVX2";
  EXPECT_EQ(info->features.find("avx512"), std::string::npos);
  EXPECT_EQ(info->vectorBytes, 32);
  EXPECT_EQ(info->vectorRegisters, 16);
  EXPECT_FALSE(info->hasMaskedVectors);
  EXPECT_FALSE(info->hasBFloat16);
}

TEST(TargetInfo, Float32IsSplitWhereAskedFor) {
  EXPECT_FALSE(TargetInfo::host()->splitsFloat32);
  auto info = TargetInfo::host("amx");
  if (!info) { // this machine lacks AMX, and says so
    EXPECT_NE(llvm::toString(info.takeError()).find("'amx'"), std::string::npos);
    return;
  }
  EXPECT_TRUE(info->splitsFloat32);
  EXPECT_TRUE(info->hasMatrixUnit);
  EXPECT_EQ(info->features, TargetInfo::host()->features);
}

TEST(TargetInfo, Avx512LeavesNoMatrixUnit) {
  std::optional<TargetInfo> info = hostIfPossible("avx512");
  if (!info)
    GTEST_SKIP() << "this machine lacks AVX-512";
  EXPECT_EQ(info->features.find("amx"), std::string::npos);
  EXPECT_FALSE(info->hasMatrixUnit);
  // The instructions on vectors stay, and the artifact asks for them.
  bool native = llvm::StringRef(TargetInfo::host()->features).contains("+avx512bf16");
  EXPECT_EQ(info->hasBFloat16, native);
  EXPECT_EQ(llvm::StringRef(info->features).contains("+avx512bf16"), native);
}

TEST(TargetInfo, ArtifactsAskForWhatKernelsUse) {
  // Linux lists neither of the last two, nor what it or a hypervisor has switched off.
  auto info = TargetInfo::withFeatures({"avx2", "fma", "rtm", "xsave", "avx10.1", "prefetchi"});
  ASSERT_TRUE(bool(info));
  EXPECT_EQ(info->features, "+avx2,+fma");
}

TEST(TargetInfo, CodeToReadNeedsNoSuchMachine) {
  auto info = TargetInfo::supposed("amx");
  ASSERT_TRUE(bool(info));
  EXPECT_TRUE(info->splitsFloat32);
  EXPECT_TRUE(info->hasMatrixUnit);
  EXPECT_EQ(info->vectorBytes, 64);
  info = TargetInfo::supposed("avx512");
  ASSERT_TRUE(bool(info));
  EXPECT_EQ(info->vectorBytes, 64);
  EXPECT_FALSE(info->hasMatrixUnit);
}

TEST(TargetInfo, UnknownIsaListsTheChoices) {
  auto info = TargetInfo::host("mmx");
  ASSERT_FALSE(bool(info));
  std::string message = llvm::toString(info.takeError());
  EXPECT_NE(message.find("expected isa to be one of: native"), std::string::npos);
  EXPECT_NE(message.find("found 'mmx'"), std::string::npos);
}

/// The description with WEFT_CPU_CACHES set to `sizes`, or what is wrong with them.
llvm::Expected<TargetInfo> hostWithCaches(const char *sizes) {
  constexpr const char *variable = "WEFT_CPU_CACHES";
  setenv(variable, sizes, /*overwrite=*/1);
  llvm::Expected<TargetInfo> info = TargetInfo::host();
  unsetenv(variable);
  return info;
}

TEST(TargetInfo, CachesMayBeGiven) {
  auto info = hostWithCaches("48K,2097152");
  ASSERT_TRUE(bool(info));
  EXPECT_EQ(info->l1Bytes, 48 << 10);
  EXPECT_EQ(info->l2Bytes, 2 << 20);
  EXPECT_EQ(info->l3Bytes, TargetInfo().l3Bytes);
}

TEST(TargetInfo, TheThirdLevelMayBeGiven) {
  auto info = hostWithCaches("48K,2M,96M");
  ASSERT_TRUE(bool(info));
  EXPECT_EQ(info->l2Bytes, 2 << 20);
  EXPECT_EQ(info->l3Bytes, 96 << 20);
}

TEST(TargetInfo, WrongCachesAreErrors) {
  for (const char *sizes : {"48K", "48K,2M,32M,1G", "48K,", "48K,-1", "much"}) {
    auto info = hostWithCaches(sizes);
    ASSERT_FALSE(bool(info)) << sizes;
    std::string message = llvm::toString(info.takeError());
    EXPECT_NE(message.find("such as 32K,1M; found '" + std::string(sizes) + "'"), std::string::npos)
        << message;
  }
}

} // namespace
