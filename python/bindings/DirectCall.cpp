// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of a kernel that fills its caller's tensors, without a Python frame between: the common
// case of plain tensors of the signature's layout. Anything else is declined, and left to
// python/weft/te/arrays.py, which converts it or says what is wrong with it.
#include "python/bindings/Core.h"

#include "python/bindings/Torch.h"
#include "runtime/Program.h"

#include <nanobind/stl/vector.h>
#include <numeric>
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
  DirectCall(rt::Program &program, std::vector<size_t> inputs, std::vector<size_t> results)
      : program(program), inputs(std::move(inputs)), results(std::move(results)) {
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
    bool recordsGradients = torch.recordsGradients();
    for (nb::handle each : args)
      if (!torch.isPlainTensor(each.ptr()) ||
          (recordsGradients && torch.requiresGrad(each.ptr())) || torch.isNegated(each.ptr()))
        return false;
    // From here to the call nothing of torch's runs that could move a tensor.
    std::vector<dlpack::Tensor> views(args.size());
    std::vector<WeftTensor> in, out;
    std::vector<Span> spans;
    const rt::EntrySpec &spec = program.signature();
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!add(torch, args[inputs[i]], spec.arguments[i], views[i], in, spans))
        return false;
    for (size_t i = 0; i < results.size(); ++i)
      if (!add(torch, args[results[i]], spec.results[i], views[inputs.size() + i], out, spans))
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
      if (!torch.isInference(result) && !torch.countWrite(result))
        throw nb::python_error();
    }
    return true;
  }

private:
  /// `view` has to live as long as what is added; it holds sizes and strides.
  static bool add(const Torch &torch, nb::handle object, const rt::TensorSpec &spec,
                  dlpack::Tensor &view, std::vector<WeftTensor> &tensors,
                  std::vector<Span> &spans) {
    if (!torch.view(object.ptr(), view)) {
      PyErr_Clear(); // the slow way finds the same, and says which argument it is
      return false;
    }
    std::optional<WeftDType> dtype = fromDLPack(view.dtype);
    auto *data = static_cast<char *>(view.data) + view.byteOffset;
    if (view.device.type != 1 || dtype != spec.dtype || size_t(view.rank) != spec.shape.size() ||
        !std::equal(spec.shape.begin(), spec.shape.end(), view.sizes) ||
        reinterpret_cast<uintptr_t>(data) % (view.dtype.bits / 8u) != 0)
      return false;
    for (int32_t i = 0; i < view.rank; ++i)
      if (view.sizes[i] != 1 && view.strides[i] != spec.strides[size_t(i)])
        return false;
    spans.push_back({data, data + spec.numBytes()});
    tensors.push_back({data, view.sizes, view.strides, view.rank, *dtype, 1, 0});
    return true;
  }

  rt::Program &program;
  std::vector<size_t> inputs, results; ///< positions among the call's arguments
  bool keepsGil;
};

} // namespace

void bindDirectCalls(nb::module_ &module) {
  nb::class_<DirectCall>(module, "DirectCall", "Calls of a program that fill given tensors.")
      .def(nb::init<rt::Program &, std::vector<size_t>, std::vector<size_t>>(), nb::arg("program"),
           nb::arg("inputs"), nb::arg("results"), nb::keep_alive<1, 2>())
      .def("__call__", &DirectCall::run,
           "Whether the arguments were plain tensors of the right layout, and are filled.");
}

} // namespace weft
