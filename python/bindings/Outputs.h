// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The value that a call returns, as a tree over the program's results, the call's own
// arguments, tensors of the module and constants.
//
// Descriptions are tuples: (RESULT, index), (SLOT, index), (OBJECT, object),
// (VIEW, base, sizes, strides, offset, dtype or None), (TUPLE, children), (LIST, children),
// (DICT, keys, children), (NODE, unflatten, context, children), (GIVEN, number of a node of the
// arguments' patterns), (VALID, result, slot of the sizes, weft.frontend.Valid),
// (SIZED_VIEW, base, slot of the sizes, weft.frontend.SizedLayout).
#ifndef WEFT_PYTHON_BINDINGS_OUTPUTS_H
#define WEFT_PYTHON_BINDINGS_OUTPUTS_H

#include "capture/PyRef.h"
#include "python/bindings/ValidPart.h"

#include <optional>
#include <vector>

namespace weft {

class Outputs {
public:
  enum Kind { Result, Slot, Object, View, Tuple, List, Dict, Node, Given, Valid, Sized };

  explicit Outputs(PyObject *description);

  /// The value; null with a Python error set. `results` and `slots` stay the caller's.
  PyRef build(const std::vector<PyRef> &results, const std::vector<PyRef> &slots) const;

  /// Of one call. valid: of each result what counts, once it has been asked for: one tensor,
  /// however often it is returned.
  struct Parts {
    const std::vector<PyRef> &results, &slots;
    std::vector<PyRef> valid;
  };

  int traverse(visitproc visit, void *arg) const;

private:
  PyRef build(Parts &parts) const;
  PyRef buildView(Parts &parts) const;
  PyRef buildDict(Parts &parts) const;
  PyRef buildNode(Parts &parts) const;
  PyRef buildValid(Parts &parts) const;
  PyRef buildSizedView(Parts &parts) const;
  static PyRef buildList(const std::vector<Outputs> &children, Parts &parts);

  Kind kind;
  size_t index = 0;
  PyRef object;                // the object, the keys, or a node's unflatten
  PyRef context;               // of a node
  PyRef sizes, strides, dtype; // of a view; dtype may be None
  int64_t offset = 0;
  std::vector<Outputs> children; // of a view: its base
  size_t sizesSlot = 0;
  std::optional<ValidPart> valid;
  std::optional<SizedView> sizedView;
};

} // namespace weft

#endif
