// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What counts of a result of a program for a range of sizes, which is padded.
#ifndef WEFT_PYTHON_BINDINGS_VALIDPART_H
#define WEFT_PYTHON_BINDINGS_VALIDPART_H

#include "capture/PyRef.h"
#include "python/bindings/DLPack.h"
#include "python/bindings/SizedView.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weft {

class ValidPart {
public:
  /// description: a weft.frontend.Valid. Throws nb::python_error for anything else.
  explicit ValidPart(PyObject *description);

  /// A tensor in memory of its own. sizes: those of the symbols, a tensor of int64. Null with a
  /// Python error set.
  PyRef of(PyObject *padded, PyObject *sizes) const;

  /// Copies what counts to a tensor of the same type and of the sizes that count. False with a
  /// Python error set.
  bool copyTo(const dlpack::Tensor &target, PyObject *padded, PyObject *sizes) const;

private:
  /// Of those that a dim is the product of: how many there are, and how many count, if not all.
  struct Factor {
    int64_t size;
    std::optional<LinearSize> counting;
  };

  /// Of all factors, dim by dim.
  std::vector<int64_t> counted(std::span<const int64_t> symbols) const;

  std::vector<std::vector<Factor>> dims;
  std::vector<size_t> order;                       // of the dims in memory
  std::optional<std::vector<SizeProduct>> strides; // instead of those that follow from the order
  SizeProduct offset;                              // at which the user's tensor begins
};

} // namespace weft

#endif
