// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Log.h"

#include "capture/Arrays.h"
#include "capture/Declared.h"
#include "capture/Guards.h"
#include "capture/Interpreter.h"
#include "capture/Plain.h"
#include "capture/Plan.h"

#include <algorithm>
#include <unordered_map>

namespace weft::capture {

namespace {

/// One replay of a log. Lists and dicts that occur twice are made once.
class Replay {
public:
  Replay(const std::vector<PyRef> &registers, int results)
      : registers(registers), results(results) {}

  PyRef finish(const Form &output) {
    made.clear();
    return make(output);
  }
  /// Whether the operation gave what it gave when it was observed.
  bool run(const Record &record);
  /// As `run`, where tensors may have other sizes. The record has these sizes from now on.
  bool relearn(Record &record);
  PyObject *result(size_t i) const { return results[i].get(); } // borrowed
  /// Whether a record that changes something has been run, or has failed to.
  bool hasChanged() const { return changed; }
  void setResult(size_t i, PyObject *tensor) { results[i] = PyRef::borrow(tensor); }
  void release(const Record &record) {
    for (int each : record.lastUses)
      results[each] = {};
  }

private:
  PyRef make(const Form &form);
  PyRef makeNew(const Form &form);
  PyRef makeTuple(const Form &form);
  PyRef makeInstance(const Form &form);
  PyRef makeSubclass(const Form &form);
  PyRef makeCalled(const Form &form);
  bool accept(const Outcome &outcome, PyObject *found);
  bool relearn(Outcome &outcome, PyObject *found, const std::vector<PyRef> &arguments);
  PyRef call(const Record &record, std::vector<PyRef> &arguments);

  const std::vector<PyRef> &registers;
  std::vector<PyRef> results;
  std::unordered_map<int, PyRef> made;
  bool changed = false;
};

} // namespace

PyRef Replay::makeTuple(const Form &form) {
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(form.parts.size())));
  for (size_t i = 0; tuple && i < form.parts.size(); ++i) {
    PyObject *part = make(form.parts[i]).release();
    if (!part)
      return {};
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), part);
  }
  if (!tuple || !form.object)
    return tuple;
  if (isNamedResult((PyTypeObject *)form.object.get()))
    return PyRef::steal(PyObject_CallOneArg(form.object.get(), tuple.get()));
  // A namedtuple's own __new__ is a function in Python. Calling tuple's makes the same instance.
  PyRef arguments = PyRef::steal(PyTuple_Pack(1, tuple.get()));
  return PyRef::steal(
      arguments ? PyTuple_Type.tp_new((PyTypeObject *)form.object.get(), arguments.get(), nullptr)
                : nullptr);
}

/// Makes the instance by object.__new__, or by that of exceptions, and sets its attributes in
/// order, and its slots.
PyRef Replay::makeInstance(const Form &form) {
  auto *type = reinterpret_cast<PyTypeObject *>(form.object.get());
  bool error = PyExceptionClass_Check(form.object.get());
  PyRef arguments = error ? make(form.parts[0]) : PyRef();
  PyRef instance = PyRef::steal(!error      ? type->tp_alloc(type, 0)
                                : arguments ? type->tp_new(type, arguments.get(), nullptr)
                                            : nullptr);
  if (error && instance && form.parts.size() == 1)
    return instance;                    // the instance has no dict until one is asked for
  bool open = type->tp_dictoffset != 0; // others have slots alone
  PyRef dict =
      PyRef::steal(instance && open ? PyObject_GenericGetDict(instance.get(), nullptr) : nullptr);
  for (size_t i = error; (dict || !open) && instance && i < form.parts.size(); i += 2) {
    PyRef key = make(form.parts[i]), value = make(form.parts[i + 1]);
    bool slot = key && isSlot(key.get());
    if (!key || !value ||
        (slot ? Py_TYPE(key.get())->tp_descr_set(key.get(), instance.get(), value.get())
              : PyDict_SetItem(dict.get(), key.get(), value.get())) < 0)
      return {};
  }
  return dict || !open ? instance : PyRef();
}

/// Makes the instance as its class in C would, and fills it.
PyRef Replay::makeSubclass(const Form &form) {
  auto *type = reinterpret_cast<PyTypeObject *>(form.object.get());
  PyRef none = PyRef::steal(PyTuple_New(0));
  PyTypeObject *base = builtinBase(type);
  PyRef made = PyRef::steal(base->tp_new(type, none.get(), nullptr));
  const std::vector<Form> &items = form.parts[0].parts, &attributes = form.parts[1].parts;
  bool list = base == &PyList_Type;
  for (size_t i = 0; made && i < items.size(); i += list ? 1 : 2) {
    PyRef part = make(items[i]), value = list ? PyRef() : make(items[i + 1]);
    if (!part || (!list && !value) ||
        (list                    ? PyList_Append(made.get(), part.get())
         : base == &PyODict_Type ? PyODict_SetItem(made.get(), part.get(), value.get())
                                 : PyDict_SetItem(made.get(), part.get(), value.get())) < 0)
      return {};
  }
  PyRef dict;
  if (made && !attributes.empty())
    dict = PyRef::steal(PyObject_GenericGetDict(made.get(), nullptr));
  for (size_t i = 0; dict && i < attributes.size(); i += 2) {
    PyRef key = make(attributes[i]), value = make(attributes[i + 1]);
    if (!key || !value || PyDict_SetItem(dict.get(), key.get(), value.get()) < 0)
      return {};
  }
  return dict || attributes.empty() ? made : PyRef();
}

PyRef Replay::makeCalled(const Form &form) {
  PyRef arguments = make(form.parts[0]), keywords = make(form.parts[1]);
  if (!arguments || !keywords)
    return {};
  return PyRef::steal(PyObject_Call(form.object.get(), arguments.get(), keywords.get()));
}

PyRef Replay::makeNew(const Form &form) {
  if (form.kind == Form::Called)
    return makeCalled(form);
  if (form.kind == Form::Subclass)
    return makeSubclass(form);
  if (form.kind == Form::Instance)
    return makeInstance(form);
  if (form.kind == Form::Tuple)
    return makeTuple(form);
  if (form.kind == Form::Slice) {
    PyRef start = make(form.parts[0]), stop = make(form.parts[1]), step = make(form.parts[2]);
    return PyRef::steal(PySlice_New(start.get(), stop.get(), step.get()));
  }
  bool list = form.kind == Form::List;
  PyRef container = PyRef::steal(list          ? PyList_New(0)
                                 : form.object ? PyObject_CallNoArgs(form.object.get())
                                               : PyDict_New());
  for (size_t i = 0; container && i < form.parts.size(); i += list ? 1 : 2) {
    PyRef part = make(form.parts[i]);
    PyRef value = list ? PyRef() : make(form.parts[i + 1]);
    if (!part || (!list && !value) ||
        (list ? PyList_Append(container.get(), part.get())
              : PyObject_SetItem(container.get(), part.get(), value.get())) < 0)
      return {};
  }
  return container;
}

PyRef Replay::make(const Form &form) {
  switch (form.kind) {
  case Form::Constant:
    return form.object;
  case Form::Register:
    return registers[form.index];
  case Form::Result:
    return results[form.index];
  case Form::List:
  case Form::Dict:
  case Form::Instance:
  case Form::Subclass:
  case Form::Called:
    if (auto found = made.find(form.index); found != made.end())
      return found->second;
    return made[form.index] = makeNew(form);
  case Form::Tuple:
  case Form::Slice:
    return makeNew(form);
  }
  return {};
}

bool Replay::accept(const Outcome &outcome, PyObject *found) {
  switch (outcome.kind) {
  case Outcome::Tensor:
    results[outcome.index] = PyRef::borrow(found);
    return outcome.facts[0].match(found);
  case Outcome::Made:
    results[outcome.index] = PyRef::borrow(found);
    return true;
  case Outcome::Array: {
    results[outcome.index] = PyRef::borrow(found);
    PyRef facts = isArray(found) ? arrayFacts(found) : PyRef();
    return facts && plainEqual(facts.get(), outcome.object.get());
  }
  case Outcome::Same:
    return make(outcome.same).get() == found;
  case Outcome::Plain:
    if (outcome.index >= 0)
      results[outcome.index] = PyRef::borrow(found);
    return outcome.free ? Py_TYPE(found) == Py_TYPE(outcome.object.get())
                        : plainEqual(outcome.object.get(), found);
  case Outcome::Sequence: {
    if ((PyObject *)Py_TYPE(found) != outcome.object.get())
      return false;
    Py_ssize_t count = static_cast<Py_ssize_t>(outcome.parts.size());
    if (Py_SIZE(found) != count)
      return false;
    for (Py_ssize_t i = 0; i < count; ++i)
      if (!accept(outcome.parts[i],
                  PyTuple_Check(found) ? PyTuple_GET_ITEM(found, i) : PyList_GET_ITEM(found, i)))
        return false;
    return true;
  }
  }
  return false;
}

PyRef Replay::call(const Record &record, std::vector<PyRef> &arguments) {
  std::vector<PyObject *> pointers;
  made.clear(); // a list may have grown since the last operation
  for (const Form &form : record.arguments) {
    arguments.push_back(make(form));
    if (!arguments.back())
      return {};
    pointers.push_back(arguments.back().get());
  }
  if (!record.callable)
    return PyRef::borrow(pointers[0]);
  changed |= record.changes;
  size_t names = record.names ? static_cast<size_t>(PyTuple_GET_SIZE(record.names.get())) : 0;
  return PyRef::steal(PyObject_Vectorcall(record.callable.get(), pointers.data(),
                                          pointers.size() - names, record.names.get()));
}

bool Replay::run(const Record &record) {
  std::vector<PyRef> arguments;
  PyRef found = call(record, arguments);
  return found && accept(record.outcome, found.get());
}

bool Replay::relearn(Record &record) {
  std::vector<PyRef> arguments;
  PyRef found = call(record, arguments);
  return found && relearn(record.outcome, found.get(), arguments);
}

bool Replay::relearn(Outcome &outcome, PyObject *found, const std::vector<PyRef> &arguments) {
  if (outcome.kind == Outcome::Sequence) {
    if ((PyObject *)Py_TYPE(found) != outcome.object.get() ||
        Py_SIZE(found) != static_cast<Py_ssize_t>(outcome.parts.size()))
      return false;
    for (size_t i = 0; i < outcome.parts.size(); ++i) {
      Py_ssize_t at = static_cast<Py_ssize_t>(i);
      if (!relearn(outcome.parts[i],
                   PyTuple_Check(found) ? PyTuple_GET_ITEM(found, at) : PyList_GET_ITEM(found, at),
                   arguments))
        return false;
    }
    return true;
  }
  if (outcome.kind != Outcome::Tensor)
    return accept(outcome, found);
  // For these sizes the result may be one of the arguments, as for `contiguous`.
  for (const PyRef &each : arguments)
    if (each.get() == found)
      return false;
  std::optional<TensorFacts> facts = TensorFacts::of(found);
  if (!facts || !outcome.facts[0].resizes(*facts))
    return false;
  outcome.facts[0] = std::move(*facts);
  results[outcome.index] = PyRef::borrow(found);
  return true;
}

std::vector<PyRef> Log::snapshots(const std::vector<PyRef> &registers, PyObject *snapshot) const {
  Replay replay(registers, 0);
  std::vector<PyRef> made;
  for (const Written &each : written) {
    PyRef object = replay.finish(each.object);
    made.push_back(PyRef::steal(
        PyObject_CallFunctionObjArgs(snapshot, object.get(), each.key.get(), nullptr)));
    if (!made.back())
      break;
  }
  return made;
}

static bool areWhole(const std::vector<PyRef> &snapshots) {
  return snapshots.empty() || snapshots.back();
}

void Log::restore(const std::vector<PyRef> &snapshots, bool hasChanged) const {
  // Python code must not run while an error is set, such as a failed operation's.
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  for (size_t i = snapshots.size(); i-- > 0;)
    if (snapshots[i] && (hasChanged || !written[i].onlyByChanges) &&
        !PyRef::steal(PyObject_CallMethod(snapshots[i].get(), "restore", nullptr)))
      PyErr_WriteUnraisable(snapshots[i].get());
  PyErr_Restore(type, error, traceback);
}

PyRef Log::replay(const std::vector<PyRef> &registers, PyObject *snapshot, bool isDryRun) const {
  if (meetsNewHooks())
    return {};
  std::vector<PyRef> before = snapshots(registers, snapshot);
  bool same = areWhole(before);
  Replay replay(registers, resultCount);
  for (size_t i = 0; same && i < records.size(); ++i) {
    same = records[i].tells || replay.run(records[i]);
    replay.release(records[i]);
  }
  PyRef value = same ? replay.finish(output) : PyRef();
  for (size_t i = 0; !isDryRun && value && i < records.size(); ++i)
    if (records[i].tells && !replay.run(records[i]))
      value = {};
  if (!value)
    restore(before, replay.hasChanged());
  PyErr_Clear(); // the interpreter repeats the call, which raises an error of its own
  return value;
}

PyRef Log::relearn(const std::vector<PyRef> &registers, PyObject *snapshot,
                   std::vector<PyRef> &before) {
  if (meetsNewHooks())
    return {};
  before = snapshots(registers, snapshot);
  bool same = areWhole(before);
  Replay replay(registers, resultCount);
  for (size_t i = 0; same && i < records.size(); ++i) {
    same = records[i].tells || replay.relearn(records[i]);
    replay.release(records[i]);
  }
  PyRef value = same ? replay.finish(output) : PyRef();
  for (size_t i = 0; value && i < records.size(); ++i)
    if (records[i].tells && !replay.run(records[i]))
      value = {};
  if (!value)
    restore(before, replay.hasChanged());
  PyErr_Clear();
  return value;
}

PyRef Log::runCompiled(const Plan &plan, const std::vector<PyRef> &registers, PyObject *snapshot,
                       bool isDryRun, bool &declined) const {
  declined = false;
  if (meetsNewHooks())
    return {};
  std::vector<PyRef> before;
  if (plan.compares)
    before = snapshots(registers, snapshot);
  Replay replay(registers, resultCount);
  bool same = areWhole(before);
  for (size_t i = 0; same && i < plan.before.size(); ++i)
    same = replay.run(records[plan.before[i]]);
  if (!same) {
    restore(before, replay.hasChanged());
    PyErr_Clear();
    return {};
  }
  PyObject *few[8];
  size_t count = plan.inputs.size() + plan.numbers.size();
  std::vector<PyObject *> many(count > std::size(few) ? count : 0);
  PyObject **inputs = many.empty() ? few : many.data();
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    inputs[i] = registers[plan.inputs[i]].get();
  for (size_t i = 0; i < plan.numbers.size(); ++i)
    inputs[plan.inputs.size() + i] = replay.result(plan.numbers[i]);
  PyRef found = PyRef::steal(PyObject_Vectorcall(plan.program.get(), inputs, count, nullptr));
  if (!found) {
    declined = PyErr_ExceptionMatches(PyExc_Exception);
    restore(before, replay.hasChanged());
    if (declined)
      PyErr_Clear();
    return {};
  }
  for (size_t i = 0; i < plan.results.size(); ++i)
    replay.setResult(plan.results[i], PyTuple_GET_ITEM(found.get(), static_cast<Py_ssize_t>(i)));
  for (size_t i = 0; same && i < plan.after.size(); ++i) {
    const Record &record = records[plan.after[i]];
    same = (isDryRun && record.tells) || replay.run(record);
  }
  PyRef value = same ? replay.finish(output) : PyRef();
  if (!value)
    restore(before, replay.hasChanged());
  PyErr_Clear();
  return value;
}

static void collect(const Form &form, std::vector<int> &used) {
  if (form.kind == Form::Result)
    used.push_back(form.index);
  for (const Form &part : form.parts)
    collect(part, used);
}

static void collect(const Outcome &outcome, std::vector<int> &used) {
  if (outcome.kind == Outcome::Tensor || outcome.kind == Outcome::Made ||
      outcome.kind == Outcome::Array || (outcome.kind == Outcome::Plain && outcome.index >= 0))
    used.push_back(outcome.index);
  collect(outcome.same, used);
  for (const Outcome &part : outcome.parts)
    collect(part, used);
}

void Log::finish(Form form) {
  output = std::move(form);
  hooksKnown = hooksNoted;
  goesBackward = std::ranges::any_of(records, [](const Record &each) {
    return each.callable && each.callable.get() == operators().runBackward;
  });
  std::vector<bool> needed(resultCount);
  std::vector<int> used;
  collect(output, used);
  for (const Record &each : records)
    for (const Form &argument : each.arguments)
      if (each.tells) // records that tell something come after all others
        collect(argument, used);
  for (int each : used)
    needed[each] = true;
  for (size_t i = records.size(); i-- > 0;) {
    used.clear();
    for (const Form &form : records[i].arguments)
      collect(form, used);
    collect(records[i].outcome, used);
    for (int each : used)
      if (!needed[each]) {
        needed[each] = true;
        records[i].lastUses.push_back(each);
      }
  }
}

// Support for the garbage collector.

static int visitForm(const Form &form, visitproc visit, void *arg) {
  Py_VISIT(form.object.get());
  for (const Form &part : form.parts)
    if (int result = visitForm(part, visit, arg))
      return result;
  return 0;
}

static int visitOutcome(const Outcome &outcome, visitproc visit, void *arg) {
  Py_VISIT(outcome.object.get());
  if (int result = visitForm(outcome.same, visit, arg))
    return result;
  for (const Outcome &part : outcome.parts)
    if (int result = visitOutcome(part, visit, arg))
      return result;
  return 0;
}

int Log::traverse(visitproc visit, void *arg) const {
  for (const Record &record : records) {
    Py_VISIT(record.callable.get());
    Py_VISIT(record.names.get());
    for (const Form &form : record.arguments)
      if (int result = visitForm(form, visit, arg))
        return result;
    if (int result = visitOutcome(record.outcome, visit, arg))
      return result;
  }
  for (const Written &each : written) {
    Py_VISIT(each.key.get());
    if (int result = visitForm(each.object, visit, arg))
      return result;
  }
  return visitForm(output, visit, arg);
}

void Log::clear() {
  auto records = std::exchange(this->records, {});
  auto written = std::exchange(this->written, {});
  Form output = std::exchange(this->output, {});
}

} // namespace weft::capture
