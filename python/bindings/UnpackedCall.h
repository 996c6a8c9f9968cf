// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef WEFT_PYTHON_BINDINGS_UNPACKEDCALL_H
#define WEFT_PYTHON_BINDINGS_UNPACKEDCALL_H

#include "capture/CallArguments.h"

#include <nanobind/nanobind.h>

#include <vector>

namespace weft {

/// A call's tuple and dict as vectorcall would pass them.
struct UnpackedCall {
  UnpackedCall(nanobind::tuple args, nanobind::dict kwargs) {
    for (nanobind::handle value : args)
      values.push_back(value.ptr());
    names = nanobind::steal<nanobind::tuple>(PyTuple_New(kwargs.size()));
    Py_ssize_t index = 0;
    for (auto [key, value] : kwargs) {
      values.push_back(value.ptr());
      PyTuple_SET_ITEM(names.ptr(), index++, key.inc_ref().ptr());
    }
    call = {values.data(), static_cast<Py_ssize_t>(args.size()), names.ptr()};
  }
  std::vector<PyObject *> values;
  nanobind::tuple names;
  CallArguments call;
};

} // namespace weft

#endif
