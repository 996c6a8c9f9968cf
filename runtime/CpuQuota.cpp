// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/CpuQuota.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace weft::rt {
namespace {

namespace fs = std::filesystem;

/// Microseconds of processor time in each period; none where there is no limit.
struct Bandwidth {
  double quota, period;
};

std::optional<int64_t> numberIn(const fs::path &file) {
  std::ifstream stream(file);
  int64_t number;
  return stream >> number ? std::optional(number) : std::nullopt;
}

/// Of cgroup v2: "max 100000", or "150000 100000".
std::optional<Bandwidth> unifiedBandwidth(const fs::path &group) {
  std::ifstream stream(group / "cpu.max");
  Bandwidth found;
  return stream >> found.quota >> found.period ? std::optional(found) : std::nullopt;
}

/// Of cgroup v1, where -1 is no limit.
std::optional<Bandwidth> legacyBandwidth(const fs::path &group) {
  std::optional<int64_t> quota = numberIn(group / "cpu.cfs_quota_us");
  std::optional<int64_t> period = numberIn(group / "cpu.cfs_period_us");
  if (!quota || !period)
    return std::nullopt;
  return Bandwidth{double(*quota), double(*period)};
}

using ReadBandwidth = std::optional<Bandwidth> (*)(const fs::path &group);

/// The least of the quotas of a group and of those above it. A container may see its own group as
/// the root of the hierarchy, under a path that only the host knows: what does not exist has none.
void limit(std::optional<int32_t> &processors, const fs::path &root, const fs::path &path,
           ReadBandwidth read) {
  for (fs::path group = path.relative_path();; group = group.parent_path()) {
    std::optional<Bandwidth> found = read(root / group);
    if (found && found->quota > 0 && found->period > 0) {
      double share = found->quota / found->period;
      int32_t whole = int32_t(std::min(share, 1e6));
      int32_t rounded = std::max(1, whole + (share > whole ? 1 : 0));
      processors = std::min(processors.value_or(rounded), rounded);
    }
    if (group.empty())
      return;
  }
}

bool listsCpu(const std::string &controllers) {
  std::istringstream stream(controllers);
  for (std::string each; std::getline(stream, each, ',');)
    if (each == "cpu")
      return true;
  return false;
}

} // namespace

std::optional<int32_t> cpuQuota(const fs::path &groups, const fs::path &mounts) {
  std::optional<int32_t> processors;
  std::ifstream list(groups);
  // Lines are "number:controllers:path"; those of cgroup v2 have no controllers.
  for (std::string line; std::getline(list, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    fs::path path = line.substr(second + 1);
    if (controllers.empty()) {
      limit(processors, mounts, path, unifiedBandwidth);
      limit(processors, mounts / "unified", path, unifiedBandwidth);
    } else if (listsCpu(controllers)) {
      limit(processors, mounts / "cpu", path, legacyBandwidth);
      if (controllers != "cpu")
        limit(processors, mounts / controllers, path, legacyBandwidth);
    }
  }
  return processors;
}

} // namespace weft::rt
