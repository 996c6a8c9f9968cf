// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// While torch.export traces a call, fake tensors stand for the user's tensors, and symbols for
// sizes. What the user's code asks about them as Python objects would get other answers there:
// classes are therefore answered as in an ordinary call; a size that becomes text is known from
// then on; and questions of identity are noted, as no guard of a traced program watches them.
#ifndef WEFT_CAPTURE_TRACELISTENER_H
#define WEFT_CAPTURE_TRACELISTENER_H

#include <Python.h>

namespace weft::capture {

/// listen_to_trace(is_users, tensor, symbols, instead, stand_in, value_of, note, raised, callers,
/// class_of), in a process of its own:
///
/// `is_users(code)`: whether the code is the user's; asked once.
/// `tensor`: the class of all tensors.
/// `symbols`: a tuple of the classes of symbols.
/// `instead`: a dict from functions in C to those that are called instead.
/// `stand_in(object)`: the object whose class is given for a tensor or symbol.
/// `value_of(symbol)`: the number that the symbol is in this call.
/// `note(what, frame, *tensors)`: is told what the user's code asks that has another answer in a
/// trace; `tensors`: two that it compares by identity.
/// `raised(kind, frame, traceback)`: is told of each error that reaches the user's code.
/// `callers`: a tuple of what calls functions in C.
/// `class_of`: what these call in place of `type`.
PyObject *listenToTrace(PyObject *, PyObject *args);

} // namespace weft::capture

#endif
