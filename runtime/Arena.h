// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scratch memory of calls: a pool of aligned buffers without locks (so that a fork never inherits a
// held one), and without allocations once warm.
#ifndef WEFT_RUNTIME_ARENA_H
#define WEFT_RUNTIME_ARENA_H

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

namespace weft::rt {

/// Page-aligned memory, zeroed when new; requests huge pages from 4 MiB on.
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
  /// Takes ownership of memory from release() of a buffer of `bytes`.
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

  /// A buffer that returns to the pool at the end of the lease. The pool must outlive it.
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
  /// With more concurrent calls than this, buffers are freed instead of kept.
  std::array<std::atomic<char *>, 16> idle{};
};

} // namespace weft::rt

#endif
