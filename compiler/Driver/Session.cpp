// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The life of a session's module: from text or a graph, through passes and stages, to code.
#include "compiler/Driver/Session.h"
#include "compiler/Driver/CodeGen.h"
#include "compiler/Driver/Compile.h"
#include "compiler/Driver/Diagnostics.h"
#include "compiler/Driver/GraphImport.h"
#include "compiler/Driver/ModuleText.h"
#include "compiler/Driver/PassesLeftOut.h"
#include "compiler/Driver/RemarkLog.h"
#include "compiler/Driver/SessionState.h"
#include "compiler/Driver/StageRunner.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "runtime/Abi.h"

using namespace mlir;
using namespace weft;
using namespace weft::api;

namespace {

/// A context works on one thread, so that a process that forks has no others, but while one of
/// these lives.
class Threads {
public:
  explicit Threads(MLIRContext &context) : context(context) { context.enableMultithreading(); }
  ~Threads() { context.disableMultithreading(); }

private:
  MLIRContext &context;
};

} // namespace

static std::shared_ptr<MLIRContext> makeContext() {
  static const bool registered = (registerPasses(), true);
  (void)registered;
  DialectRegistry registry;
  registerDialects(registry);
  auto context = std::make_shared<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadDialect<WeftDialect, func::FuncDialect>();
  context->printOpOnDiagnostic(false);
  return context;
}

Session::Session(std::unique_ptr<State> state) : state(std::move(state)) {}
Session::~Session() = default;

std::unique_ptr<Session> Session::create(Fault &) {
  auto state = std::make_unique<State>(makeContext());
  state->module = ModuleOp::create(UnknownLoc::get(state->context.get()));
  return std::unique_ptr<Session>(new Session(std::move(state)));
}

std::unique_ptr<Session> Session::parse(Fault &fault, const std::string &text,
                                        const std::string &name) {
  auto state = std::make_unique<State>(makeContext());
  {
    ScopedDiagnosticHandler handler(state->context.get(), [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != DiagnosticSeverity::Error || fault)
        return success(bool(fault));
      fault = {Fault::Kind::Syntax, diagnostic.str()};
      if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>()) {
        fault.line = place.getLine();
        fault.column = place.getColumn();
      }
      return success();
    });
    state->module = parseModule(text, *state->context, name);
  }
  if (!state->module && !fault)
    fault = {Fault::Kind::Syntax, "expected a module"};
  if (fault)
    return nullptr;
  return std::unique_ptr<Session>(new Session(std::move(state)));
}

std::unique_ptr<Session> Session::importGraph(Fault &fault, std::string_view json) {
  auto state = std::make_unique<State>(makeContext());
  DiagnosticLog log(*state->context);
  state->module = weft::importGraph(json, *state->context);
  if (!state->module) {
    fault = {Fault::Kind::Failed, log.text};
    return nullptr;
  }
  return std::unique_ptr<Session>(new Session(std::move(state)));
}

std::unique_ptr<Session> Session::clone(Fault &) {
  auto copy = std::make_unique<State>(state->context);
  copy->module = state->module->clone();
  copy->remarks = state->remarks;
  return std::unique_ptr<Session>(new Session(std::move(copy)));
}

std::unique_ptr<Session> Session::lower(Fault &fault, const std::string &from,
                                        const std::string &to, const Options &options) {
  llvm::Expected<StageSettings> settings = resolveSettings(optionsOf(options));
  if (!settings) {
    fault = {Fault::Kind::Refused, llvm::toString(settings.takeError())};
    return nullptr;
  }
  verify(fault); // passes trust what they are given
  if (fault)
    return nullptr;
  std::unique_ptr<Session> lowered = clone(fault);
  DiagnosticLog log(*state->context);
  Threads threads(*state->context);
  StageRunner::Timings seconds;
  ModuleOp module = *lowered->state->module;
  RemarkLog remarks(*state->context, lowered->state->remarks);
  PassesLeftOut leftOut(*state->context, settings->without);
  StageRunner runner(std::move(*settings), seconds);
  if (succeeded(prepareEntry(module)) && succeeded(runner.run(module, to, from)))
    return lowered;
  fault = {Fault::Kind::Failed, log.text};
  return nullptr;
}

static std::string printWithLocations(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, OpPrintingFlags().enableDebugInfo());
  return text;
}

/// In a context of its own, by way of text, as any caller of the compiler does.
Outcome Session::compile(const std::string &from, const std::string &outputPath,
                         const Options &options, const std::atomic<bool> &cancelled) {
  return api::compile(printWithLocations(*state->module), outputPath, options, cancelled, from);
}

std::string Session::assembly(Fault &fault, const std::string &from, const Options &options) {
  std::unique_ptr<Session> lowered = lower(fault, from, stages().back().name.str(), options);
  if (!lowered)
    return "";
  DiagnosticLog log(*state->context);
  Threads threads(*state->context);
  TargetInfo target = llvm::cantFail(resolveSettings(optionsOf(options))).target; // as lower found
  FailureOr<std::vector<ObjectCode>> parts =
      generateCode(*lowered->state->module, target, WEFT_ARTIFACT_SYMBOL, nullptr,
                   llvm::CodeGenFileType::AssemblyFile);
  if (failed(parts)) {
    fault = {Fault::Kind::Failed, log.text};
    return "";
  }
  std::string text;
  for (const ObjectCode &part : *parts)
    text.append(part.bytes.begin(), part.bytes.end());
  return text;
}

std::string Session::print(Fault &fault, Handle handle, const PrintOptions &options) {
  Operation *op = state->handles.op(fault, handle);
  if (!op)
    return "";
  OpPrintingFlags flags;
  flags.enableDebugInfo(options.locations);
  if (options.mostElements >= 0)
    flags.elideLargeElementsAttrs(options.mostElements);
  if (op != state->module->getOperation())
    flags.useLocalScope();
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, flags);
  return text;
}

std::string Session::structure(Fault &) {
  OwningOpRef<ModuleOp> copy = state->module->clone();
  for (auto function : copy->getOps<func::FuncOp>())
    for (unsigned number = 0; number < function.getNumArguments(); ++number)
      for (StringRef name : {attr::name, attr::kind})
        function.removeArgAttr(number, name);
  std::string text;
  llvm::raw_string_ostream stream(text);
  copy->print(stream);
  return text;
}

/// The first op that uses a value where it is not defined.
static std::optional<StringRef> nameOfInvalid(ModuleOp module) {
  DominanceInfo dominance(module);
  std::optional<StringRef> name;
  module.walk([&](Operation *op) {
    bool invalid = llvm::any_of(op->getOperands(), [&](Value operand) {
      return !dominance.properlyDominates(operand, op);
    });
    if (!invalid)
      return WalkResult::advance();
    name = op->getName().getStringRef();
    return WalkResult::interrupt();
  });
  return name;
}

void Session::verify(Fault &fault) {
  DiagnosticLog log(*state->context);
  if (succeeded(mlir::verify(*state->module)))
    return;
  fault = {Fault::Kind::Invalid, log.text};
  // The verifier names no op where a value is used before its definition.
  if (!StringRef(fault.text).contains("' op "))
    if (std::optional<StringRef> name = nameOfInvalid(*state->module))
      fault.text += "\nnote: the op is '" + name->str() + "'";
}

/// The parts of "a,b(c,d),e{x=1 y=2}" between the outer commas.
static std::vector<std::string> splitPipeline(StringRef text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char character : text) {
    depth += StringRef("({[<").contains(character);
    depth -= StringRef(")}]>").contains(character);
    if (character == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back().push_back(character);
  }
  return parts;
}

/// Adds what `pipeline` names to `pm`, passes over functions within an implied `func.func`.
static LogicalResult addPasses(StringRef pipeline, OpPassManager &pm, llvm::raw_ostream &messages) {
  for (const std::string &part : splitPipeline(pipeline)) {
    std::string ignored;
    llvm::raw_string_ostream silent(ignored);
    OpPassManager probe(ModuleOp::getOperationName());
    std::string nested = "func.func(" + part + ")";
    bool isOverFunctions = failed(parsePassPipeline(part, probe, silent)) &&
                           succeeded(parsePassPipeline(nested, probe, silent));
    if (failed(parsePassPipeline(isOverFunctions ? nested : part, pm, messages)))
      return failure();
  }
  return success();
}

void Session::runPasses(Fault &fault, const std::string &pipeline) {
  verify(fault); // passes trust what they are given
  if (fault)
    return;
  DiagnosticLog log(*state->context);
  Threads threads(*state->context);
  std::string message;
  llvm::raw_string_ostream messages(message);
  PassManager pm(state->context.get(), ModuleOp::getOperationName());
  if (failed(addPasses(pipeline, pm, messages))) {
    fault = {Fault::Kind::Refused, message};
    return;
  }
  std::string cause = "the module was rewritten by '" + pipeline + "'";
  remember(fault);
  RemarkLog remarks(*state->context, state->remarks);
  state->handles.expire(*state->module, cause);
  if (failed(pm.run(*state->module))) {
    restore(fault, cause + ", which failed");
    fault = {Fault::Kind::Failed, log.text};
    return;
  }
  forget(fault);
}

std::vector<Remark> Session::remarks() const { return state->remarks; }

void Session::remember(Fault &) {
  IRMapping mapping;
  OwningOpRef<ModuleOp> copy = cast<ModuleOp>(state->module->getOperation()->clone(mapping));
  HandleTable::Record handles = state->handles.mapped(mapping);
  state->memories.push_back({std::move(copy), std::move(handles)});
}

void Session::restore(Fault &fault, const std::string &reason) {
  if (state->memories.empty()) {
    fault = {Fault::Kind::Refused, "expected a module that was remembered"};
    return;
  }
  Memory memory = std::move(state->memories.back());
  state->memories.pop_back();
  state->handles.rewind(std::move(memory.handles), reason);
  state->module = std::move(memory.module);
}

void Session::forget(Fault &fault) {
  if (state->memories.empty())
    fault = {Fault::Kind::Refused, "expected a module that was remembered"};
  else
    state->memories.pop_back();
}

std::vector<std::string> api::stagePasses(Fault &fault, const std::string &stage,
                                          const Options &options) {
  llvm::Expected<StageSettings> settings = resolveSettings(optionsOf(options));
  llvm::Expected<ArrayRef<Stage>> upTo = stagesBetween(stages().front().name, stage);
  llvm::Error error = llvm::joinErrors(settings.takeError(), upTo.takeError());
  if (error || upTo->empty()) {
    std::string reason =
        error ? llvm::toString(std::move(error)) : "expected a stage after 'graph'";
    fault = {Fault::Kind::Refused, std::move(reason)};
    return {};
  }
  std::shared_ptr<MLIRContext> context = makeContext();
  PassManager pm(context.get(), ModuleOp::getOperationName());
  upTo->back().build(pm, *settings);
  std::string text;
  llvm::raw_string_ostream stream(text);
  pm.printAsTextualPipeline(stream);
  StringRef inner = text;
  inner.consume_front("builtin.module(");
  inner.consume_back(")");
  return splitPipeline(inner);
}

std::vector<std::string> api::stageNames() {
  std::vector<std::string> names;
  for (const Stage &stage : stages())
    names.push_back(stage.name.str());
  return names;
}
