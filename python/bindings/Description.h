// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trees that Python describes once, as tuples of a kind and what belongs to it.
#ifndef WEFT_PYTHON_BINDINGS_DESCRIPTION_H
#define WEFT_PYTHON_BINDINGS_DESCRIPTION_H

#include "capture/PyRef.h"

#include <vector>

namespace weft {

/// Entry `index` of a description, owned.
inline PyRef item(PyObject *description, Py_ssize_t index) {
  return PyRef::borrow(PyTuple_GET_ITEM(description, index));
}

/// A node for each description in a tuple of them.
template <typename Node> std::vector<Node> parseChildren(PyObject *descriptions) {
  std::vector<Node> children;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(descriptions); ++i)
    children.emplace_back(PyTuple_GET_ITEM(descriptions, i));
  return children;
}

} // namespace weft

#endif
