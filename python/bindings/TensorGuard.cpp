// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/TensorGuard.h"

#include "python/bindings/Torch.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace weft {

static constexpr int32_t cpu = 1; // as DLPack numbers devices

static bool isComplex(dlpack::DataType type) { return type.code == dlpack::Complex; }

/// The type of an element, or of a complex number's parts.
static std::optional<WeftDType> partType(dlpack::DataType type) {
  if (isComplex(type))
    type = {dlpack::Float, static_cast<uint8_t>(type.bits / 2), type.lanes};
  return fromDLPack(type);
}

TensorGuard::TensorGuard(PyObject *tensor) {
  const Torch &torch = Torch::get();
  if (!torch.isPlainTensor(tensor))
    throw nb::value_error("expected a torch.Tensor or torch.nn.Parameter");
  dlpack::Tensor view;
  if (!torch.view(tensor, view))
    throw nb::python_error();
  std::optional<WeftDType> known = partType(view.dtype);
  if (!known || view.device.type != cpu)
    throw nb::value_error("expected a CPU tensor of a dtype that Weft has");
  type = Py_TYPE(tensor);
  dtype = *known;
  sizes.assign(view.sizes, view.sizes + view.rank);
  strides.assign(view.strides, view.strides + view.rank);
  complex = isComplex(view.dtype);
  if (complex) {
    for (int64_t &stride : strides)
      stride *= 2;
    sizes.push_back(2);
    strides.push_back(1);
  }
  requiresGrad = torch.requiresGrad(tensor);
}

bool TensorGuard::matchesElements(PyObject *tensor, dlpack::Tensor &view) const {
  if (!isOfType(tensor))
    return false;
  const Torch &torch = Torch::get();
  if (!torch.view(tensor, view)) {
    PyErr_Clear(); // sparse, meta or otherwise out of DLPack's reach
    return false;
  }
  if (view.device.type != cpu || view.rank + complex != static_cast<int32_t>(sizes.size()) ||
      isComplex(view.dtype) != complex || partType(view.dtype) != static_cast<WeftDType>(dtype))
    return false;
  return torch.requiresGrad(tensor) == requiresGrad;
}

bool TensorGuard::matches(PyObject *tensor, WeftTensor &out) const {
  dlpack::Tensor view;
  if (!matchesElements(tensor, view))
    return false;
  int64_t step = complex ? 2 : 1;
  for (int32_t i = 0; i < view.rank; ++i)
    // The stride of a dimension of size 1 moves nothing.
    if (view.sizes[i] != sizes[i] || (sizes[i] > 1 && view.strides[i] * step != strides[i]))
      return false;
  if (complex && Torch::get().isConjugated(tensor))
    return false;
  out = {static_cast<char *>(view.data) + view.byteOffset,
         sizes.data(),
         strides.data(),
         static_cast<int32_t>(sizes.size()),
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
