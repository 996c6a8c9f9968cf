// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a program's fallbacks with PyTorch's own kernels. The buffers become tensors without
// a copy; the op goes through torch's C dispatcher, without the GIL, where its arguments
// allow it, and otherwise through a Python function that calls it.
#ifndef WEFT_PYTHON_BINDINGS_TORCHHOST_H
#define WEFT_PYTHON_BINDINGS_TORCHHOST_H

#include "capture/PyRef.h"
#include "python/bindings/DispatcherCall.h"
#include "runtime/Host.h"

#include <optional>
#include <vector>

namespace weft {

/// The fallbacks of one manifest.
class TorchHost {
public:
  /// function: `f(inputs, outputs)` on lists of tensors that must not keep any of them.
  /// description: as DispatcherCall.h defines it, or None.
  void add(PyObject *function, PyObject *description);

  int traverse(visitproc visit, void *arg) const;
  void clear() { fallbacks.clear(); }

private:
  friend class TorchCall;
  struct Fallback {
    PyRef function;
    std::optional<DispatcherCall> dispatched;
  };
  std::vector<Fallback> fallbacks;
};

/// What one call of a program asks of the host. Made with the GIL, used without it, on one
/// thread.
class TorchCall final : public rt::Host {
public:
  /// host: must outlive the call. Throws nb::python_error.
  explicit TorchCall(const TorchHost &host);

  void fallback(int32_t index, std::span<const WeftTensor> inputs,
                std::span<const WeftTensor> outputs) override;

private:
  const TorchHost &host;
  bool autocast; // only Python can switch it off, and its conversions are in the graph already
};

} // namespace weft

#endif
