// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything besides a call's arguments that programs were specialised on, and those
// programs. A callable has one environment for each state of torch and of the module that
// it has been called in.
#ifndef WEFT_PYTHON_BINDINGS_ENVIRONMENT_H
#define WEFT_PYTHON_BINDINGS_ENVIRONMENT_H

#include "python/bindings/ObjectGuards.h"

#include <optional>
#include <vector>

namespace weft {

struct Environment {
  ObjectGuards guards;
  GlobalState state;
  /// PyTorch runs every call.
  bool eager = false;
  /// PyTorch runs the call while one of these requires gradients (and grad mode is on).
  std::vector<PyRef> gradients;
  /// Python `Specialization` objects, the latest used first.
  std::vector<PyRef> specializations;
  /// Python `SizeRange` objects, the latest used first.
  std::vector<PyRef> ranges;
  std::optional<Footprint> footprint; ///< of the guards, once it has been asked for

  /// Fetches what the checks of a call are going to read, if the last program is one whose data
  /// drives it out of the caches.
  void fetchAhead();

  bool holds() const { return state.holds() && guards.hold(); }
  bool wantsGradients() const;
  int traverse(visitproc visit, void *arg) const;
  void clear();
};

} // namespace weft

#endif
