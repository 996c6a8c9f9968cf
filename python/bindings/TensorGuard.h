// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program assumes about one tensor: class, element type, sizes, strides, place and
// whether it requires gradients. Programs take complex numbers as pairs of reals along a last
// dim of two.
#ifndef WEFT_PYTHON_BINDINGS_TENSORGUARD_H
#define WEFT_PYTHON_BINDINGS_TENSORGUARD_H

#include "capture/PyRef.h"
#include "python/bindings/DLPack.h"
#include "python/bindings/Footprint.h"
#include "runtime/Abi.h"

#include <vector>

namespace weft {

class TensorGuard {
public:
  TensorGuard() = default;
  /// Assumes what holds for `tensor` now. Throws nb::value_error for one that no program
  /// can take.
  explicit TensorGuard(PyObject *tensor);

  bool isOfType(PyObject *tensor) const { return Py_TYPE(tensor) == type; }

  /// Whether `tensor` is as assumed. Fills `view`, whose sizes and strides are this
  /// guard's. Python errors count as a mismatch. The negative bit is not looked at; a
  /// conjugated view of complex numbers is none that was assumed.
  bool matches(PyObject *tensor, WeftTensor &view) const;

  /// Whether it is of the same class, place, element type and rank, and requires gradients alike.
  /// Fills `view`, whose sizes are the tensor's own.
  bool matchesElements(PyObject *tensor, dlpack::Tensor &view) const;

  /// Adds what `matches` reads outside of this object.
  void addTo(Footprint &footprint, PyObject *tensor) const;

private:
  PyTypeObject *type = nullptr; // torch's, alive as long as torch
  int32_t dtype = 0;
  bool complex = false;
  std::vector<int64_t> sizes, strides;
  bool requiresGrad = false;
};

} // namespace weft

#endif
