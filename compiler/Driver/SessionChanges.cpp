// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a session changes in its module, one step at a time.
#include "compiler/Driver/DatumConversion.h"
#include "compiler/Driver/Diagnostics.h"
#include "compiler/Driver/OpCreation.h"
#include "compiler/Driver/SessionState.h"
#include "compiler/Graph/AttributeNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace weft;
using namespace weft::api;

static void refuse(Fault &fault, const Twine &text) { fault = {Fault::Kind::Refused, text.str()}; }

/// The result of what may be an error, which becomes a fault.
template <typename Result> static Result take(Fault &fault, llvm::Expected<Result> expected) {
  if (expected)
    return *expected;
  refuse(fault, llvm::toString(expected.takeError()));
  return {};
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

Location Session::State::locationOf(const Line &line) {
  Builder builder(context.get());
  if (!line.line)
    return builder.getUnknownLoc();
  Location place = FileLineColLoc::get(context.get(), line.file, line.line, 0);
  if (line.function.empty())
    return place;
  return NameLoc::get(builder.getStringAttr(line.function), place);
}

func::FuncOp Session::State::function(Fault &fault, Handle handle) {
  Operation *op = handles.op(fault, handle);
  auto function = dyn_cast_or_null<func::FuncOp>(op);
  if (op && !function)
    refuse(fault, "expected a function, found '" + op->getName().getStringRef() + "'");
  return function;
}

void Session::State::updateType(func::FuncOp function) {
  if (function.isExternal())
    return;
  Block &body = function.getBody().front();
  TypeRange results;
  if (!body.empty() && isa<func::ReturnOp>(body.back()))
    results = body.back().getOperandTypes();
  function.setFunctionType(
      FunctionType::get(function.getContext(), body.getArgumentTypes(), results));
}

/// The function that `op` ends, if it does, returns what it has now.
static void updateReturn(Operation *op) {
  if (isa<func::ReturnOp>(op))
    if (auto function = dyn_cast<func::FuncOp>(op->getParentOp()))
      Session::State::updateType(function);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

namespace {

/// An op on its way from data to IR.
class OpMaker {
public:
  OpMaker(HandleTable &handles, IRRewriter &rewriter, Location loc, const NewOp &request)
      : handles(handles), rewriter(rewriter), request(request), state(loc, request.name) {}

  Operation *make(Fault &fault) {
    if (!state.name.isRegistered())
      return refuse(fault, "unknown op '" + request.name + "'"), nullptr;
    readOperands(fault);
    readAttributes(fault);
    readTypes(fault);
    if (fault || !place(fault))
      return nullptr;
    DiagnosticLog log(*rewriter.getContext());
    Operation *op = create();
    if (!op)
      fault = {Fault::Kind::Invalid, log.text};
    return op;
  }

private:
  void readOperands(Fault &fault) {
    SmallVector<int32_t> sizes;
    for (const std::vector<ValueRef> &group : request.operands) {
      sizes.push_back(group.size());
      for (ValueRef ref : group) {
        Value value = handles.value(fault, ref);
        if (fault)
          return;
        state.operands.push_back(value);
      }
    }
    if (state.name.hasTrait<OpTrait::AttrSizedOperandSegments>())
      state.addAttribute("operandSegmentSizes", rewriter.getDenseI32ArrayAttr(sizes));
  }

  void readAttributes(Fault &fault) {
    for (const auto &[name, datum] : request.attributes) {
      if (fault)
        return;
      if (Attribute attribute = take(fault, toAttribute(datum, *rewriter.getContext())))
        state.addAttribute(name, attribute);
    }
  }

  void readTypes(Fault &fault) {
    for (const std::string &text : request.resultTypes) {
      if (fault)
        return;
      if (Type type = take(fault, toType(text, *rewriter.getContext())))
        state.types.push_back(type);
    }
  }

  bool place(Fault &fault) {
    if (request.before) {
      Operation *next = handles.op(fault, request.before);
      if (next && !next->getBlock())
        refuse(fault, "expected an op inside the module to insert before");
      else if (next)
        rewriter.setInsertionPoint(next);
    } else if (Block *block = handles.block(fault, request.block)) {
      rewriter.setInsertionPointToEnd(block);
    }
    return !fault;
  }

  /// The verified op, or null after a diagnostic.
  Operation *create() {
    auto error = [&] { return emitError(state.location) << "'" << request.name << "' op "; };
    // Which attributes are optional is known for ops of this dialect alone.
    bool typed = !state.types.empty() || !isa<WeftDialect>(state.name.getDialect());
    if (isa<WeftDialect>(state.name.getDialect()) && failed(checkParts(state, error)))
      return nullptr;
    if (failed(inferTypes(state, typed, error)))
      return nullptr;
    Operation *op = rewriter.create(state);
    if (failed(verify(op, /*verifyRecursively=*/false))) {
      rewriter.eraseOp(op);
      return nullptr;
    }
    return op;
  }

  HandleTable &handles;
  IRRewriter &rewriter;
  const NewOp &request;
  OperationState state;
};

} // namespace

Handle Session::createOp(Fault &fault, const NewOp &request) {
  OpMaker maker(state->handles, state->rewriter, state->locationOf(request.line), request);
  Operation *op = maker.make(fault);
  if (!op)
    return 0;
  updateReturn(op);
  return state->handles.of(op);
}

static bool haveSameTypes(Fault &fault, Operation *op, ArrayRef<Value> values) {
  SmallVector<Type> expected(op->getResultTypes()), found(TypeRange(ValueRange{values}));
  if (expected == found)
    return true;
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "expected '" << op->getName() << "' to be replaced by values of types ";
  llvm::interleaveComma(expected, stream);
  llvm::interleaveComma(found, stream << "; found ");
  fault = {Fault::Kind::Invalid, text};
  return false;
}

void Session::replaceOp(Fault &fault, Handle handle, const std::vector<ValueRef> &refs) {
  Operation *op = state->handles.op(fault, handle);
  SmallVector<Value> values;
  for (ValueRef ref : refs)
    if (!fault)
      values.push_back(state->handles.value(fault, ref));
  if (fault || !haveSameTypes(fault, op, values))
    return;
  if (llvm::any_of(values, [&](Value value) { return value.getDefiningOp() == op; }))
    return refuse(fault, "expected other values than the op's own to replace it");
  state->handles.setCause("; another op has its place");
  state->rewriter.replaceOp(op, values);
  state->handles.setCause("");
}

void Session::replaceUses(Fault &fault, ValueRef ref, ValueRef with) {
  Value value = state->handles.value(fault, ref);
  Value other = fault ? Value() : state->handles.value(fault, with);
  if (fault)
    return;
  if (value.getType() != other.getType()) {
    fault = {Fault::Kind::Invalid, "expected a value of the same type in place of another"};
    return;
  }
  state->rewriter.replaceAllUsesWith(value, other);
}

void Session::eraseOp(Fault &fault, Handle handle) {
  Operation *op = state->handles.op(fault, handle);
  if (!op)
    return;
  if (op == state->module->getOperation())
    return refuse(fault, "expected an op inside the module, found the module itself");
  if (!op->use_empty())
    return refuse(fault, "'" + op->getName().getStringRef() + "' has uses and cannot be erased");
  if (auto symbol = dyn_cast<SymbolOpInterface>(op))
    if (!SymbolTable::symbolKnownUseEmpty(op, state->module->getOperation()))
      return refuse(fault, "'" + symbol.getName() + "' is called and cannot be erased");
  state->rewriter.eraseOp(op);
}

void Session::setOperand(Fault &fault, Handle handle, int64_t number, ValueRef ref) {
  Operation *op = state->handles.op(fault, handle);
  Value value = fault ? Value() : state->handles.value(fault, ref);
  if (fault)
    return;
  if (number < 0 || number >= op->getNumOperands())
    return refuse(fault, "expected the number of an operand");
  state->rewriter.modifyOpInPlace(op, [&] { op->setOperand(number, value); });
  updateReturn(op);
}

void Session::setAttribute(Fault &fault, Handle handle, const std::string &name,
                           const Datum &datum) {
  Operation *op = state->handles.op(fault, handle);
  Attribute attribute = fault ? Attribute() : take(fault, toAttribute(datum, *state->context));
  if (fault)
    return;
  // An attribute of another kind than the definition's would be dropped.
  DiagnosticLog log(*state->context);
  NamedAttrList checked;
  checked.set(name, attribute);
  if (failed(op->getName().verifyInherentAttrs(checked, [&] { return op->emitOpError(); }))) {
    fault = {Fault::Kind::Invalid, log.text};
    return;
  }
  if (isa<SymbolOpInterface>(op) && name == SymbolTable::getSymbolAttrName()) {
    if (auto other = state->module->lookupSymbol(datum.text); other && other != op)
      return refuse(fault, "the name '" + datum.text + "' is taken");
    if (failed(SymbolTable::replaceAllSymbolUses(
            op, StringAttr::get(state->context.get(), datum.text), state->module->getOperation())))
      return refuse(fault, "the uses of the function's name cannot be found");
  }
  state->rewriter.modifyOpInPlace(op, [&] { op->setAttr(name, attribute); });
}

void Session::removeAttribute(Fault &fault, Handle handle, const std::string &name) {
  Operation *op = state->handles.op(fault, handle);
  if (!op)
    return;
  if (llvm::is_contained(op->getName().getAttributeNames(), name))
    return refuse(fault, "'" + op->getName().getStringRef() + "' cannot do without attribute '" +
                             name + "'");
  state->rewriter.modifyOpInPlace(op, [&] { op->removeAttr(name); });
}

/// Erases the ops inside `op` whose results nothing needs; how many.
static int64_t eraseDead(Operation *op, IRRewriter &rewriter) {
  int64_t count = 0;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(block))) {
        if (isa<SymbolOpInterface>(inner) || !isOpTriviallyDead(&inner)) {
          count += eraseDead(&inner, rewriter);
          continue;
        }
        rewriter.eraseOp(&inner);
        ++count;
      }
  return count;
}

/// The function that nothing needs, or null.
static func::FuncOp findUnusedFunction(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPrivate() && SymbolTable::symbolKnownUseEmpty(function, module))
      return function;
  return nullptr;
}

int64_t Session::removeUnused(Fault &) {
  state->handles.setCause(" as unused");
  int64_t count = eraseDead(*state->module, state->rewriter);
  while (func::FuncOp function = findUnusedFunction(*state->module)) {
    state->rewriter.eraseOp(function);
    ++count;
  }
  state->handles.setCause("");
  return count;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Handle Session::createFunction(Fault &fault, const std::string &name,
                               const std::vector<std::string> &types,
                               const std::vector<std::string> &names, bool isPrivate,
                               const Line &line) {
  if (state->module->lookupSymbol(name))
    return refuse(fault, "the name '" + name + "' is taken"), 0;
  SmallVector<Type> arguments;
  for (const std::string &text : types)
    if (Type type = take(fault, toType(text, *state->context)))
      arguments.push_back(type);
  if (fault)
    return 0;
  IRRewriter &rewriter = state->rewriter;
  rewriter.setInsertionPointToEnd(state->module->getBody());
  Location loc = state->locationOf(line);
  auto function =
      func::FuncOp::create(rewriter, loc, name, rewriter.getFunctionType(arguments, {}));
  function.addEntryBlock();
  for (auto [number, text] : llvm::enumerate(names))
    function.setArgAttr(number, attr::name, rewriter.getStringAttr(text));
  if (isPrivate)
    function.setPrivate();
  return state->handles.of(function);
}

void Session::setLine(Fault &fault, Handle handle, const Line &line) {
  if (Operation *op = state->handles.op(fault, handle))
    op->setLoc(state->locationOf(line));
}

void Session::addFunctions(Fault &fault, const std::string &text) {
  DiagnosticLog log(*state->context);
  OwningOpRef<ModuleOp> added = parseSourceString<ModuleOp>(text, state->context.get());
  if (!added) {
    fault = {Fault::Kind::Invalid, log.text};
    return;
  }
  SmallVector<func::FuncOp> functions(added->getOps<func::FuncOp>());
  for (func::FuncOp function : functions)
    if (state->module->lookupSymbol(function.getSymName()))
      return refuse(fault, "the name '" + function.getSymName() + "' is taken");
  for (func::FuncOp function : functions) {
    function->remove();
    state->module->getBody()->push_back(function);
  }
}

void Session::setReturn(Fault &fault, Handle handle, const std::vector<ValueRef> &refs) {
  func::FuncOp function = state->function(fault, handle);
  SmallVector<Value> values;
  for (ValueRef ref : refs)
    if (!fault)
      values.push_back(state->handles.value(fault, ref));
  if (fault)
    return;
  Block &body = function.getBody().front();
  Location loc = function.getLoc();
  if (!body.empty() && isa<func::ReturnOp>(body.back())) {
    loc = body.back().getLoc();
    state->rewriter.eraseOp(&body.back());
  }
  state->rewriter.setInsertionPointToEnd(&body);
  func::ReturnOp::create(state->rewriter, loc, values);
  State::updateType(function);
}

void Session::eraseParameter(Fault &fault, Handle handle, int64_t number) {
  func::FuncOp function = state->function(fault, handle);
  if (!function)
    return;
  if (number < 0 || number >= function.getNumArguments())
    return refuse(fault, "expected the number of a parameter");
  if (!function.getArgument(number).use_empty())
    return refuse(fault, "parameter " + Twine(number) + " has uses and cannot be erased");
  BlockArgument argument = function.getArgument(number);
  state->handles.forget(argument);
  if (failed(function.eraseArgument(number)))
    refuse(fault, "the parameter cannot be erased");
}

void Session::setParameterAttribute(Fault &fault, Handle handle, int64_t number,
                                    const std::string &name, const Datum &datum) {
  func::FuncOp function = state->function(fault, handle);
  Attribute attribute = fault ? Attribute() : take(fault, toAttribute(datum, *state->context));
  if (fault)
    return;
  if (number < 0 || number >= function.getNumArguments())
    return refuse(fault, "expected the number of a parameter");
  function.setArgAttr(number, name, attribute);
}
