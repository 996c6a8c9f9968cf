// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/TrainingStep.h"

#include "python/bindings/Collected.h"
#include "python/bindings/Core.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <exception>

namespace nb = nanobind;

namespace weft {

const autograd::Interface *TrainingStep::interface = nullptr;

bool TrainingStep::isPlain(std::span<PyObject *const> inputs) const {
  static PyObject *name = PyUnicode_InternFromString("exposes");
  PyRef exposes = PyRef::steal(PyObject_GetAttr(graph.get(), name));
  if (!exposes)
    throw nb::python_error();
  return exposes.get() == Py_False && interface->isPlain(*this, inputs);
}

bool TrainingStep::record(const autograd::Recorded &call) const {
  return interface->record(*this, call);
}

bool TrainingStep::run(std::span<const WeftTensor> arguments,
                       std::span<const WeftTensor> gradients) const {
  try {
    backward->run(arguments, gradients);
    return true;
  } catch (const std::exception &) {
    return false; // Python runs it once more, and raises what it does
  }
}

int TrainingStep::traverse(visitproc visit, void *arg) const {
  Py_VISIT(python.get());
  Py_VISIT(graph.get());
  return 0;
}

static autograd::Step::Layout layoutOf(const rt::TensorSpec &spec) {
  return {spec.shape, spec.strides, spec.dtype};
}

using Kept = std::vector<std::pair<bool, size_t>>;

/// saved, copied: for each of the program's first arguments. places: of the graph's results, those
/// that require gradients. cotangents: for each of the program's last arguments, a
/// number among `places` or -1. reads, freed, connected: see
/// Step.h.
static void makeStep(TrainingStep *self, std::shared_ptr<rt::Program> backward,
                     std::vector<size_t> wrt, const Kept &saved, const std::vector<bool> &copied,
                     const Kept &watched, const std::vector<uint8_t> &moved,
                     std::vector<size_t> places, std::vector<std::vector<bool>> reads,
                     const std::vector<std::pair<std::vector<bool>, std::vector<bool>>> &freed,
                     const std::vector<int> &cotangents, std::vector<std::vector<bool>> connected,
                     nb::handle otherwise, nb::handle graph) {
  const rt::EntrySpec &spec = backward->signature();
  if (spec.arguments.size() != saved.size() + cotangents.size() ||
      spec.results.size() != wrt.size() || places.empty() ||
      std::ranges::any_of(freed,
                          [&](const auto &each) {
                            return each.first.size() != places.size() ||
                                   each.second.size() != wrt.size();
                          }) ||
      reads.size() != places.size() ||
      std::ranges::any_of(
          reads, [&](const auto &row) { return row.size() != saved.size() + watched.size(); }) ||
      copied.size() != saved.size() || connected.size() != places.size() ||
      std::ranges::any_of(connected, [&](const auto &row) { return row.size() != wrt.size(); }))
    throw nb::value_error("expected what the backward program reads and gives");
  new (self) TrainingStep();
  self->wrt = std::move(wrt);
  for (size_t i = 0; i < saved.size(); ++i)
    self->saved.push_back(
        {{saved[i].first, saved[i].second}, copied[i], layoutOf(spec.arguments[i])});
  for (auto [isInput, number] : watched)
    self->watched.push_back({isInput, number});
  for (size_t i = 0; i < cotangents.size(); ++i)
    self->cotangents.push_back({cotangents[i], layoutOf(spec.arguments[saved.size() + i])});
  for (uint8_t how : moved)
    self->moved.push_back(static_cast<autograd::Step::Moved>(how));
  self->places = std::move(places);
  self->reads = std::move(reads);
  for (const auto &[from, to] : freed)
    self->freed.push_back({from, to});
  for (size_t i = 0; i < spec.results.size(); ++i) {
    self->gradients.push_back(layoutOf(spec.results[i]));
    if (const auto &alias = spec.results[i].alias)
      self->aliases.push_back(
          {i, alias->kind == rt::Alias::Argument, static_cast<size_t>(alias->index)});
  }
  self->connected = std::move(connected);
  self->backward = std::move(backward);
  self->python = PyRef::borrow(otherwise.ptr());
  self->graph = PyRef::borrow(graph.ptr());
  self->otherwise = otherwise.ptr();
  self->owner = nb::find(self).ptr();
}

static std::vector<PyObject *> pointersTo(const std::vector<nb::object> &objects) {
  std::vector<PyObject *> pointers;
  pointers.reserve(objects.size());
  for (const nb::object &each : objects)
    pointers.push_back(each.ptr());
  return pointers;
}

using Tensors = std::vector<nb::object>;

static void recordCall(const TrainingStep &self, const Tensors &inputs, const Tensors &kept,
                       const Tensors &results, const Tensors &shown, nb::object beside) {
  std::vector<PyObject *> all[] = {pointersTo(inputs), pointersTo(kept), pointersTo(results),
                                   pointersTo(shown)};
  if (!self.record({all[0], all[1], all[2], all[3], beside.ptr()}))
    throw nb::python_error();
}

void bindTrainingSteps(nb::module_ &module) {
  nb::class_<TrainingStep>(module, "TrainingStep", nb::type_slots(collected<TrainingStep>()),
                           "A program's calls as nodes of autograd's graph; see Step.h.")
      .def("__init__", &makeStep, nb::arg("backward"), nb::arg("wrt"), nb::arg("saved"),
           nb::arg("copied"), nb::arg("watched"), nb::arg("moved"), nb::arg("places"),
           nb::arg("reads"), nb::arg("freed"), nb::arg("cotangents"), nb::arg("connected"),
           nb::arg("otherwise"), nb::arg("graph"))
      .def(
          "is_plain",
          [](const TrainingStep &self, const Tensors &inputs) {
            return self.isPlain(pointersTo(inputs));
          },
          nb::arg("inputs"), "Whether a call with these inputs of the graph may become one node.")
      .def("record", &recordCall, nb::arg("inputs"), nb::arg("kept"), nb::arg("results"),
           nb::arg("shown"), nb::arg("beside").none(),
           "Makes `shown` those of a node; see Step.h.");
  module.def(
      "use_autograd",
      [](nb::capsule interface) {
        TrainingStep::interface =
            static_cast<const autograd::Interface *>(interface.data(autograd::interfaceName));
      },
      nb::arg("interface"), "Of weft._autograd.");
}

} // namespace weft
