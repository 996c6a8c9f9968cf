// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program may see of a tensor besides its values, read through torch's DLPack exchange
// table and its own getters, without linking torch.
#ifndef WEFT_CAPTURE_TENSORS_H
#define WEFT_CAPTURE_TENSORS_H

#include "capture/PyRef.h"

#include <optional>
#include <string>
#include <vector>

namespace weft::capture {

class Tensors {
public:
  /// Fetches torch's types and getters. Null with a Python error set.
  static const Tensors *get();

  /// Whether the object's type is torch.Tensor or torch.nn.Parameter itself; for a subclass an
  /// operation may mean anything.
  bool isPlain(PyObject *object) const {
    return Py_TYPE(object) == tensorType || Py_TYPE(object) == parameterType;
  }
  bool isParameter(PyObject *object) const { return Py_TYPE(object) == parameterType; }
  bool isAny(PyObject *object) const { return PyObject_TypeCheck(object, tensorType); }
  /// How often the tensor was written in place; -1 for an inference tensor, which does not count
  /// writes.
  int64_t version(PyObject *tensor) const;

private:
  friend class TensorFacts;
  Tensors() = default;
  PyTypeObject *tensorType = nullptr, *parameterType = nullptr;
  const void *exchange = nullptr;
  PyObject *requiresGrad = nullptr, *isLeaf = nullptr, *versionCount = nullptr;
  PyObject *isNeg = nullptr, *isConj = nullptr, *isInference = nullptr;
};

class TensorFacts {
public:
  /// What can be seen of the tensor; nothing for one that DLPack cannot show: sparse, meta,
  /// functorch's.
  static std::optional<TensorFacts> of(PyObject *tensor);
  /// Whether the tensor has these facts. Never leaves a Python error behind.
  bool match(PyObject *tensor) const;
  /// Whether the two differ at most in sizes and strides, their rank being the same.
  bool resizes(const TensorFacts &other) const;
  bool gradient() const { return requiresGrad; }
  bool isLeaf() const { return leaf; }
  /// Whether the tensor has no dims, and may stand for a size, a place or a choice.
  bool isCount() const { return sizes.empty() && (code < 2 || code == 6); }
  /// Whether the elements are bool or uint8, which choose elements when they are an index.
  bool isMask() const { return code == 6 || (code == 1 && bits == 8); }
  /// A text such as "float32[3, 4]".
  std::string text() const;

private:
  PyTypeObject *type = nullptr; // torch's, alive as long as torch
  int32_t device = 0, deviceIndex = 0;
  uint8_t code = 0, bits = 0;
  std::vector<int64_t> sizes, strides;
  bool requiresGrad = false, leaf = false, negated = false, conjugated = false, inference = false;
};

} // namespace weft::capture

#endif
