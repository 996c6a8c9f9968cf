// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the files of weft-lower-to-linalg: the type converter, the pattern sets and helpers
// that build generics.
#ifndef WEFT_COMPILER_LOWERING_GRAPHTOLINALG_H
#define WEFT_COMPILER_LOWERING_GRAPHTOLINALG_H

#include "compiler/Lowering/StoredTensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/Transforms/DialectConversion.h"

namespace weft {

/// Maps logical tensor types to storage types.
class StorageTypeConverter : public mlir::TypeConverter {
public:
  StorageTypeConverter();
};

void populateElementwiseToLinalg(mlir::RewritePatternSet &patterns,
                                 const mlir::TypeConverter &converter);
void populateShapeToLinalg(mlir::RewritePatternSet &patterns, const mlir::TypeConverter &converter);
void populateSliceToLinalg(mlir::RewritePatternSet &patterns, const mlir::TypeConverter &converter);
void populateReduceToLinalg(mlir::RewritePatternSet &patterns,
                            const mlir::TypeConverter &converter);
void populateDotToLinalg(mlir::RewritePatternSet &patterns, const mlir::TypeConverter &converter);
void populateConvToLinalg(mlir::RewritePatternSet &patterns, const mlir::TypeConverter &converter);
void populateGatherToLinalg(mlir::RewritePatternSet &patterns,
                            const mlir::TypeConverter &converter);
void populateOrderToLinalg(mlir::RewritePatternSet &patterns, const mlir::TypeConverter &converter);
void populateScatterToLinalg(mlir::RewritePatternSet &patterns,
                             const mlir::TypeConverter &converter);

using BodyFn = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

/// A linalg.generic without reductions that makes a tensor of `type`: dim i of the
/// iteration is dim i of the result. The body gets the elements of `inputs` as stored.
mlir::Value parallelGeneric(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::RankedTensorType type, mlir::ValueRange inputs,
                            llvm::ArrayRef<mlir::AffineMap> inputMaps, BodyFn body);

/// A linalg.generic that folds elements into a tensor of `type` filled with `identity`:
/// the last map is the result's, and the dims that it lacks are reduced. The body gets the
/// elements of `inputs` as stored, then the accumulator.
mlir::Value reducingGeneric(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::RankedTensorType type, mlir::TypedAttr identity,
                            mlir::ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> maps,
                            BodyFn body);

/// A tensor of `type` filled with `value`.
mlir::Value filled(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                   mlir::TypedAttr value);

/// (d0, ..., dn) -> (d0, ..., dk) with k < n, down to no results at all, where
/// AffineMap::getMajorSubMap returns a null map.
mlir::AffineMap leadingDims(mlir::Builder &builder, unsigned dims, unsigned results);

/// Parallel where `result` uses a dim, reduction elsewhere.
llvm::SmallVector<mlir::utils::IteratorType> iteratorsFor(mlir::AffineMap result);

/// `value` with its elements rounded to `element`; itself if they have that type already.
mlir::Value narrowed(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                     mlir::Type element);

/// In the body of a generic whose dims are those of `layout`: the logical index along `dim`.
/// In the padding of a tile it exceeds the size.
mlir::Value logicalIndex(mlir::OpBuilder &body, mlir::Location loc, const Layout &layout,
                         int64_t dim);

} // namespace weft

#endif
