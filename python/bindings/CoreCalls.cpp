// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/Core.h"

#include "python/bindings/Callable.h"
#include "python/bindings/Collected.h"
#include "python/bindings/DictVersion.h"
#include "python/bindings/Environment.h"
#include "python/bindings/ModuleBase.h"
#include "python/bindings/SizeRange.h"
#include "python/bindings/Specialization.h"
#include "python/bindings/Torch.h"
#include "python/bindings/TrainingStep.h"
#include "python/bindings/UnpackedCall.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

namespace nb = nanobind;

namespace weft {

static PyRef borrowRef(nb::handle object) { return PyRef::borrow(object.ptr()); }
static PyRef borrowUnlessNone(nb::handle object) {
  return object.is_none() ? PyRef() : borrowRef(object);
}

// A slot's number or a tensor to hold.
static Specialization::Source parseSource(nb::handle description) {
  Specialization::Source source;
  if (nb::isinstance<nb::int_>(description)) {
    source.slot = nb::cast<int>(description);
    return source;
  }
  source.tensor = borrowRef(description);
  source.guard = TensorGuard(description.ptr());
  return source;
}

static void parseSlots(Specialization &self, const nb::list &examples) {
  for (nb::handle example : examples) {
    self.slots.emplace_back(example.ptr());
    int first = static_cast<int>(self.sameAs.size());
    for (int i = 0; i < first; ++i)
      if (examples[i].ptr() == example.ptr()) {
        first = i;
        break;
      }
    self.sameAs.push_back(first);
  }
}

static void parsePattern(Specialization &self, nb::tuple arguments, nb::tuple names,
                         nb::list examples) {
  for (nb::handle argument : arguments)
    self.arguments.emplace_back(argument.ptr());
  for (const Pattern &argument : self.arguments)
    self.objects = std::max(self.objects, argument.numbers());
  self.names = borrowRef(names);
  parseSlots(self, examples);
}

static void parseTensors(Specialization &self, const nb::list &sources, const nb::list &effects,
                         const nb::tuple &outputs) {
  for (nb::handle source : sources)
    self.sources.push_back(parseSource(source));
  for (nb::handle effect : effects) {
    nb::object valid = effect[3];
    self.effects.push_back(
        {parseSource(effect[0]), nb::cast<size_t>(effect[1]), nb::cast<uint64_t>(effect[2]),
         valid.is_none() ? std::nullopt : std::optional<ValidPart>(valid.ptr())});
  }
  self.outputs.emplace(outputs.ptr());
}

using Strides = std::vector<std::optional<std::vector<int64_t>>>;

static void setEagerStrides(Specialization &self, Strides eagerStrides) {
  if (eagerStrides.size() != self.program->signature().results.size())
    throw nb::value_error("expected strides or None for each result");
  self.eagerStrides = std::move(eagerStrides);
}

static void parseProgram(Specialization &self, std::shared_ptr<rt::Program> program,
                         nb::list sources, Strides eagerStrides, nb::list effects,
                         nb::tuple outputs, nb::object random, nb::object host,
                         std::vector<size_t> watched) {
  self.program = std::move(program);
  setEagerStrides(self, std::move(eagerStrides));
  parseTensors(self, sources, effects, outputs);
  if (!random.is_none()) {
    self.saveRandomState = borrowRef(random[0]);
    self.restoreRandomState = borrowRef(random[1]);
  }
  self.host = borrowUnlessNone(host);
  if (self.host && !nb::isinstance<TorchHost>(host))
    throw nb::type_error("expected a TorchHost or None");
  self.weights.watch(std::move(watched));
}

static void bindHost(nb::module_ &module) {
  nb::class_<TorchHost>(module, "TorchHost", nb::type_slots(collected<TorchHost>()),
                        "The fallbacks of a manifest; see TorchHost.h.")
      .def(nb::init<>())
      .def(
          "add",
          [](TorchHost &self, nb::handle function, nb::handle description) {
            self.add(function.ptr(), description.ptr());
          },
          nb::arg("function"), nb::arg("description").none());
  module.def(
      "has_dispatcher", [] { return TorchAbi::get() != nullptr; },
      "Whether the process's libtorch exports its C dispatcher.");
}

static void bindGuards(nb::module_ &module) {
  nb::class_<ObjectGuards>(module, "ObjectGuards", nb::type_slots(collected<ObjectGuards>()),
                           "What must not have changed since; see ObjectGuards.h.")
      .def(nb::init<>())
      .def(
          "watch_object",
          [](ObjectGuards &self, nb::handle it, nb::frozenset free) {
            self.watchObject(it.ptr(), nb::len(free) ? free.ptr() : nullptr);
          },
          nb::arg("object"), nb::arg("free") = nb::frozenset())
      .def("watch_hooks", [](ObjectGuards &self, nb::dict it) { self.watchHooks(it.ptr()); })
      .def(
          "watch_dict",
          [](ObjectGuards &self, nb::dict it, nb::frozenset free) {
            self.watchDict(it.ptr(), nb::len(free) ? free.ptr() : nullptr);
          },
          nb::arg("dict"), nb::arg("free") = nb::frozenset())
      .def(
          "watch_list",
          [](ObjectGuards &self, nb::list it, nb::frozenset free) {
            self.watchList(it.ptr(), nb::len(free) ? free.ptr() : nullptr);
          },
          nb::arg("list"), nb::arg("free") = nb::frozenset())
      .def("watch_buffer", [](ObjectGuards &self, nb::handle it) { self.watchBuffer(it.ptr()); })
      .def("watch_set", [](ObjectGuards &self, nb::handle it) { self.watchSet(it.ptr()); })
      .def("watch_function",
           [](ObjectGuards &self, nb::handle it) { self.watchFunction(it.ptr()); })
      .def("watch_cell", [](ObjectGuards &self, nb::handle it) { self.watchCell(it.ptr()); })
      .def(
          "watch_name",
          [](ObjectGuards &self, nb::dict dict, nb::str name, bool byType) {
            self.watchName(dict.ptr(), name.ptr(), byType);
          },
          nb::arg("dict"), nb::arg("name"), nb::arg("by_type") = false)
      .def("watch_type", [](ObjectGuards &self, nb::type_object it) { self.watchType(it.ptr()); })
      .def("watch_names", [](ObjectGuards &self, nb::dict it) { self.watchNames(it.ptr()); })
      .def("watch_answer", [](ObjectGuards &self, nb::handle it) { self.watchAnswer(it.ptr()); })
      .def("expire", &ObjectGuards::expire)
      .def("hold", &ObjectGuards::hold);
}

static void bindEnvironment(nb::module_ &module) {
  nb::class_<Environment>(module, "Environment", nb::type_slots(collected<Environment>()),
                          "A state of torch and of the module, with its programs.")
      .def(nb::init<>())
      .def(
          "rearm",
          [](Environment &self, const ObjectGuards &guards) {
            self.guards = guards;
            self.footprint.reset();
          },
          nb::arg("guards"))
      .def("state_holds", [](const Environment &self) { return self.state.holds(); })
      .def("holds", &Environment::holds)
      .def_rw("eager", &Environment::eager)
      .def("eager_while_grad",
           [](Environment &self, nb::list tensors) {
             self.gradients.clear();
             for (nb::handle tensor : tensors)
               self.gradients.push_back(borrowRef(tensor));
           })
      .def("add",
           [](Environment &self, nb::handle specialization) {
             if (!nb::isinstance<Specialization>(specialization))
               throw nb::type_error("expected a Specialization");
             self.specializations.insert(self.specializations.begin(), borrowRef(specialization));
           })
      .def("remove",
           [](Environment &self, nb::handle specialization) {
             std::vector<PyRef> others;
             for (const PyRef &each : self.specializations)
               if (each.get() != specialization.ptr())
                 others.push_back(each);
             self.specializations.swap(others);
           })
      .def("replace",
           [](Environment &self, nb::list specializations) {
             std::vector<PyRef> others;
             for (nb::handle specialization : specializations) {
               if (!nb::isinstance<Specialization>(specialization))
                 throw nb::type_error("expected Specializations");
               others.push_back(borrowRef(specialization));
             }
             // Dropping the old ones may run Python code.
             self.specializations.swap(others);
           })
      .def("add_range",
           [](Environment &self, nb::handle range) {
             if (!nb::isinstance<SizeRange>(range))
               throw nb::type_error("expected a SizeRange");
             self.ranges.insert(self.ranges.begin(), borrowRef(range));
           })
      .def("clear_ranges",
           [](Environment &self) {
             // Dropping them may run Python code.
             std::vector<PyRef> dropped;
             self.ranges.swap(dropped);
           })
      .def("__len__", [](const Environment &self) { return self.specializations.size(); });
}

/// (True, value), or (False, why PyTorch has to run the call).
static nb::tuple callOnce(Specialization &self, nb::tuple args, nb::dict kwargs,
                          rt::Profile *profile) {
  UnpackedCall unpacked(args, kwargs);
  PyRef value;
  std::string reason;
  switch (self.call(unpacked.call, value, reason, profile)) {
  case Specialization::Done:
    return nb::make_tuple(true, nb::handle(value.get()));
  case Specialization::Declined:
    return nb::make_tuple(false, reason);
  case Specialization::Mismatch:
  case Specialization::Unusual:
    return nb::make_tuple(false, "tensors changed while the program was made");
  case Specialization::Error:
    break;
  }
  throw nb::python_error();
}

/// (True, seconds of each of the program's calls), or (False, why PyTorch has to run the call).
static nb::tuple timeOnce(Specialization &self, nb::tuple args, nb::dict kwargs) {
  rt::Profile profile;
  nb::tuple outcome = callOnce(self, args, kwargs, &profile);
  return nb::cast<bool>(outcome[0]) ? nb::make_tuple(true, profile.seconds) : outcome;
}

static nb::list listOf(const std::vector<PyRef> &tensors) {
  nb::list list;
  for (const PyRef &tensor : tensors)
    list.append(nb::handle(tensor.get()));
  return list;
}

/// (True, value, results, results as laid out for the user), or
/// (False, why PyTorch has to run the call, [], []).
static nb::tuple evaluateOnce(Specialization &self, nb::tuple args, nb::dict kwargs) {
  UnpackedCall unpacked(args, kwargs);
  Specialization::Evaluation found;
  std::string reason = "tensors changed while the program was made";
  switch (self.evaluate(unpacked.call, found, reason)) {
  case Specialization::Done:
    return nb::make_tuple(true, nb::handle(found.value.get()), listOf(found.results),
                          listOf(found.laidOut));
  case Specialization::Declined:
  case Specialization::Mismatch:
  case Specialization::Unusual:
    return nb::make_tuple(false, reason, nb::list(), nb::list());
  case Specialization::Error:
    break;
  }
  throw nb::python_error();
}

static bool standsFor(Specialization &self, nb::tuple args, nb::dict kwargs) {
  return self.standsFor(UnpackedCall(args, kwargs).call);
}

static void bindSpecialization(nb::module_ &module) {
  nb::class_<Specialization>(module, "Specialization", nb::type_slots(collected<Specialization>()),
                             "One program and the calls it stands for.")
      .def(
          "__init__",
          [](Specialization *self, nb::tuple arguments, nb::tuple names, nb::list examples,
             nb::object numbers, size_t numberCount) {
            new (self) Specialization();
            parsePattern(*self, arguments, names, examples);
            self->numbers = {borrowUnlessNone(numbers), numberCount};
          },
          nb::arg("arguments"), nb::arg("names"), nb::arg("examples"),
          nb::arg("numbers") = nb::none(), nb::arg("number_count") = 0)
      .def("attach", &parseProgram, nb::arg("program"), nb::arg("sources"),
           nb::arg("eager_strides"), nb::arg("effects"), nb::arg("outputs"),
           nb::arg("random").none(), nb::arg("host").none(), nb::arg("watched"))
      .def(
          "call",
          [](Specialization &self, nb::tuple args, nb::dict kwargs) {
            return callOnce(self, args, kwargs, nullptr);
          },
          nb::arg("args"), nb::arg("kwargs"))
      .def(
          "train",
          [](Specialization &self, nb::handle step) {
            if (!nb::isinstance<TrainingStep>(step))
              throw nb::type_error("expected a TrainingStep");
            self.training = borrowRef(step);
          },
          nb::arg("step"), "From now on calls are recorded by autograd.")
      .def("evaluate", &evaluateOnce, nb::arg("args"), nb::arg("kwargs"))
      .def(
          "lay_out_results",
          [](Specialization &self, Strides eagerStrides, std::vector<int64_t> offsets) {
            if (offsets.size() != eagerStrides.size())
              throw nb::value_error("expected an offset for each result");
            setEagerStrides(self, std::move(eagerStrides));
            bool none = std::ranges::all_of(offsets, [](int64_t offset) { return offset == 0; });
            self.offsets = none ? std::vector<int64_t>() : std::move(offsets);
          },
          nb::arg("eager_strides"), nb::arg("offsets"))
      .def(
          "rebound",
          [](const Specialization &self, nb::list sources, nb::list effects, nb::tuple outputs) {
            std::unique_ptr<Specialization> copy = self.copyForOtherTensors();
            parseTensors(*copy, sources, effects, outputs);
            return copy;
          },
          nb::arg("sources"), nb::arg("effects"), nb::arg("outputs"))
      .def("time", &timeOnce, nb::arg("args"), nb::arg("kwargs"))
      .def("matches", &standsFor, nb::arg("args"), nb::arg("kwargs"))
      .def_rw("last_use", &Specialization::lastUse)
      .def("seconds", &Specialization::seconds);
}

void bindCalls(nb::module_ &module) {
  bindHost(module);
  bindGuards(module);
  bindEnvironment(module);
  bindSpecialization(module);
  nb::object callable = nb::steal(makeCallableType(module.ptr()));
  nb::object moduleBase = nb::steal(makeModuleBaseType(module.ptr()));
  if (!callable || !moduleBase)
    throw nb::python_error();
  module.attr("Callable") = callable;
  module.attr("ModuleBase") = moduleBase;
  module.def(
      "class_version",
      [](nb::handle type) {
        if (!PyType_Check(type.ptr()))
          throw nb::type_error("expected a class");
        return assignTypeVersion(reinterpret_cast<PyTypeObject *>(type.ptr()));
      },
      nb::arg("type"), "Another number once attributes of the class or of its bases are set.");
  module.def(
      "interposition_active", &interpositionActive,
      "Whether a torch mode, functorch transform or torch.jit.trace is active on this thread.");
}

} // namespace weft
