// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The process's worker threads. One call at a time has them; others run on their own thread.
#ifndef WEFT_RUNTIME_THREADTEAM_H
#define WEFT_RUNTIME_THREADTEAM_H

#include "runtime/WaitWord.h"
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace weft::rt {

/// Threads that programs run on: the last setNumThreads, else WEFT_THREADS, else the
/// processors that this process may use.
/// Raises: ConfigError where WEFT_THREADS is no positive integer.
int32_t getNumThreads();

/// Raises: ConfigError where `threads` < 1.
void setNumThreads(int32_t threads);

class ThreadTeam {
public:
  /// The team of this process. A forked child gets a new one, without threads.
  static ThreadTeam &process();

  /// One thread's share; must not throw.
  using Task = void (*)(void *data, int32_t thread, int32_t threads);

  /// Run `task` on the calling thread (thread 0) and up to `wanted` - 1 workers, and
  /// return when all are done. Fewer threads take part (the task is told how many) when
  /// another caller has the team, which is never waited for, or the system gives no more.
  void run(int32_t wanted, Task task, void *data);

  /// Wait until every thread of the running team has come. Only inside a task that was
  /// told of more than one thread.
  void barrier();

  ThreadTeam() = default;
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam &) = delete;
  ThreadTeam &operator=(const ThreadTeam &) = delete;

private:
  struct alignas(64) Worker {
    WaitWord ticket; ///< counts the jobs that this worker has been given
    std::thread thread;
  };

  void work(Worker &worker, int32_t number);
  int32_t hire(int32_t wanted);

  std::atomic<bool> busy{false};
  bool closing = false;
  int32_t processors = 0; ///< that this process may use; counted with the first worker
  /// More threads than processors: whoever spins keeps another from working.
  std::atomic<bool> oversubscribed{false};
  Task task = nullptr;
  void *data = nullptr;
  int32_t threads = 1;
  std::vector<std::unique_ptr<Worker>> workers;

  alignas(64) std::atomic<int32_t> arrived{0};
  alignas(64) WaitWord round;    ///< counts barriers
  alignas(64) WaitWord finished; ///< workers done with the current job
};

} // namespace weft::rt

#endif
