// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a call does not do once it is warm: allocate.
#include "runtime/Program.h"
#include "runtime/Seal.h"
#include "runtime/ThreadTeam.h"
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <new>
#include <unistd.h>

using namespace weft::rt;

static std::atomic<int64_t> allocations{0};

void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
void *operator new(size_t bytes, std::align_val_t alignment) {
  ++allocations;
  auto align = static_cast<size_t>(alignment);
  if (void *memory = std::aligned_alloc(align, (bytes + align - 1) / align * align))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, size_t, std::align_val_t) noexcept { std::free(memory); }

TEST(SteadyState, callsDoNotAllocate) {
  namespace fs = std::filesystem;
  fs::path path = fs::temp_directory_path() / ("weft-steady-" + std::to_string(getpid()) + ".so");
  fs::copy_file(fs::path(FIXTURES) / "libweft_fixture.so", path);
  sealArtifact(path);
  Program program(Artifact::load(path));
  fs::remove(path);

  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {};
  const int64_t sizes[] = {2, 3}, strides[] = {3, 1};
  WeftTensor in{x, sizes, strides, 2, WEFT_F32, 1, 0}, out{y, sizes, strides, 2, WEFT_F32, 1, 0};
  for (int32_t threads : {1, 2}) {
    setNumThreads(threads);
    program.run({&in, 1}, {&out, 1});
    int64_t before = allocations;
    ASSERT_GT(before, 0) << "nothing is counted";
    for (int i = 0; i < 100; ++i)
      program.run({&in, 1}, {&out, 1});
    EXPECT_EQ(allocations - before, 0) << threads << " threads";
    EXPECT_EQ(y[5], 7);
  }
}
