// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/Callable.h"

#include "python/bindings/Environment.h"
#include "python/bindings/SizeRange.h"
#include "python/bindings/Specialization.h"
#include "python/bindings/Torch.h"

#include <nanobind/nanobind.h>
#include <structmember.h>

#include <algorithm>
#include <new>
#include <string>

namespace nb = nanobind;

namespace weft {

namespace {

// A plain CPython type, because nanobind's have no vectorcall.
struct Callable {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *face;
  PyObject *original;
  PyObject *instead; // of the original, where no program stands for a call; null for itself
  PyObject *weakReferences;
  std::vector<PyRef> environments; // Environment objects
  std::vector<PyRef> observed;     // programs of weft._capture
  std::vector<PyRef> refusedTypes; // of arguments with which PyTorch runs the call
  bool userKnows;                  // that PyTorch runs calls, so that these need no face
  bool full;                       // there will be no more programs
  bool eagerWhileGrad;             // no program has gradients
  uint64_t hits;
  uint64_t uses; // of programs, those that Python calls among them: a clock
};

struct Names {
  PyObject *original = PyUnicode_InternFromString("original");
  PyObject *dispatch = PyUnicode_InternFromString("dispatch");
  PyObject *declined = PyUnicode_InternFromString("declined");
  PyObject *often = PyUnicode_InternFromString("often");
  static const Names &get() {
    static const Names names;
    return names;
  }
};

} // namespace

static Callable *cast(PyObject *self) { return reinterpret_cast<Callable *>(self); }

// (args, kwargs) as a call's own tuple and dict, after `leading` objects.
static PyRef packCall(std::initializer_list<PyObject *> leading, const CallArguments &call,
                      PyObject *face, PyObject *method) {
  PyRef args = PyRef::steal(PyTuple_New(call.positional));
  PyRef kwargs = PyRef::steal(PyDict_New());
  if (!args || !kwargs)
    return {};
  for (Py_ssize_t i = 0; i < call.positional; ++i)
    PyTuple_SET_ITEM(args.get(), i, Py_NewRef(call.values[i]));
  for (Py_ssize_t i = 0; i < call.named(); ++i)
    if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(call.names, i),
                       call.values[call.positional + i]))
      return {};
  std::vector<PyObject *> arguments{face};
  arguments.insert(arguments.end(), leading);
  arguments.push_back(args.get());
  arguments.push_back(kwargs.get());
  return PyRef::steal(
      PyObject_VectorcallMethod(method, arguments.data(), arguments.size(), nullptr));
}

static PyRef callOriginal(Callable *self, const CallArguments &call) {
  return PyRef::steal(PyObject_Vectorcall(self->instead ? self->instead : self->original,
                                          call.values, call.positional, call.names));
}

// Tries the programs of one environment. True when the call has been dealt with.
static bool callPrograms(Callable *self, Environment &environment, const CallArguments &call,
                         PyRef &value) {
  std::vector<PyRef> &specializations = environment.specializations;
  // Python code may run below and change the list: every round looks at it anew.
  for (size_t i = 0; i < specializations.size(); ++i) {
    PyRef candidate = specializations[i];
    std::string reason;
    auto *specialization = nb::inst_ptr<Specialization>(nb::handle(candidate.get()));
    switch (specialization->training ? specialization->callRecorded(call, value, reason)
                                     : specialization->call(call, value, reason)) {
    case Specialization::Mismatch:
      continue;
    case Specialization::Unusual:
      return false;
    case Specialization::Done:
      ++self->hits;
      specialization->lastUse = ++self->uses;
      if (i > 0 && i < specializations.size())
        std::rotate(specializations.begin(), specializations.begin() + i,
                    specializations.begin() + i + 1);
      return true;
    case Specialization::Error:
      return true;
    case Specialization::Declined: {
      specialization->lastUse = ++self->uses;
      if (self->userKnows && !specialization->program) {
        value = callOriginal(self, call);
        return true;
      }
      PyRef text = PyRef::steal(PyUnicode_DecodeUTF8(reason.data(), reason.size(), "replace"));
      if (text)
        value = packCall({candidate.get(), text.get()}, call, self->face, Names::get().declined);
      return true;
    }
    }
  }
  return false;
}

/// Tries the programs for ranges of sizes. True when the call has been dealt with.
static bool callRanges(Callable *self, Environment &environment, const CallArguments &call,
                       PyRef &value) {
  std::vector<PyRef> &ranges = environment.ranges;
  // Python code may run below and change the list: every round looks at it anew.
  for (size_t i = 0; i < ranges.size(); ++i) {
    PyRef candidate = ranges[i];
    bool isOften = false;
    switch (nb::inst_ptr<SizeRange>(nb::handle(candidate.get()))->call(call, value, isOften)) {
    case Specialization::Mismatch:
      continue;
    case Specialization::Done:
      ++self->hits;
      if (i > 0 && i < ranges.size())
        std::rotate(ranges.begin(), ranges.begin() + i, ranges.begin() + i + 1);
      if (isOften && !packCall({candidate.get()}, call, self->face, Names::get().often))
        value = {}; // interrupted
      return true;
    case Specialization::Declined:
    case Specialization::Unusual:
      value = callOriginal(self, call);
      return true;
    case Specialization::Error:
      return true;
    }
  }
  return false;
}

static bool isRefused(const Callable *self, const CallArguments &call) {
  if (self->refusedTypes.empty())
    return false;
  auto *first = call.values, *last = first + call.positional + call.named();
  return std::any_of(first, last, [self](PyObject *value) {
    return std::ranges::any_of(self->refusedTypes, [value](const PyRef &type) {
      return reinterpret_cast<PyObject *>(Py_TYPE(value)) == type.get();
    });
  });
}

/// Whether the call would have to record gradients of one of its arguments themselves.
static bool wantsGradients(const CallArguments &call) {
  const Torch &torch = Torch::get();
  if (!torch.recordsGradients())
    return false;
  auto *first = call.values, *last = first + call.positional + call.named();
  return std::any_of(first, last, [&torch](PyObject *value) {
    return torch.isPlainTensor(value) && torch.requiresGrad(value);
  });
}

/// Tries the programs that came of observed calls. True when the call has been dealt with.
static bool callObserved(Callable *self, const CallArguments &call, PyRef &value) {
  std::vector<PyRef> &programs = self->observed;
  // Python code may run below and change the list.
  for (size_t i = 0; i < programs.size(); ++i) {
    PyRef program = programs[i];
    value =
        PyRef::steal(PyObject_Vectorcall(program.get(), call.values, call.positional, call.names));
    if (value.get() == Py_NotImplemented)
      continue;
    self->hits += static_cast<bool>(value);
    if (i > 0 && i < programs.size())
      std::rotate(programs.begin(), programs.begin() + i, programs.begin() + i + 1);
    return true;
  }
  return false;
}

static PyRef dispatch(Callable *self, const CallArguments &call) {
  if (isRefused(self, call))
    return callOriginal(self, call);
  if (!self->environments.empty())
    nb::inst_ptr<Environment>(nb::handle(self->environments.front().get()))->fetchAhead();
  // An operation under a mode may mean anything; the face says so in the report.
  bool direct = !(self->environments.empty() && self->observed.empty()) && !interpositionActive();
  PyRef found;
  if (direct && !self->observed.empty() && callObserved(self, call, found))
    return found;
  for (size_t i = 0; direct && i < self->environments.size(); ++i) {
    // Python code may run below and replace the list.
    PyRef alive = self->environments[i];
    auto &environment = *nb::inst_ptr<Environment>(nb::handle(alive.get()));
    if (self->userKnows && environment.guards.hooked())
      return callOriginal(self, call);
    if (!environment.holds())
      continue;
    if (self->userKnows && (environment.eager || environment.wantsGradients()))
      return callOriginal(self, call);
    PyRef value;
    if (!environment.eager && (callPrograms(self, environment, call, value) ||
                               callRanges(self, environment, call, value)))
      return value;
    break;
  }
  if ((direct && self->full) || (self->eagerWhileGrad && wantsGradients(call)))
    return callOriginal(self, call);
  return packCall({}, call, self->face, Names::get().dispatch);
}

PyObject *callCallable(PyObject *object, PyObject *const *arguments, size_t flags,
                       PyObject *names) {
  CallArguments call{arguments, PyVectorcall_NARGS(flags), names};
  try {
    return dispatch(cast(object), call).release();
  } catch (nb::python_error &error) {
    error.restore();
  } catch (const std::bad_alloc &) {
    PyErr_NoMemory();
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *face;
  if (!PyArg_ParseTuple(args, "O:Callable", &face))
    return nullptr;
  PyObject *original = PyObject_GetAttr(face, Names::get().original);
  if (!original)
    return nullptr;
  PyObject *self = type->tp_alloc(type, 0);
  if (!self) {
    Py_DECREF(original);
    return nullptr;
  }
  Callable *callable = cast(self);
  callable->vectorcall = callCallable;
  callable->face = Py_NewRef(face);
  callable->original = original;
  new (&callable->environments) std::vector<PyRef>();
  new (&callable->refusedTypes) std::vector<PyRef>();
  new (&callable->observed) std::vector<PyRef>();
  return self;
}

static PyObject *arm(PyObject *self, PyObject *list) {
  std::vector<PyRef> environments;
  for (nb::handle environment : nb::borrow<nb::list>(list)) {
    if (!nb::isinstance<Environment>(environment)) {
      PyErr_SetString(PyExc_TypeError, "expected a list of Environment");
      return nullptr;
    }
    environments.push_back(PyRef::borrow(environment.ptr()));
  }
  cast(self)->environments = std::move(environments);
  Py_RETURN_NONE;
}

static PyObject *observe(PyObject *self, PyObject *list) {
  std::vector<PyRef> programs;
  for (nb::handle program : nb::borrow<nb::list>(list))
    programs.push_back(PyRef::borrow(program.ptr()));
  std::swap(cast(self)->observed, programs);
  Py_RETURN_NONE;
}

static PyObject *runEagerly(PyObject *self, PyObject *args) {
  PyObject *types;
  int full, whileGrad;
  if (!PyArg_ParseTuple(args, "O!pp:_run_eagerly", &PyTuple_Type, &types, &full, &whileGrad))
    return nullptr;
  std::vector<PyRef> refused;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); ++i)
    refused.push_back(PyRef::borrow(PyTuple_GET_ITEM(types, i)));
  cast(self)->refusedTypes = std::move(refused);
  cast(self)->userKnows = true;
  cast(self)->full = full != 0;
  cast(self)->eagerWhileGrad = whileGrad != 0;
  Py_RETURN_NONE;
}

static PyObject *callInstead(PyObject *self, PyObject *callable) {
  PyObject *old = std::exchange(cast(self)->instead, Py_NewRef(callable));
  Py_XDECREF(old);
  Py_RETURN_NONE;
}

static PyObject *hits(PyObject *self, PyObject *) {
  return PyLong_FromUnsignedLongLong(cast(self)->hits);
}

static PyObject *tick(PyObject *self, PyObject *) {
  return PyLong_FromUnsignedLongLong(++cast(self)->uses);
}

static PyObject *getAttribute(PyObject *self, PyObject *name) {
  if (PyObject *value = PyObject_GenericGetAttr(self, name))
    return value;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError) || !cast(self)->face)
    return nullptr;
  PyErr_Clear();
  return PyObject_GetAttr(cast(self)->face, name);
}

static PyObject *represent(PyObject *self) {
  return PyUnicode_FromFormat("<weft.compile(%R)>", cast(self)->original);
}

// A compiled function in a class body is a method, as the function would be.
static PyObject *bindToInstance(PyObject *self, PyObject *instance, PyObject *) {
  bool isFunction = PyFunction_Check(cast(self)->original);
  return instance && instance != Py_None && isFunction ? PyMethod_New(self, instance)
                                                       : Py_NewRef(self);
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->face);
  Py_VISIT(cast(self)->original);
  Py_VISIT(cast(self)->instead);
  for (const std::vector<PyRef> *all :
       {&cast(self)->environments, &cast(self)->refusedTypes, &cast(self)->observed})
    for (const PyRef &each : *all)
      Py_VISIT(each.get());
  return 0;
}

static int clear(PyObject *self) {
  Py_CLEAR(cast(self)->face);
  Py_CLEAR(cast(self)->original);
  Py_CLEAR(cast(self)->instead);
  cast(self)->environments.clear();
  cast(self)->refusedTypes.clear();
  auto observed = std::exchange(cast(self)->observed, {});
  return 0;
}

static void destroy(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weakReferences)
    PyObject_ClearWeakRefs(self);
  clear(self);
  std::destroy_at(&cast(self)->environments);
  std::destroy_at(&cast(self)->refusedTypes);
  std::destroy_at(&cast(self)->observed);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject *makeCallableType(PyObject *module) {
  static PyMethodDef methods[] = {{"_arm", arm, METH_O, nullptr},
                                  {"_observe", observe, METH_O, nullptr},
                                  {"_run_eagerly", runEagerly, METH_VARARGS, nullptr},
                                  {"_call_instead", callInstead, METH_O, nullptr},
                                  {"_hits", hits, METH_NOARGS, nullptr},
                                  {"_tick", tick, METH_NOARGS, nullptr},
                                  {}};
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(Callable, vectorcall), READONLY, nullptr},
      {"__weaklistoffset__", T_PYSSIZET, offsetof(Callable, weakReferences), READONLY, nullptr},
      {}};
  static PyType_Slot slots[] = {{Py_tp_new, (void *)create},
                                {Py_tp_dealloc, (void *)destroy},
                                {Py_tp_traverse, (void *)traverse},
                                {Py_tp_clear, (void *)clear},
                                {Py_tp_call, (void *)PyVectorcall_Call},
                                {Py_tp_getattro, (void *)getAttribute},
                                {Py_tp_descr_get, (void *)bindToInstance},
                                {Py_tp_repr, (void *)represent},
                                {Py_tp_methods, methods},
                                {Py_tp_members, members},
                                {}};
  static PyType_Spec spec = {"weft._core.Callable", sizeof(Callable), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                             slots};
  return PyType_FromModuleAndSpec(module, &spec, nullptr);
}

} // namespace weft
