// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An attribute's value without MLIR's types.
#ifndef WEFT_COMPILER_DRIVER_DATUM_H
#define WEFT_COMPILER_DRIVER_DATUM_H

#include <cstdint>
#include <string>
#include <vector>

namespace weft::api {

struct Datum {
  enum class Kind {
    Unit,
    Boolean,
    Integer,    ///< of 64 bits when written
    Real,       ///< of 64 bits when written
    Text,       ///< a string, a symbol's name, the case of an enum
    List,       ///< of `items`; whole numbers are written as array<i64>
    Dictionary, ///< `keys` with `items`
    Elements,   ///< `bytes` of elements `text` (a dtype) in row-major order, of `shape`
    Syntax,     ///< any other attribute, as MLIR writes it
  };
  Kind kind = Kind::Unit;
  int64_t integer = 0;
  double real = 0;
  std::string text, bytes;
  std::vector<Datum> items;
  std::vector<std::string> keys;
  std::vector<int64_t> shape;
};

} // namespace weft::api

#endif
