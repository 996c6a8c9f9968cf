// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attributes of classes that a call sets, as in `type(self).calls += 1`. The attributes of a class
// are guarded by the results of looking names up, until a call sets such a name. From then on the
// guards say in which class of the method resolution order the name is found, and the value there
// is treated like an instance's own attribute.
#include "capture/Observer.h"
#include "capture/Plain.h"

namespace weft::capture {

/// Whether any call has set an attribute of a class yet. Few programs do; the others need not look
/// up names in all classes.
static bool classesAreSet = false;

static bool isSpecial(PyObject *name) {
  const char *text = PyUnicode_AsUTF8(name);
  std::string_view all = text ? text : "__";
  return all.starts_with("__") && all.ends_with("__");
}

/// The classes in whose dicts the name is looked up, including the one that has it.
static std::vector<PyTypeObject *> searched(PyTypeObject *type, PyObject *name, bool &found) {
  std::vector<PyTypeObject *> classes;
  found = false;
  PyObject *order = type->tp_mro;
  for (Py_ssize_t i = 0; !found && order && i < PyTuple_GET_SIZE(order); ++i) {
    classes.push_back((PyTypeObject *)PyTuple_GET_ITEM(order, i));
    found = PyDict_GetItemWithError(classes.back()->tp_dict, name);
  }
  return classes;
}

bool Observer::readClass(PyTypeObject *type, PyObject *name, PyObject *found, bool counts,
                         bool &entered) {
  entered = false;
  if (values.isOwnClass((PyObject *)type)) {
    bool held = false;
    std::vector<PyTypeObject *> classes = searched(type, name, held);
    if (held && values.isOwnClass((PyObject *)classes.back())) // nobody else can change it
      return true;
  }
  bool mayCount = counts && found && isNumberInput(found);
  if ((!classesAreSet && !mayCount) || isSpecial(name)) {
    guards.typeItem(type, name, found);
    return true;
  }
  bool held = false;
  std::vector<PyTypeObject *> classes = searched(type, name, held);
  auto *holder = held ? (PyObject *)classes.back() : nullptr;
  std::string text =
      holder ? std::string(classes.back()->tp_name) + "." + PyUnicode_AsUTF8(name) : "";
  counts = mayCount && classes.size() == 1;
  if (holder && values.isCounter(holder, name)) {
    entered = true;
    guards.resolves(type, name, classes.back(), text);
    if (!counts || !values.readCounter(holder, name))
      values.fixCounter(holder, name);
    return true;
  }
  entered = holder && values.hasSet(holder, name);
  for (PyTypeObject *each : classes)
    if (!entered && values.hasSet((PyObject *)each, name))
      return values.fail("reads " + std::string(each->tp_name) + "." + PyUnicode_AsUTF8(name) +
                         ", which it has deleted");
  if (entered) {
    guards.resolves(type, name, classes.back(), text);
    return true;
  }
  PyRef where = PyRef::borrow(holder);
  if (counts && values.startsCounter(
                    {Place::Class, where, PyRef::borrow(name), Owner{-1, where}, text}, found)) {
    entered = true;
    guards.resolves(type, name, classes.back(), text);
    return true;
  }
  if (!holder || !values.expectsInput(Place::Class, holder, name)) {
    guards.typeItem(type, name, found);
    return true;
  }
  guards.resolves(type, name, classes.back(), text);
  if (values.isLoaded(Place::Class, holder, name))
    return entered = true;
  Value pinned{Origin::Pinned, -1, where, std::string(classes.back()->tp_name)};
  if (!values.readAt(Place::Class, holder, name, pinned, found, text))
    return false;
  const Value *known = values.find(found);
  entered = isNumberInput(found) || (known && known->origin == Origin::Argument);
  return true;
}

bool Observer::storeClass(Frame &frame, PyTypeObject *type, PyObject *name, PyObject *value) {
  auto *object = (PyObject *)type;
  if (values.isOwnClass(object)) // nobody else reads it
    return true;
  PyTypeObject *meta = Py_TYPE(object);
  std::string text = "sets the attribute " + shown(name) + " of " + shown(object);
  PyObject *own = interpreter::typeLookup(meta, name);
  PyObject *before = interpreter::typeLookup(type, name);
  // Callables, and objects that answer for attributes, are code, which changes what instances do.
  auto answers = [](PyObject *each) {
    return each && (Py_TYPE(each)->tp_descr_get || Py_TYPE(each)->tp_descr_set);
  };
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) ||
      meta->tp_setattro != PyType_Type.tp_setattro || isSpecial(name) || own || answers(before) ||
      answers(value))
    return values.fail(text);
  if (PyType_HasFeature(meta, Py_TPFLAGS_HEAPTYPE)) {
    guards.typeItem(meta, name, nullptr);
    guardMethods(object, {"__setattr__", "__delattr__"});
  }
  bool counts = value && counting && values.isCounter(object, name);
  PyObject *arguments[] = {object, name, value, nullptr};
  if (counts) {
    arguments[2] = counting->function;
    arguments[3] = counting->step;
    counting->stored = true;
  }
  PyObject *callable = counts  ? operators().count
                       : value ? operators().setClassAttribute
                               : operators().deleteClassAttribute;
  if (!effect(frame, callable,
              Arguments(arguments, counts  ? 4
                                   : value ? 3
                                           : 2),
              nullptr) ||
      !keepState(object, name))
    return false;
  classesAreSet = true;
  values.noteSet(object, name);
  return appendRecord(frame, Py_None) && expect(frame, Then::Nothing, false);
}

} // namespace weft::capture
