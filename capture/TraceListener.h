// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// While torch.export traces a call, fake tensors stand for the user's: what the user's code asks
// about a tensor as a Python object has other answers there. Classes are answered as in an
// ordinary call; questions of identity are told, as no guard of a traced program watches them.
#ifndef WEFT_CAPTURE_TRACELISTENER_H
#define WEFT_CAPTURE_TRACELISTENER_H

#include <Python.h>

namespace weft::capture {

/// listen_to_trace(is_users, tensor, stand_in, note), in a process of its own:
///
/// is_users(code): whether it is the user's, asked once.
/// tensor: the class of all tensors.
/// stand_in(tensor): of which object its class is asked.
/// note(what, frame): is told what the user's code asks otherwise.
PyObject *listenToTrace(PyObject *, PyObject *args);

} // namespace weft::capture

#endif
