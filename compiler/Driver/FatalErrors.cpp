// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Driver/FatalErrors.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"

namespace {

struct FatalError {
  std::string message;
};

thread_local bool isWatched = false;

/// What LLVM calls ahead of the end of the process. It is built without exceptions, so that one
/// passes through its frames without running any of its code.
void onFatalError(void *, const char *reason, bool) {
  if (isWatched)
    throw FatalError{reason};
}

} // namespace

std::optional<std::string> weft::fatalErrorIn(llvm::function_ref<void()> action) {
  static const bool installed = (llvm::install_fatal_error_handler(onFatalError), true);
  (void)installed;
  std::optional<std::string> found;
  isWatched = true;
  try {
    action();
  } catch (const FatalError &error) {
    found = llvm::StringRef(error.message).split('\n').first.str();
  }
  isWatched = false;
  return found;
}
