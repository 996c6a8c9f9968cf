// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CPU features of this machine, by LLVM's names.
#ifndef WEFT_RUNTIME_CPUFEATURES_H
#define WEFT_RUNTIME_CPUFEATURES_H

#include <string>
#include <vector>

namespace weft::rt {

/// The `features` (LLVM names, "avx512f") that this machine lacks.
std::vector<std::string> missingCpuFeatures(const std::vector<std::string> &features);

} // namespace weft::rt

#endif
