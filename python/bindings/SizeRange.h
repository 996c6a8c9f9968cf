// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program for a range of sizes and the calls it stands for. The program is one for the largest
// sizes (decision 50): tensors with symbolic sizes are copied to the beginning of padded ones, and
// the sizes of the call are one more argument. So are some without, which are copied as well: their
// rows may be parts of longer ones (decision 139).
#ifndef WEFT_PYTHON_BINDINGS_SIZERANGE_H
#define WEFT_PYTHON_BINDINGS_SIZERANGE_H

#include "python/bindings/LinearSize.h"
#include "python/bindings/SizeCounts.h"
#include "python/bindings/Specialization.h"

#include <optional>
#include <utility>
#include <vector>

namespace weft {

class SizeRange {
public:
  /// The sizes of a tensor some of whose sizes are symbols.
  struct Shape {
    size_t slot;
    std::vector<LinearSize> dims;
  };

  /// A symbol of the program behind those of the calls: floor(dividend / divisor).
  struct Quotient {
    LinearSize dividend; // of the symbols before it
    int64_t divisor;     // positive
  };

  // Filled by the bindings before first use.
  PyRef pattern; // a Specialization without a program: what calls have in common besides sizes
  PyRef program; // the Specialization that takes padded arguments
  std::vector<Shape> shapes;                       // by slot
  std::vector<std::pair<int64_t, int64_t>> ranges; // of the symbols
  std::vector<PyRef> guards; // functions of a list of the sizes, which say whether they hold
  std::vector<size_t> kept;  // slots whose own tensors the program may return or write to
  std::vector<Quotient> quotients;
  bool takesCutShort = false; // whether integers may come in rows that were cut short
  std::vector<size_t> apart;  // slots of tensors of any type whose rows may be parts of longer ones
  uint64_t calls = 0;         // that the program has answered

  /// Matches and runs. Declined: PyTorch has to run the call, of which nothing is done yet.
  /// isOften: whether so many calls have had these sizes that a program for them may pay.
  Specialization::Outcome call(const CallArguments &call, PyRef &value, bool &isOften);

  /// The arguments that the program takes for a call: its tensors, the sizes, the objects among its
  /// arguments. Nothing if the program does not stand for the call.
  /// fill: what floating-point padding holds, None for anything.
  std::optional<std::vector<PyRef>> padded(const CallArguments &call, PyObject *fill) {
    std::vector<int64_t> sizes;
    return padded(call, fill, sizes);
  }

  int traverse(visitproc visit, void *arg) const;
  void clear();

private:
  SizeCounts counts;

  /// sizes: of the call's own symbols.
  std::optional<std::vector<PyRef>> padded(const CallArguments &call, PyObject *fill,
                                           std::vector<int64_t> &sizes);
  bool holds(std::span<const int64_t> sizes) const;
  bool mayBeCutShort(size_t slot, const dlpack::Tensor &tensor) const;
  /// Of the symbols in a call with these tensors; none if it is not in the range.
  std::optional<std::vector<int64_t>> sizesOf(const Specialization &pattern,
                                              const std::vector<PyRef> &tensors) const;
};

} // namespace weft

#endif
