// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scratch memory of calls: aligned buffers that are handed out and taken back without
// locks (so that a fork can never inherit a held one) and without allocating once warm.
#ifndef WEFT_RUNTIME_ARENA_H
#define WEFT_RUNTIME_ARENA_H

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

namespace weft::rt {

/// Page-aligned memory, zeroed when new; huge pages are asked for from 4 MiB.
class AlignedBuffer {
public:
  AlignedBuffer() = default;
  /// Raises: std::bad_alloc.
  explicit AlignedBuffer(size_t bytes);
  AlignedBuffer(AlignedBuffer &&other) noexcept
      : memory(std::exchange(other.memory, nullptr)), length(std::exchange(other.length, 0)) {}
  AlignedBuffer &operator=(AlignedBuffer &&other) noexcept;
  ~AlignedBuffer();

  char *data() const { return memory; }
  size_t size() const { return length; }
  char *release() { return std::exchange(memory, nullptr); }
  /// Take over memory that release() of a buffer of `bytes` gave.
  static AlignedBuffer adopt(char *memory, size_t bytes);

private:
  char *memory = nullptr;
  size_t length = 0;
};

/// Buffers of one size. Concurrent holders get different ones.
class ArenaPool {
public:
  explicit ArenaPool(size_t bytes) : bytes(bytes) {}
  ~ArenaPool();
  ArenaPool(const ArenaPool &) = delete;
  ArenaPool &operator=(const ArenaPool &) = delete;

  /// One buffer, given back when the lease ends. The pool must outlive it.
  class Lease {
  public:
    Lease(ArenaPool &pool, AlignedBuffer buffer) : pool(pool), buffer(std::move(buffer)) {}
    ~Lease() { pool.giveBack(std::move(buffer)); }
    Lease(const Lease &) = delete;
    Lease &operator=(const Lease &) = delete;
    char *data() const { return buffer.data(); }

  private:
    ArenaPool &pool;
    AlignedBuffer buffer;
  };
  Lease acquire();

private:
  void giveBack(AlignedBuffer buffer);

  size_t bytes;
  /// More concurrent calls than this free their buffer instead of keeping it.
  std::array<std::atomic<char *>, 16> idle{};
};

} // namespace weft::rt

#endif
