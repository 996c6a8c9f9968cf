// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Comparison.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InterleavedRange.h"
#include <cmath>

using namespace mlir;
using namespace weft::check;

namespace {
struct Judge {
  Type element;
  double slack;

  bool isReal() const { return isa<FloatType>(element); }
  double bound(const Number &expected) const {
    if (expected.error == 0)
      return 0;
    // Rounding to the type itself, and what underflows.
    double stored = isReal() ? unitRoundoff(element) * std::fabs(expected.real) : 0;
    return slack * (expected.error + stored) + (isReal() ? smallestNormal(element) : 0);
  }
  double distance(const Number &expected, const Number &found) const {
    if (!isReal())
      return std::fabs(double(expected.integer) - double(found.integer));
    if (expected.real == found.real || (std::isnan(expected.real) && std::isnan(found.real)))
      return 0;
    double apart = std::fabs(expected.real - found.real);
    return std::isnan(apart) ? HUGE_VAL : apart;
  }
  void print(const Number &number, llvm::raw_ostream &stream) const {
    if (isReal())
      stream << llvm::format("%.9g", number.real);
    else
      stream << number.integer;
  }
};
} // namespace

static SmallVector<int64_t> indexOf(int64_t number, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> index(shape.size());
  for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
    index[dim] = number % shape[dim];
    number /= shape[dim];
  }
  return index;
}

bool weft::check::compare(llvm::StringRef name, const Tensor &expected, const Numbers &found,
                          double slack, llvm::raw_ostream &stream) {
  Judge judge{expected.element, slack};
  double most = 0;
  int64_t known = 0;
  for (auto [number, pair] : llvm::enumerate(llvm::zip_equal(expected.numbers, found))) {
    auto [truth, value] = pair;
    if (truth.error == undetermined)
      continue;
    ++known;
    double bound = judge.bound(truth), distance = judge.distance(truth, value);
    if (distance > bound) {
      stream << name << " at [" << llvm::interleaved(indexOf(int64_t(number), expected.shape), ", ")
             << "]: expected ";
      judge.print(truth, stream);
      if (bound > 0)
        stream << llvm::format(" within %.2g", bound);
      stream << ", found ";
      judge.print(value, stream);
      stream << "\n";
      return false;
    }
    if (bound > 0)
      most = std::max(most, distance / bound);
  }
  if (2 * known < expected.size()) {
    stream << name << ": expected at least half of " << expected.size()
           << " elements to be determined by the reference, found " << known << "\n";
    return false;
  }
  stream << name << ": " << known << " elements of " << expected.element << ", "
         << llvm::format("%.0f%%", 100 * most) << " of the bound\n";
  return true;
}
