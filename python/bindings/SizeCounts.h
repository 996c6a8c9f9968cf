// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How often calls have had which sizes, of those that come most often.
#ifndef WEFT_PYTHON_BINDINGS_SIZECOUNTS_H
#define WEFT_PYTHON_BINDINGS_SIZECOUNTS_H

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace weft {

/// A table of fixed length, as sizes may be different in each call. What comes at a place that is
/// taken takes one off that place's count, and the place once that is zero: what comes in more than
/// half of a place's calls is found (Boyer and Moore, MJRTY, 1981).
class SizeCounts {
public:
  /// Counts a call. Whether its sizes are those of the 8th, 16th, 32nd … such call, and of one in
  /// `rarest` of all calls at least.
  bool isOften(std::span<const int64_t> sizes) {
    ++all;
    Entry &entry = entries[placeOf(sizes)];
    if (entry.count == 0)
      entry.sizes.assign(sizes.begin(), sizes.end());
    else if (!std::equal(sizes.begin(), sizes.end(), entry.sizes.begin(), entry.sizes.end())) {
      --entry.count;
      return false;
    }
    ++entry.count;
    return entry.count >= fewest && std::has_single_bit(entry.count) && entry.count * rarest >= all;
  }

private:
  struct Entry {
    std::vector<int64_t> sizes;
    uint64_t count = 0;
  };

  static constexpr uint64_t fewest = 8;  // calls
  static constexpr uint64_t rarest = 24; // calls for one of these sizes
  static constexpr unsigned bits = 7;

  static size_t placeOf(std::span<const int64_t> sizes) {
    uint64_t hash = 0;
    for (int64_t size : sizes) // Knuth's multiplicative hashing, by the golden ratio
      hash = (hash ^ static_cast<uint64_t>(size)) * 0x9E3779B97F4A7C15u;
    return hash >> (64 - bits);
  }

  std::array<Entry, 1 << bits> entries;
  uint64_t all = 0;
};

} // namespace weft

#endif
