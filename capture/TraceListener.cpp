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
  PyRef isUsers, tensor, standIn, note, id;
  std::unordered_map<PyCodeObject *, bool> codes; // kept, so that no other has their address
};

Listener *listener = nullptr;

bool isHeard(PyCodeObject *code) {
  if (auto found = listener->codes.find(code); found != listener->codes.end())
    return found->second;
  // While it is asked, nothing is the user's.
  listener->codes.emplace((PyCodeObject *)Py_NewRef(code), false);
  PyObject *type, *value, *traceback; // of what is thrown into a generator
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

/// Of a list or tuple.
bool hasTensors(PyObject *items) {
  if (!PyList_Check(items) && !PyTuple_Check(items))
    return false;
  PyObject **first = PySequence_Fast_ITEMS(items);
  return std::any_of(first, first + PySequence_Fast_GET_SIZE(items), isTensor);
}

/// False with an error set.
bool replaceTensor(PyFrameObject *frame, PyObject *tensor) {
  PyObject *instead = PyObject_CallOneArg(listener->standIn.get(), tensor);
  if (instead)
    interpreter::replace(frame, 0, instead);
  return instead;
}

/// A call of a function or class, not of a method, with one argument.
int call(PyFrameObject *frame, std::span<PyObject *const> stack) {
  if (stack.size() < 3 || stack[stack.size() - 3] || !isTensor(stack.back()))
    return 0;
  PyObject *callable = stack[stack.size() - 2];
  if (callable == (PyObject *)&PyType_Type)
    return replaceTensor(frame, stack.back()) ? 0 : -1;
  return callable == listener->id.get() ? note(frame, "asks for the identity of a tensor") : 0;
}

int attribute(PyFrameObject *frame, PyObject *object, PyObject *name) {
  if (!isTensor(object) || PyUnicode_CompareWithASCIIString(name, "__class__") != 0)
    return 0;
  return replaceTensor(frame, object) ? 0 : -1;
}

int opcode(PyFrameObject *frame) {
  interpreter::Instruction at = interpreter::instruction(frame);
  std::span<PyObject *const> stack = interpreter::stack(frame);
  switch (at.opcode) {
  case PRECALL:
    return at.argument == 1 ? call(frame, stack) : 0;
  case LOAD_ATTR:
  case LOAD_METHOD:
    return attribute(frame, stack.back(),
                     PyTuple_GET_ITEM(interpreter::code(frame)->co_names, at.argument));
  case IS_OP:
    if (isTensor(stack.back()) && isTensor(stack[stack.size() - 2]))
      return note(frame, "asks whether two tensors are one");
    return 0;
  case CONTAINS_OP:
    if (isTensor(stack[stack.size() - 2]) && hasTensors(stack.back()))
      return note(frame, "looks for a tensor among others");
    return 0;
  default:
    return 0;
  }
}

int heard(PyObject *, PyFrameObject *frame, int event, PyObject *) {
  if (event == PyTrace_CALL)
    interpreter::watch(frame, true);
  return event == PyTrace_OPCODE ? opcode(frame) : 0;
}

} // namespace

PyObject *listenToTrace(PyObject *, PyObject *args) {
  PyObject *isUsers, *tensor, *standIn, *told;
  if (!PyArg_ParseTuple(args, "OO!OO", &isUsers, &PyType_Type, &tensor, &standIn, &told))
    return nullptr;
  PyRef builtins = PyRef::steal(PyImport_ImportModule("builtins"));
  PyRef id = PyRef::steal(builtins ? PyObject_GetAttrString(builtins.get(), "id") : nullptr);
  if (!id)
    return nullptr;
  listener = new Listener{PyRef::borrow(isUsers), PyRef::borrow(tensor), PyRef::borrow(standIn),
                          PyRef::borrow(told),    std::move(id),         {}};
  interpreter::hear(isHeard, heard);
  Py_RETURN_NONE;
}

} // namespace weft::capture
