// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// While torch.export traces a call, fake tensors stand for the user's, and symbols for sizes: what
// the user's code asks about them as Python objects has other answers there. Classes are answered
// as in an ordinary call; a size that becomes text is known from then on; questions of identity are
// told, as no guard of a traced program watches them.
#ifndef WEFT_CAPTURE_TRACELISTENER_H
#define WEFT_CAPTURE_TRACELISTENER_H

#include <Python.h>

namespace weft::capture {

/// listen_to_trace(is_users, tensor, symbols, instead, stand_in, value_of, note, raised,
/// callers, class_of), in a process of its own:
///
/// is_users(code): whether it is the user's, asked once.
/// tensor: the class of all tensors. symbols: a tuple of the classes of symbols.
/// instead: a dict of functions in C, and of those that are called instead.
/// stand_in(object): of which object the class of a tensor or symbol is asked.
/// value_of(symbol): the number that it is in this call.
/// note(what, frame, *tensors): is told what the user's code asks otherwise; tensors: two that it
/// compares by identity.
/// raised(kind, frame, traceback): is told of each error that comes to the user's code.
/// callers: a tuple of what calls functions in C. class_of: what these call in the place of `type`.
PyObject *listenToTrace(PyObject *, PyObject *args);

} // namespace weft::capture

#endif
