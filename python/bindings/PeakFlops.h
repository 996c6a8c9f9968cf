// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What this machine's fused multiply-add units and its memory reach, measured: the yardsticks
// of reports and profiles.
#ifndef WEFT_PYTHON_BINDINGS_PEAKFLOPS_H
#define WEFT_PYTHON_BINDINGS_PEAKFLOPS_H

#include <cstdint>

namespace weft {

/// float32 operations per second (an FMA counts two) of `threads` threads running at once,
/// with the widest vectors this CPU has. Takes half a second.
double measurePeakFlops(int32_t threads);

/// Bytes per second at which `threads` threads read memory that lies in no cache. Takes about
/// a second, and twice the last cache's size of memory. Raises: std::bad_alloc.
double measurePeakBandwidth(int32_t threads);

} // namespace weft

#endif
