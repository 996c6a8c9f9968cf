// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The element types of the ABI: names, sizes.
#ifndef WEFT_RUNTIME_DTYPE_H
#define WEFT_RUNTIME_DTYPE_H

#include "runtime/Abi.h"
#include <cstddef>
#include <optional>
#include <string_view>

namespace weft::rt {

/// Bytes of one element.
size_t dtypeSize(int32_t dtype);

/// The manifest's name, "f32"; "unknown" for a number outside WeftDType.
std::string_view dtypeName(int32_t dtype);

std::optional<int32_t> parseDType(std::string_view name);

} // namespace weft::rt

#endif
