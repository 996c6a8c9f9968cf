// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counters, such as `self.calls += 1`, also of entries, globals and variables of outer functions,
// where the number that is read is used only to compute what is stored. Only the type of such a
// number is guarded, and the increment is an effect, so that one program stands for all calls.
#include "capture/Imported.h"
#include "capture/Observer.h"
#include "capture/Plain.h"

#include <opcode.h>

namespace weft::capture {

static bool isCountable(PyObject *object) {
  return object && (PyLong_CheckExact(object) || PyFloat_CheckExact(object));
}

PyObject *count(PyObject *, PyObject *args) {
  PyObject *target, *key, *function, *step;
  if (!PyArg_ParseTuple(args, "OOOO:count", &target, &key, &function, &step))
    return nullptr;
  bool ofCell = PyCell_Check(target),
       ofDict = PyDict_CheckExact(target) || isDefaultDict(target) || isCounter(target);
  bool ofClass = PyType_Check(target); // instanceDict gives a class's dict as well
  PyObject *dict = ofDict ? target : ofCell ? nullptr : interpreter::instanceDict(target);
  PyObject *slot =
      ofCell || ofDict || ofClass ? nullptr : interpreter::typeLookup(Py_TYPE(target), key);
  PyRef before = isSlot(slot) ? memberOf(slot, target)
                              : PyRef::borrow(ofCell ? PyCell_GET(target)
                                              : dict ? entryOf(dict, key)
                                                     : nullptr);
  if (!isCountable(before.get()))
    return PyErr_Format(PyExc_LookupError, "there is no such counter");
  PyRef now = PyRef::steal(PyObject_CallFunctionObjArgs(function, before.get(), step, nullptr));
  int failed = !now      ? -1
               : ofCell  ? PyCell_Set(target, now.get())
               : ofDict  ? PyDict_SetItem(target, key, now.get())
               : ofClass ? PyType_Type.tp_setattro(target, key, now.get())
                         : PyObject_GenericSetAttr(target, key, now.get());
  return failed ? nullptr : Py_NewRef(Py_None);
}

// Methods of Values.

const Values::Counter *Values::counterOf(PyObject *where, PyObject *key) const {
  for (const Counter &each : counters)
    if (each.where.get() == where && plainEqual(each.key.get(), key))
      return &each;
  return nullptr;
}

bool Values::startsCounter(Counter counter, PyObject *found) {
  if (!counting || !isCountable(found))
    return false;
  PyObject *owner = counter.owner.object.get(); // the place is also changed in other ways
  if (owner ? siteOf(counter.place, owner, counter.key.get()) : argumentSite(counter.name))
    return false;
  counter.before = PyRef::borrow(found);
  guards.counter(counter.place, counter.owner, counter.key.get(), Py_TYPE(found), counter.name);
  counters.push_back(std::move(counter));
  return true;
}

bool Values::readCounter(PyObject *where, PyObject *key) {
  const Counter *found = where ? counterOf(where, key) : nullptr;
  if (found && !counting)
    fixCounter(where, key);
  return found;
}

void Values::fixCounter(PyObject *where, PyObject *key) {
  const Counter *counter = counterOf(where, key);
  if (!counter)
    return;
  Expected expected{Expected::Equal, counter->before, -1};
  if (counter->place == Place::Attribute)
    guards.instanceItem(counter->owner, key, std::move(expected), counter->name);
  else if (counter->place == Place::Item)
    guards.dictItem(counter->owner, key, std::move(expected), counter->name);
  else if (counter->place == Place::Member)
    guards.member(counter->owner, key, std::move(expected), counter->name);
  else if (counter->place == Place::Class)
    guards.classItem(counter->owner, key, std::move(expected), counter->name);
  else
    guards.cell(counter->owner, std::move(expected), counter->name);
}

// Methods of the observer.

/// Whether the value that the current instruction loads is changed by a constant and then stored by
/// an instruction of kind `store` with this argument, and used by nothing else. `below` is the
/// number of operands that the storing instruction takes besides the value.
bool Observer::loadsCounter(Frame &frame, int store, int argument, size_t below, PyObject *object,
                            PyObject *key) {
  interpreter::Instruction next[8];
  if (interpreter::following(frame.frame, std::span(next, 1)) < 1 || next[0].opcode != LOAD_CONST)
    return false; // most loads are none of a counter
  size_t count = interpreter::following(frame.frame, next);
  if (count < 3 || next[0].opcode != LOAD_CONST || next[1].opcode != BINARY_OP)
    return false;
  PyObject *step = PyTuple_GET_ITEM(interpreter::code(frame.frame)->co_consts, next[0].argument);
  int operation = next[1].argument % NB_INPLACE_ADD;
  if (!isCountable(step) ||
      (operation != NB_ADD && operation != NB_SUBTRACT && operation != NB_MULTIPLY))
    return false;
  size_t depth = 1; // the value's depth on the stack
  for (size_t i = 2; i < count; ++i) {
    auto [opcode, given, offset] = next[i];
    if (opcode == LOAD_FAST || opcode == LOAD_CONST) {
      ++depth;
    } else if (opcode == SWAP) {
      auto other = static_cast<size_t>(given);
      depth = depth == 1 ? other : depth == other ? 1 : depth;
    } else if (opcode == store) {
      if (depth != below + 1 || (argument >= 0 && given != argument))
        return false;
      frame.counter = {PyRef::borrow(object), PyRef::borrow(key),
                       operators().binary[next[1].argument], step, offset};
      return true;
    } else {
      return false;
    }
  }
  return false;
}

bool Observer::beginStore(Frame &frame, Counter &counter, PyObject *object, PyObject *key) {
  if (!counter.object || counter.offset != interpreter::offset(frame.frame))
    return false;
  if (counter.object.get() == object && plainEqual(counter.key.get(), key))
    counting = &counter;
  return true;
}

/// Handles a counter that was not stored as such: its old value has been used by the program.
void Observer::endStore(const Counter &counter) {
  PyObject *object = counter.object.get(), *key = counter.key.get();
  if (!counter.stored) {
    for (PyObject *each : {object, interpreter::instanceDict(object)})
      if (each)
        values.fixCounter(each, key);
    PyObject *slot = PyUnicode_Check(key) && !PyType_Check(object)
                         ? interpreter::typeLookup(Py_TYPE(object), key)
                         : nullptr;
    if (isSlot(slot))
      values.fixCounter(object, slot);
  }
  counting = nullptr;
}

/// Handles nn.Module's way of storing an attribute that is no parameter, buffer or module.
bool Observer::countsInModule(Frame &frame, PyObject *object, PyObject *name, PyObject *value) {
  static PyObject *own = nullptr, *const method = PyUnicode_InternFromString("__setattr__");
  if (!own) {
    PyTypeObject *kind = moduleType();
    own = kind ? Py_XNewRef(interpreter::typeLookup(kind, method)) : nullptr;
  }
  PyObject *setter = interpreter::typeLookup(Py_TYPE(object), method);
  if (!setter || setter != own || !values.isExternal(object) || !enterFunction(setter))
    return false;
  PyObject *found = interpreter::typeLookup(Py_TYPE(object), name);
  if (found && Py_TYPE(found)->tp_descr_set && !isSlot(found)) // a property, which is called
    return false;
  PyObject *attributes = interpreter::instanceDict(object);
  for (const char *each : {"_parameters", "_buffers", "_modules"}) {
    PyRef key = PyRef::steal(PyUnicode_InternFromString(each));
    PyObject *dict = attributes ? PyDict_GetItemWithError(attributes, key.get()) : nullptr;
    if (!dict || !PyDict_CheckExact(dict) || PyDict_GetItemWithError(dict, name) ||
        !readInstance(object, key.get()) || !values.readKey(dict, name))
      return false;
  }
  if (!setsAttribute(frame, object, name, value))
    return false;
  frame.pending.foreign = frame.pending.python = true;
  return true;
}

} // namespace weft::capture
