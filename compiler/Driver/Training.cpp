// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Driver/Training.h"
#include "compiler/Autodiff/Passes.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace weft;

static llvm::Expected<SmallVector<int64_t>> parseNumbers(StringRef text) {
  SmallVector<int64_t> numbers;
  SmallVector<StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    if (part.trim().getAsInteger(10, numbers.emplace_back()))
      return llvm::createStringError("expected numbers separated by commas, found '" + text + "'");
  return numbers;
}

llvm::Expected<TrainingOptions> TrainingOptions::parse(StringRef role, StringRef wrt,
                                                       StringRef differentiated) {
  if (!role.empty() && role != "forward" && role != "backward")
    return llvm::createStringError("expected role forward or backward, found '" + role + "'");
  llvm::Expected<SmallVector<int64_t>> inputs = parseNumbers(wrt);
  if (!inputs)
    return inputs.takeError();
  llvm::Expected<SmallVector<int64_t>> outputs = parseNumbers(differentiated);
  if (!outputs)
    return outputs.takeError();
  return TrainingOptions{role.str(), std::move(*inputs), std::move(*outputs)};
}

bool weft::isTrainingStage(StringRef stage) { return stage == "joint" || stage == "partitioned"; }

LogicalResult weft::makeTraining(ModuleOp module, const TrainingOptions &options, StringRef stage) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  DifferentiateOptions differentiate;
  differentiate.wrt.assign(options.wrt.begin(), options.wrt.end());
  differentiate.of.assign(options.differentiated.begin(), options.differentiated.end());
  // Steps are found in the graph as it was traced; what has left them is differentiated once.
  manager.addNestedPass<func::FuncOp>(createRollLoops());
  manager.addNestedPass<func::FuncOp>(createBatchSteps());
  manager.addPass(createDifferentiate(std::move(differentiate)));
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  if (stage != "joint")
    manager.addPass(
        createPartition(PartitionOptions{isTrainingStage(stage) ? std::string() : options.role}));
  return manager.run(module);
}
