// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modules that come as text.
#include "compiler/Driver/ModuleText.h"
#include "compiler/Driver/GraphImport.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/EntryRole.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace weft;

OwningOpRef<ModuleOp> weft::parseModule(StringRef text, MLIRContext &context, StringRef name) {
  return parseSourceString<ModuleOp>(text, ParserConfig(&context), name);
}

OwningOpRef<ModuleOp> weft::readModule(StringRef source, MLIRContext &context) {
  // MLIR's text may begin with a brace, too: `{-#`, which is no JSON.
  StringRef start = source.ltrim();
  if (start.starts_with("{") && !start.starts_with("{-#"))
    return importGraph(source, context);
  return parseModule(source, context, "graph");
}

static void nameArguments(func::FuncOp entry) {
  Builder builder(entry.getContext());
  for (unsigned number = 0; number < entry.getNumArguments(); ++number) {
    if (!entry.getArgAttr(number, attr::name))
      entry.setArgAttr(number, attr::name, builder.getStringAttr("arg" + Twine(number)));
    if (!entry.getArgAttr(number, attr::kind))
      entry.setArgAttr(number, attr::kind, builder.getStringAttr("input"));
  }
}

LogicalResult weft::prepareEntry(ModuleOp module) {
  auto functions = module.getOps<func::FuncOp>();
  // Below the stage "loops" entries are no functions any more.
  auto isEntry = [](func::FuncOp function) { return function->hasAttr(attr::entry); };
  if (functions.empty() || llvm::any_of(functions, isEntry))
    return success();
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal())
    return module.emitError("expected a function 'main' to lower");
  setRole(main, EntryRole::main);
  nameArguments(main);
  return success();
}
