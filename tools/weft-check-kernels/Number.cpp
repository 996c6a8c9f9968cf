// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values in float64 with running error bounds.
#include "Number.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace weft::check;

double weft::check::unitRoundoff(mlir::Type type) {
  return std::ldexp(1.0, -int(mlir::cast<mlir::FloatType>(type).getFPMantissaWidth()));
}

double weft::check::smallestNormal(mlir::Type type) {
  return llvm::APFloat::getSmallestNormalized(mlir::cast<mlir::FloatType>(type).getFloatSemantics())
      .convertToDouble();
}

double weft::check::roundedTo(mlir::Type type, double value) {
  if (type.isF64() || std::isnan(value))
    return value;
  if (type.isF32())
    return double(float(value));
  llvm::APFloat number(value);
  bool lost;
  number.convert(mlir::cast<mlir::FloatType>(type).getFloatSemantics(),
                 llvm::APFloat::rmNearestTiesToEven, &lost);
  return number.convertToDouble();
}

int64_t weft::check::wrappedTo(mlir::Type type, int64_t value) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return width == 1 ? value & 1 : llvm::SignExtend64(uint64_t(value), width);
}

/// How far the result of a moved operand is from the true one.
static double distance(const Number &truth, const Number &moved, bool isReal) {
  if (!isReal)
    return std::abs(double(moved.integer) - double(truth.integer));
  bool same = moved.real == truth.real || (std::isnan(moved.real) && std::isnan(truth.real));
  double apart = same ? 0 : std::abs(moved.real - truth.real);
  return std::isnan(apart) ? undetermined : apart;
}

/// The greatest distance by which the result moves as one operand moves by its error.
static double sensitivity(const Exact &exact, llvm::MutableArrayRef<Number> operands, size_t index,
                          mlir::Type type, const Number &truth, bool isReal) {
  Number held = operands[index];
  double most = 0;
  auto tryValue = [&](Number moved) {
    operands[index] = moved;
    most = std::max(most, distance(truth, exact(operands.data()), isReal));
  };
  if (mlir::isa<mlir::FloatType>(type)) {
    tryValue(Number::ofReal(held.real + held.error));
    tryValue(Number::ofReal(held.real - held.error));
  } else if (type.isInteger(1)) {
    tryValue(Number::ofInteger(!held.integer));
  } else {
    tryValue(Number::ofInteger(wrappedTo(type, held.integer + std::llround(held.error))));
    tryValue(Number::ofInteger(wrappedTo(type, held.integer - std::llround(held.error))));
  }
  operands[index] = held;
  return most;
}

Computation weft::check::withErrors(Exact exact, llvm::ArrayRef<mlir::Type> types,
                                    mlir::Type result, double roundoff) {
  bool isReal = mlir::isa<mlir::FloatType>(result);
  return [=, exact = std::move(exact),
          types = llvm::SmallVector<mlir::Type>(types)](const Number *given) {
    Number truth = exact(given);
    double error = isReal && std::isfinite(truth.real) ? roundoff * std::abs(truth.real) : 0;
    for (size_t index = 0; index < types.size(); ++index) {
      if (given[index].error == 0)
        continue;
      // A bool has one other value, wherever it comes from.
      if (given[index].error == undetermined && !types[index].isInteger(1)) {
        error = undetermined;
        break;
      }
      llvm::SmallVector<Number, 3> operands(given, given + types.size());
      error += sensitivity(exact, operands, index, types[index], truth, isReal);
    }
    truth.error = error;
    return truth;
  };
}
