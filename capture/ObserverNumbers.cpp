// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers as inputs: a number at a place that the program itself sets in each call, such as the
// steps that a decay depends on. It is loaded as what arguments bring. The frame goes on with a
// copy of it at an address of its own, by which it is known wherever it goes; what operations on
// numbers make of it has such an address too. Whatever else looks at one makes it a guarded
// constant.
#include "capture/Observer.h"
#include "capture/Plain.h"

namespace weft::capture {

// Values.

void Values::loadNumber(Site &site, const Owner &owner, PyObject *found, const std::string &name) {
  site.loaded = true;
  site.number = static_cast<int>(numberInputs.size());
  int reg = guards.newRegister();
  numberInputs.push_back({site.place, owner, site.key, PyRef::borrow(found), name, reg});
  guardAt(site.place, owner, owner.object.get(), site.key.get(), {Expected::Load, {}, reg}, name);
  guards.type({reg, {}}, Py_TYPE(found), name);
  pushNumber(site.number);
}

void Values::pushNumber(int input) {
  if (pushed >= 0)
    fixNumber(pushed);
  pushed = pushes ? input : -1;
  if (!pushes)
    fixNumber(input);
}

/// The program depends on what it is.
void Values::fixNumber(int input) {
  NumberInput &number = numberInputs[input];
  if (!std::exchange(number.fixed, true))
    guardAt(number.place, number.owner, number.owner.object.get(), number.key.get(),
            {Expected::Equal, number.original, -1}, number.name);
}

void Values::fixWithin(PyObject *object, int lists) {
  if (numbers.empty() || !object)
    return;
  if (auto found = numbers.find(object); found != numbers.end()) {
    if (std::exchange(found->second.fixed, true))
      return;
    if (found->second.input >= 0)
      fixNumber(found->second.input);
    else
      log.fix(found->second.record);
  } else if (PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      fixWithin(PyTuple_GET_ITEM(object, i), lists);
  } else if (PySlice_Check(object)) {
    auto *slice = reinterpret_cast<PySliceObject *>(object);
    for (PyObject *each : {slice->start, slice->stop, slice->step})
      fixWithin(each, lists);
  } else if (PyList_CheckExact(object) && lists > 0) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i)
      fixWithin(PyList_GET_ITEM(object, i), lists - 1);
  }
}

PyRef Values::takePushed(PyObject *top) {
  int input = std::exchange(pushed, -1);
  if (input < 0 || numberInputs[input].fixed)
    return {};
  PyRef copy;
  if (top == numberInputs[input].original.get())
    copy = PyRef::steal(interpreter::ownNumber(top));
  if (!copy) {
    fixNumber(input);
    return {};
  }
  Number number{copy, -1, 0};
  number.input = input;
  number.original = numberInputs[input].original;
  numbers.emplace(copy.get(), std::move(number));
  return copy;
}

PyObject *Values::originalOf(PyObject *number) const {
  auto found = numbers.find(number);
  return found == numbers.end() ? nullptr : found->second.original.get();
}

// The observer.

/// What a load has left on the stack.
void Observer::takeNumber(Frame &frame) {
  std::span<PyObject *const> stack = interpreter::stack(frame.frame);
  if (PyRef copy = values.takePushed(stack.empty() ? nullptr : stack.back()))
    interpreter::replace(frame.frame, 0, copy.release());
}

/// What an operation on numbers that may be others has given, at an address of its own: the least
/// of two is one of them.
PyObject *Observer::ownResult(Frame &frame, PyObject *top) {
  if (!frame.pending.numeric || nodes || !isNumberInput(top))
    return top;
  PyObject *copy = interpreter::ownNumber(top);
  if (!copy)
    return top;
  interpreter::replace(frame.frame, 0, copy);
  return copy;
}

/// Identities are those of the objects themselves.
void Observer::compareOriginals(Frame &frame) {
  for (size_t below : {0, 1}) {
    std::span<PyObject *const> stack = interpreter::stack(frame.frame);
    PyObject *number = stack[stack.size() - 1 - below];
    if (!values.isNumber(number))
      continue;
    values.isPlain(number);
    if (PyObject *original = values.originalOf(number))
      interpreter::replace(frame.frame, below, Py_NewRef(original));
    else if (int overflows = 0; PyLong_CheckExact(number)) // small ones are shared
      if (long value = PyLong_AsLongAndOverflow(number, &overflows); !overflows)
        interpreter::replace(frame.frame, below, PyLong_FromLong(value));
  }
}

} // namespace weft::capture
