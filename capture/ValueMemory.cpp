// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which memory tensors share with those from outside, and which of it the call has written to.
#include "capture/Declared.h"
#include "capture/Values.h"

namespace weft::capture {

/// An object that cannot tell whether it shares memory is assumed to share it.
bool Values::sharesMemory(PyObject *left, PyObject *right) {
  PyRef x = PyRef::steal(PyObject_CallOneArg(operators().storage, left));
  PyRef y = PyRef::steal(PyObject_CallOneArg(operators().storage, right));
  bool shares = !x || !y || PyObject_RichCompareBool(x.get(), y.get(), Py_EQ) != 0;
  PyErr_Clear();
  return shares;
}

PyObject *Values::externalOf(PyObject *tensor) {
  for (const External &each : externals)
    if (each.tensor.get() == tensor || sharesMemory(each.tensor.get(), tensor))
      return each.tensor.get();
  return nullptr;
}

std::vector<PyRef> Values::externalTensors() const {
  std::vector<PyRef> tensors;
  for (const External &each : externals)
    tensors.push_back(each.tensor);
  return tensors;
}

void Values::noteArrayMemory(PyObject *tensor) {
  arrayMemory.push_back(PyRef::steal(PyObject_CallOneArg(operators().storage, tensor)));
  PyErr_Clear();
}

bool Values::isArrayMemory(PyObject *tensor) {
  PyRef storage = PyRef::steal(PyObject_CallOneArg(operators().storage, tensor));
  PyErr_Clear();
  for (const PyRef &each : arrayMemory)
    if (!each || !storage || PyObject_RichCompareBool(each.get(), storage.get(), Py_EQ) != 0)
      return true;
  return false;
}

void Values::noteWritten(PyObject *tensor) {
  for (External &each : externals)
    if (each.tensor.get() == tensor || sharesMemory(each.tensor.get(), tensor))
      each.version = Tensors::get()->version(each.tensor.get());
}

bool Values::externalWasWritten() const {
  for (const External &each : externals)
    if (Tensors::get()->version(each.tensor.get()) != each.version)
      return true;
  return false;
}

} // namespace weft::capture
