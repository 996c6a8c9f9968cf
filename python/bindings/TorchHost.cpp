// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/TorchHost.h"

#include "python/bindings/Torch.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace weft {

void TorchHost::add(PyObject *function, PyObject *description) {
  Fallback &fallback = fallbacks.emplace_back(PyRef::borrow(function), std::nullopt);
  const TorchAbi *abi = TorchAbi::get();
  if (abi && description != Py_None)
    fallback.dispatched.emplace(*abi, description);
}

int TorchHost::traverse(visitproc visit, void *arg) const {
  for (const Fallback &fallback : fallbacks)
    Py_VISIT(fallback.function.get());
  return 0;
}

TorchCall::TorchCall(const TorchHost &host)
    : host(host), autocast(Torch::get().autocastEnabled()) {}

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

void TorchCall::fallback(int32_t index, std::span<const WeftTensor> inputs,
                         std::span<const WeftTensor> outputs) {
  const TorchHost::Fallback &fallback = host.fallbacks[index];
  // An op that fails has written nothing but fresh memory: called once more from Python, it
  // raises PyTorch's own exception.
  if (fallback.dispatched && !autocast && fallback.dispatched->run(inputs, outputs))
    return;
  nb::gil_scoped_acquire gil;
  PyRef in = wrapAll(inputs), out = wrapAll(outputs);
  PyObject *arguments[] = {in.get(), out.get()};
  PyRef done = PyRef::steal(PyObject_Vectorcall(fallback.function.get(), arguments, 2, nullptr));
  if (!done)
    throw nb::python_error();
}

} // namespace weft
