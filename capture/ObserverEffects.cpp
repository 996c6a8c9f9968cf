// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Effects of a call on attributes, entries, containers and variables outside of it.
#include "capture/Observer.h"

#include "capture/Plain.h"

#include <algorithm>
#include <opcode.h>

namespace weft::capture {

bool Observer::effect(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  if (nodes)
    return values.fail("an autograd.Function with gradients changes " + shown(arguments[0]));
  Record record;
  record.callable = PyRef::borrow(callable);
  record.names = PyRef::borrow(names);
  record.changes = true;
  for (PyObject *each : arguments) {
    std::optional<Form> form = values.lasting(each);
    if (!form)
      return false;
    record.arguments.push_back(std::move(*form));
  }
  frame.pending.record = std::move(record);
  return true;
}

/// Keeps the state of the object before the effect, unless the call has made the object.
bool Observer::keepState(PyObject *object, PyObject *key) {
  if (values.isKept(object))
    return true;
  std::optional<Form> form = values.form(object);
  PyRef snapshot =
      PyRef::steal(PyObject_CallFunctionObjArgs(operators().snapshot, object, key, nullptr));
  if (!form || !snapshot)
    return values.fail("changes " + shown(object) + ", which cannot be put back");
  observation.snapshots.push_back(std::move(snapshot));
  bool isContainer = PyList_Check(object) || PyDict_Check(object) || PyAnySet_Check(object) ||
                     isDeque(object) || (key && !isTensor(object));
  log.write(std::move(*form), key, isContainer);
  values.noteTarget(object);
  return true;
}

bool Observer::setsEntry(Frame &frame, PyObject *dict, PyObject *object, PyObject *key,
                         PyObject *value) {
  PyObject *target = object ? object : dict;
  const Value *held = values.find(target);
  std::string what = "sets " + (held ? held->name : "an object") + ", " + shown(key);
  if (!held || !dict || !isLookupKey(key))
    return values.fail(what);
  if (values.hasChanged(dict))
    return values.fail(what + ", of what it has changed");
  PyObject *arguments[] = {target, key, value, nullptr};
  PyObject *callable = !value   ? operators().deleteAttribute
                       : object ? operators().setAttribute
                                : operators().setItem;
  size_t count = value ? 3 : 2;
  if (value && counting && values.isCounter(dict, key)) {
    callable = operators().count;
    arguments[2] = counting->function;
    arguments[3] = counting->step;
    counting->stored = true;
    count = 4;
  }
  if (!effect(frame, callable, Arguments(arguments, count), nullptr) || !keepState(target, key))
    return false;
  if (object)
    values.noteSet(dict, key);
  else
    values.noteItemSet(dict, key);
  return appendRecord(frame, Py_None) && expect(frame, Then::Nothing, false);
}

bool Observer::setsItem(Frame &frame, PyObject *list, PyObject *key, PyObject *value) {
  Py_ssize_t i = PyLong_AsSsize_t(key);
  if (i < 0 && !values.readLength(list))
    return false;
  PyRef at = PyRef::steal(PyLong_FromSsize_t(i < 0 ? i + PyList_GET_SIZE(list) : i));
  PyObject *operands[] = {list, at.get(), value};
  if (!effect(frame, operators().setItem, operands, nullptr) || !keepState(list, at.get()))
    return false;
  values.noteItemSet(list, at.get());
  return appendRecord(frame, Py_None) && expect(frame, Then::Nothing, false);
}

/// `slot` is the descriptor, which identifies the place.
bool Observer::setsSlot(Frame &frame, PyObject *object, PyObject *slot, PyObject *name,
                        PyObject *value) {
  bool kept = values.isKept(object);
  if (!value || isTensor(object) || (!values.isExternal(object) && !kept))
    return values.fail("sets the attribute " + shown(name) + " of " + shown(object));
  PyObject *arguments[] = {object, name, value, nullptr};
  bool counts = counting && values.isCounter(object, slot);
  if (counts) {
    arguments[2] = counting->function;
    arguments[3] = counting->step;
    counting->stored = true;
  }
  if (!effect(frame, counts ? operators().count : operators().setAttribute,
              Arguments(arguments, counts ? 4 : 3), nullptr) ||
      (!kept && !keepState(object, slot)))
    return false;
  values.noteSet(object, slot);
  return appendRecord(frame, Py_None) && expect(frame, Then::Nothing, false);
}

bool Observer::changes(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names,
                       bool whole) {
  PyObject *container = arguments[0];
  std::string what = nameOf(callable);
  if (!values.isExternal(container) && !values.isKept(container))
    return values.fail(what + " changes " + shown(container) + " of unknown origin");
  bool first = !values.hasChanged(container);
  if (PyDict_Check(container) && values.hasSet(container, nullptr) && !values.readWhole(container))
    return false; // the container has the attributes of an object, which the call has set
  if (values.isExternal(container) && !values.change(container, whole))
    return false;
  // So far only states of single entries are kept.
  bool keeps = first || values.hasSet(container, nullptr);
  if (!effect(frame, callable, arguments, names) || (keeps && !keepState(container, nullptr)))
    return false;
  if (what.ends_with(".clear") && values.isExternal(container))
    values.noteCleared(container);
  PyObject *items = arguments.size() == 2 ? arguments[1] : nullptr;
  bool one = callable == operators().listAppend;
  bool many =
      (callable == operators().listExtend || callable == operators().binary[NB_INPLACE_ADD]) &&
      items && (PyList_CheckExact(items) || PyTuple_CheckExact(items));
  if (PyList_CheckExact(container))
    values.noteAppended(container, one ? 1 : many && items != container ? Py_SIZE(items) : 0);
  return expect(frame, Then::Append, true, std::move(what));
}

bool Observer::extends(Frame &frame, PyObject *list) {
  bool first = !values.hasChanged(list);
  PyRef kept = PyRef::steal(PyList_New(0));
  PyObject *arguments[] = {list, kept.get()};
  if (!values.enterFresh(kept.get()) || !values.change(list, false))
    return false;
  if (!effect(frame, operators().listExtend, arguments, nullptr) ||
      (first && !keepState(list, nullptr)))
    return false;
  Form &items = frame.pending.record.arguments[1];
  items = {};
  items.kind = Form::List;
  items.index = -1;
  values.noteAppended(list, 0);
  frame.pending.yields = Pending::Yields::Collected;
  frame.pending.extended = list;
  frame.pending.logBegin = log.size();
  return expect(frame, Then::Append, true, "list.extend");
}

void Observer::endExtension(const Pending &pending) {
  for (size_t i = pending.logBegin; i < log.size(); ++i)
    if (log.all()[i].changes) { // this may be the list, between two of its new items
      values.fail("extends a list by a generator that changes something");
      return;
    }
  values.noteAppended(pending.extended,
                      static_cast<Py_ssize_t>(pending.record.arguments[1].parts.size()));
}

bool Observer::setsData(Frame &frame, PyObject *tensor, PyObject *value) {
  static PyObject *const data = PyUnicode_InternFromString("data");
  std::optional<TensorFacts> facts = TensorFacts::of(tensor);
  PyObject *arguments[] = {tensor, value};
  if (nodes || !facts || !isTensor(value))
    return values.fail("sets the data of a tensor");
  guardMethods(tensor, {"__setattr__", "data"});
  if (!operation(frame, operators().setData, arguments, nullptr) ||
      (values.isExternal(tensor) && !keepState(tensor, data)))
    return false;
  frame.pending.what = "setting the data";
  frame.pending.written = {{tensor, facts}};
  frame.pending.redirects = true;
  frame.pending.then = Then::Stored;
  redirected.push_back(PyRef::borrow(tensor));
  return true;
}

bool Observer::setsCell(Frame &frame, PyObject *cell, PyObject *value, const std::string &name) {
  if (!value || !values.isExternal(cell))
    return values.fail("writes " + name + ", a variable from outside");
  PyObject *arguments[] = {cell, value, nullptr, nullptr};
  bool counts = counting && values.isCounter(cell, Py_None);
  if (counts) {
    arguments[1] = Py_None;
    arguments[2] = counting->function;
    arguments[3] = counting->step;
    counting->stored = true;
  }
  if (!effect(frame, counts ? operators().count : operators().setCell,
              Arguments(arguments, counts ? 4 : 2), nullptr) ||
      !keepState(cell, Py_None))
    return false;
  values.noteSet(cell, Py_None);
  return appendRecord(frame, Py_None) && expect(frame, Then::Nothing, false);
}

bool Observer::logContext(PyObject *enter, PyObject *leave, PyObject *set, bool enters,
                          bool &noted) {
  Record record;
  record.callable = PyRef::borrow(enters ? enter : leave);
  if (enters) {
    record.arguments.emplace_back();
    record.arguments[0].object = PyRef::borrow(set);
  }
  record.outcome.object = PyRef::borrow(Py_None);
  record.location = here();
  log.append(std::move(record));
  return std::exchange(noted, true) || keepState(enter, nullptr);
}

bool Observer::setsInference(PyObject *function, std::span<PyObject *const> locals) {
  static PyObject *const mode = PyUnicode_InternFromString("mode");
  PyObject *self = locals.empty() ? nullptr : locals[0];
  PyObject *dict = self && values.isFresh(self) ? interpreter::instanceDict(self) : nullptr;
  PyObject *set = dict ? PyDict_GetItemWithError(dict, mode) : nullptr;
  if (nodes || !set || !PyBool_Check(set))
    return values.fail("sets the inference mode");
  settings.clear();
  bool enters = function == operators().enterInference;
  if (!values.pin(operators().pushInference, "torch.inference_mode"))
    return false;
  return logContext(operators().pushInference, operators().popInference, set, enters, infers);
}

bool Observer::beginRecord(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  Record record;
  record.callable = PyRef::borrow(callable);
  record.names = PyRef::borrow(names);
  for (PyObject *each : arguments) {
    std::optional<Form> form = values.form(each);
    if (!form)
      return false;
    record.arguments.push_back(std::move(*form));
  }
  frame.pending.record = std::move(record);
  return true;
}

bool Observer::asks(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  if (!beginRecord(frame, callable, arguments, names))
    return false;
  frame.pending.nested = true;
  frame.pending.foreign = true;
  return expect(frame, Then::Append, true, nameOf(callable));
}

} // namespace weft::capture
