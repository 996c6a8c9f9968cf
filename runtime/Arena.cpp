// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/Arena.h"
#include <new>
#include <sys/mman.h>

namespace weft::rt {

AlignedBuffer::AlignedBuffer(size_t bytes) : length(bytes) {
  if (bytes == 0)
    return;
  void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    throw std::bad_alloc();
  memory = static_cast<char *>(pages);
  constexpr size_t worthHugePages = size_t(4) << 20;
  // Only advice: a kernel without huge pages rejects it, which is harmless.
  if (bytes >= worthHugePages)
    (void)madvise(pages, bytes, MADV_HUGEPAGE);
}

AlignedBuffer::~AlignedBuffer() {
  if (memory)
    munmap(memory, length);
}

AlignedBuffer &AlignedBuffer::operator=(AlignedBuffer &&other) noexcept {
  std::swap(memory, other.memory);
  std::swap(length, other.length);
  return *this;
}

AlignedBuffer AlignedBuffer::adopt(char *memory, size_t bytes) {
  AlignedBuffer buffer;
  buffer.memory = memory;
  buffer.length = bytes;
  return buffer;
}

ArenaPool::~ArenaPool() {
  for (std::atomic<char *> &slot : idle)
    AlignedBuffer::adopt(slot.exchange(nullptr), bytes);
}

ArenaPool::Lease ArenaPool::acquire() {
  for (std::atomic<char *> &slot : idle)
    if (slot.load(std::memory_order_relaxed))
      if (char *memory = slot.exchange(nullptr, std::memory_order_acquire))
        return {*this, AlignedBuffer::adopt(memory, bytes)};
  return {*this, AlignedBuffer(bytes)};
}

void ArenaPool::giveBack(AlignedBuffer buffer) {
  char *memory = buffer.data();
  for (std::atomic<char *> &slot : idle) {
    char *empty = nullptr;
    if (slot.compare_exchange_strong(empty, memory, std::memory_order_release,
                                     std::memory_order_relaxed)) {
      buffer.release();
      return;
    }
  }
}

} // namespace weft::rt
