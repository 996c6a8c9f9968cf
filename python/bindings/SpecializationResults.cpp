// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What becomes of a program's results: memory for them, the strides with which the user gets them,
// and the tensors that they are written to.
#include "python/bindings/Specialization.h"

#include "python/bindings/Torch.h"
#include "runtime/DType.h"
#include "runtime/StridedCopy.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstring>

namespace nb = nanobind;

namespace weft {

/// Whether tensors of these two strides are the same memory.
static bool sameMemory(std::span<const int64_t> sizes, std::span<const int64_t> a,
                       std::span<const int64_t> b) {
  if (std::ranges::find(sizes, 0) != sizes.end())
    return true;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1 && a[i] != b[i])
      return false;
  return true;
}

PyRef Specialization::allocateResult(size_t index, std::span<const int64_t> strides) const {
  const Torch &torch = Torch::get();
  const rt::TensorSpec &spec = program->signature().results[index];
  int64_t offset = offsets.empty() ? 0 : offsets[index];
  if (offset == 0)
    return torch.allocate(spec.shape, strides, spec.dtype);
  int64_t reach = offset + 1;
  for (size_t i = 0; i < strides.size(); ++i)
    reach += (std::max<int64_t>(spec.shape[i], 1) - 1) * strides[i];
  const int64_t dense = 1;
  PyRef memory = torch.allocate({&reach, 1}, {&dense, 1}, spec.dtype);
  return memory ? torch.view(memory.get(), spec.shape, strides, offset) : PyRef();
}

bool Specialization::allocate(std::vector<PyRef> &tensors, std::vector<WeftTensor> &views) const {
  const Torch &torch = Torch::get();
  const std::vector<rt::TensorSpec> &specs = program->signature().results;
  tensors.reserve(specs.size());
  views.resize(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    bool asEager =
        eagerStrides[i] && sameMemory(specs[i].shape, specs[i].strides, *eagerStrides[i]);
    const std::vector<int64_t> &strides = asEager ? *eagerStrides[i] : specs[i].strides;
    tensors.push_back(allocateResult(i, strides));
    dlpack::Tensor view;
    if (!tensors.back() || !torch.view(tensors.back().get(), view))
      return false;
    views[i] = {static_cast<char *>(view.data) + view.byteOffset,
                specs[i].shape.data(),
                specs[i].strides.data(),
                view.rank,
                specs[i].dtype,
                view.device.type,
                view.device.id};
  }
  return true;
}

bool Specialization::fillAliases(const std::vector<PyRef> &found,
                                 std::vector<PyRef> &tensors) const {
  const Torch &torch = Torch::get();
  // What the compiler found to equal an argument or another result is still a tensor of
  // its own to the user.
  const std::vector<rt::TensorSpec> &specs = program->signature().results;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!specs[i].alias)
      continue;
    size_t index = specs[i].alias->index;
    PyObject *source = specs[i].alias->kind == rt::Alias::Argument
                           ? sourceTensor(sources[index], found)
                           : tensors[index].get();
    nb::object detached = nb::borrow(source).attr("detach")();
    // An argument of complex numbers is what its guard has taken apart.
    if (nb::cast<bool>(detached.attr("is_complex")()))
      detached = nb::module_::import_("torch").attr("view_as_real")(detached);
    if (!torch.copy(tensors[i].get(), detached.ptr()))
      return false;
  }
  return true;
}

static bool isRowMajor(const dlpack::Tensor &tensor) {
  int64_t stride = 1;
  for (int32_t i = tensor.rank - 1; i >= 0; --i) {
    if (tensor.sizes[i] > 1 && tensor.strides[i] != stride)
      return false;
    stride *= tensor.sizes[i];
  }
  return true;
}

static char *dataOf(const dlpack::Tensor &tensor) {
  return static_cast<char *>(tensor.data) + tensor.byteOffset;
}

static bool copyTo(PyObject *target, PyObject *result, uint64_t steps) {
  const Torch &torch = Torch::get();
  if (steps == 1 || torch.isInference(target))
    return torch.copy(target, result);
  std::optional<uint64_t> version = torch.version(target);
  return torch.copy(target, result) && (!version || torch.setVersion(target, *version + steps));
}

static bool sameType(const dlpack::Tensor &one, const dlpack::Tensor &other) {
  std::optional<WeftDType> dtype = fromDLPack(one.dtype);
  return dtype && dtype == fromDLPack(other.dtype);
}

/// Writes a result of the same type and sizes to a tensor. Not by PyTorch's copy where that does
/// nothing else: its worker would then spin for milliseconds, on the processor that the next call's
/// worker needs, and a step over a cache of keys and values writes many tensors.
static bool writeTo(PyObject *target, PyObject *result, uint64_t steps) {
  const Torch &torch = Torch::get();
  dlpack::Tensor to, from;
  if (torch.requiresGrad(target) || torch.isInference(target) || torch.isConjugated(target))
    return copyTo(target, result, steps);
  if (!torch.view(target, to) || !torch.view(result, from))
    return false;
  std::span<const int64_t> sizes(to.sizes, to.rank);
  if (!sameType(to, from) || !isRowMajor(to) || !isRowMajor(from) ||
      !std::ranges::equal(sizes, std::span<const int64_t>(from.sizes, from.rank)))
    return copyTo(target, result, steps);
  size_t bytes = rt::dtypeSize(*fromDLPack(to.dtype));
  for (int64_t size : sizes)
    bytes *= size;
  if (bytes)
    std::memcpy(dataOf(to), dataOf(from), bytes);
  return torch.countWrites(target, steps);
}

/// Writes what counts of a padded result to the original of an argument.
static bool writePart(const ValidPart &valid, PyObject *target, PyObject *result, PyObject *sizes,
                      uint64_t steps) {
  const Torch &torch = Torch::get();
  dlpack::Tensor to, from;
  if (!torch.view(target, to) || !torch.view(result, from))
    return false;
  if (torch.requiresGrad(target) || torch.isInference(target) || !sameType(to, from)) {
    PyRef part = valid.of(result, sizes);
    return part && copyTo(target, part.get(), steps);
  }
  return valid.copyTo(to, result, sizes) && torch.countWrites(target, steps);
}

bool Specialization::commit(const std::vector<PyRef> &found,
                            const std::vector<PyRef> &tensors) const {
  for (const Effect &effect : effects) {
    PyObject *target = sourceTensor(effect.target, found), *result = tensors[effect.result].get();
    bool done = effect.valid ? writePart(*effect.valid, originalOf(target), result,
                                         found[slots.size() - 1].get(), effect.steps)
                             : writeTo(target, result, effect.steps);
    if (!done)
      return false;
  }
  return true;
}

/// Results get the strides that they have in eager mode, not by PyTorch's copy either.
bool Specialization::layOut(std::vector<PyRef> &tensors,
                            const std::vector<WeftTensor> &views) const {
  const Torch &torch = Torch::get();
  const std::vector<rt::TensorSpec> &specs = program->signature().results;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const rt::TensorSpec &spec = specs[i];
    if (!eagerStrides[i] || sameMemory(spec.shape, spec.strides, *eagerStrides[i]))
      continue;
    PyRef laidOut = allocateResult(i, *eagerStrides[i]);
    dlpack::Tensor view;
    if (!laidOut || !torch.view(laidOut.get(), view))
      return false;
    rt::stridedCopy(static_cast<char *>(view.data) + view.byteOffset, *eagerStrides[i],
                    views[i].data, spec.strides, spec.shape, rt::dtypeSize(spec.dtype));
    tensors[i] = std::move(laidOut);
  }
  return true;
}

} // namespace weft
