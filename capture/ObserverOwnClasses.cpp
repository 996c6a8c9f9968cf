// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Classes that a call makes. The body of a class is observed as any code. A replay makes none: what
// the call does with the class and its instances is in the log, and neither may leave the call.
// Guards look names up in the class that was seen, and so in the classes from outside that it
// derives from.
#include "capture/Declared.h"
#include "capture/Observer.h"
#include "capture/Plain.h"

#include <algorithm>

namespace weft::capture {

bool Values::isOwnClass(PyObject *object) const {
  return std::ranges::any_of(ownClasses, [&](const PyRef &each) { return each.get() == object; });
}

bool Values::holdsOwnClass(PyObject *object) const {
  if (ownClasses.empty())
    return false;
  bool holds = isOwnClass(object) || isOwnClass((PyObject *)Py_TYPE(object));
  for (Py_ssize_t i = 0; PyTuple_Check(object) && !holds && i < PyTuple_GET_SIZE(object); ++i)
    holds = holdsOwnClass(PyTuple_GET_ITEM(object, i));
  return holds;
}

void Values::enterClass(PyObject *type) {
  if (!isOwnClass(type))
    ownClasses.push_back(PyRef::borrow(type));
}

/// Whether making a class of these bases runs the code of its body and of `__init_subclass__` and
/// `__set_name__` alone.
bool Observer::areBases(Arguments bases) {
  static PyObject *const hook = PyUnicode_InternFromString("__init_subclass__");
  PyObject *own = interpreter::typeLookup(&PyBaseObject_Type, hook);
  for (PyObject *each : bases) {
    if (!PyType_Check(each) || Py_TYPE(each) != &PyType_Type)
      return false;
    auto *type = (PyTypeObject *)each;
    PyObject *found = interpreter::typeLookup(type, hook);
    guards.bases(type);
    guards.typeItem(type, hook, found);
    PyRef function = PyRef::steal(found && Py_TYPE(found) == &PyClassMethod_Type
                                      ? PyObject_GetAttrString(found, "__func__")
                                      : nullptr);
    bool observed = function && PyFunction_Check(function.get()) &&
                    values.pin(found, type->tp_name) &&
                    values.pin(function.get(), std::string(type->tp_name) + ".__init_subclass__");
    if (found != own && !observed)
      return false;
  }
  return true;
}

/// `class`, with the body, the name and the bases.
bool Observer::buildsClass(Frame &frame, Arguments arguments, PyObject *names) {
  size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  for (size_t i = 0; i < named; ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)),
                                         "metaclass") == 0)
      return values.fail("makes a class of a metaclass");
  bool known = arguments.size() >= named + 2 && PyFunction_Check(arguments[0]) &&
               values.isFresh(arguments[0]) && isPlain(arguments[1]);
  return (known && !nodes && areBases(arguments.subspan(2, arguments.size() - named - 2)) &&
          carries(frame) && expect(frame, Then::Class, true, "a class")) ||
         values.fail("makes a class whose bases answer for it");
}

/// type(name, bases, attributes), of which `attributes` is a dict of this call.
bool Observer::callType(Frame &frame, Arguments arguments, PyObject *names) {
  bool known = arguments.size() == 3 && !names && isPlain(arguments[0]) &&
               PyTuple_CheckExact(arguments[1]) && PyDict_CheckExact(arguments[2]) &&
               values.isFresh(arguments[2]);
  if (!known || nodes)
    return values.fail("makes a class");
  Arguments bases(reinterpret_cast<PyTupleObject *>(arguments[1])->ob_item,
                  static_cast<size_t>(PyTuple_GET_SIZE(arguments[1])));
  return (areBases(bases) && carries(frame) && expect(frame, Then::Class, true, "a class")) ||
         values.fail("makes a class whose bases answer for it");
}

/// collections.namedtuple, and the function that makes a dataclass of a class.
bool Observer::generatesClass(Frame &frame, PyObject *callable, Arguments arguments) {
  std::string what = nameOf(callable);
  PyObject *type = arguments.empty() ? nullptr : arguments[0];
  bool extends = type && PyType_Check(type);
  PyObject *order = extends ? ((PyTypeObject *)type)->tp_mro : nullptr;
  bool known = !nodes && enterFunction(callable) && (!extends || values.isOwnClass(type));
  for (Py_ssize_t i = 1; order && i < PyTuple_GET_SIZE(order); ++i) // fields are inherited
    known &= !PyDict_GetItemString(((PyTypeObject *)PyTuple_GET_ITEM(order, i))->tp_dict,
                                   "__dataclass_fields__");
  for (PyObject *each : arguments.subspan(extends ? 1 : 0))
    known = known && isPlainWithin(each);
  frame.pending.foreign = true;
  return (known && expect(frame, Then::Class, true, what)) ||
         values.fail(what + " of " + shown(type));
}

/// A name in the body of a class: of its namespace, else a variable, or a global.
bool Observer::nameInBody(Frame &frame, PyObject *name, int global, int cellOf) {
  PyObject *own = interpreter::namespaceOf(frame.frame);
  if (!own || !PyDict_CheckExact(own))
    return values.fail("a body of a class whose names are no dict");
  PyObject *found = PyDict_GetItemWithError(own, name);
  if (!found)
    return global >= 0 ? this->global(frame, global << 1) : cell(frame, cellOf, true, false);
  // The interpreter makes the dict of annotations.
  bool notes = PyUnicode_CompareWithASCIIString(name, "__annotations__") == 0;
  if (notes && PyDict_CheckExact(found) && !values.find(found))
    return values.enterFresh(found);
  return values.isUsable(found) || values.fail("a name of unknown origin in the body of a class");
}

} // namespace weft::capture
