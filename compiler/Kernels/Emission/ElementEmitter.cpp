// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Demand-driven emission: producers, bodies of generics, guards. Memory accesses are in
// ElementMemory.cpp.
#include "compiler/Kernels/Emission/ElementEmitter.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace weft;

//===----------------------------------------------------------------------===//
// Index maps of ops
//===----------------------------------------------------------------------===//

bool weft::isReduction(linalg::GenericOp generic) { return generic.getNumReductionLoops() > 0; }

FailureOr<Index> weft::iterationAt(linalg::GenericOp generic, unsigned result,
                                   ArrayRef<AffineExpr> index, const IndexSpace &space) {
  AffineMap map = generic.getIndexingMapMatchingResult(generic->getResult(result));
  Index iteration(generic.getNumLoops());
  for (auto [expr, at] : llvm::zip_equal(map.getResults(), index)) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      iteration[dim.getPosition()] = at;
    else if (!isa<AffineConstantExpr>(expr))
      return failure();
  }
  for (auto [expr, kind] : llvm::zip_equal(iteration, generic.getIteratorTypesArray()))
    if (!expr && kind == utils::IteratorType::parallel)
      return failure();
  return iteration;
}

Index weft::operandIndex(linalg::GenericOp generic, OpOperand &operand,
                         ArrayRef<AffineExpr> iteration, const IndexSpace &space) {
  Index index;
  for (AffineExpr expr : generic.getMatchingIndexingMap(&operand).getResults())
    index.push_back(space.simplify(expr.replaceDims(iteration)));
  return index;
}

/// A transpose or broadcast.
static bool isCopy(linalg::GenericOp generic) {
  if (isReduction(generic) || generic.getNumDpsInputs() != 1 || generic.getNumResults() != 1)
    return false;
  Block &body = *generic.getBody();
  return llvm::hasSingleElement(body) && body.getTerminator()->getOperand(0) == body.getArgument(0);
}

std::optional<std::pair<Value, Index>> weft::throughView(Value tensor, ArrayRef<AffineExpr> index,
                                                         const IndexSpace &space) {
  Operation *op = tensor.getDefiningOp();
  if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op)) {
    ArrayRef<int64_t> shape = expand.getResultType().getShape();
    Index source;
    for (const auto &group : expand.getReassociationIndices()) {
      AffineExpr position = space.constant(0);
      for (int64_t dim : group)
        if (shape[dim] != 1) // a concat's row would seem to move the one row of its operand
          position = position * shape[dim] + index[dim];
      source.push_back(space.simplify(position));
    }
    return std::make_pair(expand.getSrc(), source);
  }
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op)) {
    ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
    Index source;
    for (auto [expr, group] : llvm::zip_equal(index, collapse.getReassociationIndices()))
      llvm::append_range(source, space.delinearize(expr, shape.slice(group.front(), group.size())));
    // Collapsing to rank 0 leaves no groups: every source dim has size 1.
    source.resize(shape.size(), space.constant(0));
    return std::make_pair(collapse.getSrc(), source);
  }
  if (auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op)) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    Index source;
    unsigned next = 0;
    for (unsigned i = 0; i < dropped.size(); ++i) {
      AffineExpr expr = dropped[i] ? space.constant(0) : index[next++];
      source.push_back(space.simplify(expr * slice.getStaticStride(i) + slice.getStaticOffset(i)));
    }
    return std::make_pair(slice.getSource(), source);
  }
  if (auto cast = dyn_cast_or_null<tensor::CastOp>(op))
    return std::make_pair(cast.getSource(), Index(index));
  if (auto generic = dyn_cast_or_null<linalg::GenericOp>(op); generic && isCopy(generic))
    if (FailureOr<Index> iteration = iterationAt(generic, 0, index, space); succeeded(iteration)) {
      OpOperand &source = *generic.getDpsInputOperand(0);
      return std::make_pair(source.get(), operandIndex(generic, source, *iteration, space));
    }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

void ElementEmitter::setDim(unsigned dim, Value value) {
  if (dimValues.size() <= dim)
    dimValues.resize(dim + 1);
  dimValues[dim] = value;
}

void ElementEmitter::setLanes(Lanes newLanes) {
  lanes = newLanes;
  forget();
}

const Buffer *ElementEmitter::getBuffer(Value tensor) const {
  auto found = buffers.find(tensor);
  return found == buffers.end() ? nullptr : &found->second;
}

bool ElementEmitter::dependsOnLanes(AffineExpr expr) const {
  return !lanes.isScalar() && expr.isFunctionOfDim(lanes.dim);
}

Value ElementEmitter::indexValue(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return arith::ConstantIndexOp::create(builder, loc, constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dimValues[dim.getPosition()];
  SmallVector<Value> operands;
  Index replacements;
  for (unsigned dim = 0; dim < space.size(); ++dim) {
    if (!expr.isFunctionOfDim(dim)) {
      replacements.push_back(space.constant(0));
      continue;
    }
    replacements.push_back(getAffineDimExpr(operands.size(), builder.getContext()));
    operands.push_back(dimValues[dim]);
  }
  AffineMap map = AffineMap::get(operands.size(), 0, expr.replaceDims(replacements));
  return affine::AffineApplyOp::create(builder, loc, map, operands);
}

SmallVector<Value, 4> ElementEmitter::asVectors(const Emitted &value) {
  if (!value.uniform)
    return value.parts;
  Value scalar = value.parts.front();
  auto type = VectorType::get({lanes.width}, scalar.getType());
  Value broadcast = vector::BroadcastOp::create(builder, loc, type, scalar);
  return SmallVector<Value, 4>(lanes.groups, broadcast);
}

//===----------------------------------------------------------------------===//
// Producers
//===----------------------------------------------------------------------===//

Emitted ElementEmitter::emitAt(Value tensor, ArrayRef<AffineExpr> index) {
  MemoKey key{tensor.getAsOpaquePointer(), {}};
  for (AffineExpr expr : index)
    key.second.push_back(const_cast<void *>(expr.getAsOpaquePointer()));
  if (auto found = memo.find(key); found != memo.end())
    return found->second;
  Emitted value = emitProducer(tensor, index);
  memo[key] = value;
  return value;
}

Emitted ElementEmitter::emitProducer(Value tensor, ArrayRef<AffineExpr> index) {
  if (overrideHook)
    if (std::optional<Emitted> value = overrideHook(*this, tensor, index))
      return *value;
  if (const Buffer *buffer = getBuffer(tensor))
    return load(*buffer, index);
  if (auto view = throughView(tensor, index, space))
    return emitAt(view->first, view->second);

  Operation *op = tensor.getDefiningOp();
  assert(op && "every argument of a kernel has a buffer");
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return emitGeneric(generic, cast<OpResult>(tensor), index);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return emitPad(pad, index);
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return emitInsertSlice(insert, index);
  if (auto fill = dyn_cast<linalg::FillOp>(op)) {
    Value scalar = fill.getInputs().front();
    Operation *definition = scalar.getDefiningOp();
    return {{builder.clone(*definition)->getResult(0)}, true};
  }
  if (isa<arith::ConstantOp>(op))
    return emitConstant(op, index);
  // Uninitialised elements may have any value.
  if (isa<tensor::EmptyOp>(op))
    return zeroOf(tensor);
  return fail(tensor);
}

Emitted ElementEmitter::zeroOf(Value tensor) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  return {{arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element))}, true};
}

Emitted ElementEmitter::fail(Value tensor) {
  *failed = true;
  return zeroOf(tensor);
}

Emitted ElementEmitter::emitGeneric(linalg::GenericOp generic, OpResult result,
                                    ArrayRef<AffineExpr> index) {
  // Reductions are computed before their uses and supplied by the override.
  FailureOr<Index> found = iterationAt(generic, result.getResultNumber(), index, space);
  if (isReduction(generic) || mlir::failed(found))
    return fail(result);
  const Index &iteration = *found;
  Block &body = *generic.getBody();
  SmallVector<Emitted> arguments(body.getNumArguments());
  for (OpOperand *operand : generic.getDpsInputOperands())
    if (!body.getArgument(operand->getOperandNumber()).use_empty())
      arguments[operand->getOperandNumber()] =
          emitAt(operand->get(), operandIndex(generic, *operand, iteration, space));
  for (OpOperand &operand : generic.getDpsInitsMutable())
    if (!body.getArgument(operand.getOperandNumber()).use_empty())
      arguments[operand.getOperandNumber()] =
          emitAt(operand.get(), operandIndex(generic, operand, iteration, space));
  return emitBody(generic, iteration, arguments)[result.getResultNumber()];
}

Emitted ElementEmitter::emitIndex(AffineExpr expr) {
  if (!dependsOnLanes(expr))
    return {{indexValue(expr)}, true};
  std::optional<int64_t> step = space.coefficientOf(expr, lanes.dim);
  if (!step)
    return emitPerLane([&] { return indexValue(expr); });
  auto type = VectorType::get({lanes.width}, builder.getIndexType());
  Value first = vector::BroadcastOp::create(builder, loc, type, indexValue(expr));
  Emitted value{{}, false};
  for (int64_t group = 0; group < lanes.groups; ++group) {
    SmallVector<int64_t> offsets;
    for (int64_t lane = 0; lane < lanes.width; ++lane)
      offsets.push_back((group * lanes.width + lane) * *step);
    Value offset = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, [&] {
                                               SmallVector<APInt> values;
                                               for (int64_t v : offsets)
                                                 values.push_back(APInt(64, v, /*isSigned=*/true));
                                               return values;
                                             }()));
    value.parts.push_back(arith::AddIOp::create(builder, loc, first, offset));
  }
  return value;
}

Emitted ElementEmitter::emitScalarOp(Operation &op, ArrayRef<Emitted> operands) {
  // An override may supply an unrounded value, wider than its tensor's elements.
  if (isa<arith::ExtFOp>(op) &&
      getElementTypeOrSelf(operands.front().parts.front().getType()) == op.getResult(0).getType())
    return operands.front();
  bool uniform = llvm::all_of(operands, [](const Emitted &value) { return value.uniform; });
  Emitted result{{}, uniform};
  SmallVector<SmallVector<Value, 4>> vectors;
  if (!uniform)
    for (const Emitted &operand : operands)
      vectors.push_back(asVectors(operand));
  for (int64_t group = 0; group < (uniform ? 1 : lanes.groups); ++group) {
    IRMapping mapping;
    for (auto [i, operand] : llvm::enumerate(op.getOperands()))
      mapping.map(operand, uniform ? operands[i].parts.front() : vectors[i][group]);
    Operation *clone = builder.clone(op, mapping);
    if (!uniform)
      clone->getResult(0).setType(VectorType::get({lanes.width}, op.getResult(0).getType()));
    // Allow contraction to FMA, which rounds once. Not for subtraction: a*b - a*b has to be zero,
    // as for the largest scaled score of a softmax minus the maximum.
    if (auto fast = dyn_cast<arith::ArithFastMathInterface>(clone))
      if (isa<arith::AddFOp, arith::MulFOp>(clone))
        clone->setAttr(
            fast.getFastMathAttrName(),
            arith::FastMathFlagsAttr::get(builder.getContext(), arith::FastMathFlags::contract));
    result.parts.push_back(clone->getResult(0));
  }
  return result;
}

SmallVector<Emitted> ElementEmitter::emitBody(linalg::GenericOp generic,
                                              ArrayRef<AffineExpr> iteration,
                                              ArrayRef<Emitted> arguments) {
  Location outer = loc;
  Block &body = *generic.getBody();
  llvm::DenseMap<Value, Emitted> values;
  llvm::DenseMap<Value, AffineExpr> exprs;
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), arguments))
    values[argument] = value;
  auto valueOf = [&](Value value) -> Emitted {
    if (auto found = values.find(value); found != values.end())
      return found->second;
    // A scalar constant defined outside the body.
    Emitted constant{{builder.clone(*value.getDefiningOp())->getResult(0)}, true};
    values[value] = constant;
    return constant;
  };
  for (Operation &op : body.without_terminator()) {
    loc = op.getLoc();
    Value result = op.getResult(0);
    if (auto index = dyn_cast<linalg::IndexOp>(op)) {
      exprs[result] = iteration[index.getDim()];
      values[result] = emitIndex(iteration[index.getDim()]);
      continue;
    }
    SmallVector<Emitted> operands;
    SmallVector<std::optional<AffineExpr>> operandExprs;
    auto extract = dyn_cast<tensor::ExtractOp>(op);
    for (Value operand : op.getOperands()) {
      if (extract && operand == extract.getTensor()) {
        operands.emplace_back();
        operandExprs.push_back(std::nullopt);
        continue;
      }
      operands.push_back(valueOf(operand));
      auto found = exprs.find(operand);
      operandExprs.push_back(found == exprs.end() ? std::nullopt
                                                  : std::optional<AffineExpr>(found->second));
    }
    values[result] =
        extract ? emitExtract(extract, operands, operandExprs) : emitScalarOp(op, operands);
  }
  loc = outer;
  SmallVector<Emitted> yielded;
  for (Value value : body.getTerminator()->getOperands())
    yielded.push_back(valueOf(value));
  return yielded;
}

//===----------------------------------------------------------------------===//
// Producers with several regions
//===----------------------------------------------------------------------===//

void ElementEmitter::underGuards(ArrayRef<Guard> conditions, llvm::function_ref<void()> emit) {
  // Memoized values were emitted under fewer guards: keep them from being used as guarded ones.
  std::map<MemoKey, Emitted> before;
  std::swap(before, memo);
  guards.append(conditions.begin(), conditions.end());
  emit();
  guards.truncate(guards.size() - conditions.size());
  std::swap(before, memo);
}

static Emitted select(ElementEmitter &emitter, const Emitted &condition, const Emitted &yes,
                      const Emitted &no) {
  bool uniform = condition.uniform && yes.uniform && no.uniform;
  SmallVector<Value, 4> taken = uniform ? yes.parts : emitter.asVectors(yes);
  SmallVector<Value, 4> others = uniform ? no.parts : emitter.asVectors(no);
  Emitted chosen{{}, uniform};
  for (auto [group, one, other] : llvm::enumerate(taken, others))
    chosen.parts.push_back(arith::SelectOp::create(
        emitter.builder, emitter.loc, condition.parts[condition.uniform ? 0 : group], one, other));
  return chosen;
}

Emitted ElementEmitter::guarded(ArrayRef<Guard> conditions, llvm::function_ref<Emitted()> inside,
                                llvm::function_ref<Emitted()> outside) {
  if (conditions.empty())
    return inside();
  Emitted in;
  underGuards(conditions, [&] { in = inside(); });
  Emitted out = outside();
  for (const Guard &guard : conditions)
    in = select(*this, conditionOf(guard), in, out);
  return in;
}

bool ElementEmitter::addGuard(AffineExpr expr, int64_t size, SmallVectorImpl<Guard> &conditions) {
  auto [low, high] = space.rangeOf(expr);
  if (low < 0 || high >= size)
    conditions.push_back({expr, 0, size});
  return high >= 0 && low < size;
}

Emitted ElementEmitter::emitPad(tensor::PadOp pad, ArrayRef<AffineExpr> index) {
  ArrayRef<int64_t> shape = pad.getSourceType().getShape();
  Index source;
  SmallVector<Guard> conditions;
  bool isInside = true;
  for (auto [i, expr] : llvm::enumerate(index)) {
    AffineExpr shifted = space.simplify(expr - pad.getStaticLow()[i]);
    source.push_back(shifted);
    isInside &= addGuard(shifted, shape[i], conditions);
  }
  auto padding = [&] {
    Operation *value = pad.getConstantPaddingValue().getDefiningOp();
    return Emitted{{builder.clone(*value)->getResult(0)}, true};
  };
  if (!isInside)
    return padding();
  return guarded(conditions, [&] { return emitAt(pad.getSource(), source); }, padding);
}

Emitted ElementEmitter::emitInsertSlice(tensor::InsertSliceOp insert, ArrayRef<AffineExpr> index) {
  llvm::SmallBitVector dropped = insert.getDroppedDims();
  ArrayRef<int64_t> shape = insert.getSourceType().getShape();
  Index source;
  SmallVector<Guard> conditions;
  bool isInside = true;
  for (auto [i, expr] : llvm::enumerate(index)) {
    AffineExpr shifted = space.simplify(expr - insert.getStaticOffset(i));
    int64_t size = dropped[i] ? 1 : shape[source.size()];
    if (!dropped[i])
      source.push_back(shifted);
    isInside &= addGuard(shifted, size, conditions);
  }
  auto behind = [&] { return emitAt(insert.getDest(), index); };
  if (!isInside)
    return behind();
  return guarded(conditions, [&] { return emitAt(insert.getSource(), source); }, behind);
}

Emitted ElementEmitter::emitConstant(Operation *constant, ArrayRef<AffineExpr> index) {
  auto elements = cast<DenseElementsAttr>(cast<arith::ConstantOp>(constant).getValue());
  auto scalar = [&](Attribute value) {
    return Emitted{{arith::ConstantOp::create(builder, loc, cast<TypedAttr>(value))}, true};
  };
  if (elements.isSplat())
    return scalar(elements.getSplatValue<Attribute>());
  AffineExpr position = space.linearize(index, elements.getType().getShape());
  if (auto known = dyn_cast<AffineConstantExpr>(position))
    return scalar(elements.getValues<Attribute>()[known.getValue()]);
  // A small constant becomes a chain of selects over the position, a larger one a table in memory.
  constexpr int64_t longestChain = 4;
  if (elements.getNumElements() > longestChain)
    return load(tabulate(elements), index);
  Emitted chosen = scalar(elements.getValues<Attribute>()[0]);
  for (int64_t i = 1; i < elements.getNumElements(); ++i) {
    Emitted here = conditionOf({position, i, i + 1});
    chosen = select(*this, here, scalar(elements.getValues<Attribute>()[i]), chosen);
  }
  return chosen;
}

Emitted ElementEmitter::emitExtract(tensor::ExtractOp extract, ArrayRef<Emitted> operands,
                                    ArrayRef<std::optional<AffineExpr>> exprs) {
  ArrayRef<int64_t> shape = extract.getTensor().getType().getShape();
  // A computed index becomes a loop variable of its own.
  auto indexWith = [&](llvm::function_ref<Value(const Emitted &)> scalarOf) {
    Index index;
    for (auto [i, size] : llvm::enumerate(shape)) {
      if (exprs[i + 1]) {
        index.push_back(*exprs[i + 1]);
        continue;
      }
      AffineExpr dim = space.addDim(size);
      setDim(cast<AffineDimExpr>(dim).getPosition(), scalarOf(operands[i + 1]));
      index.push_back(dim);
    }
    return index;
  };
  bool uniform = true;
  for (auto [operand, expr] : llvm::zip_equal(operands.drop_front(), exprs.drop_front()))
    uniform &= expr.has_value() || operand.uniform;
  if (uniform)
    return emitAt(extract.getTensor(),
                  indexWith([](const Emitted &value) { return value.parts.front(); }));
  Lanes spread = lanes;
  int64_t next = 0;
  return emitPerLane([&] {
    int64_t lane = next++;
    Index index = indexWith([&](const Emitted &value) -> Value {
      if (value.uniform)
        return value.parts.front();
      return vector::ExtractOp::create(builder, loc, value.parts[lane / spread.width],
                                       lane % spread.width);
    });
    return emitAt(extract.getTensor(), index).parts.front();
  });
}

Emitted ElementEmitter::emitPerLane(llvm::function_ref<Value()> each) {
  Lanes spread = lanes;
  Value first = dimValues[spread.dim];
  lanes = Lanes();
  Emitted result{{}, false};
  Value padding;
  for (int64_t group = 0; group < spread.groups; ++group) {
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < spread.width; ++lane) {
      int64_t offset = group * spread.width + lane;
      if (offset >= spread.valid) {
        elements.push_back(padding);
        continue;
      }
      std::map<MemoKey, Emitted> shared;
      std::swap(shared, memo);
      Value step = arith::ConstantIndexOp::create(builder, loc, offset);
      dimValues[spread.dim] = arith::AddIOp::create(builder, loc, first, step);
      elements.push_back(each());
      padding = elements.front();
      std::swap(shared, memo);
    }
    auto type = VectorType::get({spread.width}, elements.front().getType());
    Value vector = vector::BroadcastOp::create(builder, loc, type, elements.front());
    for (int64_t lane = 1; lane < spread.width; ++lane)
      vector = vector::InsertOp::create(builder, loc, elements[lane], vector, lane);
    result.parts.push_back(vector);
    // Lanes past the last valid one repeat lane 0 of the last valid group.
  }
  lanes = spread;
  dimValues[spread.dim] = first;
  return result;
}
