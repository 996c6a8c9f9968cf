// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Lowering/Entries/ManifestWriter.h"
#include "compiler/Graph/EntryRole.h"
#include "compiler/Lowering/Entries/AbiTypes.h"
#include "compiler/Lowering/Entries/EntryIR.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "runtime/Abi.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace weft;

namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// Attributes and locations
//===----------------------------------------------------------------------===//

static int64_t integerOr(Operation *op, StringRef name, int64_t otherwise) {
  auto attribute = op->getAttrOfType<IntegerAttr>(name);
  return attribute ? attribute.getInt() : otherwise;
}

static std::string stringOr(Operation *op, StringRef name) {
  auto attribute = op->getAttrOfType<StringAttr>(name);
  return attribute ? attribute.str() : "";
}

template <typename Range, typename Write> static json::Array writeAll(Range range, Write write) {
  json::Array array;
  for (auto element : range)
    array.push_back(write(element));
  return array;
}

static json::Value toJson(Attribute attribute) {
  if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    json::Object object;
    for (NamedAttribute entry : dictionary)
      object[entry.getName().getValue()] = toJson(entry.getValue());
    return object;
  }
  if (auto schedule = dyn_cast<ScheduleAttr>(attribute))
    return schedule.getParts().empty() ? json::Object{} : toJson(schedule.getParts().front());
  if (auto array = dyn_cast<ArrayAttr>(attribute))
    return writeAll(array.getValue(), toJson);
  if (auto array = dyn_cast<DenseI64ArrayAttr>(attribute))
    return json::Array(array.asArrayRef());
  if (auto boolean = dyn_cast<BoolAttr>(attribute))
    return boolean.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getInt();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto string = dyn_cast<StringAttr>(attribute))
    return string.str();
  return llvm::formatv("{0}", attribute).str();
}

using SourceLine = std::tuple<StringRef, int64_t, StringRef>; // file, line, function

/// The user's lines in `loc`; the importer writes them as function(file:line).
static void collectLines(Location loc, StringRef function, llvm::SetVector<SourceLine> &lines) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return collectLines(name.getChildLoc(), name.getName(), lines);
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      collectLines(part, function, lines);
  if (auto site = dyn_cast<CallSiteLoc>(loc))
    return collectLines(site.getCallee(), function, lines);
  if (auto file = dyn_cast<FileLineColRange>(loc))
    lines.insert({file.getFilename(), file.getStartLine(), function});
}

static json::Array writeLines(Location loc) {
  llvm::SetVector<SourceLine> lines;
  collectLines(loc, "", lines);
  json::Array array;
  for (auto [file, line, function] : lines)
    array.push_back(json::Array{file, line, function});
  return array;
}

//===----------------------------------------------------------------------===//
// Tensors and calls
//===----------------------------------------------------------------------===//

static json::Object writeTensor(TypeAttr type) {
  abi::TensorInfo info = abi::describe(cast<RankedTensorType>(type.getValue()));
  return json::Object{{"dtype", info.dtypeName},
                      {"shape", json::Array(info.shape)},
                      {"strides", json::Array(info.strides)}};
}

static json::Value writeAlias(const EntryIR &form, BlockArgument result) {
  if (auto argument = form.argumentAttr<IntegerAttr>(result, attr::aliasArgument))
    return json::Object{{"argument", argument.getInt()}};
  if (auto other = form.argumentAttr<IntegerAttr>(result, attr::aliasResult))
    return json::Object{{"result", other.getInt()}};
  return nullptr;
}

/// For the largest sizes, where a call's decide.
static int64_t mostSteps(scf::ForOp loop) {
  Value bound = loop.getUpperBound();
  if (auto least = bound.getDefiningOp<arith::MinSIOp>())
    bound = least.getRhs();
  return getConstantIntValue(bound).value_or(1);
}

/// How often an entry makes the call: once, or in each step of the loops around it.
static int64_t countOf(func::CallOp call) {
  int64_t count = 1;
  for (auto loop = call->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    count *= mostSteps(loop);
  return count;
}

/// flops and bytes: of all runs of the kernel by the call.
static json::Object writeKernelCall(func::CallOp call, func::FuncOp kernel) {
  Attribute schedule = kernel->getAttr(attr::schedule);
  int64_t count = countOf(call);
  return json::Object{{"kernel", kernel.getName()},
                      {"kind", stringOr(kernel, attr::kernel)},
                      {"locs", writeLines(call.getLoc())},
                      {"flops", count * integerOr(kernel, attr::flops, 0)},
                      {"bytes", count * integerOr(kernel, attr::bytes, 0)},
                      {"serial", isSerial(kernel)},
                      {"schedule", schedule ? toJson(schedule) : json::Object{}}};
}

static json::Object writeFallbackCall(func::CallOp call, func::FuncOp service, size_t number) {
  return json::Object{{"fallback", static_cast<int64_t>(number)},
                      {"target", stringOr(service, attr::target)},
                      {"locs", writeLines(call.getLoc())}};
}

//===----------------------------------------------------------------------===//
// Manifest
//===----------------------------------------------------------------------===//

static json::Object writeEntry(const EntryIR &form, ArrayRef<func::FuncOp> fallbacks) {
  json::Array arguments, bound, results, calls, asserts;
  for (BlockArgument tensor : form.tensors()) {
    json::Object object = writeTensor(form.argumentAttr<TypeAttr>(tensor, attr::type));
    auto kindAttr = form.argumentAttr<StringAttr>(tensor, attr::kind);
    StringRef kind = kindAttr ? kindAttr.getValue() : "input";
    auto name = form.argumentAttr<StringAttr>(tensor, attr::name);
    object["kind"] = kind;
    if (kind == "result") {
      object["alias"] = writeAlias(form, tensor);
      results.push_back(std::move(object));
      continue;
    }
    object["name"] = name ? name.str() : llvm::formatv("argument {0}", tensor.getArgNumber()).str();
    (kind == "bound" ? bound : arguments).push_back(std::move(object));
  }
  auto entry = form.function();
  auto module = entry->getParentOfType<ModuleOp>();
  entry.walk([&](func::CallOp call) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    StringRef service = serviceOf(callee);
    if (service.empty())
      calls.push_back(writeKernelCall(call, callee));
    else if (service == "fallback")
      calls.push_back(
          writeFallbackCall(call, callee, llvm::find(fallbacks, callee) - fallbacks.begin()));
    else if (service == "assert")
      asserts.push_back(stringOr(callee, attr::message));
  });
  return json::Object{{"arguments", std::move(arguments)},
                      {"bound", std::move(bound)},
                      {"results", std::move(results)},
                      {"arena_bytes", integerOr(entry, attr::arenaBytes, 0)},
                      {"liveness_bound", integerOr(entry, attr::livenessBound, 0)},
                      {"calls", std::move(calls)},
                      {"asserts", std::move(asserts)}};
}

static json::Object writeFallback(func::FuncOp service) {
  json::Array inputs, outputs;
  int64_t numInputs = integerOr(service, attr::numInputs, 0);
  for (unsigned i = 0; i < service.getNumArguments(); ++i)
    (i < numInputs ? inputs : outputs)
        .push_back(writeTensor(service.getArgAttrOfType<TypeAttr>(i, attr::type)));
  return json::Object{{"target", stringOr(service, attr::target)},
                      {"arguments", stringOr(service, attr::arguments)},
                      {"inputs", std::move(inputs)},
                      {"outputs", std::move(outputs)}};
}

SmallVector<func::FuncOp> weft::fallbacksOf(ModuleOp module) {
  return llvm::filter_to_vector(module.getOps<func::FuncOp>(), [](func::FuncOp function) {
    return serviceOf(function) == "fallback";
  });
}

std::string weft::writeManifest(ModuleOp module) {
  SmallVector<func::FuncOp> fallbacks = fallbacksOf(module);
  json::Object entries;
  for (func::FuncOp entry : entriesOf(module))
    entries[stringifyEntryRole(*roleOf(entry))] = writeEntry(EntryIR(entry), fallbacks);
  Attribute features = module->getAttr(attr::cpuFeatures);
  json::Value manifest = json::Object{{"weft", WEFT_VERSION},
                                      {"abi", WEFT_ABI_VERSION},
                                      {"llvm", LLVM_VERSION_STRING},
                                      {"cpu_features", features ? toJson(features) : json::Array{}},
                                      {"threads_hint", integerOr(module, attr::threads, 1)},
                                      {"entries", std::move(entries)},
                                      {"fallbacks", writeAll(ArrayRef(fallbacks), writeFallback)}};
  return llvm::formatv("{0}", manifest).str();
}
