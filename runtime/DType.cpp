// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/DType.h"
#include <array>

namespace weft::rt {
namespace {

struct DTypeRow {
  std::string_view name;
  size_t size;
};

// Indexed by WeftDType.
constexpr std::array<DTypeRow, 10> rows{{{"f64", 8},
                                         {"f32", 4},
                                         {"bf16", 2},
                                         {"f16", 2},
                                         {"i64", 8},
                                         {"i32", 4},
                                         {"i16", 2},
                                         {"i8", 1},
                                         {"u8", 1},
                                         {"bool", 1}}};

bool known(int32_t dtype) { return dtype >= 0 && dtype < int32_t(rows.size()); }

} // namespace

size_t dtypeSize(int32_t dtype) { return known(dtype) ? rows[dtype].size : 0; }

std::string_view dtypeName(int32_t dtype) { return known(dtype) ? rows[dtype].name : "unknown"; }

std::optional<int32_t> parseDType(std::string_view name) {
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].name == name)
      return int32_t(i);
  return std::nullopt;
}

} // namespace weft::rt
