// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys of dicts and items of sets that are not plain: members of enumerations, values of frozen
// classes, and objects that are known by their addresses. Guards look them up without running
// Python code.
#include "capture/Imported.h"
#include "capture/Interpreter.h"
#include "capture/Plain.h"
#include "capture/Tensors.h"

#include <string_view>
#include <unordered_map>

namespace weft::capture {

bool isMemberKey(PyObject *object) {
  static PyObject *const method = PyUnicode_InternFromString("__hash__");
  static PyObject *own = nullptr; // Enum's method
  if (!isEnumMember(object))
    return false;
  if (!own) {
    PyRef kind = imported("enum", "Enum");
    own = kind ? interpreter::typeLookup((PyTypeObject *)kind.get(), method) : nullptr;
  }
  PyTypeObject *type = Py_TYPE(object),
               *base = isValue(object) ? builtinBase(type) : &PyBaseObject_Type;
  bool byName = own && interpreter::typeLookup(type, method) == own;
  return type->tp_richcompare == base->tp_richcompare &&
         (base == &PyBaseObject_Type ? byName : type->tp_hash == base->tp_hash);
}

/// Whether dataclasses have made the method, and not the user.
static bool isGenerated(PyTypeObject *type, const char *method) {
  PyObject *found = PyDict_GetItemString(type->tp_dict, method);
  if (!found || !PyFunction_Check(found))
    return false;
  auto *code = (PyCodeObject *)((PyFunctionObject *)found)->func_code;
  return PyUnicode_CompareWithASCIIString(code->co_filename, "<string>") == 0;
}

/// The names of the fields of a frozen dataclass whose instances are equal if their fields are;
/// null for any other class.
static PyRef makeFieldNames(PyTypeObject *type) {
  PyObject *parameters = PyDict_GetItemString(type->tp_dict, "__dataclass_params__");
  PyObject *fields = PyDict_GetItemString(type->tp_dict, "__dataclass_fields__");
  auto says = [](PyObject *object, const char *name, PyObject *expected) {
    return PyRef::steal(PyObject_GetAttrString(object, name)).get() == expected;
  };
  if (!parameters || !fields || !PyDict_CheckExact(fields) ||
      !says(parameters, "frozen", Py_True) || !says(parameters, "eq", Py_True) ||
      !isGenerated(type, "__hash__") || !isGenerated(type, "__eq__"))
    return {};
  PyObject *name, *field;
  for (Py_ssize_t at = 0; PyDict_Next(fields, &at, &name, &field);)
    if (!says(field, "compare", Py_True) ||
        !(says(field, "hash", Py_None) || says(field, "hash", Py_True)))
      return {};
  return PyRef::steal(PySequence_Tuple(fields));
}

static PyObject *fieldNames(PyTypeObject *type) {
  static auto &known = *new std::unordered_map<PyTypeObject *, PyRef>; // holds the classes
  auto found = known.find(type);
  if (found == known.end()) {
    bool plain = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_dict &&
                 PyDict_GetItemString(type->tp_dict, "__dataclass_params__");
    if (!plain)
      return nullptr;
    PyRef names = makeFieldNames(type);
    PyErr_Clear();
    Py_INCREF(type);
    found = known.emplace(type, std::move(names)).first;
  }
  return found->second.get();
}

PyRef fieldsOf(PyObject *object) {
  PyObject *names = fieldNames(Py_TYPE(object));
  PyObject *dict = names ? interpreter::instanceDict(object) : nullptr;
  PyRef fields = PyRef::steal(dict ? PyTuple_New(PyTuple_GET_SIZE(names)) : nullptr);
  for (Py_ssize_t i = 0; fields && i < PyTuple_GET_SIZE(names); ++i) {
    PyObject *field = PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(names, i));
    if (!field)
      return {};
    PyTuple_SET_ITEM(fields.get(), i, Py_NewRef(field));
  }
  return fields;
}

static bool isNamedTuple(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  return PyTuple_Check(object) && !PyTuple_CheckExact(object) &&
         type->tp_hash == PyTuple_Type.tp_hash &&
         type->tp_richcompare == PyTuple_Type.tp_richcompare && !isPlain(object);
}

bool isValueKey(PyObject *object) {
  if (!isNamedTuple(object)) {
    PyRef fields = fieldsOf(object);
    return fields && isPlain(fields.get());
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (!isPlain(PyTuple_GET_ITEM(object, i)))
      return false;
  return true;
}

bool hashesByAddress(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object), *base = &PyBaseObject_Type;
  return type->tp_hash == base->tp_hash && type->tp_richcompare == base->tp_richcompare;
}

bool isAddressKey(PyObject *object) {
  return hashesByAddress(object) || Tensors::get()->isPlain(object) ||
         Tensors::get()->isParameter(object);
}

/// What hashing a key by its address gives; a tensor's hash is that of its `id`.
static Py_hash_t addressHash(PyObject *key) {
  if (hashesByAddress(key))
    return _Py_HashPointer(key);
  PyRef address = PyRef::steal(PyLong_FromVoidPtr(key));
  return address ? PyObject_Hash(address.get()) : -1;
}

/// The entry of an instance of a frozen dataclass, found among all keys.
static PyObject *entryOfFields(PyObject *dict, PyObject *key, PyObject *fields) {
  PyObject *other, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &other, &value);) {
    if (other == key)
      return value;
    PyRef others = Py_TYPE(other) == Py_TYPE(key) ? fieldsOf(other) : PyRef();
    if (others && isPlain(others.get()) &&
        PyObject_RichCompareBool(fields, others.get(), Py_EQ) == 1)
      return value;
  }
  return nullptr;
}

PyObject *entryOf(PyObject *dict, PyObject *key) {
  static PyObject *const name = PyUnicode_InternFromString("_name_");
  bool simple = PyUnicode_CheckExact(key) || isPlain(key);
  PyObject *own =
      simple || isValue(key) || !isEnumMember(key) ? nullptr : interpreter::instanceDict(key);
  PyObject *text = own ? PyDict_GetItemWithError(own, name) : nullptr;
  PyRef fields = simple || text ? PyRef() : fieldsOf(key);
  PyObject *found = text     ? _PyDict_GetItem_KnownHash(dict, key, PyObject_Hash(text))
                    : fields ? entryOfFields(dict, key, fields.get())
                    : !simple && isAddressKey(key)
                        ? _PyDict_GetItem_KnownHash(dict, key, addressHash(key))
                        : PyDict_GetItemWithError(dict, key);
  if (!found)
    PyErr_Clear();
  return found;
}

} // namespace weft::capture
