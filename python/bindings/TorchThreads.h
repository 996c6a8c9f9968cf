// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef WEFT_PYTHON_BINDINGS_TORCHTHREADS_H
#define WEFT_PYTHON_BINDINGS_TORCHTHREADS_H

namespace weft {

/// Once torch is loaded, let programs run on the threads that its own operations run on, and on as
/// many as the user told it to use. With the GIL.
void joinTorchThreads();

} // namespace weft

#endif
