// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lets the cycle collector see through what C++ objects of nanobind's classes hold.
#ifndef WEFT_PYTHON_BINDINGS_COLLECTED_H
#define WEFT_PYTHON_BINDINGS_COLLECTED_H

#include <nanobind/nanobind.h>

namespace weft {

template <typename T> int traverseInstance(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  return nanobind::inst_ready(self) ? nanobind::inst_ptr<T>(self)->traverse(visit, arg) : 0;
}

template <typename T> int clearInstance(PyObject *self) {
  nanobind::inst_ptr<T>(self)->clear();
  return 0;
}

/// The slots of a class whose objects have `traverse` and `clear`.
template <typename T> PyType_Slot *collected() {
  static PyType_Slot slots[] = {
      {Py_tp_traverse, (void *)traverseInstance<T>}, {Py_tp_clear, (void *)clearInstance<T>}, {}};
  return slots;
}

} // namespace weft

#endif
