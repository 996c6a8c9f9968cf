// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Results of compiled code against those of the reference.
#ifndef WEFT_TOOLS_CHECK_KERNELS_COMPARISON_H
#define WEFT_TOOLS_CHECK_KERNELS_COMPARISON_H

#include "Execution.h"
#include "Tensor.h"
#include "llvm/Support/raw_ostream.h"

namespace weft::check {

/// Whether `found` is `expected`: equal where the reference has no error, else within `slack` times
/// its error, and at least half of the elements determined. Prints one line after `name`: how much
/// of the bound is used, or the first difference with its index.
bool compare(llvm::StringRef name, const Tensor &expected, const Numbers &found, double slack,
             llvm::raw_ostream &stream);

} // namespace weft::check

#endif
