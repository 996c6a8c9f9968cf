// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/SizeRange.h"

#include "python/bindings/Torch.h"
#include "runtime/DType.h"
#include "runtime/StridedCopy.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstring>

namespace nb = nanobind;

namespace weft {

/// Row-major, as those of a tensor that PyTorch has just made.
static std::vector<int64_t> denseStrides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

static bool isDense(const dlpack::Tensor &tensor) {
  std::span<const int64_t> sizes(tensor.sizes, tensor.rank);
  if (std::ranges::find(sizes, 0) != sizes.end())
    return true;
  std::vector<int64_t> strides = denseStrides(sizes);
  for (int32_t i = 0; i < tensor.rank; ++i)
    if (sizes[i] > 1 && tensor.strides[i] != strides[i])
      return false;
  return true;
}

static bool isInteger(const dlpack::Tensor &tensor) {
  return tensor.dtype.code != dlpack::Float && tensor.dtype.code != dlpack::BFloat &&
         tensor.dtype.code != dlpack::Complex;
}

/// Whether its rows were cut short, as by `tokens[:, :-1]`. Whatever is computed of integers in
/// such rows lies in memory as if computed of a copy without gaps.
static bool isCutShort(const dlpack::Tensor &tensor) {
  int64_t least = 1;
  for (int32_t i = tensor.rank; i-- > 0;) {
    if (tensor.sizes[i] < 2)
      return i == 0; // of a single one, no stride matters
    if (tensor.strides[i] < least || (i == tensor.rank - 1 && tensor.strides[i] != 1))
      return false;
    least = tensor.strides[i] * tensor.sizes[i];
  }
  return true;
}

static char *dataOf(const dlpack::Tensor &tensor) {
  return static_cast<char *>(tensor.data) + tensor.byteOffset;
}

/// A tensor of those sizes whose elements are those of `of`, and anything or `fill` behind them;
/// integers are zero there, as they may be indices. Null with a Python error set.
static PyRef paddedTensor(PyObject *of, std::span<const int64_t> sizes, PyObject *fill) {
  const Torch &torch = Torch::get();
  dlpack::Tensor from, to;
  if (!torch.view(of, from))
    return {};
  std::vector<int64_t> shape(sizes.begin(), sizes.end());
  std::vector<int64_t> part(from.sizes, from.sizes + from.rank);
  dlpack::DataType type = from.dtype;
  bool isComplex = type.code == dlpack::Complex;
  if (isComplex) {
    type = {dlpack::Float, static_cast<uint8_t>(type.bits / 2), type.lanes};
    shape.push_back(2);
    part.push_back(2);
  }
  WeftDType dtype = fromDLPack(type).value();
  std::vector<int64_t> strides = denseStrides(shape);
  PyRef made = torch.allocate(shape, strides, dtype);
  if (!made || !torch.view(made.get(), to))
    return {};
  size_t width = rt::dtypeSize(dtype);
  if (type.code != dlpack::Float && type.code != dlpack::BFloat) {
    size_t bytes = width;
    for (int64_t size : shape)
      bytes *= size;
    if (bytes)
      std::memset(dataOf(to), 0, bytes);
  } else if (fill != Py_None) {
    static PyObject *name = PyUnicode_InternFromString("fill_");
    if (!PyRef::steal(PyObject_CallMethodOneArg(made.get(), name, fill)))
      return {};
  }
  std::vector<int64_t> apart = isDense(from)
                                   ? denseStrides(part)
                                   : std::vector<int64_t>(from.strides, from.strides + from.rank);
  rt::stridedCopy(dataOf(to), strides, dataOf(from), apart, part, width);
  if (!isComplex)
    return made;
  nb::object complex =
      nb::module_::import_("torch").attr("view_as_complex")(nb::handle(made.get()));
  return PyRef::steal(complex.release().ptr());
}

static PyRef sizesTensor(std::span<const int64_t> sizes) {
  const Torch &torch = Torch::get();
  const int64_t count = static_cast<int64_t>(sizes.size()), dense = 1;
  PyRef made = torch.allocate({&count, 1}, {&dense, 1}, WEFT_I64);
  dlpack::Tensor view;
  if (!made || !torch.view(made.get(), view))
    return {};
  std::memcpy(dataOf(view), sizes.data(), sizes.size_bytes());
  return made;
}

bool SizeRange::holds(std::span<const int64_t> sizes) const {
  if (guards.empty())
    return true;
  PyRef list = PyRef::steal(PyList_New(static_cast<Py_ssize_t>(sizes.size())));
  for (size_t i = 0; list && i < sizes.size(); ++i)
    PyList_SET_ITEM(list.get(), i, PyLong_FromLongLong(sizes[i]));
  return std::ranges::all_of(guards, [&list](const PyRef &guard) {
    PyRef answer = PyRef::steal(list ? PyObject_CallOneArg(guard.get(), list.get()) : nullptr);
    if (!answer)
      throw nb::python_error();
    return answer.get() == Py_True;
  });
}

bool SizeRange::mayBeCutShort(size_t slot, const dlpack::Tensor &tensor) const {
  return (takesCutShort && isInteger(tensor)) || std::ranges::find(apart, slot) != apart.end();
}

std::optional<std::vector<int64_t>> SizeRange::sizesOf(const Specialization &pattern,
                                                       const std::vector<PyRef> &tensors) const {
  const Torch &torch = Torch::get();
  std::vector<int64_t> sizes(ranges.size(), -1);
  std::vector<dlpack::Tensor> views(shapes.size());
  auto shape = shapes.begin();
  for (size_t slot = 0; slot < pattern.slots.size(); ++slot) {
    PyObject *tensor = tensors[slot].get();
    if (shape == shapes.end() || shape->slot != slot) {
      WeftTensor view;
      if (!pattern.slots[slot].matches(tensor, view))
        return std::nullopt;
      continue;
    }
    dlpack::Tensor &view = views[shape - shapes.begin()];
    if (!pattern.slots[slot].matchesElements(tensor, view) || torch.isConjugated(tensor) ||
        !(isDense(view) || (mayBeCutShort(slot, view) && isCutShort(view))))
      return std::nullopt;
    for (int32_t dim = 0; dim < view.rank; ++dim)
      if (int symbol = shape->dims[dim].symbol(); symbol >= 0) {
        auto [low, high] = ranges[symbol];
        if (view.sizes[dim] < low || view.sizes[dim] > high)
          return std::nullopt;
        sizes[symbol] = view.sizes[dim];
      }
    ++shape;
  }
  if (std::ranges::find(sizes, -1) != sizes.end())
    return std::nullopt;
  for (size_t i = 0; i < shapes.size(); ++i)
    for (int32_t dim = 0; dim < views[i].rank; ++dim)
      if (shapes[i].dims[dim].at(sizes) != views[i].sizes[dim])
        return std::nullopt;
  if (!holds(sizes))
    return std::nullopt;
  return sizes;
}

std::optional<std::vector<PyRef>> SizeRange::padded(const CallArguments &call, PyObject *fill,
                                                    std::vector<int64_t> &own) {
  // Python code that is asked below may drop the range from its environment.
  PyRef alive = pattern;
  const auto &calls = *nb::inst_ptr<Specialization>(nb::handle(alive.get()));
  std::vector<PyRef> made(calls.slots.size() + calls.objects);
  if (!calls.findTensors(call, made))
    return std::nullopt;
  std::optional<std::vector<int64_t>> sizes = sizesOf(calls, made);
  if (!sizes)
    return std::nullopt;
  own = *sizes;
  // Objects come in the order of their numbers, which count from the end.
  std::reverse(made.begin() + static_cast<ptrdiff_t>(calls.slots.size()), made.end());
  std::vector<int64_t> highs;
  for (auto [low, high] : ranges)
    highs.push_back(high);
  for (const Shape &shape : shapes) {
    std::vector<int64_t> largest;
    for (const LinearSize &dim : shape.dims)
      largest.push_back(dim.at(highs));
    PyRef tensor = std::exchange(made[shape.slot], {});
    made[shape.slot] = paddedTensor(tensor.get(), largest, fill);
    if (!made[shape.slot])
      throw nb::python_error();
    if (std::ranges::find(kept, shape.slot) != kept.end() &&
        PyObject_SetAttrString(made[shape.slot].get(), originalName, tensor.get()))
      throw nb::python_error();
  }
  for (const Quotient &quotient : quotients) {
    int64_t dividend = quotient.dividend.at(*sizes), divisor = quotient.divisor;
    sizes->push_back((dividend - (dividend < 0 ? divisor - 1 : 0)) / divisor);
  }
  PyRef numbers = sizesTensor(*sizes);
  if (!numbers)
    throw nb::python_error();
  made.insert(made.begin() + static_cast<ptrdiff_t>(calls.slots.size()), std::move(numbers));
  return made;
}

/// Errors that say that the program cannot run the call; PyTorch then says why, or runs it.
static bool isRefusal() {
  return PyErr_ExceptionMatches(PyExc_RuntimeError) || PyErr_ExceptionMatches(PyExc_IndexError) ||
         PyErr_ExceptionMatches(PyExc_ValueError);
}

Specialization::Outcome SizeRange::call(const CallArguments &call, PyRef &value, bool &isOften) {
  PyRef alive = program;
  std::vector<int64_t> sizes;
  std::optional<std::vector<PyRef>> arguments = padded(call, Py_None, sizes);
  if (!arguments)
    return Specialization::Mismatch;
  std::vector<PyObject *> values;
  for (const PyRef &each : *arguments)
    values.push_back(each.get());
  std::string reason;
  auto &specialization = *nb::inst_ptr<Specialization>(nb::handle(alive.get()));
  CallArguments given{values.data(), static_cast<Py_ssize_t>(values.size()), nullptr};
  Specialization::Outcome outcome = specialization.call(given, value, reason);
  if (outcome == Specialization::Done) {
    ++calls;
    isOften = counts.isOften(sizes);
  }
  if (outcome == Specialization::Error && isRefusal()) {
    PyErr_Clear();
    return Specialization::Declined;
  }
  return outcome;
}

int SizeRange::traverse(visitproc visit, void *arg) const {
  Py_VISIT(pattern.get());
  Py_VISIT(program.get());
  for (const PyRef &guard : guards)
    Py_VISIT(guard.get());
  return 0;
}

void SizeRange::clear() {
  pattern = PyRef();
  program = PyRef();
  guards.clear();
}

} // namespace weft
