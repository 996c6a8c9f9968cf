// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of DLPack 1.3 that Weft uses: the tensor view, the owning handle and the C
// exchange table that a tensor type offers as `__dlpack_c_exchange_api__`. Layouts are
// those of https://github.com/dmlc/dlpack, include/dlpack/dlpack.h.
#ifndef WEFT_PYTHON_BINDINGS_DLPACK_H
#define WEFT_PYTHON_BINDINGS_DLPACK_H

#include <cstdint>

namespace weft::dlpack {

struct Version {
  uint32_t major;
  uint32_t minor;
};

struct Device {
  int32_t type; // 1 is the CPU
  int32_t id;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

enum TypeCode : uint8_t { Int = 0, UInt = 1, Float = 2, BFloat = 4, Complex = 5, Bool = 6 };

struct Tensor {
  void *data;
  Device device;
  int32_t rank;
  DataType dtype;
  int64_t *sizes;
  int64_t *strides; // in elements; never null in what torch hands out
  uint64_t byteOffset;
};

struct ManagedTensor {
  Version version;
  void *context;
  void (*deleter)(ManagedTensor *self);
  uint64_t flags;
  Tensor tensor;
};

struct ExchangeTable {
  struct Header {
    Version version;
    Header *previous;
  } header;
  int (*allocate)(Tensor *prototype, ManagedTensor **out, void *errorContext,
                  void (*setError)(void *, const char *, const char *));
  int (*managedFromPython)(void *object, ManagedTensor **out);
  int (*managedToPython)(ManagedTensor *tensor, void **outObject);
  // Fills a view that stays valid while the object and its metadata do.
  int (*viewFromPython)(void *object, Tensor *out);
  int (*currentStream)(int32_t deviceType, int32_t deviceId, void **out);
};

static_assert(sizeof(Tensor) == 48 && sizeof(ManagedTensor) == 80, "the layout is an ABI");

} // namespace weft::dlpack

#endif
