// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements of the reference: values in float64 with a bound on how far a kernel may be from them.
#ifndef WEFT_TOOLS_CHECK_KERNELS_NUMBER_H
#define WEFT_TOOLS_CHECK_KERNELS_NUMBER_H

#include "mlir/IR/BuiltinTypes.h"
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

namespace weft::check {

/// The error of a value that is not determined, such as an index found by comparing two numbers
/// that are closer than their errors.
constexpr double undetermined = std::numeric_limits<double>::infinity();

/// `real` is the value of a float type, `integer` that of an integer type or index, where i1 is 0
/// or 1 and all others are sign-extended. `error` bounds the distance from what a program computes
/// that rounds each operation to its type: a running error analysis (Higham, Accuracy and
/// Stability of Numerical Algorithms, 2nd edition, section 3.3).
struct Number {
  double real = 0;
  int64_t integer = 0;
  double error = 0;

  static Number ofReal(double real, double error = 0) { return {real, 0, error}; }
  static Number ofInteger(int64_t integer, double error = 0) { return {0, integer, error}; }
};

/// Half the distance between 1 and the next number of the float type.
double unitRoundoff(mlir::Type type);
/// The least positive normal number of the float type.
double smallestNormal(mlir::Type type);
/// `value` rounded to the float type, ties to even.
double roundedTo(mlir::Type type, double value);
/// The integer that the lowest bits of `value` are in the type, an integer type or index.
int64_t wrappedTo(mlir::Type type, int64_t value);

/// What an operation computes of exact operands, of which there may be at most three.
using Exact = std::function<Number(const Number *operands)>;

/// A computation on numbers with errors.
using Computation = std::function<Number(const Number *operands)>;

/// `exact`, whose result is as far off as that of operands moved by their errors, one by one, and
/// by `roundoff`, relative to the result. Where a type's value cannot be moved continuously, the
/// result is undetermined.
Computation withErrors(Exact exact, llvm::ArrayRef<mlir::Type> operands, mlir::Type result,
                       double roundoff);

} // namespace weft::check

#endif
