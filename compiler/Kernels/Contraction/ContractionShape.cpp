// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/ContractionShape.h"
#include "compiler/Kernels/Kernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weft;

/// Whether `value` is an operand's element, possibly widened.
static bool isElement(Value value) {
  if (auto widened = value.getDefiningOp<arith::ExtFOp>())
    value = widened.getIn();
  return isa<BlockArgument>(value);
}

/// Whether the body is acc + a * b, in either order, on the two operands.
static bool sumsProducts(linalg::GenericOp generic) {
  if (generic.getNumDpsInputs() != 2 || generic.getNumDpsInits() != 1)
    return false;
  Block &body = *generic.getBody();
  auto add = body.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add)
    return false;
  Value accumulator = body.getArgument(2);
  Value product = add.getLhs() == accumulator ? add.getRhs() : add.getLhs();
  if (add.getLhs() != accumulator && add.getRhs() != accumulator)
    return false;
  auto mul = product.getDefiningOp<arith::MulFOp>();
  return mul && mul->getBlock() == &body && isElement(mul.getLhs()) && isElement(mul.getRhs()) &&
         body.getArgument(0).hasOneUse() && body.getArgument(1).hasOneUse() &&
         accumulator.hasOneUse();
}

/// The kernel argument that `tensor` is a view of, and the position of `index` in it.
static FailureOr<std::pair<Value, AffineExpr>> argumentBehind(Value tensor, Index index,
                                                              const IndexSpace &space) {
  while (true) {
    // Reshapes keep the row-major position, so look through them.
    Value source = tensor;
    while (isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(source.getDefiningOp()))
      source = source.getDefiningOp()->getOperand(0);
    if (!source.getDefiningOp())
      return std::make_pair(
          source, space.linearize(index, cast<RankedTensorType>(tensor.getType()).getShape()));
    auto view = throughView(tensor, index, space);
    if (!view)
      return failure();
    std::tie(tensor, index) = *view;
  }
}

static bool fits(ArrayRef<AffineExpr> positions, unsigned outer, unsigned inner,
                 const IndexSpace &space) {
  return llvm::all_of(positions, [&](AffineExpr position) {
    std::optional<int64_t> a = space.coefficientOf(position, outer);
    std::optional<int64_t> b = space.coefficientOf(position, inner);
    return a && b && *a == *b * space.extent(inner);
  });
}

FailureOr<ContractionShape> ContractionShape::match(linalg::GenericOp generic, IndexSpace &space) {
  if (!sumsProducts(generic))
    return failure();
  Type element = getElementTypeOrSelf(generic.getResultTypes().front());
  if (!element.isF32() && !element.isF64())
    return failure();

  // One dim of the space for each loop with more than one iteration.
  SmallVector<int64_t, 4> ranges = generic.getStaticLoopRanges();
  Index iteration;
  SmallVector<Loop> loops;
  for (auto [range, kind] : llvm::zip_equal(ranges, generic.getIteratorTypesArray())) {
    if (range == 0)
      return failure();
    if (range == 1) {
      iteration.push_back(space.constant(0));
      continue;
    }
    iteration.push_back(space.addDim(range));
    loops.push_back({cast<AffineDimExpr>(iteration.back()).getPosition(),
                     kind == utils::IteratorType::reduction});
  }

  ContractionShape shape;
  shape.generic = generic;
  auto position = [&](OpOperand &operand) {
    return argumentBehind(operand.get(), operandIndex(generic, operand, iteration, space), space);
  };
  auto lhs = position(*generic.getDpsInputOperand(0));
  auto rhs = position(*generic.getDpsInputOperand(1));
  if (failed(lhs) || failed(rhs))
    return failure();
  std::tie(shape.lhs.memory, shape.lhs.position) = *lhs;
  std::tie(shape.rhs.memory, shape.rhs.position) = *rhs;
  shape.resultIndex = operandIndex(generic, *generic.getDpsInitOperand(0), iteration, space);
  auto resultType = cast<RankedTensorType>(generic.getResultTypes().front());
  shape.resultPosition = space.linearize(shape.resultIndex, resultType.getShape());
  if (auto loops = generic->getAttrOfType<DenseI64ArrayAttr>(attr::padded))
    if (auto lane = dyn_cast<AffineDimExpr>(iteration[loops[1]])) {
      int64_t blocks = ranges[loops[0]], lanes = ranges[loops[1]];
      int64_t inLast = loops[2] - (blocks - 1) * lanes;
      shape.padded = {iteration[loops[0]], lane.getPosition(), blocks, inLast};
    }
  shape.split(loops, space);
  shape.merge(loops, space);

  for (auto [dim, reduces] : loops) {
    std::optional<int64_t> inLhs = space.coefficientOf(shape.lhs.position, dim);
    std::optional<int64_t> inRhs = space.coefficientOf(shape.rhs.position, dim);
    if (!inLhs || !inRhs || !space.coefficientOf(shape.resultPosition, dim))
      return failure();
    if (reduces)
      shape.reduced.push_back(dim);
    else if (*inLhs && *inRhs)
      shape.batch.push_back(dim);
    else
      (*inLhs ? shape.lhs : shape.rhs).free.push_back(dim);
  }
  return shape;
}

/// c if a position contains `dim` floordiv c or mod c, and c divides the dim's extent.
static std::optional<int64_t> divisorOf(unsigned dim, ArrayRef<AffineExpr> positions,
                                        const IndexSpace &space) {
  std::optional<int64_t> found;
  auto visit = [&](AffineExpr part) {
    if (part.getKind() != AffineExprKind::FloorDiv && part.getKind() != AffineExprKind::Mod)
      return;
    auto division = cast<AffineBinaryOpExpr>(part);
    auto divisor = dyn_cast<AffineConstantExpr>(division.getRHS());
    if (divisor && division.getLHS() == getAffineDimExpr(dim, part.getContext()) &&
        space.extent(dim) % divisor.getValue() == 0)
      found = divisor.getValue();
  };
  for (AffineExpr position : positions)
    if (!found)
      position.walk(visit);
  return found;
}

void ContractionShape::split(SmallVectorImpl<Loop> &loops, IndexSpace &space) {
  // Visit the parts as well: operands may divide one loop by several sizes.
  for (size_t i = 0; i < loops.size();) {
    auto [dim, reduces] = loops[i];
    std::optional<int64_t> size =
        divisorOf(dim, {lhs.position, rhs.position, resultPosition}, space);
    if (!size) {
      ++i;
      continue;
    }
    AffineExpr outer = space.addDim(space.extent(dim) / *size), inner = space.addDim(*size);
    replace({{dim, outer * *size + inner}}, space);
    if (padded && padded->lane == dim)
      padded.reset();
    loops[i].dim = cast<AffineDimExpr>(outer).getPosition();
    loops.insert(loops.begin() + i + 1, {cast<AffineDimExpr>(inner).getPosition(), reduces});
  }
}

void ContractionShape::merge(SmallVectorImpl<Loop> &loops, IndexSpace &space) {
  auto mergeOne = [&] {
    for (Loop &outer : loops)
      for (Loop &inner : loops) {
        if (outer.dim == inner.dim || outer.reduces != inner.reduces ||
            !fits({lhs.position, rhs.position, resultPosition}, outer.dim, inner.dim, space))
          continue;
        // The merged dim stands where the outer one stood.
        outer.dim = cast<AffineDimExpr>(join(outer.dim, inner.dim, space)).getPosition();
        loops.erase(&inner);
        return true;
      }
    return false;
  };
  while (mergeOne())
    ;
}

void ContractionShape::replace(ArrayRef<std::pair<unsigned, AffineExpr>> to, IndexSpace &space) {
  Index replacement;
  for (unsigned dim = 0; dim < space.size(); ++dim)
    replacement.push_back(getAffineDimExpr(dim, resultPosition.getContext()));
  for (auto [dim, expr] : to)
    replacement[dim] = expr;
  auto inPlace = [&](AffineExpr &expr) { expr = space.simplify(expr.replaceDims(replacement)); };
  inPlace(lhs.position);
  inPlace(rhs.position);
  inPlace(resultPosition);
  llvm::for_each(resultIndex, inPlace);
  if (padded)
    inPlace(padded->block);
}

AffineExpr ContractionShape::join(unsigned outer, unsigned inner, IndexSpace &space) {
  int64_t size = space.extent(inner);
  AffineExpr both = space.addDim(space.extent(outer) * size);
  if (padded && (padded->lane == outer || padded->lane == inner))
    padded.reset();
  replace({{outer, both.floorDiv(size)}, {inner, both % size}}, space);
  return both;
}

std::optional<unsigned> ContractionShape::groupsAround(const Sides &sides,
                                                       const IndexSpace &space) const {
  for (unsigned dim : batch)
    if (fits({sides.inner.position, resultPosition}, dim, sides.innermost, space))
      return dim;
  return std::nullopt;
}

unsigned ContractionShape::joinGroups(unsigned groups, const Sides &sides, IndexSpace &space) {
  AffineExpr both = join(groups, sides.innermost, space);
  unsigned joined = cast<AffineDimExpr>(both).getPosition();
  llvm::erase(batch, groups);
  for (ContractionOperand *operand : {&lhs, &rhs})
    llvm::replace(operand->free, sides.innermost, joined);
  return joined;
}

std::optional<ContractionShape::Sides> ContractionShape::sides(const IndexSpace &space) const {
  for (bool right : {true, false})
    for (unsigned dim : right ? rhs.free : lhs.free)
      if (space.coefficientOf(resultPosition, dim) == 1)
        return Sides{right ? rhs : lhs, right ? lhs : rhs, dim};
  return std::nullopt;
}

int64_t ContractionShape::flops(const IndexSpace &space) const {
  int64_t total =
      2 * space.count(batch) * space.count(lhs.free) * space.count(rhs.free) * space.count(reduced);
  if (!padded)
    return total;
  int64_t lanes = space.extent(padded->lane);
  return total / (padded->blocks * lanes) * ((padded->blocks - 1) * lanes + padded->inLast);
}
