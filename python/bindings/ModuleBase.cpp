// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/ModuleBase.h"

#include "python/bindings/Callable.h"

#include <structmember.h>

namespace weft {

namespace {

struct ModuleBase {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *callable;
};

} // namespace

static ModuleBase *cast(PyObject *self) { return reinterpret_cast<ModuleBase *>(self); }

static PyTypeObject *baseType = nullptr;

static PyObject *vectorcall(PyObject *self, PyObject *const *arguments, size_t flags,
                            PyObject *names) {
  // The call may drop the last reference to the module.
  PyObject *callable = Py_XNewRef(cast(self)->callable);
  if (!callable)
    return PyErr_Format(PyExc_RuntimeError, "expected a module that weft.compile has returned");
  PyObject *value = callCallable(callable, arguments, flags, names);
  Py_DECREF(callable);
  return value;
}

static PyObject *create(PyTypeObject *type, PyObject *, PyObject *) {
  PyObject *self = type->tp_alloc(type, 0);
  if (self)
    cast(self)->vectorcall = vectorcall;
  return self;
}

static bool isModuleBase(PyObject *object) {
  if (baseType && PyObject_TypeCheck(object, baseType))
    return true;
  PyErr_SetString(PyExc_TypeError, "expected a compiled module");
  return false;
}

static PyObject *adopt(PyObject *, PyObject *type) {
  if (!PyType_Check(type) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(type), baseType)) {
    PyErr_SetString(PyExc_TypeError, "expected a subclass of ModuleBase");
    return nullptr;
  }
  // CPython 3.11 gives the flag to types in C alone.
  reinterpret_cast<PyTypeObject *>(type)->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  PyType_Modified(reinterpret_cast<PyTypeObject *>(type));
  Py_RETURN_NONE;
}

static PyObject *hold(PyObject *, PyObject *args) {
  PyObject *object, *callable;
  if (!PyArg_ParseTuple(args, "OO:_hold", &object, &callable) || !isModuleBase(object))
    return nullptr;
  Py_XSETREF(cast(object)->callable, Py_NewRef(callable));
  Py_RETURN_NONE;
}

static PyObject *held(PyObject *, PyObject *object) {
  if (!isModuleBase(object))
    return nullptr;
  PyObject *callable = cast(object)->callable;
  return Py_NewRef(callable ? callable : Py_None);
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->callable);
  return 0;
}

static int clear(PyObject *self) {
  Py_CLEAR(cast(self)->callable);
  return 0;
}

static void destroy(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject *makeModuleBaseType(PyObject *module) {
  static PyMethodDef methods[] = {{"_adopt", adopt, METH_O | METH_STATIC, nullptr},
                                  {"_hold", hold, METH_VARARGS | METH_STATIC, nullptr},
                                  {"_held", held, METH_O | METH_STATIC, nullptr},
                                  {}};
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(ModuleBase, vectorcall), READONLY, nullptr},
      {}};
  static PyType_Slot slots[] = {{Py_tp_new, (void *)create},
                                {Py_tp_dealloc, (void *)destroy},
                                {Py_tp_traverse, (void *)traverse},
                                {Py_tp_clear, (void *)clear},
                                {Py_tp_call, (void *)PyVectorcall_Call},
                                {Py_tp_methods, methods},
                                {Py_tp_members, members},
                                {}};
  static PyType_Spec spec = {"weft._core.ModuleBase", sizeof(ModuleBase), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE |
                                 Py_TPFLAGS_HAVE_VECTORCALL,
                             slots};
  PyObject *type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  baseType = reinterpret_cast<PyTypeObject *>(type);
  return type;
}

} // namespace weft
