// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The threads of a call: our own workers, or those of an OpenMP library that other code in the
// process uses. Only one call at a time has the team; concurrent ones run on their own thread.
#ifndef WEFT_RUNTIME_THREADTEAM_H
#define WEFT_RUNTIME_THREADTEAM_H

#include "runtime/OpenMP.h"
#include "runtime/WaitWord.h"
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

namespace weft::rt {

/// The number of threads that programs use: the last setNumThreads, else WEFT_THREADS, else
/// followThreads, but no more than the process's CPU quota, else the processors that its affinity
/// mask and its quota leave to this process.
/// Raises: ConfigError if WEFT_THREADS is not a positive integer.
int32_t getNumThreads();

/// Unless set otherwise, programs use the number of threads that `number` returns at each call:
/// that of other code in the process.
void followThreads(int32_t (*number)());

/// Raises: ConfigError if `threads` < 1.
void setNumThreads(int32_t threads);

class ThreadTeam {
public:
  /// The team of this process. A forked child gets a new one, without threads.
  static ThreadTeam &process();

  /// The work of one thread; must not throw.
  using Task = void (*)(void *data, int32_t thread, int32_t threads);

  using Patience = std::chrono::nanoseconds;

  /// From now on, tasks that call no other library may run on threads of `library`, if its regions
  /// have the programs' number of threads: other threads would compete with them, as they spin for
  /// milliseconds after each region. Not in forked children, where those threads do not exist.
  static void shareThreads(const OpenMP &library);

  /// Runs `task` on the calling thread (thread 0) and up to `wanted` - 1 workers, and returns when
  /// all are done. Fewer threads take part (the task is told how many) if another caller has the
  /// team, which is not waited for, if the system grants no more, or if workers do not join within
  /// `patience`: their processors may be busy, for instance with PyTorch's workers, which spin for
  /// milliseconds after an eager op, and must not hold up a short call. Threads of an OpenMP
  /// library are always waited for.
  void run(int32_t wanted, Task task, void *data, Patience patience = Patience::max());

  /// Waits until every thread of the running team has arrived. Only in a task with more than one
  /// thread.
  void barrier();

  ThreadTeam() = default;
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam &) = delete;
  ThreadTeam &operator=(const ThreadTeam &) = delete;

private:
  using Spin = std::chrono::microseconds;
  using Clock = std::chrono::steady_clock;

  /// No spinning in a team larger than the machine.
  Spin spinning(Spin most) const { return oversubscribed ? Spin(0) : most; }
  bool isWorth(const OpenMP &library, Patience patience) const;
  void runOn(const OpenMP &library, int32_t wanted);
  void runOnWorkers(int32_t wanted, Patience patience);
  void work();
  int32_t hire(int32_t wanted);
  int32_t gather(int32_t wanted, Patience patience);
  std::optional<int32_t> takeSeat(uint32_t job);

  std::atomic<bool> busy{false};
  bool closing = false;
  int32_t lonelyCalls = 0; ///< calls in a row without some worker
  int32_t retryPause = 1;  ///< such calls between two that wait for a worker to wake up
  int32_t processors = 0;  ///< available to this process; counted by the first call
  /// With more threads than processors, spinning keeps others from working.
  std::atomic<bool> oversubscribed{false};
  Task task = nullptr;
  void *data = nullptr;
  std::atomic<int32_t> threads{1};
  Clock::time_point lastEnd; ///< of a call that had the team
  std::vector<std::thread> workers;

  alignas(64) WaitWord jobs;    ///< counts the jobs offered to the workers
  alignas(64) WaitWord started; ///< counts the jobs whose team is complete
  /// Job number (high half), seats left (next 16 bits) and taken (lowest 16): a late worker finds
  /// another job's number, or no seat.
  alignas(64) std::atomic<uint64_t> seats{0};

  alignas(64) std::atomic<int32_t> arrived{0};
  alignas(64) WaitWord round;    ///< counts barriers
  alignas(64) WaitWord finished; ///< workers done with the current job
};

} // namespace weft::rt

#endif
