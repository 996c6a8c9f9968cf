// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedule attribute: its text, and checks by the fields of its emitter.
#include "compiler/Graph/EmitterFields.h"
#include "compiler/Graph/Graph.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace weft;

/// The fields of an emitter; nothing if there is none of that name.
static std::optional<ArrayRef<ScheduleField>> fieldsOf(StringAttr emitter) {
  auto *dialect = emitter.getContext()->getLoadedDialect<WeftDialect>();
  auto *emitters = dialect->getRegisteredInterface<EmitterFields>();
  return emitters ? emitters->of(emitter) : std::nullopt;
}

StringRef ScheduleAttr::missingField(size_t number) const {
  ArrayRef<ScheduleField> fields = *fieldsOf(getEmitter());
  for (const ScheduleField &field : fields)
    if (!getParts()[number].contains(field.name))
      return field.name;
  return "";
}

bool ScheduleAttr::isComplete() const {
  return !getParts().empty() && llvm::all_of(llvm::seq(getParts().size()), [&](size_t number) {
    return missingField(number).empty();
  });
}

/// The numbers of a field that has the kind which it is to have.
static std::optional<SmallVector<int64_t>> numbersOf(const ScheduleField &field, Attribute value) {
  if (field.isList) {
    if (auto list = dyn_cast<DenseI64ArrayAttr>(value))
      return llvm::to_vector(list.asArrayRef());
    return std::nullopt;
  }
  auto number = dyn_cast<IntegerAttr>(value);
  if (!number || !number.getType().isSignlessInteger(64))
    return std::nullopt;
  return SmallVector<int64_t>{number.getInt()};
}

static LogicalResult verifyField(ErrorFn emitError, StringAttr emitter,
                                 ArrayRef<ScheduleField> fields, NamedAttribute entry) {
  const ScheduleField *field = llvm::find_if(
      fields, [&](const ScheduleField &each) { return each.name == entry.getName(); });
  if (field == fields.end()) {
    auto names = llvm::map_range(fields, [](const ScheduleField &each) { return each.name; });
    return emitError() << "schedule_c1: expected a field of " << emitter.getValue() << " ("
                       << llvm::join(names, ", ") << "), found " << entry.getName();
  }
  auto expected = [&] {
    return emitError() << "schedule_c2: expected " << entry.getName() << " to be ";
  };
  if (!field->choices.empty()) {
    auto name = dyn_cast<StringAttr>(entry.getValue());
    if (!name || !llvm::is_contained(field->choices, name.getValue()))
      return expected() << "one of: " << llvm::join(field->choices, ", ") << "; found "
                        << entry.getValue();
    return success();
  }
  std::optional<SmallVector<int64_t>> numbers = numbersOf(*field, entry.getValue());
  if (!numbers)
    return expected() << (field->isList ? "an array of i64" : "an i64") << ", found "
                      << entry.getValue();
  for (int64_t number : *numbers) {
    if (number < field->least)
      return expected() << "at least " << field->least << ", found " << number;
    if (number > field->most)
      return expected() << "at most " << field->most << ", found " << number;
  }
  return success();
}

LogicalResult ScheduleAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                   StringAttr emitter, bool, ArrayRef<DictionaryAttr> parts) {
  std::optional<ArrayRef<ScheduleField>> fields = fieldsOf(emitter);
  if (!fields)
    return emitError() << "schedule_c1: unknown emitter '" << emitter.getValue() << "'";
  for (DictionaryAttr part : parts)
    for (NamedAttribute entry : part)
      if (failed(verifyField(emitError, emitter, *fields, entry)))
        return failure();
  return success();
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<" << getEmitter().getValue();
  if (getSerial())
    printer << " serial";
  if (!getParts().empty())
    printer << " ";
  llvm::interleaveComma(getParts(), printer, [&](DictionaryAttr part) { printer << part; });
  printer << ">";
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  StringRef name;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&name))
    return {};
  bool serial = succeeded(parser.parseOptionalKeyword("serial"));
  SmallVector<DictionaryAttr> parts;
  if (failed(parser.parseOptionalGreater())) {
    auto parsePart = [&] { return parser.parseAttribute(parts.emplace_back()); };
    if (parser.parseCommaSeparatedList(parsePart) || parser.parseGreater())
      return {};
  }
  return ScheduleAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                                  parser.getBuilder().getStringAttr(name), serial,
                                  ArrayRef<DictionaryAttr>(parts));
}
