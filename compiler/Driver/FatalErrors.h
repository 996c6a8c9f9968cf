// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LLVM ends the process where its code generator meets what it cannot translate. A compiler within
// somebody's process reports it instead.
#ifndef WEFT_COMPILER_DRIVER_FATALERRORS_H
#define WEFT_COMPILER_DRIVER_FATALERRORS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <string>

namespace weft {

/// Runs `action` on this thread. If LLVM reports a fatal error, the action is left at once and the
/// first line of the error returned: nothing that the action holds is destroyed then, as its state
/// may be anything.
std::optional<std::string> fatalErrorIn(llvm::function_ref<void()> action);

} // namespace weft

#endif
