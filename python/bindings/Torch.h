// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The few things Weft asks of torch on every call, fetched once: tensors' metadata through
// the DLPack exchange table, the getters for what that table leaves out, allocation, and
// the switches that say how operations are to be understood. Nothing links against torch.
#ifndef WEFT_PYTHON_BINDINGS_TORCH_H
#define WEFT_PYTHON_BINDINGS_TORCH_H

#include "capture/PyRef.h"
#include "python/bindings/DLPack.h"
#include "python/bindings/Footprint.h"
#include "python/bindings/TorchAbi.h"
#include "runtime/Abi.h"

#include <array>
#include <optional>
#include <span>

namespace weft {

class Torch {
public:
  /// The process's only one; the first use imports torch. Throws nb::python_error.
  static const Torch &get();

  /// torch.Tensor or torch.nn.Parameter itself; a subclass may mean anything by an op.
  bool isPlainTensor(PyObject *object) const {
    PyObject *type = (PyObject *)Py_TYPE(object);
    return type == tensorType.get() || type == parameterType.get();
  }
  /// Of torch.Tensor or a subclass.
  bool isTensor(PyObject *object) const {
    return PyType_IsSubtype(Py_TYPE(object), (PyTypeObject *)tensorType.get()) != 0;
  }
  /// Metadata and data pointer; false with a Python error set when DLPack cannot say.
  bool view(PyObject *tensor, dlpack::Tensor &out) const {
    return exchange->viewFromPython(tensor, &out) == 0;
  }
  bool requiresGrad(PyObject *tensor) const { return flag(requiresGradGetter, tensor); }
  /// Adds what `view` and `requiresGrad` read, as far as it is known where PyTorch keeps that.
  void addMetadata(Footprint &footprint, PyObject *tensor) const;
  /// The version counter, which counts writes in place. An inference tensor has none, and takes
  /// microseconds to say so.
  std::optional<uint64_t> version(PyObject *tensor) const;
  bool isInference(PyObject *tensor) const { return ask(isInferenceMethod, tensor); }
  /// The negative bit, which DLPack does not show.
  bool isNegated(PyObject *tensor) const { return ask(isNegMethod, tensor); }
  /// The bit of lazily conjugated complex numbers, which DLPack does not show either.
  bool isConjugated(PyObject *tensor) const { return ask(isConjMethod, tensor); }

  bool inferenceMode() const { return call(inferenceModeEnabled); }
  /// Whether autograd records ops on this thread: in inference mode it does not, whatever
  /// torch.enable_grad says within.
  bool recordsGradients() const { return call(isGradEnabled) && !inferenceMode(); }
  /// Whether a mode, a transform or torch.jit.trace takes note of ops, on this thread.
  bool interpositionActive() const;
  /// On this thread, for the CPU.
  bool autocastEnabled() const;

  /// An uninitialised tensor; dtype: a WeftDType. Null with a Python error set.
  PyRef allocate(std::span<const int64_t> sizes, std::span<const int64_t> strides,
                 int32_t dtype) const;
  /// Runs `tensor.as_strided(sizes, strides, offset)`. Null with a Python error set.
  PyRef view(PyObject *tensor, std::span<const int64_t> sizes, std::span<const int64_t> strides,
             int64_t offset) const;
  /// A tensor over memory that the caller keeps alive longer than the tensor. Null with a
  /// Python error set.
  PyObject *wrap(const WeftTensor &tensor) const;
  /// Runs `target.copy_(source)`; false with a Python error set.
  bool copy(PyObject *target, PyObject *source) const;
  /// Counts writes in place that PyTorch has not made; false with a Python error set.
  bool countWrites(PyObject *tensor, uint64_t count) const;
  /// Sets the counter of writes in place; false with a Python error set.
  bool setVersion(PyObject *tensor, uint64_t version) const;

private:
  Torch();
  static PyRef read(const PyRef &getter, PyObject *tensor);
  bool flag(const PyRef &getter, PyObject *tensor) const;
  bool call(const PyRef &function) const;
  bool jitTracing() const;
  bool ask(const PyRef &method, PyObject *tensor) const;

  PyRef tensorType, parameterType;
  const dlpack::ExchangeTable *exchange;
  PyRef requiresGradGetter, versionGetter, isInferenceMethod, isNegMethod, isConjMethod,
      incrementVersion, setVersionCounter;
  PyRef isGradEnabled;
  PyRef inferenceModeEnabled, functionStackLength, dispatchStackLength, functorchStack;
  PyRef jitTracingState;
  PyRef forwardModeDict, forwardModeName;
  PyRef isAutocastEnabled, cpuName;
  PyRef emptyStrided, dtypeKeyword, copyName, implName;
  std::array<PyRef, WEFT_BOOL + 1> dtypes; // by WeftDType
  const TorchAbi *abi;
};

std::optional<WeftDType> fromDLPack(dlpack::DataType type);
dlpack::DataType toDLPack(WeftDType type);

} // namespace weft

#endif
