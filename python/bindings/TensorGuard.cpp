// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/TensorGuard.h"

#include "python/bindings/Torch.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace weft {

static constexpr int32_t cpu = 1; // as DLPack numbers devices

TensorGuard::TensorGuard(PyObject *tensor) {
  const Torch &torch = Torch::get();
  if (!torch.isPlainTensor(tensor))
    throw nb::value_error("expected a torch.Tensor or torch.nn.Parameter");
  dlpack::Tensor view;
  if (!torch.view(tensor, view))
    throw nb::python_error();
  std::optional<WeftDType> known = fromDLPack(view.dtype);
  if (!known || view.device.type != cpu)
    throw nb::value_error("expected a CPU tensor of a dtype that Weft has");
  type = Py_TYPE(tensor);
  dtype = *known;
  sizes.assign(view.sizes, view.sizes + view.rank);
  strides.assign(view.strides, view.strides + view.rank);
  requiresGrad = torch.requiresGrad(tensor);
}

bool TensorGuard::matches(PyObject *tensor, WeftTensor &out) const {
  if (!isOfType(tensor))
    return false;
  const Torch &torch = Torch::get();
  dlpack::Tensor view;
  if (!torch.view(tensor, view)) {
    PyErr_Clear(); // sparse, meta or otherwise out of DLPack's reach
    return false;
  }
  if (view.device.type != cpu || view.rank != static_cast<int32_t>(sizes.size()) ||
      fromDLPack(view.dtype) != static_cast<WeftDType>(dtype))
    return false;
  for (int32_t i = 0; i < view.rank; ++i)
    // The stride of a dimension of size 1 moves nothing.
    if (view.sizes[i] != sizes[i] || (sizes[i] > 1 && view.strides[i] != strides[i]))
      return false;
  if (torch.requiresGrad(tensor) != requiresGrad)
    return false;
  out = {static_cast<char *>(view.data) + view.byteOffset,
         sizes.data(),
         strides.data(),
         view.rank,
         dtype,
         view.device.type,
         view.device.id};
  return true;
}

void TensorGuard::addTo(Footprint &footprint, PyObject *tensor) const {
  footprint.add(sizes.data(), sizes.size() * sizeof(int64_t));
  footprint.add(strides.data(), strides.size() * sizeof(int64_t));
  Torch::get().addMetadata(footprint, tensor);
}

} // namespace weft
