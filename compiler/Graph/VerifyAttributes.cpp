// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where each discardable attribute may stand, and of what type it is.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/EntryRole.h"
#include "compiler/Graph/StoredBools.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace weft;

namespace {

enum Holder : unsigned { OnFunction = 1, OnArgument = 2, OnResult = 4, OnModule = 8, OnOp = 16 };

/// Empty: the attribute is right; otherwise what was expected.
using Check = std::string (*)(Attribute);

struct Rule {
  StringRef name;
  unsigned holders; ///< a set
  Check check;
};

template <typename T> std::string isA(Attribute attribute, StringRef what) {
  return isa<T>(attribute) ? "" : what.str();
}

std::string isMark(Attribute attribute) { return isA<UnitAttr>(attribute, "no value"); }
/// As JSON has it, too.
std::string isTrue(Attribute attribute) {
  auto flag = dyn_cast<BoolAttr>(attribute);
  return isa<UnitAttr>(attribute) || (flag && flag.getValue()) ? "" : "no value, or true";
}
std::string isText(Attribute attribute) { return isA<StringAttr>(attribute, "a string"); }
std::string isType(Attribute attribute) { return isA<TypeAttr>(attribute, "a type"); }
std::string isNumbers(Attribute attribute) {
  return isA<DenseI64ArrayAttr>(attribute, "an array of i64");
}
std::string isSchedule(Attribute attribute) {
  return isA<ScheduleAttr>(attribute, "a #weft.schedule");
}
std::string isEntryRole(Attribute attribute) {
  return isA<EntryRoleAttr>(attribute, "a #weft.entry");
}

std::string isSymbol(Attribute attribute) {
  return isa<FlatSymbolRefAttr>(attribute) ? "" : "the name of a function";
}

std::string isTexts(Attribute attribute) {
  auto array = dyn_cast<ArrayAttr>(attribute);
  bool isRight = array && llvm::all_of(array, llvm::IsaPred<StringAttr>);
  return isRight ? "" : "an array of strings";
}

template <int64_t least> std::string isCount(Attribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute);
  bool isRight = number && number.getType().isSignlessInteger(64) && number.getInt() >= least;
  return isRight ? "" : "an i64 of at least " + std::to_string(least);
}

std::string isOneOf(Attribute attribute, ArrayRef<StringLiteral> choices) {
  auto text = dyn_cast<StringAttr>(attribute);
  if (text && llvm::is_contained(choices, text.getValue()))
    return "";
  return "one of: " + llvm::join(choices, ", ");
}
std::string isKernelKind(Attribute attribute) {
  std::string expected = isOneOf(attribute, attr::kernelKinds);
  auto kind = dyn_cast<StringAttr>(attribute);
  auto anchor = kind ? RegisteredOperationName::lookup(("weft." + kind.getValue()).str(),
                                                       attribute.getContext())
                     : std::nullopt;
  bool isWhole = anchor && anchor->hasTrait<EmittedWhole>();
  return expected.empty() || isWhole ? "" : expected + ", or an op that is emitted whole";
}
std::string isService(Attribute attribute) { return isOneOf(attribute, attr::services); }
std::string isSubgradient(Attribute attribute) { return isOneOf(attribute, attr::subgradients); }
std::string isKind(Attribute attribute) { return isOneOf(attribute, attr::kinds); }

constexpr Rule rules[] = {
    {attr::entry, OnFunction, isEntryRole},
    {attr::step, OnFunction, isMark},
    {attr::kernel, OnFunction, isKernelKind},
    {attr::service, OnFunction, isService},
    {attr::primitive, OnFunction, isTrue},
    {attr::countingSteps, OnOp, isNumbers},
    {attr::subgradient, OnOp, isSubgradient},
    {attr::stopsGradient, OnOp, isTrue},
    {attr::recompute, OnOp, isTrue},
    {attr::jointInputs, OnFunction, isCount<0>},
    {attr::jointResults, OnFunction, isCount<0>},
    {attr::jointWrt, OnFunction, isNumbers},
    {attr::jointRead, OnFunction, isNumbers},
    {attr::crossThreadReads, OnFunction, isMark},
    {attr::coldWeights, OnFunction, isMark},
    {attr::bound, OnFunction, isNumbers},
    {attr::bounds, OnArgument, isNumbers},
    {attr::bounded, OnArgument, isNumbers},
    {attr::loops, OnFunction, isSymbol},
    {attr::schedule, OnFunction, isSchedule},
    {attr::serial, OnFunction, isMark},
    {attr::flops, OnFunction, isCount<0>},
    {attr::bytes, OnFunction, isCount<0>},
    {attr::scratchBytes, OnFunction, isCount<0>},
    {attr::claims, OnFunction, isCount<1>},
    {attr::numInputs, OnFunction, isCount<0>},
    {attr::message, OnFunction, isText},
    {attr::target, OnFunction, isText},
    {attr::arguments, OnFunction, isText},
    {attr::arenaBytes, OnFunction, isCount<0>},
    {attr::livenessBound, OnFunction, isCount<0>},
    {attr::maxThreads, OnFunction, isCount<1>},
    {attr::name, OnArgument | OnResult, isText},
    {attr::kind, OnArgument | OnResult, isKind},
    {attr::type, OnArgument | OnResult, isType},
    {attr::aliasArgument, OnArgument, isCount<0>},
    {attr::aliasResult, OnArgument, isCount<0>},
    {attr::inPlace, OnArgument | OnResult, isNumbers},
    {attr::persistent, OnOp, isMark},
    {attr::padded, OnOp, isNumbers},
    {attr::storedBools, OnOp, isMark},
    {attr::cpuFeatures, OnModule, isTexts},
    {attr::threads, OnModule, isCount<1>},
};

} // namespace

/// The first of `holders`.
static StringRef textOf(unsigned holders) {
  constexpr std::pair<Holder, StringLiteral> texts[] = {{OnFunction, "a function"},
                                                        {OnArgument, "an argument"},
                                                        {OnResult, "a result"},
                                                        {OnModule, "a module"},
                                                        {OnOp, "an op"}};
  return llvm::find_if(texts, [&](const auto &text) { return text.first & holders; })->second;
}

static LogicalResult verify(Operation *op, NamedAttribute attribute, Holder holder) {
  StringRef name = attribute.getName();
  const Rule *rule = llvm::find_if(rules, [&](const Rule &each) { return each.name == name; });
  if (rule == std::end(rules))
    return op->emitError() << "unknown attribute '" << name << "'";
  if (!(rule->holders & holder))
    return op->emitError() << "expected '" << name << "' on " << textOf(rule->holders)
                           << ", found it on " << textOf(holder);
  std::string expected = rule->check(attribute.getValue());
  if (!expected.empty())
    return op->emitError() << "expected '" << name << "' to be " << expected << ", found "
                           << attribute.getValue();
  return success();
}

LogicalResult WeftDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  Holder holder = isa<FunctionOpInterface>(op) ? OnFunction : isa<ModuleOp>(op) ? OnModule : OnOp;
  return verify(op, attribute, holder);
}

LogicalResult WeftDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned,
                                                    NamedAttribute attribute) {
  return verify(op, attribute, OnArgument);
}

LogicalResult WeftDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                                       NamedAttribute attribute) {
  return verify(op, attribute, OnResult);
}
