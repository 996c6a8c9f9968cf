// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/Environment.h"

#include "python/bindings/Torch.h"

#include <algorithm>

namespace weft {

bool Environment::wantsGradients() const {
  return std::any_of(gradients.begin(), gradients.end(),
                     [](const PyRef &tensor) { return Torch::get().requiresGrad(tensor.get()); });
}

int Environment::traverse(visitproc visit, void *arg) const {
  for (const std::vector<PyRef> *references : {&gradients, &specializations})
    for (const PyRef &reference : *references)
      Py_VISIT(reference.get());
  if (int status = guards.traverse(visit, arg))
    return status;
  return state.traverse(visit, arg);
}

void Environment::clear() {
  gradients.clear();
  specializations.clear();
  guards.clear();
  state.clear();
}

} // namespace weft
