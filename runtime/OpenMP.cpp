// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/OpenMP.h"
#include <dlfcn.h>

namespace weft::rt {

template <typename Function> static bool find(void *library, const char *name, Function *&out) {
  out = reinterpret_cast<Function *>(dlsym(library, name));
  return out != nullptr;
}

std::optional<OpenMP> OpenMP::find(void *library) {
  OpenMP found{};
  if (rt::find(library, "GOMP_parallel", found.parallel) &&
      rt::find(library, "omp_get_max_threads", found.maxThreads) &&
      rt::find(library, "omp_get_num_threads", found.numThreads) &&
      rt::find(library, "omp_get_thread_num", found.threadNumber) &&
      rt::find(library, "omp_pause_resource_all", found.pause))
    return found;
  return std::nullopt;
}

} // namespace weft::rt
