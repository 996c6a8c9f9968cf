// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedule attribute: the fields of each emitter, their ranges, text and checks.
#include "compiler/Graph/Graph.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>

using namespace mlir;
using namespace weft;

namespace {

/// A number from `least` to `most`, or one of several names.
struct Field {
  StringRef name;
  int64_t least = 1, most = std::numeric_limits<int64_t>::max();
  ArrayRef<StringLiteral> choices = {};
};

constexpr StringLiteral splits[] = {"batches", "rows", "panels", "blocks"};

constexpr Field count(StringLiteral name) { return {name}; }
constexpr Field countOrNone(StringLiteral name) { return {name, 0}; }
constexpr Field flag(StringLiteral name) { return {name, 0, 1}; }

const Field ofNest[] = {count("lanes")};
const Field ofTranspose[] = {count("lanes"), flag("transposed")};
const Field ofContraction[] = {
    count("rows"),                   ///< of A in a register tile
    count("groups"),                 ///< vectors of B in a register tile
    count("lanes"),                  ///< of a vector
    count("row_tiles"),              ///< along the tiled rows
    {"split", 0, 0, splits},         ///< the loop that the threads divide
    countOrNone("claim"),            ///< least pieces that a thread claims; 0: all of its partition
    countOrNone("chunk"),            ///< steps of the innermost reduction between spills
    flag("outer_chunks"),            ///< each step of the outermost reduced dim is a chunk
    count("panels"),                 ///< of B in a block, which stays in L2
    count("unroll"),                 ///< of the innermost reduction
    countOrNone("segment"),          ///< steps between additions to the totals in memory
    count("turns"),                  ///< accumulator parts; a segment adds one of them
    countOrNone("block_dims"),       ///< outer reduced dims whose steps start a segment
    flag("prefetch"),                ///< of the next rows of A
    countOrNone("panel_prefetch"),   ///< cache lines of the next packed panel at a time
    countOrNone("strided_prefetch"), ///< steps of the next strided panel at a time
    countOrNone("copied_steps"),     ///< steps of the next B panel packed at a time
    countOrNone("steps_ahead"),      ///< prefetch distance within a strided panel
    countOrNone("strip"),            ///< rows of a packed A panel
    countOrNone("strip_line"),       ///< rows of it that share a cache line
    countOrNone("strip_steps"),      ///< steps of a chunk in it
    flag("paired"),                  ///< bf16 dot products of pairs of steps
    flag("matrix_unit"),             ///< AMX
    flag("tile_epilogue"),           ///< the epilogue runs on the tile in memory
};
const Field ofWinograd[] = {count("rows"),       count("groups"),        count("lanes"),
                            count("tiles"),      count("summands"),      count("steps"),
                            flag("split_tiles"), count("panel_prefetch")};
const Field ofSkinnyMatmul[] = {count("rows"),  count("columns"),     count("segment"),
                                count("lanes"), countOrNone("chunk"), count("block"),
                                count("claim"), flag("prefetch")};
const Field ofRowDot[] = {count("columns"), count("rows"),        count("lanes"),
                          count("chains"),  countOrNone("chunk"), flag("paired"),
                          count("claim"),   flag("prefetch"),     countOrNone("steps_ahead")};
const Field ofAttention[] = {count("rows"),      count("groups"), count("lanes"), count("key_tile"),
                             count("key_block"), flag("online"),  count("claim")};
const Field ofGroupedMatmul[] = {count("rows"), count("groups"), count("lanes"),
                                 countOrNone("chunk")};

} // namespace

static ArrayRef<Field> tableOf(EmitterKind emitter) {
  switch (emitter) {
  case EmitterKind::loop_nest:
  case EmitterKind::scatter:
  case EmitterKind::sort:
    return ofNest;
  case EmitterKind::token_blocks_to_rows:
  case EmitterKind::rows_to_token_blocks:
    return ofTranspose;
  case EmitterKind::contraction:
    return ofContraction;
  case EmitterKind::winograd:
    return ofWinograd;
  case EmitterKind::skinny_matmul:
    return ofSkinnyMatmul;
  case EmitterKind::row_dot:
    return ofRowDot;
  case EmitterKind::attention:
    return ofAttention;
  case EmitterKind::grouped_matmul:
    return ofGroupedMatmul;
  }
  llvm_unreachable("unknown emitter");
}

SmallVector<StringRef> ScheduleAttr::fieldsOf(EmitterKind emitter) {
  return llvm::map_to_vector(tableOf(emitter), [](const Field &field) { return field.name; });
}

StringRef ScheduleAttr::missingField(size_t number) const {
  for (const Field &field : tableOf(getEmitter()))
    if (!getParts()[number].contains(field.name))
      return field.name;
  return "";
}

bool ScheduleAttr::isComplete() const {
  return !getParts().empty() && llvm::all_of(llvm::seq(getParts().size()), [&](size_t number) {
    return missingField(number).empty();
  });
}

static LogicalResult verifyField(ErrorFn emitError, EmitterKind emitter, NamedAttribute entry) {
  ArrayRef<Field> fields = tableOf(emitter);
  const Field *field =
      llvm::find_if(fields, [&](const Field &each) { return each.name == entry.getName(); });
  if (field == fields.end())
    return emitError() << "schedule_c1: expected a field of " << stringifyEmitterKind(emitter)
                       << " (" << llvm::join(ScheduleAttr::fieldsOf(emitter), ", ") << "), found "
                       << entry.getName();
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
  auto number = dyn_cast<IntegerAttr>(entry.getValue());
  if (!number || !number.getType().isSignlessInteger(64))
    return expected() << "an i64, found " << entry.getValue();
  if (number.getInt() < field->least)
    return expected() << "at least " << field->least << ", found " << number.getInt();
  if (number.getInt() > field->most)
    return expected() << "at most " << field->most << ", found " << number.getInt();
  return success();
}

LogicalResult ScheduleAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                   EmitterKind emitter, bool, ArrayRef<DictionaryAttr> parts) {
  for (DictionaryAttr part : parts)
    for (NamedAttribute entry : part)
      if (failed(verifyField(emitError, emitter, entry)))
        return failure();
  return success();
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyEmitterKind(getEmitter());
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
  std::optional<EmitterKind> emitter = symbolizeEmitterKind(name);
  if (!emitter)
    return parser.emitError(loc, "unknown emitter '") << name << "'", Attribute();
  bool serial = succeeded(parser.parseOptionalKeyword("serial"));
  SmallVector<DictionaryAttr> parts;
  if (failed(parser.parseOptionalGreater())) {
    auto parsePart = [&] { return parser.parseAttribute(parts.emplace_back()); };
    if (parser.parseCommaSeparatedList(parsePart) || parser.parseGreater())
      return {};
  }
  return ScheduleAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                                  *emitter, serial, ArrayRef<DictionaryAttr>(parts));
}
