// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What C compares in order to sort or to find the least item: plain values, what a key function
// gives, or objects whose classes in Python compare them.
#include "capture/Arrays.h"
#include "capture/Observer.h"
#include "capture/Plain.h"

namespace weft::capture {

static bool isNamed(PyObject *names, const char *name) {
  return PyTuple_GET_SIZE(names) == 1 &&
         PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), name) == 0;
}

/// The builtin `sorted`.
bool Observer::sorts(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  std::string what = nameOf(callable);
  bool ofArray = arguments.size() == (names ? 2 : 1) && isArray(arguments[0]);
  if (ofArray && (!names || (isNamed(names, "reverse") && isPlain(arguments.back()))))
    return callArrays(frame, callable, arguments, names);
  auto allPlain = [&] {
    for (PyObject *each : arguments)
      if (!isPlainWithin(each))
        return values.fail(what + " of " + shown(each));
    return true;
  };
  if (arguments.size() == 1 && foldsInPython(arguments[0], false)) {
    frame.pending.yields = Pending::Yields::Plain; // what a comparison gives is tested for truth
    return carries(frame) && expect(frame, Then::Fresh, true, what);
  }
  if (!arguments.empty() && isDict(arguments[0]) && (!names || isNamed(names, "reverse"))) {
    PyRef keys = values.readWhole(arguments[0]) ? keysOf(arguments[0]) : PyRef();
    return (keys && isPlain(keys.get()) && isPlain(arguments.back()) == (names != nullptr) &&
            expect(frame, Then::Made, false, what)) ||
           values.fail(what + " of " + shown(arguments[0]));
  }
  if (!sortsByKey(arguments, names))
    return (getsKeys(frame, arguments, names) || allPlain()) &&
           expect(frame, Then::Made, false, what);
  if (!readIterable(frame, arguments[0]))
    return false;
  frame.pending.yields = Pending::Yields::Keys;
  frame.pending.carries = true;
  return (givesToKeys(arguments[0]) || values.fail(what + " of " + shown(arguments[0]))) &&
         expect(frame, Then::Fresh, true, what);
}

/// Whether C takes the items from the object without functions in Python, whose results would be
/// taken for those of the key function.
bool Observer::givesToKeys(PyObject *object) {
  return isPlain(object) || isArray(object) || isDict(object) || PyList_CheckExact(object) ||
         PyTuple_CheckExact(object) ||
         (values.isFresh(object) &&
          (PyDictItems_Check(object) || PyDictKeys_Check(object) || PyDictValues_Check(object) ||
           PyAnySet_CheckExact(object) || Py_TYPE(object) == &PyZip_Type ||
           Py_TYPE(object) == &PyEnum_Type || Py_TYPE(object) == &PyReversed_Type ||
           Py_TYPE(object) == &PyMap_Type || PyGen_CheckExact(object)));
}

/// Whether it is a method that looks plain values up in a plain container, whose contents are read.
bool Observer::looksUp(PyObject *method) {
  PyObject *self = PyCFunction_CheckExact(method) ? PyCFunction_GET_SELF(method) : nullptr;
  if (!self || !(PyDict_CheckExact(self) || PyList_CheckExact(self)))
    return false;
  std::string_view name = reinterpret_cast<PyCFunctionObject *>(method)->m_ml->ml_name;
  return (name == "get" || name == "__getitem__" || name == "index" || name == "count") &&
         isPlainWithin(self);
}

/// list.sort, and the functions of heapq and bisect.
bool Observer::orders(Frame &frame, Arguments arguments, PyObject *names, const std::string &what) {
  PyObject *list = arguments.empty() ? nullptr : arguments[0];
  if (!list || !PyList_CheckExact(list) || !values.isFresh(list))
    return values.fail(what + " of " + shown(list));
  if (what == "list.sort" && getsKeys(frame, arguments, names))
    return expect(frame, Then::Plain, false, what);
  if (what == "list.sort" && sortsByKey(arguments, names)) {
    frame.pending.yields = Pending::Yields::Plain;
    return carries(frame) && expect(frame, Then::Plain, true, what);
  }
  for (PyObject *each : arguments)
    if (!isPlainWithin(each))
      return values.fail(what + " of " + shown(each));
  return expect(frame, Then::Plain, false, what);
}

/// Whether the lengths of all items are known: those of tensors follow from their sizes.
bool Observer::knowsLengths(PyObject *items) {
  bool known = (PyList_CheckExact(items) || PyTuple_CheckExact(items)) && values.readWhole(items);
  for (Py_ssize_t i = 0; known && i < Py_SIZE(items); ++i) {
    PyObject *each = itemAt(items, i).get();
    known = isTensor(each) || isPlain(each) ||
            ((PyList_CheckExact(each) || PyTuple_CheckExact(each) || PyDict_CheckExact(each)) &&
             values.isUsable(each) && values.readLength(each));
    if (known && isTensor(each)) {
      guardMethods(each, {"__len__"});
      noteMetadata("shape");
    }
  }
  return known;
}

/// Whether one list is sorted, and by what a function in Python gives for its items.
bool Observer::sortsByKey(Arguments arguments, PyObject *names) {
  Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
  bool key = count > 0 && count <= 2 && arguments.size() - static_cast<size_t>(count) == 1;
  for (Py_ssize_t i = 0; key && i < count; ++i) {
    PyObject *given = arguments[static_cast<size_t>(i) + 1];
    key = PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "key") == 0
              ? PyFunction_Check(given) || PyMethod_Check(given) || isComparison(given) ||
                    (kindOf(given) == Kind::Length && knowsLengths(arguments[0]))
              : isPlain(given);
  }
  return key;
}

/// Whether C compares items by plain keys that an operator.itemgetter takes from them; reads the
/// keys.
bool Observer::getsKeys(Frame &frame, Arguments arguments, PyObject *names) {
  Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
  if (count == 0 || arguments.size() - static_cast<size_t>(count) != 1)
    return false;
  PyObject *items = arguments[0], *getter = nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *given = arguments[static_cast<size_t>(i) + 1];
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "key") == 0)
      getter = given;
    else if (bool reverse =
                 PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "reverse") == 0;
             reverse ? !isPlain(given) : !values.isUsable(given)) // it is what max gives of nothing
      return false;
  }
  if (getter && looksUp(getter))
    return isPlainWithin(items);
  PyRef listed = itemsOf(items);
  items = listed ? listed.get() : items;
  if (!getter || std::string_view(Py_TYPE(getter)->tp_name) != "operator.itemgetter" ||
      !(PyList_CheckExact(items) || PyTuple_CheckExact(items)) ||
      (!listed && !values.readWhole(items)))
    return false;
  PyRef callable = PyRef::borrow(getter);
  for (Py_ssize_t i = 0; i < Py_SIZE(items); ++i) {
    PyObject *each = itemAt(items, i).get();
    bool known = PyTuple_CheckExact(each) || PyList_CheckExact(each) || isDict(each);
    PyRef key = PyRef::steal(known ? PyObject_CallOneArg(getter, each) : nullptr);
    PyErr_Clear();
    if (!key || !isPlain(key.get()) || !values.isUsable(each) ||
        !callGetter(frame, getter, Arguments(&each, 1), nullptr))
      return false;
  }
  frame.pending.callable = std::move(callable);
  return true;
}

/// Whether C adds or compares such items by methods in Python.
bool Observer::foldsInPython(PyObject *items, bool adds) {
  bool python = (PyTuple_CheckExact(items) || PyList_CheckExact(items)) && Py_SIZE(items) > 0 &&
                values.readWhole(items);
  for (Py_ssize_t i = 0; python && i < Py_SIZE(items); ++i) {
    PyObject *each = itemAt(items, i).get();
    python = !isTensor(each) && !isNumberLike(each) &&
             (adds ? answersInPython(each, {"__add__", "__radd__"}) && !answering(each, "__add__")
                   : answersInPython(each, {"__lt__", "__gt__"}) && !answering(each, "__lt__") &&
                         !answering(each, "__gt__"));
  }
  return python;
}

} // namespace weft::capture
