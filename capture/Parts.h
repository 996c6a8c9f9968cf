// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls within a call that no program stands for. While such a call runs in the interpreter,
// modules and functions in Python that it calls are looked up as they are called: what has a
// program of its own runs that, in its place and with the same arguments.
#ifndef WEFT_CAPTURE_PARTS_H
#define WEFT_CAPTURE_PARTS_H

#include <Python.h>

namespace weft::capture {

/// weft._capture.Parts(target, how, make): calls `target`, and meanwhile looks for parts.
///
/// how(function): what a call of it may become, asked once: 0 for nothing, 1 for a part, 2 for
/// nothing, nor may what it calls.
/// make(function, owner): what is called instead of the function from now on, or None for nothing;
/// owner: the module that is its first argument, which is left out of such calls, or None. It is
/// asked at the second call with a function or module, as many live for one call alone.
/// Its method: refuse(function, owner), for no longer.
/// New reference, or null with an error set.
PyObject *makePartsType();

/// leave_parts(): on this thread nothing is looked for from now on. Gives what was, for
/// enter_parts(it).
PyObject *leaveParts(PyObject *, PyObject *);
PyObject *enterParts(PyObject *, PyObject *parts);

} // namespace weft::capture

#endif
