// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the schedule attribute knows of emitters: the fields of each. Who implements emitters tells
// the dialect by an interface, so that a new emitter changes nothing here.
#ifndef WEFT_COMPILER_GRAPH_EMITTERFIELDS_H
#define WEFT_COMPILER_GRAPH_EMITTERFIELDS_H

#include "mlir/IR/DialectInterface.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <limits>
#include <optional>

namespace weft {

/// A number from `least` to `most`, a list of such numbers, or one of several names.
struct ScheduleField {
  llvm::StringRef name;
  int64_t least = 1, most = std::numeric_limits<int64_t>::max();
  llvm::ArrayRef<llvm::StringLiteral> choices = {};
  bool isList = false;

  static constexpr ScheduleField count(llvm::StringLiteral name) { return {name}; }
  static constexpr ScheduleField countOrNone(llvm::StringLiteral name) { return {name, 0}; }
  static constexpr ScheduleField flag(llvm::StringLiteral name) { return {name, 0, 1}; }
  /// A number among several, or -1 for none.
  static constexpr ScheduleField numberOrNone(llvm::StringLiteral name) { return {name, -1}; }
  static constexpr ScheduleField oneOf(llvm::StringLiteral name,
                                       llvm::ArrayRef<llvm::StringLiteral> choices) {
    return {name, 0, 0, choices};
  }
  static constexpr ScheduleField list(ScheduleField field) {
    field.isList = true;
    return field;
  }
};

class EmitterFields : public mlir::DialectInterface::Base<EmitterFields> {
public:
  explicit EmitterFields(mlir::Dialect *dialect) : Base(dialect) {}
  /// The fields of the emitter of that name; nothing if there is no such emitter.
  virtual std::optional<llvm::ArrayRef<ScheduleField>> of(llvm::StringRef emitter) const = 0;
};

} // namespace weft

#endif
