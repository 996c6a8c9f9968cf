// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/WaitWord.h"
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace weft::rt {
void relaxProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

namespace {

bool spinWhile(const std::atomic<uint32_t> &value, uint32_t old, std::chrono::microseconds most) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds unyielding(50);
  Clock::time_point start = Clock::now(), now = start;
  for (; now - start < most; now = Clock::now()) {
    for (int i = 0; i < 16; ++i) {
      if (value.load(std::memory_order_acquire) != old)
        return true;
      relaxProcessor();
    }
    // Another program's thread may need this processor.
    if (now - start > unyielding)
      std::this_thread::yield();
  }
  return false;
}

} // namespace

void WaitWord::increment() {
  value.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, &value, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void WaitWord::waitWhile(uint32_t old, std::chrono::microseconds spinning) {
  if (value.load(std::memory_order_acquire) != old ||
      (spinning.count() > 0 && spinWhile(value, old, spinning)))
    return;
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  // The kernel compares again, so that a change before the system call is not missed.
  while (value.load(std::memory_order_seq_cst) == old)
    syscall(SYS_futex, &value, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
  sleepers.fetch_sub(1, std::memory_order_relaxed);
}

} // namespace weft::rt
