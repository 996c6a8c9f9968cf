// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Services that a program requests from the process that calls it.
#ifndef WEFT_RUNTIME_HOST_H
#define WEFT_RUNTIME_HOST_H

#include "runtime/Abi.h"
#include <span>

namespace weft::rt {

class Host {
public:
  virtual ~Host() = default;

  /// Runs fallback `index` of the manifest on `inputs` and writes its results to the memory of
  /// `outputs`; both are valid until the call returns. Called on the thread that called
  /// Program::run. An exception ends the program and propagates out of Program::run.
  virtual void fallback(int32_t index, std::span<const WeftTensor> inputs,
                        std::span<const WeftTensor> outputs) = 0;
};

} // namespace weft::rt

#endif
