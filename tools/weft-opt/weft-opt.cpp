// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mlir-opt for Weft: parses IR or a JSON graph, runs passes, prints. `--weft-to=STAGE` runs
// the compiler's own stages, from the one that the input is at (`--weft-from`).
#include "compiler/Driver/GraphImport.h"
#include "compiler/Driver/Stages.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

namespace cl = llvm::cl;

static cl::opt<std::string> toStage("weft-to", cl::desc("Run the compiler's stages up to this one"),
                                    cl::value_desc("stage"));
static cl::opt<std::string> fromStage("weft-from", cl::desc("The stage that the input is at"),
                                      cl::value_desc("stage"), cl::init("graph"));
static cl::opt<std::string> isa("weft-isa", cl::desc("native, avx2, avx512 or amx"),
                                cl::init("native"));
static cl::opt<int64_t> threads("weft-threads", cl::desc("Threads to compile for"),
                                cl::init(weft::TargetInfo::defaultThreads));
static cl::opt<std::string> schedule("weft-schedule",
                                     cl::desc("Fixed numbers of contractions' schedules"));

static cl::opt<std::string> precision("weft-precision",
                                      cl::desc("What contractions read: float32 or bf16"),
                                      cl::init("float32"));

static llvm::LogicalResult addStages(mlir::PassManager &pm) {
  llvm::ExitOnError exitOnError("weft-opt: ");
  weft::StageSettings settings{exitOnError(weft::TargetInfo::supposed(isa, threads)), schedule,
                               exitOnError(weft::parsePrecision(precision))};
  for (const weft::Stage &stage : exitOnError(weft::stagesBetween(fromStage, toStage)))
    stage.build(pm, settings);
  return llvm::success();
}

/// The IR of a JSON graph, with its locations. Diagnostics go to stderr.
static std::unique_ptr<llvm::MemoryBuffer> importJson(const llvm::MemoryBuffer &buffer,
                                                      const mlir::DialectRegistry &registry) {
  mlir::MLIRContext context(registry);
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  mlir::OwningOpRef<mlir::ModuleOp> module = weft::importGraph(buffer.getBuffer(), context);
  if (!module)
    return nullptr;
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  return llvm::MemoryBuffer::getMemBufferCopy(text, buffer.getBufferIdentifier());
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::DialectRegistry registry;
  weft::registerDialects(registry);
  weft::registerPasses();
  auto [inputName, outputName] =
      mlir::registerAndParseCLIOptions(argc, argv, "Weft optimizer driver\n", registry);

  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> input = mlir::openInputFile(inputName, &message);
  std::unique_ptr<llvm::ToolOutputFile> output =
      input ? mlir::openOutputFile(outputName, &message) : nullptr;
  if (!output) {
    llvm::errs() << message << "\n";
    return EXIT_FAILURE;
  }
  if (input->getBuffer().ltrim().starts_with("{\""))
    input = importJson(*input, registry);
  if (!input)
    return EXIT_FAILURE;

  mlir::MlirOptMainConfig config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (!toStage.empty())
    config.setPassPipelineSetupFn(addStages);
  if (failed(mlir::MlirOptMain(output->os(), std::move(input), registry, config)))
    return EXIT_FAILURE;
  output->keep();
  return EXIT_SUCCESS;
}
