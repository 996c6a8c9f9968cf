// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/StridedCopy.h"
#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace weft::rt {
namespace {

constexpr size_t maxRank = 64;

template <size_t Size>
void copyRow(char *to, int64_t toStep, const char *from, int64_t fromStep, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * toStep, from + i * fromStep, Size);
}

void copyRow(char *to, int64_t toStep, const char *from, int64_t fromStep, int64_t count,
             size_t size) {
  if (toStep == int64_t(size) && fromStep == int64_t(size)) {
    std::memcpy(to, from, size_t(count) * size);
    return;
  }
  switch (size) {
  case 1:
    return copyRow<1>(to, toStep, from, fromStep, count);
  case 2:
    return copyRow<2>(to, toStep, from, fromStep, count);
  case 4:
    return copyRow<4>(to, toStep, from, fromStep, count);
  case 8:
    return copyRow<8>(to, toStep, from, fromStep, count);
  default:
    throw std::invalid_argument("stridedCopy: expected elements of 1, 2, 4 or 8 bytes");
  }
}

} // namespace

void stridedCopy(void *to, std::span<const int64_t> toStrides, const void *from,
                 std::span<const int64_t> fromStrides, std::span<const int64_t> sizes,
                 size_t elementSize) {
  size_t rank = sizes.size();
  int64_t row = rank ? sizes[rank - 1] : 1;
  if (rank > maxRank)
    throw std::invalid_argument("stridedCopy: expected at most 64 dims");
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end())
    return;
  char *target = static_cast<char *>(to);
  const char *source = static_cast<const char *>(from);
  int64_t size = int64_t(elementSize);
  if (rank == 0)
    return copyRow(target, size, source, size, 1, elementSize);

  int64_t index[maxRank] = {};
  // Dims that are one in memory on both sides are copied as one.
  size_t last = rank - 1;
  int64_t toStep = toStrides[last], fromStep = fromStrides[last];
  while (last > 0 && toStrides[last - 1] == toStep * row && fromStrides[last - 1] == fromStep * row)
    row *= sizes[--last];
  while (true) {
    copyRow(target, toStep * size, source, fromStep * size, row, elementSize);
    // Increment the outer indices like an odometer.
    size_t dim = last;
    while (dim-- > 0) {
      target += toStrides[dim] * size;
      source += fromStrides[dim] * size;
      if (++index[dim] < sizes[dim])
        break;
      target -= toStrides[dim] * size * sizes[dim];
      source -= fromStrides[dim] * size * sizes[dim];
      index[dim] = 0;
    }
    if (dim == size_t(-1))
      return;
  }
}

} // namespace weft::rt
