// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/SumTerms.h"

using namespace mlir;
using namespace weft;

bool weft::isPartOfSum(AddOp sum) {
  return sum->hasOneUse() && isa<AddOp>(*sum->user_begin()) &&
         (*sum->user_begin())->getBlock() == sum->getBlock();
}

SmallVector<Value> weft::termsOf(AddOp sum) {
  SmallVector<Value> terms, pending{sum.getRhs(), sum.getLhs()};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    auto add = value.getDefiningOp<AddOp>();
    if (add && add->hasOneUse() && add->getBlock() == sum->getBlock()) {
      pending.push_back(add.getRhs());
      pending.push_back(add.getLhs());
    } else {
      terms.push_back(value);
    }
  }
  return terms;
}
