// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/autograd/ResultNode.h"

#include <torch/csrc/autograd/functions/utils.h>

namespace weft::autograd {

void ResultNode::putAhead(const at::Tensor &result) {
  torch::autograd::edge_list edges;
  edges.push_back(torch::autograd::impl::gradient_edge(result));
  torch::autograd::set_history(result, c10::make_intrusive<ResultNode>(std::move(edges)));
}

} // namespace weft::autograd
