// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What objects of classes with `__slots__` keep in C, behind descriptors.
#include "capture/Guards.h"

#include <structmember.h>

namespace weft::capture {

bool isSlot(PyObject *descriptor) {
  if (!descriptor || Py_TYPE(descriptor) != &PyMemberDescr_Type ||
      !PyType_HasFeature(PyDescr_TYPE(descriptor), Py_TPFLAGS_HEAPTYPE))
    return false;
  const PyMemberDef *member = reinterpret_cast<PyMemberDescrObject *>(descriptor)->d_member;
  return member->type == T_OBJECT_EX && !(member->flags & READONLY);
}

std::vector<PyObject *> slotsOf(PyTypeObject *type) {
  std::vector<PyObject *> slots;
  PyObject *order = type->tp_mro, *key, *item;
  for (Py_ssize_t i = 0; order && i < PyTuple_GET_SIZE(order); ++i) {
    PyObject *dict = reinterpret_cast<PyTypeObject *>(PyTuple_GET_ITEM(order, i))->tp_dict;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &item);)
      if (isSlot(item))
        slots.push_back(item);
  }
  return slots;
}

PyRef memberOf(PyObject *descriptor, PyObject *owner) {
  PyRef found = PyRef::steal(
      Py_TYPE(descriptor)->tp_descr_get(descriptor, owner, (PyObject *)Py_TYPE(owner)));
  PyErr_Clear();
  return found;
}

} // namespace weft::capture
