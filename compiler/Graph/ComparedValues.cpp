// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Graph/ComparedValues.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Graph.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;

namespace {

/// How elements are reached: at the same index, as a part of a whole, in another order, or as those
/// chosen of several.
enum Path : unsigned { InPlace = 1, Part = 2, Turned = 4, Chosen = 8 };

class ComparedValues {
public:
  ComparedValues(Block &block, Again again) : block(block), again(again) {}

  llvm::DenseSet<Operation *> run();

private:
  /// Ops whose elements a value consists of, each with the bits of the paths to it.
  using Sources = llvm::MapVector<Operation *, unsigned>;

  void classify(Operation &op);
  bool roundsAlike(Operation &op) const;
  Sources sourcesOf(Value value) const;
  void compare(Value lhs, Value rhs);
  void compareDifferences(Value value);
  void compareLeaving();
  void addKept();

  Block &block;
  Again again;
  llvm::DenseSet<Value> alike;    ///< the same bits wherever they are computed
  llvm::DenseSet<Value> products; ///< that a sum may contract, or moves of such
  llvm::DenseSet<Operation *> compared;
};

} // namespace

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

/// How the elements of `op` are elements of its float operands, or nothing.
static std::optional<Path> pathThrough(Operation *op) {
  auto chooses = [](ReduceKind kind) {
    bool isExtremum = kind == ReduceKind::max || kind == ReduceKind::min;
    return isExtremum ? std::optional(Chosen) : std::nullopt;
  };
  return llvm::TypeSwitch<Operation *, std::optional<Path>>(op)
      .Case<ReduceOp, ReduceWindowOp, CumulativeOp>(
          [&](auto reduction) { return chooses(reduction.getKind()); })
      .Case<GatherOp, SortOp>([](Operation *) { return Chosen; })
      .Case<BroadcastInDimOp, SliceOp, AdvanceOp, PadOp, ConcatOp>([](Operation *) { return Part; })
      .Case<TransposeOp, ReverseOp>([](Operation *) { return Turned; })
      .Case([](RelayoutOp relayout) {
        return isTiled(layoutOf(relayout.getOperand().getType())) ||
                       isTiled(layoutOf(relayout.getType()))
                   ? InPlace
                   : Turned;
      })
      .Case<ReshapeOp, SelectOp, MaxOp, MinOp, NegOp, AbsOp, CopySignOp, ConvertOp, CeilOp, FloorOp,
            RoundEvenOp, TruncOp>([](Operation *) { return InPlace; })
      .Default(std::nullopt);
}

/// What does not round, or rounds once and is never part of another op's rounding, has one value.
bool ComparedValues::roundsAlike(Operation &op) const {
  if (isa<DotGeneralOp, MultiDotOp, ConvOp, AttentionOp>(op))
    return again == Again::Loops;
  if (!isMemoryEffectFree(&op))
    return true;
  if (!llvm::all_of(op.getOperands(), [&](Value operand) { return alike.contains(operand); }))
    return false;
  if (pathThrough(&op) || llvm::none_of(op.getResults(), isFloat))
    return true;
  if (isa<AddOp>(op))
    return llvm::none_of(op.getOperands(),
                         [&](Value operand) { return products.contains(operand); });
  return isa<ConstantOp, IotaOp, SubOp, MulOp, DivOp, SqrtOp, FmaOp>(op);
}

void ComparedValues::classify(Operation &op) {
  if (isa<MulOp>(op) || (pathThrough(&op) && llvm::any_of(op.getOperands(), [&](Value operand) {
                           return products.contains(operand);
                         })))
    products.insert(op.result_begin(), op.result_end());
  if (roundsAlike(op))
    alike.insert(op.result_begin(), op.result_end());
}

ComparedValues::Sources ComparedValues::sourcesOf(Value value) const {
  Sources sources;
  llvm::SmallSetVector<std::pair<Value, unsigned>, 8> pending;
  pending.insert({value, InPlace});
  for (size_t i = 0; i < pending.size(); ++i) {
    auto [now, path] = pending[i];
    Operation *op = now.getDefiningOp();
    if (!op || alike.contains(now) || !isFloat(now))
      continue;
    std::optional<Path> through = pathThrough(op);
    if (!through) {
      sources[op] |= path;
      continue;
    }
    for (Value operand : op->getOperands())
      pending.insert({operand, std::max<unsigned>(path, *through)});
  }
  return sources;
}

void ComparedValues::compare(Value lhs, Value rhs) {
  Sources right = sourcesOf(rhs);
  for (auto [source, path] : sourcesOf(lhs))
    if (auto found = right.find(source); found != right.end() && (path | found->second) > InPlace)
      compared.insert(source);
}

/// x - max(x) compared with a number.
void ComparedValues::compareDifferences(Value value) {
  for (auto [source, path] : sourcesOf(value))
    if (auto difference = dyn_cast<SubOp>(source))
      compare(difference.getLhs(), difference.getRhs());
}

/// Parts are of no account, as those of an output that a derivative reads.
void ComparedValues::compareLeaving() {
  llvm::SmallSetVector<Value, 8> leaving;
  for (Operation &op : block)
    if (op.hasTrait<OpTrait::IsTerminator>() || !isMemoryEffectFree(&op))
      leaving.insert(op.operand_begin(), op.operand_end());
  llvm::DenseMap<Operation *, std::pair<unsigned, unsigned>> reached; // times, paths
  for (Value value : leaving)
    for (auto [source, path] : sourcesOf(value)) {
      auto &[times, paths] = reached[source];
      paths |= path;
      if (++times > 1 && paths >= Turned)
        compared.insert(source);
    }
}

void ComparedValues::addKept() {
  for (Operation &op : block)
    if (staysInPlace(&op) && pathThrough(&op) && llvm::any_of(op.getOperands(), [&](Value operand) {
          return compared.contains(operand.getDefiningOp());
        }))
      compared.insert(&op);
}

llvm::DenseSet<Operation *> ComparedValues::run() {
  alike.insert(block.args_begin(), block.args_end());
  for (Operation &op : block)
    classify(op);
  for (auto comparison : block.getOps<CmpOp>()) {
    compare(comparison.getLhs(), comparison.getRhs());
    for (Value side : {comparison.getLhs(), comparison.getRhs()})
      compareDifferences(side);
  }
  for (auto sign : block.getOps<SignOp>())
    compareDifferences(sign.getOperand());
  if (again == Again::Loops)
    compareLeaving();
  addKept();
  return std::move(compared);
}

bool weft::staysInPlace(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() || isa<ReshapeOp>(op);
}

llvm::DenseSet<Operation *> weft::comparedValues(Block &block, Again again) {
  return ComparedValues(block, again).run();
}
