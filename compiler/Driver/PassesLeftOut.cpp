// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A switch for each pass that a program can do without.
#include "compiler/Driver/PassesLeftOut.h"
#include "compiler/Driver/Api.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace weft;

static constexpr llvm::StringLiteral fusion = "weft-fuse-kernels";

/// All others are of use to a later one, or do what was asked for.
static ArrayRef<llvm::StringLiteral> optionalNames() {
  static constexpr llvm::StringLiteral all[] = {"weft-batch-steps",
                                                "weft-dedupe-kernels",
                                                "weft-fold-batch-norm",
                                                "weft-form-attention",
                                                fusion,
                                                "weft-hoist-bind",
                                                "weft-hoist-invariants",
                                                "weft-join-pads",
                                                "weft-join-products",
                                                "weft-merge-convs",
                                                "weft-merge-matmuls",
                                                "weft-roll-loops",
                                                "weft-simplify",
                                                "weft-sink-sums",
                                                "weft-split-reductions",
                                                "weft-unroll-loops",
                                                "weft-use-winograd",
                                                "weft-widen-attention"};
  return all;
}

std::vector<std::string> api::optionalPasses() {
  return {optionalNames().begin(), optionalNames().end()};
}

llvm::Expected<llvm::StringSet<>> weft::parsePassesLeftOut(StringRef text) {
  llvm::StringSet<> found;
  SmallVector<StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    if (!llvm::is_contained(optionalNames(), part.trim()))
      return llvm::createStringError("expected passes to be left out of: " +
                                     llvm::join(optionalNames(), ", ") + "; found '" + part + "'");
    found.insert(part.trim());
  }
  return found;
}

PassesLeftOut::PassesLeftOut(MLIRContext &context, const llvm::StringSet<> &names)
    : context(context), any(!names.empty()) {
  if (!any)
    return;
  llvm::StringSet<> skipped = names;
  skipped.erase(fusion);
  context.registerActionHandler([skipped = std::move(skipped)](llvm::function_ref<void()> run,
                                                               const tracing::Action &action) {
    const auto *execution = llvm::dyn_cast<PassExecutionAction>(&action);
    if (!execution || !skipped.contains(execution->getPass().getArgument()))
      run();
  });
}

PassesLeftOut::~PassesLeftOut() {
  if (any)
    context.registerActionHandler({});
}
