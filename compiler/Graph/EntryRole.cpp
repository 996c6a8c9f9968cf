// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Graph/EntryRole.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/EntryFunctions.h"

using namespace mlir;
using namespace weft;

#include "compiler/Graph/EntryRoleEnums.cpp.inc"

std::optional<EntryRole> weft::roleOf(func::FuncOp function) {
  auto role = function->getAttrOfType<EntryRoleAttr>(attr::entry);
  return role ? std::optional(role.getValue()) : std::nullopt;
}

func::FuncOp weft::entryOf(ModuleOp module, EntryRole role) {
  for (func::FuncOp entry : entriesOf(module))
    if (roleOf(entry) == role)
      return entry;
  return nullptr;
}

func::FuncOp weft::createEntry(OpBuilder &builder, Location loc, EntryRole role,
                               FunctionType type) {
  auto entry = func::FuncOp::create(builder, loc, stringifyEntryRole(role), type);
  setRole(entry, role);
  return entry;
}

void weft::makeEntry(func::FuncOp function, EntryRole role) {
  function.setName(stringifyEntryRole(role));
  setRole(function, role);
}

void weft::setRole(func::FuncOp function, EntryRole role) {
  function->setAttr(attr::entry, EntryRoleAttr::get(function.getContext(), role));
}
