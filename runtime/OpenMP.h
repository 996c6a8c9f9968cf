// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An OpenMP library that the process has already loaded, such as PyTorch's.
#ifndef WEFT_RUNTIME_OPENMP_H
#define WEFT_RUNTIME_OPENMP_H

#include <optional>

namespace weft::rt {

/// The interface of GNU's library, which LLVM's and Intel's export as well.
struct OpenMP {
  void (*parallel)(void (*body)(void *), void *data, unsigned threads, unsigned flags);
  int (*maxThreads)();   ///< for the calling thread's next parallel region
  int (*numThreads)();   ///< in the current region
  int (*threadNumber)(); ///< in the current region; the thread that opened it is 0

  /// Looks the functions up in `library`, a dlopen handle, and its dependencies; nothing if one is
  /// missing.
  static std::optional<OpenMP> find(void *library);
};

} // namespace weft::rt

#endif
