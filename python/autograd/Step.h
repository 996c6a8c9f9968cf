// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What weft._core and weft._autograd know of each other. weft._core runs programs and knows no C++
// of torch's; weft._autograd makes a call a node of autograd's graph, and is built for one version
// of torch. Neither links against the other: weft._core is handed an `Interface`.
#ifndef WEFT_PYTHON_AUTOGRAD_STEP_H
#define WEFT_PYTHON_AUTOGRAD_STEP_H

#include "runtime/Abi.h"

#include <Python.h>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::autograd {

/// How calls of one program are recorded and differentiated. It stays as it is once it is made, so
/// that it can be read without the GIL.
struct Step {
  struct Layout {
    std::vector<int64_t> sizes, strides;
    int32_t dtype; ///< a WeftDType
  };
  /// An input of the graph, or a result of the forward program.
  struct Kept {
    bool isInput;
    size_t number;
  };
  /// isCopied: eager execution saves nothing of it, so that it may be changed.
  struct Argument {
    Kept kept;
    bool isCopied;
    Layout layout;
  };
  /// place: among `places` of the result whose cotangent it is; -1: a result that has none, for
  /// which there are zeros.
  struct Cotangent {
    int place;
    Layout layout; ///< in row-major order
  };
  /// A gradient that the backward program leaves to its caller, as it equals one of its arguments
  /// or an earlier gradient.
  struct Alias {
    size_t gradient;
    bool isArgument;
    size_t number;
  };

  virtual ~Step() = default;

  /// Runs the backward program; without the GIL, from any thread. False if it could not.
  virtual bool run(std::span<const WeftTensor> arguments,
                   std::span<const WeftTensor> gradients) const = 0;

  std::vector<size_t> wrt;           ///< inputs of the graph that have gradients
  std::vector<Argument> saved;       ///< the arguments of the backward program ...
  std::vector<Cotangent> cotangents; ///< ... of which these are the last ones
  std::vector<Kept> watched;         ///< what eager execution saves beside `saved`
  /// How eager execution reads each input of the graph that has been given other memory since: as
  /// it was, in the new memory, or in both in a way that the program does not.
  enum class Moved : uint8_t { AsItWas, Anew, Otherwise };
  std::vector<Moved> moved;
  std::vector<size_t> places; ///< results that require gradients
  /// For each of `places`, for each of `saved` and then of `watched`, whether it may be read on the
  /// way from there.
  std::vector<std::vector<bool>> reads;
  /// What a backward from any of `places` in `from` to any of `wrt` in `to` reads and frees.
  struct Freed {
    std::vector<bool> from, to;
  };
  std::vector<Freed> freed;
  std::vector<Layout> gradients; ///< of `wrt`, as the program gives them
  std::vector<Alias> aliases;
  /// For each of `places`, for each of `wrt`, whether a cotangent there makes a gradient here.
  std::vector<std::vector<bool>> connected;

  /// The Python object that holds this.
  PyObject *owner = nullptr;
  /// `f(node, saved, inputs, cotangents, beside)` gives the gradients where the program alone does
  /// not. inputs: of the graph, each (tensor, its version in the call, its memory then). Alive as
  /// long as `owner`.
  PyObject *otherwise = nullptr;
};

/// inputs: of the graph. kept: the same as they were ahead of the call. results: of the forward
/// program, as it made them. shown: the same as the user gets them. beside: what `otherwise` is
/// given of the call.
struct Recorded {
  std::span<PyObject *const> inputs, kept, results, shown;
  PyObject *beside;
};

/// Called with the GIL.
struct Interface {
  /// Whether the call is to become one node that saves its tensors itself: nobody has set hooks for
  /// saved tensors, waits for single gradients, or looks for the op whose gradient is no number.
  /// inputs: of the graph.
  bool (*isPlain)(const Step &step, std::span<PyObject *const> inputs);
  /// Makes the results that require gradients those of a new node. False with a Python error set.
  bool (*record)(const Step &step, const Recorded &call);
};

inline constexpr const char *interfaceName = "weft._autograd.interface";

} // namespace weft::autograd

#endif
