// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What observing needs of Python's modules by name.
#ifndef WEFT_CAPTURE_IMPORTED_H
#define WEFT_CAPTURE_IMPORTED_H

#include "capture/PyRef.h"

namespace weft::capture {

/// What the module has by that name; the module is imported if need be. Null, with no error set, if
/// there is no such thing.
inline PyRef imported(const char *module, const char *name) {
  PyRef found = PyRef::steal(PyImport_ImportModule(module));
  PyRef value = PyRef::steal(found ? PyObject_GetAttrString(found.get(), name) : nullptr);
  PyErr_Clear();
  return value;
}

/// torch.nn.Module, borrowed; null if there is none.
inline PyTypeObject *moduleType() {
  static PyTypeObject *type = nullptr;
  if (!type)
    type = reinterpret_cast<PyTypeObject *>(imported("torch.nn", "Module").release());
  return type;
}

} // namespace weft::capture

#endif
