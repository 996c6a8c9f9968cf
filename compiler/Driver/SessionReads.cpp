// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a session tells of its module.
#include "compiler/Driver/DatumConversion.h"
#include "compiler/Driver/SessionState.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace weft;
using namespace weft::api;

static std::vector<ValueRef> refs(HandleTable &handles, auto values) {
  std::vector<ValueRef> all;
  all.reserve(llvm::size(values));
  for (Value value : values)
    all.push_back(handles.of(value));
  return all;
}

static std::vector<TypeInfo> infos(TypeRange types) {
  return {llvm::map_iterator(types.begin(), toTypeInfo),
          llvm::map_iterator(types.end(), toTypeInfo)};
}

static std::vector<std::pair<std::string, Datum>> data(DictionaryAttr dictionary) {
  std::vector<std::pair<std::string, Datum>> all;
  if (dictionary)
    for (NamedAttribute attribute : dictionary)
      all.emplace_back(attribute.getName().str(), toDatum(attribute.getValue()));
  return all;
}

Handle Session::module() const { return state->handles.of(state->module->getOperation()); }

std::vector<Handle> Session::blocks(Fault &fault, Handle handle) {
  std::vector<Handle> all;
  if (Operation *op = state->handles.op(fault, handle))
    for (Region &region : op->getRegions())
      for (Block &block : region)
        all.push_back(state->handles.of(&block));
  return all;
}

std::vector<Handle> Session::ops(Fault &fault, Handle handle) {
  std::vector<Handle> all;
  if (Block *block = state->handles.block(fault, handle))
    for (Operation &op : *block)
      all.push_back(state->handles.of(&op));
  return all;
}

std::vector<Handle> Session::walk(Fault &fault, Handle handle) {
  std::vector<Handle> found;
  if (Operation *root = state->handles.op(fault, handle))
    root->walk([&](Operation *op) {
      if (op != root)
        found.push_back(state->handles.of(op));
    });
  return found;
}

std::vector<ValueRef> Session::arguments(Fault &fault, Handle handle) {
  Block *block = state->handles.block(fault, handle);
  return block ? refs(state->handles, block->getArguments()) : std::vector<ValueRef>();
}

Handle Session::ownerBlock(Fault &fault, ValueRef ref) {
  Value value = state->handles.value(fault, ref);
  return value ? state->handles.of(value.getParentBlock()) : 0;
}

Handle Session::parentOp(Fault &fault, Handle handle) {
  Block *block = state->handles.block(fault, handle);
  return block ? state->handles.of(block->getParentOp()) : 0;
}

Handle Session::parentBlock(Fault &fault, Handle handle) {
  Operation *op = state->handles.op(fault, handle);
  return op && op->getBlock() ? state->handles.of(op->getBlock()) : 0;
}

std::string Session::name(Fault &fault, Handle handle) {
  Operation *op = state->handles.op(fault, handle);
  return op ? op->getName().getStringRef().str() : "";
}

std::vector<ValueRef> Session::operands(Fault &fault, Handle handle) {
  Operation *op = state->handles.op(fault, handle);
  return op ? refs(state->handles, op->getOperands()) : std::vector<ValueRef>();
}

std::vector<ValueRef> Session::results(Fault &fault, Handle handle) {
  Operation *op = state->handles.op(fault, handle);
  return op ? refs(state->handles, op->getResults()) : std::vector<ValueRef>();
}

std::vector<std::pair<std::string, Datum>> Session::attributes(Fault &fault, Handle handle) {
  Operation *op = state->handles.op(fault, handle);
  return data(op ? op->getAttrDictionary() : DictionaryAttr());
}

/// The line of `location`; of a fused one, the first that is known.
Line Session::State::lineOf(Location location) {
  Line line;
  if (auto place = location->findInstanceOf<FileLineColLoc>()) {
    line.file = place.getFilename().str();
    line.line = place.getLine();
  }
  if (auto function = location->findInstanceOf<NameLoc>())
    line.function = function.getName().str();
  return line;
}

Line Session::line(Fault &fault, Handle handle) {
  Operation *op = state->handles.op(fault, handle);
  return op ? State::lineOf(op->getLoc()) : Line();
}

TypeInfo Session::type(Fault &fault, ValueRef ref) {
  Value value = state->handles.value(fault, ref);
  return value ? toTypeInfo(value.getType()) : TypeInfo();
}

/// Sorts uses by their places in the block, if they share one; otherwise the use that was made
/// first comes first (MLIR lists the latest first).
static void sortByPlace(SmallVectorImpl<OpOperand *> &uses) {
  std::reverse(uses.begin(), uses.end());
  auto block = [](OpOperand *use) { return use->getOwner()->getBlock(); };
  if (!llvm::all_equal(llvm::map_range(uses, block)))
    return;
  llvm::sort(uses, [](OpOperand *one, OpOperand *other) {
    Operation *first = one->getOwner(), *second = other->getOwner();
    return first == second ? one->getOperandNumber() < other->getOperandNumber()
                           : first->isBeforeInBlock(second);
  });
}

std::vector<std::pair<Handle, int64_t>> Session::uses(Fault &fault, ValueRef ref) {
  std::vector<std::pair<Handle, int64_t>> all;
  Value value = state->handles.value(fault, ref);
  if (!value)
    return all;
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses())
    uses.push_back(&use);
  sortByPlace(uses);
  for (OpOperand *use : uses)
    all.emplace_back(state->handles.of(use->getOwner()), use->getOperandNumber());
  return all;
}

std::pair<std::vector<TypeInfo>, std::vector<TypeInfo>> Session::signature(Fault &fault,
                                                                           Handle handle) {
  func::FuncOp function = state->function(fault, handle);
  if (!function)
    return {};
  return {infos(function.getArgumentTypes()), infos(function.getResultTypes())};
}

ValueRef Session::current(Fault &fault, ValueRef ref) {
  Value value = state->handles.value(fault, ref);
  return value ? state->handles.of(value) : ref;
}

Handle Session::follow(Handle handle) const { return state->handles.follow(handle); }

bool Session::isAlive(Handle handle) const { return state->handles.isAlive(handle); }

bool Session::isBefore(Fault &fault, Handle handle, Handle other) {
  Operation *first = state->handles.op(fault, handle);
  Operation *second = first ? state->handles.op(fault, other) : nullptr;
  if (!second)
    return false;
  if (first->getBlock() == second->getBlock())
    return first->isBeforeInBlock(second);
  fault = {Fault::Kind::Refused, "expected two ops of one block"};
  return false;
}

std::vector<std::pair<std::string, Datum>> Session::parameterAttributes(Fault &fault, Handle handle,
                                                                        int64_t number) {
  func::FuncOp function = state->function(fault, handle);
  if (!function)
    return {};
  if (number >= 0 && number < function.getNumArguments())
    return data(function.getArgAttrDict(number));
  fault = {Fault::Kind::Refused, "expected the number of a parameter"};
  return {};
}
