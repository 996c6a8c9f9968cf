// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedule of a Winograd convolution, as a function of its shape and the target alone.
#ifndef WEFT_COMPILER_SCHEDULING_WINOGRADCHOICE_H
#define WEFT_COMPILER_SCHEDULING_WINOGRADCHOICE_H

#include "compiler/Kernels/Contraction/WinogradSchedule.h"
#include "compiler/Target/TargetInfo.h"

namespace weft {

WinogradSchedule chooseWinograd(const WinogradProblem &problem, const TargetInfo &target);

} // namespace weft

#endif
