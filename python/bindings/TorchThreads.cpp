// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/TorchThreads.h"

#include "python/bindings/TorchAbi.h"
#include "runtime/OpenMP.h"
#include "runtime/Symbols.h"
#include "runtime/ThreadTeam.h"

namespace weft {

void joinTorchThreads() {
  static bool joined = false;
  void *library = joined ? nullptr : TorchAbi::libtorch();
  if (!library)
    return;
  joined = true;
  int32_t (*number)();
  if (rt::findSymbol(library, "_ZN2at15get_num_threadsEv", number))
    rt::followThreads(number);
  if (std::optional<rt::OpenMP> found = rt::OpenMP::find(library))
    rt::ThreadTeam::shareThreads(*found);
}

} // namespace weft
