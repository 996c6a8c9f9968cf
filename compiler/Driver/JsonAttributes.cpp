// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types and attributes as the JSON graph writes them.
#include "compiler/Driver/JsonAttributes.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace weft;
namespace json = llvm::json;
using llvm::createStringError;
using llvm::Expected;

/// `value` for a message: JSON, cut short.
static std::string show(const json::Value &value) {
  std::string text = llvm::formatv("{0}", value);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

Type weft::parseDType(StringRef name, MLIRContext &context) {
  Builder builder(&context);
  return llvm::StringSwitch<Type>(name)
      .Case("f64", builder.getF64Type())
      .Case("f32", builder.getF32Type())
      .Case("bf16", builder.getBF16Type())
      .Case("f16", builder.getF16Type())
      .Case("i64", builder.getI64Type())
      .Case("i32", builder.getI32Type())
      .Case("i16", builder.getIntegerType(16))
      .Case("i8", builder.getI8Type())
      .Case("u8", builder.getIntegerType(8, /*isSigned=*/false))
      .Case("bool", builder.getI1Type())
      .Default(nullptr);
}

Expected<SmallVector<int64_t>> weft::parseIntegers(const json::Value *value) {
  const json::Array *array = value ? value->getAsArray() : nullptr;
  if (!array)
    return createStringError("expected an array of integers, found " +
                             (value ? show(*value) : "nothing"));
  SmallVector<int64_t> integers;
  for (const json::Value &element : *array) {
    std::optional<int64_t> integer = element.getAsInteger();
    if (!integer)
      return createStringError("expected an array of integers, found " + show(*value));
    integers.push_back(*integer);
  }
  return integers;
}

Expected<RankedTensorType> weft::parseTensorType(const json::Value &value, MLIRContext &context) {
  const json::Array *pair = value.getAsArray();
  if (!pair || pair->size() != 2 || !(*pair)[0].getAsString())
    return createStringError("expected a type as [dtype, shape], found " + show(value));
  Type element = parseDType(*(*pair)[0].getAsString(), context);
  if (!element)
    return createStringError("unknown dtype " + show((*pair)[0]));
  Expected<SmallVector<int64_t>> shape = parseIntegers(&(*pair)[1]);
  if (!shape)
    return shape.takeError();
  for (int64_t size : *shape)
    if (size < 0)
      return createStringError("expected sizes not below 0, found " + show((*pair)[1]));
  return RankedTensorType::get(*shape, element);
}

static Expected<llvm::APFloat> parseFloat(const json::Value &value, FloatType type) {
  std::optional<double> number = value.getAsNumber();
  if (std::optional<StringRef> text = value.getAsString())
    number = llvm::StringSwitch<std::optional<double>>(*text)
                 .Case("inf", std::numeric_limits<double>::infinity())
                 .Case("-inf", -std::numeric_limits<double>::infinity())
                 .Case("nan", std::numeric_limits<double>::quiet_NaN())
                 .Default(std::nullopt);
  if (!number)
    return createStringError("expected a float, found " + show(value));
  llvm::APFloat result(*number);
  bool losesInfo;
  result.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return result;
}

static Expected<llvm::APInt> parseInteger(const json::Value &value, IntegerType type) {
  std::optional<int64_t> number = value.getAsInteger();
  if (std::optional<bool> boolean = value.getAsBoolean())
    number = *boolean;
  unsigned width = type.getWidth();
  bool isUnsigned = type.isUnsigned() || width == 1;
  if (!number ||
      !(isUnsigned ? *number >= 0 && llvm::isUIntN(width, *number) : llvm::isIntN(width, *number)))
    return createStringError("expected an integer of %u bits, found %s", width,
                             show(value).c_str());
  return llvm::APInt(width, *number, /*isSigned=*/!isUnsigned);
}

static Expected<Attribute> parseElements(ArrayRef<json::Value> values, RankedTensorType type) {
  if (auto floatType = dyn_cast<FloatType>(type.getElementType())) {
    SmallVector<llvm::APFloat> elements;
    for (const json::Value &value : values) {
      Expected<llvm::APFloat> element = parseFloat(value, floatType);
      if (!element)
        return element.takeError();
      elements.push_back(*element);
    }
    return DenseElementsAttr::get(type, elements);
  }
  SmallVector<llvm::APInt> elements;
  for (const json::Value &value : values) {
    Expected<llvm::APInt> element = parseInteger(value, cast<IntegerType>(type.getElementType()));
    if (!element)
      return element.takeError();
    elements.push_back(*element);
  }
  return DenseElementsAttr::get(type, elements);
}

static Expected<Attribute> parseObject(const json::Object &object, RankedTensorType type,
                                       MLIRContext &context) {
  if (std::optional<StringRef> text = object.getString("mlir")) {
    if (Attribute attribute = parseAttribute(*text, &context))
      return attribute;
    return createStringError("expected an attribute in MLIR's syntax, found '" + *text + "'");
  }
  const json::Value *splat = object.get("splat");
  const json::Array *dense = object.getArray("dense");
  if (!splat == !dense)
    return createStringError(R"(expected an object with one of "mlir", "splat" and "dense")");
  if (!type)
    return createStringError("expected a result type for a tensor value");
  if (splat)
    return parseElements(*splat, type);
  if (static_cast<int64_t>(dense->size()) != type.getNumElements())
    return createStringError("expected %lld elements, found %zu",
                             static_cast<long long>(type.getNumElements()), dense->size());
  return parseElements(ArrayRef(dense->data(), dense->size()), type);
}

static Attribute parseNumber(const json::Value &value, Builder &builder) {
  std::optional<int64_t> integer = value.getAsInteger();
  // getAsInteger also takes 1.0 for an integer; getAsUINT64 does not.
  if (integer && (*integer < 0 || value.getAsUINT64()))
    return builder.getI64IntegerAttr(*integer);
  return builder.getF64FloatAttr(*value.getAsNumber());
}

Expected<Attribute> weft::parseJsonAttribute(const json::Value &value, RankedTensorType type,
                                             MLIRContext &context) {
  Builder builder(&context);
  switch (value.kind()) {
  case json::Value::Null:
    return createStringError("expected an attribute, found null");
  case json::Value::Boolean:
    return builder.getBoolAttr(*value.getAsBoolean());
  case json::Value::Number:
    return parseNumber(value, builder);
  case json::Value::String:
    return builder.getStringAttr(*value.getAsString());
  case json::Value::Array: {
    Expected<SmallVector<int64_t>> integers = parseIntegers(&value);
    if (!integers)
      return integers.takeError();
    return builder.getDenseI64ArrayAttr(*integers);
  }
  case json::Value::Object:
    return parseObject(*value.getAsObject(), type, context);
  }
  llvm_unreachable("all kinds of JSON value are handled");
}
