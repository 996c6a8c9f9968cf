// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/SizedView.h"

#include "python/bindings/Torch.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace weft {

LinearSize parseLinearSize(PyObject *description) {
  nb::handle given(description);
  nb::object coefficients = given[0], constant = given[1];
  return {nb::cast<std::vector<int64_t>>(coefficients), nb::cast<int64_t>(constant)};
}

SizeProduct parseSizeProduct(PyObject *description) {
  SizeProduct product;
  for (nb::handle factor : nb::handle(description))
    product.factors.push_back(parseLinearSize(factor.ptr()));
  return product;
}

SizedView::SizedView(PyObject *description) {
  nb::handle layout(description);
  for (nb::handle size : nb::object(layout.attr("sizes")))
    sizes.push_back(parseSizeProduct(size.ptr()));
  for (nb::handle stride : nb::object(layout.attr("strides")))
    strides.push_back(parseSizeProduct(stride.ptr()));
  nb::object start = layout.attr("offset");
  offset = parseSizeProduct(start.ptr());
}

PyRef SizedView::of(PyObject *base, PyObject *counts) const {
  const Torch &torch = Torch::get();
  dlpack::Tensor view;
  if (!torch.view(counts, view))
    return {};
  const auto *first =
      reinterpret_cast<const int64_t *>(static_cast<const char *>(view.data) + view.byteOffset);
  std::span<const int64_t> symbols(first, view.rank ? view.sizes[0] : 1);
  PyRef begin = PyRef::steal(PyObject_CallMethod(base, "storage_offset", nullptr));
  if (!begin)
    return {};
  int64_t start = PyLong_AsLongLong(begin.get());
  if (start == -1 && PyErr_Occurred())
    return {};
  std::vector<int64_t> shape, steps;
  for (const SizeProduct &size : sizes)
    shape.push_back(size.at(symbols));
  for (const SizeProduct &stride : strides)
    steps.push_back(stride.at(symbols));
  return torch.view(base, shape, steps, start + offset.at(symbols));
}

} // namespace weft
