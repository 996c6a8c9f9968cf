// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is particular to one CPython: how to know that a dict or a type has not changed
// without looking inside. CPython 3.11 gives every dict state a tag unique in the process
// (PEP 509) and every type a version that its modification invalidates.
#ifndef WEFT_PYTHON_BINDINGS_DICTVERSION_H
#define WEFT_PYTHON_BINDINGS_DICTVERSION_H

#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030C0000
#error "dict and type versions are read as CPython 3.11 keeps them"
#endif

namespace weft {

inline uint64_t dictVersion(PyObject *dict) {
  return reinterpret_cast<PyDictObject *>(dict)->ma_version_tag;
}

/// The type's version, or 0 when it has none at present.
inline unsigned typeVersion(PyTypeObject *type) {
  return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
}

/// Looking any name up gives the type a version, as long as CPython has one to give.
inline unsigned assignTypeVersion(PyTypeObject *type) {
  static PyObject *name = PyUnicode_InternFromString("__class__");
  _PyType_Lookup(type, name);
  return typeVersion(type);
}

/// Bytes ahead of an instance within which the pointer to its dict lies, unless it lies inside.
constexpr size_t aheadOfInstance = 4 * sizeof(PyObject *);

/// The instance's `__dict__`, materialised; null when it has none. Borrowed.
inline PyObject *instanceDict(PyObject *object) {
  PyObject **slot = _PyObject_GetDictPtr(object);
  return slot ? *slot : nullptr;
}

} // namespace weft

#endif
