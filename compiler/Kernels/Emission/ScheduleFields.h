// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A part of a schedule attribute as the struct that an emitter works with. Such a struct S has
//   template <typename Self, typename Visit> static void visitFields(Self &, Visit &&visit);
// which calls `visit(name, member)` for each field.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_SCHEDULEFIELDS_H
#define WEFT_COMPILER_KERNELS_EMISSION_SCHEDULEFIELDS_H

#include "mlir/IR/Builders.h"

namespace weft {

inline mlir::Attribute fieldOf(mlir::Builder &builder, int64_t value) {
  return builder.getI64IntegerAttr(value);
}
inline void readField(mlir::Attribute field, int64_t &value) {
  value = llvm::cast<mlir::IntegerAttr>(field).getInt();
}
inline void readField(mlir::Attribute field, bool &value) {
  value = llvm::cast<mlir::IntegerAttr>(field).getInt() != 0;
}
inline mlir::Attribute fieldOf(mlir::Builder &builder, llvm::ArrayRef<int64_t> values) {
  return builder.getDenseI64ArrayAttr(values);
}
inline void readField(mlir::Attribute field, llvm::SmallVector<int64_t> &values) {
  values = llvm::to_vector(llvm::cast<mlir::DenseI64ArrayAttr>(field).asArrayRef());
}
/// The enumerator whose name among `names`, in their order, is the field.
template <typename Enum>
void readName(mlir::Attribute field, llvm::ArrayRef<llvm::StringLiteral> names, Enum &value) {
  const auto *found = llvm::find(names, llvm::cast<mlir::StringAttr>(field).getValue());
  value = Enum(found - names.begin());
}

template <typename S>
mlir::DictionaryAttr writeFields(mlir::MLIRContext *context, const S &schedule) {
  mlir::Builder builder(context);
  llvm::SmallVector<mlir::NamedAttribute> fields;
  S::visitFields(schedule, [&](llvm::StringRef name, const auto &value) {
    fields.push_back(builder.getNamedAttr(name, fieldOf(builder, value)));
  });
  return builder.getDictionaryAttr(fields);
}

/// `part` has all fields, as ScheduleAttr::isComplete says.
template <typename S> S readFields(mlir::DictionaryAttr part) {
  S schedule;
  S::visitFields(schedule,
                 [&](llvm::StringRef name, auto &value) { readField(part.get(name), value); });
  return schedule;
}

} // namespace weft

#endif
