// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A node for each of several results of one node. Autograd calls the hooks of all results of a node
// that it runs, with None for one that nobody used; in eager execution that one has a node of its
// own, which is not run.
#ifndef WEFT_PYTHON_AUTOGRAD_RESULTNODE_H
#define WEFT_PYTHON_AUTOGRAD_RESULTNODE_H

#include <torch/csrc/autograd/function.h>

#include <string>
#include <utility>
#include <vector>

namespace weft::autograd {

/// Hands its cotangent on.
class ResultNode final : public torch::autograd::Node {
public:
  using torch::autograd::Node::Node;
  std::string name() const override { return "_StepBackward"; }

  /// Puts one between a result and its node, which has saved what it reads by now: what it has
  /// saved of the result leads to that node itself.
  static void putAhead(const at::Tensor &result);

protected:
  std::vector<at::Tensor> apply(std::vector<at::Tensor> &&cotangents) override {
    return std::move(cotangents);
  }
};

} // namespace weft::autograd

#endif
