// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Driver/Training.h"
#include "compiler/Autodiff/Passes.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSwitch.h"

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
                                                       StringRef differentiated,
                                                       double memoryBudget) {
  auto part = llvm::StringSwitch<std::optional<TrainingPart>>(role)
                  .Case("", TrainingPart::None)
                  .Case("forward", TrainingPart::Forward)
                  .Case("backward", TrainingPart::Backward)
                  .Case("step", TrainingPart::Step)
                  .Default(std::nullopt);
  if (!part)
    return llvm::createStringError("expected role forward, backward or step, found '" + role + "'");
  SmallVector<StringRef> inputs, outputs;
  wrt.split(inputs, ';');
  differentiated.split(outputs, ';');
  if (inputs.size() != outputs.size())
    return llvm::createStringError("expected wrt and differentiated of as many derivatives, found "
                                   "'%s' and '%s'",
                                   wrt.str().c_str(), differentiated.str().c_str());
  TrainingOptions options{*part, {}, memoryBudget};
  for (auto [of, given] : llvm::zip_equal(inputs, outputs)) {
    llvm::Expected<SmallVector<int64_t>> numbers = parseNumbers(of);
    if (!numbers)
      return numbers.takeError();
    llvm::Expected<SmallVector<int64_t>> results = parseNumbers(given);
    if (!results)
      return results.takeError();
    options.derivatives.push_back({std::move(*numbers), std::move(*results)});
  }
  return options;
}

bool weft::isTrainingStage(StringRef stage) { return stage == "joint" || stage == "partitioned"; }

/// At the stage `partitioned` both can be looked at.
static TrainingHalf halfAt(StringRef stage, TrainingPart part) {
  if (isTrainingStage(stage))
    return TrainingHalf::Both;
  return part == TrainingPart::Forward ? TrainingHalf::Forward : TrainingHalf::Backward;
}

LogicalResult weft::makeTraining(ModuleOp module, const TrainingOptions &options, StringRef stage) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  manager.addPass(createInlineCalls(InlineCallsOptions{/*primitives=*/true}));
  // Steps are found in the graph as it was traced; what has left them is differentiated once.
  manager.addNestedPass<func::FuncOp>(createRollLoops());
  manager.addNestedPass<func::FuncOp>(createBatchSteps());
  for (const TrainingOptions::Derivative &each : options.derivatives) {
    DifferentiateOptions differentiate;
    differentiate.wrt.assign(each.wrt.begin(), each.wrt.end());
    differentiate.of.assign(each.results.begin(), each.results.end());
    differentiate.alone = &each != &options.derivatives.back();
    manager.addPass(createDifferentiate(std::move(differentiate)));
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
  }
  if (options.part == TrainingPart::Step && stage != "joint") {
    manager.addPass(createFormStep());
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
  } else if (stage != "joint")
    manager.addPass(createPartition({halfAt(stage, options.part), options.memoryBudget}));
  return manager.run(module);
}
