// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Knows when a weight that a program has prepared for itself (its `@bind`) must be prepared
// anew: by address, version counter and a fingerprint of strided elements. Writes that leave
// the version counter alone (`p.data.add_()`, through `p.numpy()`) are seen by the
// fingerprint unless they miss every sampled element; WEFT_CHECK_WEIGHTS=1 samples all.
#ifndef WEFT_PYTHON_BINDINGS_WEIGHTWATCH_H
#define WEFT_PYTHON_BINDINGS_WEIGHTWATCH_H

#include "capture/PyRef.h"
#include "runtime/Abi.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace weft {

class WeightWatch {
public:
  /// Watches the program's arguments with these numbers.
  void watch(std::vector<size_t> numbers) { watched = std::move(numbers); }
  bool empty() const { return watched.empty(); }
  /// Watches arguments of the same numbers, of which nothing is known yet.
  WeightWatch forOtherTensors() const {
    WeightWatch other;
    other.watched = watched;
    return other;
  }

  /// Whether any watched tensor differs from what is prepared. Their sizes are always the same.
  bool changed(const std::vector<PyObject *> &tensors, const std::vector<WeftTensor> &views);

  /// What `changed` has just seen is prepared. Until then it is asked for again and again.
  void settle() { prepared = seen; }

private:
  struct State {
    const void *data = nullptr;
    std::optional<uint64_t> version; ///< none of an inference tensor
    uint64_t fingerprint = 0;
    bool operator==(const State &) const = default;
  };
  /// The elements that are compared, where they lie with these strides.
  struct Samples {
    std::vector<int64_t> strides;
    std::vector<int64_t> offsets; ///< in bytes
  };
  std::vector<size_t> watched;
  std::vector<State> seen, prepared; ///< nothing where it has never succeeded
  std::vector<Samples> samples;
};

} // namespace weft

#endif
