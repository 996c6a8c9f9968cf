// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// weft-lower-entries: entries become C functions, the module gets its tables, and kernels move to
// nested modules.
#include "compiler/Graph/EntryRole.h"
#include "compiler/Lowering/Entries/AbiTypes.h"
#include "compiler/Lowering/Entries/EntryFunction.h"
#include "compiler/Lowering/Entries/EntryIR.h"
#include "compiler/Lowering/Entries/ManifestWriter.h"
#include "compiler/Lowering/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "runtime/Abi.h"

using namespace mlir;
using namespace weft;

namespace weft {
#define GEN_PASS_DEF_LOWERENTRIES
#include "compiler/Lowering/Passes.h.inc"
} // namespace weft

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// (ptr for each memref..., i64 thread, i64 threads)
static LLVM::LLVMFunctionType barePointerType(func::FuncOp kernel) {
  MLIRContext *context = kernel.getContext();
  auto types = llvm::map_to_vector(kernel.getArgumentTypes(), [&](Type type) -> Type {
    if (isa<MemRefType>(type))
      return LLVM::LLVMPointerType::get(context);
    return IntegerType::get(context, 64);
  });
  return LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types);
}

/// Empty buffers become one-dimensional: MLIR finds no strides for shapes like 3x0, and the
/// functions that take them would keep their memref type.
static void flattenEmptyArguments(func::FuncOp kernel) {
  for (BlockArgument argument : kernel.getArguments())
    if (auto type = dyn_cast<MemRefType>(argument.getType());
        type && type.hasStaticShape() && type.getNumElements() == 0)
      argument.setType(MemRefType::get({0}, type.getElementType()));
  kernel.setType(FunctionType::get(kernel.getContext(), kernel.getBody().getArgumentTypes(),
                                   kernel.getResultTypes()));
}

/// Replaces `kernel` by a declaration in `module`; a body moves to a nested module, with its
/// tables.
static void moveKernelOut(ModuleOp module, func::FuncOp kernel) {
  OpBuilder builder(kernel);
  auto declaration =
      LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), kernel.getName(), barePointerType(kernel));
  declaration.setVisibility_(LLVM::Visibility::Hidden);
  if (kernel.isExternal())
    return kernel.erase();
  flattenEmptyArguments(kernel);
  builder.setInsertionPointToEnd(module.getBody());
  auto nested = ModuleOp::create(builder, kernel.getLoc());
  kernel.walk([&](memref::GetGlobalOp use) {
    Operation *table = SymbolTable::lookupSymbolIn(module, use.getNameAttr().getAttr());
    if (table) // not moved yet
      table->moveBefore(nested.getBody(), nested.getBody()->end());
  });
  kernel->moveBefore(nested.getBody(), nested.getBody()->end());
  kernel.setPublic();
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static LLVM::GlobalOp createString(OpBuilder &builder, Location loc, StringRef name,
                                   StringRef text) {
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
  return LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                name, builder.getStringAttr(text));
}

/// A constant that contains addresses: `fill` computes its value.
static void createTable(OpBuilder &builder, Location loc, Type type, LLVM::Linkage linkage,
                        StringRef name, llvm::function_ref<Value(OpBuilder &)> fill) {
  auto global =
      LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, linkage, name, Attribute());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&global.getInitializerRegion());
  LLVM::ReturnOp::create(builder, loc, fill(builder));
}

static Value makeStruct(OpBuilder &builder, Location loc, Type type, ArrayRef<Value> fields) {
  Value value = LLVM::UndefOp::create(builder, loc, type);
  for (auto [index, field] : llvm::enumerate(fields))
    value = LLVM::InsertValueOp::create(builder, loc, value, field, index);
  return value;
}

static Value constant(OpBuilder &builder, Location loc, unsigned bits, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getIntegerType(bits), value);
}

namespace {

/// A row in the table of entries.
struct EntryRow {
  std::string name; ///< the role, by which callers find it
  EntryFunction code;
  int64_t arenaBytes, maxThreads, numTensors;
};

struct LowerEntries : weft::impl::LowerEntriesBase<LowerEntries> {
  void runOnOperation() override;
  FailureOr<EntryRow> lower(func::FuncOp entry, ArrayRef<func::FuncOp> fallbacks);
  void createTables(ArrayRef<EntryRow> rows, StringRef manifest);
};

} // namespace

FailureOr<EntryRow> LowerEntries::lower(func::FuncOp entry, ArrayRef<func::FuncOp> fallbacks) {
  auto arena = entry->getAttrOfType<IntegerAttr>(attr::arenaBytes);
  auto most = entry->getAttrOfType<IntegerAttr>(attr::maxThreads);
  if (!arena || !most)
    return entry.emitOpError("expected an entry with a memory plan");
  EntryIR form(entry);
  FailureOr<EntryFunction> code = emitEntryFunction(form, fallbacks);
  if (failed(code))
    return failure();
  return EntryRow{stringifyEntryRole(*roleOf(entry)).str(), *code, arena.getInt(), most.getInt(),
                  static_cast<int64_t>(form.tensors().size())};
}

void LowerEntries::createTables(ArrayRef<EntryRow> rows, StringRef manifest) {
  Location loc = getOperation().getLoc();
  MLIRContext *context = &getContext();
  OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
  auto rowType = abi::entryType(context);
  auto tableType = LLVM::LLVMArrayType::get(rowType, rows.size());
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto address = [&](OpBuilder &body, StringRef name) -> Value {
    return LLVM::AddressOfOp::create(body, loc, pointer, name);
  };

  createString(builder, loc, "weft_manifest", manifest);
  for (const EntryRow &row : rows)
    createString(builder, loc, "weft_name_" + row.name, row.name + '\0');
  createTable(
      builder, loc, tableType, LLVM::Linkage::Internal, "weft_entries", [&](OpBuilder &body) {
        Value table = LLVM::UndefOp::create(body, loc, tableType);
        for (auto [index, row] : llvm::enumerate(rows)) {
          auto function = row.code.function;
          Value value = makeStruct(
              body, loc, rowType,
              {address(body, "weft_name_" + row.name), address(body, function.getName()),
               constant(body, loc, 64, row.arenaBytes), constant(body, loc, 32, row.maxThreads),
               constant(body, loc, 32, row.numTensors),
               constant(body, loc, 32, row.code.firstStage),
               constant(body, loc, 32, row.code.endStage)});
          table = LLVM::InsertValueOp::create(body, loc, table, value, index);
        }
        return table;
      });
  createTable(builder, loc, abi::artifactType(context), LLVM::Linkage::External,
              WEFT_ARTIFACT_SYMBOL, [&](OpBuilder &body) {
                return makeStruct(body, loc, abi::artifactType(context),
                                  {constant(body, loc, 32, WEFT_ABI_MAGIC),
                                   constant(body, loc, 32, WEFT_ABI_VERSION),
                                   constant(body, loc, 32, sizeof(WeftArtifact)),
                                   constant(body, loc, 32, rows.size()),
                                   address(body, "weft_entries"), address(body, "weft_manifest"),
                                   constant(body, loc, 64, manifest.size())});
              });
}

/// An entry is found by its role.
static LogicalResult verifyRoles(ArrayRef<func::FuncOp> entries) {
  llvm::SmallDenseMap<EntryRole, func::FuncOp> found;
  for (func::FuncOp entry : entries) {
    auto [first, isNew] = found.try_emplace(*roleOf(entry), entry);
    if (!isNew) {
      auto diagnostic = entry.emitError() << "expected one entry of role "
                                          << stringifyEntryRole(first->first) << ", found another";
      diagnostic.attachNote(first->second.getLoc()) << "the first one";
      return diagnostic;
    }
  }
  return success();
}

void LowerEntries::runOnOperation() {
  ModuleOp module = getOperation();
  SmallVector<func::FuncOp> entries = entriesOf(module);
  if (entries.empty())
    return;
  if (failed(verifyRoles(entries)))
    return signalPassFailure();
  std::string manifest = writeManifest(module);
  SmallVector<func::FuncOp> fallbacks = fallbacksOf(module);
  SmallVector<EntryRow> rows;
  for (func::FuncOp entry : entries) {
    FailureOr<EntryRow> row = lower(entry, fallbacks);
    if (failed(row))
      return signalPassFailure();
    rows.push_back(*row);
  }
  for (func::FuncOp entry : entries)
    entry.erase();
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (function->hasAttr(attr::kernel))
      moveKernelOut(module, function);
    else if (function->hasAttr(attr::service))
      function.erase();
  }
  // Folds may have left a table that no kernel reads.
  for (auto table : llvm::make_early_inc_range(module.getOps<memref::GlobalOp>()))
    if (SymbolTable::symbolKnownUseEmpty(table, module))
      table.erase();
  createTables(rows, manifest);
}
