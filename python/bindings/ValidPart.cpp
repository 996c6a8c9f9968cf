// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/ValidPart.h"

#include "python/bindings/Torch.h"
#include "runtime/DType.h"
#include "runtime/StridedCopy.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

namespace nb = nanobind;

namespace weft {

/// Like torch.empty_strided, behind `offset` elements of the memory.
static PyRef allocate(std::span<const int64_t> shape, std::span<const int64_t> strides,
                      int64_t offset, WeftDType dtype) {
  const Torch &torch = Torch::get();
  if (offset == 0)
    return torch.allocate(shape, strides, dtype);
  int64_t reach = offset + 1;
  for (size_t i = 0; i < strides.size(); ++i)
    reach += (std::max<int64_t>(shape[i], 1) - 1) * strides[i];
  const int64_t dense = 1;
  PyRef memory = torch.allocate({&reach, 1}, {&dense, 1}, dtype);
  return memory ? torch.view(memory.get(), shape, strides, offset) : PyRef();
}

ValidPart::ValidPart(PyObject *description) {
  nb::handle valid(description);
  for (nb::handle dim : nb::object(valid.attr("dims"))) {
    std::vector<Factor> &factors = dims.emplace_back();
    for (nb::handle factor : dim) {
      nb::object size = factor[0], coefficients = factor[1], constant = factor[2];
      factors.push_back({nb::cast<int64_t>(size), std::nullopt});
      if (!coefficients.is_none())
        factors.back().counting = {nb::cast<std::vector<int64_t>>(coefficients),
                                   nb::cast<int64_t>(constant)};
    }
  }
  order = nb::cast<std::vector<size_t>>(valid.attr("order"));
  nb::object start = valid.attr("offset"), given = valid.attr("strides");
  offset = parseSizeProduct(start.ptr());
  if (given.is_none())
    return;
  strides.emplace();
  for (nb::handle each : given)
    strides->push_back(parseSizeProduct(each.ptr()));
}

PyRef ValidPart::of(PyObject *padded, PyObject *sizes) const {
  const Torch &torch = Torch::get();
  dlpack::Tensor from, counts, to;
  if (!torch.view(padded, from) || !torch.view(sizes, counts))
    return {};
  const auto *first =
      reinterpret_cast<const int64_t *>(static_cast<const char *>(counts.data) + counts.byteOffset);
  std::span<const int64_t> symbols(first, counts.rank ? counts.sizes[0] : 1);

  std::vector<int64_t> shape, counted;
  for (const std::vector<Factor> &dim : dims) {
    shape.push_back(1);
    for (const Factor &factor : dim) {
      counted.push_back(factor.counting ? factor.counting->at(symbols) : factor.size);
      shape.back() *= counted.back();
    }
  }
  std::vector<int64_t> own(shape.size());
  if (strides) {
    for (size_t dim = 0; dim < own.size(); ++dim)
      own[dim] = (*strides)[dim].at(symbols);
  } else {
    int64_t stride = 1;
    for (size_t dim : std::vector<size_t>(order.rbegin(), order.rend())) {
      own[dim] = stride;
      stride *= std::max<int64_t>(shape[dim], 1);
    }
  }
  WeftDType dtype = fromDLPack(from.dtype).value();
  PyRef part = allocate(shape, own, offset.at(symbols), dtype);
  if (!part || !torch.view(part.get(), to))
    return {};

  // Dim by dim of the factors: of the padded tensor all are in memory, of the part what counts.
  std::vector<int64_t> fromStrides(counted.size()), toStrides(counted.size());
  size_t place = counted.size();
  for (size_t dim = dims.size(); dim-- > 0;) {
    int64_t fromStride = from.strides[dim], toStride = own[dim];
    for (size_t i = dims[dim].size(); i-- > 0;) {
      --place;
      fromStrides[place] = fromStride;
      toStrides[place] = toStride;
      fromStride *= dims[dim][i].size;
      toStride *= counted[place];
    }
  }
  rt::stridedCopy(static_cast<char *>(to.data) + to.byteOffset, toStrides,
                  static_cast<const char *>(from.data) + from.byteOffset, fromStrides, counted,
                  rt::dtypeSize(dtype));
  return part;
}

} // namespace weft
