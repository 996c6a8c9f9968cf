// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/TraceListener.h"

#include "capture/Interpreter.h"
#include "capture/PyRef.h"

#include <algorithm>
#include <cstddef>
#include <opcode.h>
#include <span>
#include <unordered_map>

namespace weft::capture {

namespace {

struct Listener {
  PyRef isUsers, tensor, symbols, instead, standIn, valueOf, note, raised, callers, classOf;
  PyRef telling, ofFakes, warnings;
  PyRef id, isInstance, hasAttribute, getAttribute, format, repr, formatText; // builtins
  // They are kept alive, so that no other code has their address.
  std::unordered_map<PyCodeObject *, bool> codes;
};

Listener *listener = nullptr;

bool isUsersCode(PyCodeObject *code) {
  if (auto found = listener->codes.find(code); found != listener->codes.end())
    return found->second;
  // While the question is being asked, no code counts as the user's.
  listener->codes.emplace((PyCodeObject *)Py_NewRef(code), false);
  PyObject *type, *value, *traceback; // of an exception that is thrown into a generator
  PyErr_Fetch(&type, &value, &traceback);
  PyRef answer = PyRef::steal(PyObject_CallOneArg(listener->isUsers.get(), (PyObject *)code));
  if (!answer)
    PyErr_WriteUnraisable(listener->isUsers.get());
  PyErr_Restore(type, value, traceback);
  return listener->codes[code] = answer.get() == Py_True;
}

bool isTensor(PyObject *object) {
  return object && PyObject_TypeCheck(object, (PyTypeObject *)listener->tensor.get());
}

int note(PyFrameObject *frame, const char *what) {
  PyRef told = PyRef::steal(PyObject_CallFunction(listener->note.get(), "sO", what, frame));
  return told ? 0 : -1;
}

/// Whether a list or tuple contains tensors.
bool hasTensors(PyObject *items) {
  if (!PyList_Check(items) && !PyTuple_Check(items))
    return false;
  PyObject **first = PySequence_Fast_ITEMS(items);
  return std::any_of(first, first + PySequence_Fast_GET_SIZE(items), isTensor);
}

/// Whether the object itself is an item of the tuple.
bool isAmong(const PyRef &tuple, PyObject *object) {
  PyObject **first = PySequence_Fast_ITEMS(tuple.get());
  PyObject **end = first + PyTuple_GET_SIZE(tuple.get());
  return std::find(first, end, object) != end;
}

/// Whether it is a size whose value the trace does not know.
bool isSymbol(PyObject *object) {
  return object && isAmong(listener->symbols, (PyObject *)Py_TYPE(object));
}

/// Replaces a value on the stack by `function`'s result for it. -1 with an error set.
int put(PyFrameObject *frame, size_t below, const PyRef &function) {
  std::span<PyObject *const> stack = interpreter::stack(frame);
  PyObject *instead = PyObject_CallOneArg(function.get(), stack[stack.size() - 1 - below]);
  if (!instead)
    return -1;
  interpreter::replace(frame, below, instead);
  return 0;
}

/// Whether the call is a getattr of `__class__`.
bool asksForClass(PyObject *callable, std::span<PyObject *const> given) {
  return callable == listener->getAttribute.get() && given.size() > 1 &&
         PyUnicode_Check(given[1]) && PyUnicode_CompareWithASCIIString(given[1], "__class__") == 0;
}

/// Whether the attribute is one that only fake tensors have.
bool isOfFakes(PyObject *object, PyObject *name) {
  return isTensor(object) && PyUnicode_Check(name) &&
         PySet_Contains(listener->ofFakes.get(), name) == 1;
}

int noteName(PyFrameObject *frame, const char *what, PyObject *name) {
  PyRef told = PyRef::steal(PyUnicode_FromFormat(what, name));
  const char *text = told ? PyUnicode_AsUTF8(told.get()) : nullptr;
  return text ? note(frame, text) : -1;
}

/// Whether the function's result would reveal that the code is traced.
bool tellsOfTrace(PyObject *callable) {
  if (!PyFunction_Check(callable) && !PyCFunction_Check(callable))
    return false;
  return PySet_Contains(listener->telling.get(), callable) == 1;
}

/// No opcode event shows a call of `type` by C code, which is given another function instead.
void handOverType(PyFrameObject *frame, std::span<PyObject *const> given) {
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i] == (PyObject *)&PyType_Type)
      interpreter::replace(frame, given.size() - 1 - i, Py_NewRef(listener->classOf.get()));
}

int callOfFunction(PyFrameObject *frame, PyObject *callable, std::span<PyObject *const> given) {
  PyObject *first = given[0];
  size_t below = given.size() - 1;
  bool alone = given.size() == 1;
  if (callable == (PyObject *)&PyType_Type)
    return alone && (isTensor(first) || isSymbol(first)) ? put(frame, 0, listener->standIn) : 0;
  if (isAmong(listener->callers, callable))
    handOverType(frame, given);
  if (callable == listener->id.get())
    return isTensor(first) ? note(frame, "asks for the identity of a tensor") : 0;
  if (PyCFunction_Check(callable))
    if (PyObject *instead = PyDict_GetItemWithError(listener->instead.get(), callable)) {
      interpreter::replace(frame, given.size(), Py_NewRef(instead));
      return 0;
    }
  if (isTensor(first) && asksForClass(callable, given))
    return put(frame, below, listener->standIn);
  bool byName =
      callable == listener->hasAttribute.get() || callable == listener->getAttribute.get();
  if (byName && given.size() > 1 && isOfFakes(first, given[1]))
    return noteName(frame, "asks a tensor for %U", given[1]);
  if (!isSymbol(first))
    return 0;
  if (callable == listener->isInstance.get())
    return put(frame, below, listener->standIn);
  for (const PyRef *each :
       {&listener->hasAttribute, &listener->getAttribute, &listener->format, &listener->repr})
    if (callable == each->get())
      return put(frame, below, listener->valueOf);
  return callable == (PyObject *)&PyUnicode_Type ? put(frame, below, listener->valueOf) : 0;
}

int call(PyFrameObject *frame, std::span<PyObject *const> stack, size_t count) {
  if (stack.size() < count + 2)
    return 0;
  std::span<PyObject *const> given = stack.last(count);
  PyObject *method = stack[stack.size() - count - 2];
  PyObject *callable = stack[stack.size() - count - 1];
  if (tellsOfTrace(method ? method : callable))
    return note(frame, "asks whether it is traced");
  if (!method)
    return count ? callOfFunction(frame, callable, given) : 0;
  if (method != listener->formatText.get())
    return 0;
  for (size_t i = 0; i < count; ++i)
    if (isSymbol(given[i]) && put(frame, count - 1 - i, listener->valueOf) < 0)
      return -1;
  return 0;
}

/// Handles a call with its arguments in a tuple, and perhaps keywords in a dict.
int callOfMany(PyFrameObject *frame, std::span<PyObject *const> stack, bool hasKeywords) {
  size_t above = hasKeywords ? 2 : 1;
  PyObject *given = stack[stack.size() - above], *callable = stack[stack.size() - above - 1];
  bool asks = callable == (PyObject *)&PyType_Type || callable == listener->id.get();
  return asks && hasTensors(given) ? note(frame, "asks what a tensor is") : 0;
}

int attribute(PyFrameObject *frame, PyObject *object, PyObject *name) {
  if (isTensor(object) && PyUnicode_CompareWithASCIIString(name, "__dict__") == 0)
    return note(frame, "looks at all attributes of a tensor");
  if (isOfFakes(object, name))
    return noteName(frame, "asks a tensor for %U", name);
  // During a trace, warnings have filters of their own.
  if (object == listener->warnings.get() && PyUnicode_CompareWithASCIIString(name, "filters") == 0)
    return note(frame, "looks at the filters of warnings");
  if (PyUnicode_CompareWithASCIIString(name, "__class__") != 0)
    return 0;
  return isTensor(object) || isSymbol(object) ? put(frame, 0, listener->standIn) : 0;
}

/// Handles a value that is formatted or matched with a class. A size whose value the trace does not
/// know is known from then on.
int reveal(PyFrameObject *frame, std::span<PyObject *const> stack, size_t below) {
  return isSymbol(stack[stack.size() - 1 - below]) ? put(frame, below, listener->valueOf) : 0;
}

/// Whether a trace makes such an argument anew.
bool isRemade(PyObject *object) {
  return PyList_Check(object) || PyDict_Check(object) || PyTuple_Check(object) ||
         PyObject_HasAttrString((PyObject *)Py_TYPE(object), "__dataclass_fields__");
}

int compare(PyFrameObject *frame, PyObject *left, PyObject *right) {
  if (Py_TYPE(left) == Py_TYPE(right) && isRemade(left))
    return note(frame, "asks whether two containers are one");
  if (!isTensor(left) || !isTensor(right))
    return 0;
  PyRef told = PyRef::steal(PyObject_CallFunction(
      listener->note.get(), "sOOO", "asks whether two tensors are one", frame, left, right));
  return told ? 0 : -1;
}

int opcode(PyFrameObject *frame) {
  interpreter::Instruction at = interpreter::instruction(frame);
  std::span<PyObject *const> stack = interpreter::stack(frame);
  switch (at.opcode) {
  case PRECALL:
    return call(frame, stack, static_cast<size_t>(at.argument));
  case CALL_FUNCTION_EX:
    return callOfMany(frame, stack, at.argument & 1);
  case FORMAT_VALUE:
    return reveal(frame, stack, (at.argument & FVS_MASK) == FVS_HAVE_SPEC);
  case MATCH_CLASS:
    return reveal(frame, stack, 2);
  case LOAD_ATTR:
  case LOAD_METHOD:
    return attribute(frame, stack.back(),
                     PyTuple_GET_ITEM(interpreter::code(frame)->co_names, at.argument));
  case IS_OP:
    return compare(frame, stack[stack.size() - 2], stack.back());
  case CONTAINS_OP:
    if (isTensor(stack[stack.size() - 2]) && hasTensors(stack.back()))
      return note(frame, "looks for a tensor among others");
    return 0;
  default:
    return 0;
  }
}

/// Handles an error that reaches the user's code, which may catch it.
int raised(PyFrameObject *frame, PyObject *kind, PyObject *traceback) {
  PyRef told = PyRef::steal(
      PyObject_CallFunctionObjArgs(listener->raised.get(), kind, frame, traceback, nullptr));
  return told ? 0 : -1;
}

int onEvent(PyObject *, PyFrameObject *frame, int event, PyObject *argument) {
  if (event == PyTrace_CALL)
    interpreter::watch(frame, true);
  if (event == PyTrace_EXCEPTION)
    return raised(frame, PyTuple_GET_ITEM(argument, 0), PyTuple_GET_ITEM(argument, 2));
  return event == PyTrace_OPCODE ? opcode(frame) : 0;
}

} // namespace

PyObject *listenToTrace(PyObject *, PyObject *args) {
  PyObject *isUsers, *tensor, *symbols, *instead, *standIn, *valueOf, *told, *raised, *callers,
      *classOf, *telling, *ofFakes, *warnings;
  if (!PyArg_ParseTuple(args, "OO!O!O!OOOOO!OO!O!O", &isUsers, &PyType_Type, &tensor, &PyTuple_Type,
                        &symbols, &PyDict_Type, &instead, &standIn, &valueOf, &told, &raised,
                        &PyTuple_Type, &callers, &classOf, &PyFrozenSet_Type, &telling,
                        &PyFrozenSet_Type, &ofFakes, &warnings))
    return nullptr;
  PyRef builtins = PyRef::steal(PyImport_ImportModule("builtins"));
  auto of = [](PyObject *owner, const char *name) {
    return PyRef::steal(owner ? PyObject_GetAttrString(owner, name) : nullptr);
  };
  PyObject *own = builtins.get();
  listener = new Listener{PyRef::borrow(isUsers),
                          PyRef::borrow(tensor),
                          PyRef::borrow(symbols),
                          PyRef::borrow(instead),
                          PyRef::borrow(standIn),
                          PyRef::borrow(valueOf),
                          PyRef::borrow(told),
                          PyRef::borrow(raised),
                          PyRef::borrow(callers),
                          PyRef::borrow(classOf),
                          PyRef::borrow(telling),
                          PyRef::borrow(ofFakes),
                          PyRef::borrow(warnings),
                          of(own, "id"),
                          of(own, "isinstance"),
                          of(own, "hasattr"),
                          of(own, "getattr"),
                          of(own, "format"),
                          of(own, "repr"),
                          of((PyObject *)&PyUnicode_Type, "format"),
                          {}};
  if (PyErr_Occurred())
    return nullptr;
  interpreter::traceFrames(isUsersCode, onEvent);
  Py_RETURN_NONE;
}

} // namespace weft::capture
