// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A counter that threads wait on: at first spinning, then asleep in the kernel.
// (std::atomic::wait is of no use here: libstdc++ spins and yields for a time of its own.)
#ifndef WEFT_RUNTIME_WAITWORD_H
#define WEFT_RUNTIME_WAITWORD_H

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weft::rt {

/// Tell the processor that this thread only waits.
void relaxProcessor();

class WaitWord {
public:
  uint32_t load() const { return value.load(std::memory_order_acquire); }

  /// Before anyone waits.
  void reset() { value.store(0, std::memory_order_relaxed); }

  /// Add one and wake whoever sleeps. What was written before is seen by those who waited.
  void increment();

  /// Return once the value differs from `old`: spin for at most `spinning`, soon yielding the
  /// processor to whoever wants it, then sleep.
  void waitWhile(uint32_t old, std::chrono::microseconds spinning);

private:
  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};
};

} // namespace weft::rt

#endif
