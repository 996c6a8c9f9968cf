// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/Program.h"
#include "runtime/DType.h"
#include "runtime/Errors.h"
#include "runtime/StridedCopy.h"
#include "runtime/ThreadTeam.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>
#include <numeric>

namespace weft::rt {

/// The results of @bind for one set of weights.
struct Program::Bound {
  std::vector<AlignedBuffer> buffers;
  std::vector<WeftTensor> tensors;
};

/// A call in progress; compiled code sees its WeftContext.
struct Program::Call {
  WeftContext context{};
  WeftEntryFunction function = nullptr;
  ThreadTeam *team = nullptr;
  Host *host = nullptr;
  std::exception_ptr hostFailure;
  Profile *profile = nullptr;
  std::chrono::steady_clock::time_point lastMark;

  static Call &of(WeftContext *context) { return *static_cast<Call *>(context->host); }

  /// A ThreadTeam::Task.
  static void share(void *data, int32_t thread, int32_t threads) {
    Call &call = *static_cast<Call *>(data);
    call.function(&call.context, thread, threads);
  }

  static void barrier(WeftContext *context, int32_t) { of(context).team->barrier(); }

  static void mark(WeftContext *context, int32_t index) {
    Call &call = of(context);
    auto now = std::chrono::steady_clock::now();
    call.profile->seconds[size_t(index)] +=
        std::chrono::duration<double>(now - call.lastMark).count();
    call.lastMark = now;
  }

  static int32_t fallback(WeftContext *context, int32_t index, const WeftTensor *inputs,
                          int32_t numInputs, const WeftTensor *outputs, int32_t numOutputs) {
    Call &call = of(context);
    try {
      call.host->fallback(index, {inputs, size_t(numInputs)}, {outputs, size_t(numOutputs)});
      return WEFT_OK;
    } catch (...) {
      call.hostFailure = std::current_exception();
      return WEFT_HOST_FAILED;
    }
  }
};

namespace {

std::string shapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// Names of DLPack's device types.
std::string deviceText(int32_t type, int32_t id) {
  switch (type) {
  case 1:
    return "cpu";
  case 2:
    return "cuda:" + std::to_string(id);
  default:
    return "device type " + std::to_string(type);
  }
}

[[noreturn]] void mismatch(const std::string &what, const std::string &expected,
                           const std::string &found) {
  throw ArgumentError(what + ": expected " + expected + ", found " + found);
}

/// `label` returns the tensor's name for the message; no allocation if the tensor matches.
template <typename Label>
void checkTensor(Label label, const TensorSpec &spec, const WeftTensor &tensor) {
  std::span<const int64_t> sizes(tensor.sizes, size_t(tensor.rank));
  if (tensor.device_type != 1)
    mismatch(label(), "device cpu", deviceText(tensor.device_type, tensor.device_id));
  if (tensor.dtype != spec.dtype)
    mismatch(label(), "dtype " + std::string(dtypeName(spec.dtype)),
             std::string(dtypeName(tensor.dtype)));
  if (!std::ranges::equal(sizes, spec.shape))
    mismatch(label(), "shape " + shapeText(spec.shape), shapeText(sizes));
}

/// Whether strides and alignment are as compiled. Strides of size-1 dims, and of empty tensors, are
/// irrelevant.
bool liesAsCompiled(const TensorSpec &spec, const WeftTensor &tensor) {
  for (int32_t i = 0; i < tensor.rank; ++i)
    if (spec.shape[size_t(i)] == 0)
      return true;
  for (int32_t i = 0; i < tensor.rank; ++i)
    if (spec.shape[size_t(i)] != 1 && spec.strides[size_t(i)] != tensor.strides[i])
      return false;
  return reinterpret_cast<uintptr_t>(tensor.data) % dtypeSize(spec.dtype) == 0;
}

WeftTensor describe(const TensorSpec &spec, void *data) {
  return {data, spec.shape.data(), spec.strides.data(), int32_t(spec.shape.size()), spec.dtype, 1,
          0};
}

AlignedBuffer compactCopy(const TensorSpec &spec, const WeftTensor &tensor) {
  AlignedBuffer copy(spec.numBytes());
  stridedCopy(copy.data(), spec.strides, tensor.data, {tensor.strides, size_t(tensor.rank)},
              spec.shape, dtypeSize(spec.dtype));
  return copy;
}

std::string resultLabel(size_t index) { return "result " + std::to_string(index); }

size_t tableOffset(const WeftEntry &entry) { return (entry.arena_bytes + 63) / 64 * 64; }

/// Size of a call's arena with its tensor table at the end: one allocation.
size_t callBytes(const WeftEntry &entry) {
  return tableOffset(entry) + size_t(entry.num_tensors) * sizeof(WeftTensor);
}

/// How long a call may wait for workers: a tenth of its estimated serial time, at about the peak
/// rate of one core.
ThreadTeam::Patience patienceFor(const EntrySpec &spec) {
  constexpr int64_t flopsPerNanosecond = 100, perCall = 1000;
  int64_t nanoseconds = 0;
  for (const CallSpec &call : spec.calls)
    nanoseconds += perCall + call.flops / flopsPerNanosecond;
  return ThreadTeam::Patience(nanoseconds / 10);
}

const WeftEntry &mainOf(const Artifact &artifact) {
  if (const WeftEntry *entry = artifact.entry("main"))
    return *entry;
  throw ArtifactError(artifact.path().string() + ": it has no entry \"main\"");
}

const EntrySpec &specOf(const Artifact &artifact, std::string_view name) {
  return artifact.manifest().entries.find(name)->second;
}

/// 0, 1, 2, ...
std::vector<int32_t> allArguments(const EntrySpec &spec) {
  std::vector<int32_t> numbers(spec.arguments.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// The number of @main's argument with the name of one of @bind.
int32_t findArgument(const Artifact &artifact, const EntrySpec &spec, const std::string &name) {
  for (size_t i = 0; i < spec.arguments.size(); ++i)
    if (spec.arguments[i].name == name)
      return int32_t(i);
  throw ArtifactError(artifact.path().string() + ": \"main\" lacks argument \"" + name +
                      "\" of \"bind\"");
}

} // namespace

Program::Entry::Entry(const Artifact &artifact, const WeftEntry &code,
                      std::vector<int32_t> selection)
    : code(code), spec(specOf(artifact, code.name)), selection(std::move(selection)),
      patience(patienceFor(spec)), arenas(callBytes(code)) {}

Program::Program(std::shared_ptr<const Artifact> artifact)
    : code(std::move(artifact)),
      mainEntry(*code, mainOf(*code), allArguments(specOf(*code, "main"))) {
  size_t made = 0;
  if (const WeftEntry *bind = code->entry("bind")) {
    const EntrySpec &spec = specOf(*code, "bind");
    std::vector<int32_t> selection;
    selection.reserve(spec.arguments.size());
    for (const TensorSpec &argument : spec.arguments)
      selection.push_back(findArgument(*code, mainEntry.spec, argument.name));
    bindEntry.emplace(*code, *bind, std::move(selection));
    made = spec.results.size();
  }
  if (mainEntry.spec.bound.size() != made)
    throw ArtifactError(code->path().string() + ": \"main\" has " +
                        std::to_string(mainEntry.spec.bound.size()) +
                        " bound tensors, \"bind\" makes another number");
}

Program::~Program() = default;

void Program::check(std::span<const WeftTensor> arguments) const {
  const std::vector<TensorSpec> &specs = mainEntry.spec.arguments;
  if (arguments.size() != specs.size())
    throw ArgumentError("expected " + std::to_string(specs.size()) + " arguments, found " +
                        std::to_string(arguments.size()));
  for (size_t i = 0; i < specs.size(); ++i)
    checkTensor([&] { return "argument \"" + specs[i].name + "\""; }, specs[i], arguments[i]);
}

void Program::run(std::span<const WeftTensor> arguments, std::span<const WeftTensor> results,
                  Host *host, Profile *profile) {
  check(arguments);
  const std::vector<TensorSpec> &specs = mainEntry.spec.results;
  if (results.size() != specs.size())
    throw ArgumentError("expected " + std::to_string(specs.size()) + " results, found " +
                        std::to_string(results.size()));
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].alias)
      continue;
    checkTensor([&] { return resultLabel(i); }, specs[i], results[i]);
    if (!liesAsCompiled(specs[i], results[i]))
      mismatch(resultLabel(i), "aligned memory with strides " + shapeText(specs[i].strides),
               shapeText({results[i].strides, size_t(results[i].rank)}));
  }
  if (!host && !code->manifest().fallbacks.empty())
    throw ArtifactError(code->path().string() + ": needs PyTorch to run " +
                        code->manifest().fallbacks.front().target);

  std::shared_ptr<const Bound> current;
  if (bindEntry)
    current = findBound(arguments, host);
  execute(mainEntry, arguments, current.get(), results, host, profile);
}

void Program::bind(std::span<const WeftTensor> arguments, Host *host) {
  if (!bindEntry)
    return;
  check(arguments);
  std::lock_guard lock(binding);
  bound.store(makeBound(arguments, host));
}

std::shared_ptr<const Program::Bound> Program::findBound(std::span<const WeftTensor> arguments,
                                                         Host *host) {
  std::shared_ptr<const Bound> current = bound.load();
  if (current)
    return current;
  std::lock_guard lock(binding);
  current = bound.load();
  if (!current)
    bound.store(current = makeBound(arguments, host));
  return current;
}

std::shared_ptr<const Program::Bound> Program::makeBound(std::span<const WeftTensor> arguments,
                                                         Host *host) {
  auto fresh = std::make_shared<Bound>();
  for (const TensorSpec &spec : bindEntry->spec.results) {
    fresh->buffers.emplace_back(spec.numBytes());
    fresh->tensors.push_back(describe(spec, fresh->buffers.back().data()));
  }
  execute(*bindEntry, arguments, nullptr, fresh->tensors, host, nullptr);
  return fresh;
}

/// `arguments` are those of @main.
void Program::execute(Entry &entry, std::span<const WeftTensor> arguments,
                      const Bound *boundTensors, std::span<const WeftTensor> results, Host *host,
                      Profile *profile) {
  const EntrySpec &spec = entry.spec;
  ArenaPool::Lease arena = entry.arenas.acquire();
  auto *table = reinterpret_cast<WeftTensor *>(arena.data() + tableOffset(entry.code));
  WeftTensor *next = table;
  std::vector<AlignedBuffer> copies;
  for (size_t i = 0; i < entry.selection.size(); ++i) {
    const TensorSpec &wanted = spec.arguments[i];
    const WeftTensor &given = arguments[size_t(entry.selection[i])];
    if (liesAsCompiled(wanted, given)) {
      *next++ = given;
      continue;
    }
    copies.push_back(compactCopy(wanted, given));
    *next++ = describe(wanted, copies.back().data());
  }
  if (boundTensors)
    next = std::copy(boundTensors->tensors.begin(), boundTensors->tensors.end(), next);
  std::copy(results.begin(), results.end(), next);

  Call call;
  call.context = {.struct_size = sizeof(WeftContext),
                  .flags = 0,
                  .tensors = table,
                  .arena = arena.data(),
                  .barrier = Call::barrier,
                  .fallback = Call::fallback,
                  .mark = profile ? Call::mark : nullptr,
                  .status = WEFT_OK,
                  .stage = 0,
                  .host = &call};
  call.function = entry.code.function;
  call.team = &ThreadTeam::process();
  call.host = host;
  int32_t threads = std::min(getNumThreads(), entry.code.max_threads);
  call.profile = profile;
  if (profile) {
    profile->seconds.assign(spec.calls.size(), 0.0);
    call.lastMark = std::chrono::steady_clock::now();
  }
  int32_t &stage = call.context.stage, &status = call.context.status;
  for (stage = entry.code.first_stage; stage < entry.code.end_stage && status == WEFT_OK; ++stage) {
    if (stage % 2 == 0)
      call.team->run(threads, Call::share, &call, entry.patience);
    else
      Call::share(&call, 0, 1);
  }

  if (call.hostFailure)
    std::rethrow_exception(call.hostFailure);
  if (status > 0)
    throw AssertError(spec.asserts.at(size_t(status - 1)));
}

} // namespace weft::rt
