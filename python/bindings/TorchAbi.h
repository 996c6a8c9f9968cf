// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of torch's stable C interface (torch/csrc/stable/c/shim.h and the AOTInductor
// shim that it includes) through which an op is called without Python and without the GIL.
// They are looked up in the libtorch that the process has loaded; nothing links against it.
#ifndef WEFT_PYTHON_BINDINGS_TORCHABI_H
#define WEFT_PYTHON_BINDINGS_TORCHABI_H

#include "runtime/Abi.h"

#include <Python.h>
#include <cstddef>
#include <cstdint>

namespace weft {

struct TorchAbi {
  using Status = int32_t; // 0: success
  using Value = uint64_t; // StableIValue
  using Tensor = struct TensorOpaque *;
  using List = struct ListOpaque *;
  using String = struct StringOpaque *;

  /// The library that torch has loaded, which stays open as torch leaves it; null without torch.
  static void *libtorch();
  /// Null where the process has no libtorch that exports all of them.
  static const TorchAbi *get();
  /// The number that an exported function without arguments gives, such as
  /// `aoti_torch_dtype_float32`. Throws std::runtime_error for an unknown name.
  static int32_t constant(const char *name);

  /// What torch calls a WeftDType.
  int32_t dtype(int32_t weft) const { return dtypes[weft]; }

  Status (*callDispatcher)(const char *op, const char *overload, Value *stack, uint64_t version);
  uint64_t (*version)();
  const char *(*lastError)();

  Status (*tensorFromBlob)(void *data, int64_t rank, const int64_t *sizes, const int64_t *strides,
                           int64_t offset, int32_t dtype, int32_t deviceType, int32_t deviceIndex,
                           Tensor *out);
  Status (*emptyStrided)(int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                         int32_t deviceType, int32_t deviceIndex, Tensor *out);
  Status (*deleteTensor)(Tensor tensor);
  Status (*rank)(Tensor tensor, int64_t *out);
  Status (*sizes)(Tensor tensor, int64_t **borrowed);
  Status (*dataPointer)(Tensor tensor, void **borrowed);
  Status (*copy)(Tensor target, Tensor source, int32_t nonBlocking);

  Status (*newValue)(Value **out);
  Status (*newString)(const char *data, size_t length, String *out);
  Status (*newList)(size_t capacity, List *out);
  Status (*pushBack)(List list, Value element);
  Status (*listSize)(List list, size_t *out);
  Status (*listItem)(List list, size_t index, Value *out);
  Status (*deleteList)(List list);

  /// torch's C++ function from a tensor to its Python object, which holds the tensor, too. Null
  /// where this torch has it under another name.
  PyObject *(*toPython)(Tensor tensor);
  /// torch's C++ function for what torch.jit.trace records into on this thread: the address of a
  /// pointer, null where it records nothing. Null where this torch has it under another name.
  void *const *(*tracingState)();

  bool (*gradEnabled)();
  void (*setGradEnabled)(bool enabled);

private:
  bool load(void *library);

  int32_t dtypes[WEFT_BOOL + 1];
};

} // namespace weft

#endif
