// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-sink-sums: a state of a scan that only sums up contractions or reductions of the
// steps, as a gradient of a weight does, becomes one contraction or reduction over all steps.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/IR/Matchers.h"

namespace weft {
#define GEN_PASS_DEF_SINKSUMS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

static SmallVector<int64_t> shifted(ArrayRef<int64_t> dims) {
  SmallVector<int64_t> all{0};
  for (int64_t dim : dims)
    all.push_back(dim + 1);
  return all;
}

/// What is added to state `number` at each step, if that is all that happens to it.
static Operation *findTerm(ScanOp scan, unsigned number) {
  BlockArgument sum = scan.getStep().getArgument(number);
  auto add = scan.getYielded()[number].getDefiningOp<AddOp>();
  if (!add || !sum.hasOneUse() || *sum.user_begin() != add || !add->hasOneUse())
    return nullptr;
  Operation *term = (add.getLhs() == sum ? add.getRhs() : add.getLhs()).getDefiningOp();
  auto dot = dyn_cast_or_null<DotGeneralOp>(term);
  auto reduce = dyn_cast_or_null<ReduceOp>(term);
  bool isSum =
      (dot && dot.getLhsBatch().empty()) || (reduce && reduce.getKind() == ReduceKind::sum);
  return isSum && term->hasOneUse() ? term : nullptr;
}

namespace {

/// One scan and what replaces it.
class SumSinker {
public:
  explicit SumSinker(ScanOp scan) : scan(scan), builder(scan) {}

  /// Returns the number of states that are gone.
  int64_t run();

private:
  void stack(Value value);
  Value ofAllSteps(Value value, ScanOp made);
  Value sumOf(Operation *term, ScanOp made);

  ScanOp scan;
  OpBuilder builder;
  llvm::SetVector<Value> outputs; ///< of the step, beside those it has
};

} // namespace

/// Elements of sequences are there for all steps already.
void SumSinker::stack(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  unsigned first = scan.getInits().size(), end = first + scan.getSequences().size();
  if (!argument || argument.getArgNumber() < first || argument.getArgNumber() >= end)
    outputs.insert(value);
}

int64_t SumSinker::run() {
  SmallVector<std::pair<unsigned, Operation *>> sums;
  for (unsigned number : llvm::seq<unsigned>(scan.getInits().size()))
    if (Operation *term = findTerm(scan, number))
      sums.push_back({number, term});
  if (sums.empty())
    return 0;
  for (auto [number, term] : sums)
    for (Value operand : term->getOperands())
      stack(operand);
  SmallVector<Type> types(scan.getResultTypes());
  for (Value output : outputs) {
    SmallVector<int64_t> shape{static_cast<int64_t>(scan.getLength())};
    llvm::append_range(shape, tensorType(output).getShape());
    types.push_back(RankedTensorType::get(shape, tensorType(output).getElementType()));
  }
  builder.setInsertionPointAfter(scan);
  auto made = ScanOp::create(builder, scan.getLoc(), types, scan.getInits(), scan.getSequences(),
                             scan.getInvariants(), scan.getLength(), scan.getReverse());
  made->setDiscardableAttrs(scan->getDiscardableAttrDictionary());
  for (auto [number, term] : sums) {
    Value sum = sumOf(term, made), init = scan.getInits()[number];
    if (!matchPattern(init, m_AnyZeroFloat()))
      sum = AddOp::create(builder, term->getLoc(), init, sum);
    scan.getResult(number).replaceAllUsesWith(sum);
  }
  scan.replaceAllUsesWith(made.getResults().take_front(scan.getNumResults()));
  SmallVector<Value> yielded(scan.getYielded());
  llvm::append_range(yielded, outputs);
  scan.getStep().getTerminator()->setOperands(yielded);
  made.getBody().takeBody(scan.getBody());
  scan.erase();
  return sums.size();
}

Value SumSinker::ofAllSteps(Value value, ScanOp made) {
  auto *output = llvm::find(outputs, value);
  if (output == outputs.end())
    return scan->getOperand(cast<BlockArgument>(value).getArgNumber());
  return made.getResult(scan.getNumResults() + (output - outputs.begin()));
}

Value SumSinker::sumOf(Operation *term, ScanOp made) {
  auto all = llvm::map_to_vector(term->getOperands(),
                                 [&](Value operand) { return ofAllSteps(operand, made); });
  if (auto dot = dyn_cast<DotGeneralOp>(term))
    return DotGeneralOp::create(builder, dot.getLoc(), dot.getType(), all[0], all[1],
                                ArrayRef<int64_t>(), ArrayRef<int64_t>(),
                                shifted(dot.getLhsContract()), shifted(dot.getRhsContract()));
  auto reduce = cast<ReduceOp>(term);
  return ReduceOp::create(builder, reduce.getLoc(), reduce.getType(), reduce.getKind(), all[0],
                          shifted(reduce.getDims()));
}

namespace {

struct SinkSums : weft::impl::SinkSumsBase<SinkSums> {
  void runOnOperation() override {
    SmallVector<ScanOp> scans;
    getOperation().walk([&](ScanOp scan) { scans.push_back(scan); });
    for (ScanOp scan : scans)
      numSunk += SumSinker(scan).run();
  }
};

} // namespace
