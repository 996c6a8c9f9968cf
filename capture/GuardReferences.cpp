// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The objects that guards hold, as Python's garbage collector has to see them.
#include "capture/Guards.h"

#include <utility>

namespace weft::capture {

int Guards::traverse(visitproc visit, void *arg) const {
  auto owner = [&](const Owner &each) -> int {
    Py_VISIT(each.object.get());
    return 0;
  };
  for (const Check &each : checks) {
    if (int result = owner(each.owner))
      return result;
    if (int result = owner(each.other))
      return result;
    Py_VISIT(each.key.get());
    Py_VISIT(each.expected.value.get());
  }
  auto entries = [&](const std::vector<Entry> &list) -> int {
    for (const Entry &each : list) {
      Py_VISIT(each.key.get());
      Py_VISIT(each.after.get());
      Py_VISIT(each.expected.value.get());
    }
    return 0;
  };
  for (const Watch &each : dictWatches) {
    Py_VISIT(each.owner.get());
    Py_VISIT(each.dict.get());
    if (int result = entries(each.entries))
      return result;
  }
  for (const TypeWatch &each : typeWatches) {
    Py_VISIT(each.type.get());
    if (int result = entries(each.entries))
      return result;
  }
  for (const FunctionWatch &each : functions) {
    Py_VISIT(each.function.get());
    Py_VISIT(each.code.get());
    Py_VISIT(each.defaults.get());
    Py_VISIT(each.keywordDefaults.get());
  }
  for (const PyRef &each : inObserved)
    Py_VISIT(each.get());
  return 0;
}

void Guards::clear() {
  // The list is emptied before its objects are released, since releasing one may run code that
  // comes back here.
  auto checks = std::exchange(this->checks, {});
  auto dictWatches = std::exchange(this->dictWatches, {});
  places.clear();
  auto typeWatches = std::exchange(this->typeWatches, {});
  auto functions = std::exchange(this->functions, {});
  Registers registers = takeObserved();
}

} // namespace weft::capture
