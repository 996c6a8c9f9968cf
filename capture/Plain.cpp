// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Plain.h"

#include "capture/Arrays.h"
#include "capture/Interpreter.h"

#include <cstring>
#include <string_view>
#include <unordered_set>

namespace weft::capture {

static std::unordered_set<PyTypeObject *> &plainTypes() {
  static std::unordered_set<PyTypeObject *> types;
  return types;
}

void addPlainType(PyTypeObject *type) {
  Py_INCREF(type);
  plainTypes().insert(type);
}

bool isSingleton(PyObject *object) {
  if (object == Py_None || object == Py_True || object == Py_False || object == Py_Ellipsis ||
      object == Py_NotImplemented || PyType_Check(object) || PyModule_Check(object) ||
      PyCode_Check(object))
    return true;
  if (PyCFunction_CheckExact(object)) {
    PyObject *self = PyCFunction_GET_SELF(object);
    return !self || PyModule_Check(self) || PyType_Check(self);
  }
  PyTypeObject *type = Py_TYPE(object);
  return type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type ||
         type == &PyClassMethodDescr_Type || type == &PyGetSetDescr_Type ||
         type == &PyMemberDescr_Type;
}

bool isPlain(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type ||
      type == &PyBool_Type || type == &PyBytes_Type || type == &PyComplex_Type ||
      isSingleton(object))
    return true;
  if (type == &PyTuple_Type) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      if (!isPlain(PyTuple_GET_ITEM(object, i)))
        return false;
    return true;
  }
  if (type == &PySlice_Type) {
    auto *slice = reinterpret_cast<PySliceObject *>(object);
    return isPlain(slice->start) && isPlain(slice->stop) && isPlain(slice->step);
  }
  return type == &PyRange_Type || plainTypes().contains(type) || isArrayScalar(object);
}

bool plainEqual(PyObject *left, PyObject *right) {
  if (left == right)
    return true;
  PyTypeObject *type = Py_TYPE(left);
  if (type != Py_TYPE(right) || isSingleton(left))
    return false;
  if (type == &PyFloat_Type) {
    double x = PyFloat_AS_DOUBLE(left), y = PyFloat_AS_DOUBLE(right);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (type == &PyComplex_Type) {
    Py_complex x = PyComplex_AsCComplex(left), y = PyComplex_AsCComplex(right);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyTuple_Check(left)) {
    if (PyTuple_GET_SIZE(left) != PyTuple_GET_SIZE(right))
      return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(left); ++i)
      if (!plainEqual(PyTuple_GET_ITEM(left, i), PyTuple_GET_ITEM(right, i)))
        return false;
    return true;
  }
  if (type == &PySlice_Type) {
    auto *x = reinterpret_cast<PySliceObject *>(left);
    auto *y = reinterpret_cast<PySliceObject *>(right);
    return plainEqual(x->start, y->start) && plainEqual(x->stop, y->stop) &&
           plainEqual(x->step, y->step);
  }
  if (!isPlain(left) || !isPlain(right)) {
    PyRef x = fieldsOf(left), y = fieldsOf(right);
    return x && y && plainEqual(x.get(), y.get());
  }
  if (isArrayScalar(left))
    return arrayScalarsEqual(left, right);
  if (type == &PyRange_Type) { // equal ranges may have different starts
    PyRef x = PyRef::steal(PyObject_Repr(left)), y = PyRef::steal(PyObject_Repr(right));
    return x && y && PyUnicode_Compare(x.get(), y.get()) == 0;
  }
  int equal = PyObject_RichCompareBool(left, right, Py_EQ);
  if (equal < 0)
    PyErr_Clear();
  return equal == 1;
}

PyTypeObject *builtinBase(PyTypeObject *type) {
  while (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_base)
    type = type->tp_base;
  return type;
}

bool isValue(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object), *base = builtinBase(type);
  return type != base &&
         (base == &PyLong_Type || base == &PyFloat_Type || base == &PyUnicode_Type ||
          base == &PyBytes_Type || base == &PyComplex_Type);
}

PyRef valueOf(PyObject *object) {
  if (!isValue(object))
    return {};
  PyTypeObject *base = builtinBase(Py_TYPE(object));
  PyRef value;
  if (base == &PyLong_Type)
    value = PyRef::steal(_PyLong_Copy((PyLongObject *)object));
  else if (base == &PyFloat_Type)
    value = PyRef::steal(PyFloat_FromDouble(PyFloat_AS_DOUBLE(object)));
  else if (base == &PyUnicode_Type)
    value = PyRef::steal(PyUnicode_FromObject(object));
  else if (base == &PyBytes_Type)
    value = PyRef::steal(
        PyBytes_FromStringAndSize(PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object)));
  else
    value = PyRef::steal(PyComplex_FromCComplex(PyComplex_AsCComplex(object)));
  PyErr_Clear();
  return value;
}

bool isEnumMember(PyObject *object) {
  static PyTypeObject *meta = nullptr;
  if (!meta) {
    PyRef module = PyRef::steal(PyImport_ImportModule("enum"));
    PyRef kind = PyRef::steal(module ? PyObject_GetAttrString(module.get(), "EnumMeta") : nullptr);
    PyErr_Clear();
    meta = kind ? (PyTypeObject *)kind.release() : &PyBaseObject_Type;
  }
  return meta != &PyBaseObject_Type && PyObject_TypeCheck((PyObject *)Py_TYPE(object), meta);
}

bool isSharedText(PyObject *object) {
  if (!PyUnicode_CheckExact(object) || PyUnicode_GET_LENGTH(object) != 1)
    return false;
  PyRef shared =
      PyRef::steal(PyUnicode_FromOrdinal(static_cast<int>(PyUnicode_READ_CHAR(object, 0))));
  return shared.get() == object;
}

bool isMatch(PyObject *object) { return std::strcmp(Py_TYPE(object)->tp_name, "re.Match") == 0; }

bool isDeque(PyObject *object) {
  static PyTypeObject *type = nullptr;
  if (!type) {
    PyRef module = PyRef::steal(PyImport_ImportModule("collections"));
    PyRef kind = PyRef::steal(module ? PyObject_GetAttrString(module.get(), "deque") : nullptr);
    PyErr_Clear();
    type = (PyTypeObject *)(kind ? kind.release() : Py_NewRef((PyObject *)&PyBaseObject_Type));
  }
  return type != &PyBaseObject_Type && PyObject_TypeCheck(object, type);
}

bool isDefaultDict(PyObject *object) {
  return PyDict_Check(object) && !PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) &&
         std::strcmp(Py_TYPE(object)->tp_name, "collections.defaultdict") == 0;
}

bool isTypingForm(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject *module = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !PyType_Check(object)
                         ? PyDict_GetItemString(type->tp_dict, "__module__")
                         : nullptr;
  return module && PyUnicode_Check(module) &&
         PyUnicode_CompareWithASCIIString(module, "typing") == 0;
}

bool isUnion(PyObject *object) {
  return std::strcmp(Py_TYPE(object)->tp_name, "types.UnionType") == 0;
}

bool isNamedResult(PyTypeObject *type) {
  return PyType_IsSubtype(type, &PyTuple_Type) &&
         std::string_view(type->tp_name).starts_with("torch.return_types.");
}

PyRef itemAt(PyObject *sequence, Py_ssize_t i) {
  if (i < 0 || i >= Py_SIZE(sequence))
    return {};
  if (PyTuple_Check(sequence))
    return PyRef::borrow(PyTuple_GET_ITEM(sequence, i));
  if (PyList_Check(sequence))
    return PyRef::borrow(PyList_GET_ITEM(sequence, i));
  PyTypeObject *base = builtinBase(Py_TYPE(sequence));
  PyRef item;
  if (base->tp_as_sequence && base->tp_as_sequence->sq_item)
    item = PyRef::steal(base->tp_as_sequence->sq_item(sequence, i));
  PyErr_Clear();
  return item;
}

PyObject *dictOfView(PyObject *object) {
  bool view = PyDictKeys_Check(object) || PyDictValues_Check(object) || PyDictItems_Check(object);
  return view ? (PyObject *)reinterpret_cast<_PyDictViewObject *>(object)->dv_dict : nullptr;
}

PyRef keysOf(PyObject *container) {
  if (!PyDict_Check(container) && !PyAnySet_Check(container))
    return {};
  PyTypeObject *base = PyODict_Check(container)  ? &PyODict_Type
                       : PyDict_Check(container) ? &PyDict_Type
                       : PySet_Check(container)  ? &PySet_Type
                                                 : &PyFrozenSet_Type;
  PyRef iterator = PyRef::steal(base->tp_iter(container));
  return PyRef::steal(iterator ? PySequence_Tuple(iterator.get()) : nullptr);
}

std::string shown(PyObject *object) {
  if (!object)
    return "nothing";
  PyRef text = PyRef::steal(isPlain(object) ? PyObject_Repr(object) : nullptr);
  const char *characters = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  std::string made =
      characters ? characters : std::string("an object of ") + Py_TYPE(object)->tp_name;
  PyErr_Clear();
  return made.size() > 80 ? made.substr(0, 77) + "..." : made;
}

} // namespace weft::capture
