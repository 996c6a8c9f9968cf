// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ops of arith and math, computed in float64 by the C library and in 64-bit integers.
#include "ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace mlir;
using namespace weft::check;

/// Units in the last place that an exponential, a sine and the like may be off, as vector math is
/// (arithmetic: half of one).
static constexpr double mathUlps = 2;

namespace {
using Unary = double (*)(double);
using Binary = double (*)(double, double);
using IntBinary = int64_t (*)(int64_t, int64_t);
} // namespace

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static double maximum(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? std::nan("") : std::max(x, y);
}
static double minimum(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? std::nan("") : std::min(x, y);
}
static double roundEven(double x) { return std::nearbyint(x); }

/// Unary ops whose results are exact if their operands are.
static Unary exactUnary(StringRef name) {
  return llvm::StringSwitch<Unary>(name)
      .Case("arith.negf", [](double x) { return -x; })
      .Case("math.absf", [](double x) { return std::fabs(x); })
      .Case("math.ceil", [](double x) { return std::ceil(x); })
      .Case("math.floor", [](double x) { return std::floor(x); })
      .Case("math.trunc", [](double x) { return std::trunc(x); })
      .Case("math.roundeven", roundEven)
      .Case("arith.extf", [](double x) { return x; })
      .Default(nullptr);
}

static Unary approximateUnary(StringRef name) {
  return llvm::StringSwitch<Unary>(name)
      .Case("math.sqrt", [](double x) { return std::sqrt(x); })
      .Case("math.rsqrt", [](double x) { return 1 / std::sqrt(x); })
      .Case("math.exp", [](double x) { return std::exp(x); })
      .Case("math.exp2", [](double x) { return std::exp2(x); })
      .Case("math.expm1", [](double x) { return std::expm1(x); })
      .Case("math.log", [](double x) { return std::log(x); })
      .Case("math.log2", [](double x) { return std::log2(x); })
      .Case("math.log10", [](double x) { return std::log10(x); })
      .Case("math.log1p", [](double x) { return std::log1p(x); })
      .Case("math.sin", [](double x) { return std::sin(x); })
      .Case("math.cos", [](double x) { return std::cos(x); })
      .Case("math.tan", [](double x) { return std::tan(x); })
      .Case("math.asin", [](double x) { return std::asin(x); })
      .Case("math.acos", [](double x) { return std::acos(x); })
      .Case("math.atan", [](double x) { return std::atan(x); })
      .Case("math.sinh", [](double x) { return std::sinh(x); })
      .Case("math.cosh", [](double x) { return std::cosh(x); })
      .Case("math.tanh", [](double x) { return std::tanh(x); })
      .Case("math.asinh", [](double x) { return std::asinh(x); })
      .Case("math.acosh", [](double x) { return std::acosh(x); })
      .Case("math.atanh", [](double x) { return std::atanh(x); })
      .Case("math.erf", [](double x) { return std::erf(x); })
      .Case("math.erfc", [](double x) { return std::erfc(x); })
      .Default(nullptr);
}

/// Binary ops, with the rounding errors of their results in units of the roundoff.
static std::pair<Binary, double> floatBinary(StringRef name) {
  using Row = std::pair<Binary, double>;
  return llvm::StringSwitch<Row>(name)
      .Case("arith.addf", Row([](double x, double y) { return x + y; }, 1))
      .Case("arith.subf", Row([](double x, double y) { return x - y; }, 1))
      .Case("arith.mulf", Row([](double x, double y) { return x * y; }, 1))
      .Case("arith.divf", Row([](double x, double y) { return x / y; }, 1))
      .Case("arith.remf", Row([](double x, double y) { return std::fmod(x, y); }, 0))
      .Case("arith.maximumf", Row(maximum, 0))
      .Case("arith.minimumf", Row(minimum, 0))
      .Case("arith.maxnumf", Row([](double x, double y) { return std::fmax(x, y); }, 0))
      .Case("arith.minnumf", Row([](double x, double y) { return std::fmin(x, y); }, 0))
      .Case("math.copysign", Row([](double x, double y) { return std::copysign(x, y); }, 0))
      .Case("math.powf", Row([](double x, double y) { return std::pow(x, y); }, 2 * mathUlps))
      .Case("math.atan2", Row([](double x, double y) { return std::atan2(x, y); }, 2 * mathUlps))
      .Default({nullptr, 0});
}

/// The roundoff of one operation. In float64 the reference makes the same errors as the kernel.
static double roundoffOf(Type type) { return unitRoundoff(type) * (type.isF64() ? 2 : 1); }

static Computation realUnary(Unary function, Type from, Type to, double roundoff) {
  return withErrors([=](const Number *x) { return Number::ofReal(function(x->real)); }, from, to,
                    roundoff);
}

static Computation realBinary(StringRef name, Type type) {
  auto [function, ulps] = floatBinary(name);
  if (!function)
    return nullptr;
  return withErrors([function = function](
                        const Number *x) { return Number::ofReal(function(x[0].real, x[1].real)); },
                    {type, type}, type, ulps * roundoffOf(type));
}

static bool compare(arith::CmpFPredicate predicate, double x, double y) {
  auto bits = unsigned(predicate); // as LLVM's: equal 1, greater 2, less 4, unordered 8
  return bits & (std::isnan(x) || std::isnan(y) ? 8 : x == y ? 1 : x > y ? 2 : 4);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

static uint64_t bitsOf(Type type, int64_t value) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return width == 64 ? uint64_t(value) : uint64_t(value) & ((uint64_t(1) << width) - 1);
}

/// Whether the op is told apart by the sign: its operands are the bits without one.
static IntBinary unsignedBinary(StringRef name) {
  return llvm::StringSwitch<IntBinary>(name)
      .Case("arith.divui", [](int64_t x, int64_t y) { return int64_t(uint64_t(x) / uint64_t(y)); })
      .Case("arith.remui", [](int64_t x, int64_t y) { return int64_t(uint64_t(x) % uint64_t(y)); })
      .Case("arith.minui", [](int64_t x, int64_t y) { return uint64_t(x) < uint64_t(y) ? x : y; })
      .Case("arith.maxui", [](int64_t x, int64_t y) { return uint64_t(x) < uint64_t(y) ? y : x; })
      .Case("arith.shrui", [](int64_t x, int64_t y) { return int64_t(uint64_t(x) >> y); })
      .Default(nullptr);
}

static IntBinary signedBinary(StringRef name) {
  return llvm::StringSwitch<IntBinary>(name)
      .Case("arith.addi", [](int64_t x, int64_t y) { return int64_t(uint64_t(x) + uint64_t(y)); })
      .Case("arith.subi", [](int64_t x, int64_t y) { return int64_t(uint64_t(x) - uint64_t(y)); })
      .Case("arith.muli", [](int64_t x, int64_t y) { return int64_t(uint64_t(x) * uint64_t(y)); })
      .Case("arith.divsi", [](int64_t x, int64_t y) { return x / y; })
      .Case("arith.remsi", [](int64_t x, int64_t y) { return x % y; })
      .Case("arith.minsi", [](int64_t x, int64_t y) { return std::min(x, y); })
      .Case("arith.maxsi", [](int64_t x, int64_t y) { return std::max(x, y); })
      .Case("arith.andi", [](int64_t x, int64_t y) { return x & y; })
      .Case("arith.ori", [](int64_t x, int64_t y) { return x | y; })
      .Case("arith.xori", [](int64_t x, int64_t y) { return x ^ y; })
      .Case("arith.shli", [](int64_t x, int64_t y) { return int64_t(uint64_t(x) << y); })
      .Case("arith.shrsi", [](int64_t x, int64_t y) { return x >> y; })
      .Default(nullptr);
}

static Computation integerBinary(StringRef name, Type type) {
  IntBinary plain = signedBinary(name), bare = plain ? nullptr : unsignedBinary(name);
  if (!plain && !bare)
    return nullptr;
  Exact exact = [=](const Number *x) {
    int64_t value =
        plain ? plain(x[0].integer, x[1].integer)
              : bare(int64_t(bitsOf(type, x[0].integer)), int64_t(bitsOf(type, x[1].integer)));
    return Number::ofInteger(wrappedTo(type, value));
  };
  return withErrors(std::move(exact), {type, type}, type, 0);
}

static bool compare(arith::CmpIPredicate predicate, Type type, int64_t x, int64_t y) {
  uint64_t low = bitsOf(type, x), high = bitsOf(type, y);
  // The one bit of i1 is its sign.
  if (type.isInteger(1))
    x = -x, y = -y;
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return x == y;
  case P::ne:
    return x != y;
  case P::slt:
    return x < y;
  case P::sle:
    return x <= y;
  case P::sgt:
    return x > y;
  case P::sge:
    return x >= y;
  case P::ult:
    return low < high;
  case P::ule:
    return low <= high;
  case P::ugt:
    return low > high;
  case P::uge:
    return low >= high;
  }
  llvm_unreachable("unknown predicate");
}

//===----------------------------------------------------------------------===//
// Conversions and choices
//===----------------------------------------------------------------------===//

static Exact conversion(StringRef name, Type from, Type to) {
  return llvm::StringSwitch<Exact>(name)
      .Case("arith.truncf", [=](const Number *x) { return Number::ofReal(roundedTo(to, x->real)); })
      .Case("arith.sitofp",
            [=](const Number *x) { return Number::ofReal(roundedTo(to, double(x->integer))); })
      .Case("arith.uitofp",
            [=](const Number *x) {
              return Number::ofReal(roundedTo(to, double(bitsOf(from, x->integer))));
            })
      .Case("arith.fptosi",
            [=](const Number *x) {
              bool held = std::fabs(x->real) < 0x1p63;
              return Number::ofInteger(wrappedTo(to, held ? int64_t(x->real) : INT64_MIN));
            })
      .Cases({"arith.extsi", "arith.trunci", "arith.index_cast"},
             [=](const Number *x) {
               int64_t sign = from.isInteger(1) ? -x->integer : x->integer;
               return Number::ofInteger(wrappedTo(to, sign));
             })
      .Cases({"arith.extui", "arith.index_castui"},
             [=](const Number *x) {
               return Number::ofInteger(wrappedTo(to, int64_t(bitsOf(from, x->integer))));
             })
      .Case("math.absi",
            [=](const Number *x) {
              return Number::ofInteger(
                  wrappedTo(to, x->integer < 0 ? int64_t(-uint64_t(x->integer)) : x->integer));
            })
      .Default(nullptr);
}

static Computation comparisonOrChoice(mlir::Operation *op) {
  SmallVector<Type> types(op->getOperandTypes());
  Type result = op->getResult(0).getType();
  if (auto cmp = dyn_cast<arith::CmpFOp>(op))
    return withErrors(
        [predicate = cmp.getPredicate()](const Number *x) {
          return Number::ofInteger(compare(predicate, x[0].real, x[1].real));
        },
        types, result, 0);
  if (auto cmp = dyn_cast<arith::CmpIOp>(op))
    return withErrors(
        [predicate = cmp.getPredicate(), type = types[0]](const Number *x) {
          return Number::ofInteger(compare(predicate, type, x[0].integer, x[1].integer));
        },
        types, result, 0);
  if (isa<arith::SelectOp>(op))
    // Only the operand that is chosen counts, unless the condition may be the other way.
    return [isReal = isa<FloatType>(result)](const Number *x) {
      Number chosen = x[0].integer ? x[1] : x[2], other = x[0].integer ? x[2] : x[1];
      if (x[0].error == 0)
        return chosen;
      double apart = isReal ? std::fabs(chosen.real - other.real)
                            : std::fabs(double(chosen.integer) - double(other.integer));
      chosen.error = std::max(chosen.error, apart + other.error);
      if (std::isnan(chosen.error))
        chosen.error = undetermined;
      return chosen;
    };
  if (isa<math::FmaOp>(op))
    return withErrors(
        [](const Number *x) { return Number::ofReal(std::fma(x[0].real, x[1].real, x[2].real)); },
        types, result, roundoffOf(result));
  return nullptr;
}

Computation weft::check::scalarOperation(mlir::Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0 || op->getNumOperands() > 3 ||
      !op->getResult(0).getType().isIntOrIndexOrFloat())
    return nullptr;
  StringRef name = op->getName().getStringRef();
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  if (Computation made = comparisonOrChoice(op))
    return made;
  if (op->getNumOperands() == 2)
    return isa<FloatType>(from) ? realBinary(name, from) : integerBinary(name, from);
  if (op->getNumOperands() != 1)
    return nullptr;
  if (Unary function = exactUnary(name))
    return realUnary(function, from, to, 0);
  if (Unary function = approximateUnary(name))
    return realUnary(function, from, to, 2 * mathUlps * roundoffOf(to));
  if (Exact exact = conversion(name, from, to))
    return withErrors(std::move(exact), from, to, 0);
  return nullptr;
}

Computation weft::check::combination(StringRef kind, Type type) {
  if (isa<FloatType>(type))
    return realBinary(llvm::StringSwitch<StringRef>(kind)
                          .Case("sum", "arith.addf")
                          .Case("prod", "arith.mulf")
                          .Case("max", "arith.maximumf")
                          .Default("arith.minimumf"),
                      type);
  return integerBinary(llvm::StringSwitch<StringRef>(kind)
                           .Case("sum", "arith.addi")
                           .Case("prod", "arith.muli")
                           .Case("max", "arith.maxsi")
                           .Case("min", "arith.minsi")
                           .Case("any", "arith.ori")
                           .Default("arith.andi"),
                       type);
}

Computation weft::check::plus(Type type) { return realBinary("arith.addf", type); }
Computation weft::check::minus(Type type) { return realBinary("arith.subf", type); }
Computation weft::check::times(Type type) { return realBinary("arith.mulf", type); }
Computation weft::check::over(Type type) { return realBinary("arith.divf", type); }
Computation weft::check::exponential(Type type) {
  return realUnary([](double x) { return std::exp(x); }, type, type,
                   2 * mathUlps * roundoffOf(type));
}
