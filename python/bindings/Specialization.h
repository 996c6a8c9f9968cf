// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One program and the calls it stands for: the pattern of arguments, the metadata of every
// tensor it reads, how results become the value returned, and which tensors it writes to.
// Writes happen only after the program has succeeded.
#ifndef WEFT_PYTHON_BINDINGS_SPECIALIZATION_H
#define WEFT_PYTHON_BINDINGS_SPECIALIZATION_H

#include "capture/CallArguments.h"
#include "python/bindings/Outputs.h"
#include "python/bindings/Pattern.h"
#include "python/bindings/TakenNumbers.h"
#include "python/bindings/TensorGuard.h"
#include "python/bindings/TorchHost.h"
#include "python/bindings/WeightWatch.h"
#include "runtime/Program.h"

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// The attribute of a padded copy that holds the tensor of the call that it is a copy of.
inline constexpr const char *originalName = "weft_valid_part";
/// What a tensor is a padded copy of, borrowed; null without an error where it is none.
PyObject *originalOf(PyObject *tensor);

class Specialization {
public:
  Specialization() = default;
  Specialization(const Specialization &) = delete;
  Specialization &operator=(const Specialization &) = delete;

  /// A tensor that the program reads or writes: an argument of the call or one it owns.
  struct Source {
    int slot = -1; // -1: the tensor of `guard`'s own
    PyRef tensor;
    TensorGuard guard;       // of an owned tensor
    void *checked = nullptr; // where an owned tensor's data lay when it was last examined
  };
  struct Effect {
    Source target;
    size_t result;
    uint64_t steps; ///< by how much the write increments the target's version counter
    /// What counts of the result, where the target is the original of a padded argument; the sizes
    /// are in the last slot.
    std::optional<ValidPart> valid;
  };

  enum Outcome {
    Mismatch, // the call is none of those this program stands for
    Done,
    Declined, // it is, but PyTorch has to run it: `reason`
    Unusual,  // it is, but Python has to run the program
    Error     // a Python error is set
  };

  // Filled by the bindings before first use; immutable afterwards.
  std::vector<Pattern> arguments;
  PyRef names;        // of keyword arguments, whose patterns follow the positional ones
  size_t objects = 0; // among the arguments that results may hold
  /// The tensor of the last slot is made of them. Python describes these arguments as tensors at
  /// the places behind `slots`.
  TakenNumbers numbers;
  std::vector<TensorGuard> slots;
  std::vector<int> sameAs;              // for each slot, the first slot that holds the same object
  std::shared_ptr<rt::Program> program; // null: PyTorch runs these calls
  PyRef host;                           // a TorchHost, or null where the program has no fallbacks
  std::vector<Source> sources;
  /// For each result, the strides with which the user gets it where the program's are others.
  std::vector<std::optional<std::vector<int64_t>>> eagerStrides;
  /// For each result, the elements ahead of it in its memory; as the slice of a larger tensor that
  /// it is in eager mode. None at all where there are none.
  std::vector<int64_t> offsets;
  std::vector<Effect> effects;
  std::optional<Outputs> outputs;
  PyRef saveRandomState, restoreRandomState; // null when the program draws no numbers
  WeightWatch weights;
  PyRef training;       ///< a TrainingStep, or null where autograd is to see nothing
  uint64_t lastUse = 0; ///< on the clock of the callable that it belongs to
  /// What is read to check the tensors the program owns; empty unless the program runs so long that
  /// its data is likely to have driven that out of the caches.
  Footprint footprint;

  /// Matches and runs. `reason` says why when the outcome is Declined. With `profile`, each of
  /// the program's calls is timed; the first calls are without being asked to.
  Outcome call(const CallArguments &call, PyRef &value, std::string &reason,
               rt::Profile *profile = nullptr);

  /// As `call`, of a program with `training`, and autograd records the call.
  Outcome callRecorded(const CallArguments &call, PyRef &value, std::string &reason);

  /// What a call would have given and written. results: all of the program's, as it made them, and
  /// with the strides with which `value` holds them.
  struct Evaluation {
    PyRef value;
    std::vector<PyRef> results, laidOut;
  };
  /// As `call`, but writes nothing that anyone else can see.
  Outcome evaluate(const CallArguments &call, Evaluation &found, std::string &reason);

  /// Whether `call` would match, tensors of the module included.
  bool standsFor(const CallArguments &call);

  /// The tensors of a call, and the objects that results may hold, as far as the call is one of
  /// those that it stands for or differs from them in tensors' sizes, strides and elements alone.
  /// found: of `places()` entries.
  bool findTensors(const CallArguments &call, std::vector<PyRef> &found) const;

  /// How many things of a call are looked at together.
  size_t places() const { return slots.size() + numbers.count + objects; }

  /// The same program and calls with other tensors of the module's; their sources, effects and
  /// outputs are to be filled in.
  std::unique_ptr<Specialization> copyForOtherTensors() const;

  /// Seconds of each of the program's calls, the least of those timed.
  std::vector<double> seconds() const { return timed; }

  int traverse(visitproc visit, void *arg) const;
  void clear();

private:
  /// What one call needs memory for. Kept from call to call, because allocating it anew
  /// would be a good part of a small program's time.
  struct Buffers {
    std::vector<PyRef> found, tensors;
    std::vector<WeftTensor> slotViews, views, resultViews;
    std::vector<PyObject *> sourceTensors;
  };
  class Lease;

  /// Matches and computes the results into the buffers.
  Outcome compute(Buffers &buffers, const CallArguments &call, std::string &reason,
                  rt::Profile *profile);
  Outcome findSources(Buffers &buffers, const CallArguments &call, std::string &reason);
  /// From the sources that have been found.
  Outcome computeResults(Buffers &buffers, std::string &reason, rt::Profile *profile);
  bool matches(const CallArguments &call, std::vector<PyRef> &found,
               std::vector<WeftTensor> &views) const;
  bool viewSlots(const std::vector<PyRef> &found, std::vector<WeftTensor> &views) const;
  /// All sources, and the slots anew where those that `slotViews` holds may be out of date.
  bool viewSources(const std::vector<PyRef> &found, std::vector<WeftTensor> &slotViews,
                   std::vector<WeftTensor> &views);
  /// Whether a write would be seen by another input; of padded arguments, by the originals. Nothing
  /// with a Python error set.
  std::optional<bool> writesOverlap(const std::vector<PyRef> &found,
                                    const std::vector<WeftTensor> &slotViews,
                                    const std::vector<WeftTensor> &views) const;
  /// A result with these strides, at its offset. Null with a Python error set.
  PyRef allocateResult(size_t index, std::span<const int64_t> strides) const;
  bool allocate(std::vector<PyRef> &tensors, std::vector<WeftTensor> &views) const;
  bool execute(const std::vector<WeftTensor> &views, const std::vector<WeftTensor> &resultViews,
               rt::Host *torch, std::string &reason, rt::Profile *profile);
  void record(const rt::Profile &profile);
  void findFootprint();
  bool fillAliases(const std::vector<PyRef> &found, std::vector<PyRef> &tensors) const;
  bool commit(const std::vector<PyRef> &found, const std::vector<PyRef> &tensors) const;
  bool layOut(std::vector<PyRef> &tensors, const std::vector<WeftTensor> &views) const;
  PyObject *sourceTensor(const Source &source, const std::vector<PyRef> &found) const;

  /// Not in use. Calls may nest and overlap; the GIL guards the list.
  std::vector<std::unique_ptr<Buffers>> idle;

  static constexpr int timedCalls = 8;
  int timedSoFar = 0;
  std::vector<double> timed;
  /// Whether the program takes so little time that other threads may as well wait for the GIL.
  bool isShort = false;
  static constexpr double longestWithGil = 10e-6;      ///< seconds
  static constexpr double leastWithFootprint = 0.5e-3; ///< seconds
};

} // namespace weft

#endif
