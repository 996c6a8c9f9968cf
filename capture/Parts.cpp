// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Parts.h"

#include "capture/Imported.h"
#include "capture/Interpreter.h"
#include "capture/PyRef.h"

#include <cstddef>
#include <map>
#include <new>
#include <structmember.h>
#include <unordered_map>
#include <vector>

namespace weft::capture {

namespace {

enum class How : uint8_t { Nothing, Part, Alone };

struct Entry {
  PyRef known;    // a weak reference to the callee, whose address may be another object's by now
  PyRef callable; // what is called instead
  bool refused = false;
};

// Code objects that are made anew for each call would otherwise be kept for ever.
constexpr size_t mostCodes = 1 << 14;

struct Tables {
  std::unordered_map<PyObject *, std::pair<PyRef, How>> codes;
  std::map<std::pair<PyObject *, PyObject *>, Entry> entries; // by function and owner
};

struct Parts {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyRef target, how, make;
  Tables *tables;
};

Parts *cast(PyObject *self) { return reinterpret_cast<Parts *>(self); }

/// The parts that are active on this thread. The caller that set it holds it.
thread_local Parts *active = nullptr;
/// The number of threads with active parts. They all hold the interpreter's lock here.
int activeCount = 0;

PyObject *asked(const interpreter::Call &call);

Parts *exchange(Parts *parts) {
  Parts *before = std::exchange(active, parts);
  activeCount += (parts != nullptr) - (before != nullptr);
  interpreter::onCalls(activeCount ? asked : nullptr);
  return before;
}

class Scope {
public:
  explicit Scope(Parts *parts) : before(exchange(parts)) {}
  ~Scope() { exchange(before); }
  Scope(const Scope &) = delete;
  Scope &operator=(const Scope &) = delete;

private:
  Parts *before;
};

/// Gives false with an error set.
bool howOf(Parts *parts, PyObject *function, How &how) {
  auto *code = ((PyFunctionObject *)function)->func_code;
  if (auto found = parts->tables->codes.find(code); found != parts->tables->codes.end()) {
    how = found->second.second;
    return true;
  }
  PyRef told = PyRef::steal(PyObject_CallOneArg(parts->how.get(), function));
  long number = told ? PyLong_AsLong(told.get()) : -1;
  if (!told || (number < 0 && PyErr_Occurred()))
    return false;
  how = number == 1 ? How::Part : number == 2 ? How::Alone : How::Nothing;
  if (parts->tables->codes.size() < mostCodes)
    parts->tables->codes.emplace(code, std::pair(PyRef::borrow(code), how));
  return true;
}

/// Finds what is called instead of the function, if anything is. False with an error set.
bool find(Parts *parts, PyObject *function, PyObject *owner, PyRef &callable) {
  Entry &entry = parts->tables->entries[{function, owner}];
  if (entry.callable || entry.refused) {
    callable = entry.callable;
    return true;
  }
  PyObject *called = owner ? owner : function;
  if (!entry.known || PyWeakref_GetObject(entry.known.get()) != called) {
    entry.known = PyRef::steal(PyWeakref_NewRef(called, nullptr));
    return bool(entry.known);
  }
  entry.refused = true; // it stays refused while the callable is being made, and if that fails
  PyRef made = PyRef::steal(
      PyObject_CallFunctionObjArgs(parts->make.get(), function, owner ? owner : Py_None, nullptr));
  if (!made)
    return false;
  if (made.get() != Py_None) {
    Entry &now = parts->tables->entries[{function, owner}];
    now.refused = false;
    now.callable = callable = std::move(made);
  }
  return true;
}

/// Calls it with the arguments that the frame starts with, from number `first` on.
PyObject *callInstead(PyObject *callable, const interpreter::Call &call, size_t first) {
  auto *code = (PyCodeObject *)((PyFunctionObject *)call.function)->func_code;
  auto positional = static_cast<size_t>(code->co_argcount);
  size_t at = positional + static_cast<size_t>(code->co_kwonlyargcount);
  std::vector<PyObject *> values(call.locals.begin(), call.locals.begin() + code->co_argcount);
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(first));
  if (code->co_flags & CO_VARARGS) {
    PyObject *more = call.locals[at++];
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(more); ++i)
      values.push_back(PyTuple_GET_ITEM(more, i));
  }
  size_t count = values.size();
  PyRef names = PyRef::steal(PyList_New(0));
  auto add = [&](PyObject *name, PyObject *value) {
    values.push_back(value);
    return names && PyList_Append(names.get(), name) == 0;
  };
  for (int i = 0; i < code->co_kwonlyargcount; ++i) {
    size_t number = positional + static_cast<size_t>(i);
    if (!add(PyTuple_GET_ITEM(code->co_localsplusnames, static_cast<Py_ssize_t>(number)),
             call.locals[number]))
      return nullptr;
  }
  PyObject *key, *value;
  for (Py_ssize_t i = 0;
       code->co_flags & CO_VARKEYWORDS && PyDict_Next(call.locals[at], &i, &key, &value);)
    if (!add(key, value))
      return nullptr;
  PyRef keys = PyRef::steal(names ? PyList_AsTuple(names.get()) : nullptr);
  return keys ? PyObject_Vectorcall(callable, values.data(), count,
                                    PyTuple_GET_SIZE(keys.get()) ? keys.get() : nullptr)
              : nullptr;
}

PyObject *asked(const interpreter::Call &call) {
  Parts *parts = active;
  How how = How::Nothing;
  if (!parts)
    return call.run();
  PyRef callable;
  PyObject *owner = nullptr;
  {
    Scope alone(nullptr);
    PyTypeObject *module = moduleType();
    if (!module || !howOf(parts, call.function, how))
      return nullptr;
    if (how == How::Alone)
      return call.run();
    if (how == How::Part) {
      auto *code = (PyCodeObject *)((PyFunctionObject *)call.function)->func_code;
      if (code->co_argcount && PyObject_TypeCheck(call.locals[0], module))
        owner = call.locals[0];
      if (!find(parts, call.function, owner, callable))
        return nullptr;
    }
    if (callable)
      return callInstead(callable.get(), call, owner ? 1 : 0);
  }
  return call.run();
}

PyObject *callTarget(PyObject *self, PyObject *const *values, size_t flags, PyObject *names) {
  PyRef alive = PyRef::borrow(self);
  Scope scope(cast(self));
  return PyObject_Vectorcall(cast(self)->target.get(), values, PyVectorcall_NARGS(flags), names);
}

PyObject *refuse(PyObject *self, PyObject *args) {
  PyObject *function, *owner;
  if (!PyArg_ParseTuple(args, "OO", &function, &owner))
    return nullptr;
  Entry &entry = cast(self)->tables->entries[{function, owner == Py_None ? nullptr : owner}];
  PyRef old = std::move(entry.callable);
  entry.refused = true;
  // The entry holds the object by which it is found, since another one at its address would be
  // refused as well.
  entry.known = PyRef::borrow(owner == Py_None ? function : owner);
  Py_RETURN_NONE;
}

PyObject *create(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *target, *how, *make;
  if (!PyArg_ParseTuple(args, "OOO:Parts", &target, &how, &make))
    return nullptr;
  PyObject *self = type->tp_alloc(type, 0);
  if (!self)
    return nullptr;
  Parts *parts = cast(self);
  parts->vectorcall = callTarget;
  new (&parts->target) PyRef(PyRef::borrow(target));
  new (&parts->how) PyRef(PyRef::borrow(how));
  new (&parts->make) PyRef(PyRef::borrow(make));
  parts->tables = new Tables;
  return self;
}

int traverse(PyObject *self, visitproc visit, void *arg) {
  Parts *parts = cast(self);
  Py_VISIT(Py_TYPE(self));
  for (const PyRef *each : {&parts->target, &parts->how, &parts->make})
    Py_VISIT(each->get());
  for (const auto &[code, how] : parts->tables->codes)
    Py_VISIT(how.first.get());
  for (const auto &[key, entry] : parts->tables->entries) {
    Py_VISIT(entry.known.get());
    Py_VISIT(entry.callable.get());
  }
  return 0;
}

int clear(PyObject *self) {
  Parts *parts = cast(self);
  Tables tables = std::exchange(*parts->tables, {});
  PyRef target = std::exchange(parts->target, {}), how = std::exchange(parts->how, {}),
        make = std::exchange(parts->make, {});
  return 0;
}

void dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  Parts *parts = cast(self);
  std::destroy_at(&parts->target);
  std::destroy_at(&parts->how);
  std::destroy_at(&parts->make);
  delete parts->tables;
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject *partsType = nullptr;

} // namespace

PyObject *leaveParts(PyObject *, PyObject *) {
  Parts *before = exchange(nullptr);
  return Py_NewRef(before ? reinterpret_cast<PyObject *>(before) : Py_None);
}

PyObject *enterParts(PyObject *, PyObject *parts) {
  if (parts != Py_None && Py_TYPE(parts) != partsType)
    return PyErr_Format(PyExc_TypeError, "expected what leave_parts gave");
  exchange(parts == Py_None ? nullptr : cast(parts));
  Py_RETURN_NONE;
}

PyObject *makePartsType() {
  static PyMethodDef methods[] = {{"refuse", refuse, METH_VARARGS, nullptr}, {}};
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(Parts, vectorcall), READONLY, nullptr}, {}};
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(create)},
                                {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
                                {Py_tp_methods, methods},
                                {Py_tp_members, members},
                                {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
                                {Py_tp_clear, reinterpret_cast<void *>(clear)},
                                {Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
                                {}};
  static PyType_Spec spec = {"weft._capture.Parts", sizeof(Parts), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                             slots};
  PyObject *type = PyType_FromSpec(&spec);
  partsType = reinterpret_cast<PyTypeObject *>(type);
  return type;
}

} // namespace weft::capture
