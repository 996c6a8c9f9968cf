// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/TakenNumbers.h"

#include "python/bindings/Torch.h"

#include <vector>

namespace weft {

static PyRef tensorOfDoubles(PyObject *tuple) {
  const Torch &torch = Torch::get();
  const int64_t count = PyTuple_GET_SIZE(tuple), dense = 1;
  PyRef tensor = torch.allocate({&count, 1}, {&dense, 1}, WEFT_F64);
  dlpack::Tensor view;
  if (!tensor || !torch.view(tensor.get(), view))
    return {};
  auto *elements = reinterpret_cast<double *>(static_cast<char *>(view.data) + view.byteOffset);
  for (int64_t i = 0; i < count; ++i)
    elements[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(tuple, i));
  return PyErr_Occurred() ? PyRef() : std::move(tensor);
}

PyRef TakenNumbers::tensorOf(const PyRef *numbers) const {
  std::vector<PyObject *> given;
  for (size_t i = 0; i < count; ++i)
    given.push_back(numbers[i].get());
  PyRef taken =
      PyRef::steal(PyObject_Vectorcall(function.get(), given.data(), given.size(), nullptr));
  PyRef tensor = taken && PyTuple_CheckExact(taken.get()) ? tensorOfDoubles(taken.get()) : PyRef();
  // What raises in Python raises in the call, which PyTorch runs.
  PyErr_Clear();
  return tensor;
}

} // namespace weft
