// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and syntax of weft.scan and weft.loop, and what a scan takes.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/OpCost.h"
#include "compiler/Graph/OpStructure.h"

using namespace mlir;
using namespace weft;

//===----------------------------------------------------------------------===//
// Types of a step
//===----------------------------------------------------------------------===//

/// (length, d...) -> (d...)
static Type elementOf(Type sequence) {
  auto type = cast<RankedTensorType>(sequence);
  return RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
}

/// The types of `factor` elements of each of `sequences`.
static void appendElements(TypeRange sequences, int64_t factor, SmallVectorImpl<Type> &types) {
  for (Type sequence : sequences)
    types.append(factor, elementOf(sequence));
}

template <typename Op>
static SmallVector<Type> stepInputs(Op op, int64_t factor, TypeRange invariants) {
  SmallVector<Type> types(op.getInits().getTypes());
  appendElements(op.getSequences().getTypes(), factor, types);
  llvm::append_range(types, invariants);
  return types;
}

template <typename Op> static SmallVector<Type> stepResults(Op op, int64_t factor) {
  SmallVector<Type> types(op.getFinals().getTypes());
  appendElements(op.getStacked().getTypes(), factor, types);
  return types;
}

SmallVector<Type> ScanOp::getStepInputs() {
  return stepInputs(*this, 1, getInvariants().getTypes());
}
SmallVector<Type> ScanOp::getStepResults() { return stepResults(*this, 1); }
SmallVector<Type> LoopOp::getStepInputs() {
  return stepInputs(*this, getFactor(), getInvariants().getTypes());
}
SmallVector<Type> LoopOp::getStepResults() { return stepResults(*this, getFactor()); }
SmallVector<Type> LoopOp::getRestInputs() {
  return stepInputs(*this, 1, getRestInvariants().getTypes());
}
SmallVector<Type> LoopOp::getRestResults() { return stepResults(*this, 1); }

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// scan_c1, and as many finals as inits.
template <typename Op> static LogicalResult verifySequences(Op op) {
  int64_t length = op.getLength();
  if (length < 0)
    return op.emitOpError() << "expected a length of at least 0, found " << length;
  if (op.getNumResults() < op.getInits().size())
    return op.emitOpError() << "expected at least a result for each of " << op.getInits().size()
                            << " states, found " << op.getNumResults();
  auto isStacked = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getRank() > 0 && tensor.getDimSize(0) == length && !layoutOf(tensor);
  };
  for (Type type : llvm::concat<Type>(SmallVector<Type>(op.getSequences().getTypes()),
                                      SmallVector<Type>(op.getStacked().getTypes())))
    if (!isStacked(type))
      return op.emitOpError() << "expected sequences and stacked outputs to be row-major, with "
                              << length << " as their first dim, found " << type;
  for (auto [number, init, last] :
       llvm::enumerate(op.getInits().getTypes(), op.getFinals().getTypes()))
    if (init != last)
      return op.emitOpError() << "expected state " << number << " to keep its type " << init
                              << ", found " << last;
  return success();
}

static LogicalResult checkTypes(StringRef what, TypeRange expected, TypeRange found,
                                ErrorFn error) {
  if (expected == found)
    return success();
  return error() << "expected the step to " << what << " (" << expected << "), found (" << found
                 << ")";
}

LogicalResult ScanOp::verify() { return verifySequences(*this); }

LogicalResult ScanOp::verifyRegions() {
  auto error = [&] { return emitOpError(); };
  if (failed(checkTypes("take", getStepInputs(), getStep().getArgumentTypes(), error)) ||
      failed(checkTypes("yield", getStepResults(), getYielded().getTypes(), error)))
    return failure();
  for (Operation &op : getStep())
    if (!isMemoryEffectFree(&op))
      return op.emitOpError() << "expected ops without effects in the body of a scan";
  return success();
}

/// loop_c1 to loop_c3, of the step or of the rest.
static LogicalResult checkStep(LoopOp loop, FlatSymbolRefAttr name, TypeRange inputs,
                               TypeRange results, SymbolTableCollection &symbols) {
  auto function = symbols.lookupNearestSymbolFrom<func::FuncOp>(loop, name);
  if (!function || !function->hasAttr(attr::step))
    return loop.emitOpError() << "expected '" << name.getValue() << "' to be a function marked '"
                              << attr::step << "'";
  auto error = [&] { return loop.emitOpError(); };
  if (failed(checkTypes("take", inputs, function.getArgumentTypes(), error)))
    return failure();
  return checkTypes("return", results, function.getResultTypes(), error);
}

LogicalResult LoopOp::verifySymbolUses(SymbolTableCollection &symbols) {
  int64_t factor = getFactor(), length = getLength();
  if (factor < 1)
    return emitOpError() << "expected a factor of at least 1, found " << factor;
  if (failed(verifySequences(*this)) ||
      failed(checkStep(*this, getStepAttr(), getStepInputs(), getStepResults(), symbols)))
    return failure();
  if (getRestAttr())
    return checkStep(*this, getRestAttr(), getRestInputs(), getRestResults(), symbols);
  if (length % factor != 0)
    return emitOpError() << "expected a function for the rest of " << length << " steps by "
                         << factor << ", found none";
  return success();
}

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

/// carry(%h = %h0 : tensor<4x8xf32>, ...)
static void printGroup(OpAsmPrinter &printer, StringRef keyword, ValueRange operands,
                       ArrayRef<BlockArgument> arguments) {
  if (operands.empty())
    return;
  printer << ' ' << keyword << '(';
  llvm::interleaveComma(llvm::zip_equal(arguments, operands), printer, [&](auto pair) {
    auto [argument, operand] = pair;
    printer.printRegionArgument(argument, {}, /*omitType=*/true);
    printer << " = " << operand << " : " << operand.getType();
  });
  printer << ')';
}

void ScanOp::print(OpAsmPrinter &printer) {
  ArrayRef<BlockArgument> arguments = getStep().getArguments();
  size_t carried = getInits().size(), read = getSequences().size();
  printer << ' ' << getLength();
  if (getReverse())
    printer << " reverse";
  printGroup(printer, "carry", getInits(), arguments.take_front(carried));
  printGroup(printer, "over", getSequences(), arguments.slice(carried, read));
  printGroup(printer, "with", getInvariants(), arguments.drop_front(carried + read));
  printer.printOptionalAttrDict((*this)->getAttrs(), {"length", "reverse", "operandSegmentSizes"});
  printer << " -> (" << getResultTypes() << ") ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

namespace {

/// The operands of a scan and the arguments of its step, as they are read.
struct ScanGroups {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Value> operands;
  SmallVector<int32_t> sizes;

  /// One group; empty if `keyword` is not there. `inner`: the type of an argument for an operand's.
  ParseResult parse(OpAsmParser &parser, StringRef keyword, llvm::function_ref<Type(Type)> inner) {
    size_t before = operands.size();
    if (succeeded(parser.parseOptionalKeyword(keyword)) &&
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&]() -> ParseResult {
          OpAsmParser::Argument argument;
          OpAsmParser::UnresolvedOperand operand;
          Type type;
          if (parser.parseArgument(argument) || parser.parseEqual() ||
              parser.parseOperand(operand) || parser.parseColonType(type))
            return failure();
          auto tensor = dyn_cast<RankedTensorType>(type);
          if (!tensor || (keyword == "over" && tensor.getRank() == 0))
            return parser.emitError(operand.location) << "expected a tensor with dims";
          argument.type = inner(type);
          arguments.push_back(argument);
          return parser.resolveOperand(operand, type, operands);
        }))
      return failure();
    sizes.push_back(operands.size() - before);
    return success();
  }
};

} // namespace

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  int64_t length;
  if (parser.parseInteger(length))
    return failure();
  bool reverse = succeeded(parser.parseOptionalKeyword("reverse"));
  ScanGroups groups;
  auto whole = [](Type type) { return type; };
  if (groups.parse(parser, "carry", whole) || groups.parse(parser, "over", elementOf) ||
      groups.parse(parser, "with", whole) || parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseArrow() || parser.parseLParen() || parser.parseTypeList(result.types) ||
      parser.parseRParen())
    return failure();
  result.addOperands(groups.operands);
  result.addAttribute(getLengthAttrName(result.name), builder.getI64IntegerAttr(length));
  result.addAttribute(getReverseAttrName(result.name), builder.getBoolAttr(reverse));
  result.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr(groups.sizes));
  return parser.parseRegion(*result.addRegion(), groups.arguments);
}

void weft::structureScan(MLIRContext *context) {
  takes<OpWork{OpWork::Kind::TooMuch}, ScanOp>(context);
  place<Placement{.stored = true}, ScanOp>(context);
}
