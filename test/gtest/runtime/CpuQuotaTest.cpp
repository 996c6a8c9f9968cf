// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Quotas of control groups, read from folders as the kernel shows them.
#include "runtime/CpuQuota.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

using namespace weft::rt;
namespace fs = std::filesystem;

namespace {

class CpuQuotaTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weft-quota-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  void write(const fs::path &file, const std::string &text) {
    fs::create_directories((folder / file).parent_path());
    std::ofstream(folder / file) << text;
  }
  std::optional<int32_t> quota() { return cpuQuota(folder / "groups", folder / "mounts"); }

  fs::path folder;
};

TEST_F(CpuQuotaTest, NoGroupsHaveNone) { EXPECT_EQ(quota(), std::nullopt); }

TEST_F(CpuQuotaTest, UnifiedHierarchy) {
  write("groups", "0::/\n");
  write("mounts/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("mounts/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2);
}

TEST_F(CpuQuotaTest, PartOfAProcessorIsOneMore) {
  write("groups", "0::/\n");
  write("mounts/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 2);
  write("mounts/cpu.max", "20000 100000\n");
  EXPECT_EQ(quota(), 1);
}

TEST_F(CpuQuotaTest, GroupsAboveBindToo) {
  write("groups", "0::/outer/inner\n");
  write("mounts/outer/inner/cpu.max", "800000 100000\n");
  write("mounts/outer/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3);
}

TEST_F(CpuQuotaTest, LegacyHierarchy) {
  write("groups", "4:memory:/m\n3:cpu,cpuacct:/box\n");
  write("mounts/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
  write("mounts/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("mounts/cpu,cpuacct/box/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(quota(), 4);
}

TEST_F(CpuQuotaTest, AContainerSeesItsGroupAsTheRoot) {
  write("groups", "1:cpu:/of/the/host\n");
  write("mounts/cpu/cpu.cfs_quota_us", "100000\n");
  write("mounts/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 1);
}

TEST_F(CpuQuotaTest, NonsenseIsNoQuota) {
  write("groups", "what\n0::/\n");
  write("mounts/cpu.max", "a lot\n");
  EXPECT_EQ(quota(), std::nullopt);
}

} // namespace
