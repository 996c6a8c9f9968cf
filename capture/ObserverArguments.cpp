// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arguments of the call that is observed, and how it is given copies of numbers among them.
// Numbers in arguments and in what these hold are known by the texts that tell where they are.
#include "capture/Observer.h"
#include "capture/Plain.h"

namespace weft::capture {

std::vector<Site> Guards::movedArguments(const CallArguments &call) const {
  std::vector<Site> sites;
  if (!hasForm(call))
    return sites;
  Registers registers(registerCount + 1);
  for (const Check &check : checks) {
    const Expected &expected = check.expected;
    bool within = (check.kind == Kind::InstanceItem || check.kind == Kind::DictItem ||
                   check.kind == Kind::Item || check.kind == Kind::Member) &&
                  check.owner.reg >= 0;
    if ((check.kind == Kind::Argument || within) && expected.kind == Expected::Equal &&
        isNumberInput(expected.value.get())) {
      Check load = check;
      load.expected = {Expected::Load, {}, registerCount};
      if (!holds(load, call, registers))
        return sites;
      PyObject *found = registers.back().get();
      if (!isNumberInput(found) || plainEqual(expected.value.get(), found))
        continue;
      if (PyRef text = PyRef::steal(PyUnicode_FromString(check.name.c_str())))
        sites.push_back({Place::Argument, 0, std::move(text)});
      PyErr_Clear();
    } else if (!holds(check, call, registers) && check.kind != Kind::Tensor) {
      return sites; // later checks look into what this one has not found
    }
  }
  return sites;
}

bool Observer::enterCall(PyObject *target, PyObject *args, PyObject *kwargs) {
  frames.push_back({nullptr, {}, {}, nullptr});
  std::vector<PyObject *> given;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    given.push_back(PyTuple_GET_ITEM(args, i));
  PyRef names = PyRef::steal(PyList_New(0));
  PyObject *key, *value;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &key, &value);) {
    given.push_back(value);
    if (PyList_Append(names.get(), key) < 0)
      return false;
  }
  names = PyRef::steal(PyList_AsTuple(names.get()));
  Py_ssize_t positional = PyTuple_GET_SIZE(args);
  guards.arguments(positional, names.get());
  if (!values.pin(target, PyFunction_Check(target) ? nameOf(target) : "self"))
    return false;
  for (size_t i = 0; i < given.size(); ++i) {
    Py_ssize_t number = static_cast<Py_ssize_t>(i);
    PyObject *keyword =
        number < positional ? nullptr : PyTuple_GET_ITEM(names.get(), number - positional);
    std::string name = keyword ? PyUnicode_AsUTF8(keyword) : "args[" + std::to_string(i) + "]";
    if (PyRef copy = values.enterNumberArgument(number, given[i], name)) {
      given[i] = copy.get();
      if (!giveInstead(number, keyword, std::move(copy), args, kwargs))
        return false;
    } else if (!values.enterArgument(number, given[i], name)) {
      return false;
    }
  }
  bool entered = call(frames.back(), target, given, names.get());
  frames.back().pending.then = Then::Nothing;
  frames.back().pending.python = true;
  return entered && !values.failed();
}

/// Lets the call have another object for an argument, with its keyword, or null for a positional
/// one.
bool Observer::giveInstead(Py_ssize_t number, PyObject *keyword, PyRef object, PyObject *args,
                           PyObject *kwargs) {
  if (keyword) {
    if (!givenKwargs)
      givenKwargs = PyRef::steal(PyDict_Copy(kwargs));
    return givenKwargs && PyDict_SetItem(givenKwargs.get(), keyword, object.get()) == 0;
  }
  if (!givenArgs) { // a slice of all of it would be the tuple itself
    givenArgs = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(args)));
    for (Py_ssize_t i = 0; givenArgs && i < PyTuple_GET_SIZE(args); ++i)
      PyTuple_SET_ITEM(givenArgs.get(), i, Py_NewRef(PyTuple_GET_ITEM(args, i)));
  }
  if (!givenArgs)
    return false;
  PyObject *before = PyTuple_GET_ITEM(givenArgs.get(), number);
  PyTuple_SET_ITEM(givenArgs.get(), number, object.release());
  Py_DECREF(before);
  return true;
}

} // namespace weft::capture
