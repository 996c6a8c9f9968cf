// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Evaluating ops on constants. Constants hold logical elements in row-major order,
// whatever their layout. Large ones are left alone: copies of them would fill the program.
#ifndef WEFT_COMPILER_GRAPH_CONSTANTFOLDING_H
#define WEFT_COMPILER_GRAPH_CONSTANTFOLDING_H

#include "compiler/Graph/Graph.h"
#include "mlir/IR/BuiltinAttributes.h"

#include <optional>

namespace weft {

/// Constants with more elements than this fold only when they are splats.
inline constexpr int64_t maxFoldedElements = 4096;

/// `attribute` as a constant that is worth evaluating, or null.
mlir::DenseElementsAttr foldable(mlir::Attribute attribute);

/// bool and u8 compare, divide and widen as unsigned numbers.
bool isUnsigned(mlir::Type element);

/// Whether `attribute` is a splat of the integer `value`; all ones for -1.
bool isIntSplat(mlir::Attribute attribute, int64_t value);
/// Whether `attribute` is a splat of the float `value`, of the same sign if zero.
bool isFloatSplat(mlir::Attribute attribute, double value);

/// A splat of the integer `value`.
mlir::DenseElementsAttr intSplat(mlir::RankedTensorType type, int64_t value);

/// The constant of `type` whose elements are `compute` of the elements of `operands`, or
/// null when one of them cannot be computed. From is how elements are read, To what
/// `compute` answers, both llvm::APInt or llvm::APFloat.
template <typename From, typename To, typename Compute>
mlir::DenseElementsAttr foldElements(mlir::RankedTensorType type,
                                     llvm::ArrayRef<mlir::DenseElementsAttr> operands,
                                     Compute compute) {
  bool splats = llvm::all_of(operands, [](auto operand) { return operand.isSplat(); });
  int64_t count = splats ? 1 : type.getNumElements();
  llvm::SmallVector<To> elements;
  for (int64_t index = 0; index < count; ++index) {
    llvm::SmallVector<From, 2> inputs;
    for (mlir::DenseElementsAttr operand : operands)
      inputs.push_back(operand.isSplat() ? operand.getSplatValue<From>()
                                         : *(operand.value_begin<From>() + index));
    std::optional<To> element = compute(inputs);
    if (!element)
      return {};
    elements.push_back(*element);
  }
  return mlir::DenseElementsAttr::get(type, elements);
}

/// The constant of `type` whose element at row-major place i is that of `operand` at
/// place `source(index of i)`, or null when it would be too large.
mlir::DenseElementsAttr foldMove(mlir::RankedTensorType type, mlir::Attribute operand,
                                 llvm::function_ref<int64_t(llvm::ArrayRef<int64_t>)> source);

} // namespace weft

#endif
