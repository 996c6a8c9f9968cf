// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An argument of a direct call that is no tensor of torch: a NumPy array, by its buffer, or
// anything with `__dlpack__`, by its capsule. Only what is plainly right is taken.
#ifndef WEFT_PYTHON_BINDINGS_FOREIGNARRAY_H
#define WEFT_PYTHON_BINDINGS_FOREIGNARRAY_H

#include "capture/PyRef.h"
#include "python/bindings/DLPack.h"

#include <array>
#include <string>
#include <vector>

namespace weft {

/// What of Python such arguments are asked by, fetched once.
class ForeignArrays {
public:
  /// immutable: frameworks whose arrays are never written, by the first part of their types'
  /// `__module__`. Throws nb::python_error.
  explicit ForeignArrays(std::vector<std::string> immutable);

private:
  friend class ForeignArray;
  bool isImmutable(PyTypeObject *type) const;

  std::vector<std::string> immutable;
  PyRef numpyArray, dlpackName, moduleName, versionKeyword, version;
};

/// Holds the memory until it is destroyed.
class ForeignArray {
public:
  ForeignArray() = default;
  ForeignArray(const ForeignArray &) = delete;
  ForeignArray &operator=(const ForeignArray &) = delete;
  ~ForeignArray();

  /// False if it is none of those, or may not be written and `written` is set. Throws
  /// nb::python_error for what is no Exception, such as a KeyboardInterrupt.
  bool take(const ForeignArrays &known, PyObject *object, bool written);
  /// Without strides where it is compact.
  const dlpack::Tensor &view() const { return tensor; }

private:
  bool takeBuffer(PyObject *object, bool written);
  bool takeCapsule(const ForeignArrays &known, PyObject *object, bool written);

  dlpack::Tensor tensor{};
  Py_buffer buffer{};
  PyRef capsule;
};

} // namespace weft

#endif
