// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions whose own code is not observed, while the functions that they call are: those that
// torch.compile is told to leave alone, including checkpoints, and functools.singledispatch; and
// functions that C would call, for which functions in Python are called.
#include "capture/Observer.h"
#include "capture/Plain.h"

#include <algorithm>
#include <opcode.h>

namespace weft::capture {

static PyObject *cellOf(PyObject *function, const char *name) {
  auto *made = reinterpret_cast<PyFunctionObject *>(function);
  PyRef names = PyRef::steal(PyCode_GetFreevars((PyCodeObject *)made->func_code));
  for (Py_ssize_t i = 0; names && made->func_closure && i < PyTuple_GET_SIZE(names.get()); ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names.get(), i), name) == 0)
      return PyTuple_GET_ITEM(made->func_closure, i);
  return nullptr;
}

bool Observer::callDisabled(Frame &frame, PyObject *function, Arguments arguments,
                            PyObject *names) {
  static PyObject *const kept = PyUnicode_InternFromString("__dynamo_disable");
  PyObject *cell = cellOf(function, "fn");
  PyRef inner =
      PyRef::steal(PyObject_CallOneArg(operators().disabled, function)); // made if there is none
  PyErr_Clear();
  if (!cell || !inner || !PyFunction_Check(inner.get()) || PyCell_GET(cell) != inner.get() ||
      values.isFresh(function))
    return values.fail("calls " + nameOf(function) + ", which torch.compile leaves alone");
  if (!enterFunction(function) || !values.readCell(cell, "fn") ||
      !values.readAttribute(inner.get(), kept,
                            PyDict_GetItemWithError(interpreter::instanceDict(inner.get()), kept)))
    return false;
  if (inner.get() == operators().checkpoint)
    return callCheckpoint(frame, arguments, names);
  expect(frame, Then::Usable, true);
  frame.pending.foreign = true;
  frame.pending.through = inner.get(); // the program keeps it alive
  return carries(frame);
}

bool Observer::mayBeCalledInPython(PyObject *function) {
  if (PyFunction_Check(function) || PyMethod_Check(function) || !values.isUsable(function))
    return false;
  Kind kind = kindOf(function), made = kindOf((PyObject *)Py_TYPE(function));
  switch (kind) {
  case Kind::None:
    return made == Kind::Getter || made == Kind::Partial || runsPython(function) ||
           (PyType_Check(function) &&
            PyType_HasFeature((PyTypeObject *)function, Py_TPFLAGS_HEAPTYPE));
  case Kind::Pure:
  case Kind::Types:
  case Kind::Builds:
  case Kind::Operation:
  case Kind::InPlace:
  case Kind::Metadata:
  case Kind::Length:
  case Kind::Fold:
  case Kind::Any:
  case Kind::Arrays:
  case Kind::IsInstance:
    return true;
  default:
    return false;
  }
}

PyObject *Observer::calledInPython(Frame &frame, PyObject *function, PyObject *maker) {
  interpreter::Instruction instruction = interpreter::instruction(frame.frame);
  std::span<PyObject *const> stack = interpreter::stack(frame.frame);
  size_t operands = static_cast<size_t>(instruction.argument) + 2; // with what is called
  bool mayBe = maker == operators().testedInPython // what a bound method holds has no guard there
                   ? function == Py_None || (PyFunction_Check(function) && values.find(function))
                   : mayBeCalledInPython(function);
  if (instruction.opcode != CALL || !mayBe || operands > stack.size())
    return nullptr;
  auto place = std::ranges::find(stack.last(operands), function);
  PyRef made = PyRef::steal(PyObject_CallOneArg(maker ? maker : operators().inPython, function));
  PyErr_Clear();
  if (place == stack.end() || !made || !values.fixIdentity(function))
    return nullptr;
  if (!values.isFresh(function) && !enterFunction(made.get()))
    return nullptr;
  if (values.isFresh(function)) { // and so are the arguments that it keeps
    PyObject *key, *each, *kept = ((PyFunctionObject *)made.get())->func_kwdefaults;
    values.enterFresh(made.get());
    for (Py_ssize_t at = 0; PyDict_Next(kept, &at, &key, &each);)
      if (PyDict_CheckExact(each))
        values.enterFresh(each);
  }
  PyObject *result = made.get();
  size_t below = static_cast<size_t>(stack.end() - place) - 1;
  interpreter::replace(frame.frame, below, made.release());
  return result;
}

bool Observer::foldsByLoop(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  static PyObject *const start = Py_BuildValue("(s)", "start");
  bool adds = nameOf(callable) == "sum";
  PyObject *items = arguments.empty() ? nullptr : arguments[0];
  bool known = arguments.size() == 1 || (adds && arguments.size() == 2);
  if (!known || (names && (!adds || !plainEqual(names, start))))
    return false;
  bool listed = !adds && (PyList_CheckExact(items) || PyTuple_CheckExact(items)), tensors = false;
  for (Py_ssize_t i = 0; listed && i < Py_SIZE(items); ++i)
    tensors |= isTensor(itemAt(items, i).get());
  if (!tensors && !(values.isFresh(items) && PyIter_Check(items)))
    return false;
  PyRef replaced = PyRef::borrow(callable);
  PyObject *loop = calledInPython(frame, replaced.get(), operators().foldedInPython);
  return loop && call(frame, loop, arguments, names);
}

/// Dataclasses have their `__repr__` within a function that keeps an object that holds itself from
/// being told for ever.
bool Observer::asksMethod(Frame &frame, PyObject *function, const std::string &what) {
  expect(frame, Then::Python, true, what);
  if (((PyFunctionObject *)function)->func_code != operators().reprCode)
    return true;
  PyObject *cell = cellOf(function, "user_function");
  PyObject *inner = cell ? PyCell_GET(cell) : nullptr;
  if (!inner || !PyFunction_Check(inner) || values.isFresh(function) || !enterFunction(function) ||
      !values.readCell(cell, "user_function"))
    return values.fail(what + " of " + nameOf(function));
  frame.pending.foreign = true;
  frame.pending.through = inner;
  return true;
}

/// torch.utils.checkpoint without reentrance, of a function whose operations record no gradients.
/// Then the only other thing that it does is to note what a backward would need.
bool Observer::callCheckpoint(Frame &frame, Arguments arguments, PyObject *names) {
  bool plain = false;
  size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  for (size_t i = 0; i < named; ++i) {
    PyObject *name = PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i));
    for (const char *each : {"context_fn", "determinism_check", "debug", "early_stop"})
      if (PyUnicode_CompareWithASCIIString(name, each) == 0)
        return values.fail("a checkpoint with " + std::string(each));
    if (PyUnicode_CompareWithASCIIString(name, "use_reentrant") == 0)
      plain = arguments[arguments.size() - named + i] == Py_False;
  }
  PyObject *function = arguments.size() > named ? arguments[0] : nullptr;
  if (!plain || !function || !runsPython(function))
    return values.fail("a checkpoint that is reentrant, or not of Python code");
  static PyObject *const called = PyUnicode_InternFromString("__call__");
  expect(frame, Then::Python, true, "a checkpoint");
  frame.pending.foreign = frame.pending.checkpoint = true;
  frame.pending.through = PyMethod_Check(function) ? PyMethod_GET_FUNCTION(function)
                          : PyFunction_Check(function)
                              ? function
                              : interpreter::typeLookup(Py_TYPE(function), called);
  return carries(frame);
}

bool Observer::isWithinCheckpoint() const {
  return std::ranges::any_of(frames, [](const Frame &each) { return each.pending.checkpoint; });
}

/// If classes do not decide themselves what derives from them, the result depends only on the
/// registered classes.
bool Observer::callDispatch(Frame &frame, PyObject *function, Arguments arguments) {
  PyObject *cell = cellOf(function, "registry");
  if (!cell || arguments.size() != 1 || !PyType_Check(arguments[0]) || values.isFresh(function) ||
      !enterFunction(function) || !values.readCell(cell, "registry"))
    return values.fail("calls " + nameOf(function));
  PyObject *registry = PyCell_GET(cell), *key, *found;
  if (!registry || !PyDict_CheckExact(registry) || !values.readWhole(registry))
    return values.fail("calls " + nameOf(function));
  for (Py_ssize_t at = 0; PyDict_Next(registry, &at, &key, &found);)
    if (Py_TYPE(key) != &PyType_Type || !PyFunction_Check(found))
      return values.fail("chooses a function by " + shown(key));
  if (PyType_HasFeature((PyTypeObject *)arguments[0], Py_TPFLAGS_HEAPTYPE))
    guards.bases((PyTypeObject *)arguments[0]);
  frame.pending.foreign = true;
  return expect(frame, Then::Usable, true, nameOf(function));
}

} // namespace weft::capture
