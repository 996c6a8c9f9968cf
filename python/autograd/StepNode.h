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

  /// With the GIL.
  StepNode(const Step &step, const Recorded &call);
  ~StepNode() override;

  /// Saves what the backward reads, until nothing of it may be read. To be called
  /// with the GIL, once the results are this node's.
  void save(const Recorded &call);

  std::string name() const override { return "_StepBackward"; }
  void release_variables() override;

protected:
  Tensors apply(Tensors &&cotangents) override;

private:
  /// then: in the memory that it had in the call.
  struct Input {
    at::Tensor tensor, then;
    uint32_t version;
  };

  /// What the program reads. Raises what autograd raises where anything is gone or has been
  /// changed.
  /// isAsThen: whether that is what autograd would read, or else Python has to be asked.
  Tensors unpack(const Tensors &cotangents, bool &isAsThen);
  at::Tensor unpack(size_t number, const Tensors &cotangents);
  /// Whether one of `saved`, or behind these of `watched`, may be read along these cotangents.
  bool isRead(size_t number, const Tensors &cotangents) const;
  /// Whether all that the program reads is that of the call, which it is made in `kept` for inputs
  /// in other memory that are not read anew.
  bool readsAsThen(Tensors &kept) const;
  /// Whether the last backward reads and frees what has this number among `Step::freed`.
  bool isOnTheWay(size_t number) const;
  /// By the program; none if it could not run.
  std::optional<Tensors> run(const Tensors &kept, const Tensors &cotangents) const;
  Tensors askPython(const Tensors &kept, const Tensors &cotangents);

  const Step &step;
  PyObject *beside;
  std::vector<torch::autograd::SavedVariable> saved, watched;
  std::vector<Input> inputs; ///< of the graph
  bool isReleased = false;
  std::vector<bool> given, asked; ///< of the last backward: among `Step::places`, `Step::wrt`
  std::vector<bool> released;     ///< among `Step::freed`
};

/// Whether a program may read and make the tensor's elements: it is no wrapper of another one, and
/// no bit changes their meaning.
bool isPlain(const at::Tensor &tensor);

} // namespace weft::autograd

#endif
