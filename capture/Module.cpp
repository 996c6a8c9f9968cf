// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The Python module weft._capture.
#include "capture/Observer.h"
#include "capture/Parts.h"
#include "capture/Plain.h"
#include "capture/Plan.h"
#include "capture/Running.h"
#include "capture/TraceListener.h"

#include <cstddef>
#include <memory>
#include <new>
#include <structmember.h>

namespace weft::capture {

namespace {

/// The result of observing a call. It is a program if it stands for other calls.
struct Program {
  PyObject_HEAD vectorcallfunc vectorcall;
  Observation observation;
  std::shared_ptr<const Plan> plan; // the plan of compiled code, if there is any
  PyRef holds, restore;             // the settings of torch that it was made under (see `arm`)
};

PyRef listOf(const std::vector<std::string> &texts) {
  PyRef list = PyRef::steal(PyList_New(0));
  for (const std::string &each : texts) {
    PyRef text = PyRef::steal(
        PyUnicode_DecodeUTF8(each.data(), static_cast<Py_ssize_t>(each.size()), "replace"));
    if (!list || !text || PyList_Append(list.get(), text.get()) < 0)
      return {};
  }
  return list;
}

/// A call's arguments as a tuple and a dict, in vectorcall's order.
class Unpacked {
public:
  Unpacked(PyObject *args, PyObject *kwargs) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
      values.push_back(PyTuple_GET_ITEM(args, i));
    call = {nullptr, PyTuple_GET_SIZE(args), nullptr};
    if (PyDict_GET_SIZE(kwargs)) {
      names = PyRef::steal(PySequence_Tuple(kwargs));
      PyObject *key, *value;
      for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);)
        values.push_back(value);
    }
    call.values = values.data();
    call.names = names.get();
  }
  CallArguments call;

private:
  std::vector<PyObject *> values;
  PyRef names;
};

Observation &observationOf(PyObject *self) {
  return reinterpret_cast<Program *>(self)->observation;
}

std::shared_ptr<const Plan> &planOf(PyObject *self) {
  return reinterpret_cast<Program *>(self)->plan;
}

/// Runs the call by compiled code if there is any, else by torch's own operations. Null if a value
/// that the program depends on is different.
PyRef answer(PyObject *self, const Guards::Registers &registers, bool isDryRun) {
  PyRef held = PyRef::borrow(self); // an operation may delete the program
  const Log &log = observationOf(self).log;
  if (std::shared_ptr<const Plan> plan = planOf(self)) {
    bool declined = false;
    PyRef value = log.runCompiled(*plan, registers, operators().snapshot, isDryRun, declined);
    if (!declined)
      return value;
  }
  return log.replay(registers, operators().snapshot, isDryRun);
}

bool parse(PyObject *args, PyObject *&positional, PyObject *&keywords) {
  return PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &positional, &PyDict_Type, &keywords);
}

PyObject *runOnce(PyObject *self, PyObject *args, bool isDryRun) {
  PyObject *positional, *keywords;
  if (!parse(args, positional, keywords))
    return nullptr;
  Observation &observation = observationOf(self);
  if (!observation.reason.empty())
    Py_RETURN_NONE;
  Unpacked unpacked(positional, keywords);
  Guards::Registers registers;
  if (!observation.guards.check(unpacked.call, registers))
    Py_RETURN_NONE;
  PyRef value = answer(self, registers, isDryRun);
  if (value)
    return PyTuple_Pack(1, value.get());
  if (PyErr_Occurred())
    return nullptr;
  Py_RETURN_FALSE;
}

/// Calls the program with arguments as vectorcall passes them, once it is armed. Gives the result,
/// or NotImplemented if the program does not stand for the call, which then has had no effect.
PyObject *call(PyObject *self, PyObject *const *values, size_t flags, PyObject *names) {
  auto *program = reinterpret_cast<Program *>(self);
  if (!program->holds || !program->observation.reason.empty())
    Py_RETURN_NOTIMPLEMENTED;
  for (Py_ssize_t i = 0; i + 1 < PyTuple_GET_SIZE(program->holds.get()); i += 2) {
    PyRef found = PyRef::steal(PyObject_CallNoArgs(PyTuple_GET_ITEM(program->holds.get(), i)));
    PyErr_Clear();
    if (found.get() != PyTuple_GET_ITEM(program->holds.get(), i + 1))
      Py_RETURN_NOTIMPLEMENTED;
  }
  CallArguments arguments{values, PyVectorcall_NARGS(flags), names};
  Guards::Registers registers;
  if (!program->observation.guards.check(arguments, registers))
    Py_RETURN_NOTIMPLEMENTED;
  PyRef alive = PyRef::borrow(self), restore = program->restore;
  PyRef value;
  {
    Running running;
    value = answer(self, registers, false);
  }
  if (value || PyErr_Occurred())
    return value.release();
  PyRef done = PyRef::steal(PyObject_CallNoArgs(restore.get()));
  return done ? Py_NewRef(Py_NotImplemented) : nullptr;
}

/// arm(holds, restore): lets the program be called from now on. `holds` are functions in C, each
/// followed by the result that it has to give; they ask for the settings of torch that the program
/// was made under. `restore()` puts these settings back after a call that was broken off.
PyObject *arm(PyObject *self, PyObject *args) {
  PyObject *holds, *restore;
  if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &holds, &restore))
    return nullptr;
  auto *program = reinterpret_cast<Program *>(self);
  program->restore = PyRef::borrow(restore);
  program->holds = PyRef::borrow(holds);
  Py_RETURN_NONE;
}

/// take_registers(): the objects that the guards load, as the observed call has found them. They
/// are let go.
PyObject *takeRegisters(PyObject *self, PyObject *) {
  PyRef list = PyRef::steal(PyList_New(0));
  for (const PyRef &each : observationOf(self).guards.takeObserved())
    if (!list || PyList_Append(list.get(), each ? each.get() : Py_None) < 0)
      return nullptr;
  return list.release();
}

PyRef newProgram();

/// resized(args, kwargs): the result and a new program, for a call whose tensors have other sizes,
/// if nothing that was observed depends on these. None for any other call, which then has had no
/// effect; False if an operation gave something else, and what had been written is put back.
PyObject *resized(PyObject *self, PyObject *args) {
  PyObject *positional, *keywords;
  if (!parse(args, positional, keywords))
    return nullptr;
  const Observation &known = observationOf(self);
  if (!known.reason.empty() || known.readsSizes)
    Py_RETURN_NONE;
  Unpacked unpacked(positional, keywords);
  Guards::Registers registers;
  std::optional<Guards> guards = known.guards.resized(unpacked.call, registers);
  if (!guards)
    Py_RETURN_NONE;
  PyRef made = newProgram();
  if (!made)
    return nullptr;
  Observation &observation = observationOf(made.get());
  observation.guards = std::move(*guards);
  observation.log = known.log;
  PyRef value = observation.log.relearn(registers, operators().snapshot, observation.snapshots);
  if (!value)
    Py_RETURN_FALSE;
  return PyTuple_Pack(2, value.get(), made.get());
}

/// records(): the records of the log (Plan.h).
PyObject *records(PyObject *self, PyObject *) {
  PyRef list = PyRef::steal(PyList_New(0));
  for (const Record &each : observationOf(self).log.all()) {
    PyRef view = viewOf(each);
    if (!list || !view || PyList_Append(list.get(), view.get()) < 0)
      return nullptr;
  }
  return list.release();
}

PyObject *output(PyObject *self, PyObject *) {
  return viewOf(observationOf(self).log.given()).release();
}

/// attach(program, inputs, numbers, results, before, after, compares): lets compiled code run the
/// operations on tensors from now on (Plan.h); None for `program` undoes that. inputs, numbers,
/// results, before and after are tuples of numbers.
PyObject *attach(PyObject *self, PyObject *args) {
  PyObject *program, *parts[5];
  int compares;
  if (!PyArg_ParseTuple(args, "OO!O!O!O!O!p", &program, &PyTuple_Type, &parts[0], &PyTuple_Type,
                        &parts[1], &PyTuple_Type, &parts[2], &PyTuple_Type, &parts[3],
                        &PyTuple_Type, &parts[4], &compares))
    return nullptr;
  auto plan = std::make_shared<Plan>();
  plan->program = PyRef::borrow(program);
  plan->compares = compares != 0;
  std::vector<size_t> *numbers[] = {&plan->inputs, &plan->numbers, &plan->results, &plan->before,
                                    &plan->after};
  for (size_t i = 0; i < std::size(parts); ++i)
    for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(parts[i]); ++j) {
      size_t number = PyLong_AsSize_t(PyTuple_GET_ITEM(parts[i], j));
      if (PyErr_Occurred())
        return nullptr;
      numbers[i]->push_back(number);
    }
  std::shared_ptr<const Plan> old = std::exchange(planOf(self), std::move(plan));
  Py_RETURN_NONE;
}

PyObject *detach(PyObject *self, PyObject *) {
  std::shared_ptr<const Plan> old = std::exchange(planOf(self), {});
  Py_RETURN_NONE;
}

/// run(args, kwargs): a tuple with the result; None if the program does not stand for the call;
/// False if it does, but an operation gave something else than when it was observed.
PyObject *run(PyObject *self, PyObject *args) { return runOnce(self, args, false); }

/// dry_run(args, kwargs): as run, but without what the call prints, warns or logs.
PyObject *dryRun(PyObject *self, PyObject *args) { return runOnce(self, args, true); }

/// why_miss(args, kwargs): the guard that does not hold, in the user's terms, or None.
PyObject *whyMiss(PyObject *self, PyObject *args) {
  PyObject *positional, *keywords;
  if (!parse(args, positional, keywords))
    return nullptr;
  Observation &observation = observationOf(self);
  Unpacked unpacked(positional, keywords);
  Guards::Registers registers;
  size_t failed = 0;
  if (observation.guards.check(unpacked.call, registers, &failed))
    Py_RETURN_NONE;
  return PyUnicode_FromString(observation.guards.text(failed).c_str());
}

/// moved(args, kwargs): the places in objects that the program holds whose content has changed, or
/// which the program has set, and the arguments that are other numbers in this call (Sites.h).
PyObject *moved(PyObject *self, PyObject *args) {
  PyObject *positional, *keywords;
  if (!parse(args, positional, keywords))
    return nullptr;
  const Observation &seen = observationOf(self);
  std::vector<Site> sites = seen.guards.moved();
  for (std::vector<Site> more : {seen.log.stored(), seen.log.filled(seen.guards),
                                 seen.guards.movedArguments(Unpacked(positional, keywords).call)})
    sites.insert(sites.end(), more.begin(), more.end());
  return viewOf(sites).release();
}

/// snapshots(): snapshots of what the observed call has written, taken before it was written.
PyObject *snapshots(PyObject *self, PyObject *) {
  PyRef list = PyRef::steal(PyList_New(0));
  for (const PyRef &each : observationOf(self).snapshots)
    if (!list || PyList_Append(list.get(), each.get()) < 0)
      return nullptr;
  observationOf(self).snapshots.clear();
  return list.release();
}

PyObject *guardTexts(PyObject *self, PyObject *) {
  return listOf(observationOf(self).guards.texts()).release();
}

PyObject *logTexts(PyObject *self, PyObject *) {
  return listOf(observationOf(self).log.texts()).release();
}

PyObject *text(const std::string &value) {
  return value.empty()
             ? Py_NewRef(Py_None)
             : PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace");
}
PyObject *passes(PyObject *self, void *) { return PyBool_FromLong(observationOf(self).passes); }
PyObject *reason(PyObject *self, void *) { return text(observationOf(self).reason); }
PyObject *location(PyObject *self, void *) { return text(observationOf(self).location); }
PyObject *opcodes(PyObject *self, void *) {
  return PyLong_FromUnsignedLongLong(observationOf(self).opcodes);
}
PyObject *operations(PyObject *self, void *) {
  return PyLong_FromSize_t(observationOf(self).log.size());
}

int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Observation &observation = observationOf(self);
  Py_VISIT(observation.value.get());
  if (const Plan *plan = planOf(self).get())
    Py_VISIT(plan->program.get());
  Py_VISIT(reinterpret_cast<Program *>(self)->holds.get());
  Py_VISIT(reinterpret_cast<Program *>(self)->restore.get());
  if (int result = observation.guards.traverse(visit, arg))
    return result;
  return observation.log.traverse(visit, arg);
}

int clear(PyObject *self) {
  Observation &observation = observationOf(self);
  observation.value = {};
  observation.reason = "it was let go";
  observation.guards.clear();
  observation.log.clear();
  std::shared_ptr<const Plan> old = std::exchange(planOf(self), {});
  auto *program = reinterpret_cast<Program *>(self);
  PyRef holds = std::exchange(program->holds, {}), restore = std::exchange(program->restore, {});
  return 0;
}

void dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  std::destroy_at(&planOf(self));
  observationOf(self).~Observation();
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"run", run, METH_VARARGS, nullptr},
    {"dry_run", dryRun, METH_VARARGS, nullptr},
    {"why_miss", whyMiss, METH_VARARGS, nullptr},
    {"take_snapshots", snapshots, METH_NOARGS, nullptr},
    {"moved", moved, METH_VARARGS, nullptr},
    {"arm", arm, METH_VARARGS, nullptr},
    {"resized", resized, METH_VARARGS, nullptr},
    {"take_registers", takeRegisters, METH_NOARGS, nullptr},
    {"records", records, METH_NOARGS, nullptr},
    {"output", output, METH_NOARGS, nullptr},
    {"attach", attach, METH_VARARGS, nullptr},
    {"detach", detach, METH_NOARGS, nullptr},
    {"guards", guardTexts, METH_NOARGS, nullptr},
    {"log", logTexts, METH_NOARGS, nullptr},
    {},
};
PyGetSetDef properties[] = {
    {"reason", reason, nullptr, nullptr, nullptr},
    {"passes", passes, nullptr, nullptr, nullptr},
    {"location", location, nullptr, nullptr, nullptr},
    {"opcodes", opcodes, nullptr, nullptr, nullptr},
    {"operations", operations, nullptr, nullptr, nullptr},
    {},
};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Program, vectorcall), READONLY, nullptr},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_members, members},
    {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
    {Py_tp_clear, reinterpret_cast<void *>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
    {},
};
PyType_Spec spec = {"weft._capture.Program", sizeof(Program), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};
PyTypeObject *programType = nullptr;

PyRef newProgram() {
  PyRef self = PyRef::steal(programType->tp_alloc(programType, 0));
  if (!self)
    return self;
  auto *program = reinterpret_cast<Program *>(self.get());
  new (&program->observation) Observation();
  // Zero bytes are a valid empty value for all other members.
  new (&program->plan) std::shared_ptr<const Plan>();
  program->vectorcall = call;
  return self;
}

/// observe(target, args, kwargs, refusal=None, sites=()): makes the call, and gives its result and
/// a Program, whose `reason` says why it stands for no call, or is None; `passes` says whether the
/// next call will not meet that reason. Raises what the call
/// raises. Once it is known that the program will stand for no call, and nothing has taken effect
/// yet, it raises refusal(reason, line). `sites` are the results of moved() for earlier programs;
/// the contents of these places are inputs.
PyObject *observe(PyObject *, PyObject *args) {
  PyObject *target, *positional, *keywords, *refusal = Py_None, *known = nullptr;
  std::vector<Site> sites;
  if (!PyArg_ParseTuple(args, "OO!O!|OO", &target, &PyTuple_Type, &positional, &PyDict_Type,
                        &keywords, &refusal, &known) ||
      (known && !sitesOf(known, sites)))
    return nullptr;
  PyRef self = newProgram();
  if (!self)
    return nullptr;
  Observation &observation = observationOf(self.get());
  Observer(observation, refusal == Py_None ? nullptr : refusal, std::move(sites))
      .run(target, positional, keywords);
  PyRef value = std::exchange(observation.value, {});
  if (!value)
    return nullptr;
  return PyTuple_Pack(2, value.get(), self.get());
}

PyObject *declareOne(PyObject *, PyObject *args) {
  PyObject *callable;
  const char *kind;
  if (!PyArg_ParseTuple(args, "Os", &callable, &kind) || !declare(callable, kind))
    return nullptr;
  Py_RETURN_NONE;
}

PyObject *declarePlain(PyObject *, PyObject *type) {
  if (!PyType_Check(type))
    return PyErr_Format(PyExc_TypeError, "expected a class");
  addPlainType(reinterpret_cast<PyTypeObject *>(type));
  Py_RETURN_NONE;
}

PyObject *setOperatorOf(PyObject *, PyObject *args) {
  const char *name;
  PyObject *function;
  if (!PyArg_ParseTuple(args, "sO", &name, &function))
    return nullptr;
  if (!setOperator(name, function))
    return PyErr_Format(PyExc_ValueError, "expected an operator's name, found '%s'", name);
  Py_RETURN_NONE;
}

PyObject *noteHook(PyObject *, PyObject *) {
  Log::noteHook();
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"observe", observe, METH_VARARGS, nullptr},
    {"declare", declareOne, METH_VARARGS, nullptr},
    {"declare_plain", declarePlain, METH_O, nullptr},
    {"set_operator", setOperatorOf, METH_VARARGS, nullptr},
    {"count", count, METH_VARARGS, nullptr},
    {"advance", advance, METH_O, nullptr},
    {"position_of", positionOf, METH_O, nullptr},
    {"set_position", setPosition, METH_VARARGS, nullptr},
    {"has_position", positioned, METH_O, nullptr},
    {"leave_parts", leaveParts, METH_NOARGS, nullptr},
    {"enter_parts", enterParts, METH_O, nullptr},
    {"listen_to_trace", listenToTrace, METH_VARARGS, nullptr},
    {"note_hook", noteHook, METH_NOARGS, nullptr},
    {"running_programs", runningPrograms, METH_NOARGS, nullptr},
    {"started_programs", startedPrograms, METH_NOARGS, nullptr},
    {},
};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "weft._capture",
                          nullptr,
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

} // namespace

} // namespace weft::capture

PyMODINIT_FUNC PyInit__capture() {
  using namespace weft::capture;
  PyObject *module = PyModule_Create(&definition);
  programType = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  if (!module || !programType ||
      PyModule_AddObjectRef(module, "Program", reinterpret_cast<PyObject *>(programType)) < 0 ||
      PyModule_AddObject(module, "Parts", makePartsType()) < 0)
    return nullptr;
  return module;
}
