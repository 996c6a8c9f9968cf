// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the stages over one module, with dumps, timings and a reproducer when a pass fails.
#include "compiler/Driver/StageRunner.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace mlir;
using namespace weft;

StageRunner::StageRunner(StageSettings settings, Timings &seconds,
                         const std::atomic<bool> *cancelled)
    : settings(std::move(settings)), seconds(seconds),
      dumpFolder(llvm::sys::Process::GetEnv("WEFT_DUMP").value_or("")),
      verifyEachPass(llvm::sys::Process::GetEnv("WEFT_VERIFY").value_or("0") != "0"),
      cancelled(cancelled) {}

LogicalResult StageRunner::run(ModuleOp module, StringRef last, StringRef first) {
  llvm::Expected<ArrayRef<Stage>> remaining = stagesBetween(first, last);
  if (!remaining)
    return emitError(module.getLoc()) << llvm::toString(remaining.takeError());
  if (failed(dump(module, *(remaining->begin() - 1))))
    return failure();
  OwningOpRef<ModuleOp> before = module.clone(); // a failed pass leaves anything behind
  for (const Stage &stage : *remaining) {
    if (cancelled && *cancelled)
      return emitError(module.getLoc()) << "cancelled before stage '" << stage.name << "'";
    auto start = std::chrono::steady_clock::now();
    if (failed(runStage(module, stage)))
      return emitError(module.getLoc())
             << "cannot reach stage '" << stage.name
             << "'; to reproduce: " << reproduce(*before, remaining->begin(), stage);
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    seconds.emplace_back(stage.name, elapsed.count());
    if (failed(dump(module, stage)))
      return failure();
  }
  return success();
}

static std::unique_ptr<llvm::raw_fd_ostream> openFile(StringRef path, std::error_code &error) {
  return std::make_unique<llvm::raw_fd_ostream>(path, error, llvm::sys::fs::OF_Text);
}

/// `before` and the passes that failed on it, in the form that `weft-opt --run-reproducer`
/// takes. Returns the path, or why there is none.
static std::string writeReproducer(ModuleOp before, PassManager &pm) {
  llvm::SmallString<128> path;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("weft-reproducer", "mlir", path))
    return "no reproducer: " + error.message();
  std::error_code error;
  std::unique_ptr<llvm::raw_fd_ostream> stream = openFile(path, error);
  if (error)
    return "no reproducer: " + error.message();
  before.print(*stream, OpPrintingFlags().enableDebugInfo());
  *stream << "\n{-#\n  external_resources: {\n    mlir_reproducer: {\n      pipeline: \"";
  pm.printAsTextualPipeline(*stream);
  *stream << "\",\n      disable_threading: true,\n      verify_each: true\n    }\n  }\n#-}\n";
  return ("weft-opt --run-reproducer " + path).str();
}

LogicalResult StageRunner::runStage(ModuleOp module, const Stage &stage) const {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.enableVerifier(verifyEachPass);
  stage.build(pm, settings);
  return pm.run(module);
}

/// Brings `before` to where `failing` began, by the stages from `first` on that have succeeded
/// once, and writes that down. Returns the command that reproduces the failure.
std::string StageRunner::reproduce(ModuleOp before, const Stage *first,
                                   const Stage &failing) const {
  {
    // What these stages have to say has been said.
    ScopedDiagnosticHandler silent(before.getContext(), [](Diagnostic &) { return success(); });
    for (const Stage *stage = first; stage != &failing; ++stage)
      if (failed(runStage(before, *stage)))
        return "no reproducer: stage '" + stage->name.str() + "' fails the second time";
  }
  PassManager pm(before.getContext(), ModuleOp::getOperationName());
  failing.build(pm, settings);
  return writeReproducer(before, pm);
}

LogicalResult StageRunner::dump(ModuleOp module, const Stage &stage) const {
  if (dumpFolder.empty())
    return success();
  llvm::SmallString<128> path(dumpFolder);
  llvm::sys::path::append(
      path, llvm::formatv("{0,0+2}-{1}.mlir", &stage - stages().data(), stage.name).str());
  std::error_code error = llvm::sys::fs::create_directories(dumpFolder);
  if (!error) {
    std::unique_ptr<llvm::raw_fd_ostream> stream = openFile(path, error);
    if (!error) {
      module.print(*stream, OpPrintingFlags().enableDebugInfo());
      return success();
    }
  }
  return emitError(module.getLoc())
         << "cannot write WEFT_DUMP file '" << path << "': " << error.message();
}
