// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Target/CacheTopology.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <sched.h>

using namespace llvm;
using namespace weft;

std::optional<int64_t> weft::parseCacheSize(StringRef text) {
  text = text.trim();
  int64_t scale = text.consume_back("K") ? 1 << 10 : text.consume_back("M") ? 1 << 20 : 1;
  int64_t value;
  if (text.getAsInteger(10, value) || value <= 0)
    return std::nullopt;
  return value * scale;
}

SmallVector<int64_t> weft::parseCpuList(StringRef text) {
  SmallVector<int64_t> numbers;
  SmallVector<StringRef> ranges;
  text.trim().split(ranges, ',', -1, /*KeepEmpty=*/false);
  for (StringRef range : ranges) {
    auto [first, last] = range.split('-');
    int64_t from, to;
    if (first.getAsInteger(10, from) || (last.empty() ? first : last).getAsInteger(10, to))
      return {};
    for (int64_t number = from; number <= to; ++number)
      numbers.push_back(number);
  }
  return numbers;
}

/// The file's trimmed text, or empty if it does not exist.
static std::string contents(const std::string &path) {
  auto file = MemoryBuffer::getFileAsStream(path);
  return file ? (*file)->getBuffer().trim().str() : "";
}

CacheTopology::CacheTopology(StringRef folder, ArrayRef<int64_t> allowed) : cpus(allowed) {
  llvm::sort(cpus);
  for (int64_t cpu : cpus)
    read((folder + "/cpu" + Twine(cpu) + "/cache/").str());
}

void CacheTopology::read(const std::string &folder) {
  constexpr int mostCaches = 8;
  for (int index = 0; index < mostCaches; ++index) {
    std::string cache = folder + "index" + std::to_string(index) + "/";
    int64_t level;
    std::optional<int64_t> bytes = parseCacheSize(contents(cache + "size"));
    if (StringRef(contents(cache + "level")).getAsInteger(10, level) || !bytes ||
        contents(cache + "type") == "Instruction")
      continue;
    auto isOurs = [&](int64_t cpu) { return llvm::binary_search(cpus, cpu); };
    int64_t sharers = llvm::count_if(parseCpuList(contents(cache + "shared_cpu_list")), isOurs);
    caches.push_back({level, *bytes, std::max<int64_t>(sharers, 1)});
  }
}

CacheTopology CacheTopology::host() {
  SmallVector<int64_t> allowed;
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0)
    for (int64_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &mask))
        allowed.push_back(cpu);
  return CacheTopology("/sys/devices/system/cpu", allowed);
}

std::optional<int64_t> CacheTopology::bytes(int64_t level) const {
  std::optional<int64_t> least;
  for (const Cache &cache : caches) {
    if (cache.level != level)
      continue;
    int64_t bytes = std::min(cache.bytes, cache.sharers * mostBytesOfProcessor);
    least = std::min(least.value_or(bytes), bytes);
  }
  return least;
}

std::optional<int64_t> CacheTopology::bytesOfThread(int64_t level, int64_t threads) const {
  auto processors = static_cast<int64_t>(cpus.size());
  std::optional<int64_t> least;
  for (const Cache &cache : caches) {
    if (cache.level != level)
      continue;
    int64_t running = llvm::divideCeil(std::min(threads, processors) * cache.sharers, processors);
    int64_t bytes = cache.bytes / std::max<int64_t>(running, 1);
    least = std::min(least.value_or(bytes), bytes);
  }
  return least;
}
