// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes and strides as functions of the symbols of a range of sizes.
#ifndef WEFT_PYTHON_BINDINGS_LINEARSIZE_H
#define WEFT_PYTHON_BINDINGS_LINEARSIZE_H

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace weft {

struct LinearSize {
  std::vector<int64_t> coefficients;
  int64_t constant;

  int64_t at(std::span<const int64_t> symbols) const {
    int64_t value = constant;
    for (size_t i = 0; i < coefficients.size(); ++i)
      value += coefficients[i] * symbols[i];
    return value;
  }

  /// The symbol that it is, -1 where it is none.
  int symbol() const {
    auto isZero = [](int64_t c) { return c == 0; };
    auto first = std::ranges::find_if_not(coefficients, isZero);
    if (constant != 0 || first == coefficients.end() || *first != 1 ||
        !std::all_of(first + 1, coefficients.end(), isZero))
      return -1;
    return static_cast<int>(first - coefficients.begin());
  }
};

/// As strides are, and places in memory.
struct SizeProduct {
  std::vector<LinearSize> factors;

  int64_t at(std::span<const int64_t> symbols) const {
    int64_t value = 1;
    for (const LinearSize &factor : factors)
      value *= factor.at(symbols);
    return value;
  }
};

} // namespace weft

#endif
