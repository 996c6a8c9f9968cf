// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of libraries that the process has loaded.
#ifndef WEFT_RUNTIME_SYMBOLS_H
#define WEFT_RUNTIME_SYMBOLS_H

#include <dlfcn.h>

namespace weft::rt {

/// Sets `function` to the export `name` of `library`, a dlopen handle, or of its dependencies;
/// false if there is none.
template <typename Function> bool findSymbol(void *library, const char *name, Function *&function) {
  function = reinterpret_cast<Function *>(dlsym(library, name));
  return function != nullptr;
}

} // namespace weft::rt

#endif
