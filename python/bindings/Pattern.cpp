// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/Pattern.h"
#include "python/bindings/Description.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstring>

namespace nb = nanobind;

namespace weft {

Pattern::Pattern(PyObject *description) {
  Py_ssize_t size = PyTuple_Check(description) ? PyTuple_GET_SIZE(description) : 0;
  if (size < 2)
    throw nb::type_error("expected a pattern's description");
  kind = static_cast<Kind>(nb::cast<int>(nb::handle(PyTuple_GET_ITEM(description, 0))));
  switch (kind) {
  case Tensor:
    slot = nb::cast<size_t>(nb::handle(PyTuple_GET_ITEM(description, 1)));
    return;
  case Value:
    object = item(description, 1);
    return;
  case Tuple:
  case List:
    children = parseChildren<Pattern>(PyTuple_GET_ITEM(description, 1));
    return;
  case Dict:
    object = item(description, 1);
    children = parseChildren<Pattern>(PyTuple_GET_ITEM(description, 2));
    return;
  case Node:
    object = item(description, 1);
    flatten = item(description, 2);
    context = item(description, 3);
    children = parseChildren<Pattern>(PyTuple_GET_ITEM(description, 4));
    if (size > 5)
      slot = 1 + nb::cast<size_t>(nb::handle(PyTuple_GET_ITEM(description, 5)));
    return;
  }
  throw nb::value_error("expected a kind of pattern");
}

// Equality that tells 1 from True and 1.0, 0.0 from -0.0, and finds a NaN equal to itself.
static bool sameValue(PyObject *value, PyObject *expected) {
  if (value == expected)
    return true;
  if (Py_TYPE(value) != Py_TYPE(expected))
    return false;
  if (PyFloat_CheckExact(value)) {
    double a = PyFloat_AS_DOUBLE(value), b = PyFloat_AS_DOUBLE(expected);
    return std::memcmp(&a, &b, sizeof(double)) == 0;
  }
  int same = PyObject_RichCompareBool(value, expected, Py_EQ);
  if (same < 0)
    PyErr_Clear();
  return same == 1;
}

size_t Pattern::numbers() const {
  size_t most = kind == Node ? slot : 0;
  for (const Pattern &child : children)
    most = std::max(most, child.numbers());
  return most;
}

bool Pattern::match(PyObject *candidate, std::vector<PyRef> &slots) const {
  switch (kind) {
  case Tensor:
    slots[slot] = PyRef::borrow(candidate);
    return true;
  case Value:
    return sameValue(candidate, object.get());
  case Tuple:
    if (!PyTuple_CheckExact(candidate) ||
        PyTuple_GET_SIZE(candidate) != static_cast<Py_ssize_t>(children.size()))
      return false;
    for (size_t i = 0; i < children.size(); ++i)
      if (!children[i].match(PyTuple_GET_ITEM(candidate, i), slots))
        return false;
    return true;
  case List:
    if (!PyList_CheckExact(candidate))
      return false;
    for (size_t i = 0; i < children.size(); ++i)
      // The length is read anew: a registered node below may run user code.
      if (i >= static_cast<size_t>(PyList_GET_SIZE(candidate)) ||
          !children[i].match(PyRef::borrow(PyList_GET_ITEM(candidate, i)).get(), slots))
        return false;
    return PyList_GET_SIZE(candidate) == static_cast<Py_ssize_t>(children.size());
  case Dict:
    return matchDict(candidate, slots);
  case Node:
    return matchNode(candidate, slots);
  }
  return false;
}

// Order counts: a function may iterate over the dict.
bool Pattern::matchDict(PyObject *candidate, std::vector<PyRef> &slots) const {
  if (!PyDict_CheckExact(candidate) ||
      PyDict_GET_SIZE(candidate) != static_cast<Py_ssize_t>(children.size()))
    return false;
  PyObject *key, *value;
  Py_ssize_t position = 0;
  for (size_t i = 0; i < children.size(); ++i) {
    if (!PyDict_Next(candidate, &position, &key, &value))
      return false;
    PyRef held = PyRef::borrow(value);
    if (!sameValue(key, PyTuple_GET_ITEM(object.get(), i)) || !children[i].match(held.get(), slots))
      return false;
  }
  return true;
}

bool Pattern::matchNode(PyObject *candidate, std::vector<PyRef> &slots) const {
  if ((PyObject *)Py_TYPE(candidate) != object.get())
    return false;
  PyRef flat = PyRef::steal(PyObject_CallOneArg(flatten.get(), candidate));
  if (!flat || !PyTuple_Check(flat.get()) || PyTuple_GET_SIZE(flat.get()) != 2) {
    PyErr_Clear();
    return false;
  }
  int same = PyObject_RichCompareBool(PyTuple_GET_ITEM(flat.get(), 1), context.get(), Py_EQ);
  PyRef parts = PyRef::steal(PySequence_Fast(PyTuple_GET_ITEM(flat.get(), 0), "children"));
  if (same != 1 || !parts ||
      PySequence_Fast_GET_SIZE(parts.get()) != static_cast<Py_ssize_t>(children.size())) {
    PyErr_Clear();
    return false;
  }
  for (size_t i = 0; i < children.size(); ++i)
    if (!children[i].match(PySequence_Fast_GET_ITEM(parts.get(), i), slots))
      return false;
  if (slot)
    slots[slots.size() - slot] = PyRef::borrow(candidate);
  return true;
}

int Pattern::traverse(visitproc visit, void *arg) const {
  Py_VISIT(object.get());
  Py_VISIT(flatten.get());
  Py_VISIT(context.get());
  for (const Pattern &child : children)
    if (int status = child.traverse(visit, arg))
      return status;
  return 0;
}

} // namespace weft
