// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/Torch.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

namespace nb = nanobind;

namespace weft {

/// In the order of WeftDType.
static constexpr const char *dtypeNames[WEFT_BOOL + 1] = {
    "float64", "float32", "bfloat16", "float16", "int64",
    "int32",   "int16",   "int8",     "uint8",   "bool"};

static PyRef own(nb::object object) { return PyRef::steal(object.release().ptr()); }

const Torch &Torch::get() {
  // Leaked on purpose: the interpreter may be gone when static destructors run.
  static const Torch *torch = new Torch();
  return *torch;
}

Torch::Torch() {
  nb::module_ torch = nb::module_::import_("torch");
  nb::object impl = torch.attr("_C");
  tensorType = own(torch.attr("Tensor"));
  parameterType = own(torch.attr("nn").attr("Parameter"));

  nb::object capsule = torch.attr("Tensor").attr("__dlpack_c_exchange_api__");
  exchange = static_cast<const dlpack::ExchangeTable *>(
      PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (!exchange)
    throw nb::python_error();
  if (exchange->header.version.major != 1 || !exchange->viewFromPython)
    throw nb::import_error("expected torch to offer version 1 of the DLPack exchange table");

  nb::object base = impl.attr("TensorBase");
  requiresGradGetter = own(base.attr("requires_grad"));
  versionGetter = own(base.attr("_version"));
  isInferenceMethod = own(base.attr("is_inference"));
  isNegMethod = own(base.attr("is_neg"));
  isConjMethod = own(base.attr("is_conj"));
  incrementVersion = own(impl.attr("_increment_version"));
  setVersionCounter = own(impl.attr("_autograd").attr("_unsafe_set_version_counter"));
  inferenceModeEnabled = own(torch.attr("is_inference_mode_enabled"));
  isGradEnabled = own(torch.attr("is_grad_enabled"));
  functionStackLength = own(impl.attr("_len_torch_function_stack"));
  dispatchStackLength = own(impl.attr("_len_torch_dispatch_stack"));
  jitTracingState = own(impl.attr("_get_tracing_state"));
  functorchStack = own(impl.attr("_functorch").attr("peek_interpreter_stack"));
  forwardModeDict = own(nb::module_::import_("torch.autograd.forward_ad").attr("__dict__"));
  forwardModeName = PyRef::steal(PyUnicode_InternFromString("_current_level"));
  isAutocastEnabled = own(torch.attr("is_autocast_enabled"));
  cpuName = PyRef::steal(PyUnicode_InternFromString("cpu"));
  emptyStrided = own(torch.attr("empty_strided"));
  dtypeKeyword = own(nb::make_tuple("dtype"));
  copyName = PyRef::steal(PyUnicode_InternFromString("copy_"));
  implName = PyRef::steal(PyUnicode_InternFromString("_cdata"));
  for (size_t i = 0; i < dtypes.size(); ++i)
    dtypes[i] = own(torch.attr(dtypeNames[i]));
  abi = TorchAbi::get();
}

PyRef Torch::read(const PyRef &getter, PyObject *tensor) {
  PyGetSetDef *definition = reinterpret_cast<PyGetSetDescrObject *>(getter.get())->d_getset;
  return PyRef::steal(definition->get(tensor, definition->closure));
}

std::optional<uint64_t> Torch::version(PyObject *tensor) const {
  PyRef value = read(versionGetter, tensor);
  if (!value) {
    PyErr_Clear();
    return std::nullopt;
  }
  return PyLong_AsUnsignedLongLong(value.get());
}

void Torch::addMetadata(Footprint &footprint, PyObject *tensor) const {
  // c10::TensorImpl begins with its table of functions, its count of references, and pointers to
  // its c10::StorageImpl and to what autograd knows. Of another torch, other lines are fetched.
  struct Impl {
    void *functions, *references, *storage, *autograd;
  };
  constexpr size_t implBytes = 208, storageBytes = 64, autogradBytes = 240;
  footprint.add(tensor, sizeof(PyObject) + sizeof(Impl *));
  PyRef address = PyRef::steal(PyObject_GetAttr(tensor, implName.get()));
  auto *impl = address ? static_cast<const Impl *>(PyLong_AsVoidPtr(address.get())) : nullptr;
  PyErr_Clear();
  if (!impl)
    return;
  footprint.add(impl, implBytes);
  footprint.add(impl->storage, storageBytes);
  footprint.add(impl->autograd, autogradBytes);
}

bool Torch::flag(const PyRef &getter, PyObject *tensor) const {
  PyRef value = read(getter, tensor);
  if (!value)
    throw nb::python_error();
  return value.get() == Py_True;
}

bool Torch::call(const PyRef &function) const {
  PyRef value = PyRef::steal(PyObject_CallNoArgs(function.get()));
  if (!value)
    throw nb::python_error();
  return PyObject_IsTrue(value.get()) == 1;
}

bool Torch::ask(const PyRef &method, PyObject *tensor) const {
  PyRef value = PyRef::steal(PyObject_CallOneArg(method.get(), tensor));
  if (!value)
    throw nb::python_error();
  return value.get() == Py_True;
}

bool Torch::jitTracing() const {
  return abi && abi->tracingState ? *abi->tracingState() != nullptr : call(jitTracingState);
}

bool Torch::interpositionActive() const {
  if (call(functionStackLength) || call(dispatchStackLength) || call(functorchStack) ||
      jitTracing())
    return true;
  PyObject *level = PyDict_GetItem(forwardModeDict.get(), forwardModeName.get());
  return level && PyLong_AsLong(level) >= 0;
}

bool Torch::autocastEnabled() const {
  PyRef value = PyRef::steal(PyObject_CallOneArg(isAutocastEnabled.get(), cpuName.get()));
  if (!value)
    throw nb::python_error();
  return value.get() == Py_True;
}

static PyRef tupleOf(std::span<const int64_t> numbers) {
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
  for (size_t i = 0; tuple && i < numbers.size(); ++i) {
    PyObject *number = PyLong_FromLongLong(numbers[i]);
    if (!number)
      return {};
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), number);
  }
  return tuple;
}

PyRef Torch::allocate(std::span<const int64_t> sizes, std::span<const int64_t> strides,
                      int32_t dtype) const {
  // A third of what the Python function takes, which is most of a small program's time.
  TorchAbi::Tensor tensor;
  if (abi && abi->toPython &&
      !abi->emptyStrided(static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(),
                         abi->dtype(dtype), /*deviceType=*/0, /*deviceIndex=*/0, &tensor)) {
    PyRef object = PyRef::steal(abi->toPython(tensor));
    abi->deleteTensor(tensor);
    return object;
  }
  // Where there is no memory, this one says so.
  PyRef sizesTuple = tupleOf(sizes), stridesTuple = tupleOf(strides);
  if (!sizesTuple || !stridesTuple)
    return {};
  PyObject *arguments[] = {sizesTuple.get(), stridesTuple.get(), dtypes[dtype].get()};
  return PyRef::steal(PyObject_Vectorcall(emptyStrided.get(), arguments, 2, dtypeKeyword.get()));
}

PyRef Torch::view(PyObject *tensor, std::span<const int64_t> sizes,
                  std::span<const int64_t> strides, int64_t offset) const {
  static PyObject *name = PyUnicode_InternFromString("as_strided");
  PyRef sizesTuple = tupleOf(sizes), stridesTuple = tupleOf(strides);
  PyRef start = PyRef::steal(PyLong_FromLongLong(offset));
  if (!sizesTuple || !stridesTuple || !start)
    return {};
  PyObject *arguments[] = {tensor, sizesTuple.get(), stridesTuple.get(), start.get()};
  return PyRef::steal(PyObject_VectorcallMethod(name, arguments, 4, nullptr));
}

PyObject *Torch::wrap(const WeftTensor &tensor) const {
  // Owns the arrays that a ManagedTensor points at; the memory stays the caller's.
  struct Holder {
    dlpack::ManagedTensor managed;
    std::vector<int64_t> sizes, strides;
  };
  auto holder = std::make_unique<Holder>();
  holder->sizes.assign(tensor.sizes, tensor.sizes + tensor.rank);
  holder->strides.assign(tensor.strides, tensor.strides + tensor.rank);
  holder->managed = {
      {1, 3},
      holder.get(),
      [](dlpack::ManagedTensor *self) { delete static_cast<Holder *>(self->context); },
      0,
      {tensor.data,
       {tensor.device_type, tensor.device_id},
       tensor.rank,
       toDLPack(static_cast<WeftDType>(tensor.dtype)),
       holder->sizes.data(),
       holder->strides.data(),
       0}};
  void *object = nullptr;
  if (exchange->managedToPython(&holder.release()->managed, &object) != 0)
    return nullptr;
  return static_cast<PyObject *>(object);
}

bool Torch::copy(PyObject *target, PyObject *source) const {
  return static_cast<bool>(PyRef::steal(PyObject_CallMethodOneArg(target, copyName.get(), source)));
}

bool Torch::countWrites(PyObject *tensor, uint64_t count) const {
  if (count == 0)
    return true;
  PyRef tensors = PyRef::steal(PyTuple_New(count));
  for (uint64_t i = 0; tensors && i < count; ++i)
    PyTuple_SET_ITEM(tensors.get(), i, Py_NewRef(tensor));
  return tensors && PyRef::steal(PyObject_CallOneArg(incrementVersion.get(), tensors.get()));
}

bool Torch::setVersion(PyObject *tensor, uint64_t version) const {
  PyRef tensors = PyRef::steal(PyTuple_Pack(1, tensor));
  PyRef versions = PyRef::steal(Py_BuildValue("(K)", static_cast<unsigned long long>(version)));
  return tensors && versions &&
         PyRef::steal(PyObject_CallFunctionObjArgs(setVersionCounter.get(), tensors.get(),
                                                   versions.get(), nullptr));
}

std::optional<WeftDType> fromDLPack(dlpack::DataType type) {
  if (type.lanes != 1)
    return std::nullopt;
  switch (type.code << 8 | type.bits) {
  case dlpack::Float << 8 | 64:
    return WEFT_F64;
  case dlpack::Float << 8 | 32:
    return WEFT_F32;
  case dlpack::BFloat << 8 | 16:
    return WEFT_BF16;
  case dlpack::Float << 8 | 16:
    return WEFT_F16;
  case dlpack::Int << 8 | 64:
    return WEFT_I64;
  case dlpack::Int << 8 | 32:
    return WEFT_I32;
  case dlpack::Int << 8 | 16:
    return WEFT_I16;
  case dlpack::Int << 8 | 8:
    return WEFT_I8;
  case dlpack::UInt << 8 | 8:
    return WEFT_U8;
  case dlpack::Bool << 8 | 8:
    return WEFT_BOOL;
  default:
    return std::nullopt;
  }
}

dlpack::DataType toDLPack(WeftDType type) {
  switch (type) {
  case WEFT_F64:
    return {dlpack::Float, 64, 1};
  case WEFT_F32:
    return {dlpack::Float, 32, 1};
  case WEFT_BF16:
    return {dlpack::BFloat, 16, 1};
  case WEFT_F16:
    return {dlpack::Float, 16, 1};
  case WEFT_I64:
    return {dlpack::Int, 64, 1};
  case WEFT_I32:
    return {dlpack::Int, 32, 1};
  case WEFT_I16:
    return {dlpack::Int, 16, 1};
  case WEFT_I8:
    return {dlpack::Int, 8, 1};
  case WEFT_U8:
    return {dlpack::UInt, 8, 1};
  case WEFT_BOOL:
    return {dlpack::Bool, 8, 1};
  }
  return {dlpack::Float, 32, 1};
}

} // namespace weft
