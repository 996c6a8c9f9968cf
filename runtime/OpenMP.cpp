// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/OpenMP.h"
#include "runtime/Symbols.h"

namespace weft::rt {

std::optional<OpenMP> OpenMP::find(void *library) {
  OpenMP found{};
  if (findSymbol(library, "GOMP_parallel", found.parallel) &&
      findSymbol(library, "omp_get_max_threads", found.maxThreads) &&
      findSymbol(library, "omp_get_num_threads", found.numThreads) &&
      findSymbol(library, "omp_get_thread_num", found.threadNumber))
    return found;
  return std::nullopt;
}

} // namespace weft::rt
