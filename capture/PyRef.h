// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An owned reference to a Python object, for the code that talks to CPython directly
// because it lies on the path of every call.
#ifndef WEFT_CAPTURE_PYREF_H
#define WEFT_CAPTURE_PYREF_H

#include <Python.h>

#include <utility>

namespace weft {

class PyRef {
public:
  PyRef() = default;
  PyRef(const PyRef &other) : object(Py_XNewRef(other.object)) {}
  PyRef(PyRef &&other) noexcept : object(std::exchange(other.object, nullptr)) {}
  PyRef &operator=(PyRef other) noexcept {
    std::swap(object, other.object);
    return *this;
  }
  ~PyRef() { Py_XDECREF(object); }

  static PyRef steal(PyObject *object) {
    PyRef ref;
    ref.object = object;
    return ref;
  }
  static PyRef borrow(PyObject *object) { return steal(Py_XNewRef(object)); }

  PyObject *get() const { return object; }
  PyObject *release() { return std::exchange(object, nullptr); }
  explicit operator bool() const { return object != nullptr; }

private:
  PyObject *object = nullptr;
};

} // namespace weft

#endif
