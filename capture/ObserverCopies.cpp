// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The observer's treatment of Python's module copy.
#include "capture/Imported.h"
#include "capture/Observer.h"
#include "capture/Plain.h"

namespace weft::capture {

/// Whether the frame runs code of Python's module copy.
bool Observer::isCopying(const Frame &frame) {
  static PyObject *globals = nullptr;
  if (!globals) {
    PyRef module = PyRef::steal(PyImport_ImportModule("copy"));
    PyErr_Clear();
    globals = module ? Py_NewRef(PyModule_GetDict(module.get())) : Py_None;
  }
  return interpreter::globals(frame.frame) == globals;
}

bool Observer::hasKnownAddress(PyObject *object) {
  const Value *value = values.find(object);
  return value ? value->origin == Origin::Pinned && !value->weak : isSingleton(object);
}

bool Observer::comparesAddress(PyObject *object) {
  if (!values.isExternal(object)) // an object of the call's own is identical to no other
    return true;
  // An object that the program holds is known to be different from all others that it holds.
  bool argument = values.find(object)->origin == Origin::Argument;
  std::vector<PyRef> &alike = argument ? addressedArguments : addressed;
  for (const std::vector<PyRef> *others : {&addressedArguments, argument ? &addressed : nullptr})
    for (size_t i = 0; others && i < others->size(); ++i)
      if ((*others)[i].get() != object && !values.readIdentity((*others)[i].get(), object))
        return false;
  alike.push_back(PyRef::borrow(object));
  return addressedArguments.size() * (addressed.size() + addressedArguments.size()) <= 4096;
}

/// Copies a tensor by one operation, which fails if the tensor has more than its memory, or shares
/// that with another tensor of the same copy.
bool Observer::copiesTensor(Frame &frame, PyObject *tensor, PyObject *memo) {
  std::vector<PyObject *> taken{tensor};
  for (const CopiedTensor &each : copied)
    if (each.memo.get() == memo)
      taken.push_back(each.tensor.get());
  if (!isTensor(tensor) || !PyDict_CheckExact(memo) || !values.isFresh(memo) || nodes)
    return values.fail("copies " + shown(tensor));
  guardMethods(tensor, {"__deepcopy__"});
  if (!operation(frame, operators().copyTensor, taken, nullptr))
    return false;
  copied.push_back({PyRef::borrow(tensor), PyRef::borrow(memo)});
  frame.pending.nested = frame.pending.foreign = true;
  frame.pending.memo = memo;
  return true;
}

/// Makes a tensor of the same memory by one operation, which fails if the tensor has attributes.
bool Observer::sharesTensor(Frame &frame, PyObject *tensor) {
  guardMethods(tensor, {"__copy__", "__reduce_ex__"});
  if (nodes || !operation(frame, operators().shareTensor, Arguments(&tensor, 1), nullptr))
    return values.fail("copies " + shown(tensor));
  return frame.pending.nested = frame.pending.foreign = true;
}

/// Enters the containers in `memo` that copying a tensor has made. Their contents are of unknown
/// origin.
void Observer::enterMemo(PyObject *memo) {
  PyObject *key, *item;
  for (Py_ssize_t at = 0; PyDict_Next(memo, &at, &key, &item);)
    if ((PyList_CheckExact(item) || PyDict_CheckExact(item)) && !values.find(item))
      values.enterFresh(item);
}

/// The result of `__reduce_ex__` of a class in C contains only what has been read of its object, in
/// lists and iterators that belong to nobody else.
void Observer::enterReduced(PyObject *part) {
  if (values.isUsable(part))
    return;
  if (!PyTuple_CheckExact(part)) {
    values.enterFresh(part);
    return;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(part); ++i)
    enterReduced(PyTuple_GET_ITEM(part, i));
}

/// How an object other than a list, tuple or dict is copied: by its class, and its attributes or
/// items.
bool Observer::reduces(Frame &frame, Arguments arguments, PyObject *names) {
  PyObject *object = arguments.size() == 2 && !names ? arguments[0] : nullptr;
  if (!object || !isCopying(frame) || !values.isUsable(object))
    return values.fail("takes apart " + shown(object));
  if (isPlain(object) || PyAnySet_CheckExact(object) || PyODict_CheckExact(object) ||
      (isDeque(object) && !PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE)) ||
      isDefaultDict(object)) {
    frame.pending.reduced = frame.pending.foreign = true; // copyreg asks the class for its slots
    return (isPlain(object) || values.readWhole(object)) &&
           expect(frame, Then::Usable, true, "taking apart " + shown(object));
  }
  PyTypeObject *type = Py_TYPE(object);
  bool space = kindOf(reinterpret_cast<PyObject *>(type)) == Kind::Namespace;
  std::vector<PyObject *> slots = slotsOf(type);
  PyObject *dict = interpreter::instanceDict(object);
  if ((builtinBase(type) != &PyBaseObject_Type && !space) || (!dict && slots.empty()))
    return values.fail("takes apart " + shown(object));
  guardMethods(object, {"__reduce__", "__getstate__", "__getnewargs_ex__", "__getnewargs__",
                        "__slots__", "__dict__"});
  bool given = false; // whether a method in Python, which is observed, gives its state
  for (const char *each : {"__reduce__", "__getnewargs_ex__", "__getnewargs__", "__getstate__"}) {
    PyRef name = PyRef::steal(PyUnicode_InternFromString(each));
    PyObject *found = interpreter::typeLookup(type, name.get());
    if (space || found == interpreter::typeLookup(&PyBaseObject_Type, name.get()))
      continue;
    given = std::string_view(each) == "__getstate__" && found && PyFunction_Check(found);
    if (!given)
      return values.fail("takes apart " + shown(object) + " in a way of its own");
  }
  PyRef make = imported("copyreg", "__newobj__");
  if (!make || !values.pin(make.get(), "copyreg.__newobj__"))
    return values.fail("takes apart " + shown(object));
  if (given)
    return expect(frame, Then::Usable, true, "taking apart an object");
  if (dict && (values.isFresh(object) ? !values.find(dict) && !values.enterFresh(dict)
                                      : !values.readDict(object)))
    return false;
  for (PyObject *each : slots)
    if (values.isExternal(object) && !values.readMember(object, each, nameOf(each)))
      return false;
  frame.pending.reduced = !slots.empty();
  frame.pending.foreign = true; // copyreg asks the class for its slots, and stores the answer
  return expect(frame, Then::Usable, true, "taking apart an object");
}

} // namespace weft::capture
