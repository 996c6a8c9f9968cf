// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Nest/Reductions.h"
#include "compiler/Kernels/Emission/BlockedSummation.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

void ReducedValues::add(const ReductionDemand &reduction, ArrayRef<Emitted> values) {
  for (auto [i, value] : llvm::enumerate(values))
    found.push_back({linalg::GenericOp(reduction.generic)->getResult(i), reduction.index, value});
}

std::optional<Emitted> ReducedValues::find(Value tensor, ArrayRef<AffineExpr> index) const {
  for (const Reduced &reduced : found)
    if (reduced.tensor == tensor && ArrayRef(reduced.index) == index)
      return reduced.value;
  return std::nullopt;
}

static bool isMultipleOf(Value number, int64_t unit) {
  APInt constant;
  if (matchPattern(number, m_ConstantInt(&constant)))
    return constant.getSExtValue() % unit == 0;
  auto product = number.getDefiningOp<arith::MulIOp>();
  return product && (isMultipleOf(product.getLhs(), unit) || isMultipleOf(product.getRhs(), unit));
}

SmallVector<Value> weft::emitLaneLoop(ElementEmitter &point, unsigned dim, Value base,
                                      int64_t extent, VectorBlock vectors, ArrayRef<Value> carried,
                                      LoopBody body) {
  OpBuilder &builder = point.builder;
  Location loc = point.loc;
  int64_t width = vectors.width, block = vectors.elements();
  int64_t whole = extent / block * block;
  bool wholeVectors = isMultipleOf(base, width);
  auto at = [&](Value offset, int64_t valid) {
    point.setDim(dim, arith::AddIOp::create(builder, loc, base, offset));
    int64_t groups = llvm::divideCeil(valid, width);
    point.setLanes({static_cast<int64_t>(dim), width, groups, valid, wholeVectors});
  };
  SmallVector<Value> values(carried);
  if (whole > 0)
    values = emitLoop(builder, loc, 0, whole, block, values, [&](Value offset, ValueRange now) {
      at(offset, block);
      return body(offset, now);
    });
  if (int64_t rest = extent - whole) {
    Value offset = arith::ConstantIndexOp::create(builder, loc, whole);
    at(offset, rest);
    values = body(offset, values);
  }
  point.forget();
  return values;
}

/// The kind of a reduction that yields `bits` (i8, 0 or 1), applied to the stored bytes.
static std::optional<vector::CombiningKind> kindOfBits(Value bits, Value accumulator) {
  auto stored = bits.getDefiningOp<arith::ExtUIOp>();
  Operation *combiner = stored ? stored.getIn().getDefiningOp() : nullptr;
  if (!isa_and_present<arith::AndIOp, arith::OrIOp>(combiner))
    return std::nullopt;
  bool combines = llvm::any_of(combiner->getOperands(), [&](Value operand) {
    auto isSet = operand.getDefiningOp<arith::CmpIOp>();
    return isSet && isSet.getPredicate() == arith::CmpIPredicate::ne &&
           isSet.getLhs() == accumulator && matchPattern(isSet.getRhs(), m_Zero());
  });
  if (!combines)
    return std::nullopt;
  return isa<arith::AndIOp>(combiner) ? vector::CombiningKind::AND : vector::CombiningKind::OR;
}

/// The op that combines, if the reduction is a single one.
static std::optional<vector::CombiningKind> combinerOf(linalg::GenericOp generic) {
  if (generic.getNumResults() != 1)
    return std::nullopt;
  Operation *yield = generic.getBody()->getTerminator();
  if (auto kind = kindOfBits(yield->getOperand(0), generic.getRegionOutputArgs().front()))
    return kind;
  SmallVector<Operation *> combiners;
  if (!matchReduction(generic.getRegionOutputArgs(), 0, combiners) || combiners.size() != 1)
    return std::nullopt;
  return linalg::getCombinerOpKind(combiners.front());
}

static TypedAttr identityOf(vector::CombiningKind kind, Type type, Builder &builder) {
  using vector::CombiningKind;
  if (auto floating = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floating.getFloatSemantics();
    switch (kind) {
    case CombiningKind::ADD:
      return builder.getFloatAttr(type, 0.0);
    case CombiningKind::MUL:
      return builder.getFloatAttr(type, 1.0);
    case CombiningKind::MAXIMUMF:
    case CombiningKind::MAXNUMF:
      return builder.getFloatAttr(type, llvm::APFloat::getInf(semantics, /*Negative=*/true));
    case CombiningKind::MINIMUMF:
    case CombiningKind::MINNUMF:
      return builder.getFloatAttr(type, llvm::APFloat::getInf(semantics));
    default:
      return {};
    }
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  switch (kind) {
  case CombiningKind::ADD:
  case CombiningKind::OR:
  case CombiningKind::XOR:
  case CombiningKind::MAXUI:
    return builder.getIntegerAttr(type, 0);
  case CombiningKind::MUL:
    return builder.getIntegerAttr(type, 1);
  case CombiningKind::AND:
  case CombiningKind::MINUI:
    return builder.getIntegerAttr(type, llvm::APInt::getAllOnes(bits));
  case CombiningKind::MAXSI:
    return builder.getIntegerAttr(type, llvm::APInt::getSignedMinValue(bits));
  case CombiningKind::MINSI:
    return builder.getIntegerAttr(type, llvm::APInt::getSignedMaxValue(bits));
  default:
    return {};
  }
}

/// The identity of a reduction whose vectors can run along a reduced dim, or null.
static TypedAttr laneIdentityOf(linalg::GenericOp generic) {
  std::optional<vector::CombiningKind> kind = combinerOf(generic);
  Builder builder(generic.getContext());
  Type element = getElementTypeOrSelf(generic->getResultTypes().front());
  return kind ? identityOf(*kind, element, builder) : TypedAttr();
}

bool weft::canReduceLanes(const ReductionDemand &reduction) {
  return bool(laneIdentityOf(reduction.generic));
}

/// Most additions to one accumulator, so that chains are independent and rounding errors stay
/// small. A contraction, with many sums at once, uses longer chains.
constexpr int64_t longestChainOfReduction = 16;

namespace {
/// The loops of one reduction. Accumulators are a flat list: per result, per lane group.
class ReductionLoops {
public:
  ReductionLoops(ElementEmitter &point, const ReductionDemand &reduction,
                 const ReductionSchedule &schedule, const CachedRow *kept)
      : point(point), reduction(reduction), schedule(schedule), kept(kept),
        generic(reduction.generic), iteration(reduction.iteration),
        kind(combinerOf(reduction.generic)) {}

  SmallVector<Emitted> emit();

private:
  bool isUnrolled() const;
  bool isSum() const;
  Type elementType() const { return getElementTypeOrSelf(generic->getResultTypes().front()); }
  SmallVector<Value> emitSteps(int64_t extent, int64_t block, ArrayRef<Value> accumulators,
                               SumTerms steps);
  SmallVector<Emitted> emitWithCurrentLanes();
  SmallVector<Emitted> emitHorizontally(unsigned dim, TypedAttr identity);
  SmallVector<Value> emitLoops(ArrayRef<unsigned> dims, ArrayRef<Value> accumulators, int64_t steps,
                               llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> innermost);
  /// The accumulators after the reduction step at the point.
  SmallVector<Emitted> step(ArrayRef<Emitted> accumulators);
  SmallVector<Emitted> initialValues();

  ElementEmitter &point;
  const ReductionDemand &reduction;
  const ReductionSchedule &schedule;
  const CachedRow *kept;
  linalg::GenericOp generic;
  Index iteration;                           ///< with constants for dims of unrolled loops
  std::optional<vector::CombiningKind> kind; ///< if the reduction is a single op
};
} // namespace

SmallVector<Emitted> ReductionLoops::initialValues() {
  SmallVector<Emitted> initial;
  for (OpOperand &init : generic.getDpsInitsMutable())
    initial.push_back(
        point.emitAt(init.get(), operandIndex(generic, init, iteration, point.space)));
  return initial;
}

SmallVector<Emitted> ReductionLoops::step(ArrayRef<Emitted> accumulators) {
  SmallVector<Emitted> arguments(generic.getBody()->getNumArguments());
  for (OpOperand *operand : generic.getDpsInputOperands())
    if (generic.payloadUsesValueFromOperand(operand)) {
      Emitted &argument = arguments[operand->getOperandNumber()];
      argument =
          point.emitAt(operand->get(), operandIndex(generic, *operand, iteration, point.space));
      if (kept && kept->isOf(*operand))
        kept->fill(point, argument);
    }
  for (auto [i, accumulator] : llvm::enumerate(accumulators))
    arguments[generic.getNumDpsInputs() + i] = accumulator;
  return point.emitBody(generic, iteration, arguments);
}

/// Applies `steps` to `extent` values of a loop variable; sums of more than `block` are blocked.
SmallVector<Value> ReductionLoops::emitSteps(int64_t extent, int64_t block,
                                             ArrayRef<Value> accumulators, SumTerms steps) {
  if (isSum())
    return emitSumsInBlocks(point.builder, point.loc, extent, block, accumulators, steps);
  Value zero = arith::ConstantIndexOp::create(point.builder, point.loc, 0);
  return steps(zero, extent, accumulators);
}

/// Loops over `dims` around `innermost`, which adds `steps` times to each accumulator.
SmallVector<Value>
ReductionLoops::emitLoops(ArrayRef<unsigned> dims, ArrayRef<Value> accumulators, int64_t steps,
                          llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> innermost) {
  if (dims.empty()) {
    point.forget();
    return innermost(accumulators);
  }
  int64_t extent = point.space.extent(dims.front());
  auto at = [&](Value variable, ArrayRef<Value> now) {
    point.setDim(dims.front(), variable);
    return emitLoops(dims.drop_front(), now, steps, innermost);
  };
  if (!isUnrolled()) {
    int64_t inner = point.space.count(dims.drop_front()) * steps;
    return emitSteps(extent, std::max<int64_t>(1, longestChainOfReduction / inner), accumulators,
                     [&](Value base, int64_t count, ArrayRef<Value> sums) {
                       return emitLoop(point.builder, point.loc, 0, count, 1, sums,
                                       [&](Value offset, ValueRange now) {
                                         Value variable = arith::AddIOp::create(
                                             point.builder, point.loc, base, offset);
                                         return at(variable, SmallVector<Value>(now));
                                       });
                     });
  }
  // Unroll: with a constant index, padding and concatenation operands are known statically.
  Index all = iteration;
  SmallVector<Value> now(accumulators);
  AffineExpr variable = getAffineDimExpr(dims.front(), point.builder.getContext());
  for (int64_t i = 0; i < extent; ++i) {
    AffineExpr number = getAffineConstantExpr(i, point.builder.getContext());
    iteration = llvm::map_to_vector(all, [&](AffineExpr index) {
      return point.space.simplify(index.replace(variable, number));
    });
    now = at(arith::ConstantIndexOp::create(point.builder, point.loc, i), now);
  }
  iteration = all;
  return now;
}

bool ReductionLoops::isUnrolled() const {
  return point.space.count(reduction.reducedDims) <= schedule.unroll;
}

/// Split a flat accumulator list into one Emitted per result.
static SmallVector<Emitted> unflatten(ArrayRef<Value> flat, unsigned results, bool uniform) {
  SmallVector<Emitted> values;
  unsigned groups = flat.size() / results;
  for (unsigned i = 0; i < results; ++i) {
    ArrayRef<Value> parts = flat.slice(i * groups, groups);
    values.push_back({SmallVector<Value, 4>(parts), uniform});
  }
  return values;
}

SmallVector<Emitted> ReductionLoops::emitWithCurrentLanes() {
  bool scalar = point.getLanes().isScalar();
  unsigned results = generic.getNumResults();
  auto flatten = [&](ArrayRef<Emitted> values) {
    SmallVector<Value> flat;
    for (const Emitted &value : values)
      llvm::append_range(flat, scalar ? value.parts : point.asVectors(value));
    return flat;
  };
  SmallVector<Value> initial = flatten(initialValues());
  SmallVector<Value> reduced =
      emitLoops(reduction.reducedDims, initial, /*steps=*/1, [&](ArrayRef<Value> accumulators) {
        return flatten(step(unflatten(accumulators, results, scalar)));
      });
  point.forget();
  return unflatten(reduced, results, scalar);
}

bool ReductionLoops::isSum() const {
  return isa<FloatType>(elementType()) && kind == vector::CombiningKind::ADD;
}

SmallVector<Emitted> ReductionLoops::emitHorizontally(unsigned dim, TypedAttr identity) {
  OpBuilder &builder = point.builder;
  Location loc = point.loc;
  Emitted initial = initialValues().front();

  int64_t extent = point.space.extent(dim), width = schedule.vectors.width;
  int64_t groups = std::min<int64_t>(schedule.vectors.groups, llvm::divideCeil(extent, width));
  auto type = VectorType::get({width}, elementType());
  Value neutral =
      arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, Attribute(identity)));
  SmallVector<Value> accumulators(groups, neutral);

  SmallVector<unsigned> outer;
  for (unsigned other : reduction.reducedDims)
    if (other != dim)
      outer.push_back(other);
  int64_t elements = groups * width; // elements reduced in a step
  auto emitLanes = [&](Value base, int64_t count, ArrayRef<Value> now) {
    auto body = [&](Value, ValueRange carried) {
      SmallVector<Value> all(carried);
      int64_t active = point.getLanes().groups;
      Emitted accumulator{SmallVector<Value, 4>(ArrayRef(all).take_front(active)), false};
      Emitted next = step(accumulator).front();
      for (int64_t group = 0; group < active; ++group) {
        Value value = next.parts[group];
        if (Value mask = point.validMask(group))
          value = arith::SelectOp::create(builder, loc, mask, value, all[group]);
        all[group] = value;
      }
      return all;
    };
    return emitLaneLoop(point, dim, base, count, schedule.vectors, now, body);
  };
  int64_t steps = llvm::divideCeil(extent, elements);
  accumulators = emitLoops(outer, accumulators, steps, [&](ArrayRef<Value> now) {
    return emitSteps(extent, longestChainOfReduction * elements, now, emitLanes);
  });
  point.setLanes(Lanes());

  // A tree over the groups, then over the lanes: the order depends on the shape alone.
  while (accumulators.size() > 1) {
    SmallVector<Value> halved;
    for (size_t i = 0; i + 1 < accumulators.size(); i += 2)
      halved.push_back(
          vector::makeArithReduction(builder, loc, *kind, accumulators[i], accumulators[i + 1]));
    if (accumulators.size() % 2)
      halved.push_back(accumulators.back());
    accumulators = std::move(halved);
  }
  Value reduced = vector::ReductionOp::create(builder, loc, *kind, accumulators.front(),
                                              arith::FastMathFlags::reassoc);
  Value result = vector::makeArithReduction(builder, loc, *kind, initial.parts.front(), reduced);
  return {Emitted{{result}, true}};
}

SmallVector<Emitted> ReductionLoops::emit() {
  if (schedule.lanes < 0 || !point.getLanes().isScalar())
    return emitWithCurrentLanes();
  return emitHorizontally(reduction.reducedDims[schedule.lanes], laneIdentityOf(generic));
}

SmallVector<Emitted> weft::emitReduction(ElementEmitter &point, const ReductionDemand &reduction,
                                         const ReductionSchedule &schedule, const CachedRow *kept) {
  return ReductionLoops(point, reduction, schedule, kept).emit();
}
