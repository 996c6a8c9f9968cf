// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedule attribute: the fields of each emitter, their ranges, text and checks.
#include "compiler/Graph/Graph.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>

using namespace mlir;
using namespace weft;

namespace {

/// A number from `least` to `most`, a list of such numbers, or one of several names.
struct Field {
  StringRef name;
  int64_t least = 1, most = std::numeric_limits<int64_t>::max();
  ArrayRef<StringLiteral> choices = {};
  bool isList = false;
};

constexpr StringLiteral splits[] = {"batches", "rows", "panels", "blocks"};
constexpr StringLiteral transposes[] = {"none", "results", "reads"};
constexpr StringLiteral scans[] = {"none", "rows", "lanes", "squares"};
constexpr StringLiteral sortMethods[] = {"list", "candidates", "radix", "partition"};

constexpr Field count(StringLiteral name) { return {name}; }
constexpr Field countOrNone(StringLiteral name) { return {name, 0}; }
constexpr Field flag(StringLiteral name) { return {name, 0, 1}; }
/// A number among several, or -1 for none.
constexpr Field numberOrNone(StringLiteral name) { return {name, -1}; }
constexpr Field list(Field field) {
  field.isList = true;
  return field;
}

const Field ofNest[] = {
    list(countOrNone("targets")),          ///< what a nest stores; the first leads
    list(count("loops")),                  ///< extents; numbers of loops are those of this list
    list(countOrNone("grid")),             ///< loops that number the cells
    list(countOrNone("cell")),             ///< loops of the grid within a cell
    list(countOrNone("rows")),             ///< loops after the reductions
    count("lanes"),                        ///< of a vector
    count("groups"),                       ///< most vectors of a point
    numberOrNone("lane"),                  ///< loop of the lanes
    count("block"),                        ///< values of it in a cell
    {"transpose", 0, 0, transposes},       ///< what is transposed in registers
    numberOrNone("load"),                  ///< loop along which that is contiguous in memory
    {"scans", 0, 0, scans},                ///< how scans run
    list(numberOrNone("reduced_lanes")),   ///< of each reduction: its dim that has the lanes
    list(numberOrNone("cached_operands")), ///< of each reduction: the operand kept in scratch
    countOrNone("unroll"),                 ///< most steps of an unrolled reduction
    count("claim"),                        ///< least cells that a thread claims
};
const Field ofTranspose[] = {count("lanes"), count("groups"), list(numberOrNone("reduced_lanes")),
                             countOrNone("unroll"), count("claim")};
const Field ofScatter[] = {count("lanes"), count("groups"), countOrNone("owned")};
const Field ofSort[] = {
    count("lanes"), count("groups"), {"method", 0, 0, sortMethods}, countOrNone("capacity")};
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
    return ofNest;
  case EmitterKind::scatter:
    return ofScatter;
  case EmitterKind::sort:
    return ofSort;
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

/// The numbers of a field that has the kind which it is to have.
static std::optional<SmallVector<int64_t>> numbersOf(const Field &field, Attribute value) {
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
