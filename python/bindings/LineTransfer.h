// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How far apart two processors are. Those of a virtual machine may share a cache for minutes, and
// then lie on different dies: what one has written, the other reads and overwrites several times
// as slowly, and every system's times change with it.
#ifndef WEFT_PYTHON_BINDINGS_LINETRANSFER_H
#define WEFT_PYTHON_BINDINGS_LINETRANSFER_H

namespace weft {

/// Seconds until a thread sees what another has written to a cache line, on two threads that run
/// at once; 0 where a call gets only one. Takes a few milliseconds.
double measureLineTransfer();

} // namespace weft

#endif
