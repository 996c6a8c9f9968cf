// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Handles on the objects of a module that is being rewritten.
#include "compiler/Driver/HandleTable.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace weft;
using api::Fault;
using api::Handle;
using api::ValueRef;

Handle HandleTable::enter(void *object, Kind kind) {
  auto [found, isNew] = handles.try_emplace(object, entries.size() + 1);
  if (isNew)
    entries.push_back({object, kind, 0, ""});
  return found->second;
}

ValueRef HandleTable::of(Value value) {
  if (auto result = dyn_cast<OpResult>(value))
    return {of(result.getOwner()), result.getResultNumber()};
  return {enter(value.getAsOpaquePointer(), Kind::Argument), -1};
}

Handle HandleTable::follow(Handle handle) const {
  while (handle && handle <= entries.size() && entries[handle - 1].replacement)
    handle = entries[handle - 1].replacement;
  return handle;
}

bool HandleTable::isAlive(Handle handle) const {
  handle = follow(handle);
  return handle && handle <= entries.size() && entries[handle - 1].object;
}

void *HandleTable::find(Fault &fault, Handle handle, Kind kind) const {
  handle = follow(handle);
  if (!handle || handle > entries.size() || entries[handle - 1].kind != kind) {
    fault = {Fault::Kind::Refused, "expected an object of this module"};
    return nullptr;
  }
  const Entry &entry = entries[handle - 1];
  if (!entry.object)
    fault = {Fault::Kind::Stale, entry.fate};
  return entry.object;
}

Operation *HandleTable::op(Fault &fault, Handle handle) const {
  return static_cast<Operation *>(find(fault, handle, Kind::Op));
}

Block *HandleTable::block(Fault &fault, Handle handle) const {
  return static_cast<Block *>(find(fault, handle, Kind::Block));
}

Value HandleTable::value(Fault &fault, ValueRef ref) const {
  if (ref.index < 0)
    return Value::getFromOpaquePointer(find(fault, ref.owner, Kind::Argument));
  for (auto found = replacements.find({ref.owner, ref.index}); found != replacements.end();
       found = replacements.find({ref.owner, ref.index})) {
    ref = found->second;
    if (ref.index < 0)
      return Value::getFromOpaquePointer(find(fault, ref.owner, Kind::Argument));
  }
  Operation *owner = op(fault, ref.owner);
  if (!owner)
    return {};
  if (ref.index < owner->getNumResults())
    return owner->getResult(ref.index);
  fault = {Fault::Kind::Refused, "expected the number of a result"};
  return {};
}

void HandleTable::erase(void *object, std::string fate) {
  auto found = handles.find(object);
  if (found == handles.end())
    return;
  Entry &entry = entries[found->second - 1];
  entry.object = nullptr;
  entry.fate = std::move(fate);
  handles.erase(found);
}

void HandleTable::forget(BlockArgument argument) {
  erase(argument.getAsOpaquePointer(),
        ("parameter " + Twine(argument.getArgNumber()) + " was erased" + cause).str());
}

void HandleTable::expire(Operation *kept, StringRef why) {
  SmallVector<void *> all;
  for (auto [object, handle] : handles)
    all.push_back(object);
  llvm::DenseSet<void *> alive{kept};
  for (Region &region : kept->getRegions())
    for (Block &block : region)
      alive.insert(&block);
  for (void *object : all)
    if (!alive.contains(object))
      erase(object, why.str());
}

HandleTable::Record HandleTable::mapped(const IRMapping &mapping) const {
  Record result;
  result.entries = entries;
  result.replacements = replacements;
  for (auto [number, entry] : llvm::enumerate(result.entries)) {
    if (!entry.object)
      continue;
    if (entry.kind == Kind::Op)
      entry.object = mapping.lookup(static_cast<Operation *>(entry.object));
    else if (entry.kind == Kind::Block)
      entry.object = mapping.lookup(static_cast<Block *>(entry.object));
    else
      entry.object = mapping.lookup(Value::getFromOpaquePointer(entry.object)).getAsOpaquePointer();
    result.handles[entry.object] = number + 1;
  }
  return result;
}

void HandleTable::rewind(Record earlier, StringRef why) {
  SmallVector<Kind> newer;
  for (size_t number = earlier.entries.size(); number < entries.size(); ++number)
    newer.push_back(entries[number].kind);
  entries = std::move(earlier.entries);
  handles = std::move(earlier.handles);
  replacements = std::move(earlier.replacements);
  for (Kind kind : newer)
    entries.push_back({nullptr, kind, 0, why.str()});
}

void HandleTable::notifyOperationReplaced(Operation *op, ValueRange replacement) {
  auto found = handles.find(op);
  if (found == handles.end())
    return;
  Handle handle = found->second;
  for (auto [number, value] : llvm::enumerate(replacement))
    replacements[{handle, number}] = of(value);
  Operation *other = replacement.empty() ? nullptr : replacement.front().getDefiningOp();
  if (other && other != op && other->getNumResults() == replacement.size() &&
      llvm::equal(other->getResults(), replacement))
    entries[handle - 1].replacement = of(other);
}

void HandleTable::notifyOperationErased(Operation *op) {
  std::string fate = ("'" + op->getName().getStringRef() + "' was erased" + cause).str();
  for (Region &region : op->getRegions())
    for (Block &block : region)
      notifyBlockErased(&block);
  erase(op, std::move(fate));
}

void HandleTable::notifyBlockErased(Block *block) {
  for (BlockArgument argument : block->getArguments())
    forget(argument);
  for (Operation &op : *block) // a module's or function's body goes with it
    notifyOperationErased(&op);
  erase(block, "the block was erased" + cause);
}
