// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/ContractionMatch.h"
#include "compiler/Graph/AttributeNames.h"

using namespace mlir;
using namespace weft;

FailureOr<ContractionMatch> ContractionMatch::of(linalg::GenericOp generic, func::FuncOp kernel,
                                                 const TargetInfo &target) {
  ContractionMatch match(generic);
  FailureOr<ContractionShape> shape = ContractionShape::match(generic, match.space);
  if (failed(shape))
    return failure();
  match.shape = *shape;
  Type element = getElementTypeOrSelf(generic.getResultTypes().front());
  FailureOr<ContractionRoles> roles = ContractionRoles::choose(
      match.shape, match.space, target.lanes(element.getIntOrFloatBitWidth()));
  if (failed(roles))
    return failure();
  match.roles = *roles;
  ValueRange kernelRoots = rootsOf(kernel);
  auto roots =
      epilogueRoots(kernelRoots, generic->getResult(0), match.shape.resultIndex, match.space);
  if (failed(roots))
    return failure();
  match.roots = *roots;
  for (auto [number, root] : llvm::enumerate(match.roots))
    if (!match.spillRoot && getElementTypeOrSelf(kernelRoots[root.number].getType()) == element)
      match.spillRoot = number;
  match.problem = ContractionProblem::of(match.shape, match.roles, match.space, element);
  match.problem.canSpill = match.spillRoot.has_value();
  match.problem.transcendental = llvm::any_of(match.roots, [&](const EpilogueRoot &root) {
    return isTranscendental(kernelRoots[root.number], generic);
  });
  match.problem.coldVectors = kernel->hasAttr(attr::coldWeights);
  return match;
}
