// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/DispatcherCall.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace nb = nanobind;

namespace weft {

template <typename Handle> static TorchAbi::Value toValue(Handle handle) {
  return std::bit_cast<TorchAbi::Value>(handle);
}
template <typename Handle> static Handle fromValue(TorchAbi::Value value) {
  return std::bit_cast<Handle>(value);
}

DispatcherCall::DispatcherCall(const TorchAbi &abi, PyObject *description) : abi(abi) {
  nb::tuple parts = nb::cast<nb::tuple>(nb::handle(description));
  op = nb::cast<std::string>(parts[0]);
  overload = nb::cast<std::string>(parts[1]);
  for (nb::handle argument : nb::cast<nb::tuple>(parts[2]))
    arguments.push_back(parse(argument.ptr()));
  listResults = nb::cast<std::vector<bool>>(parts[3]);
}

DispatcherCall::Argument DispatcherCall::parse(PyObject *description) {
  nb::tuple parts = nb::cast<nb::tuple>(nb::handle(description));
  Argument argument;
  argument.kind = static_cast<Argument::Kind>(nb::cast<int>(parts[0]));
  switch (argument.kind) {
  case Argument::Tensor:
  case Argument::Result:
  case Argument::Bits:
    argument.bits = nb::cast<uint64_t>(parts[1]);
    return argument;
  case Argument::Constant:
    // As the shim's own conversion from int32_t leaves it: the upper half is zero.
    argument.bits =
        static_cast<uint32_t>(TorchAbi::constant(nb::cast<std::string>(parts[1]).c_str()));
    return argument;
  case Argument::String:
    argument.text = nb::cast<std::string>(parts[1]);
    return argument;
  case Argument::List:
    for (nb::handle child : nb::cast<nb::tuple>(parts[1]))
      argument.children.push_back(parse(child.ptr()));
    return argument;
  case Argument::Some:
    argument.children.push_back(parse(nb::handle(parts[1]).ptr()));
    return argument;
  }
  throw nb::value_error("expected a kind of argument");
}

namespace {

/// No gradients on this thread: the graph has none of them.
class WithoutGradients {
public:
  explicit WithoutGradients(const TorchAbi &abi) : abi(abi), before(abi.gradEnabled()) {
    if (before)
      abi.setGradEnabled(false);
  }
  ~WithoutGradients() {
    if (before)
      abi.setGradEnabled(true);
  }
  WithoutGradients(const WithoutGradients &) = delete;
  WithoutGradients &operator=(const WithoutGradients &) = delete;

private:
  const TorchAbi &abi;
  bool before;
};

} // namespace

bool DispatcherCall::run(std::span<const WeftTensor> inputs,
                         std::span<const WeftTensor> outputs) const {
  WithoutGradients guard(abi);
  std::vector<TorchAbi::Value> stack(std::max(arguments.size(), listResults.size()));
  for (size_t i = 0; i < arguments.size(); ++i)
    stack[i] = make(arguments[i], inputs, outputs);
  // Takes all arguments over, whether it succeeds or not.
  if (abi.callDispatcher(op.c_str(), overload.c_str(), stack.data(), abi.version()))
    return false;
  return store(stack, outputs);
}

TorchAbi::Value DispatcherCall::make(const Argument &argument, std::span<const WeftTensor> inputs,
                                     std::span<const WeftTensor> outputs) const {
  switch (argument.kind) {
  case Argument::Tensor:
    return toValue(wrap(inputs[argument.bits]));
  case Argument::Result:
    return toValue(wrap(outputs[argument.bits]));
  case Argument::String: {
    TorchAbi::String text;
    check(abi.newString(argument.text.data(), argument.text.size(), &text));
    return toValue(text);
  }
  case Argument::List: {
    TorchAbi::List list;
    check(abi.newList(argument.children.size(), &list));
    for (const Argument &child : argument.children)
      check(abi.pushBack(list, make(child, inputs, outputs)));
    return toValue(list);
  }
  case Argument::Some: {
    TorchAbi::Value *value;
    check(abi.newValue(&value));
    *value = make(argument.children.front(), inputs, outputs);
    return toValue(value);
  }
  case Argument::Bits:
  case Argument::Constant:
    return argument.bits;
  }
  return 0;
}

TorchAbi::Tensor DispatcherCall::wrap(const WeftTensor &tensor) const {
  TorchAbi::Tensor handle;
  check(abi.tensorFromBlob(tensor.data, tensor.rank, tensor.sizes, tensor.strides, 0,
                           abi.dtype(tensor.dtype), 0, -1, &handle));
  return handle;
}

/// Copies the results and frees them all, also where one does not fit.
bool DispatcherCall::store(std::span<TorchAbi::Value> stack,
                           std::span<const WeftTensor> outputs) const {
  std::vector<TorchAbi::Tensor> results;
  for (size_t i = 0; i < listResults.size(); ++i) {
    if (!listResults[i]) {
      results.push_back(fromValue<TorchAbi::Tensor>(stack[i]));
      continue;
    }
    auto list = fromValue<TorchAbi::List>(stack[i]);
    size_t size;
    check(abi.listSize(list, &size));
    for (size_t k = 0; k < size; ++k) {
      TorchAbi::Value item;
      check(abi.listItem(list, k, &item));
      results.push_back(fromValue<TorchAbi::Tensor>(item));
    }
    check(abi.deleteList(list));
  }
  bool fits = results.size() == outputs.size();
  for (size_t i = 0; i < results.size(); ++i) {
    fits = fits && (liesIn(outputs[i], results[i]) || copyInto(outputs[i], results[i]));
    check(abi.deleteTensor(results[i]));
  }
  return fits;
}

/// Whether the op has written where it was told to: for a result of another shape it would have
/// taken other memory.
bool DispatcherCall::liesIn(const WeftTensor &output, TorchAbi::Tensor result) const {
  void *data;
  return !abi.dataPointer(result, &data) && data && data == output.data;
}

bool DispatcherCall::copyInto(const WeftTensor &output, TorchAbi::Tensor result) const {
  int64_t rank, *sizes;
  if (abi.rank(result, &rank) || abi.sizes(result, &sizes))
    return false;
  if (!std::equal(sizes, sizes + rank, output.sizes, output.sizes + output.rank))
    return false;
  // torch copies, since the result may have any layout, dtype or negative bit.
  TorchAbi::Tensor target = wrap(output);
  TorchAbi::Status status = abi.copy(target, result, 0);
  check(abi.deleteTensor(target));
  return status == 0;
}

void DispatcherCall::check(TorchAbi::Status status) const {
  if (status)
    throw std::runtime_error(abi.lastError());
}

} // namespace weft
