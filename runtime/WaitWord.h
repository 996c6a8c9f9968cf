// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A counter that threads wait on: first spinning, then asleep in the kernel (futex). (Not
// std::atomic::wait: libstdc++ spins and yields for a fixed time of its own.)
#ifndef WEFT_RUNTIME_WAITWORD_H
#define WEFT_RUNTIME_WAITWORD_H

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weft::rt {

/// Spin-loop hint to the processor.
void relaxProcessor();

class WaitWord {
public:
  uint32_t load() const { return value.load(std::memory_order_acquire); }

  /// Only while nobody waits.
  void reset() { value.store(0, std::memory_order_relaxed); }

  /// Increments the counter and wakes sleeping waiters. Earlier writes are visible to those who
  /// waited.
  void increment();

  /// Returns once the value differs from `old`: spins for at most `spinning`, soon yielding the
  /// processor, then sleeps.
  void waitWhile(uint32_t old, std::chrono::microseconds spinning);

private:
  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};
};

} // namespace weft::rt

#endif
