// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Tensors.h"

#include <algorithm>

namespace weft::capture {

// The part of DLPack 1's C interface that is read here. Its layout is the ABI of
// https://github.com/dmlc/dlpack, include/dlpack/dlpack.h.
namespace {

struct View {
  void *data;
  int32_t deviceType, deviceIndex;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *sizes, *strides;
  uint64_t byteOffset;
};
static_assert(sizeof(View) == 48, "the layout is an ABI");

struct ExchangeTable {
  uint32_t major, minor;
  void *previous;
  void *allocate, *managedFromPython, *managedToPython;
  int (*viewFromPython)(void *object, View *out);
};

} // namespace

static PyObject *attribute(PyObject *owner, const char *name) {
  return owner ? PyObject_GetAttrString(owner, name) : nullptr;
}

const Tensors *Tensors::get() {
  static const Tensors *made = nullptr;
  if (made)
    return made;
  // The objects are never released: the interpreter may be gone when static destructors run.
  PyRef torch = PyRef::steal(PyImport_ImportModule("torch"));
  PyRef nn = PyRef::steal(attribute(torch.get(), "nn"));
  PyRef base = PyRef::steal(PyImport_ImportModule("torch._C"));
  base = PyRef::steal(attribute(base.get(), "TensorBase"));
  auto *found = new Tensors();
  found->tensorType = reinterpret_cast<PyTypeObject *>(attribute(torch.get(), "Tensor"));
  found->parameterType = reinterpret_cast<PyTypeObject *>(attribute(nn.get(), "Parameter"));
  PyRef capsule = PyRef::steal(
      attribute(reinterpret_cast<PyObject *>(found->tensorType), "__dlpack_c_exchange_api__"));
  if (capsule)
    found->exchange = PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api");
  found->requiresGrad = attribute(base.get(), "requires_grad");
  found->versionCount = attribute(base.get(), "_version");
  found->isLeaf = attribute(base.get(), "is_leaf");
  found->isNeg = attribute(base.get(), "is_neg");
  found->isConj = attribute(base.get(), "is_conj");
  found->isInference = attribute(base.get(), "is_inference");
  auto *table = static_cast<const ExchangeTable *>(found->exchange);
  if (!PyErr_Occurred() && (table->major != 1 || !table->viewFromPython))
    PyErr_SetString(PyExc_ImportError, "expected version 1 of the DLPack exchange table");
  if (PyErr_Occurred()) {
    delete found;
    return nullptr;
  }
  return made = found;
}

static bool flag(PyObject *getter, PyObject *tensor) {
  PyGetSetDef *definition = reinterpret_cast<PyGetSetDescrObject *>(getter)->d_getset;
  PyRef value = PyRef::steal(definition->get(tensor, definition->closure));
  return value.get() == Py_True;
}

int64_t Tensors::version(PyObject *tensor) const {
  PyGetSetDef *definition = reinterpret_cast<PyGetSetDescrObject *>(versionCount)->d_getset;
  PyRef value = PyRef::steal(definition->get(tensor, definition->closure));
  int64_t version = value ? PyLong_AsLongLong(value.get()) : -1;
  PyErr_Clear();
  return version;
}

static bool ask(PyObject *method, PyObject *tensor) {
  return PyRef::steal(PyObject_CallOneArg(method, tensor)).get() == Py_True;
}

static bool view(const void *exchange, PyObject *tensor, View &out) {
  if (static_cast<const ExchangeTable *>(exchange)->viewFromPython(tensor, &out) == 0)
    return true;
  PyErr_Clear();
  return false;
}

std::optional<TensorFacts> TensorFacts::of(PyObject *tensor) {
  const Tensors *torch = Tensors::get();
  View seen;
  if (!torch || !torch->isPlain(tensor) || !view(torch->exchange, tensor, seen))
    return std::nullopt;
  TensorFacts facts;
  facts.type = Py_TYPE(tensor);
  facts.device = seen.deviceType;
  facts.deviceIndex = seen.deviceIndex;
  facts.code = seen.code;
  facts.bits = seen.bits;
  facts.sizes.assign(seen.sizes, seen.sizes + seen.rank);
  facts.strides.assign(seen.strides, seen.strides + seen.rank);
  facts.requiresGrad = flag(torch->requiresGrad, tensor);
  facts.leaf = flag(torch->isLeaf, tensor);
  facts.negated = ask(torch->isNeg, tensor);
  facts.conjugated = ask(torch->isConj, tensor);
  facts.inference = ask(torch->isInference, tensor);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return std::nullopt;
  }
  return facts;
}

bool TensorFacts::match(PyObject *tensor) const {
  if (Py_TYPE(tensor) != type)
    return false;
  const Tensors *torch = Tensors::get();
  View seen;
  if (!view(torch->exchange, tensor, seen))
    return false;
  bool same = seen.deviceType == device && seen.deviceIndex == deviceIndex && seen.code == code &&
              seen.bits == bits && seen.rank == static_cast<int32_t>(sizes.size()) &&
              std::equal(sizes.begin(), sizes.end(), seen.sizes) &&
              std::equal(strides.begin(), strides.end(), seen.strides) &&
              flag(torch->requiresGrad, tensor) == requiresGrad &&
              flag(torch->isLeaf, tensor) == leaf && ask(torch->isNeg, tensor) == negated &&
              ask(torch->isConj, tensor) == conjugated &&
              ask(torch->isInference, tensor) == inference;
  PyErr_Clear();
  return same;
}

bool TensorFacts::resizes(const TensorFacts &other) const {
  return type == other.type && device == other.device && deviceIndex == other.deviceIndex &&
         code == other.code && bits == other.bits && sizes.size() == other.sizes.size() &&
         requiresGrad == other.requiresGrad && leaf == other.leaf && negated == other.negated &&
         conjugated == other.conjugated && inference == other.inference;
}

std::string TensorFacts::text() const {
  static const char *const kinds[] = {"int", "uint", "float", "", "bfloat", "complex", "bool"};
  std::string text = code < 7 ? kinds[code] : "type";
  if (code != 6)
    text += std::to_string(bits);
  text += "[";
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? ", " : "") + std::to_string(sizes[i]);
  text += "]";
  if (requiresGrad)
    text += ", requires_grad";
  return text;
}

} // namespace weft::capture
