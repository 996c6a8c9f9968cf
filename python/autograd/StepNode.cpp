// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/autograd/StepNode.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <cmath>
#include <mutex>

namespace weft::autograd {

using torch::autograd::SavedVariable;

/// In the order of WeftDType.
static constexpr c10::ScalarType scalarTypes[WEFT_BOOL + 1] = {
    c10::kDouble, c10::kFloat, c10::kBFloat16, c10::kHalf, c10::kLong,
    c10::kInt,    c10::kShort, c10::kChar,     c10::kByte, c10::kBool};

static const at::Tensor &tensorOf(PyObject *object) { return THPVariable_Unpack(object); }

bool isPlain(const at::Tensor &tensor) {
  static constexpr c10::DispatchKeySet ordinary(
      {c10::DispatchKey::CPU, c10::DispatchKey::ADInplaceOrView, c10::DispatchKey::AutogradCPU,
       c10::DispatchKey::AutocastCPU});
  if ((tensor.key_set() | ordinary) != ordinary)
    return false;
  PyObject *object = tensor.unsafeGetTensorImpl()->pyobj_slot()->load_pyobj();
  return !object || THPVariable_CheckExact(object);
}

static bool arePlain(const StepNode::Tensors &tensors) {
  return std::ranges::all_of(
      tensors, [](const at::Tensor &tensor) { return !tensor.defined() || isPlain(tensor); });
}

/// None for a tensor of a type that no program has.
static std::optional<WeftTensor> view(const at::Tensor &tensor) {
  const auto *type = std::ranges::find(scalarTypes, tensor.scalar_type());
  if (type == std::end(scalarTypes))
    return std::nullopt;
  return WeftTensor{tensor.data_ptr(),
                    tensor.sizes().data(),
                    tensor.strides().data(),
                    static_cast<int32_t>(tensor.dim()),
                    static_cast<int32_t>(type - scalarTypes),
                    /*device_type=*/1,
                    /*device_id=*/0};
}

static at::Tensor allocate(const Step::Layout &layout) {
  return at::Tensor(
      at::detail::empty_strided_cpu(layout.sizes, layout.strides, scalarTypes[layout.dtype]));
}

StepNode::StepNode(const Step &step, std::span<PyObject *const> inputs) : step(step) {
  Py_INCREF(step.owner);
  torch::autograd::edge_list edges;
  edges.reserve(step.wrt.size());
  for (size_t number : step.wrt)
    edges.push_back(torch::autograd::impl::gradient_edge(tensorOf(inputs[number])));
  set_next_edges(std::move(edges));
  size_t parts = 1 + std::ranges::max(step.parts);
  given.resize(parts);
  released.resize(parts);
}

StepNode::~StepNode() {
  // At its end the interpreter takes everything along.
  if (!Py_IsInitialized())
    return;
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF(step.owner);
  PyGILState_Release(gil);
}

void StepNode::save(std::span<PyObject *const> inputs, std::span<PyObject *const> results) {
  saved.reserve(step.saved.size());
  for (const Step::Kept &each : step.saved) {
    const at::Tensor &tensor = tensorOf((each.isInput ? inputs : results)[each.number]);
    saved.emplace_back(tensor, /*is_output=*/tensor.grad_fn().get() == this);
  }
  beside.reserve(step.beside.size());
  for (size_t number : step.beside) {
    const at::Tensor &tensor = tensorOf(inputs[number]);
    beside.push_back({number, tensor, static_cast<uint32_t>(tensor._version())});
  }
}

void StepNode::release_variables() {
  std::lock_guard<std::mutex> lock(mutex_);
  bool all = true;
  for (size_t part = 0; part < released.size(); ++part) {
    released[part] = released[part] || given[part];
    all = all && released[part];
  }
  if (!all)
    return;
  for (SavedVariable &each : saved)
    each.reset_data();
}

StepNode::Tensors StepNode::unpack(const Tensors &cotangents) {
  std::lock_guard<std::mutex> lock(mutex_);
  given.assign(given.size(), false);
  for (size_t i = 0; i < cotangents.size(); ++i)
    if (cotangents[i].defined())
      given[step.parts[i]] = true;
  for (size_t part = 0; part < given.size(); ++part)
    TORCH_CHECK(saved.empty() || !given[part] || !released[part],
                torch::autograd::ERR_BACKWARD_TWICE);
  Tensors kept;
  kept.reserve(saved.size() + step.cotangents.size());
  for (const SavedVariable &each : saved)
    kept.push_back(each.unpack(getptr()));
  return kept;
}

StepNode::Tensors StepNode::apply(Tensors &&cotangents) {
  Tensors kept = unpack(cotangents);
  bool isPlain = !at::GradMode::is_enabled() && !c10::impl::TorchDispatchModeTLS::any_modes_set() &&
                 arePlain(cotangents) && arePlain(kept);
  if (isPlain)
    if (std::optional<Tensors> gradients = run(kept, cotangents))
      return *std::move(gradients);
  return askPython(kept, cotangents);
}

/// In row-major order; zeros where there is none.
static at::Tensor cotangentFor(const Step::Cotangent &wanted, const StepNode::Tensors &given) {
  c10::ScalarType type = scalarTypes[wanted.layout.dtype];
  if (wanted.place < 0 || !given[wanted.place].defined())
    return at::zeros(wanted.layout.sizes, type);
  const at::Tensor &cotangent = given[wanted.place];
  if (cotangent.scalar_type() == type && cotangent.is_contiguous())
    return cotangent;
  return cotangent.to(type).contiguous();
}

static bool areFinite(const StepNode::Tensors &tensors) {
  return std::ranges::all_of(
      tensors, [](const at::Tensor &tensor) { return std::isfinite(tensor.sum().item<double>()); });
}

/// Whether the gradient with this number is connected with a result that has a cotangent.
static bool isReached(const Step &step, size_t gradient, const StepNode::Tensors &cotangents) {
  for (size_t place = 0; place < cotangents.size(); ++place)
    if (cotangents[place].defined() && step.connected[place][gradient])
      return true;
  return false;
}

std::optional<StepNode::Tensors> StepNode::run(const Tensors &kept,
                                               const Tensors &cotangents) const {
  Tensors arguments = kept, gradients;
  for (const Step::Cotangent &each : step.cotangents)
    arguments.push_back(cotangentFor(each, cotangents));
  for (const Step::Layout &layout : step.gradients)
    gradients.push_back(allocate(layout));
  c10::SmallVector<WeftTensor, 16> argumentViews, gradientViews;
  for (auto [tensors, views] :
       {std::pair(&arguments, &argumentViews), std::pair(&gradients, &gradientViews)})
    for (const at::Tensor &tensor : *tensors) {
      std::optional<WeftTensor> found = view(tensor);
      if (!found)
        return std::nullopt;
      views->push_back(*found);
    }
  if (!step.run({argumentViews.data(), argumentViews.size()},
                {gradientViews.data(), gradientViews.size()}))
    return std::nullopt;
  for (const Step::Alias &alias : step.aliases)
    gradients[alias.gradient].copy_((alias.isArgument ? arguments : gradients)[alias.number]);
  // Zeros for a cotangent that is missing, times an infinity, are no numbers.
  if (!std::ranges::all_of(cotangents, &at::Tensor::defined) && !areFinite(gradients))
    return std::nullopt;
  for (size_t i = 0; i < gradients.size(); ++i)
    if (!isReached(step, i, cotangents))
      gradients[i] = at::Tensor();
  return gradients;
}

// What Python is asked for.

[[noreturn]] static void throwPythonError() {
  python_error error;
  error.persist();
  throw error;
}

static PyObject *checked(PyObject *object) {
  if (!object)
    throwPythonError();
  return object;
}

static THPObjectPtr tupleOf(const StepNode::Tensors &tensors) {
  THPObjectPtr tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(tensors.size()))));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), // None where there is none
                     checked(THPVariable_Wrap(tensors[i])));
  return tuple;
}

/// What Python gives: a tensor or None for each.
static StepNode::Tensors tensorsOf(PyObject *sequence) {
  THPObjectPtr items(checked(PySequence_Fast(sequence, "expected gradients")));
  StepNode::Tensors tensors;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject *item = PySequence_Fast_GET_ITEM(items.get(), i);
    tensors.push_back(item == Py_None ? at::Tensor() : tensorOf(item));
  }
  return tensors;
}

StepNode::Tensors StepNode::askPython(const Tensors &kept, const Tensors &cotangents) {
  pybind11::gil_scoped_acquire gil;
  THPObjectPtr node(checked(torch::autograd::functionToPyObject(getptr())));
  THPObjectPtr saved = tupleOf(kept), given = tupleOf(cotangents);
  THPObjectPtr others(checked(PyList_New(0)));
  for (const Beside &each : beside) {
    THPObjectPtr tensor(checked(THPVariable_Wrap(each.tensor)));
    THPObjectPtr item(checked(
        Py_BuildValue("(nOI)", static_cast<Py_ssize_t>(each.number), tensor.get(), each.version)));
    if (PyList_Append(others.get(), item.get()))
      throwPythonError();
  }
  PyObject *arguments[] = {node.get(), saved.get(), others.get(), given.get()};
  THPObjectPtr found(checked(PyObject_Vectorcall(step.otherwise, arguments, 4, nullptr)));
  return tensorsOf(found.get());
}

} // namespace weft::autograd
