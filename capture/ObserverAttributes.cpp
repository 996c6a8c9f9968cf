// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading and setting attributes. They are looked up as CPython does it: in the class, in the
// instance, and in the class again. Each step is guarded, whether it finds something or nothing.
#include "capture/Observer.h"

#include "capture/Arrays.h"
#include "capture/Imported.h"
#include "capture/Plain.h"

namespace weft::capture {

/// The slot of classes in Python that define `__getattr__`, which is called last; taken from such a
/// class.
static getattrofunc hookedGetAttribute() {
  static getattrofunc slot = nullptr;
  if (!slot) {
    PyTypeObject *kind = moduleType();
    slot = kind ? kind->tp_getattro : PyObject_GenericGetAttr;
  }
  return slot;
}

static setattrofunc hookedSetAttribute() {
  static setattrofunc slot = nullptr;
  if (!slot) {
    PyTypeObject *kind = moduleType();
    slot = kind ? kind->tp_setattro : PyObject_GenericSetAttr;
  }
  return slot;
}

static bool inPython(PyTypeObject *type) { return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE); }

static bool isData(PyObject *descriptor) { return Py_TYPE(descriptor)->tp_descr_set; }

/// Guards the class of what a class holds, so that it stays the same kind of descriptor, or none.
void Observer::guardDescriptor(PyObject *found) {
  guardMethods(found, {"__get__", "__set__", "__delete__"});
}

bool Observer::attribute(Frame &frame, PyObject *object, PyObject *name) {
  if (!values.isUsable(object))
    return values.fail("the attribute " + shown(name) + " of " + shown(object) +
                       " of unknown origin");
  expect(frame, Then::Usable, true);
  frame.pending.attribute = name;
  frame.pending.type = Py_TYPE(object);
  if (PyType_Check(object))
    return typeAttribute(frame, (PyTypeObject *)object, name);
  if (Py_TYPE(object) == &PySuper_Type)
    return superAttribute(frame, object, name);
  PyTypeObject *type = Py_TYPE(object);
  bool module = PyModule_Check(object);
  if (isArray(object))
    return arrayAttribute(frame, object, name);
  if (!module && !inPython(type) && !type->tp_dictoffset) {
    if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0)
      return expect(frame, Then::Plain, false,
                    "__class__"); // the type is guarded, or cannot change
    // A class in C cannot change: its methods and descriptors are fixed.
    PyObject *found = interpreter::typeLookup(type, name);
    if (!found || Py_TYPE(found) == &PyMethodDescr_Type || Py_TYPE(found) == &PyWrapperDescr_Type ||
        Py_TYPE(found) == &PyClassMethodDescr_Type || Py_TYPE(found) == &PyStaticMethod_Type)
      return !PyMethod_Check(object) ||
             values.fail("the attribute " + shown(name) + " of a method");
    if (isDeque(object) && PyUnicode_CompareWithASCIIString(name, "maxlen") == 0)
      return expect(frame, Then::Plain, false, "maxlen");
    for (const char *each : {"__func__", "__self__"})
      if (PyMethod_Check(object) && PyUnicode_CompareWithASCIIString(name, each) == 0)
        return true;
    if (kindOf(found) == Kind::Draws)
      return values.pin(found, nameOf(found));
    if (isTorchGenerator(object)) // a generator's device never changes
      return PyUnicode_CompareWithASCIIString(name, "device") == 0 ||
             values.fail("the attribute " + shown(name) + " of " + shown(object));
    if (!isPlain(object) && Py_TYPE(found) == &PyMemberDescr_Type)
      return values.isFresh(object) || values.readMember(object, found, PyUnicode_AsUTF8(name));
    return isPlain(object) || values.fail("the attribute " + shown(name) + " of " + shown(object));
  }
  static PyObject *const asked = PyUnicode_InternFromString("__getattribute__");
  PyObject *getter = interpreter::typeLookup(type, asked);
  // A getter in Python is observed itself.
  if (inPython(type) && !module && getter && PyFunction_Check(getter)) {
    guardMethods(object, {"__getattribute__", "__getattr__"});
    return true;
  }
  if (!module && !PyFunction_Check(object) && type->tp_getattro != PyObject_GenericGetAttr &&
      type->tp_getattro != hookedGetAttribute())
    return values.fail("attributes of " + shown(object) + " are found by a function of its own");
  if (inPython(type) && !module && type->tp_getattro != PyObject_GenericGetAttr &&
      !(getter && Py_TYPE(getter) == &PyWrapperDescr_Type))
    return values.fail("attributes of " + shown(object) + " are found by its __getattribute__");
  return instanceAttribute(frame, object, name);
}

/// Looks the attribute up like object.__getattribute__.
bool Observer::ownAttribute(Frame &frame, PyObject *object, PyObject *name) {
  PyTypeObject *type = Py_TYPE(object);
  if (!inPython(type) || PyType_Check(object) || PyModule_Check(object) ||
      !PyUnicode_CheckExact(name))
    return values.fail("asks object for the attribute " + shown(name) + " of " + shown(object));
  expect(frame, Then::Usable, true);
  frame.pending.type = type;
  PyRef interned = PyRef::borrow(name);
  PyObject *text = interned.release();
  PyUnicode_InternInPlace(&text);
  interned = PyRef::steal(text);
  bool read = instanceAttribute(frame, object, text);
  frame.pending.what = frame.pending.what.empty()
                           ? std::string("the attribute ") + PyUnicode_AsUTF8(text)
                           : frame.pending.what;
  return read;
}

bool Observer::typeAttribute(Frame &frame, PyTypeObject *type, PyObject *name) {
  PyTypeObject *meta = Py_TYPE((PyObject *)type);
  PyObject *own = interpreter::typeLookup(meta, name);
  PyObject *found = interpreter::typeLookup(type, name);
  std::string text = std::string(type->tp_name) + "." + PyUnicode_AsUTF8(name);
  bool named = false;
  for (const char *each : {"__name__", "__qualname__", "__module__", "__bases__", "__mro__"})
    named |= PyUnicode_CompareWithASCIIString(name, each) == 0;
  if (own && named && isData(own) && inPython(type)) {
    PyRef now = PyRef::steal(PyObject_GetAttr((PyObject *)type, name));
    if (!now || !capture::isPlain(now.get()))
      return values.fail("reads " + text);
    guards.member({-1, PyRef::borrow((PyObject *)type)}, own, {Expected::Equal, now, -1}, text);
    return static_cast<bool>(now);
  }
  if (PyUnicode_CompareWithASCIIString(name, "__annotations__") == 0 && inPython(type) &&
      PyDict_GetItemWithError(type->tp_dict, name) == found && found && PyDict_CheckExact(found)) {
    guards.typeItem(type, name, found);
    return values.pin(found, text);
  }
  if (own && isData(own))
    return !inPython(type) || values.fail("reads " + text);
  if (inPython(meta)) {
    guards.typeItem(meta, name, own);
    guardMethods((PyObject *)type, {"__getattribute__"});
  }
  bool entered = false;
  if (inPython(type) && !readClass(type, name, found, true, entered))
    return false;
  if (own)
    guardDescriptor(own);
  if (!found || entered) // a class in C is fixed, and the guards of one in Python hold
    return true;
  guardDescriptor(found);
  if (!values.pin(found, text))
    return false;
  if (Py_TYPE(found) == &PyClassMethod_Type || Py_TYPE(found) == &PyStaticMethod_Type) {
    PyRef function = PyRef::steal(PyObject_GetAttrString(found, "__func__"));
    return function && values.pin(function.get(), text);
  }
  // A property that is asked of its class gives itself.
  return !Py_TYPE(found)->tp_descr_get || isPlain(found) || PyFunction_Check(found) ||
         Py_TYPE(found) == &PyProperty_Type || inPython(Py_TYPE(found)) ||
         values.fail("reads " + text + ", " + shown(found));
}

bool Observer::superAttribute(Frame &frame, PyObject *object, PyObject *name) {
  PyRef kind = PyRef::steal(PyObject_GetAttrString(object, "__self_class__"));
  PyRef after = PyRef::steal(PyObject_GetAttrString(object, "__thisclass__"));
  if (!kind || !after || !PyType_Check(kind.get()))
    return values.fail("super() of no class");
  auto *type = (PyTypeObject *)kind.get();
  PyObject *found = superLookup(type, after.get(), name);
  for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); ++i)
    if (values.hasSet(PyTuple_GET_ITEM(type->tp_mro, i), name))
      return values.fail("asks super() for " + shown(name) + ", which it has set in a class");
  guards.typeItem(type, name, found, after.get());
  std::string text = std::string("super().") + PyUnicode_AsUTF8(name);
  if (!found)
    return values.fail("reads " + text + ", which is absent");
  if (Py_TYPE(found) == &PyClassMethod_Type || Py_TYPE(found) == &PyStaticMethod_Type) {
    PyRef function = PyRef::steal(PyObject_GetAttrString(found, "__func__"));
    return function && values.pin(function.get(), text);
  }
  if (Py_TYPE(found) == &PyProperty_Type)
    return values.pin(found, text);
  return ((PyFunction_Check(found) || isPlain(found)) && values.pin(found, text)) ||
         values.fail("reads " + text + ", " + shown(found));
}

/// Reads and guards an entry of the instance's own dict, or its absence.
bool Observer::readInstance(PyObject *object, PyObject *name) {
  PyObject *dict =
      PyModule_Check(object) ? PyModule_GetDict(object) : interpreter::instanceDict(object);
  PyObject *found = dict ? PyDict_GetItemWithError(dict, name) : nullptr;
  std::string attribute = PyUnicode_AsUTF8(name);
  if (isPlain(object) && !PyModule_Check(object)) // a plain object cannot change
    return !dict || values.fail("reads " + attribute + " of " + shown(object));
  if (PyModule_Check(object) && dict &&
      (values.hasSet(dict, name) || values.expectsInput(Place::Item, dict, name)))
    return values.pin(dict, PyModule_GetName(object)) && values.readKey(dict, name);
  if (isPlain(object)) { // a module is held by what it was found in
    Value held{Origin::Pinned, -1, {}, ""};
    return guards.watches(object, true, name) || values.isLoaded(Place::Attribute, object, name) ||
           values.readAt(Place::Attribute, object, name, held, found,
                         std::string(PyModule_GetName(object)) + "." + attribute);
  }
  const Value *value = values.find(object);
  if (!value || value->origin == Origin::Fresh || value->origin == Origin::Result)
    return true;
  return values.readAttribute(object, name, found);
}

bool Observer::instanceAttribute(Frame &frame, PyObject *object, PyObject *name) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject *found = interpreter::typeLookup(type, name);
  bool entered = false;
  if (inPython(type)) {
    if (!readClass(type, name, found, false, entered))
      return false;
    guardMethods(object, {"__getattribute__"});
    if (found)
      guardDescriptor(found);
  }
  auto text = [&] { return std::string(type->tp_name) + "." + PyUnicode_AsUTF8(name); };
  if (isTensor(object) && found && !PyFunction_Check(found) && Py_TYPE(found) != &PyProperty_Type)
    return tensorAttribute(frame, object, found, name);
  if (found && isData(found))
    return dataDescriptor(frame, object, found, name);
  PyObject *dict =
      PyModule_Check(object) ? PyModule_GetDict(object) : interpreter::instanceDict(object);
  if (!readInstance(object, name))
    return false;
  if (dict && PyDict_GetItemWithError(dict, name))
    return true;
  if (entered)
    return true;
  if (found) {
    if (!isPlain(found) && !values.pin(found, text()))
      return false;
    if (Py_TYPE(found) == &PyClassMethod_Type || Py_TYPE(found) == &PyStaticMethod_Type) {
      PyRef function = PyRef::steal(PyObject_GetAttrString(found, "__func__"));
      return function && values.pin(function.get(), text());
    }
    return !Py_TYPE(found)->tp_descr_get || isPlain(found) || PyFunction_Check(found) ||
           inPython(Py_TYPE(found)) || values.fail("reads " + text() + ", " + shown(found));
  }
  if (!PyModule_Check(object)) {
    if (type->tp_getattro == hookedGetAttribute() && type->tp_getattro != PyObject_GenericGetAttr)
      guardMethods(object, {"__getattr__"});
    return true;
  }
  PyRef hook = PyRef::steal(PyUnicode_InternFromString("__getattr__"));
  return readInstance(object, hook.get());
}

bool Observer::tensorAttribute(Frame &frame, PyObject *object, PyObject *found, PyObject *name) {
  PyTypeObject *kind = Py_TYPE(found);
  if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type ||
      (kind == &PyCFunction_Type && isPlain(found))) // as a parameter's __torch_function__ is
    return true;
  PyObject *arguments[] = {object, name};
  if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0)
    return expect(frame, Then::Plain, false, "__class__"); // the type is guarded already
  if (PyUnicode_CompareWithASCIIString(name, "grad") == 0)
    return gradient(frame, object, name);
  if (PyUnicode_CompareWithASCIIString(name, "grad_fn") == 0) { // a leaf has none
    std::optional<TensorFacts> facts = TensorFacts::of(object);
    return (facts && facts->isLeaf() && expect(frame, Then::Plain, false, "grad_fn")) ||
           values.fail("reads a tensor's grad_fn");
  }
  switch (kindOf(found)) {
  case Kind::Metadata:
    noteMetadata(PyUnicode_AsUTF8(name));
    if (values.isDataSized(object))
      return operation(frame, operators().getAttribute, arguments, nullptr);
    return expect(frame, Then::Plain, false, "metadata");
  case Kind::Operation:
    return operation(frame, operators().getAttribute, arguments, nullptr);
  default:
    return values.fail("reads a tensor's " + std::string(PyUnicode_AsUTF8(name)));
  }
}

bool Observer::dataDescriptor(Frame &frame, PyObject *object, PyObject *descriptor,
                              PyObject *name) {
  PyTypeObject *kind = Py_TYPE(descriptor);
  std::string text = "the attribute " + shown(name) + " of " + shown(object);
  if (kind == &PyProperty_Type) {
    PyRef getter = PyRef::steal(PyObject_GetAttrString(descriptor, "fget"));
    return (getter && PyFunction_Check(getter.get()) && values.pin(getter.get(), text) &&
            expect(frame, Then::Usable, true, text)) ||
           values.fail(text + " is a property in C");
  }
  if (inPython(kind)) { // a descriptor of a class in Python
    guardDescriptor(descriptor);
    return values.pin(descriptor, text);
  }
  bool fresh = values.isFresh(object);
  if (fresh && PyExceptionInstance_Check(object) &&
      PyUnicode_CompareWithASCIIString(name, "args") == 0)
    return expect(frame, Then::Usable, false, text);
  if (isContextSetting(object, name) || (fresh && isMatch(object)))
    return expect(frame, Then::Plain, false, text);
  if (kind == &PyMemberDescr_Type &&
      !(fresh && PyUnicode_CompareWithASCIIString(name, "__dict__") == 0))
    return fresh || (isSlot(descriptor) && values.isKept(object)) ||
           values.readMember(object, descriptor, PyUnicode_AsUTF8(name));
  if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0)
    return true; // the type is guarded already
  if (PyUnicode_CompareWithASCIIString(name, "__dict__") == 0 && !PyModule_Check(object)) {
    // The dict is made if there is none.
    PyRef dict = PyRef::steal(PyObject_GenericGetDict(object, nullptr));
    if (fresh && dict) {
      values.noteAttributes(dict.get());
      return values.find(dict.get()) || values.enterFresh(dict.get());
    }
    return values.readDict(object);
  }
  if (PyFunction_Check(object) && PyUnicode_CompareWithASCIIString(name, "__annotations__") == 0) {
    PyRef notes = memberOf(descriptor, object); // it is made if there is none
    if (fresh && notes)
      return values.find(notes.get()) || values.enterFresh(notes.get());
    return values.readMember(object, descriptor, "__annotations__");
  }
  bool ofFunction = false;
  for (const char *each : {"__name__", "__qualname__", "__code__", "__defaults__"})
    ofFunction |= PyFunction_Check(object) && PyUnicode_CompareWithASCIIString(name, each) == 0;
  if (ofFunction)
    return fresh || values.readMember(object, descriptor, PyUnicode_AsUTF8(name));
  if (std::string(kind->tp_name) == "_collections._tuplegetter")
    return values.readWhole(object);
  return values.fail(text + " is " + shown(descriptor));
}

/// Whether it is a module of torch, whose own code may read what is set.
static bool isTorchs(PyObject *module) {
  const char *name = PyModule_GetName(module);
  PyErr_Clear();
  return !name || std::string_view(name).substr(0, std::string_view(name).find('.')) == "torch";
}

bool Observer::storeAttribute(Frame &frame, PyObject *object, PyObject *name, PyObject *value) {
  std::string text = "sets the attribute " + shown(name) + " of " + shown(object);
  PyObject *operands[] = {object, value};
  if (!allUsable(operands, text))
    return false;
  PyTypeObject *type = Py_TYPE(object);
  if (isTensor(object) && value && PyUnicode_CompareWithASCIIString(name, "data") == 0)
    return setsData(frame, object, value);
  for (const char *each : {"grad", "requires_grad"})
    if (isTensor(object) && PyUnicode_CompareWithASCIIString(name, each) == 0)
      return setsGradient(frame, object, name, value);
  if (isTensor(object) && value && values.find(object)->origin == Origin::Result &&
      type->tp_setattro == PyObject_GenericSetAttr && !interpreter::typeLookup(type, name)) {
    PyObject *operandsOfSet[] = {object, name, value}; // for a tensor that the call has made
    guardMethods(object, {"__setattr__"});
    guards.typeItem(type, name, nullptr);
    return effect(frame, operators().setAttribute, operandsOfSet, nullptr) &&
           appendRecord(frame, Py_None) && expect(frame, Then::Nothing, false);
  }
  bool open = PyFunction_Check(object) || std::string(type->tp_name) == "types.SimpleNamespace" ||
              (PyODict_CheckExact(object) && values.isFresh(object));
  if (PyFunction_Check(object) && values.isFresh(object))
    return true;
  if (PyType_Check(object))
    return storeClass(frame, (PyTypeObject *)object, name, value);
  // This has the effect of a function that sets a global.
  if (PyModule_CheckExact(object) && value && !isTorchs(object))
    return values.pin(PyModule_GetDict(object), PyModule_GetName(object)) &&
           setsEntry(frame, PyModule_GetDict(object), nullptr, name, value);
  if (isTensor(object) || PyModule_Check(object) || (!inPython(type) && !open))
    return values.fail(text);
  // A class in Python may define only one of the two.
  guardMethods(object, {"__setattr__", "__delattr__"});
  bool hooked = type->tp_setattro == hookedSetAttribute() && inPython(type);
  PyTypeObject *answers = answering(object, value ? "__setattr__" : "__delattr__");
  if (hooked && !answers && counting && value && countsInModule(frame, object, name, value))
    return true;
  if (hooked && !answers)
    return expect(frame, Then::Nothing, true);
  hooked = hooked && !inPython(answers);
  PyObject *found = interpreter::typeLookup(type, name);
  bool entered = false;
  if (!readClass(type, name, found, false, entered))
    return false;
  if (found)
    guardDescriptor(found);
  if (isContextSetting(object, name))
    return true;
  if (found && isData(found) && Py_TYPE(found) != &PyMemberDescr_Type)
    return storeDescriptor(frame, found, value, text);
  if (type->tp_setattro != PyObject_GenericSetAttr && !hooked)
    return values.fail(text);
  return values.isFresh(object) || setsAttribute(frame, object, name, value);
}

/// Handles a property, or another descriptor in Python, that sets or deletes an attribute.
bool Observer::storeDescriptor(Frame &frame, PyObject *descriptor, PyObject *value,
                               const std::string &text) {
  if (Py_TYPE(descriptor) == &PyProperty_Type) {
    PyRef setter = PyRef::steal(PyObject_GetAttrString(descriptor, value ? "fset" : "fdel"));
    return (setter && PyFunction_Check(setter.get()) && values.pin(setter.get(), text) &&
            expect(frame, Then::Nothing, true)) ||
           values.fail(text);
  }
  PyRef method = PyRef::steal(PyUnicode_InternFromString(value ? "__set__" : "__delete__"));
  PyObject *sets = interpreter::typeLookup(Py_TYPE(descriptor), method.get());
  return (inPython(Py_TYPE(descriptor)) && sets && PyFunction_Check(sets) &&
          values.pin(descriptor, text) && expect(frame, Then::Nothing, true)) ||
         values.fail(text);
}

/// Sets an attribute like object.__setattr__.
bool Observer::storeOwn(Frame &frame, PyObject *object, PyObject *name, PyObject *value) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject *found = interpreter::typeLookup(type, name);
  bool ordinary = inPython(type) && !isTensor(object) && !PyType_Check(object);
  if (ordinary && found && isData(found) && Py_TYPE(found) != &PyMemberDescr_Type) {
    guards.typeItem(type, name, found);
    guardDescriptor(found);
    return storeDescriptor(frame, found, value,
                           "sets the attribute " + shown(name) + " of " + shown(object));
  }
  return values.isFresh(object) || setsAttribute(frame, object, name, value);
}

/// Sets an attribute of an object from outside whose class does not intercept it.
bool Observer::setsAttribute(Frame &frame, PyObject *object, PyObject *name, PyObject *value) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject *found = interpreter::typeLookup(type, name);
  bool entered = false;
  if (!readClass(type, name, found, false, entered))
    return false;
  if (isSlot(found))
    return setsSlot(frame, object, found, name, value);
  bool open = PyFunction_Check(object) || std::string(type->tp_name) == "types.SimpleNamespace";
  if ((!values.isExternal(object) && !values.isKept(object)) || isTensor(object) ||
      isCounter(object) || (!inPython(type) && !open) || (found && isData(found)))
    return values.fail("sets the attribute " + shown(name) + " of " + shown(object));
  // The dict is made if there is none.
  PyRef dict = PyRef::steal(PyObject_GenericGetDict(object, nullptr));
  return setsEntry(frame, dict.get(), object, name, value);
}

} // namespace weft::capture
