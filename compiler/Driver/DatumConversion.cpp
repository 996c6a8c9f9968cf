// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attributes and types as their plain counterparts, and back.
#include "compiler/Driver/DatumConversion.h"
#include "compiler/Driver/JsonAttributes.h"
#include "compiler/Graph/Graph.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;
using api::Datum;
using llvm::Expected;

static std::string print(auto object) {
  std::string text;
  llvm::raw_string_ostream(text) << object;
  return text;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// parseDType's name of `type`; empty for those that it does not know.
static StringRef nameOf(Type type) {
  for (StringRef name : {"f32", "f64", "bf16", "f16", "i64", "i32", "i16", "i8", "u8", "bool"})
    if (parseDType(name, *type.getContext()) == type)
      return name;
  return "";
}

api::TypeInfo weft::toTypeInfo(Type type) {
  api::TypeInfo info{print(type), "", "", {}};
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return info;
  info.dtype = nameOf(tensor.getElementType());
  info.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  if (Attribute encoding = tensor.getEncoding())
    info.layout = print(encoding);
  return info;
}

Expected<Type> weft::toType(StringRef text, MLIRContext &context) {
  if (Type type = parseType(text, &context))
    return type;
  return llvm::createStringError("expected a type in MLIR's syntax, found '" + text + "'");
}

//===----------------------------------------------------------------------===//
// To data
//===----------------------------------------------------------------------===//

static Datum make(Datum::Kind kind) {
  Datum datum;
  datum.kind = kind;
  return datum;
}

static Datum whole(int64_t integer, Datum::Kind kind = Datum::Kind::Integer) {
  Datum datum = make(kind);
  datum.integer = integer;
  return datum;
}

static Datum text(Datum::Kind kind, StringRef text) {
  Datum datum = make(kind);
  datum.text = text.str();
  return datum;
}

static Datum list(auto integers) {
  Datum datum = make(Datum::Kind::List);
  for (int64_t integer : integers)
    datum.items.push_back(whole(integer));
  return datum;
}

/// The elements' bytes, a splat's repeated. Bools take a byte each.
static std::string bytesOf(DenseElementsAttr elements) {
  size_t count = elements.getNumElements();
  if (elements.getElementType().isInteger(1)) {
    std::string bytes;
    bytes.reserve(count);
    for (bool element : elements.getValues<bool>())
      bytes.push_back(element);
    return bytes;
  }
  StringRef raw(elements.getRawData().data(), elements.getRawData().size());
  if (!elements.isSplat())
    return raw.str();
  std::string bytes;
  bytes.reserve(count * raw.size());
  for (size_t number = 0; number < count; ++number)
    bytes += raw;
  return bytes;
}

static Datum fromElements(DenseElementsAttr elements) {
  auto type = dyn_cast<RankedTensorType>(elements.getType());
  StringRef dtype = type ? nameOf(type.getElementType()) : "";
  if (dtype.empty())
    return text(Datum::Kind::Syntax, print(elements));
  Datum datum = text(Datum::Kind::Elements, dtype);
  datum.shape.assign(type.getShape().begin(), type.getShape().end());
  datum.bytes = bytesOf(elements);
  return datum;
}

static Datum fromInteger(IntegerAttr attribute) {
  if (attribute.getType().isInteger(1))
    return whole(attribute.getValue().getBoolValue(), Datum::Kind::Boolean);
  if (attribute.getValue().getSignificantBits() > 64)
    return text(Datum::Kind::Syntax, print(attribute));
  auto type = dyn_cast<IntegerType>(attribute.getType());
  bool isUnsigned = type && type.isUnsigned();
  const APInt &value = attribute.getValue();
  return whole(isUnsigned ? int64_t(value.getZExtValue()) : value.getSExtValue());
}

static Datum fromReal(FloatAttr attribute) {
  Datum datum = make(Datum::Kind::Real);
  datum.real = attribute.getValueAsDouble();
  return datum;
}

static Datum fromArray(ArrayAttr array) {
  Datum datum = make(Datum::Kind::List);
  llvm::append_range(datum.items, llvm::map_range(array, toDatum));
  return datum;
}

static Datum fromDictionary(DictionaryAttr dictionary) {
  Datum datum = make(Datum::Kind::Dictionary);
  for (NamedAttribute entry : dictionary) {
    datum.keys.push_back(entry.getName().str());
    datum.items.push_back(toDatum(entry.getValue()));
  }
  return datum;
}

/// The case of `#weft.reduce_kind<sum>`; a layout is no enum.
static Datum fromOther(Attribute attribute) {
  std::string syntax = print(attribute);
  StringRef form = syntax;
  if (!isa<WeftDialect>(attribute.getDialect()) || isa<LayoutAttr>(attribute) ||
      !form.consume_back(">"))
    return text(Datum::Kind::Syntax, syntax);
  return text(Datum::Kind::Text, form.split('<').second);
}

Datum weft::toDatum(Attribute attribute) {
  return TypeSwitch<Attribute, Datum>(attribute)
      .Case([](UnitAttr) { return Datum{}; })
      .Case(fromInteger)
      .Case(fromReal)
      .Case([](StringAttr string) { return text(Datum::Kind::Text, string.getValue()); })
      .Case([](FlatSymbolRefAttr symbol) { return text(Datum::Kind::Text, symbol.getValue()); })
      .Case([](DenseI64ArrayAttr array) { return list(array.asArrayRef()); })
      .Case([](DenseI32ArrayAttr array) { return list(array.asArrayRef()); })
      .Case(fromElements)
      .Case(fromArray)
      .Case(fromDictionary)
      .Default(fromOther);
}

//===----------------------------------------------------------------------===//
// From data
//===----------------------------------------------------------------------===//

static Expected<Attribute> toElements(const Datum &datum, MLIRContext &context) {
  Type element = parseDType(datum.text, context);
  if (!element)
    return llvm::createStringError("unknown dtype '" + datum.text + "'");
  auto type = RankedTensorType::get(datum.shape, element);
  size_t width = element.isInteger(1) ? 1 : element.getIntOrFloatBitWidth() / 8;
  if (datum.bytes.size() != width * type.getNumElements())
    return llvm::createStringError("expected %lld elements of %zu bytes, found %zu bytes",
                                   static_cast<long long>(type.getNumElements()), width,
                                   datum.bytes.size());
  if (!element.isInteger(1))
    return DenseElementsAttr::getFromRawBuffer(type, datum.bytes);
  SmallVector<bool> bools(datum.bytes.begin(), datum.bytes.end());
  return DenseElementsAttr::get(type, bools);
}

static Expected<Attribute> toList(const Datum &datum, MLIRContext &context) {
  Builder builder(&context);
  auto isInteger = [](const Datum &item) { return item.kind == Datum::Kind::Integer; };
  if (llvm::all_of(datum.items, isInteger)) {
    auto integers =
        llvm::map_to_vector(datum.items, [](const Datum &item) { return item.integer; });
    return builder.getDenseI64ArrayAttr(integers);
  }
  SmallVector<Attribute> items;
  for (const Datum &item : datum.items) {
    Expected<Attribute> attribute = toAttribute(item, context);
    if (!attribute)
      return attribute.takeError();
    items.push_back(*attribute);
  }
  return builder.getArrayAttr(items);
}

static Expected<Attribute> toDictionary(const Datum &datum, MLIRContext &context) {
  NamedAttrList entries;
  for (auto [key, item] : llvm::zip_equal(datum.keys, datum.items)) {
    Expected<Attribute> attribute = toAttribute(item, context);
    if (!attribute)
      return attribute.takeError();
    entries.set(key, *attribute);
  }
  return entries.getDictionary(&context);
}

Expected<Attribute> weft::toAttribute(const Datum &datum, MLIRContext &context) {
  Builder builder(&context);
  switch (datum.kind) {
  case Datum::Kind::Unit:
    return builder.getUnitAttr();
  case Datum::Kind::Boolean:
    return builder.getBoolAttr(datum.integer);
  case Datum::Kind::Integer:
    return builder.getI64IntegerAttr(datum.integer);
  case Datum::Kind::Real:
    return builder.getF64FloatAttr(datum.real);
  case Datum::Kind::Text:
    return builder.getStringAttr(datum.text);
  case Datum::Kind::List:
    return toList(datum, context);
  case Datum::Kind::Dictionary:
    return toDictionary(datum, context);
  case Datum::Kind::Elements:
    return toElements(datum, context);
  case Datum::Kind::Syntax:
    if (Attribute attribute = parseAttribute(datum.text, &context))
      return attribute;
    return llvm::createStringError("expected an attribute in MLIR's syntax, found '" + datum.text +
                                   "'");
  }
  llvm_unreachable("all kinds of data are handled");
}
