// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of a kernel that fills its caller's arrays, without a Python frame between: the common
// case of plain tensors, NumPy's arrays and what has `__dlpack__`, of the signature's layout.
// Anything else is declined, and left to python/weft/te/arrays.py, which converts it or says what
// is wrong with it.
#include "python/bindings/Core.h"

#include "python/bindings/ForeignArray.h"
#include "python/bindings/Torch.h"
#include "runtime/Program.h"

#include <algorithm>
#include <memory>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>

namespace nb = nanobind;

namespace weft {

namespace {

/// Estimated operations below which taking the GIL again would cost more than others gain by it.
constexpr int64_t fewOperations = 1'000'000;

/// Where in memory a tensor begins and ends; equal for one without elements.
struct Span {
  const char *begin, *end;
  bool overlaps(const Span &other) const { return begin < other.end && other.begin < end; }
};

class DirectCall {
public:
  DirectCall(rt::Program &program, std::vector<size_t> inputs, std::vector<size_t> results,
             std::vector<std::string> immutable)
      : program(program), inputs(std::move(inputs)), results(std::move(results)),
        known(std::move(immutable)) {
    const rt::EntrySpec &spec = program.signature();
    int64_t operations = 0;
    for (const rt::CallSpec &call : spec.calls)
      operations += call.flops;
    keepsGil = operations < fewOperations;
  }

  /// False, and nothing done, if the arguments are not of the common kind.
  bool run(nb::args args) const {
    const Torch &torch = Torch::get();
    if (args.size() != inputs.size() + results.size() || torch.interpositionActive())
      return false;
    std::unique_ptr<ForeignArray[]> held;
    std::vector<const ForeignArray *> foreign(args.size());
    for (size_t i = 0; i < args.size(); ++i) {
      PyObject *each = args[i].ptr();
      if (torch.isPlainTensor(each))
        continue;
      bool written = std::find(results.begin(), results.end(), i) != results.end();
      if (held == nullptr)
        held = std::make_unique<ForeignArray[]>(args.size());
      if (torch.isTensor(each) || !held[i].take(known, each, written))
        return false;
      foreign[i] = &held[i];
    }
    bool recordsGradients = torch.recordsGradients();
    for (size_t i = 0; i < args.size(); ++i) {
      PyObject *each = args[i].ptr();
      if (foreign[i] == nullptr &&
          ((recordsGradients && torch.requiresGrad(each)) || torch.isNegated(each)))
        return false;
    }
    // From here to the call nothing of Python's runs that could move a tensor.
    std::vector<WeftTensor> in, out;
    std::vector<Span> spans;
    in.reserve(inputs.size());
    out.reserve(results.size());
    spans.reserve(args.size());
    const rt::EntrySpec &spec = program.signature();
    auto addAll = [&](const std::vector<size_t> &positions,
                      const std::vector<rt::TensorSpec> &specs, std::vector<WeftTensor> &tensors) {
      for (size_t i = 0; i < positions.size(); ++i) {
        dlpack::Tensor view;
        const ForeignArray *array = foreign[positions[i]];
        if (array != nullptr) {
          view = array->view();
        } else if (!torch.view(args[positions[i]].ptr(), view)) {
          PyErr_Clear(); // the slow way finds the same, and says which argument it is
          return false;
        }
        if (!add(specs[i], view, tensors, spans))
          return false;
      }
      return true;
    };
    if (!addAll(inputs, spec.arguments, in) || !addAll(results, spec.results, out))
      return false;
    for (size_t i = inputs.size(); i < spans.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (spans[i].overlaps(spans[j]))
          return false;
    std::optional<nb::gil_scoped_release> released;
    if (!keepsGil)
      released.emplace();
    program.run(in, out);
    released.reset();
    for (size_t i : results) { // autograd is to know of what was written in place
      PyObject *result = args[i].ptr();
      if (foreign[i] == nullptr && !torch.isInference(result) && !torch.countWrites(result, 1))
        throw nb::python_error();
    }
    return true;
  }

private:
  static bool add(const rt::TensorSpec &spec, const dlpack::Tensor &view,
                  std::vector<WeftTensor> &tensors, std::vector<Span> &spans) {
    std::optional<WeftDType> dtype = fromDLPack(view.dtype);
    auto *data = static_cast<char *>(view.data) + view.byteOffset;
    if (view.device.type != 1 || dtype != spec.dtype || size_t(view.rank) != spec.shape.size() ||
        !std::equal(spec.shape.begin(), spec.shape.end(), view.sizes) ||
        reinterpret_cast<uintptr_t>(data) % (view.dtype.bits / 8u) != 0)
      return false;
    int64_t compact = 1;
    for (size_t i = spec.shape.size(); i-- > 0;) {
      int64_t stride = view.strides != nullptr ? view.strides[i] : compact;
      if (spec.shape[i] != 1 && stride != spec.strides[i])
        return false;
      compact *= spec.shape[i];
    }
    spans.push_back({data, data + spec.numBytes()});
    tensors.push_back({data, spec.shape.data(), spec.strides.data(), view.rank, *dtype, 1, 0});
    return true;
  }

  rt::Program &program;
  std::vector<size_t> inputs, results; ///< positions among the call's arguments
  ForeignArrays known;
  bool keepsGil;
};

} // namespace

void bindDirectCalls(nb::module_ &module) {
  nb::class_<DirectCall>(module, "DirectCall", "Calls of a program that fill given tensors.")
      .def(nb::init<rt::Program &, std::vector<size_t>, std::vector<size_t>,
                    std::vector<std::string>>(),
           nb::arg("program"), nb::arg("inputs"), nb::arg("results"), nb::arg("immutable"),
           nb::keep_alive<1, 2>())
      .def("__call__", &DirectCall::run,
           "Whether the arguments were arrays of the right layout, and are filled.");
}

} // namespace weft
