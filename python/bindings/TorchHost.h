// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a program's fallbacks with PyTorch's own kernels: the buffers become tensors without
// a copy, a Python function calls the op and copies what it gives into the results.
#ifndef WEFT_PYTHON_BINDINGS_TORCHHOST_H
#define WEFT_PYTHON_BINDINGS_TORCHHOST_H

#include "python/bindings/PyRef.h"
#include "runtime/Host.h"

#include <vector>

namespace weft {

class TorchHost final : public rt::Host {
public:
  /// functions: for each fallback of the manifest, `f(inputs, outputs)` on lists of tensors
  /// that must not keep any of them.
  explicit TorchHost(std::vector<PyRef> functions) : functions(std::move(functions)) {}

  void fallback(int32_t index, std::span<const WeftTensor> inputs,
                std::span<const WeftTensor> outputs) override;

  int traverse(visitproc visit, void *arg) const;

private:
  std::vector<PyRef> functions;
};

} // namespace weft

#endif
