// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NumPy. Its functions are operations, whose own Python code is not observed, since they read only
// their arguments. Arrays from outside are read again by each replay, and what the call writes to
// them is put back as other state is. A log with such writes is replayed as it is.
#include "capture/Arrays.h"
#include "capture/Observer.h"
#include "capture/Plain.h"

#include <algorithm>

namespace weft::capture {

bool Observer::callArrays(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  std::string what = nameOf(callable);
  bool plain = true;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    for (const char *each : {"out", "initial", "where", "like"})
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), each) == 0) {
        size_t at = arguments.size() - static_cast<size_t>(PyTuple_GET_SIZE(names) - i);
        if (each[0] != 'o' || !isArray(arguments[at]))
          return values.fail(what + " with " + each);
        if (!writesArray(arguments[at]))
          return false;
      }
  // Finds where the function takes an array to write to.
  size_t positional = arguments.size() - (names ? PyTuple_GET_SIZE(names) : 0);
  // The number of a ufunc's inputs.
  PyRef inputs = PyRef::steal(PyObject_GetAttrString(callable, "nin"));
  PyErr_Clear();
  if (inputs && PyLong_AsLong(inputs.get()) < static_cast<long>(positional))
    return values.fail(what + " with a result to write to");
  for (size_t i = 2; i < positional; ++i)
    if (isArray(arguments[i]) && what != "where" && what != "interp" && what != "einsum" &&
        callable != operators().setItem)
      return values.fail(what + " with a result to write to");
  if (what == "nan_to_num" && arguments.size() > 1) // it may write to its argument
    return values.fail(what + " with more than one argument");
  for (PyObject *each : arguments) {
    plain &= !values.mayDiffer(each) && isPlainWithin(each);
    if (values.failed())
      return false;
    if (isTensor(each)) // Tensor.__array__ is a function in Python
      guardMethods(each, {"__array__", "__array_priority__", "__array_wrap__", "__array_ufunc__"});
  }
  if (!operation(frame, callable, arguments, names))
    return false;
  frame.pending.nested = frame.pending.foreign = true;
  frame.pending.pure = plain;
  return true;
}

/// Keeps the generator's state, which is put back if a replay is broken off.
bool Observer::keepGenerator(PyObject *generator) {
  if (!values.isExternal(generator) || std::ranges::find(generators, generator) != generators.end())
    return true;
  generators.push_back(generator);
  return !nodes && keepState(generator, nullptr);
}

/// Handles torch.manual_seed, which gives torch's own generator, and numpy.random.seed.
bool Observer::seeds(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  bool arrays = callable == operators().seedArrays;
  PyObject *own = arrays ? operators().arrayGenerator : operators().defaultGenerator;
  if (arguments.size() != 1 || !PyLong_CheckExact(arguments[0]) || nodes ||
      !values.pin(own, arrays ? "numpy.random's generator" : "torch.default_generator") ||
      !keepGenerator(own) || !operation(frame, callable, arguments, names))
    return values.fail(nameOf(callable) + " of " + shown(arguments.empty() ? own : arguments[0]));
  if (PyFunction_Check(callable))
    guards.function(callable);
  frame.pending.nested = frame.pending.foreign = true;
  return true;
}

bool Observer::draws(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  std::string what = nameOf(callable);
  PyObject *generator = arguments.empty() ? nullptr : arguments[0];
  if (!generator || !(values.isExternal(generator) || values.isKept(generator)) || nodes)
    return values.fail(what + " of " + shown(generator));
  // Methods of NumPy's may be given an array to write to.
  for (size_t i = 3; i < arguments.size() - (names ? PyTuple_GET_SIZE(names) : 0); ++i)
    if (isArray(arguments[i]))
      return values.fail(what + " with a result to write to");
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "out") == 0)
      return values.fail(what + " with a result to write to");
  bool known = false;
  for (PyObject *each : generators)
    known |= each == generator;
  Record record;
  record.callable = PyRef::borrow(callable);
  record.names = PyRef::borrow(names);
  for (PyObject *each : arguments) {
    if (each != generator && !values.isOperand(each))
      return values.fail(what + " of " + shown(each));
    std::optional<Form> form = values.form(each);
    if (!form)
      return false;
    record.arguments.push_back(std::move(*form));
  }
  if (!known && !keepState(generator, nullptr))
    return false;
  generators.push_back(generator);
  frame.pending.record = std::move(record);
  frame.pending.nested = frame.pending.foreign = true;
  frame.pending.number = true;
  return expect(frame, Then::Append, true, std::move(what));
}

bool Observer::wasWritten(PyObject *array) {
  for (PyRef each = PyRef::borrow(array); each && isArray(each.get());
       each = PyRef::steal(PyObject_GetAttrString(each.get(), "base")))
    if (std::ranges::any_of(writtenArrays,
                            [&](const PyRef &other) { return other.get() == each.get(); }))
      return true;
  return false;
}

bool Observer::writesArray(PyObject *array) {
  // A view of an array that the call has made, or of one from outside.
  PyRef whole = PyRef::borrow(array);
  while (!values.isExternal(whole.get()) && !ownsMemory(whole.get())) {
    whole = PyRef::steal(PyObject_GetAttrString(whole.get(), "base"));
    if (!whole || !isArray(whole.get()))
      return values.fail("writes to the memory of what is no array");
  }
  if (!values.find(whole.get()) || nodes)
    return values.fail("writes to an array of unknown origin");
  if (!values.isExternal(whole.get()) || wasWritten(whole.get()))
    return true;
  writtenArrays.push_back(whole);
  return keepState(whole.get(), nullptr);
}

bool Observer::readArray(Frame &frame, PyObject *array) {
  PyRef dims = PyRef::steal(PyObject_GetAttrString(array, "ndim"));
  PyRef size = PyRef::steal(PyObject_GetAttrString(array, "size"));
  PyRef list = PyRef::steal(PyObject_CallMethod(array, "tolist", nullptr));
  if (!dims || !size || !list || PyLong_AsLong(dims.get()) != 1 || PyLong_AsLong(size.get()) > 4096)
    return values.fail("iterates over an array of more dims or of many items");
  if (!operation(frame, operators().toList, Arguments(&array, 1), nullptr))
    return false;
  bool read = appendRecord(frame, list.get());
  frame.pending = {};
  return read;
}

bool Observer::arrayAttribute(Frame &frame, PyObject *array, PyObject *name) {
  for (const char *each : {"shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides"})
    if (PyUnicode_CompareWithASCIIString(name, each) == 0)
      return expect(frame, Then::Plain, false, "metadata");
  PyObject *found = interpreter::typeLookup(Py_TYPE(array), name);
  if (found && Py_TYPE(found) == &PyMethodDescr_Type)
    return true;
  PyObject *arguments[] = {array, name};
  for (const char *each : {"T", "real", "imag"})
    if (PyUnicode_CompareWithASCIIString(name, each) == 0)
      return operation(frame, operators().getAttribute, arguments, nullptr);
  return values.fail("reads an array's " + std::string(PyUnicode_AsUTF8(name)));
}

} // namespace weft::capture
