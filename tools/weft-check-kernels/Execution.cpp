// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inputs from a seed, memory with borders that are looked at afterwards, and the call. The runtime
// throws; its exceptions stop here.
#include "Execution.h"
#include "runtime/Arena.h"
#include "runtime/DType.h"
#include "runtime/Program.h"
#include "runtime/Seal.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace weft;
using namespace weft::check;

namespace {

/// Bytes before and behind a tensor that nobody may write.
constexpr size_t border = 4096;
constexpr char untouched = char(0xA5);

/// A tensor in memory of its own.
class Memory {
public:
  explicit Memory(const rt::TensorSpec &spec) : spec(spec), buffer(spec.numBytes() + 2 * border) {
    std::memset(buffer.data(), untouched, buffer.size());
  }

  char *data() const { return buffer.data() + border; }
  WeftTensor tensor() const {
    return {
        data(), spec.shape.data(), spec.strides.data(), int32_t(spec.shape.size()), spec.dtype, 1,
        0};
  }
  bool isWithinBorders() const {
    auto holds = [](char byte) { return byte == untouched; };
    const char *start = buffer.data(), *end = data() + spec.numBytes();
    return std::all_of(start, start + border, holds) && std::all_of(end, end + border, holds);
  }
  void write(const Numbers &numbers);
  Numbers read() const;

private:
  /// Calls `visit` with the address of each element, in row-major order.
  template <typename Visit> void forEachElement(Visit visit) const;

  const rt::TensorSpec &spec;
  rt::AlignedBuffer buffer;
};

} // namespace

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static const llvm::fltSemantics &halfSemantics(int32_t dtype) {
  return dtype == WEFT_F16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat();
}

static bool isReal(int32_t dtype) { return dtype <= WEFT_F16; }

template <typename T> static void put(char *address, T value) {
  std::memcpy(address, &value, sizeof value);
}
template <typename T> static T get(const char *address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

static void putNumber(char *address, int32_t dtype, const Number &number) {
  switch (dtype) {
  case WEFT_F64:
    return put(address, number.real);
  case WEFT_F32:
    return put(address, float(number.real));
  case WEFT_F16:
  case WEFT_BF16: {
    llvm::APFloat half(number.real);
    bool lost;
    half.convert(halfSemantics(dtype), llvm::APFloat::rmNearestTiesToEven, &lost);
    return put(address, uint16_t(half.bitcastToAPInt().getZExtValue()));
  }
  default: // little endian: the low bytes come first
    std::memcpy(address, &number.integer, rt::dtypeSize(dtype));
  }
}

static Number getNumber(const char *address, int32_t dtype) {
  switch (dtype) {
  case WEFT_F64:
    return Number::ofReal(get<double>(address));
  case WEFT_F32:
    return Number::ofReal(get<float>(address));
  case WEFT_F16:
  case WEFT_BF16: {
    llvm::APFloat half(halfSemantics(dtype), llvm::APInt(16, get<uint16_t>(address)));
    bool lost;
    half.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lost);
    return Number::ofReal(half.convertToDouble());
  }
  case WEFT_I64:
    return Number::ofInteger(get<int64_t>(address));
  case WEFT_I32:
    return Number::ofInteger(get<int32_t>(address));
  case WEFT_I16:
    return Number::ofInteger(get<int16_t>(address));
  default: // the reference has bytes with a sign
    return Number::ofInteger(get<int8_t>(address));
  }
}

template <typename Visit> void Memory::forEachElement(Visit visit) const {
  size_t size = rt::dtypeSize(spec.dtype);
  std::vector<int64_t> index(spec.shape.size(), 0);
  for (int64_t number = 0, end = spec.numElements(); number < end; ++number) {
    int64_t offset = 0;
    for (size_t dim = 0; dim < index.size(); ++dim)
      offset += index[dim] * spec.strides[dim];
    visit(number, data() + offset * int64_t(size));
    for (size_t dim = index.size(); dim > 0; --dim) {
      if (++index[dim - 1] < spec.shape[dim - 1])
        break;
      index[dim - 1] = 0;
    }
  }
}

void Memory::write(const Numbers &numbers) {
  forEachElement([&](int64_t number, char *address) {
    putNumber(address, spec.dtype, numbers[size_t(number)]);
  });
}

Numbers Memory::read() const {
  Numbers numbers(size_t(spec.numElements()));
  forEachElement([&](int64_t number, const char *address) {
    numbers[size_t(number)] = getNumber(address, spec.dtype);
  });
  return numbers;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

static Range usualRange(int32_t dtype) {
  switch (dtype) {
  case WEFT_BOOL:
    return {0, 1};
  case WEFT_U8:
    return {0, 100};
  default:
    return isReal(dtype) ? Range{-1, 1} : Range{-9, 9};
  }
}

/// Numbers that the type of the input holds.
static Numbers draw(const rt::TensorSpec &spec, const std::map<std::string, Range> &ranges,
                    std::mt19937_64 &random) {
  auto given = ranges.find(spec.name);
  Range range = given == ranges.end() ? usualRange(spec.dtype) : given->second;
  Memory memory(spec);
  Numbers numbers(size_t(spec.numElements()));
  for (Number &number : numbers) {
    // Not by the library's distributions, which differ between libraries.
    double share = double(random() >> 11) * 0x1p-53;
    number = isReal(spec.dtype)
                 ? Number::ofReal(range.low + share * (range.high - range.low))
                 : Number::ofInteger(
                       int64_t(std::floor(range.low + share * (range.high - range.low + 1))));
  }
  memory.write(numbers);
  return memory.read();
}

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

static bool differ(const Numbers &before, const Numbers &after) {
  for (size_t index = 0; index < before.size(); ++index)
    if (before[index].real != after[index].real || before[index].integer != after[index].integer)
      return true;
  return false;
}

static std::string findFault(const rt::EntrySpec &signature, const std::vector<Numbers> &inputs,
                             const std::vector<Memory> &arguments,
                             const std::vector<Memory> &results) {
  for (size_t number = 0; number < arguments.size(); ++number) {
    const std::string &name = signature.arguments[number].name;
    if (!arguments[number].isWithinBorders())
      return "memory around input " + name + " was written";
    if (differ(inputs[number], arguments[number].read()))
      return "input " + name + " was written";
  }
  for (size_t number = 0; number < results.size(); ++number)
    if (!results[number].isWithinBorders())
      return "memory around result " + std::to_string(number) + " of main was written";
  return "";
}

static Run call(const std::string &path, const std::map<std::string, Range> &ranges, uint64_t seed,
                int32_t threads) {
  rt::setNumThreads(threads);
  rt::Program program(rt::Artifact::load(path));
  const rt::EntrySpec &signature = program.signature();
  std::mt19937_64 random(seed);
  Run run;
  std::vector<Memory> arguments, results;
  std::vector<WeftTensor> argumentTensors, resultTensors;
  for (const rt::TensorSpec &spec : signature.arguments) {
    run.inputNames.push_back(spec.name);
    run.inputs.push_back(draw(spec, ranges, random));
    arguments.emplace_back(spec).write(run.inputs.back());
    argumentTensors.push_back(arguments.back().tensor());
  }
  for (const rt::TensorSpec &spec : signature.results)
    resultTensors.push_back(results.emplace_back(spec).tensor());

  program.run(argumentTensors, resultTensors);

  for (size_t number = 0; number < results.size(); ++number) {
    const std::optional<rt::Alias> &alias = signature.results[number].alias;
    const Memory &memory = !alias                               ? results[number]
                           : alias->kind == rt::Alias::Argument ? arguments[size_t(alias->index)]
                                                                : results[size_t(alias->index)];
    run.results.push_back(memory.read());
  }
  run.fault = findFault(signature, run.inputs, arguments, results);
  return run;
}

//===----------------------------------------------------------------------===//
// The border to code without exceptions
//===----------------------------------------------------------------------===//

template <typename Function>
static auto caught(Function function) -> llvm::Expected<decltype(function())> {
  try {
    return function();
  } catch (const std::exception &error) {
    return llvm::createStringError(error.what());
  }
}

llvm::Error weft::check::seal(const std::string &path) {
  auto sealed = caught([&] {
    rt::sealArtifact(path);
    return true;
  });
  return sealed ? llvm::Error::success() : sealed.takeError();
}

llvm::Expected<Run> weft::check::runArtifact(const std::string &path,
                                             const std::map<std::string, Range> &ranges,
                                             uint64_t seed, int32_t threads) {
  return caught([&] { return call(path, ranges, seed, threads); });
}
