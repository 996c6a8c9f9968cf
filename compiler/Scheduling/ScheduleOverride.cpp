// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Scheduling/ScheduleOverride.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace weft;

template <typename... Values>
static llvm::Error wrong(const char *format, const Values &...values) {
  return llvm::createStringError("schedule: " + llvm::formatv(format, values...).str());
}

llvm::Expected<ScheduleOverride> ScheduleOverride::parse(llvm::StringRef text) {
  ScheduleOverride given;
  std::pair<llvm::StringRef, std::optional<int64_t> *> numbers[] = {{"rows", &given.rows},
                                                                    {"groups", &given.groups},
                                                                    {"chunk", &given.chunk},
                                                                    {"panels", &given.panels}};
  for (llvm::StringRef item : llvm::split(text, ',')) {
    if (text.empty())
      break;
    auto [name, value] = item.split('=');
    auto *found = llvm::find_if(numbers, [&](auto &number) { return number.first == name; });
    if (found == std::end(numbers))
      return wrong("expected rows, groups, chunk or panels, found '{0}'", name);
    int64_t number;
    if (value.getAsInteger(10, number) || number < 1)
      return wrong("expected {0} to be a positive number, found '{1}'", name, value);
    *found->second = number;
  }
  return given;
}

static ScheduleOverride merged(const ScheduleOverride &first, const ScheduleOverride &second) {
  auto either = [](std::optional<int64_t> a, std::optional<int64_t> b) { return a ? a : b; };
  return {either(first.rows, second.rows), either(first.groups, second.groups),
          either(first.chunk, second.chunk), either(first.panels, second.panels)};
}

llvm::Expected<ScheduleOverrides> ScheduleOverrides::parse(llvm::StringRef text) {
  ScheduleOverrides result;
  for (llvm::StringRef section : llvm::split(text, ';')) {
    auto [name, numbers] = section.split(':');
    bool isNamed = section.contains(':');
    llvm::Expected<ScheduleOverride> given = ScheduleOverride::parse(isNamed ? numbers : section);
    if (!given)
      return given.takeError();
    ScheduleOverride &place = isNamed ? result.named[name] : result.all;
    place = merged(*given, place);
  }
  for (auto &entry : result.named)
    entry.second = merged(entry.second, result.all);
  return result;
}

const ScheduleOverride &ScheduleOverrides::of(llvm::StringRef kernel) const {
  auto found = named.find(kernel);
  return found == named.end() ? all : found->second;
}
