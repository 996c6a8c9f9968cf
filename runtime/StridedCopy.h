// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies between tensors of arbitrary strides.
#ifndef WEFT_RUNTIME_STRIDEDCOPY_H
#define WEFT_RUNTIME_STRIDEDCOPY_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::rt {

/// Copy elements of `elementSize` bytes between two tensors of shape `sizes`; strides are
/// counted in elements and may be zero or negative. Neither side needs alignment. The two
/// must not overlap.
void stridedCopy(void *to, std::span<const int64_t> toStrides, const void *from,
                 std::span<const int64_t> fromStrides, std::span<const int64_t> sizes,
                 size_t elementSize);

} // namespace weft::rt

#endif
