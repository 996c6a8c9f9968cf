// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/Environment.h"

#include "python/bindings/Specialization.h"
#include "python/bindings/Torch.h"

#include <nanobind/nanobind.h>

#include <algorithm>

namespace nb = nanobind;

namespace weft {

bool Environment::wantsGradients() const {
  return std::any_of(gradients.begin(), gradients.end(),
                     [](const PyRef &tensor) { return Torch::get().requiresGrad(tensor.get()); });
}

void Environment::fetchAhead() {
  if (specializations.empty())
    return;
  auto *latest = nb::inst_ptr<Specialization>(nb::handle(specializations.front().get()));
  if (latest->footprint.empty())
    return;
  if (!footprint)
    footprint = guards.footprint();
  footprint->fetch();
  latest->footprint.fetch();
}

int Environment::traverse(visitproc visit, void *arg) const {
  for (const std::vector<PyRef> *references : {&gradients, &specializations, &ranges})
    for (const PyRef &reference : *references)
      Py_VISIT(reference.get());
  if (int status = guards.traverse(visit, arg))
    return status;
  return state.traverse(visit, arg);
}

void Environment::clear() {
  gradients.clear();
  specializations.clear();
  ranges.clear();
  guards.clear();
  state.clear();
}

} // namespace weft
