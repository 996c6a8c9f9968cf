// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where elements lie in memory, as functions of the symbols of a range of sizes.
#ifndef WEFT_PYTHON_BINDINGS_SIZEDVIEW_H
#define WEFT_PYTHON_BINDINGS_SIZEDVIEW_H

#include "capture/PyRef.h"
#include "python/bindings/LinearSize.h"

#include <cstdint>
#include <vector>

namespace weft {

/// A linear function from a tuple (coefficients, constant). Throws nb::python_error.
LinearSize parseLinearSize(PyObject *description);
/// A product from a tuple of these. Throws nb::python_error.
SizeProduct parseSizeProduct(PyObject *description);

class SizedView {
public:
  /// description: a weft.frontend.SizedLayout. Throws nb::python_error for anything else.
  explicit SizedView(PyObject *description);

  /// base.as_strided(…). sizes: those of the symbols, a tensor of int64. Null with a Python error
  /// set.
  PyRef of(PyObject *base, PyObject *sizes) const;

private:
  std::vector<SizeProduct> sizes, strides;
  SizeProduct offset; // from that of the base on
};

} // namespace weft

#endif
