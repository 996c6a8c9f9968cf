// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A part of a schedule attribute as the struct that an emitter works with. Such a struct S has
//   template <typename Self, typename Visit> static void visitFields(Self &, Visit &&visit);
// which calls `visit(field, member)` for each field: the one place that says its name and range.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_SCHEDULEFIELDS_H
#define WEFT_COMPILER_KERNELS_EMISSION_SCHEDULEFIELDS_H

#include "compiler/Graph/EmitterFields.h"
#include "mlir/IR/Builders.h"

namespace weft {

/// `value`, of a member of an S, as `field` has it in the attribute.
template <typename T>
mlir::Attribute writeField(mlir::Builder &builder, const ScheduleField &field, const T &value) {
  if constexpr (std::is_enum_v<T>)
    return builder.getStringAttr(field.choices[size_t(value)]);
  else if constexpr (std::is_convertible_v<T, int64_t>)
    return builder.getI64IntegerAttr(value);
  else
    return builder.getDenseI64ArrayAttr(value);
}

template <typename T> void readField(mlir::Attribute from, const ScheduleField &field, T &value) {
  if constexpr (std::is_enum_v<T>)
    value = T(llvm::find(field.choices, llvm::cast<mlir::StringAttr>(from).getValue()) -
              field.choices.begin());
  else if constexpr (std::is_convertible_v<T, int64_t>)
    value = llvm::cast<mlir::IntegerAttr>(from).getInt();
  else
    value = llvm::to_vector(llvm::cast<mlir::DenseI64ArrayAttr>(from).asArrayRef());
}

template <typename S>
mlir::DictionaryAttr writeFields(mlir::MLIRContext *context, const S &schedule) {
  mlir::Builder builder(context);
  llvm::SmallVector<mlir::NamedAttribute> fields;
  S::visitFields(schedule, [&](const ScheduleField &field, const auto &value) {
    fields.push_back(builder.getNamedAttr(field.name, writeField(builder, field, value)));
  });
  return builder.getDictionaryAttr(fields);
}

/// `part` has all fields, as ScheduleAttr::isComplete says.
template <typename S> S readFields(mlir::DictionaryAttr part) {
  S schedule;
  S::visitFields(schedule, [&](const ScheduleField &field, auto &value) {
    readField(part.get(field.name), field, value);
  });
  return schedule;
}

template <typename S> llvm::SmallVector<ScheduleField> fieldsOf() {
  llvm::SmallVector<ScheduleField> fields;
  const S schedule;
  S::visitFields(schedule,
                 [&](const ScheduleField &field, const auto &) { fields.push_back(field); });
  return fields;
}

} // namespace weft

#endif
