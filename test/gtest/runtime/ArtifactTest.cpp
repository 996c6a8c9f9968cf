// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/Artifact.h"
#include "runtime/Cache.h"
#include "runtime/CpuFeatures.h"
#include "runtime/Errors.h"
#include "runtime/Program.h"
#include "runtime/Seal.h"
#include "runtime/ThreadTeam.h"
#include <fstream>
#include <gtest/gtest.h>
#include <thread>

namespace fs = std::filesystem;
using namespace weft::rt;

namespace {

class ArtifactTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "weft-test-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder); }

  fs::path sealed(const std::string &fixture) {
    fs::path path = folder / (fixture + ".so");
    fs::copy_file(fs::path(FIXTURES) / ("lib" + fixture + ".so"), path);
    sealArtifact(path);
    return path;
  }

  static std::string errorOf(const fs::path &path) {
    try {
      Artifact::load(path);
      return "";
    } catch (const ArtifactError &error) {
      return error.what();
    }
  }

  fs::path folder;
};

struct Float23 {
  std::vector<float> values = std::vector<float>(6);
  std::vector<int64_t> sizes{2, 3}, strides{3, 1};
  WeftTensor tensor() {
    return {values.data(), sizes.data(), strides.data(), int32_t(sizes.size()), WEFT_F32, 1, 0};
  }
};

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ArtifactTest, runsWithOneAndTwoThreads) {
  Program program(Artifact::load(sealed("weft_fixture")));
  for (int32_t threads : {1, 2}) {
    setNumThreads(threads);
    Float23 x, y;
    x.values = {0, 1, 2, 3, 4, 5};
    WeftTensor in = x.tensor(), out = y.tensor();
    Profile profile;
    program.run({&in, 1}, {&out, 1}, nullptr, &profile);
    EXPECT_EQ(y.values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(profile.seconds.size(), 1u);
  }
}

TEST_F(ArtifactTest, copiesOddStrides) {
  Program program(Artifact::load(sealed("weft_fixture")));
  Float23 x, y;
  x.values = {0, 3, 1, 4, 2, 5};
  x.strides = {1, 2};
  WeftTensor in = x.tensor(), out = y.tensor();
  program.run({&in, 1}, {&out, 1});
  EXPECT_EQ(y.values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_F(ArtifactTest, namesTheWrongArgument) {
  Program program(Artifact::load(sealed("weft_fixture")));
  auto errorFor = [&](std::span<const WeftTensor> arguments) -> std::string {
    try {
      program.check(arguments);
      return "";
    } catch (const ArgumentError &error) {
      return error.what();
    }
  };
  Float23 x;
  WeftTensor good = x.tensor(), dtype = good, device = good;
  dtype.dtype = WEFT_I64;
  device.device_type = 2;
  EXPECT_EQ(errorFor({}), "expected 1 arguments, found 0");
  EXPECT_EQ(errorFor({&dtype, 1}), "argument \"positions\": expected dtype f32, found i64");
  EXPECT_EQ(errorFor({&device, 1}), "argument \"positions\": expected device cpu, found cuda:0");
  x.sizes = {3, 2};
  EXPECT_EQ(errorFor({&good, 1}), "argument \"positions\": expected shape [2, 3], found [3, 2]");
}

TEST_F(ArtifactTest, failedAssertLeavesTheProgramUsable) {
  Program program(Artifact::load(sealed("weft_fixture")));
  setNumThreads(2);
  Float23 x, y;
  x.values[0] = -1;
  WeftTensor in = x.tensor(), out = y.tensor();
  EXPECT_THROW(program.run({&in, 1}, {&out, 1}), AssertError);
  x.values[0] = 1;
  program.run({&in, 1}, {&out, 1});
  EXPECT_EQ(y.values[0], 2);
}

TEST_F(ArtifactTest, survivesConcurrentCalls) {
  Program program(Artifact::load(sealed("weft_fixture")));
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      Float23 x, y;
      x.values.assign(6, float(caller));
      WeftTensor in = x.tensor(), out = y.tensor();
      for (int i = 0; i < 500; ++i) {
        program.run({&in, 1}, {&out, 1});
        wrong += y.values[5] != float(caller + 1);
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ArtifactTest, refusesWhatItCannotRun) {
  EXPECT_TRUE(contains(errorOf(sealed("weft_fixture_version")), "expected ABI 2, found 99"));
  EXPECT_TRUE(contains(errorOf(sealed("weft_fixture_cpu")), "this one lacks made-up"));
  EXPECT_TRUE(contains(errorOf(folder / "absent.so"), "cannot be read"));
  std::ofstream(folder / "text.so") << "hello";
  EXPECT_TRUE(contains(errorOf(folder / "text.so"), "expected a shared object"));
}

TEST(CpuFeatures, listsWhatIsMissing) {
  EXPECT_EQ(missingCpuFeatures({"made-up"}), (std::vector<std::string>{"made-up"}));
}

TEST_F(ArtifactTest, noticesDamage) {
  fs::path path = sealed("weft_fixture");
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(1000);
  file.put('\x5a');
  file.close();
  EXPECT_TRUE(contains(errorOf(path), "damaged"));
  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_TRUE(contains(errorOf(path), "truncated"));
}

TEST_F(ArtifactTest, cacheKeepsAndRebuilds) {
  Cache cache(folder / "cache");
  EXPECT_FALSE(cache.lookup("abc").path);
  Cache::Writing writing = cache.begin("abc");
  EXPECT_EQ(writing.warning, "");
  fs::copy_file(fs::path(FIXTURES) / "libweft_fixture.so", writing.draft->path());
  fs::path path = cache.publish(writing.draft).path;
  EXPECT_EQ(cache.lookup("abc").path, path);
  fs::resize_file(path, 5000);
  Cache::Lookup damaged = cache.lookup("abc");
  EXPECT_FALSE(damaged.path);
  EXPECT_NE(damaged.warning, "");
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ArtifactTest, cacheThatCannotBeWrittenOnlyWarns) {
  std::ofstream(folder / "file") << "in the way";
  Cache cache(folder / "file" / "cache");
  Cache::Writing writing = cache.begin("abc");
  EXPECT_TRUE(contains(writing.warning, "cannot be written"));
  EXPECT_TRUE(writing.draft->isPrivate());
  fs::copy_file(fs::path(FIXTURES) / "libweft_fixture.so", writing.draft->path());
  Cache::Published published = cache.publish(std::move(writing.draft));
  auto artifact = Artifact::load(published.path);
  published.draft.reset();
  EXPECT_FALSE(fs::exists(published.path));
  EXPECT_NE(artifact->entry("main"), nullptr);
}

} // namespace
