// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Sites.h"

#include "capture/Arrays.h"
#include "capture/Declared.h"
#include "capture/Imported.h"
#include "capture/Iterators.h"
#include "capture/Plain.h"
#include "capture/Tensors.h"

#include <cmath>

namespace weft::capture {

static bool isModule(PyObject *object) {
  PyTypeObject *kind = moduleType();
  return kind && PyObject_TypeCheck(object, kind);
}

bool isInput(PyObject *object) {
  if (isPlain(object) || isEnumMember(object) || PyFunction_Check(object) ||
      PyMethod_Check(object) || PyCFunction_Check(object))
    return false;
  const Tensors *torch = Tensors::get();
  if (torch->isAny(object))
    return torch->isPlain(object) && !torch->isParameter(object);
  if (isArray(object) || PyList_CheckExact(object) || PyTuple_CheckExact(object) ||
      PyDict_CheckExact(object) || PySet_CheckExact(object) || PyODict_CheckExact(object) ||
      isDeque(object) || isTorchGenerator(object) || interpreter::hasPosition(object))
    return true;
  return PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) && !isModule(object);
}

bool isNumberInput(PyObject *object) {
  // A search in a list finds a NaN by its identity, which a copy would not have.
  return PyLong_CheckExact(object) ||
         (PyFloat_CheckExact(object) && !std::isnan(PyFloat_AS_DOUBLE(object)));
}

PyRef viewOf(const std::vector<Site> &sites) {
  PyRef list = PyRef::steal(PyList_New(0));
  for (const Site &each : sites) {
    PyRef view =
        PyRef::steal(Py_BuildValue("(iKO)", static_cast<int>(each.place),
                                   static_cast<unsigned long long>(each.owner), each.key.get()));
    if (!list || !view || PyList_Append(list.get(), view.get()) < 0)
      return {};
  }
  return list;
}

bool sitesOf(PyObject *view, std::vector<Site> &sites) {
  PyRef all = PyRef::steal(PySequence_Tuple(view));
  for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(all.get()); ++i) {
    int place;
    unsigned long long owner;
    PyObject *key;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(all.get(), i), "iKO", &place, &owner, &key))
      return false;
    sites.push_back({static_cast<Place>(place), static_cast<uintptr_t>(owner), PyRef::borrow(key)});
  }
  return static_cast<bool>(all);
}

} // namespace weft::capture
