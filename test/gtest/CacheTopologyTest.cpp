// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Caches of machines that are written down as folders, as Linux describes its own.
#include "compiler/Target/CacheTopology.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace weft;

namespace {

class Machine {
public:
  Machine() { EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("weft-caches", folder)); }
  ~Machine() { llvm::sys::fs::remove_directories(folder); }

  void cache(int64_t cpu, int index, int level, const char *type, const char *size,
             const std::string &shared) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, "cpu" + std::to_string(cpu), "cache",
                            "index" + std::to_string(index));
    EXPECT_FALSE(llvm::sys::fs::create_directories(path));
    write(path, "level", std::to_string(level));
    write(path, "type", type);
    write(path, "size", size);
    write(path, "shared_cpu_list", shared);
  }

  CacheTopology of(int64_t cpus) const {
    llvm::SmallVector<int64_t> allowed(static_cast<size_t>(cpus));
    std::iota(allowed.begin(), allowed.end(), 0);
    return CacheTopology(folder, allowed);
  }
  CacheTopology of(llvm::ArrayRef<int64_t> allowed) const { return CacheTopology(folder, allowed); }

private:
  static void write(llvm::StringRef path, const char *name, const std::string &text) {
    std::error_code error;
    llvm::raw_fd_ostream(path.str() + "/" + name, error) << text << "\n";
    EXPECT_FALSE(error);
  }

  llvm::SmallString<128> folder;
};

std::string range(int64_t first, int64_t last) {
  return std::to_string(first) + "-" + std::to_string(last);
}

TEST(CacheTopology, PrivateCachesAreEachThreadsOwn) {
  Machine machine;
  for (int64_t cpu = 0; cpu < 8; ++cpu) {
    machine.cache(cpu, 0, 1, "Instruction", "64K", std::to_string(cpu));
    machine.cache(cpu, 1, 1, "Data", "48K", std::to_string(cpu));
    machine.cache(cpu, 2, 2, "Unified", "2048K", std::to_string(cpu));
    machine.cache(cpu, 3, 3, "Unified", "32M", range(0, 7));
  }
  CacheTopology topology = machine.of(8);
  for (int64_t threads : {1, 2, 8}) {
    EXPECT_EQ(topology.bytesOfThread(1, threads), 48 << 10);
    EXPECT_EQ(topology.bytesOfThread(2, threads), 2 << 20);
  }
  EXPECT_EQ(topology.bytes(3), 32 << 20);
  EXPECT_EQ(topology.bytes(4), std::nullopt);
}

TEST(CacheTopology, HardwareThreadsShareOnceAllRun) {
  Machine machine;
  for (int64_t cpu = 0; cpu < 8; ++cpu)
    machine.cache(cpu, 0, 2, "Unified", "1M", range(cpu / 2 * 2, cpu / 2 * 2 + 1));
  CacheTopology topology = machine.of(8);
  EXPECT_EQ(topology.bytesOfThread(2, 4), 1 << 20);
  EXPECT_EQ(topology.bytesOfThread(2, 8), 512 << 10);
  // More threads than processors do not run at once.
  EXPECT_EQ(topology.bytesOfThread(2, 64), 512 << 10);
  // One of each pair alone is this process's.
  EXPECT_EQ(machine.of({0, 2, 4, 6}).bytesOfThread(2, 4), 1 << 20);
}

TEST(CacheTopology, OfSeveralKindsOfCoresTheLeastCounts) {
  Machine machine;
  for (int64_t cpu = 0; cpu < 4; ++cpu)
    machine.cache(cpu, 0, 2, "Unified", "2M", std::to_string(cpu));
  for (int64_t cpu = 4; cpu < 12; ++cpu)
    machine.cache(cpu, 0, 2, "Unified", "4M", range(cpu / 4 * 4, cpu / 4 * 4 + 3));
  CacheTopology topology = machine.of(12);
  EXPECT_EQ(topology.bytes(2), 2 << 20);
  EXPECT_EQ(topology.bytesOfThread(2, 12), 1 << 20);
  EXPECT_EQ(topology.bytesOfThread(2, 3), 2 << 20);
}

TEST(CacheTopology, OfTheHostsCacheAFewProcessorsHaveAPart) {
  Machine machine;
  for (int64_t cpu = 0; cpu < 8; ++cpu)
    machine.cache(cpu, 0, 3, "Unified", "480M", range(0, 7));
  EXPECT_EQ(machine.of(2).bytes(3), 32 << 20);
  EXPECT_EQ(machine.of(8).bytes(3), 128 << 20);
}

TEST(CacheTopology, MoreThreadsNeverHaveMore) {
  Machine machine;
  for (int64_t cpu = 0; cpu < 64; ++cpu)
    machine.cache(cpu, 0, 2, "Unified", "4096K", range(cpu / 4 * 4, cpu / 4 * 4 + 3));
  CacheTopology topology = machine.of(64);
  for (int64_t threads = 2; threads <= 64; ++threads)
    EXPECT_LE(*topology.bytesOfThread(2, threads), *topology.bytesOfThread(2, threads - 1));
  EXPECT_EQ(topology.bytesOfThread(2, 64), 1 << 20);
}

TEST(CacheTopology, NothingIsKnownWhereNothingIsSaid) {
  Machine machine;
  machine.cache(0, 0, 2, "Unified", "much", "0");
  EXPECT_EQ(machine.of(1).bytesOfThread(2, 1), std::nullopt);
  EXPECT_EQ(machine.of(0).bytesOfThread(2, 1), std::nullopt);
}

TEST(CacheTopology, Lists) {
  EXPECT_EQ(parseCpuList("0-2,8\n"), llvm::SmallVector<int64_t>({0, 1, 2, 8}));
  EXPECT_TRUE(parseCpuList("").empty());
  EXPECT_TRUE(parseCpuList("some").empty());
  EXPECT_EQ(parseCacheSize("48K\n"), 48 << 10);
  EXPECT_EQ(parseCacheSize("2M"), 2 << 20);
  EXPECT_EQ(parseCacheSize("-1"), std::nullopt);
}

} // namespace
