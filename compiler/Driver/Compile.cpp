// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A graph in, a shared object out.
#include "compiler/Driver/Compile.h"
#include "compiler/Driver/CodeGen.h"
#include "compiler/Driver/Diagnostics.h"
#include "compiler/Driver/Link.h"
#include "compiler/Driver/ModuleText.h"
#include "compiler/Driver/PassesLeftOut.h"
#include "compiler/Driver/StageRunner.h"
#include "compiler/Driver/Training.h"
#include "runtime/Abi.h"
#include "llvm/Support/Process.h"
#include <chrono>

using namespace mlir;
using namespace weft;

namespace {

/// One graph on its way. Owns the context, so that nothing outlives the call.
class Compilation {
public:
  Compilation(StageSettings settings, TrainingOptions training,
              const std::atomic<bool> *cancelled = nullptr)
      : settings(std::move(settings)), training(std::move(training)), cancelled(cancelled),
        context(makeRegistry()), log(context) {
    context.printOpOnDiagnostic(false); // users are told their line, not our IR
  }

  llvm::Error lower(StringRef graph, StringRef stage, StringRef from) {
    PassesLeftOut leftOut(context, settings.without);
    bool done = timed("graph", [&] {
      module = readModule(graph, context);
      return module && succeeded(prepareEntry(*module));
    });
    if (done && training.part != TrainingPart::None && stage != "graph") {
      done = timed("joint", [&] { return succeeded(makeTraining(*module, training, stage)); });
      if (done && isTrainingStage(stage))
        return llvm::Error::success();
    }
    StageRunner runner(settings, report.seconds, cancelled);
    return done && succeeded(runner.run(*module, stage, from)) ? llvm::Error::success() : failure();
  }

  llvm::Error emit(StringRef outputPath) {
    FailureOr<std::vector<ObjectCode>> objects;
    if (!timed("object", [&] {
          objects = generateCode(*module, settings.target, WEFT_ARTIFACT_SYMBOL, cancelled);
          return succeeded(objects);
        }))
      return failure();
    return timed("link", [&] { return linkSharedObject(*objects, outputPath); });
  }

  std::string text() {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream, OpPrintingFlags().enableDebugInfo());
    return text;
  }

  CompileReport report;

private:
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  template <typename Step> std::invoke_result_t<Step> timed(StringRef name, Step step) {
    auto start = std::chrono::steady_clock::now();
    auto result = step();
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    report.seconds.emplace_back(name, elapsed.count());
    return result;
  }

  llvm::Error failure() const { return llvm::createStringError(log.text); }

  StageSettings settings;
  TrainingOptions training;
  const std::atomic<bool> *cancelled;
  MLIRContext context;
  DiagnosticLog log;
  OwningOpRef<ModuleOp> module;
};

} // namespace

llvm::Expected<StageSettings> weft::resolveSettings(const CompileOptions &options) {
  std::string isa = llvm::sys::Process::GetEnv("WEFT_ISA").value_or(options.isa);
  if (options.threads < 1)
    return llvm::createStringError("expected at least 1 thread, found %lld",
                                   static_cast<long long>(options.threads));
  llvm::Expected<TargetInfo> target = TargetInfo::host(isa, options.threads);
  if (!target)
    return target.takeError();
  llvm::Expected<Precision> precision = parsePrecision(options.precision);
  if (!precision)
    return precision.takeError();
  if (options.level < 0 || options.level > highestLevel)
    return llvm::createStringError("expected a level from 0 to %lld, found %lld",
                                   static_cast<long long>(highestLevel),
                                   static_cast<long long>(options.level));
  llvm::Expected<llvm::StringSet<>> without = parsePassesLeftOut(options.without);
  if (!without)
    return without.takeError();
  return StageSettings{std::move(*target), options.schedule, *precision, options.level,
                       std::move(*without)};
}

namespace {
struct Resolved {
  StageSettings settings;
  TrainingOptions training;
};
} // namespace

static llvm::Expected<Resolved> resolve(const CompileOptions &options) {
  llvm::Expected<StageSettings> settings = resolveSettings(options);
  if (!settings)
    return settings.takeError();
  llvm::Expected<TrainingOptions> training = TrainingOptions::parse(
      options.role, options.wrt, options.differentiated, options.memoryBudget);
  if (!training)
    return training.takeError();
  return Resolved{std::move(*settings), std::move(*training)};
}

llvm::Expected<CompileReport> weft::compileGraph(StringRef graph, CompileOptions options,
                                                 StringRef outputPath,
                                                 const std::atomic<bool> *cancelled,
                                                 StringRef from) {
  llvm::Expected<Resolved> resolved = resolve(options);
  if (!resolved)
    return resolved.takeError();
  Compilation compilation(std::move(resolved->settings), std::move(resolved->training), cancelled);
  if (llvm::Error error = compilation.lower(graph, stages().back().name, from))
    return error;
  if (llvm::Error error = compilation.emit(outputPath))
    return error;
  return std::move(compilation.report);
}

llvm::Expected<std::string> weft::lowerGraph(StringRef graph, CompileOptions options,
                                             StringRef stage) {
  llvm::Expected<Resolved> resolved = resolve(options);
  if (!resolved)
    return resolved.takeError();
  Compilation compilation(std::move(resolved->settings), std::move(resolved->training));
  if (llvm::Error error = compilation.lower(graph, stage, stages().front().name))
    return error;
  return compilation.text();
}
