// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much processor time the control groups of this process allow it, as containers set it.
// Sources: cgroups(7); the kernel's cgroup-v2.rst ("cpu.max") and sched-bwc.rst ("cpu.cfs_*").
#ifndef WEFT_RUNTIME_CPUQUOTA_H
#define WEFT_RUNTIME_CPUQUOTA_H

#include <cstdint>
#include <filesystem>
#include <optional>

namespace weft::rt {

/// The processors that the quotas of this process are worth together, rounded up, at least 1; the
/// least of the process's group and those above it, of cgroup v1 or v2. None without a quota.
///
/// groups: the process's list of groups, mounts: the folder in which their hierarchies are mounted.
std::optional<int32_t> cpuQuota(const std::filesystem::path &groups = "/proc/self/cgroup",
                                const std::filesystem::path &mounts = "/sys/fs/cgroup");

} // namespace weft::rt

#endif
