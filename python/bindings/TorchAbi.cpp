// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/TorchAbi.h"

#include "runtime/Symbols.h"

#include <stdexcept>
#include <string>

namespace weft {

/// In the order of WeftDType.
static constexpr const char *dtypeNames[WEFT_BOOL + 1] = {
    "aoti_torch_dtype_float64", "aoti_torch_dtype_float32", "aoti_torch_dtype_bfloat16",
    "aoti_torch_dtype_float16", "aoti_torch_dtype_int64",   "aoti_torch_dtype_int32",
    "aoti_torch_dtype_int16",   "aoti_torch_dtype_int8",    "aoti_torch_dtype_uint8",
    "aoti_torch_dtype_bool"};

/// THPVariable_Wrap(const at::TensorBase &): a handle of the C interface is an at::Tensor's
/// address.
static void findToPython(PyObject *(*&out)(TorchAbi::Tensor)) {
  void *library = dlopen("libtorch_python.so", RTLD_NOLOAD | RTLD_NOW);
  if (!library || !rt::findSymbol(library, "_Z16THPVariable_WrapRKN2at10TensorBaseE", out))
    out = nullptr;
}

/// torch::jit::tracer::getTracingState(), of a reference to a shared pointer, which begins with the
/// pointer.
static void findTracingState(void *library, void *const *(*&out)()) {
  if (!rt::findSymbol(library, "_ZN5torch3jit6tracer15getTracingStateEv", out))
    out = nullptr;
}

void *TorchAbi::libtorch() { return dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_NOW); }

bool TorchAbi::load(void *library) {
  findToPython(toPython);
  findTracingState(library, tracingState);
  for (size_t i = 0; i < std::size(dtypeNames); ++i) {
    int32_t (*number)();
    if (!rt::findSymbol(library, dtypeNames[i], number))
      return false;
    dtypes[i] = number();
  }
  return rt::findSymbol(library, "torch_call_dispatcher", callDispatcher) &&
         rt::findSymbol(library, "aoti_torch_abi_version", version) &&
         rt::findSymbol(library, "torch_exception_get_what_without_backtrace", lastError) &&
         rt::findSymbol(library, "aoti_torch_create_tensor_from_blob", tensorFromBlob) &&
         rt::findSymbol(library, "aoti_torch_empty_strided", emptyStrided) &&
         rt::findSymbol(library, "aoti_torch_delete_tensor_object", deleteTensor) &&
         rt::findSymbol(library, "aoti_torch_get_dim", rank) &&
         rt::findSymbol(library, "aoti_torch_get_sizes", sizes) &&
         rt::findSymbol(library, "aoti_torch_get_data_ptr", dataPointer) &&
         rt::findSymbol(library, "aoti_torch_copy_", copy) &&
         rt::findSymbol(library, "torch_new_stable_ivalue", newValue) &&
         rt::findSymbol(library, "torch_new_string_handle", newString) &&
         rt::findSymbol(library, "torch_new_list_reserve_size", newList) &&
         rt::findSymbol(library, "torch_list_push_back", pushBack) &&
         rt::findSymbol(library, "torch_list_size", listSize) &&
         rt::findSymbol(library, "torch_list_get_item", listItem) &&
         rt::findSymbol(library, "torch_delete_list", deleteList) &&
         rt::findSymbol(library, "aoti_torch_grad_mode_is_enabled", gradEnabled) &&
         rt::findSymbol(library, "aoti_torch_grad_mode_set_enabled", setGradEnabled);
}

const TorchAbi *TorchAbi::get() {
  static TorchAbi abi;
  static const bool loaded = [] {
    void *library = libtorch();
    return library && abi.load(library);
  }();
  return loaded ? &abi : nullptr;
}

int32_t TorchAbi::constant(const char *name) {
  int32_t (*number)();
  void *library = libtorch();
  if (!library || !rt::findSymbol(library, name, number))
    throw std::runtime_error(std::string("expected libtorch to export ") + name);
  return number();
}

} // namespace weft
