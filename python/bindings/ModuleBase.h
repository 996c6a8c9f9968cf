// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The base of the classes of compiled modules: it holds the Callable that answers their calls, in
// the object itself, since `__dict__` is that of the user's module.
#ifndef WEFT_PYTHON_BINDINGS_MODULEBASE_H
#define WEFT_PYTHON_BINDINGS_MODULEBASE_H

#include <Python.h>

namespace weft {

/// Makes the type `weft._core.ModuleBase`. Its static methods: `_adopt(type)` lets objects of a
/// subclass be called without a Python frame; `_hold(object, callable)` sets an object's Callable;
/// `_held(object)` gives it, or None. New reference, or null with a Python error set.
PyObject *makeModuleBaseType(PyObject *module);

} // namespace weft

#endif
