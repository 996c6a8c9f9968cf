// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What this machine's arithmetic units, its caches and its memory reach, measured. weft.machine
// keeps the rates; nothing else asks for them.
#ifndef WEFT_PYTHON_BINDINGS_PEAKFLOPS_H
#define WEFT_PYTHON_BINDINGS_PEAKFLOPS_H

#include <cstdint>

namespace weft {

/// float32 operations per second (an FMA counts two) of `threads` threads running at once,
/// with the widest vectors this CPU has. Takes half a second.
double measurePeakFlops(int32_t threads);

/// The same of bfloat16 on the matrix unit (AMX), a multiply-add of two; 0 on a machine without
/// one, or where the system does not let this process use it.
double measureMatrixFlops(int32_t threads);

/// Bytes per second at which `threads` threads read memory that lies in no cache. Takes about
/// a second, and twice the last cache's size of memory. Raises: std::bad_alloc.
double measurePeakBandwidth(int32_t threads);

/// The same from the cache of `level`, 2 or 3: each thread reads memory of its own that does not
/// fit the level before, again and again. 0 where the system does not know its caches.
/// Raises: std::bad_alloc.
double measureCacheBandwidth(int32_t threads, int32_t level);

} // namespace weft

#endif
