// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-bound-kernels: expects outlined kernels; tells those that compute padding how many
// rows count, so that they leave the others out.
//
// A program for a range of sizes is one for the largest (`weft.bounds` on the argument that holds
// the sizes; three numbers for each after the largest say which symbol of the arguments it is a
// quotient of, floor((symbol + add) / divisor), -1 for none); along the dims that `weft.bounded`
// names its arguments are padded. Padding follows from padding alone along exact loops. What a
// choice by the sizes gives counts everywhere: that is how the graph hides padding.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Graph/IterationStructure.h"
#include "compiler/Graph/OpStructure.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/IR/Builders.h"

namespace weft {
#define GEN_PASS_DEF_BOUNDKERNELS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

constexpr int64_t none = -1;

/// What is known of a tensor. Symbols are numbers of sizes, one per dim.
struct Padding {
  SmallVector<int64_t> surplus; ///< dims whose padding nobody reads
  SmallVector<int64_t> origin;  ///< dims that have padding, whether it is read or not
  bool fromSizes = false;       ///< an integer or truth that depends on the sizes

  static Padding of(int64_t rank) {
    return {SmallVector<int64_t>(rank, none), SmallVector<int64_t>(rank, none)};
  }
};

/// A size as floor((size of `symbol` + add) / divisor), a function of one of the arguments' sizes.
struct Quotient {
  int64_t symbol = none, add = 0, divisor = 1;
  bool operator==(const Quotient &) const = default;

  /// The quotient of this one.
  Quotient then(int64_t more, int64_t by) const {
    return {symbol, add + more * divisor, divisor * by};
  }
};

/// Rows that are padding: of a dim whose size is a symbol, or a multiple of it, by its place in
/// memory.
struct Rows {
  int64_t symbol = none, place = none, times = 1;
  bool operator==(const Rows &) const = default;
};

struct BoundKernels : weft::impl::BoundKernelsBase<BoundKernels> {
  void runOnOperation() override;
};

class EntryBounds {
public:
  EntryBounds(func::FuncOp entry, const SymbolTable &symbols) : entry(entry), symbols(symbols) {}

  /// Whether the entry's sizes are symbols; what its kernels are to know, by kernel.
  bool run();

  /// What is hidden behind the keys that an attention reads, block by block, is not computed.
  void boundHiddenKeys();

  /// Adds the sizes to the operands of `kernel` and of its calls.
  int64_t apply();

private:
  void readArguments();
  bool isCalledElsewhere(func::FuncOp kernel) const;
  void visit(Operation &op, llvm::DenseMap<Value, Padding> &known);
  void visitWindows(Operation &op, llvm::DenseMap<Value, Padding> &known);
  int64_t symbolFor(Quotient quotient);
  DenseI64ArrayAttr visitKernel(func::CallOp call, func::FuncOp kernel);
  DenseI64ArrayAttr boundOf(func::FuncOp kernel, llvm::DenseMap<Value, Padding> &known);
  DenseI64ArrayAttr attributeOf(Rows rows, bool whole);
  Rows rowsOf(Value value, ArrayRef<int64_t> dims) const;
  Rows keysOf(Value value) const;
  func::FuncOp calleeOf(Operation *op) const;

  func::FuncOp entry;
  const SymbolTable &symbols;
  Value sizes;
  /// The largest value of each symbol that the sizes hold, then of those that windows derive.
  SmallVector<int64_t> largest;
  SmallVector<Quotient> quotients; ///< if any symbol is one
  int64_t symbolCount = 0;         ///< of those that the sizes hold
  llvm::DenseMap<Value, Padding> values;
  /// Null where calls differ.
  llvm::MapVector<func::FuncOp, DenseI64ArrayAttr> bounds;
};

} // namespace

static int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

static Padding &paddingOf(Value value, llvm::DenseMap<Value, Padding> &known) {
  auto [found, isNew] = known.try_emplace(value);
  if (isNew)
    found->second = Padding::of(rankOf(value));
  return found->second;
}

/// The dim of that place in memory, counted from the outermost.
static int64_t dimAt(RankedTensorType type, int64_t place) {
  LayoutAttr layout = layoutOf(type);
  return layout ? layout.getOrder()[place] : place;
}

bool EntryBounds::run() {
  readArguments();
  if (!sizes)
    return false;
  for (Operation &op : entry.front().without_terminator()) {
    func::FuncOp callee = calleeOf(&op);
    if (!callee)
      continue; // nothing is known of its results
    DenseI64ArrayAttr bound = visitKernel(cast<func::CallOp>(op), callee);
    if (isCalledElsewhere(callee))
      bound = {};
    auto [place, isNew] = bounds.insert({callee, bound});
    if (!isNew && place->second != bound)
      place->second = {};
  }
  boundHiddenKeys();
  return true;
}

/// The kernel that is called; null for what is no call of a kernel.
func::FuncOp EntryBounds::calleeOf(Operation *op) const {
  auto call = dyn_cast<func::CallOp>(op);
  auto callee = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
  return callee && callee->hasAttr(attr::kernel) && !callee.isExternal() ? callee : func::FuncOp();
}

/// Whether more calls `kernel` than the entry does in its own body: others, as steps of a loop and
/// what prepares weights, have no sizes to give it.
bool EntryBounds::isCalledElsewhere(func::FuncOp kernel) const {
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(kernel, entry->getParentOfType<ModuleOp>());
  return !uses || llvm::any_of(*uses, [&](const SymbolTable::SymbolUse &use) {
    return use.getUser()->getParentOp() != entry;
  });
}

/// The keys of `value`, if nothing but attentions reads them, as keys or values, in the blocks that
/// they have in memory and no further than to the last block with one that counts.
Rows EntryBounds::keysOf(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  LayoutAttr layout = layoutOf(type);
  int64_t dim = type.getRank() - 2;
  if (!layout || !layout.hasTile() || layout.getTileDim() != dim)
    return {};
  Rows keys{none, llvm::find(layout.getOrder(), dim) - layout.getOrder().begin()};
  for (OpOperand &use : value.getUses()) {
    func::FuncOp user = calleeOf(use.getOwner());
    DenseI64ArrayAttr bound = user ? bounds.lookup(user) : DenseI64ArrayAttr();
    auto attentions =
        user ? llvm::to_vector(user.getOps<AttentionOp>()) : SmallVector<AttentionOp>();
    if (!bound || attentions.size() != 1 || bound[2] == none)
      return {};
    AttentionOp op = attentions.front();
    Value argument = user.getArgument(use.getOperandNumber());
    bool isKeyOrValue =
        argument.hasOneUse() && (argument == op.getKey() || argument == op.getValue());
    LayoutAttr ofKeys = layoutOf(cast<RankedTensorType>(op.getKey().getType()));
    bool sameBlocks = ofKeys && ofKeys.hasTile() && ofKeys.getTileDim() == layout.getTileDim() &&
                      ofKeys.getTileSize() == layout.getTileSize();
    if (!isKeyOrValue || !sameBlocks || (keys.symbol != none && keys.symbol != bound[2]) ||
        type.getDimSize(dim) != largest[bound[2]])
      return {};
    keys.symbol = bound[2];
  }
  return keys;
}

void EntryBounds::boundHiddenKeys() {
  llvm::MapVector<func::FuncOp, Rows> found;
  for (auto call : entry.getOps<func::CallOp>()) {
    func::FuncOp callee = calleeOf(call);
    if (!callee || bounds.lookup(callee) || !callee.getOps<AttentionOp>().empty() ||
        isCalledElsewhere(callee))
      continue;
    Rows rows = call.getNumResults() ? keysOf(call.getResult(0)) : Rows();
    for (Value result : call.getResults())
      if (!(keysOf(result) == rows))
        rows = {};
    auto [place, isNew] = found.insert({callee, rows});
    if (!isNew && !(place->second == rows))
      place->second = {};
  }
  for (auto [kernel, rows] : found)
    if (rows.symbol != none)
      bounds[kernel] = attributeOf(rows, true);
}

void EntryBounds::readArguments() {
  for (BlockArgument argument : entry.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (auto bounds = entry.getArgAttrOfType<DenseI64ArrayAttr>(number, attr::bounds)) {
      sizes = argument;
      symbolCount = cast<RankedTensorType>(argument.getType()).getNumElements();
      largest = llvm::to_vector(bounds.asArrayRef().take_front(symbolCount));
      for (int64_t i = symbolCount; i + 2 < bounds.size(); i += 3)
        quotients.push_back({bounds[i], bounds[i + 1], bounds[i + 2]});
      paddingOf(argument, values).fromSizes = true;
    }
    auto bounded = entry.getArgAttrOfType<DenseI64ArrayAttr>(number, attr::bounded);
    if (!bounded || bounded.size() != rankOf(argument))
      continue;
    Padding &padding = paddingOf(argument, values);
    padding.surplus = padding.origin = llvm::to_vector(bounded.asArrayRef());
  }
}

DenseI64ArrayAttr EntryBounds::visitKernel(func::CallOp call, func::FuncOp kernel) {
  llvm::DenseMap<Value, Padding> inside;
  for (auto [argument, operand] : llvm::zip_equal(kernel.getArguments(), call.getOperands()))
    inside[argument] = paddingOf(operand, values);
  for (Operation &op : kernel.front().without_terminator())
    visit(op, inside);
  for (auto [result, value] :
       llvm::zip_equal(call.getResults(), kernel.front().getTerminator()->getOperands()))
    values[result] = paddingOf(value, inside);
  return boundOf(kernel, inside);
}

void EntryBounds::visit(Operation &op, llvm::DenseMap<Value, Padding> &known) {
  for (Value result : op.getResults())
    paddingOf(result, known);
  // A mask hides keys, never queries.
  bool fromSizes = !isa<AttentionOp>(op) && llvm::any_of(op.getOperands(), [&](Value operand) {
    return paddingOf(operand, known).fromSizes;
  });
  std::optional<IterationStructure> structure = getIterationStructure(&op);
  if (!structure || op.getNumResults() == 0)
    return;
  llvm::SmallDenseMap<unsigned, int64_t> surplus, origin; // by loop
  // Where several loops index one dim, leaving out iterations of the outermost leaves out the end
  // of the dim. Loops of one iteration do not count.
  auto outermost = [&](const DimAccess &access) -> std::optional<unsigned> {
    if (access.kind != DimAccessKind::Exact)
      return std::nullopt;
    const auto *found =
        llvm::find_if(access.loops, [&](unsigned loop) { return structure->sizes[loop] != 1; });
    return found == access.loops.end() ? std::nullopt : std::optional(*found);
  };
  auto note = [&](auto &loops, const DimAccess &access, int64_t symbol) {
    std::optional<unsigned> loop = outermost(access);
    if (symbol == none || !loop || structure->sizes[*loop] % largest[symbol] != 0)
      return;
    auto [place, isNew] = loops.try_emplace(*loop, symbol);
    if (!isNew && place->second != symbol)
      place->second = none;
  };
  for (auto [operand, access] : llvm::zip_first(op.getOperands(), structure->operands)) {
    const Padding padding = paddingOf(operand, known);
    if (access.size() != padding.surplus.size())
      continue;
    for (auto [dim, each] : llvm::enumerate(access)) {
      note(surplus, each, padding.surplus[dim]);
      note(origin, each, padding.origin[dim]);
    }
  }
  for (auto [result, access] : llvm::zip_first(op.getResults(), structure->results)) {
    Padding &padding = paddingOf(result, known);
    bool isFloat = isa<FloatType>(getElementTypeOrSelf(result.getType()));
    padding.fromSizes = fromSizes && !isFloat;
    if (access.size() != padding.surplus.size())
      continue;
    for (auto [dim, each] : llvm::enumerate(access)) {
      std::optional<unsigned> loop = outermost(each);
      if (!loop)
        continue;
      if (!fromSizes)
        padding.surplus[dim] = surplus.lookup_or(*loop, none);
      padding.origin[dim] = origin.lookup_or(*loop, none);
    }
  }
  visitWindows(op, known);
}

/// The symbol of that size, a new one if there is none.
int64_t EntryBounds::symbolFor(Quotient quotient) {
  if (quotient.symbol == none)
    return none;
  auto *found = llvm::find(quotients, quotient);
  if (found == quotients.end()) {
    largest.push_back(
        llvm::divideFloorSigned(largest[quotient.symbol] + quotient.add, quotient.divisor));
    quotients.push_back(quotient);
    return quotients.size() - 1;
  }
  return found - quotients.begin();
}

/// Windows at whole steps give as many elements as lie within the operand, padded as it says: of
/// what counts along a dim follows what counts of the result. What lies after the end is hidden
/// before, if at all.
void EntryBounds::visitWindows(Operation &op, llvm::DenseMap<Value, Padding> &known) {
  if (quotients.empty())
    return;
  auto grow = [&](int64_t dim, int64_t more, int64_t step) {
    int64_t symbol = paddingOf(op.getOperand(0), known).origin[dim];
    if (symbol == none)
      return;
    auto size = [&](Value value) {
      return cast<RankedTensorType>(value.getType()).getDimSize(dim);
    };
    if (size(op.getOperand(0)) != largest[symbol])
      return;
    int64_t made = symbolFor(quotients[symbol].then(more + step, step));
    if (made == none || size(op.getResult(0)) != largest[made])
      return;
    Padding &result = paddingOf(op.getResult(0), known);
    result.surplus[dim] = result.origin[dim] = made;
  };
  if (auto sliding = dyn_cast<WindowOpInterface>(op))
    for (const DimWindows &each : sliding.windows())
      grow(each.dim, each.more, each.step);
}

/// The rows of `value` along the dim that is outermost in memory among those that `dims` bounds.
Rows EntryBounds::rowsOf(Value value, ArrayRef<int64_t> dims) const {
  auto type = cast<RankedTensorType>(value.getType());
  for (int64_t place = 0; place < type.getRank(); ++place) {
    int64_t dim = dimAt(type, place);
    if (dims[dim] != none && dims[dim] < symbolCount &&
        type.getDimSize(dim) % largest[dims[dim]] == 0)
      return {dims[dim], place, type.getDimSize(dim) / largest[dims[dim]]};
  }
  return {};
}

DenseI64ArrayAttr EntryBounds::attributeOf(Rows rows, bool whole) {
  SmallVector<int64_t> numbers{whole, rows.symbol, largest[rows.symbol] * rows.times, rows.place};
  if (rows.times != 1)
    numbers.push_back(rows.times);
  return DenseI64ArrayAttr::get(entry.getContext(), numbers);
}

/// The attribute `weft.bound`. For an attention [queries, batch, keys], each a symbol or -1. For
/// other kernels [whole, symbol, most rows, place of the dim in memory, rows for each unit of the
/// symbol if several]: if `whole`, the kernel leaves out the rows of all results that are padding,
/// otherwise only the sums of its contractions for them. Null if nothing is padding.
DenseI64ArrayAttr EntryBounds::boundOf(func::FuncOp kernel, llvm::DenseMap<Value, Padding> &known) {
  MLIRContext *context = kernel.getContext();
  auto results = kernel.front().getTerminator()->getOperands();
  if (results.empty())
    return {};
  auto attentions = llvm::to_vector(kernel.getOps<AttentionOp>());
  if (attentions.size() == 1) {
    AttentionOp op = attentions.front();
    const Padding out = paddingOf(op.getResult(), known), key = paddingOf(op.getKey(), known);
    int64_t rank = rankOf(op.getResult());
    bool isSurplus = llvm::all_of(results, [&](Value result) {
      return llvm::any_of(paddingOf(result, known).surplus, [](int64_t s) { return s != none; });
    });
    auto symbolOf = [&](Value value, int64_t dim, int64_t symbol) {
      auto type = cast<RankedTensorType>(value.getType());
      return symbol != none && symbol < symbolCount && type.getDimSize(dim) == largest[symbol]
                 ? symbol
                 : none;
    };
    int64_t queries = isSurplus ? symbolOf(op.getResult(), rank - 2, out.surplus[rank - 2]) : none;
    int64_t batch = isSurplus && rank > 2 ? symbolOf(op.getResult(), 0, out.surplus[0]) : none;
    int64_t keys = symbolOf(op.getKey(), rank - 2, key.origin[rank - 2]);
    if (queries == none && batch == none && keys == none)
      return {};
    return DenseI64ArrayAttr::get(context, {queries, batch, keys});
  }
  Value first = results.front();
  Rows whole = rowsOf(first, paddingOf(first, known).surplus);
  if (whole.symbol != none && llvm::all_of(results, [&](Value result) {
        return rowsOf(result, paddingOf(result, known).surplus) == whole;
      }))
    return attributeOf(whole, true);
  Rows sums = rowsOf(first, paddingOf(first, known).origin);
  if (sums.symbol == none || !llvm::all_of(results, [&](Value result) {
        return rowsOf(result, paddingOf(result, known).origin) == sums;
      }))
    return {};
  bool isSurplus = false;
  for (Operation &op : kernel.front().without_terminator()) {
    if (!op.hasTrait<LinearContraction>())
      continue;
    for (Value result : op.getResults()) {
      const Padding padding = paddingOf(result, known);
      isSurplus = llvm::count(padding.surplus, sums.symbol) == 1 &&
                  llvm::count(padding.origin, sums.symbol) == 1;
      if (!isSurplus)
        return {};
    }
  }
  if (!isSurplus)
    return {};
  return attributeOf(sums, false);
}

int64_t EntryBounds::apply() {
  int64_t count = 0;
  for (auto [kernel, bound] : bounds) {
    if (!bound)
      continue;
    unsigned number = kernel.getNumArguments();
    if (failed(kernel.insertArgument(number, sizes.getType(), {}, kernel.getLoc())))
      continue;
    kernel->setAttr(attr::bound, bound);
    for (auto call : entry.getOps<func::CallOp>())
      if (call.getCallee() == kernel.getName())
        call->insertOperands(number, sizes);
    ++count;
  }
  return count;
}

void BoundKernels::runOnOperation() {
  SymbolTable symbols(getOperation());
  for (auto entry : getOperation().getOps<func::FuncOp>()) {
    if (!entry->hasAttr(attr::entry) || entry.isExternal())
      continue;
    EntryBounds bounds(entry, symbols);
    if (bounds.run())
      numBound += bounds.apply();
  }
}
