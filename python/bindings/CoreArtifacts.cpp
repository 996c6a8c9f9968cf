// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/Core.h"

#include "python/bindings/Torch.h"
#include "python/bindings/TorchHost.h"
#include "python/bindings/TorchThreads.h"
#include "python/bindings/WeightWatch.h"
#include "runtime/Artifact.h"
#include "runtime/Cache.h"
#include "runtime/Program.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace weft {

static WeftTensor viewTensor(nb::handle tensor, std::vector<std::vector<int64_t>> &numbers) {
  dlpack::Tensor view;
  if (!Torch::get().view(tensor.ptr(), view))
    throw nb::python_error();
  std::optional<WeftDType> dtype = fromDLPack(view.dtype);
  if (!dtype)
    throw nb::type_error("expected a tensor of a dtype that Weft has");
  numbers.emplace_back(view.sizes, view.sizes + view.rank);
  const int64_t *sizes = numbers.back().data();
  numbers.emplace_back(view.strides, view.strides + view.rank);
  return {static_cast<char *>(view.data) + view.byteOffset,
          sizes,
          numbers.back().data(),
          view.rank,
          *dtype,
          view.device.type,
          view.device.id};
}

static std::vector<WeftTensor> viewTensors(nb::list tensors,
                                           std::vector<std::vector<int64_t>> &numbers) {
  numbers.reserve(numbers.size() + 2 * tensors.size());
  std::vector<WeftTensor> views;
  for (nb::handle tensor : tensors)
    views.push_back(viewTensor(tensor, numbers));
  return views;
}

static std::optional<TorchCall> makeCall(const TorchHost *host) {
  return host ? std::optional<TorchCall>(std::in_place, *host) : std::nullopt;
}

static void bindProgram(rt::Program &program, nb::list arguments, const TorchHost *host) {
  std::vector<std::vector<int64_t>> numbers;
  std::vector<WeftTensor> in = viewTensors(arguments, numbers);
  std::optional<TorchCall> torch = makeCall(host);
  nb::gil_scoped_release released;
  program.bind(in, torch ? &*torch : nullptr);
}

/// `profile`: what to measure the calls of @main into, or null.
static void callProgram(rt::Program &program, nb::list arguments, nb::list results,
                        const TorchHost *host, rt::Profile *profile) {
  std::vector<std::vector<int64_t>> argumentNumbers, resultNumbers;
  std::vector<WeftTensor> in = viewTensors(arguments, argumentNumbers);
  std::vector<WeftTensor> out = viewTensors(results, resultNumbers);
  std::optional<TorchCall> torch = makeCall(host);
  nb::gil_scoped_release released;
  program.run(in, out, torch ? &*torch : nullptr, profile);
}

static void runProgram(rt::Program &program, nb::list arguments, nb::list results,
                       const TorchHost *host) {
  callProgram(program, arguments, results, host, nullptr);
}

/// The seconds of each call of @main.
static std::vector<double> timeProgram(rt::Program &program, nb::list arguments, nb::list results,
                                       const TorchHost *host) {
  rt::Profile profile;
  callProgram(program, arguments, results, host, &profile);
  return std::move(profile.seconds);
}

/// The weights of a loaded artifact, which may be others at each call. Those that it was
/// prepared for are held, so that none of other content comes to lie where one of them lay.
class HeldWeights {
public:
  explicit HeldWeights(std::vector<size_t> numbers) : numbers(numbers) {
    watch.watch(std::move(numbers));
  }

  bool changed(nb::list arguments) {
    std::vector<std::vector<int64_t>> sizesAndStrides;
    std::vector<WeftTensor> views = viewTensors(arguments, sizesAndStrides);
    std::vector<PyObject *> tensors;
    for (nb::handle argument : arguments)
      tensors.push_back(argument.ptr());
    return watch.changed(tensors, views);
  }

  void settle(nb::list arguments) {
    std::vector<PyRef> previous = std::move(held);
    held.clear();
    for (size_t number : numbers)
      held.push_back(PyRef::borrow(arguments[number].ptr()));
    watch.settle();
  }

private:
  std::vector<size_t> numbers;
  WeightWatch watch;
  std::vector<PyRef> held;
};

static void bindCache(nb::module_ &module) {
  nb::class_<rt::Draft>(module, "Draft").def_prop_ro("path", &rt::Draft::path);
  nb::class_<rt::Cache>(module, "Cache", "The folder of compiled artifacts.")
      .def(nb::init<std::filesystem::path>(), nb::arg("folder"))
      .def_static("default_folder", &rt::Cache::defaultFolder)
      .def_prop_ro("folder", &rt::Cache::folder)
      .def(
          "lookup",
          [](const rt::Cache &self, const std::string &key) {
            rt::Cache::Lookup found = self.lookup(key);
            return std::pair(found.path, found.warning);
          },
          nb::arg("key"), "(path or None, warning) of a whole, sealed artifact.")
      .def(
          "begin",
          [](const rt::Cache &self, const std::string &key) {
            rt::Cache::Writing writing = self.begin(key);
            return std::pair(writing.draft, writing.warning);
          },
          nb::arg("key"), "(draft, warning): a place to write the entry of `key`.")
      .def("begin_private", &rt::Cache::beginPrivate, nb::arg("key"))
      .def(
          "publish",
          [](const rt::Cache &self, std::shared_ptr<rt::Draft> draft) {
            rt::Cache::Published done = self.publish(std::move(draft));
            return nb::make_tuple(done.path, done.draft, done.warning);
          },
          nb::arg("draft"), "(path, draft to keep until it is loaded, warning).");
}

void bindArtifacts(nb::module_ &module) {
  nb::class_<rt::Artifact>(module, "Artifact", "A checked and loaded shared object.")
      .def_static(
          "load",
          [](const std::filesystem::path &path) {
            return std::const_pointer_cast<rt::Artifact>(rt::Artifact::load(path));
          },
          nb::arg("path"), nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("path", &rt::Artifact::path)
      .def_prop_ro("manifest",
                   [](const rt::Artifact &self) { return std::string(self.manifestText()); });
  nb::class_<rt::Program>(module, "Program", "A callable artifact.")
      .def(
          "__init__",
          [](rt::Program *self, std::shared_ptr<rt::Artifact> artifact) {
            joinTorchThreads();
            new (self) rt::Program(std::move(artifact));
          },
          nb::arg("artifact"))
      .def_prop_ro("has_bind", &rt::Program::hasBind)
      .def("bind", &bindProgram, nb::arg("arguments"), nb::arg("host").none(),
           "Prepare anew what @main keeps of its weights.")
      .def("run", &runProgram, nb::arg("arguments"), nb::arg("results"), nb::arg("host").none(),
           "Run @main on tensors; `host` runs its fallbacks.")
      .def("time", &timeProgram, nb::arg("arguments"), nb::arg("results"), nb::arg("host").none(),
           "Run @main, and return the seconds of each of its calls.");
  nb::class_<HeldWeights>(module, "HeldWeights", "Weights given to a loaded artifact.")
      .def(nb::init<std::vector<size_t>>(), nb::arg("numbers"))
      .def("changed", &HeldWeights::changed, nb::arg("arguments"),
           "Whether those with these numbers differ from what the program is prepared for.")
      .def("settle", &HeldWeights::settle, nb::arg("arguments"),
           "The program is prepared for what `changed` has just seen in the same arguments.");
  bindCache(module);
}

} // namespace weft
