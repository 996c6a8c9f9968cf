// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The threads of a call: the team's own, or those of an OpenMP library that other code in the
// process uses. One call at a time has them; others run on their own thread.
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

/// Threads that programs run on: the last setNumThreads, else WEFT_THREADS, else what
/// followThreads gave, else the processors that this process may use.
/// Raises: ConfigError where WEFT_THREADS is no positive integer.
int32_t getNumThreads();

/// Unless the user says otherwise, programs run on as many threads as `number` gives at each call:
/// those that other code in the process was told to use.
void followThreads(int32_t (*number)());

/// Raises: ConfigError where `threads` < 1.
void setNumThreads(int32_t threads);

class ThreadTeam {
public:
  /// The team of this process. A forked child gets a new one, without threads.
  static ThreadTeam &process();

  /// One thread's share; must not throw.
  using Task = void (*)(void *data, int32_t thread, int32_t threads);

  using Patience = std::chrono::nanoseconds;

  /// From now on let tasks that call no other library run on threads of `library`, as long as
  /// its regions have as many as programs run on: code that uses it leaves its threads spinning
  /// for milliseconds, so that others beside them had to share their processors. Not in forked
  /// children, where those threads do not exist.
  static void shareThreads(const OpenMP &library);

  /// Run `task` on the calling thread (thread 0) and up to `wanted` - 1 workers, and
  /// return when all are done. Fewer threads take part (the task is told how many) when
  /// another caller has the team, which is never waited for, when the system gives no
  /// more, or when workers do not come within `patience`: one whose processor another
  /// program keeps (such as PyTorch's own workers, which spin for milliseconds after an
  /// eager op) must not hold up a call that takes microseconds.
  /// Threads of an OpenMP library are always waited for.
  void run(int32_t wanted, Task task, void *data, Patience patience = Patience::max());

  /// Wait until every thread of the running team has come. Only inside a task that was
  /// told of more than one thread.
  void barrier();

  ThreadTeam() = default;
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam &) = delete;
  ThreadTeam &operator=(const ThreadTeam &) = delete;

private:
  using Spin = std::chrono::microseconds;
  using Clock = std::chrono::steady_clock;

  /// Not at all in a team larger than the machine.
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
  int32_t lonelyCalls = 0; ///< in a row that some worker missed
  int32_t retryPause = 1;  ///< such calls between two that wait for a worker to wake up
  int32_t processors = 0;  ///< that this process may use; counted by the first call
  /// More threads than processors: whoever spins keeps another from working.
  std::atomic<bool> oversubscribed{false};
  Task task = nullptr;
  void *data = nullptr;
  std::atomic<int32_t> threads{1};
  Clock::time_point lastEnd; ///< of a call that had the team
  std::vector<std::thread> workers;

  alignas(64) WaitWord jobs;    ///< counts the jobs offered to the workers
  alignas(64) WaitWord started; ///< counts the jobs whose team is complete
  /// The job's number (high half), seats left (next 16 bits) and taken (lowest 16): a
  /// worker that comes late finds another job's number, or no seat.
  alignas(64) std::atomic<uint64_t> seats{0};

  alignas(64) std::atomic<int32_t> arrived{0};
  alignas(64) WaitWord round;    ///< counts barriers
  alignas(64) WaitWord finished; ///< workers done with the current job
};

} // namespace weft::rt

#endif
