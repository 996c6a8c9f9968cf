// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads /proc/cpuinfo rather than cpuid: it lists only features that the kernel has enabled.
#include "runtime/CpuFeatures.h"
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace weft::rt {
namespace {

/// LLVM and Linux punctuate differently: "avx512-vnni", "avx512_vnni", "sse4.2".
std::string normalized(std::string name) {
  std::erase_if(name, [](char c) { return c == '_' || c == '-' || c == '.'; });
  return name;
}

/// Linux's names of features, where they differ from LLVM's.
constexpr std::pair<std::string_view, std::string_view> linuxNames[] = {
    {"bmi", "bmi1"},   {"lzcnt", "abm"},  {"prfchw", "3dnowprefetch"}, {"sse3", "pni"},
    {"fparmv8", "fp"}, {"neon", "asimd"}, {"fullfp16", "asimdhp"},     {"dotprod", "asimddp"}};

/// Linux's name of a feature in normalized form.
std::string linuxNameOf(const std::string &name) {
  for (auto [ofLlvm, ofLinux] : linuxNames)
    if (name == ofLlvm)
      return std::string(ofLinux);
  return name;
}

std::set<std::string> machineFlags() {
  std::set<std::string> flags;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features"))
      continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;)
      flags.insert(normalized(word));
    break;
  }
  return flags;
}

/// Linux grants AMX's tile state on request, for the process as a whole. The compiler has the same
/// function, as the runtime does not depend on it.
bool requestMatrixUnit() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
#else
  return false;
#endif
}

} // namespace

std::vector<std::string> missingCpuFeatures(const std::vector<std::string> &features) {
  static const std::set<std::string> flags = machineFlags();
  std::vector<std::string> missing;
  for (const std::string &feature : features) {
    std::string name = normalized(feature);
    if (name.starts_with("amx")) {
      static const bool matrixUnit = requestMatrixUnit();
      if (!matrixUnit) {
        missing.push_back(feature);
        continue;
      }
    }
    if (!flags.contains(linuxNameOf(name)))
      missing.push_back(feature);
  }
  return missing;
}

} // namespace weft::rt
