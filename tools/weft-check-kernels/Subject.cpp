// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Subject.h"
#include "compiler/Driver/ModuleText.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace weft;

bool check::hasKernels(ModuleOp module) {
  return llvm::any_of(module.getOps<func::FuncOp>(),
                      [](func::FuncOp function) { return function->hasAttr(attr::kernel); });
}

LogicalResult check::addEntry(ModuleOp module) {
  if (module.lookupSymbol("main"))
    return prepareEntry(module);
  SmallVector<func::FuncOp> functions;
  SmallVector<Type> inputs, results;
  SmallVector<std::string> names;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() || function->hasAttr(attr::step))
      continue;
    functions.push_back(function);
    llvm::append_range(inputs, function.getArgumentTypes());
    llvm::append_range(results, function.getResultTypes());
    for (unsigned number = 0; number < function.getNumArguments(); ++number)
      names.push_back((function.getName() + "." + Twine(number)).str());
  }
  if (functions.empty())
    return module.emitError("expected a function with a body");

  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  Location loc = functions.front().getLoc();
  auto entry = func::FuncOp::create(builder, loc, "main", builder.getFunctionType(inputs, results));
  for (auto [number, name] : llvm::enumerate(names))
    entry.setArgAttr(number, attr::name, builder.getStringAttr(name));
  builder.setInsertionPointToStart(entry.addEntryBlock());
  ValueRange arguments = entry.getArguments();
  SmallVector<Value> returned;
  for (func::FuncOp function : functions) {
    function.setPrivate();
    auto call = func::CallOp::create(builder, function.getLoc(), function,
                                     arguments.take_front(function.getNumArguments()));
    arguments = arguments.drop_front(function.getNumArguments());
    llvm::append_range(returned, call.getResults());
  }
  func::ReturnOp::create(builder, loc, returned);
  return prepareEntry(module);
}

SmallVector<std::string> check::resultNames(ModuleOp module) {
  auto entry = module.lookupSymbol<func::FuncOp>("main");
  SmallVector<std::string> names;
  for (auto [number, value] : llvm::enumerate(entry.front().getTerminator()->getOperands())) {
    auto call = value.getDefiningOp<func::CallOp>();
    StringRef function = call ? call.getCallee() : "main";
    size_t index = call ? cast<OpResult>(value).getResultNumber() : number;
    names.push_back((function + ": result " + Twine(index)).str());
  }
  return names;
}

/// A field's value from its text: a number, a list of them, or a name.
static Attribute parseValue(StringRef text, Builder &builder) {
  int64_t number;
  if (!text.getAsInteger(10, number))
    return builder.getI64IntegerAttr(number);
  if (!text.consume_front("["))
    return builder.getStringAttr(text);
  SmallVector<int64_t> numbers;
  SmallVector<StringRef> parts;
  text.rtrim(']').split(parts, ',', -1, false);
  for (StringRef part : parts) {
    if (part.trim().getAsInteger(10, number))
      return nullptr;
    numbers.push_back(number);
  }
  return builder.getDenseI64ArrayAttr(numbers);
}

static LogicalResult setField(ModuleOp module, StringRef setting) {
  auto [place, text] = setting.split('=');
  auto [kernel, field] = place.rsplit('.');
  auto function = module.lookupSymbol<func::FuncOp>(kernel);
  auto schedule = function ? function->getAttrOfType<ScheduleAttr>(attr::schedule) : nullptr;
  Builder builder(module.getContext());
  Attribute value = parseValue(text, builder);
  if (!schedule || !value)
    return module.emitError("expected kernel.field=value of a kernel with a schedule, found '")
           << setting << "'";
  SmallVector<DictionaryAttr> parts;
  for (DictionaryAttr part : schedule.getParts()) {
    NamedAttrList fields(part);
    fields.set(field, value);
    parts.push_back(fields.getDictionary(module.getContext()));
  }
  auto emitError = [&] { return function.emitError(); };
  // Arguments of these very types, as the base class has a template for all others.
  auto changed = ScheduleAttr::getChecked(llvm::function_ref<InFlightDiagnostic()>(emitError),
                                          module.getContext(), schedule.getEmitter(),
                                          schedule.getSerial(), ArrayRef<DictionaryAttr>(parts));
  if (!changed)
    return failure();
  function->setAttr(attr::schedule, changed);
  return success();
}

LogicalResult check::setFields(ModuleOp module, ArrayRef<std::string> settings) {
  for (StringRef setting : settings)
    if (failed(setField(module, setting)))
      return failure();
  return success();
}

void check::printEmitters(ModuleOp module, raw_ostream &stream) {
  for (auto function : module.getOps<func::FuncOp>())
    if (auto schedule = function->getAttrOfType<ScheduleAttr>(attr::schedule))
      stream << function.getName() << ": " << schedule.getEmitter().getValue() << "\n";
}
