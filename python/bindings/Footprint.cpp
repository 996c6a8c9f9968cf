// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/Footprint.h"

#include <algorithm>

namespace weft {

static constexpr uintptr_t lineBytes = 64;

void Footprint::add(const void *begin, size_t bytes) {
  if (!begin)
    return;
  auto first = reinterpret_cast<uintptr_t>(begin);
  for (uintptr_t line = first / lineBytes * lineBytes; line < first + bytes; line += lineBytes)
    lines.push_back(line);
}

void Footprint::sort() {
  std::ranges::sort(lines);
  auto repeated = std::ranges::unique(lines);
  lines.erase(repeated.begin(), repeated.end());
}

void Footprint::fetch() const {
  // Not into the first-level cache, which holds less than there is.
  constexpr int forReading = 0, secondLevel = 2;
  for (uintptr_t line : lines)
    __builtin_prefetch(reinterpret_cast<const void *>(line), forReading, secondLevel);
}

} // namespace weft
