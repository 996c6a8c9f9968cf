// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An OpenMP library that the process has loaded for other work, such as PyTorch's own.
#ifndef WEFT_RUNTIME_OPENMP_H
#define WEFT_RUNTIME_OPENMP_H

#include <optional>

namespace weft::rt {

/// GNU's interface, which LLVM's and Intel's libraries export as well.
struct OpenMP {
  void (*parallel)(void (*body)(void *), void *data, unsigned threads, unsigned flags);
  int (*maxThreads)();   ///< of the next parallel region of the calling thread
  int (*numThreads)();   ///< of the region under way
  int (*threadNumber)(); ///< in it; that of the thread which opened it is 0

  /// From `library`, as dlopen gives it, or what it is linked with; nothing where one is missing.
  static std::optional<OpenMP> find(void *library);
};

} // namespace weft::rt

#endif
