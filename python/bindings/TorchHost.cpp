// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/TorchHost.h"

#include "python/bindings/Torch.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace weft {

static PyRef wrapAll(std::span<const WeftTensor> tensors) {
  PyRef list = PyRef::steal(PyList_New(tensors.size()));
  if (!list)
    throw nb::python_error();
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyObject *tensor = Torch::get().wrap(tensors[i]);
    if (!tensor)
      throw nb::python_error();
    PyList_SET_ITEM(list.get(), i, tensor);
  }
  return list;
}

void TorchHost::fallback(int32_t index, std::span<const WeftTensor> inputs,
                         std::span<const WeftTensor> outputs) {
  nb::gil_scoped_acquire gil;
  PyRef in = wrapAll(inputs), out = wrapAll(outputs);
  PyObject *arguments[] = {in.get(), out.get()};
  PyRef done = PyRef::steal(PyObject_Vectorcall(functions[index].get(), arguments, 2, nullptr));
  if (!done)
    throw nb::python_error();
}

int TorchHost::traverse(visitproc visit, void *arg) const {
  for (const PyRef &function : functions)
    Py_VISIT(function.get());
  return 0;
}

} // namespace weft
