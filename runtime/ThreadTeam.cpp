// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/ThreadTeam.h"
#include "runtime/Errors.h"
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <system_error>

namespace weft::rt {
namespace {

int32_t availableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return CPU_COUNT(&set);
  return std::max(1, int32_t(std::thread::hardware_concurrency()));
}

int32_t defaultThreads() {
  const char *text = std::getenv("WEFT_THREADS");
  if (!text)
    return availableProcessors();
  int32_t threads = 0;
  const char *end = text + std::strlen(text);
  auto [stop, error] = std::from_chars(text, end, threads);
  if (error != std::errc() || stop != end || threads < 1)
    throw ConfigError("WEFT_THREADS: expected a positive integer, found \"" + std::string(text) +
                      "\"");
  return threads;
}

/// 0 until someone sets it.
std::atomic<int32_t> chosenThreads{0};

std::atomic<ThreadTeam *> processTeam{nullptr};

/// The parent's workers do not exist in the child, nor may their state be trusted there.
/// The old team is left alone: its threads cannot be joined.
void forgetTeamInChild() { processTeam.store(nullptr, std::memory_order_relaxed); }

/// Workers leave every signal to the threads of the user's program.
class SignalsBlocked {
public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

private:
  sigset_t before;
};

} // namespace

int32_t getNumThreads() {
  if (int32_t chosen = chosenThreads.load(std::memory_order_relaxed))
    return chosen;
  static const int32_t byDefault = defaultThreads();
  return byDefault;
}

void setNumThreads(int32_t threads) {
  if (threads < 1)
    throw ConfigError("number of threads: expected a positive integer, found " +
                      std::to_string(threads));
  chosenThreads.store(threads, std::memory_order_relaxed);
}

ThreadTeam &ThreadTeam::process() {
  static const int registered = pthread_atfork(nullptr, nullptr, forgetTeamInChild);
  (void)registered;
  ThreadTeam *team = processTeam.load(std::memory_order_acquire);
  if (team)
    return *team;
  // Never destroyed: at exit workers may still sleep, and nobody waits for them.
  auto fresh = std::make_unique<ThreadTeam>();
  if (processTeam.compare_exchange_strong(team, fresh.get(), std::memory_order_acq_rel))
    return *fresh.release();
  return *team;
}

ThreadTeam::~ThreadTeam() {
  closing = true;
  for (std::unique_ptr<Worker> &worker : workers) {
    worker->ticket.increment();
    worker->thread.join();
  }
}

void ThreadTeam::run(int32_t wanted, Task newTask, void *newData) {
  if (wanted <= 1 || busy.exchange(true, std::memory_order_acquire))
    return newTask(newData, 0, 1);
  threads = hire(wanted);
  oversubscribed = threads > processors;
  task = newTask;
  data = newData;
  uint32_t before = finished.load();
  for (int32_t i = 1; i < threads; ++i)
    workers[i - 1]->ticket.increment();
  task(data, 0, threads);
  for (uint32_t now; (now = finished.load()) - before != uint32_t(threads - 1);)
    finished.waitWhile(now, !oversubscribed);
  busy.store(false, std::memory_order_release);
}

void ThreadTeam::barrier() {
  uint32_t now = round.load();
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < threads)
    return round.waitWhile(now, !oversubscribed);
  arrived.store(0, std::memory_order_relaxed);
  round.increment();
}

/// How many threads, the caller included, a team that wants `wanted` gets.
int32_t ThreadTeam::hire(int32_t wanted) {
  if (processors == 0)
    processors = availableProcessors();
  SignalsBlocked blocked;
  while (int32_t(workers.size()) < wanted - 1) {
    auto worker = std::make_unique<Worker>();
    try {
      workers.reserve(workers.size() + 1);
      int32_t number = int32_t(workers.size()) + 1;
      worker->thread = std::thread([this, &worker = *worker, number] { work(worker, number); });
    } catch (const std::system_error &) {
      break; // the system gives no more threads: fewer do the same work
    }
    workers.push_back(std::move(worker));
  }
  return std::min(wanted, int32_t(workers.size()) + 1);
}

void ThreadTeam::work(Worker &worker, int32_t number) {
  for (uint32_t done = 0;; ++done) {
    worker.ticket.waitWhile(done, !oversubscribed);
    if (closing)
      return;
    task(data, number, threads);
    finished.increment();
  }
}

} // namespace weft::rt
