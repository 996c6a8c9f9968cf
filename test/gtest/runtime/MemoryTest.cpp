// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/Arena.h"
#include "runtime/StridedCopy.h"
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

using namespace weft::rt;

namespace {

TEST(Arena, isReusedOneHolderAtATime) {
  ArenaPool pool(100);
  char *first = nullptr;
  {
    ArenaPool::Lease a = pool.acquire(), b = pool.acquire();
    EXPECT_NE(a.data(), b.data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 4096, 0u);
    first = b.data();
  }
  EXPECT_EQ(pool.acquire().data(), first);
}

TEST(Arena, ofNoBytes) {
  ArenaPool pool(0);
  EXPECT_EQ(pool.acquire().data(), nullptr);
}

TEST(StridedCopy, transposes) {
  std::vector<int32_t> from(6), to(6);
  std::iota(from.begin(), from.end(), 0);
  int64_t sizes[] = {3, 2}, toStrides[] = {2, 1}, fromStrides[] = {1, 3};
  stridedCopy(to.data(), toStrides, from.data(), fromStrides, sizes, 4);
  EXPECT_EQ(to, (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
}

TEST(StridedCopy, broadcastsAndReverses) {
  int16_t from[] = {7, 8};
  std::vector<int16_t> to(6);
  int64_t sizes[] = {3, 2}, toStrides[] = {2, 1}, fromStrides[] = {0, -1};
  stridedCopy(to.data(), toStrides, from + 1, fromStrides, sizes, 2);
  EXPECT_EQ(to, (std::vector<int16_t>{8, 7, 8, 7, 8, 7}));
}

TEST(StridedCopy, unalignedScalarAndEmpty) {
  char bytes[12] = {};
  double value = 2.5, out = 0;
  std::memcpy(bytes + 1, &value, sizeof value);
  stridedCopy(&out, {}, bytes + 1, {}, {}, 8);
  EXPECT_EQ(out, 2.5);
  int64_t sizes[] = {2, 0}, strides[] = {0, 1};
  stridedCopy(nullptr, strides, nullptr, strides, sizes, 8);
}

} // namespace
