// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Scheduling/ComparedSchedules.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace weft;

void ComparedSchedules::add(std::string fields, double cycles) {
  for (Entry &entry : entries)
    if (entry.fields == fields) {
      entry.cycles = std::min(entry.cycles, cycles);
      return;
    }
  entries.push_back({std::move(fields), cycles});
}

void ComparedSchedules::remark(Location location, StringRef kernel, StringRef emitter,
                               int64_t threads) const {
  auto told = [&](const Entry &entry) {
    auto cycles = int64_t(std::llround(std::ceil(entry.cycles / double(threads))));
    return llvm::formatv("{0} {1} cycles", entry.fields, cycles).str();
  };
  SmallVector<Entry, 0> others;
  std::string text = (kernel + ": " + emitter + " ").str(), chosen = taken;
  for (const Entry &entry : entries)
    if (entry.fields == taken)
      chosen = told(entry);
    else
      others.push_back(entry);
  text += chosen;
  llvm::stable_sort(others, [](const Entry &a, const Entry &b) { return a.cycles < b.cycles; });
  for (auto [number, entry] : llvm::enumerate(others))
    text += (number ? ", " : "; over ") + told(entry);
  remark::analysis(location, remark::RemarkOpts::name("schedule").category("weft-schedule-kernels"))
      << text;
}

std::string weft::fieldsOf(std::initializer_list<std::pair<StringRef, int64_t>> fields) {
  std::string text;
  for (auto [name, value] : fields)
    text += llvm::formatv("{0}{1}={2}", text.empty() ? "" : " ", name, value).str();
  return text;
}
