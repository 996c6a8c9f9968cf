// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Python's module copy.
#include "capture/Observer.h"
#include "capture/Plain.h"

namespace weft::capture {

/// Whether it is Python's own module copy.
bool Observer::isCopying(const Frame &frame) {
  static PyObject *globals = nullptr;
  if (!globals) {
    PyRef module = PyRef::steal(PyImport_ImportModule("copy"));
    PyErr_Clear();
    globals = module ? Py_NewRef(PyModule_GetDict(module.get())) : Py_None;
  }
  return interpreter::globals(frame.frame) == globals;
}

bool Observer::comparesAddress(PyObject *object) {
  if (!values.isExternal(object)) // no other object of the call is the same one
    return true;
  // What the program holds is another object than all else that it holds.
  bool argument = values.find(object)->origin == Origin::Argument;
  std::vector<PyRef> &alike = argument ? addressedArguments : addressed;
  for (const std::vector<PyRef> *others : {&addressedArguments, argument ? &addressed : nullptr})
    for (size_t i = 0; others && i < others->size(); ++i)
      if ((*others)[i].get() != object && !values.readIdentity((*others)[i].get(), object))
        return false;
  alike.push_back(PyRef::borrow(object));
  return addressedArguments.size() * (addressed.size() + addressedArguments.size()) <= 4096;
}

/// One operation, which fails for a tensor that has more to it than its memory, or shares that with
/// another one of the same copy.
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

/// Containers in it that copying a tensor has made. What they hold is of no known origin.
void Observer::enterMemo(PyObject *memo) {
  PyObject *key, *item;
  for (Py_ssize_t at = 0; PyDict_Next(memo, &at, &key, &item);)
    if ((PyList_CheckExact(item) || PyDict_CheckExact(item)) && !values.find(item))
      values.enterFresh(item);
}

/// What `__reduce_ex__` of a class in C gives holds no more than what has been read of its object:
/// lists and iterators that nobody else has.
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

/// How an object is copied that is no list, tuple or dict: by its class and its attributes or
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
  if (builtinBase(type) != &PyBaseObject_Type || !interpreter::instanceDict(object))
    return values.fail("takes apart " + shown(object));
  guardMethods(object, {"__reduce__", "__getstate__", "__getnewargs_ex__", "__getnewargs__",
                        "__slots__", "__dict__"});
  bool given = false; // its state, by a method in Python, which is observed
  for (const char *each : {"__reduce__", "__getnewargs_ex__", "__getnewargs__", "__getstate__"}) {
    PyRef name = PyRef::steal(PyUnicode_InternFromString(each));
    PyObject *found = interpreter::typeLookup(type, name.get());
    if (found == interpreter::typeLookup(&PyBaseObject_Type, name.get()))
      continue;
    given = std::string_view(each) == "__getstate__" && found && PyFunction_Check(found);
    if (!given)
      return values.fail("takes apart " + shown(object) + " in a way of its own");
  }
  PyRef module = PyRef::steal(PyImport_ImportModule("copyreg"));
  PyRef make = PyRef::steal(module ? PyObject_GetAttrString(module.get(), "__newobj__") : nullptr);
  PyObject *dict = interpreter::instanceDict(object);
  if (!make || !values.pin(make.get(), "copyreg.__newobj__"))
    return values.fail("takes apart " + shown(object));
  if (given)
    return expect(frame, Then::Usable, true, "taking apart an object");
  if (values.isFresh(object) ? !values.find(dict) && !values.enterFresh(dict)
                             : !values.readDict(object))
    return false;
  frame.pending.foreign = true; // copyreg asks the class for its slots, and keeps what it finds
  return expect(frame, Then::Usable, true, "taking apart an object");
}

} // namespace weft::capture
