// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls: of Python functions, whose frames are watched, of classes, and of declared functions.
#include "capture/Arrays.h"
#include "capture/Observer.h"

#include "capture/Plain.h"

#include <algorithm>

namespace weft::capture {

static bool isGeneratorFunction(PyObject *function) {
  auto *code = (PyCodeObject *)((PyFunctionObject *)function)->func_code;
  return code->co_flags & CO_GENERATOR;
}

static bool isFunctionOf(PyObject *object, PyObject *code) {
  return PyFunction_Check(object) && ((PyFunctionObject *)object)->func_code == code;
}

static PyObject *descriptorIn(PyTypeObject *kind, PyMethodDef *method) {
  PyRef text = PyRef::steal(PyUnicode_InternFromString(method->ml_name));
  PyObject *order = text ? kind->tp_mro : nullptr;
  for (Py_ssize_t i = 0; order && i < PyTuple_GET_SIZE(order); ++i) {
    auto *type = (PyTypeObject *)PyTuple_GET_ITEM(order, i);
    PyObject *found = PyDict_GetItemWithError(type->tp_dict, text.get());
    if (found &&
        (Py_TYPE(found) == &PyMethodDescr_Type || Py_TYPE(found) == &PyClassMethodDescr_Type) &&
        ((PyMethodDescrObject *)found)->d_method == method)
      return found;
  }
  return nullptr;
}

/// The descriptor of a method that is bound in C; null if there is none. super() finds one of a
/// base.
static PyObject *descriptorOf(PyObject *bound) {
  PyObject *self = PyCFunction_GET_SELF(bound);
  PyMethodDef *method = ((PyCFunctionObject *)bound)->m_ml;
  if (!self)
    return nullptr;
  PyObject *found = descriptorIn(Py_TYPE(self), method);
  return found || !PyType_Check(self) ? found : descriptorIn((PyTypeObject *)self, method);
}

bool isCached(PyObject *callable) {
  return std::string_view(Py_TYPE(callable)->tp_name) == "functools._lru_cache_wrapper";
}

bool Observer::call(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  if (!values.isUsable(callable))
    return values.fail("calls " + shown(callable) + " of unknown origin");
  auto undeclared = [&] {
    return values.fail("calls " + nameOf(callable) + ", which is not declared");
  };
  for (PyObject *each : arguments)
    if (isWindow(each))
      return asksWindow(frame, callable, arguments, names);
    else if (!values.isUsable(each))
      return allUsable(arguments, nameOf(callable));
  frame.pending.callable = PyRef::borrow(callable);
  if (Kind kind = kindOf(callable); kind != Kind::None)
    return values.fixIdentity(callable) && callDeclared(frame, kind, callable, arguments, names);
  if (PyMethod_Check(callable)) {
    std::vector<PyObject *> all{PyMethod_GET_SELF(callable)};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return call(frame, PyMethod_GET_FUNCTION(callable), all, names);
  }
  if (isFunctionOf(callable, operators().optimizerCode))
    return values.fail("steps an optimizer: give the model alone to weft.compile, or model, loss "
                       "and optimizer to weft.compile_step");
  if (isFunctionOf(callable, operators().disabledCode))
    return callDisabled(frame, callable, arguments, names);
  if (isFunctionOf(callable, operators().dispatchCode) && !names)
    return callDispatch(frame, callable, arguments);
  if (callable == operators().copy && arguments.size() == 1 && !names && isTensor(arguments[0]))
    return enterFunction(callable) && sharesTensor(frame, arguments[0]);
  if ((callable == operators().deepCopy || callable == operators().deepCopyParameter) &&
      arguments.size() == 2 && !names)
    return copiesTensor(frame, arguments[0], arguments[1]);
  if (PyFunction_Check(callable)) {
    auto *code = (PyCodeObject *)((PyFunctionObject *)callable)->func_code;
    if (code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR))
      return values.fail("asynchronous code");
    return enterFunction(callable) && carries(frame) &&
           expect(frame, isGeneratorFunction(callable) ? Then::Fresh : Then::Usable, true);
  }
  if (PyCFunction_CheckExact(callable)) {
    // It holds a lock of its own while it asks and stores; a replay is not interrupted there.
    if ((PyObject *)interpreter::code(frame.frame) == operators().cachedPropertyCode &&
        std::string_view(Py_TYPE(PyCFunction_GET_SELF(callable))->tp_name) == "_thread.RLock")
      return expect(frame, Then::Plain, false, "leaving a lock");
    PyObject *descriptor = descriptorOf(callable);
    std::vector<PyObject *> all{PyCFunction_GET_SELF(callable)};
    all.insert(all.end(), arguments.begin(), arguments.end());
    Kind kind = descriptor ? kindOf(descriptor) : Kind::None;
    if (kind == Kind::ApplyFunction)
      return callFunction(frame, callable, arguments, names);
    return kind != Kind::None ? callDeclared(frame, kind, descriptor, all, names) : undeclared();
  }
  if (Py_TYPE(callable) == &_PyMethodWrapper_Type) {
    PyRef owner = PyRef::steal(PyObject_GetAttrString(callable, "__objclass__"));
    PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__name__"));
    PyRef self = PyRef::steal(PyObject_GetAttrString(callable, "__self__"));
    PyObject *descriptor = owner && name && PyType_Check(owner.get())
                               ? interpreter::typeLookup((PyTypeObject *)owner.get(), name.get())
                               : nullptr;
    if (!self || !values.isUsable(self.get()))
      return values.fail("calls " + nameOf(callable) + " of an object of unknown origin");
    std::vector<PyObject *> all{self.get()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    if (Kind kind = descriptor ? kindOf(descriptor) : Kind::None; kind != Kind::None)
      return callDeclared(frame, kind, descriptor, all, names);
    return undeclared();
  }
  if (kindOf((PyObject *)Py_TYPE(callable)) == Kind::Partial)
    return callPartial(frame, callable, arguments, names);
  if (kindOf((PyObject *)Py_TYPE(callable)) == Kind::Getter)
    return callGetter(frame, callable, arguments, names);
  if ((PyObject *)Py_TYPE(callable) == operators().scriptFunction) {
    PyRef functional = PyRef::steal(PyObject_CallOneArg(operators().isFunctional, callable));
    PyErr_Clear();
    if (functional.get() != Py_True)
      return values.fail("calls a scripted function that writes");
    if (!values.fixIdentity(callable) || !operation(frame, callable, arguments, names))
      return false;
    frame.pending.nested = frame.pending.foreign = true;
    return true;
  }
  if ((PyObject *)Py_TYPE(callable) == operators().overload ||
      (PyObject *)Py_TYPE(callable) == operators().overloadPacket) {
    PyRef functional = PyRef::steal(PyObject_CallOneArg(operators().isPure, callable));
    PyErr_Clear();
    if (functional.get() != Py_True)
      return values.fail("calls an operator that writes, " + nameOf(callable));
    guardMethods(callable, {"__call__"});
    if (!values.fixIdentity(callable) || !operation(frame, callable, arguments, names))
      return false;
    frame.pending.nested = frame.pending.foreign = true;
    return true;
  }
  if (isCached(callable))
    return callCached(frame, callable, arguments, names);
  if (PyWeakref_CheckRefExact(callable))
    return callDeclared(frame, Kind::Referent, callable, Arguments(&callable, 1), nullptr);
  if (PyType_Check(callable))
    return callClass(frame, (PyTypeObject *)callable, arguments, names, false);
  PyRef method = PyRef::steal(PyUnicode_InternFromString("__call__"));
  PyObject *found = interpreter::typeLookup(Py_TYPE(callable), method.get());
  if (found && PyFunction_Check(found)) {
    guardMethods(callable, {"__call__"});
    return carries(frame) && expect(frame, Then::Usable, true);
  }
  return undeclared();
}

bool Observer::callPartial(Frame &frame, PyObject *partial, Arguments arguments, PyObject *names) {
  PyRef function = PyRef::steal(PyObject_GetAttrString(partial, "func"));
  PyRef args = PyRef::steal(PyObject_GetAttrString(partial, "args"));
  PyRef keywords = PyRef::steal(PyObject_GetAttrString(partial, "keywords"));
  const Value *value = values.find(partial);
  if (!function || !args || !keywords || !value)
    return values.fail("calls a functools.partial of unknown origin");
  if (values.isExternal(partial)) { // __setstate__ may change these
    for (const char *each : {"func", "args", "keywords"}) {
      PyRef name = PyRef::steal(PyUnicode_InternFromString(each));
      PyObject *member = interpreter::typeLookup(Py_TYPE(partial), name.get());
      if (!member || Py_TYPE(member) != &PyMemberDescr_Type ||
          !values.readMember(partial, member, each))
        return values.fail("calls " + shown(partial));
    }
    if (!values.readWhole(args.get()) || !values.readWhole(keywords.get()))
      return false;
  }
  std::vector<PyObject *> all;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args.get()); ++i)
    all.push_back(PyTuple_GET_ITEM(args.get(), i));
  size_t positional = arguments.size() - (names ? PyTuple_GET_SIZE(names) : 0);
  all.insert(all.end(), arguments.begin(), arguments.begin() + positional);
  PyRef merged = PyRef::steal(PyDict_Copy(keywords.get()));
  for (size_t i = positional; merged && i < arguments.size(); ++i)
    PyDict_SetItem(merged.get(), PyTuple_GET_ITEM(names, i - positional), arguments[i]);
  PyRef order = PyRef::steal(merged ? PySequence_Tuple(merged.get()) : nullptr);
  if (!order)
    return values.fail("calls a functools.partial");
  PyObject *key, *each;
  for (Py_ssize_t at = 0; PyDict_Next(merged.get(), &at, &key, &each);)
    all.push_back(each);
  return call(frame, function.get(), all, PyTuple_GET_SIZE(order.get()) ? order.get() : nullptr);
}

/// Handles a generator's value that a function in C receives.
bool Observer::yields(PyObject *value, bool byGenerator) {
  Pending *taker = frames.size() > 1 ? &frames[frames.size() - 2].pending : nullptr;
  if (!taker || taker->yields == Pending::Yields::Anything)
    return true;
  if (taker->yields == Pending::Yields::Numbers) {
    values.fixWithin(value);
    return true;
  }
  if (taker->yields == Pending::Yields::Pairs)
    return readPair(value);
  if (taker->yields == Pending::Yields::Parts)
    return isPlainWithin(value) || (PyFunction_Check(value) && values.isUsable(value)) ||
           values.fail(taker->what + " takes " + shown(value));
  if (taker->yields == Pending::Yields::Keys && byGenerator)
    return values.isUsable(value) || values.fail(taker->what + " takes " + shown(value));
  if (taker->yields == Pending::Yields::Plain || taker->yields == Pending::Yields::Keys)
    return isPlain(value) || values.fail(taker->what + " takes " + shown(value));
  if (!(taker->record.changes ? values.isUsable(value) : values.isOperand(value)))
    return values.fail(taker->what + " takes " + shown(value));
  std::optional<Form> form = taker->record.changes ? values.lasting(value) : values.form(value);
  if (form)
    taker->record.arguments[taker->extended ? 1 : 0].parts.push_back(std::move(*form));
  return form.has_value();
}

/// Whether calling it runs only Python code, whatever the arguments are.
bool Observer::runsPython(PyObject *callable) {
  if (!values.isUsable(callable))
    return false;
  if (PyMethod_Check(callable))
    callable = PyMethod_GET_FUNCTION(callable);
  if (PyFunction_Check(callable))
    return !isGeneratorFunction(callable) && kindOf(callable) == Kind::None &&
           enterFunction(callable);
  PyRef method = PyRef::steal(PyUnicode_InternFromString("__call__"));
  PyObject *found =
      PyType_Check(callable) ? nullptr : interpreter::typeLookup(Py_TYPE(callable), method.get());
  if (!found || !PyFunction_Check(found))
    return false;
  guardMethods(callable, {"__call__"});
  return true;
}

/// Whether the type makes a set or deque, or a dict that the module copy makes from its parts.
static bool makesContainer(PyObject *type) {
  if (type == (PyObject *)&PySet_Type || type == (PyObject *)&PyFrozenSet_Type)
    return true;
  std::string name = PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "";
  return kindOf(type) == Kind::Builds &&
         (name == "collections.deque" || name == "collections.defaultdict");
}

/// Whether a method in Python takes the arguments that an instance is made of.
static bool takesInPython(PyTypeObject *type) {
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || kindOf((PyObject *)type) != Kind::None)
    return false;
  PyRef text = PyRef::steal(PyUnicode_InternFromString("__init__"));
  PyObject *init = interpreter::typeLookup(type, text.get());
  text = PyRef::steal(PyUnicode_InternFromString("__new__"));
  PyObject *make = interpreter::typeLookup(type, text.get());
  if (type->tp_new == PyBaseObject_Type.tp_new)
    return init && PyFunction_Check(init);
  PyRef function = PyRef::steal(make && Py_TYPE(make) == &PyStaticMethod_Type
                                    ? PyObject_GetAttrString(make, "__func__")
                                    : nullptr);
  return function && PyFunction_Check(function.get());
}

bool Observer::callSpread(Frame &frame, PyObject *callable, PyObject *args, PyObject *kwargs) {
  PyRef view;
  if (values.isFresh(args) &&
      (PyDictValues_Check(args) || PyDictKeys_Check(args) || PyDictItems_Check(args))) {
    view = PyRef::steal(PySequence_Tuple(args));
    args = view ? view.get() : args;
  }
  if (values.isFresh(args) && PyGen_CheckExact(args) && !kwargs && runsPython(callable)) {
    // The first call's result is the arguments of the second; both are observed, one after the
    // other.
    frame.pending.callable = PyRef::borrow(callable);
    return carries(frame) && expect(frame, Then::Usable, true);
  }
  if (values.isFresh(args) && PyGen_CheckExact(args) && !kwargs && PyType_Check(callable) &&
      kindOf(callable) == Kind::Pure) {
    frame.pending.yields = Pending::Yields::Plain;
    return expect(frame, Then::Plain, true, nameOf(callable));
  }
  if (values.isFresh(args) && PyGen_CheckExact(args) && !kwargs && PyType_Check(callable) &&
      takesInPython((PyTypeObject *)callable)) {
    frame.pending.callable = PyRef::borrow(callable);
    return callClass(frame, (PyTypeObject *)callable, {}, nullptr, false);
  }
  if (values.isFresh(args) && PyGen_CheckExact(args) && !kwargs && makesContainer(callable)) {
    frame.pending.yields = Pending::Yields::Parts;
    return expect(frame, Then::Fresh, true, nameOf(callable));
  }
  if (isTensor(args) && values.isUsable(args) && !kwargs && runsPython(callable)) {
    guardMethods(args, {"__iter__"}); // Tensor.__iter__ is a function in Python
    frame.pending.callable = PyRef::borrow(callable);
    return expect(frame, Then::Usable, true);
  }
  if (isArray(args) && values.isUsable(args) && !readArray(frame, args))
    return false;
  if ((PyRange_Check(args) && isPlain(args)) || (isArray(args) && values.isUsable(args))) {
    view = PyRef::steal(PySequence_Tuple(args));
    args = view ? view.get() : args;
  }
  if (!PyTuple_Check(args) && !PyList_CheckExact(args))
    return values.fail("spreads " + shown(args));
  if (kwargs && (!PyDict_CheckExact(kwargs) || !values.find(kwargs)))
    return values.fail("spreads " + shown(kwargs));
  if (!values.isUsable(args) || !values.readWhole(args) || (kwargs && !values.readWhole(kwargs)))
    return values.fail("spreads " + shown(args));
  std::vector<PyObject *> all;
  for (Py_ssize_t i = 0; i < Py_SIZE(args); ++i)
    all.push_back(PyTuple_Check(args) ? PyTuple_GET_ITEM(args, i) : PyList_GET_ITEM(args, i));
  PyRef names;
  if (kwargs && PyDict_GET_SIZE(kwargs)) {
    names = PyRef::steal(PySequence_Tuple(kwargs));
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);)
      all.push_back(value);
  }
  return call(frame, callable, all, names.get());
}

bool Observer::callClass(Frame &frame, PyTypeObject *type, Arguments arguments, PyObject *names,
                         bool plainly) {
  std::string what = type->tp_name;
  PyTypeObject *meta = Py_TYPE((PyObject *)type);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type != &PyBaseObject_Type &&
      !PyExceptionClass_Check((PyObject *)type))
    return values.fail("makes " + what + ", which is not declared");
  for (const char *each : {"__new__", "__init__"}) {
    PyRef name = PyRef::steal(PyUnicode_InternFromString(each));
    guards.typeItem(type, name.get(), interpreter::typeLookup(type, name.get()));
  }
  guardMethods((PyObject *)type, {"__call__"});
  // __call__ of a metaclass in Python, or an unknown one in C.
  if (!plainly && meta->tp_call != PyType_Type.tp_call)
    return (PyType_HasFeature(meta, Py_TPFLAGS_HEAPTYPE) && carries(frame) &&
            expect(frame, Then::Python, true, what)) ||
           values.fail("makes " + what);
  auto *exception = (PyTypeObject *)PyExc_BaseException;
  bool plain = type->tp_new == PyBaseObject_Type.tp_new || type->tp_new == PyProperty_Type.tp_new ||
               (PyExceptionClass_Check((PyObject *)type) && type->tp_new == exception->tp_new);
  PyTypeObject *base = builtinBase(type);
  plain |= base != type && type->tp_new == base->tp_new &&
           (base == &PyDict_Type || base == &PyODict_Type || base == &PyList_Type);
  PyRef name = PyRef::steal(PyUnicode_InternFromString("__init__"));
  PyObject *init = interpreter::typeLookup(type, name.get());
  if (init && !PyFunction_Check(init) && base != &PyBaseObject_Type &&
      !PyExceptionClass_Check((PyObject *)type)) // a container's constructor reads its arguments
    for (PyObject *each : arguments.first(arguments.size() - (names ? PyTuple_GET_SIZE(names) : 0)))
      if (!(PyType_IsSubtype(base, &PyDict_Type) ? readPairs(frame, each)
                                                 : readIterable(frame, each)))
        return false;
  name = PyRef::steal(PyUnicode_InternFromString("__new__"));
  PyObject *made = interpreter::typeLookup(type, name.get());
  if (!plain && !(made && Py_TYPE(made) == &PyStaticMethod_Type))
    return values.fail("makes " + what + ", whose __new__ is not known");
  frame.pending.type = type;
  // Python code and the constructors of object and of exceptions keep their arguments.
  frame.pending.carries = !init || PyFunction_Check(init) || base == &PyBaseObject_Type ||
                          PyExceptionClass_Check((PyObject *)type);
  return expect(frame, plain ? Then::Instance : Then::Usable, true, what);
}

} // namespace weft::capture
