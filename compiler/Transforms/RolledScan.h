// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Puts a scan in the place of repeated steps.
#ifndef WEFT_COMPILER_TRANSFORMS_ROLLEDSCAN_H
#define WEFT_COMPILER_TRANSFORMS_ROLLEDSCAN_H

#include "compiler/Transforms/RepeatedSteps.h"

namespace weft {

/// Creates the scan after the last step; concats that stack results take its outputs, and uses
/// of last values its last states. Erases the steps. `steps` has been analyzed.
void rollIntoScan(const RepeatedSteps &steps);

} // namespace weft

#endif
