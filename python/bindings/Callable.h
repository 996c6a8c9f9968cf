// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What answers the calls of what `weft.compile` returns: guards and programs run without a Python
// frame. Everything else it is asked for it passes on to its face, the Python object that
// decides about calls never seen before.
//
// The face offers `original` (the module or function), `dispatch(args, kwargs)` for a call
// that no program stands for, and `declined(specialization, reason, args, kwargs)` for one
// whose program could not run it. `often(range, args, kwargs)` comes after many calls of
// sizes for which there is a program for a range alone.
//
// A compiled function is a Callable. A compiled module is an object of a subclass of the user's
// class and of ModuleBase, whose calls go to the Callable that it holds.
#ifndef WEFT_PYTHON_BINDINGS_CALLABLE_H
#define WEFT_PYTHON_BINDINGS_CALLABLE_H

#include <Python.h>

namespace weft {

/// Makes the type `weft._core.Callable`, constructed as `Callable(face)`. Its methods:
/// `_arm(environments)` gives it the list of Environment objects to try, in order;
/// `_run_eagerly(types, full)` says that the user knows that PyTorch runs calls with arguments of
/// these types and, if `full`, all others that no program stands for;
/// `_call_instead(callable)` gives it what does the same as the original, and is called in its
/// place where PyTorch runs a call;
/// `_observe(programs)` gives it the programs of observed calls, which are callables that give
/// NotImplemented for calls that they do not stand for;
/// `_hits()` gives the number of calls that a program answered.
/// New reference, or null with a Python error set.
PyObject *makeCallableType(PyObject *module);

/// A call as vectorcall passes it, of a Callable.
PyObject *callCallable(PyObject *callable, PyObject *const *arguments, size_t flags,
                       PyObject *names);

} // namespace weft

#endif
