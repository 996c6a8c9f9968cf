// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `weft.compile` returns: a callable whose guards and program run without a Python
// frame. Everything else it is asked for it passes on to its face, the Python object that
// decides about calls never seen before.
//
// The face offers `original` (the module or function), `dispatch(args, kwargs)` for a call
// that no program stands for, and `declined(specialization, reason, args, kwargs)` for one
// whose program could not run it.
#ifndef WEFT_PYTHON_BINDINGS_CALLABLE_H
#define WEFT_PYTHON_BINDINGS_CALLABLE_H

#include <Python.h>

namespace weft {

/// Makes the type `weft._core.Callable`, constructed as `Callable(face)`; its method
/// `_arm(environments)` gives it the list of Environment objects to try, in order.
/// New reference, or null with a Python error set.
PyObject *makeCallableType(PyObject *module);

} // namespace weft

#endif
