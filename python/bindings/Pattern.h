// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments of a call as a tree: where tensors stand, which containers hold them, and
// which other values a program was specialised on. Python describes the tree once; matching
// a call against it runs no Python, except the flattening function of a registered node.
//
// Descriptions are tuples: (TENSOR, slot), (VALUE, object), (TUPLE, children),
// (LIST, children), (DICT, keys, children), (NODE, type, flatten, context, children), and with a
// number behind that for a node that results may hold.
#ifndef WEFT_PYTHON_BINDINGS_PATTERN_H
#define WEFT_PYTHON_BINDINGS_PATTERN_H

#include "capture/PyRef.h"

#include <vector>

namespace weft {

class Pattern {
public:
  enum Kind { Tensor, Value, Tuple, List, Dict, Node };

  explicit Pattern(PyObject *description);

  /// How many numbers of nodes there are.
  size_t numbers() const;

  /// Whether `object` has this shape. Stores its tensors at their slots, and nodes with a number at
  /// that number from the end of `slots`, all owned. Python errors that user containers raise count
  /// as a mismatch.
  bool match(PyObject *object, std::vector<PyRef> &slots) const;

  int traverse(visitproc visit, void *arg) const;

private:
  bool matchDict(PyObject *object, std::vector<PyRef> &slots) const;
  bool matchNode(PyObject *object, std::vector<PyRef> &slots) const;

  Kind kind;
  size_t slot = 0; // or the number of a node, counted from 1
  PyRef object;    // the value, the tuple of keys, or the node's type
  PyRef flatten;   // of a node
  PyRef context;
  std::vector<Pattern> children;
};

} // namespace weft

#endif
