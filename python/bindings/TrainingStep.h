// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program's calls as nodes of autograd's graph: what weft._autograd, which knows torch's own
// classes, has to be told of a program, and whether a call may be left to it.
#ifndef WEFT_PYTHON_BINDINGS_TRAININGSTEP_H
#define WEFT_PYTHON_BINDINGS_TRAININGSTEP_H

#include "capture/PyRef.h"
#include "python/autograd/Step.h"
#include "runtime/Program.h"

#include <memory>

namespace weft {

class TrainingStep final : public autograd::Step {
public:
  /// Whether the call may become one node; asks nothing that would let other threads run. inputs:
  /// of the graph.
  bool isPlain(std::span<PyObject *const> inputs) const;
  /// As autograd::Interface::record.
  bool record(const autograd::Recorded &call) const;

  bool run(std::span<const WeftTensor> arguments,
           std::span<const WeftTensor> gradients) const override;

  int traverse(visitproc visit, void *arg) const;
  /// Nodes hold the object: none is left when it is collected.
  void clear() { python = graph = PyRef(); }

  std::shared_ptr<rt::Program> backward;
  PyRef python; ///< `otherwise`
  /// Has `exposes`, whether calls are to show autograd what they save, which only Python does.
  PyRef graph;

  /// Of weft._autograd; null without it.
  static const autograd::Interface *interface;
};

} // namespace weft

#endif
