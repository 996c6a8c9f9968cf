// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Driver/Training.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/EntryRole.h"
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
  SmallVector<int64_t> groups;
  int64_t segment = 0;
  if (StringRef rest = role; rest.consume_front("segment ")) {
    auto [number, list] = rest.split(" by ");
    llvm::Expected<SmallVector<int64_t>> numbers = parseNumbers(list);
    if (!numbers)
      return numbers.takeError();
    groups = std::move(*numbers);
    if (groups.empty() || number.getAsInteger(10, segment) || segment < 0 ||
        segment > *llvm::max_element(groups) || *llvm::min_element(groups) < 0)
      return llvm::createStringError("expected role 'segment' with one by the segment of each "
                                     "gradient, found '" +
                                     role + "'");
    role = "backward";
  }
  auto [name, ofName] = role.split(" of ");
  auto of = llvm::StringSwitch<std::optional<TrainingHalf>>(ofName)
                .Case("forward", TrainingHalf::Forward)
                .Case("backward", TrainingHalf::Backward)
                .Default(std::nullopt);
  auto part = llvm::StringSwitch<std::optional<TrainingPart>>(name)
                  .Case("", TrainingPart::None)
                  .Case("forward", TrainingPart::Forward)
                  .Case("backward", TrainingPart::Backward)
                  .Case("step", TrainingPart::Step)
                  .Default(std::nullopt);
  bool isOfHalf = name.size() < role.size();
  if (!part || (isOfHalf && (!of || part == TrainingPart::None || part == TrainingPart::Step)))
    return llvm::createStringError("expected role forward, backward or step, or a half of one, "
                                   "found '" +
                                   role + "'");
  SmallVector<StringRef> inputs, outputs;
  wrt.split(inputs, ';');
  differentiated.split(outputs, ';');
  if (inputs.size() != outputs.size())
    return llvm::createStringError("expected wrt and differentiated of as many derivatives, found "
                                   "'%s' and '%s'",
                                   wrt.str().c_str(), differentiated.str().c_str());
  if (isOfHalf && inputs.size() != 2)
    return llvm::createStringError("expected 2 derivatives for role '" + role + "', found " +
                                   Twine(inputs.size()));
  TrainingOptions options{*part, of, {}, memoryBudget, std::move(groups), segment};
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

static void addDerivative(PassManager &manager, const TrainingOptions::Derivative &derivative,
                          bool alone) {
  DifferentiateOptions differentiate;
  differentiate.wrt.assign(derivative.wrt.begin(), derivative.wrt.end());
  differentiate.of.assign(derivative.results.begin(), derivative.results.end());
  differentiate.alone = alone;
  manager.addPass(createDifferentiate(std::move(differentiate)));
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

/// Leaves of the results of @main those that have cotangents in `derivative`, in their order.
static LogicalResult keepDifferentiated(ModuleOp module, TrainingOptions::Derivative &derivative) {
  func::FuncOp entry = entryOf(module, EntryRole::main);
  Operation *end = entry.getBody().front().getTerminator();
  SmallVector<Value> kept;
  for (int64_t number : derivative.results) {
    if (number < 0 || number >= static_cast<int64_t>(end->getNumOperands()))
      return entry.emitError() << "expected results below " << end->getNumOperands() << ", found "
                               << number;
    kept.push_back(end->getOperand(number));
  }
  end->setOperands(kept);
  entry.setFunctionType(FunctionType::get(module.getContext(), entry.getArgumentTypes(),
                                          TypeRange(ValueRange(kept))));
  derivative.results = llvm::to_vector(llvm::seq<int64_t>(kept.size()));
  return success();
}

/// The results of `forward` that `backward` reads, of the graph or after these what is saved.
static SmallVector<int64_t> resultsRead(func::FuncOp backward, int64_t graphResults) {
  SmallVector<int64_t> read;
  for (unsigned number : llvm::seq(backward.getNumArguments())) {
    auto [kind, index] =
        backward.getArgAttrOfType<StringAttr>(number, attr::name).getValue().split(' ');
    int64_t result = 0;
    if ((kind == "result" || kind == "saved") && !index.getAsInteger(10, result))
      read.push_back(kind == "saved" ? graphResults + result : result);
  }
  return read;
}

/// Trains the graph as far as to leave the half that is trained in turn as @main, and of the
/// derivatives the one of that half. Gives what the backward has of the forward's results.
static FailureOr<SmallVector<int64_t>> makeHalf(ModuleOp module, TrainingOptions &options) {
  int64_t results = entryOf(module, EntryRole::main).getNumResults();
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  addDerivative(manager, options.derivatives.front(), /*alone=*/false);
  PartitionOptions partition;
  partition.budget = options.memoryBudget;
  manager.addPass(createPartition(partition));
  if (failed(manager.run(module)))
    return failure();
  options.derivatives.erase(options.derivatives.begin());
  func::FuncOp forward = entryOf(module, EntryRole::forward);
  func::FuncOp backward = entryOf(module, EntryRole::backward);
  SmallVector<int64_t> read = resultsRead(backward, results);
  bool isForward = options.of == TrainingHalf::Forward;
  (isForward ? backward : forward).erase();
  makeEntry(isForward ? forward : backward, EntryRole::main);
  if (!isForward && failed(keepDifferentiated(module, options.derivatives.front())))
    return failure();
  return read;
}

LogicalResult weft::makeTraining(ModuleOp module, TrainingOptions options, StringRef stage) {
  PassManager before(module.getContext(), ModuleOp::getOperationName());
  before.addPass(createInlineCalls(InlineCallsOptions{/*primitives=*/true}));
  // Steps are found in the graph as it was traced; what has left them is differentiated once.
  before.addNestedPass<func::FuncOp>(createRollLoops());
  before.addNestedPass<func::FuncOp>(createBatchSteps());
  if (failed(before.run(module)))
    return failure();
  FailureOr<SmallVector<int64_t>> given = SmallVector<int64_t>();
  if (options.of && failed(given = makeHalf(module, options)))
    return failure();
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  for (const TrainingOptions::Derivative &each : options.derivatives)
    addDerivative(manager, each, /*alone=*/&each != &options.derivatives.back());
  if (options.part == TrainingPart::Step && stage != "joint") {
    manager.addPass(createFormStep());
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
  } else if (stage != "joint") {
    PartitionOptions partition;
    partition.half = halfAt(stage, options.part);
    partition.budget = options.of ? -1 : options.memoryBudget;
    // The forward half has run already, with what it saves.
    if (options.of == TrainingHalf::Forward)
      partition.given.assign(given->begin(), given->end());
    manager.addPass(createPartition(partition));
    if (!options.groups.empty() && partition.half == TrainingHalf::Backward) {
      SegmentBackwardOptions segment;
      segment.groups.assign(options.groups.begin(), options.groups.end());
      const SmallVector<int64_t> &wrt = options.derivatives.front().wrt;
      segment.wrt.assign(wrt.begin(), wrt.end());
      segment.segment = options.segment;
      manager.addPass(createSegmentBackward(std::move(segment)));
    }
  }
  return manager.run(module);
}
