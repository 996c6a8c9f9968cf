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
#include <functional>
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

/// The same memory, whatever `tensor` is given later.
static at::Tensor asItIs(const at::Tensor &tensor) {
  c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  return at::Tensor(impl->shallow_copy_and_detach(impl->version_counter(),
                                                  /*allow_tensor_metadata_change=*/true));
}

/// Whether the tensor has been given other memory than it had.
static bool isMoved(const at::Tensor &tensor, const at::Tensor &then) {
  return tensor.unsafeGetTensorImpl()->storage().unsafeGetStorageImpl() !=
             then.unsafeGetTensorImpl()->storage().unsafeGetStorageImpl() ||
         tensor.storage_offset() != then.storage_offset() ||
         tensor.scalar_type() != then.scalar_type() || tensor.sizes() != then.sizes() ||
         tensor.strides() != then.strides();
}

StepNode::StepNode(const Step &step, const Recorded &call) : step(step), beside(call.beside) {
  Py_INCREF(step.owner);
  Py_INCREF(beside);
  torch::autograd::edge_list edges;
  edges.reserve(step.wrt.size());
  for (size_t number : step.wrt)
    edges.push_back(torch::autograd::impl::gradient_edge(tensorOf(call.inputs[number])));
  set_next_edges(std::move(edges));
  given.resize(step.places.size());
  asked.resize(step.wrt.size());
  released.resize(step.freed.size());
}

StepNode::~StepNode() {
  // At its end the interpreter takes everything along.
  if (!Py_IsInitialized())
    return;
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF(step.owner);
  Py_DECREF(beside);
  PyGILState_Release(gil);
}

void StepNode::save(const Recorded &call) {
  auto keptOf = [&](const Step::Kept &kept) -> const at::Tensor & {
    return tensorOf((kept.isInput ? call.kept : call.results)[kept.number]);
  };
  auto save = [&](const at::Tensor &tensor) {
    return SavedVariable(tensor, /*is_output=*/tensor.grad_fn().get() == this);
  };
  saved.reserve(step.saved.size());
  for (const Step::Argument &each : step.saved) {
    const at::Tensor &tensor = keptOf(each.kept);
    saved.push_back(save(each.isCopied ? tensor.detach().clone() : tensor));
  }
  for (const Step::Kept &each : step.watched)
    watched.push_back(save(keptOf(each)));
  inputs.reserve(call.kept.size());
  for (PyObject *input : call.kept) {
    const at::Tensor &tensor = tensorOf(input);
    inputs.push_back({tensor, asItIs(tensor), static_cast<uint32_t>(tensor._version())});
  }
}

static bool haveCommon(const std::vector<bool> &one, const std::vector<bool> &other) {
  for (size_t i = 0; i < one.size(); ++i)
    if (one[i] && other[i])
      return true;
  return false;
}

bool StepNode::isOnTheWay(size_t number) const {
  const Step::Freed &way = step.freed[number];
  return haveCommon(given, way.from) && haveCommon(asked, way.to);
}

void StepNode::release_variables() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < released.size(); ++i)
    released[i] = released[i] || isOnTheWay(i);
  if (released.empty() || !std::ranges::all_of(released, std::identity()))
    return;
  isReleased = true;
  saved.clear();
  watched.clear();
  inputs.clear();
}

StepNode::Tensors StepNode::unpack(const Tensors &cotangents, bool &isAsThen) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t place = 0; place < cotangents.size(); ++place)
    given[place] = cotangents[place].defined();
  for (size_t i = 0; i < asked.size(); ++i)
    asked[i] = task_should_compute_output(i);
  for (size_t i = 0; i < released.size(); ++i)
    TORCH_CHECK(!released[i] || !isOnTheWay(i), torch::autograd::ERR_BACKWARD_TWICE);
  Tensors kept;
  kept.reserve(step.saved.size() + step.cotangents.size());
  for (size_t i = 0; i < step.saved.size(); ++i)
    kept.push_back(unpack(i, cotangents));
  for (size_t i = 0; i < watched.size(); ++i)
    if (isRead(step.saved.size() + i, cotangents))
      (void)watched[i].unpack(getptr());
  isAsThen = readsAsThen(kept);
  return kept;
}

bool StepNode::isRead(size_t number, const Tensors &cotangents) const {
  for (size_t place = 0; place < cotangents.size(); ++place)
    if (cotangents[place].defined() && step.reads[place][number])
      return true;
  return false;
}

/// For an argument that the gradients which are asked for do not read.
static at::Tensor anyTensor(const Step::Layout &layout) {
  c10::ScalarType type = scalarTypes[layout.dtype];
  bool isIndex = c10::isIntegralType(type, /*includeBool=*/true);
  return isIndex ? at::zeros(layout.sizes, type) : at::ones(layout.sizes, type);
}

at::Tensor StepNode::unpack(size_t number, const Tensors &cotangents) {
  const Step::Layout &layout = step.saved[number].layout;
  if (isReleased)
    return anyTensor(layout);
  if (isRead(number, cotangents))
    return saved[number].unpack(getptr());
  try {
    return saved[number].unpack(getptr());
  } catch (const c10::Error &) { // it has been changed
    return anyTensor(layout);
  }
}

bool StepNode::readsAsThen(Tensors &kept) const {
  for (size_t number = 0; number < inputs.size(); ++number)
    if (step.moved[number] == Step::Moved::Otherwise &&
        isMoved(inputs[number].tensor, inputs[number].then))
      return false;
  for (size_t i = 0; i < kept.size(); ++i) {
    const Step::Argument &each = step.saved[i];
    if (isReleased || each.isCopied || !each.kept.isInput ||
        step.moved[each.kept.number] != Step::Moved::AsItWas)
      continue;
    const Input &input = inputs[each.kept.number];
    if (isMoved(input.tensor, input.then))
      kept[i] = input.then;
  }
  return true;
}

StepNode::Tensors StepNode::apply(Tensors &&cotangents) {
  if (!std::ranges::any_of(cotangents, &at::Tensor::defined))
    return Tensors(step.wrt.size());
  bool isAsThen;
  Tensors kept = unpack(cotangents, isAsThen);
  bool isPlain = !at::GradMode::is_enabled() && !c10::impl::TorchDispatchModeTLS::any_modes_set() &&
                 arePlain(cotangents) && arePlain(kept) && isAsThen;
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
  std::vector<Input> inputs;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(!isReleased, torch::autograd::ERR_BACKWARD_TWICE);
    inputs = this->inputs;
  }
  pybind11::gil_scoped_acquire gil;
  THPObjectPtr node(checked(torch::autograd::functionToPyObject(getptr())));
  THPObjectPtr saved = tupleOf(kept), given = tupleOf(cotangents);
  THPObjectPtr items(checked(PyList_New(0)));
  for (const Input &each : inputs) {
    THPObjectPtr tensor(checked(THPVariable_Wrap(each.tensor)));
    THPObjectPtr then(checked(THPVariable_Wrap(each.then)));
    THPObjectPtr item(checked(Py_BuildValue("(OIO)", tensor.get(), each.version, then.get())));
    if (PyList_Append(items.get(), item.get()))
      throwPythonError();
  }
  PyObject *arguments[] = {node.get(), saved.get(), items.get(), given.get(), beside};
  THPObjectPtr found(checked(PyObject_Vectorcall(step.otherwise, arguments, 5, nullptr)));
  return tensorsOf(found.get());
}

} // namespace weft::autograd
