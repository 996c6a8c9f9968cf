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

std::vector<int64_t> ValidPart::counted(std::span<const int64_t> symbols) const {
  std::vector<int64_t> counts;
  for (const std::vector<Factor> &dim : dims)
    for (const Factor &factor : dim)
      counts.push_back(factor.counting ? factor.counting->at(symbols) : factor.size);
  return counts;
}

static std::span<const int64_t> symbolsOf(const dlpack::Tensor &sizes) {
  const auto *first =
      reinterpret_cast<const int64_t *>(static_cast<const char *>(sizes.data) + sizes.byteOffset);
  return {first, static_cast<size_t>(sizes.rank ? sizes.sizes[0] : 1)};
}

PyRef ValidPart::of(PyObject *padded, PyObject *sizes) const {
  const Torch &torch = Torch::get();
  dlpack::Tensor from, counts, to;
  if (!torch.view(padded, from) || !torch.view(sizes, counts))
    return {};
  std::span<const int64_t> symbols = symbolsOf(counts);
  std::vector<int64_t> factors = counted(symbols), shape;
  auto factor = factors.begin();
  for (const std::vector<Factor> &dim : dims) {
    shape.push_back(1);
    for (size_t i = 0; i < dim.size(); ++i)
      shape.back() *= *factor++;
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
  if (!part || !torch.view(part.get(), to) || !copyTo(to, padded, sizes))
    return {};
  return part;
}

bool ValidPart::copyTo(const dlpack::Tensor &target, PyObject *padded, PyObject *sizes) const {
  const Torch &torch = Torch::get();
  dlpack::Tensor from, counts;
  if (!torch.view(padded, from) || !torch.view(sizes, counts))
    return false;
  std::vector<int64_t> factors = counted(symbolsOf(counts));
  // Of the padded tensor all factors are in memory, of the target what counts.
  std::vector<int64_t> fromStrides(factors.size()), toStrides(factors.size());
  size_t place = factors.size();
  for (size_t dim = dims.size(); dim-- > 0;) {
    int64_t fromStride = from.strides[dim], toStride = target.strides[dim];
    for (size_t i = dims[dim].size(); i-- > 0;) {
      --place;
      fromStrides[place] = fromStride;
      toStrides[place] = toStride;
      fromStride *= dims[dim][i].size;
      toStride *= factors[place];
    }
  }
  rt::stridedCopy(static_cast<char *>(target.data) + target.byteOffset, toStrides,
                  static_cast<const char *>(from.data) + from.byteOffset, fromStrides, factors,
                  rt::dtypeSize(fromDLPack(from.dtype).value()));
  return true;
}

} // namespace weft
