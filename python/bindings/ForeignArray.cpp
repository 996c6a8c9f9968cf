// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/ForeignArray.h"

#include <nanobind/nanobind.h>
#include <optional>
#include <string_view>

namespace nb = nanobind;

namespace weft {

namespace {

constexpr uint64_t readOnly = 1, copied = 2; // DLPack's flags

/// Clears an Exception: the slow way meets it again, and says what it means.
bool declined() {
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
    throw nb::python_error();
  PyErr_Clear();
  return false;
}

/// Of a format of the module `struct`, in the machine's own byte order.
std::optional<dlpack::TypeCode> typeCode(const char *format) {
  std::string_view text = format != nullptr ? format : "";
  if (text.size() != 1)
    return std::nullopt;
  switch (text.front()) {
  case '?':
    return dlpack::Bool;
  case 'e':
  case 'f':
  case 'd':
    return dlpack::Float;
  case 'b':
  case 'h':
  case 'i':
  case 'l':
  case 'q':
    return dlpack::Int;
  case 'B':
    return dlpack::UInt;
  default:
    return std::nullopt;
  }
}

PyRef own(nb::object object) { return PyRef::steal(object.release().ptr()); }

} // namespace

ForeignArrays::ForeignArrays(std::vector<std::string> immutable)
    : immutable(std::move(immutable)),
      numpyArray(own(nb::module_::import_("numpy").attr("ndarray"))),
      dlpackName(own(nb::str("__dlpack__"))), moduleName(own(nb::str("__module__"))),
      versionKeyword(own(nb::make_tuple("max_version"))), version(own(nb::make_tuple(1, 0))) {}

bool ForeignArrays::isImmutable(PyTypeObject *type) const {
  PyRef module = PyRef::steal(PyObject_GetAttr((PyObject *)type, moduleName.get()));
  const char *text =
      module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : nullptr;
  if (text == nullptr) {
    declined();
    return false;
  }
  std::string_view package = std::string_view(text).substr(0, std::string_view(text).find('.'));
  for (const std::string &each : immutable)
    if (package == each)
      return true;
  return false;
}

ForeignArray::~ForeignArray() {
  if (buffer.obj != nullptr)
    PyBuffer_Release(&buffer);
}

bool ForeignArray::take(const ForeignArrays &known, PyObject *object, bool written) {
  if ((PyObject *)Py_TYPE(object) == known.numpyArray.get())
    return takeBuffer(object, written);
  if (PyObject_IsInstance(object, known.numpyArray.get()) != 0) // such as an array with a mask
    return declined();
  return takeCapsule(known, object, written);
}

bool ForeignArray::takeBuffer(PyObject *object, bool written) {
  int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (written ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object, &buffer, flags) != 0)
    return declined();
  std::optional<dlpack::TypeCode> code = typeCode(buffer.format);
  if (!code)
    return false;
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  tensor.data = buffer.buf;
  tensor.device = {1, 0};
  tensor.rank = buffer.ndim;
  tensor.dtype = {*code, uint8_t(buffer.itemsize * 8), 1};
  tensor.sizes = reinterpret_cast<int64_t *>(buffer.shape);
  return true;
}

bool ForeignArray::takeCapsule(const ForeignArrays &known, PyObject *object, bool written) {
  PyTypeObject *type = Py_TYPE(object);
  if (_PyType_Lookup(type, known.dlpackName.get()) == nullptr ||
      (written && known.isImmutable(type)))
    return false;
  PyObject *arguments[] = {object, known.version.get()};
  capsule = PyRef::steal(PyObject_VectorcallMethod(known.dlpackName.get(), arguments,
                                                   1 | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                                   known.versionKeyword.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { // older than DLPack 1.0
    PyErr_Clear();
    capsule = PyRef::steal(PyObject_CallMethodNoArgs(object, known.dlpackName.get()));
  }
  if (!capsule)
    return declined();
  // It is not consumed: destroyed, it gives back what it holds.
  if (PyCapsule_IsValid(capsule.get(), "dltensor_versioned")) {
    auto *managed = static_cast<dlpack::ManagedTensor *>(
        PyCapsule_GetPointer(capsule.get(), "dltensor_versioned"));
    if (managed->version.major != 1 || (written && (managed->flags & (readOnly | copied)) != 0))
      return false;
    tensor = managed->tensor;
    return true;
  }
  if (!PyCapsule_IsValid(capsule.get(), "dltensor"))
    return false;
  // Before DLPack 1.0 the tensor stood first, and nothing said that it is read-only.
  tensor = *static_cast<dlpack::Tensor *>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
  return true;
}

} // namespace weft
