// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/Specialization.h"

#include "python/bindings/DictVersion.h"
#include "python/bindings/Torch.h"
#include "python/bindings/TrainingStep.h"
#include "runtime/DType.h"
#include "runtime/Errors.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace nb = nanobind;

namespace weft {

/// Buffers for one call, given back empty.
class Specialization::Lease {
public:
  explicit Lease(Specialization &owner) : owner(owner) {
    if (owner.idle.empty()) {
      buffers = std::make_unique<Buffers>();
    } else {
      buffers = std::move(owner.idle.back());
      owner.idle.pop_back();
    }
    buffers->found.resize(owner.places());
    buffers->slotViews.resize(owner.slots.size());
  }
  ~Lease() {
    // Dropping a tensor may run Python code, which may call the program: only then is it idle.
    buffers->found.clear();
    buffers->tensors.clear();
    owner.idle.push_back(std::move(buffers));
  }
  Lease(const Lease &) = delete;
  Lease &operator=(const Lease &) = delete;

  Buffers &operator*() { return *buffers; }

private:
  Specialization &owner;
  std::unique_ptr<Buffers> buffers;
};

Specialization::Outcome Specialization::call(const CallArguments &call, PyRef &value,
                                             std::string &reason, rt::Profile *profile) {
  Lease lease(*this);
  Buffers &buffers = *lease;
  if (Outcome outcome = compute(buffers, call, reason, profile); outcome != Done)
    return outcome;
  if (!commit(buffers.found, buffers.tensors) || !layOut(buffers.tensors, buffers.resultViews))
    return Error;
  value = outputs->build(buffers.tensors, buffers.found);
  return value ? Done : Error;
}

Specialization::Outcome Specialization::evaluate(const CallArguments &call, Evaluation &found,
                                                 std::string &reason) {
  Lease lease(*this);
  Buffers &buffers = *lease;
  if (Outcome outcome = compute(buffers, call, reason, nullptr); outcome != Done)
    return outcome;
  found.results = buffers.tensors;
  if (!layOut(buffers.tensors, buffers.resultViews))
    return Error;
  found.laidOut = buffers.tensors;
  found.value = outputs->build(buffers.tensors, buffers.found);
  return found.value ? Done : Error;
}

static std::vector<PyObject *> pointersTo(const std::vector<PyRef> &objects) {
  std::vector<PyObject *> pointers;
  pointers.reserve(objects.size());
  for (const PyRef &each : objects)
    pointers.push_back(each.get());
  return pointers;
}

Specialization::Outcome Specialization::callRecorded(const CallArguments &call, PyRef &value,
                                                     std::string &reason) {
  Lease lease(*this);
  Buffers &buffers = *lease;
  if (Outcome outcome = findSources(buffers, call, reason); outcome != Done)
    return outcome;
  PyRef alive = training;
  const auto &step = *nb::inst_ptr<TrainingStep>(nb::handle(alive.get()));
  std::vector<PyObject *> inputs;
  inputs.reserve(sources.size());
  for (const Source &source : sources)
    inputs.push_back(sourceTensor(source, buffers.found));
  // A slice of other memory is a view to autograd.
  if (!offsets.empty() || !step.isPlain(inputs))
    return Unusual;
  if (Outcome outcome = computeResults(buffers, reason, nullptr); outcome != Done)
    return outcome;
  std::vector<PyRef> results = buffers.tensors;
  if (!layOut(buffers.tensors, buffers.resultViews) ||
      !step.record({inputs, inputs, pointersTo(results), pointersTo(buffers.tensors), Py_None}))
    return Error;
  value = outputs->build(buffers.tensors, buffers.found);
  return value ? Done : Error;
}

std::unique_ptr<Specialization> Specialization::copyForOtherTensors() const {
  auto copy = std::make_unique<Specialization>();
  copy->arguments = arguments;
  copy->names = names;
  copy->objects = objects;
  copy->numbers = numbers;
  copy->slots = slots;
  copy->sameAs = sameAs;
  copy->program = program;
  copy->host = host;
  copy->eagerStrides = eagerStrides;
  copy->offsets = offsets;
  copy->saveRandomState = saveRandomState;
  copy->restoreRandomState = restoreRandomState;
  copy->weights = weights.forOtherTensors();
  copy->lastUse = lastUse;
  return copy;
}

Specialization::Outcome Specialization::compute(Buffers &buffers, const CallArguments &call,
                                                std::string &reason, rt::Profile *profile) {
  Outcome outcome = findSources(buffers, call, reason);
  return outcome == Done ? computeResults(buffers, reason, profile) : outcome;
}

Specialization::Outcome Specialization::findSources(Buffers &buffers, const CallArguments &call,
                                                    std::string &reason) {
  auto &[found, tensors, slotViews, views, resultViews, sourceTensors] = buffers;
  if (!matches(call, found, slotViews))
    return Mismatch;
  if (!program)
    return Declined;
  if (!viewSources(found, slotViews, views))
    return Mismatch;
  std::optional<bool> overlap = writesOverlap(found, slotViews, views);
  if (!overlap)
    return Error;
  if (*overlap) {
    reason = "a tensor that the program writes to shares memory with another input";
    return Declined;
  }
  return Done;
}

Specialization::Outcome Specialization::computeResults(Buffers &buffers, std::string &reason,
                                                       rt::Profile *profile) {
  auto &[found, tensors, slotViews, views, resultViews, sourceTensors] = buffers;
  std::optional<TorchCall> torch;
  if (host)
    torch.emplace(*nb::inst_ptr<TorchHost>(nb::handle(host.get())));
  rt::Host *torchHost = torch ? &*torch : nullptr;

  if (!weights.empty()) {
    sourceTensors.clear();
    for (const Source &source : sources)
      sourceTensors.push_back(sourceTensor(source, found));
    if (weights.changed(sourceTensors, views)) {
      program->bind(views, torchHost);
      weights.settle();
    }
  }

  if (!allocate(tensors, resultViews))
    return Error;
  PyRef randomState;
  if (saveRandomState) {
    randomState = PyRef::steal(PyObject_CallNoArgs(saveRandomState.get()));
    if (!randomState)
      return Error;
  }
  if (!execute(views, resultViews, torchHost, reason, profile)) {
    if (randomState &&
        !PyRef::steal(PyObject_CallOneArg(restoreRandomState.get(), randomState.get())))
      return Error;
    return Declined;
  }
  return fillAliases(found, tensors) ? Done : Error;
}

bool Specialization::standsFor(const CallArguments &call) {
  std::vector<PyRef> found(places());
  std::vector<WeftTensor> slotViews(slots.size()), views;
  return matches(call, found, slotViews) && (!program || viewSources(found, slotViews, views));
}

bool Specialization::matches(const CallArguments &call, std::vector<PyRef> &found,
                             std::vector<WeftTensor> &views) const {
  return findTensors(call, found) && viewSlots(found, views);
}

/// Of the user's making, which code may read; torch.compile leaves notes of its own, and so do
/// programs (`own_attributes` in capture/signature.py).
static bool hasAttributes(PyObject *tensor) {
  PyObject *attributes = instanceDict(tensor), *name, *value;
  if (!attributes)
    return false;
  for (Py_ssize_t position = 0; PyDict_Next(attributes, &position, &name, &value);) {
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
    std::string_view own = text ? text : "";
    bool isMark = own.starts_with("_dynamo_") || own.starts_with("_has_dynamo_") ||
                  own.starts_with("_specialize_on") || own.starts_with("weft_");
    if (!isMark)
      return true;
  }
  return false;
}

bool Specialization::findTensors(const CallArguments &call, std::vector<PyRef> &found) const {
  Py_ssize_t named = PyTuple_GET_SIZE(names.get());
  if (call.named() != named || call.positional + named != static_cast<Py_ssize_t>(arguments.size()))
    return false;
  for (Py_ssize_t i = 0; i < named; ++i)
    if (PyUnicode_Compare(PyTuple_GET_ITEM(call.names, i), PyTuple_GET_ITEM(names.get(), i)))
      return false;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].match(call.values[i], found))
      return false;
  if (numbers.function) {
    found[slots.size() - 1] = numbers.tensorOf(&found[slots.size()]);
    if (!found[slots.size() - 1])
      return false;
  }
  // Asking PyTorch lets other threads run: nothing is viewed before.
  for (size_t i = 0; i < slots.size(); ++i) {
    PyObject *tensor = found[i].get();
    // The same objects in the same places, and no others: `x is y` may have been asked.
    for (size_t j = 0; j < i; ++j)
      if ((found[j].get() == tensor) != (sameAs[j] == sameAs[i]))
        return false;
    if (!slots[i].isOfType(tensor) || hasAttributes(tensor) || Torch::get().isNegated(tensor))
      return false;
  }
  return true;
}

bool Specialization::viewSlots(const std::vector<PyRef> &found,
                               std::vector<WeftTensor> &views) const {
  for (size_t i = 0; i < slots.size(); ++i)
    if (!slots[i].matches(found[i].get(), views[i]))
      return false;
  return true;
}

bool Specialization::viewSources(const std::vector<PyRef> &found,
                                 std::vector<WeftTensor> &slotViews,
                                 std::vector<WeftTensor> &views) {
  views.resize(sources.size());
  // Asking PyTorch lets other threads run, which may free a storage that has been viewed.
  for (bool asked = true, again = false; asked; again = true) {
    if (again && !viewSlots(found, slotViews))
      return false;
    asked = false;
    for (size_t i = 0; i < sources.size(); ++i) {
      Source &source = sources[i];
      if (source.slot >= 0) {
        views[i] = slotViews[source.slot];
        continue;
      }
      if (!source.guard.matches(source.tensor.get(), views[i]))
        return false;
      // Only a new storage (`p.data = ...`) can bring the negative bit in.
      if (source.checked != views[i].data) {
        asked = true;
        if (Torch::get().isNegated(source.tensor.get()))
          return false;
        source.checked = views[i].data;
      }
    }
  }
  return true;
}

PyObject *originalOf(PyObject *tensor) {
  static PyObject *name = PyUnicode_InternFromString(originalName);
  PyObject *attributes = instanceDict(tensor);
  return attributes ? PyDict_GetItemWithError(attributes, name) : nullptr;
}

namespace {
struct Range {
  const char *begin, *end;
  bool overlaps(const Range &other) const { return begin < other.end && other.begin < end; }
};
} // namespace

static Range memoryOf(const WeftTensor &tensor) {
  int64_t last = 0;
  for (int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.sizes[i] == 0)
      return {nullptr, nullptr};
    last += (tensor.sizes[i] - 1) * tensor.strides[i];
  }
  const char *begin = static_cast<const char *>(tensor.data);
  return {begin, begin + (last + 1) * static_cast<int64_t>(rt::dtypeSize(tensor.dtype))};
}

std::optional<bool> Specialization::writesOverlap(const std::vector<PyRef> &found,
                                                  const std::vector<WeftTensor> &slotViews,
                                                  const std::vector<WeftTensor> &views) const {
  if (effects.empty())
    return false;
  std::vector<Range> ofSlots;
  for (size_t i = 0; i < slotViews.size(); ++i) {
    WeftTensor view = slotViews[i];
    dlpack::Tensor original;
    if (PyObject *own = originalOf(found[i].get())) {
      if (!Torch::get().view(own, original))
        return std::nullopt;
      view.data = static_cast<char *>(original.data) + original.byteOffset;
      view.sizes = original.sizes;
      view.strides = original.strides;
    }
    ofSlots.push_back(memoryOf(view));
  }
  for (const Effect &effect : effects) {
    WeftTensor target;
    bool isSlot = effect.target.slot >= 0;
    if (!isSlot && !effect.target.guard.matches(effect.target.tensor.get(), target))
      return true;
    Range written = isSlot ? ofSlots[effect.target.slot] : memoryOf(target);
    auto disturbs = [&](const Range &other, bool itself) {
      return !itself && written.overlaps(other);
    };
    for (size_t i = 0; i < ofSlots.size(); ++i)
      if (disturbs(ofSlots[i], isSlot && sameAs[i] == sameAs[effect.target.slot]))
        return true;
    for (size_t i = 0; i < sources.size(); ++i)
      if (sources[i].slot < 0 &&
          disturbs(memoryOf(views[i]), sources[i].tensor.get() == effect.target.tensor.get()))
        return true;
  }
  return false;
}

bool Specialization::execute(const std::vector<WeftTensor> &views,
                             const std::vector<WeftTensor> &resultViews, rt::Host *torch,
                             std::string &reason, rt::Profile *profile) {
  rt::Profile ofFirstCalls;
  if (!profile && timedSoFar < timedCalls)
    profile = &ofFirstCalls;
  try {
    // Nothing but PyTorch's operations may wait for someone who waits for the GIL.
    std::optional<nb::gil_scoped_release> released;
    if (torch || !isShort)
      released.emplace();
    program->run(views, resultViews, torch, profile);
  } catch (const rt::AssertError &error) {
    reason = error.what();
    return false;
  } catch (const nb::python_error &error) {
    reason = error.what();
    return false;
  }
  if (profile)
    record(*profile);
  return true;
}

void Specialization::record(const rt::Profile &profile) {
  ++timedSoFar;
  if (timed.empty())
    timed = profile.seconds;
  else
    for (size_t i = 0; i < timed.size(); ++i)
      timed[i] = std::min(timed[i], profile.seconds[i]);
  if (timedSoFar < timedCalls)
    return;
  double total = std::accumulate(timed.begin(), timed.end(), 0.0);
  isShort = total <= longestWithGil;
  if (total >= leastWithFootprint)
    findFootprint();
}

void Specialization::findFootprint() {
  footprint = Footprint();
  for (const Source &source : sources) {
    footprint.add(&source);
    if (source.slot < 0)
      source.guard.addTo(footprint, source.tensor.get());
  }
  footprint.sort();
}

PyObject *Specialization::sourceTensor(const Source &source,
                                       const std::vector<PyRef> &found) const {
  return source.slot >= 0 ? found[source.slot].get() : source.tensor.get();
}

int Specialization::traverse(visitproc visit, void *arg) const {
  for (const Pattern &pattern : arguments)
    if (int status = pattern.traverse(visit, arg))
      return status;
  for (const Source &source : sources)
    Py_VISIT(source.tensor.get());
  for (const Effect &effect : effects)
    Py_VISIT(effect.target.tensor.get());
  Py_VISIT(host.get());
  Py_VISIT(training.get());
  Py_VISIT(numbers.function.get());
  return outputs ? outputs->traverse(visit, arg) : 0;
}

void Specialization::clear() {
  arguments.clear();
  sources.clear();
  effects.clear();
  host = training = PyRef();
  numbers = {};
  outputs.reset();
}

} // namespace weft
