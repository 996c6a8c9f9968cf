// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls within a call that no program stands for. While such a call runs in the interpreter,
// modules and functions in Python that it calls are looked up as they are called: what has a
// program of its own runs that, in its place and with the same arguments.
#ifndef WEFT_CAPTURE_PARTS_H
#define WEFT_CAPTURE_PARTS_H

#include <Python.h>

namespace weft::capture {

/// weft._capture.Parts(target, how, make): calls `target`, and looks for parts meanwhile.
///
/// `how(function)`: says once what a call of the function may become: 0 for nothing, 1 for a part,
/// 2 for nothing, which holds for what it calls as well.
/// `make(function, owner)`: what is called instead of the function from now on, or None for
/// nothing. `owner` is the module that is the function's first argument, which such calls leave
/// out, or None. `make` is asked at the second call with a function or module, as many live for one
/// call alone.
/// The method refuse(function, owner) takes back what is called instead. New reference, or null
/// with an error set.
PyObject *makePartsType();

/// leave_parts(): from now on nothing is looked for on this thread. Gives what was looked for,
/// which enter_parts takes.
PyObject *leaveParts(PyObject *, PyObject *);
PyObject *enterParts(PyObject *, PyObject *parts);

} // namespace weft::capture

#endif
