// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the JSON graph. Result types come from the dialect's own inference, so nothing here
// knows a single op by name.
#include "compiler/Driver/GraphImport.h"
#include "compiler/Driver/JsonAttributes.h"
#include "compiler/Driver/OpCreation.h"
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/EntryRole.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace weft;
namespace json = llvm::json;

namespace {

class GraphImporter {
public:
  explicit GraphImporter(MLIRContext &context)
      : context(context), builder(&context), loc(builder.getUnknownLoc()) {}

  OwningOpRef<ModuleOp> import(const json::Object &graph);

private:
  LogicalResult readVersion(const json::Object &graph);
  LogicalResult readLocations(const json::Object &graph, size_t nodes);
  LogicalResult readLines(const json::Array &entries);
  LogicalResult createEntry(const json::Object &graph);
  FailureOr<RankedTensorType> readInput(const json::Object &input, size_t number);
  FailureOr<RankedTensorType> inOrder(RankedTensorType type, const json::Object &object);
  LogicalResult readNode(const json::Object &node, Location location);
  LogicalResult readBody(const json::Object &node, OperationState &state);
  LogicalResult readOperands(const json::Object &node, OperationState &state);
  void locateInput(Value value);
  LogicalResult readTypes(const json::Object &node, OperationState &state);
  LogicalResult readAttributes(const json::Object &node, OperationState &state);
  LogicalResult readOutputs(const json::Object &graph);

  FailureOr<Value> valueNumbered(const json::Value &number);
  InFlightDiagnostic error() { return emitError(loc) << where << ": "; }
  LogicalResult report(llvm::Error failure) {
    return error() << llvm::toString(std::move(failure));
  }

  MLIRContext &context;
  OpBuilder builder;
  /// What is being read, for diagnostics: "graph", "input 0 ('x')", "node 3 (weft.add)".
  std::string where = "graph";
  Location loc;
  OwningOpRef<ModuleOp> module;
  func::FuncOp entry;
  SmallVector<Location> lines, locations; ///< of the user's source, of the nodes
  SmallVector<Value> values;
};

OwningOpRef<ModuleOp> GraphImporter::import(const json::Object &graph) {
  module = ModuleOp::create(loc);
  if (failed(readVersion(graph)))
    return nullptr;
  const json::Array *nodes = graph.getArray("nodes");
  if (!nodes)
    return error() << "expected an array \"nodes\"", nullptr;
  if (failed(readLocations(graph, nodes->size())) || failed(createEntry(graph)))
    return nullptr;

  for (auto [number, node] : llvm::enumerate(*nodes)) {
    where = llvm::formatv("node {0}", number);
    if (!node.getAsObject())
      return error() << "expected an object", nullptr;
    if (failed(readNode(*node.getAsObject(), locations[number])))
      return nullptr;
  }
  if (failed(readOutputs(graph)) || failed(verify(*module)))
    return nullptr;
  return std::move(module);
}

LogicalResult GraphImporter::readVersion(const json::Object &graph) {
  std::optional<int64_t> version = graph.getInteger("version");
  if (version == graphVersion)
    return success();
  InFlightDiagnostic diagnostic = error() << "expected version " << graphVersion << ", found ";
  return version ? diagnostic << *version : diagnostic << "none";
}

/// {"lines": [...], "nodes": [...]}: for each node the number of its line, or null.
LogicalResult GraphImporter::readLocations(const json::Object &graph, size_t nodes) {
  locations.assign(nodes, builder.getUnknownLoc());
  if (!graph.get("locs"))
    return success();
  const json::Object *table = graph.getObject("locs");
  const json::Array *entries = table ? table->getArray("lines") : nullptr;
  const json::Array *numbers = table ? table->getArray("nodes") : nullptr;
  if (!entries || !numbers)
    return error() << "expected \"locs\" to be an object with arrays \"lines\" and \"nodes\"";
  if (failed(readLines(*entries)))
    return failure();
  if (numbers->size() != nodes)
    return error() << "expected a location for each of " << nodes << " nodes, found "
                   << numbers->size();
  for (auto [location, number] : llvm::zip_equal(locations, *numbers)) {
    if (number.getAsNull())
      continue;
    std::optional<int64_t> index = number.getAsInteger();
    if (!index || *index < 0 || *index >= static_cast<int64_t>(lines.size()))
      return error() << "expected the number of a line below " << lines.size() << ", found "
                     << llvm::formatv("{0}", number).str();
    location = lines[*index];
  }
  return success();
}

/// ["file.py", 12, "function"] becomes "function"("file.py":12:0).
LogicalResult GraphImporter::readLines(const json::Array &entries) {
  for (const json::Value &entry : entries) {
    const json::Array *fields = entry.getAsArray();
    std::optional<StringRef> file, function;
    std::optional<int64_t> line;
    if (fields && fields->size() == 3) {
      file = (*fields)[0].getAsString();
      line = (*fields)[1].getAsInteger();
      function = (*fields)[2].getAsString();
    }
    if (!file || !line || !function)
      return error() << "expected line " << lines.size() << " as [file, line, function]";
    lines.push_back(NameLoc::get(builder.getStringAttr(*function),
                                 FileLineColLoc::get(&context, *file, *line, 0)));
  }
  return success();
}

LogicalResult GraphImporter::createEntry(const json::Object &graph) {
  const json::Array *inputs = graph.getArray("inputs");
  std::optional<StringRef> name = graph.getString("name");
  if (!inputs || !name)
    return error() << "expected a string \"name\" and an array \"inputs\"";

  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  for (auto [number, value] : llvm::enumerate(*inputs)) {
    where = llvm::formatv("input {0}", number);
    const json::Object *input = value.getAsObject();
    if (!input || !input->getString("name") || !input->getString("kind"))
      return error() << "expected an object with strings \"name\" and \"kind\"";
    FailureOr<RankedTensorType> type = readInput(*input, number);
    if (failed(type))
      return failure();
    types.push_back(*type);
    SmallVector<NamedAttribute> facts{
        builder.getNamedAttr(attr::name, builder.getStringAttr(*input->getString("name"))),
        builder.getNamedAttr(attr::kind, builder.getStringAttr(*input->getString("kind")))};
    for (auto [key, attribute] : {std::pair("bounds", attr::bounds), {"bounded", attr::bounded}})
      if (const json::Value *given = input->get(key)) {
        llvm::Expected<SmallVector<int64_t>> numbers = parseIntegers(given);
        if (!numbers)
          return report(numbers.takeError());
        facts.push_back(builder.getNamedAttr(attribute, builder.getDenseI64ArrayAttr(*numbers)));
      }
    attributes.push_back(builder.getDictionaryAttr(facts));
  }

  builder.setInsertionPointToStart(module->getBody());
  entry = func::FuncOp::create(builder, loc, *name, builder.getFunctionType(types, {}));
  setRole(entry, EntryRole::main);
  entry.setAllArgAttrs(attributes);
  builder.setInsertionPointToStart(entry.addEntryBlock());
  for (BlockArgument argument : entry.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    values.push_back(layoutOf(type)
                         ? RelayoutOp::create(builder, loc, withLayout(type, nullptr), argument)
                         : Value(argument));
  }
  return success();
}

FailureOr<RankedTensorType> GraphImporter::readInput(const json::Object &input, size_t number) {
  StringRef kind = *input.getString("kind");
  where = llvm::formatv("input {0} ('{1}')", number, *input.getString("name"));
  if (!llvm::is_contained({"input", "weight", "buffer", "constant"}, kind))
    return error() << "expected kind to be input, weight, buffer or constant, found '" << kind
                   << "'";
  const json::Value *dtype = input.get("dtype"), *shape = input.get("shape");
  if (!dtype || !shape)
    return error() << "expected \"dtype\" and \"shape\"";
  llvm::Expected<RankedTensorType> type = parseTensorType(json::Array{*dtype, *shape}, context);
  if (!type)
    return report(type.takeError());
  return inOrder(*type, input);
}

/// `type` with the "order" of its dims that `object` gives.
FailureOr<RankedTensorType> GraphImporter::inOrder(RankedTensorType type,
                                                   const json::Object &object) {
  llvm::Expected<SmallVector<int64_t>> order = parseIntegers(object.get("order"));
  if (!order)
    return report(order.takeError());
  if (static_cast<int64_t>(order->size()) != type.getRank())
    return error() << "expected order to have as many dims as the shape (" << type.getRank()
                   << "), found " << order->size();
  if (failed(LayoutAttr::verify([&] { return error(); }, *order, -1, 0)))
    return failure();
  if (llvm::is_sorted(*order))
    return type;
  return withLayout(type, LayoutAttr::get(&context, *order, -1, 0));
}

LogicalResult GraphImporter::readNode(const json::Object &node, Location location) {
  std::optional<StringRef> name = node.getString("op");
  if (!name)
    return error() << "expected a string \"op\"";
  where += (" (" + *name + ")").str();
  loc = location;
  if (!RegisteredOperationName::lookup(*name, &context))
    return error() << "unknown op";

  OperationState state(loc, *name);
  if (failed(readOperands(node, state)) || failed(readTypes(node, state)) ||
      failed(readAttributes(node, state)) || failed(readBody(node, state)))
    return failure();
  auto report = [&] { return error(); };
  if (failed(checkParts(state, report)) ||
      failed(inferTypes(state, /*typed=*/node.get("types"), report)))
    return failure();
  Operation *op = builder.create(state);
  llvm::append_range(values, op->getResults());
  return success();
}

/// {"arguments": [types], "nodes": [...], "outputs": [numbers]}: values in it have numbers of their
/// own, and its ops the line of the node.
LogicalResult GraphImporter::readBody(const json::Object &node, OperationState &state) {
  if (state.name.getStringRef() != ScanOp::getOperationName())
    return success();
  const json::Object *body = node.getObject("body");
  const json::Array *arguments = body ? body->getArray("arguments") : nullptr;
  const json::Array *nodes = body ? body->getArray("nodes") : nullptr;
  const json::Array *outputs = body ? body->getArray("outputs") : nullptr;
  if (!arguments || !nodes || !outputs)
    return error() << "expected a \"body\" with arrays \"arguments\", \"nodes\" and \"outputs\"";

  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Value> outside = std::exchange(values, {});
  std::string whereOutside = where;
  Block *block = builder.createBlock(state.addRegion());
  for (const json::Value &argument : *arguments) {
    llvm::Expected<RankedTensorType> type = parseTensorType(argument, context);
    if (!type)
      return report(type.takeError());
    values.push_back(block->addArgument(*type, loc));
  }
  for (auto [number, inner] : llvm::enumerate(*nodes)) {
    where = llvm::formatv("{0}, node {1} of its body", whereOutside, number);
    if (!inner.getAsObject())
      return error() << "expected an object";
    if (failed(readNode(*inner.getAsObject(), loc)))
      return failure();
  }
  where = whereOutside;
  SmallVector<Value> yielded;
  for (const json::Value &number : *outputs) {
    FailureOr<Value> value = valueNumbered(number);
    if (failed(value))
      return failure();
    yielded.push_back(*value);
  }
  YieldOp::create(builder, loc, yielded);
  values = std::move(outside);
  return success();
}

FailureOr<Value> GraphImporter::valueNumbered(const json::Value &number) {
  std::optional<int64_t> index = number.getAsInteger();
  if (!index || *index < 0 || *index >= static_cast<int64_t>(values.size()))
    return error() << "expected a value number below " << values.size() << ", found "
                   << llvm::formatv("{0}", number).str();
  return values[*index];
}

LogicalResult GraphImporter::readOperands(const json::Object &node, OperationState &state) {
  const json::Array *operands = node.getArray("in");
  if (!operands)
    return error() << "expected an array \"in\"";
  for (const json::Value &number : *operands) {
    FailureOr<Value> value = valueNumbered(number);
    if (failed(value))
      return failure();
    state.operands.push_back(*value);
    locateInput(*value);
  }
  return success();
}

/// An input, and the relayout that undoes its strides, have the line that first reads them:
/// so do the kernels that only prepare it.
void GraphImporter::locateInput(Value value) {
  auto relayout = value.getDefiningOp<RelayoutOp>();
  auto argument = dyn_cast<BlockArgument>(relayout ? relayout.getOperand() : value);
  if (!argument || !isa<UnknownLoc>(argument.getLoc()))
    return;
  argument.setLoc(loc);
  if (relayout)
    relayout->setLoc(loc);
}

LogicalResult GraphImporter::readTypes(const json::Object &node, OperationState &state) {
  if (!node.get("types"))
    return success();
  const json::Array *types = node.getArray("types");
  if (!types)
    return error() << "expected \"types\" to be an array";
  for (const json::Value &value : *types) {
    llvm::Expected<RankedTensorType> type = parseTensorType(value, context);
    if (!type)
      return report(type.takeError());
    state.types.push_back(*type);
  }
  return success();
}

LogicalResult GraphImporter::readAttributes(const json::Object &node, OperationState &state) {
  const json::Object *attributes = node.getObject("attrs");
  if (!attributes)
    return success();
  auto type = state.types.empty() ? RankedTensorType() : cast<RankedTensorType>(state.types[0]);
  for (const auto &[name, value] : *attributes) {
    llvm::Expected<Attribute> attribute = parseJsonAttribute(value, type, context);
    if (!attribute)
      return error() << "attribute '" << StringRef(name)
                     << "': " << llvm::toString(attribute.takeError());
    state.addAttribute(StringRef(name), *attribute);
  }
  return success();
}

LogicalResult GraphImporter::readOutputs(const json::Object &graph) {
  where = "graph";
  loc = builder.getUnknownLoc();
  const json::Array *outputs = graph.getArray("outputs");
  if (!outputs)
    return error() << "expected an array \"outputs\"";
  SmallVector<Value> results;
  for (const json::Value &output : *outputs) {
    const json::Object *object = output.getAsObject();
    const json::Value *number = object ? object->get("value") : nullptr;
    if (!number)
      return error() << "expected each output to be an object with a \"value\"";
    FailureOr<Value> value = valueNumbered(*number);
    if (failed(value))
      return failure();
    FailureOr<RankedTensorType> type = inOrder(cast<RankedTensorType>(value->getType()), *object);
    if (failed(type))
      return failure();
    results.push_back(*type == value->getType()
                          ? *value
                          : RelayoutOp::create(builder, value->getLoc(), *type, *value));
  }
  func::ReturnOp::create(builder, loc, results);
  entry.setFunctionType(
      builder.getFunctionType(entry.getArgumentTypes(), TypeRange(ValueRange(results))));
  return success();
}

} // namespace

OwningOpRef<ModuleOp> weft::importGraph(StringRef text, MLIRContext &context) {
  context.loadDialect<WeftDialect, func::FuncDialect>();
  Location unknown = UnknownLoc::get(&context);
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value)
    return emitError(unknown) << "graph: " << llvm::toString(value.takeError()), nullptr;
  const json::Object *graph = value->getAsObject();
  if (!graph)
    return emitError(unknown) << "graph: expected a JSON object", nullptr;
  return GraphImporter(context).import(*graph);
}
