// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instances of classes in Python that derive from classes in C, and which of these answers an
// operation. If the method is still that of the class in C, they are read like its instances.
#include "capture/Arrays.h"
#include "capture/Observer.h"
#include "capture/Plain.h"

namespace weft::capture {

static PyObject *lookUp(PyTypeObject *type, const char *method) {
  PyRef name = PyRef::steal(PyUnicode_InternFromString(method));
  return interpreter::typeLookup(type, name.get());
}

static bool inPython(PyTypeObject *type) { return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE); }

PyTypeObject *Observer::answering(PyObject *object, const char *method) {
  PyTypeObject *type = Py_TYPE(object);
  if (!inPython(type))
    return type;
  guardMethods(object, {method});
  PyObject *found = lookUp(type, method);
  if (!found || PyFunction_Check(found))
    return nullptr;
  PyTypeObject *base = builtinBase(type);
  return lookUp(base, method) == found ? base : type;
}

bool Observer::isOfC(PyTypeObject *answers, PyObject *object) {
  return values.isFresh(object) && !inPython(answers);
}

bool Observer::answersAsDict(PyObject *object, const char *method) {
  if (!PyDict_Check(object))
    return false;
  PyTypeObject *answers = answering(object, method);
  return answers && PyType_IsSubtype(answers, &PyDict_Type) && !inPython(answers);
}

bool Observer::truthOf(Frame &frame, PyObject *object) {
  const char *method = lookUp(Py_TYPE(object), "__bool__") ? "__bool__" : "__len__";
  guardMethods(object, {"__bool__", "__len__"});
  if (!lookUp(Py_TYPE(object), method))
    return true;
  return lengthOf(frame, object, method) || values.fail("tests " + shown(object));
}

/// `method` is `__len__`, or `__bool__`, which has precedence.
bool Observer::lengthOf(Frame &frame, PyObject *object, const char *method) {
  PyTypeObject *answers = answering(object, method);
  if (!answers) {
    frame.pending.python = true;
    frame.pending.yields = Pending::Yields::Numbers;
    return true;
  }
  if (answers == &PyList_Type || PyType_IsSubtype(answers, &PyDict_Type) ||
      (isDeque(object) && method[2] == 'l'))
    return !inPython(answers) && values.readLength(object);
  if (answers == &PySet_Type || answers == &PyFrozenSet_Type)
    return values.readWhole(object);
  if (dictOfView(object) && values.isExternal(object))
    return values.readView(object);
  return answers == &PyTuple_Type || (isValue(object) && !inPython(answers)) ||
         isOfC(answers, object);
}

bool Observer::iterableItems(Frame &frame, PyObject *object) {
  PyTypeObject *answers = answering(object, "__iter__");
  if (!answers) {
    PyTypeObject *items =
        lookUp(Py_TYPE(object), "__iter__") ? nullptr : answering(object, "__getitem__");
    guardMethods(object, {"__next__", "__len__"});
    frame.pending.python = true;
    frame.pending.yields = Pending::Yields::Numbers;
    return !items || values.fail("iterates over " + shown(object));
  }
  if (answers == &PyTuple_Type || answers == &PyList_Type || answers == &PyDict_Type ||
      answers == &PyODict_Type || answers == &PySet_Type || answers == &PyFrozenSet_Type ||
      (isDeque(object) && !inPython(answers)))
    return values.readWhole(object);
  if (isValue(object) && !inPython(answers))
    return true;
  if (dictOfView(object) && values.isExternal(object))
    return values.readView(object);
  frame.pending.python = true;
  return isOfC(answers, object) || values.fail("iterates over " + shown(object) + " from outside");
}

/// Whether the factory of a defaultdict makes a plain value, or a new container that nothing else
/// refers to.
static bool isFactory(PyObject *factory) {
  if (!factory || factory == Py_None || PyFunction_Check(factory))
    return true;
  for (PyTypeObject *type : {&PyList_Type, &PyDict_Type, &PySet_Type, &PyTuple_Type, &PyLong_Type,
                             &PyFloat_Type, &PyUnicode_Type})
    if (factory == (PyObject *)type)
      return true;
  return false;
}

bool Observer::isFactoryOf(PyObject *type, PyObject *argument, PyObject *first) {
  return argument == first && isFactory(argument) && PyType_Check(type) &&
         std::string(((PyTypeObject *)type)->tp_name) == "collections.defaultdict";
}

bool Observer::makesAlias(PyObject *type) {
  PyObject *found = lookUp((PyTypeObject *)type, "__class_getitem__");
  if (!found || lookUp(Py_TYPE(type), "__getitem__"))
    return false;
  if (!inPython((PyTypeObject *)type))
    return Py_TYPE(found) == &PyClassMethodDescr_Type;
  PyRef name = PyRef::steal(PyUnicode_InternFromString("__class_getitem__"));
  PyRef function = PyRef::steal(
      Py_TYPE(found) == &PyClassMethod_Type ? PyObject_GetAttrString(found, "__func__") : nullptr);
  guards.typeItem((PyTypeObject *)type, name.get(), found);
  return function.get() == (PyObject *)&Py_GenericAliasType;
}

/// Whether a method in Python of its metaclass answers for the class.
bool Observer::answersInClass(PyObject *type, const char *method) {
  PyTypeObject *meta = Py_TYPE(type);
  if (!inPython(meta))
    return false;
  guardMethods(type, {method});
  PyObject *found = lookUp(meta, method);
  return found && PyFunction_Check(found);
}

/// Whether a method in Python, of its metaclass or its own, answers for an item of the class.
bool Observer::subscriptsClass(Frame &frame, PyTypeObject *type) {
  static PyObject *const own = PyUnicode_InternFromString("__class_getitem__");
  if (answersInClass((PyObject *)type, "__getitem__"))
    return expect(frame, Then::Python, true, "an item of a class");
  if (lookUp(Py_TYPE((PyObject *)type), "__getitem__"))
    return false;
  PyObject *found = inPython(type) ? interpreter::typeLookup(type, own) : nullptr;
  if (!found || Py_TYPE(found) != &PyClassMethod_Type)
    return false;
  PyRef function = PyRef::steal(PyObject_GetAttrString(found, "__func__"));
  guards.typeItem(type, own, found);
  return function && PyFunction_Check(function.get()) && values.pin(found, type->tp_name) &&
         values.pin(function.get(), type->tp_name) &&
         expect(frame, Then::Python, true, "an item of a class");
}

bool Observer::isTypeExpression(PyObject *object) {
  if (object == Py_None || isUnion(object) || Py_TYPE(object) == &Py_GenericAliasType)
    return values.isUsable(object) && values.fixIdentity(object);
  return PyType_Check(object) &&
         lookUp(Py_TYPE(object), "__or__") == lookUp(&PyType_Type, "__or__") &&
         lookUp(Py_TYPE(object), "__ror__") == lookUp(&PyType_Type, "__ror__");
}

bool Observer::readEntry(Frame &frame, PyObject *dict, PyObject *key) {
  if (!values.readKey(dict, key))
    return false;
  if (PyDict_CheckExact(dict) || PyODict_CheckExact(dict) || entryOf(dict, key))
    return expect(frame, Then::Usable, !isPlain(key), "an item");
  guardMethods(dict, {"__missing__"});
  PyObject *missing = lookUp(Py_TYPE(dict), "__missing__");
  if (!missing || PyFunction_Check(missing))
    return expect(frame, Then::Usable, true, "an item");
  PyRef factory = PyRef::steal(PyObject_GetAttrString(dict, "default_factory"));
  PyErr_Clear();
  if (values.isExternal(dict) && isDefaultDict(dict) && factory && PyType_Check(factory.get()) &&
      isFactory(factory.get()))
    return addsEntry(frame, dict, key);
  return (values.isFresh(dict) && isFactory(factory.get()) && expect(frame, Then::Fresh, true)) ||
         values.fail("an item that " + shown(dict) + " lacks");
}

/// A defaultdict from outside makes an entry, which is recorded once it is there.
bool Observer::addsEntry(Frame &frame, PyObject *dict, PyObject *key) {
  static PyObject *const name = PyUnicode_InternFromString("default_factory");
  PyObject *member = interpreter::typeLookup(Py_TYPE(dict), name);
  if (nodes || values.hasChanged(dict) || !values.readMember(dict, member, "default_factory") ||
      !keepState(dict, key))
    return values.fail("an item that " + shown(dict) + " lacks");
  values.noteItemSet(dict, key);
  frame.pending.added = {PyRef::borrow(dict), PyRef::borrow(key)};
  return expect(frame, Then::Added, true, "an item");
}

bool Observer::iteratesByGenerator(PyObject *object) {
  PyObject *found = inPython(Py_TYPE(object)) ? lookUp(Py_TYPE(object), "__iter__") : nullptr;
  if (!found || !PyFunction_Check(found) || PyType_Check(object) || isTensor(object))
    return false;
  guardMethods(object, {"__iter__"});
  auto *code = (PyCodeObject *)((PyFunctionObject *)found)->func_code;
  return code->co_flags & CO_GENERATOR;
}

bool Observer::hasPlainItems(PyObject *object) {
  if (isPlain(object) || isPlainMap(object))
    return true;
  if (!PyTuple_CheckExact(object) && !PyList_CheckExact(object))
    return false;
  for (Py_ssize_t i = 0; i < Py_SIZE(object); ++i)
    if (!isPlain(itemAt(object, i).get()))
      return false;
  return true;
}

bool Observer::isNumberLike(PyObject *object) {
  return isPlain(object) || (isValue(object) && values.isUsable(object));
}

bool Observer::comparesAlone(PyObject *left, PyObject *right) {
  bool known[2] = {}, identity = true;
  PyObject *operands[] = {left, right};
  for (int i = 0; i < 2; ++i) {
    PyObject *each = operands[i];
    if (isPlain(each)) {
      known[i] = true;
      identity = false;
      continue;
    }
    if (isTensor(each) || isArray(each) || !values.isUsable(each))
      return false;
    guardMethods(each, {"__eq__", "__ne__"});
    PyTypeObject *base = isValue(each) ? builtinBase(Py_TYPE(each)) : &PyBaseObject_Type;
    identity &= base == &PyBaseObject_Type;
    for (const char *method : {"__eq__", "__ne__"})
      if (lookUp(Py_TYPE(each), method) != lookUp(base, method))
        return false;
    known[i] = true;
  }
  return known[0] && known[1] && (!identity || values.readIdentity(left, right));
}

bool Observer::isInstance(Frame &frame, PyObject *object, PyObject *type) {
  guardMethods(object, {"__class__"});
  for (PyObject *each : {object, (PyObject *)Py_TYPE(object)})
    if (PyType_Check(each) && PyType_HasFeature((PyTypeObject *)each, Py_TPFLAGS_HEAPTYPE))
      guards.bases((PyTypeObject *)each);
  bool python = false;
  auto look = [&](PyObject *each) {
    if (!PyType_Check(each))
      return (answersInPython(each, {"__instancecheck__", "__subclasscheck__"}) &&
              (python = true)) ||
             values.fail("isinstance of " + shown(each));
    PyTypeObject *meta = Py_TYPE(each);
    if (meta == &PyType_Type)
      return true;
    PyRef name = PyRef::steal(PyUnicode_InternFromString("__instancecheck__"));
    PyObject *found = interpreter::typeLookup(meta, name.get());
    guards.typeItem(meta, name.get(), found);
    python |= found && PyFunction_Check(found);
    return (found && (PyFunction_Check(found) || kindOf(found) == Kind::IsInstance)) ||
           values.fail("isinstance of " + shown(each));
  };
  PyRef of = PyRef::steal(isUnion(type) ? PyObject_GetAttrString(type, "__args__") : nullptr);
  if (of && !values.fixIdentity(type))
    return false;
  type = of ? of.get() : type;
  if (PyTuple_CheckExact(type)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type); ++i)
      if (!look(PyTuple_GET_ITEM(type, i)))
        return false;
  } else if (!look(type)) {
    return false;
  }
  return expect(frame, Then::Plain, python, "isinstance");
}

} // namespace weft::capture
