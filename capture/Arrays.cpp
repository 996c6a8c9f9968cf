// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Arrays.h"

#include "capture/Declared.h"

#include <cstring>
#include <string_view>

namespace weft::capture {

bool isArray(PyObject *object) { return (PyObject *)Py_TYPE(object) == operators().array; }

PyRef arrayFacts(PyObject *array) {
  PyRef type = PyRef::steal(PyObject_GetAttrString(array, "dtype"));
  PyRef code = PyRef::steal(type ? PyObject_GetAttrString(type.get(), "str") : nullptr);
  PyRef shape = PyRef::steal(PyObject_GetAttrString(array, "shape"));
  PyRef strides = PyRef::steal(PyObject_GetAttrString(array, "strides"));
  const char *text = code && PyUnicode_Check(code.get()) ? PyUnicode_AsUTF8(code.get()) : nullptr;
  bool known = text && shape && strides && std::string_view("biufc").find(text[1]) != -1ul;
  PyRef facts =
      PyRef::steal(known ? PyTuple_Pack(3, code.get(), shape.get(), strides.get()) : nullptr);
  PyErr_Clear();
  return facts;
}

bool ownsMemory(PyObject *array) {
  PyRef base = PyRef::steal(PyObject_GetAttrString(array, "base"));
  PyErr_Clear();
  return base.get() == Py_None;
}

bool isArrayScalar(PyObject *object) {
  PyObject *kind = operators().arrayScalar;
  return kind && PyObject_TypeCheck(object, (PyTypeObject *)kind) &&
         !PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE);
}

bool arrayScalarsEqual(PyObject *left, PyObject *right) {
  Py_buffer x, y;
  if (PyObject_GetBuffer(left, &x, PyBUF_SIMPLE) < 0) {
    PyErr_Clear();
    return false;
  }
  bool equal = false;
  if (PyObject_GetBuffer(right, &y, PyBUF_SIMPLE) == 0) {
    equal = x.len == y.len && std::memcmp(x.buf, y.buf, static_cast<size_t>(x.len)) == 0;
    PyBuffer_Release(&y);
  }
  PyErr_Clear();
  PyBuffer_Release(&x);
  return equal;
}

} // namespace weft::capture
