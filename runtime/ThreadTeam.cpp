// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/ThreadTeam.h"
#include "runtime/CpuQuota.h"
#include "runtime/Errors.h"
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <system_error>

namespace weft::rt {
namespace {

/// What the control groups allow, as it was when it was first asked for.
int32_t processorsOfQuota() {
  static const int32_t processors = cpuQuota().value_or(std::numeric_limits<int32_t>::max());
  return processors;
}

int32_t availableProcessors() {
  cpu_set_t set;
  bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  int32_t processors = known ? CPU_COUNT(&set) : int32_t(std::thread::hardware_concurrency());
  return std::max(1, std::min(processors, processorsOfQuota()));
}

/// WEFT_THREADS; 0 without it.
int32_t threadsOfEnvironment() {
  const char *text = std::getenv("WEFT_THREADS");
  if (!text)
    return 0;
  int32_t threads = 0;
  const char *end = text + std::strlen(text);
  auto [stop, error] = std::from_chars(text, end, threads);
  if (error != std::errc() || stop != end || threads < 1)
    throw ConfigError("WEFT_THREADS: expected a positive integer, found \"" + std::string(text) +
                      "\"");
  return threads;
}

/// 0 if not set.
std::atomic<int32_t> chosenThreads{0};

/// The argument of followThreads; null if not set.
std::atomic<int32_t (*)()> followedThreads{nullptr};

std::atomic<ThreadTeam *> processTeam{nullptr};

/// The latest argument of shareThreads; never freed, as a call may be using it.
std::atomic<const OpenMP *> sharedLibrary{nullptr};

/// The parent's workers do not exist in the child, and their state cannot be trusted. The old team
/// is leaked: its threads cannot be joined.
void forgetThreadsInChild() {
  processTeam.store(nullptr, std::memory_order_relaxed);
  sharedLibrary.store(nullptr, std::memory_order_relaxed);
}

void watchForks() {
  static const int registered = pthread_atfork(nullptr, nullptr, forgetThreadsInChild);
  (void)registered;
}

/// Workers block all signals, so that these are delivered to threads of the user's program.
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

/// How long threads spin before they sleep. Waking takes from 50 microseconds to milliseconds on a
/// virtual processor, more than most kernels take. Within a call the others are at work, so
/// spinning pays off; an idle process must free its processors soon.
constexpr std::chrono::microseconds withinCall{5000}, betweenCalls{1000};
/// After this time, spinning for a worker yields the processor.
constexpr std::chrono::microseconds besideOthers{50};

} // namespace

int32_t getNumThreads() {
  if (int32_t chosen = chosenThreads.load(std::memory_order_relaxed))
    return chosen;
  static const int32_t ofEnvironment = threadsOfEnvironment();
  if (ofEnvironment)
    return ofEnvironment;
  if (auto followed = followedThreads.load(std::memory_order_relaxed))
    return std::max(1, std::min(followed(), processorsOfQuota()));
  static const int32_t processors = availableProcessors();
  return processors;
}

void setNumThreads(int32_t threads) {
  if (threads < 1)
    throw ConfigError("number of threads: expected a positive integer, found " +
                      std::to_string(threads));
  chosenThreads.store(threads, std::memory_order_relaxed);
}

void followThreads(int32_t (*number)()) {
  followedThreads.store(number, std::memory_order_relaxed);
}

ThreadTeam &ThreadTeam::process() {
  watchForks();
  ThreadTeam *team = processTeam.load(std::memory_order_acquire);
  if (team)
    return *team;
  // Never destroyed: workers may still sleep at exit, and are not joined.
  auto fresh = std::make_unique<ThreadTeam>();
  if (processTeam.compare_exchange_strong(team, fresh.get(), std::memory_order_acq_rel))
    return *fresh.release();
  return *team;
}

void ThreadTeam::shareThreads(const OpenMP &library) {
  watchForks();
  sharedLibrary.store(new OpenMP(library), std::memory_order_release);
}

ThreadTeam::~ThreadTeam() {
  closing = true;
  jobs.increment();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadTeam::run(int32_t wanted, Task newTask, void *newData, Patience patience) {
  if (wanted <= 1 || busy.exchange(true, std::memory_order_acquire))
    return newTask(newData, 0, 1);
  task = newTask;
  data = newData;
  if (processors == 0)
    processors = availableProcessors();
  oversubscribed = wanted > processors;
  const OpenMP *library = sharedLibrary.load(std::memory_order_acquire);
  if (library && isWorth(*library, patience))
    runOn(*library, wanted);
  else
    runOnWorkers(hire(wanted), patience);
  lastEnd = Clock::now();
  busy.store(false, std::memory_order_release);
}

/// Not if a short call may have to wait for sleeping threads of `library`, as there is no timeout
/// for them; nor if regions change in size, as that would end and restart threads.
bool ThreadTeam::isWorth(const OpenMP &library, Patience patience) const {
  constexpr auto longCall = std::chrono::microseconds(500); // compared with patience
  constexpr auto awake = std::chrono::milliseconds(4);      // OpenMP's spinning is longer
  return library.maxThreads() == getNumThreads() &&
         (patience > longCall || Clock::now() - lastEnd < awake);
}

void ThreadTeam::runOnWorkers(int32_t wanted, Patience patience) {
  uint32_t before = finished.load();
  threads = gather(wanted, patience);
  started.increment();
  task(data, 0, threads);
  for (uint32_t now; (now = finished.load()) - before != uint32_t(threads - 1);)
    finished.waitWhile(now, spinning(withinCall));
}

/// One parallel region with the usual number of threads; those beyond `wanted` do nothing.
void ThreadTeam::runOn(const OpenMP &library, int32_t wanted) {
  struct Region {
    ThreadTeam &team;
    const OpenMP &library;
    int32_t wanted;
  } region{*this, library, wanted};
  auto body = [](void *pointer) {
    auto &[team, library, wanted] = *static_cast<Region *>(pointer);
    int32_t number = library.threadNumber();
    // All threads write the same value, before any of them can reach a barrier.
    int32_t threads = std::min<int32_t>(wanted, library.numThreads());
    team.threads.store(threads, std::memory_order_relaxed);
    if (number < threads)
      team.task(team.data, number, threads);
  };
  library.parallel(body, &region, unsigned(getNumThreads()), /*flags=*/0);
}

constexpr uint64_t takenMask = 0xffff, oneLeft = 1 << 16, leftMask = takenMask << 16;

/// Offers a job to the workers; returns the size of the team once all have joined or patience has
/// run out.
int32_t ThreadTeam::gather(int32_t wanted, Patience patience) {
  uint64_t job = jobs.load() + 1u;
  seats.store(job << 32 | uint64_t(wanted - 1) * oneLeft, std::memory_order_release);
  jobs.increment();
  Clock::time_point start = Clock::now();
  // After a call without its workers, these are asleep again before the next one: occasionally it
  // pays to wait until they wake.
  constexpr Patience wakeTime = std::chrono::microseconds(500);
  constexpr int32_t longestPause = 64;
  bool retry = lonelyCalls > 0 && lonelyCalls % retryPause == 0;
  if (retry)
    patience = std::max(patience, wakeTime);
  uint64_t now;
  while ((now = seats.load(std::memory_order_acquire)) & leftMask) {
    Patience waited = Clock::now() - start;
    if (waited > patience)
      break;
    if (oversubscribed || waited > besideOthers)
      std::this_thread::yield(); // the worker may have been woken on this processor
    relaxProcessor();
  }
  now = seats.fetch_and(~leftMask, std::memory_order_acq_rel);
  if (!(now & leftMask)) {
    lonelyCalls = 0;
    retryPause = 1;
  } else {
    ++lonelyCalls;
    if (retry)
      retryPause = std::min(2 * retryPause, longestPause);
  }
  return int32_t(now & takenMask) + 1;
}

/// This worker's number in the team of `job`, if there is a seat left.
std::optional<int32_t> ThreadTeam::takeSeat(uint32_t job) {
  uint64_t now = seats.load(std::memory_order_acquire);
  do {
    if (now >> 32 != job || !(now & leftMask))
      return std::nullopt;
  } while (!seats.compare_exchange_weak(now, now - oneLeft + 1, std::memory_order_acq_rel));
  return int32_t(now & takenMask) + 1;
}

void ThreadTeam::barrier() {
  uint32_t now = round.load();
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < threads)
    return round.waitWhile(now, spinning(withinCall));
  arrived.store(0, std::memory_order_relaxed);
  round.increment();
}

/// Starts workers as needed; returns the possible team size, at most `wanted`, including the
/// caller.
int32_t ThreadTeam::hire(int32_t wanted) {
  SignalsBlocked blocked;
  while (int32_t(workers.size()) < wanted - 1) {
    try {
      workers.emplace_back([this] { work(); });
    } catch (const std::system_error &) {
      break; // the system gives no more threads: fewer do the same work
    }
  }
  return std::min(wanted, int32_t(workers.size()) + 1);
}

void ThreadTeam::work() {
  for (uint32_t seen = 0;;) {
    jobs.waitWhile(seen, spinning(betweenCalls));
    seen = jobs.load();
    if (closing)
      return;
    std::optional<int32_t> number = takeSeat(seen);
    if (!number)
      continue;
    // `started` is incremented once per job, in order: wait for that of this job.
    started.waitWhile(seen - 1, spinning(withinCall));
    task(data, *number, threads);
    finished.increment();
  }
}

} // namespace weft::rt
