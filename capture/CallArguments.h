// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef WEFT_CAPTURE_CALLARGUMENTS_H
#define WEFT_CAPTURE_CALLARGUMENTS_H

#include <Python.h>

namespace weft {

/// The arguments of a call as vectorcall passes them.
struct CallArguments {
  PyObject *const *values;
  Py_ssize_t positional;
  PyObject *names; // of those that follow the positional ones, a tuple; may be null

  Py_ssize_t named() const { return names ? PyTuple_GET_SIZE(names) : 0; }
};

} // namespace weft

#endif
