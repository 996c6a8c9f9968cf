// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A recorded call as a node of autograd's graph. Its backward runs the backward program without
// the GIL where that alone gives the gradients, and asks Python otherwise: for derivatives that
// are to be differentiated again, for cotangents that stand for many, as within a vmap.
#ifndef WEFT_PYTHON_AUTOGRAD_STEPNODE_H
#define WEFT_PYTHON_AUTOGRAD_STEPNODE_H

#include "python/autograd/Step.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <optional>
#include <string>
#include <vector>

namespace weft::autograd {

class StepNode final : public torch::autograd::Node {
public:
  using Tensors = std::vector<at::Tensor>;

  /// With the GIL. inputs: of the graph.
  StepNode(const Step &step, std::span<PyObject *const> inputs);
  ~StepNode() override;

  /// Saves what the backward reads, until it has come from all parts of the results. To be called
  /// with the GIL, once the results are this node's.
  void save(std::span<PyObject *const> inputs, std::span<PyObject *const> results);

  std::string name() const override { return "_StepBackward"; }
  void release_variables() override;

protected:
  Tensors apply(Tensors &&cotangents) override;

private:
  /// An input that is no argument of the backward program, and its version in the call.
  struct Beside {
    size_t number;
    at::Tensor tensor;
    uint32_t version;
  };

  Tensors unpack(const Tensors &cotangents);
  /// By the program; none if it could not run.
  std::optional<Tensors> run(const Tensors &kept, const Tensors &cotangents) const;
  Tensors askPython(const Tensors &kept, const Tensors &cotangents);

  const Step &step;
  std::vector<torch::autograd::SavedVariable> saved;
  std::vector<Beside> beside;
  std::vector<bool> given, released; ///< by part: in the last backward, and once it was over
};

/// Whether a program may read and make the tensor's elements: it is no wrapper of another one, and
/// no bit changes their meaning.
bool isPlain(const at::Tensor &tensor);

} // namespace weft::autograd

#endif
