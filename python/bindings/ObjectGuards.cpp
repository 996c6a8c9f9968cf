// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/ObjectGuards.h"

#include "python/bindings/DictVersion.h"
#include "python/bindings/Torch.h"

#include <nanobind/nanobind.h>

#include <algorithm>

namespace nb = nanobind;

namespace weft {

ObjectGuards::DictGuard::DictGuard(PyObject *watched) : dict(PyRef::borrow(watched)) {
  if (!watched)
    return;
  version = dictVersion(watched);
  PyObject *key, *value;
  for (Py_ssize_t position = 0; PyDict_Next(watched, &position, &key, &value);) {
    items.push_back(PyRef::borrow(key));
    items.push_back(PyRef::borrow(value));
  }
}

bool ObjectGuards::DictGuard::holds() const {
  uint64_t now = dictVersion(dict.get());
  if (now == version)
    return true;
  PyObject *key, *value;
  size_t next = 0;
  for (Py_ssize_t position = 0; PyDict_Next(dict.get(), &position, &key, &value); next += 2)
    if (next == items.size() || items[next].get() != key || items[next + 1].get() != value)
      return false;
  if (next != items.size())
    return false;
  version = now;
  return true;
}

void ObjectGuards::watchObject(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  objects.push_back({PyRef::borrow(object), PyRef::borrow((PyObject *)type),
                     DictGuard(instanceDict(object)), assignTypeVersion(type)});
}

/// The keys in the order of the dict itself, whatever a subclass makes of it.
static PyObject *orderedKeys(PyObject *dict) {
  PyRef iterator = PyRef::steal(PyODict_Type.tp_iter(dict));
  return iterator ? PySequence_Tuple(iterator.get()) : nullptr;
}

void ObjectGuards::watchDict(PyObject *dict) {
  dicts.emplace_back(dict);
  if (!PyODict_Check(dict))
    return;
  PyObject *keys = orderedKeys(dict);
  if (!keys)
    throw nb::python_error();
  orders.push_back({PyRef::borrow(dict), PyRef::steal(keys)});
}

/// For dicts that hold the same keys.
static bool sameOrder(PyObject *dict, PyObject *copy) {
  PyRef keys = PyRef::steal(orderedKeys(dict));
  if (!keys) {
    PyErr_Clear();
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(copy); ++i)
    if (PyTuple_GET_ITEM(keys.get(), i) != PyTuple_GET_ITEM(copy, i))
      return false;
  return true;
}

void ObjectGuards::watchHooks(PyObject *dict) {
  hooks.push_back(PyRef::borrow(dict));
  hadHooks = hadHooks || PyDict_GET_SIZE(dict) > 0;
}

bool ObjectGuards::hooked() const {
  return std::ranges::any_of(hooks,
                             [](const PyRef &dict) { return PyDict_GET_SIZE(dict.get()) > 0; });
}

void ObjectGuards::watchList(PyObject *list) {
  PyObject *copy = PyList_AsTuple(list);
  if (!copy)
    throw nb::python_error();
  lists.push_back({PyRef::borrow(list), PyRef::steal(copy)});
}

void ObjectGuards::watchSet(PyObject *set) {
  PyObject *copy = PyFrozenSet_New(set);
  if (!copy)
    throw nb::python_error();
  sets.push_back({PyRef::borrow(set), PyRef::steal(copy)});
}

void ObjectGuards::watchFunction(PyObject *function) {
  functions.push_back({PyRef::borrow(function), PyRef::borrow(PyFunction_GET_CODE(function)),
                       PyRef::borrow(PyFunction_GET_DEFAULTS(function)),
                       PyRef::borrow(PyFunction_GET_KW_DEFAULTS(function))});
  if (PyObject *defaults = PyFunction_GET_KW_DEFAULTS(function))
    watchDict(defaults);
}

void ObjectGuards::watchCell(PyObject *cell) {
  cells.push_back({PyRef::borrow(cell), PyRef::borrow(PyCell_GET(cell))});
}

void ObjectGuards::watchName(PyObject *dict, PyObject *name) {
  auto found = std::ranges::find_if(
      namespaces, [&](const NamespaceGuard &guard) { return guard.dict.get() == dict; });
  if (found == namespaces.end())
    found = namespaces.insert(found, {PyRef::borrow(dict), {}, dictVersion(dict)});
  found->names.push_back({PyRef::borrow(name), PyRef::borrow(PyDict_GetItem(dict, name))});
}

bool ObjectGuards::NamespaceGuard::holds() const {
  uint64_t now = dictVersion(dict.get());
  if (now == version)
    return true;
  for (const Name &each : names)
    if (PyDict_GetItem(dict.get(), each.name.get()) != each.value.get())
      return false;
  version = now;
  return true;
}

void ObjectGuards::watchRegistrations() {
  if (registrations)
    return;
  nb::object token = nb::module_::import_("abc").attr("get_cache_token");
  askRegistrations = PyRef::borrow(token.ptr());
  registrations = PyRef::borrow(token().ptr());
}

static bool sameRegistrations(PyObject *ask, PyObject *then) {
  PyRef now = PyRef::steal(PyObject_CallNoArgs(ask));
  int same = now ? PyObject_RichCompareBool(now.get(), then, Py_EQ) : -1;
  if (same < 0)
    PyErr_Clear();
  return same == 1;
}

void ObjectGuards::watchBuffer(PyObject *object) {
  BufferGuard guard;
  guard.object = PyRef::borrow(object);
  if (!guard.read(object))
    throw nb::python_error();
  buffers.push_back(std::move(guard));
}

bool ObjectGuards::BufferGuard::read(PyObject *from) {
  Py_buffer view;
  if (PyObject_GetBuffer(from, &view, PyBUF_FULL_RO))
    return false;
  shape.assign(view.shape, view.shape + view.ndim);
  format = view.format ? view.format : "";
  bytes.resize(size_t(view.len));
  bool copied = !PyBuffer_ToContiguous(bytes.data(), &view, view.len, 'C');
  PyBuffer_Release(&view);
  return copied;
}

bool ObjectGuards::BufferGuard::holds() const {
  BufferGuard now;
  if (!now.read(object.get())) {
    PyErr_Clear(); // what cannot be read any more is no longer what it was
    return false;
  }
  return now.shape == shape && now.format == format && now.bytes == bytes;
}

static bool sameItems(PyObject *list, PyObject *copy) {
  Py_ssize_t size = PyTuple_GET_SIZE(copy);
  if (PyList_GET_SIZE(list) != size)
    return false;
  for (Py_ssize_t i = 0; i < size; ++i)
    if (PyList_GET_ITEM(list, i) != PyTuple_GET_ITEM(copy, i))
      return false;
  return true;
}

bool ObjectGuards::hold() const {
  if (expired || hooked() != hadHooks)
    return false;
  for (const ObjectGuard &guard : objects) {
    PyObject *object = guard.object.get();
    if ((PyObject *)Py_TYPE(object) != guard.type.get() ||
        typeVersion(Py_TYPE(object)) != guard.typeVersion)
      return false;
    PyObject *dict = guard.attributes.dict.get();
    if (instanceDict(object) != dict || (dict && !guard.attributes.holds()))
      return false;
  }
  for (const DictGuard &guard : dicts)
    if (!guard.holds())
      return false;
  for (const ContentGuard &guard : orders)
    if (!sameOrder(guard.container.get(), guard.copy.get()))
      return false;
  for (const ContentGuard &guard : lists)
    if (!sameItems(guard.container.get(), guard.copy.get()))
      return false;
  for (const ContentGuard &guard : cells)
    if (PyCell_GET(guard.container.get()) != guard.copy.get())
      return false;
  for (const FunctionGuard &guard : functions) {
    PyObject *function = guard.function.get();
    if (PyFunction_GET_CODE(function) != guard.code.get() ||
        PyFunction_GET_DEFAULTS(function) != guard.defaults.get() ||
        PyFunction_GET_KW_DEFAULTS(function) != guard.keywordDefaults.get())
      return false;
  }
  for (const NamespaceGuard &guard : namespaces)
    if (!guard.holds())
      return false;
  for (const BufferGuard &guard : buffers)
    if (!guard.holds())
      return false;
  if (registrations && !sameRegistrations(askRegistrations.get(), registrations.get()))
    return false;
  for (const ContentGuard &guard : sets) {
    int same = PyObject_RichCompareBool(guard.container.get(), guard.copy.get(), Py_EQ);
    if (same != 1) {
      PyErr_Clear(); // an unequal or incomparable set is a changed one
      return false;
    }
  }
  return true;
}

Footprint ObjectGuards::footprint() const {
  Footprint footprint;
  auto addDict = [&](PyObject *dict) { footprint.add(reinterpret_cast<PyDictObject *>(dict)); };
  for (const ObjectGuard &guard : objects) {
    const char *object = reinterpret_cast<const char *>(guard.object.get());
    footprint.add(object - aheadOfInstance, aheadOfInstance + sizeof(PyObject));
    auto *type = reinterpret_cast<PyTypeObject *>(guard.type.get());
    footprint.add(&type->tp_flags);
    footprint.add(&type->tp_dictoffset);
    footprint.add(&type->tp_version_tag);
    addDict(guard.attributes.dict.get());
  }
  for (const DictGuard &guard : dicts)
    addDict(guard.dict.get());
  for (const ContentGuard &guard : lists) {
    auto *list = reinterpret_cast<PyListObject *>(guard.container.get());
    auto *copy = reinterpret_cast<PyTupleObject *>(guard.copy.get());
    size_t bytes = static_cast<size_t>(Py_SIZE(copy)) * sizeof(PyObject *);
    footprint.add(list);
    footprint.add(static_cast<const void *>(list->ob_item), bytes);
    footprint.add(copy, offsetof(PyTupleObject, ob_item) + bytes);
  }
  for (const ContentGuard &guard : cells)
    footprint.add(reinterpret_cast<PyCellObject *>(guard.container.get()));
  for (const FunctionGuard &guard : functions)
    footprint.add(reinterpret_cast<PyFunctionObject *>(guard.function.get()));
  footprint.sort();
  return footprint;
}

int ObjectGuards::DictGuard::traverse(visitproc visit, void *arg) const {
  Py_VISIT(dict.get());
  for (const PyRef &item : items)
    Py_VISIT(item.get());
  return 0;
}

int ObjectGuards::traverse(visitproc visit, void *arg) const {
  for (const ObjectGuard &guard : objects) {
    Py_VISIT(guard.object.get());
    Py_VISIT(guard.type.get());
    if (int status = guard.attributes.traverse(visit, arg))
      return status;
  }
  for (const DictGuard &guard : dicts)
    if (int status = guard.traverse(visit, arg))
      return status;
  for (const PyRef &dict : hooks)
    Py_VISIT(dict.get());
  for (const std::vector<ContentGuard> *guards : {&lists, &sets, &orders, &cells})
    for (const ContentGuard &guard : *guards) {
      Py_VISIT(guard.container.get());
      Py_VISIT(guard.copy.get());
    }
  for (const FunctionGuard &guard : functions) {
    Py_VISIT(guard.function.get());
    Py_VISIT(guard.code.get());
    Py_VISIT(guard.defaults.get());
    Py_VISIT(guard.keywordDefaults.get());
  }
  for (const NamespaceGuard &guard : namespaces) {
    Py_VISIT(guard.dict.get());
    for (const Name &each : guard.names)
      Py_VISIT(each.value.get());
  }
  for (const BufferGuard &guard : buffers)
    Py_VISIT(guard.object.get());
  return 0;
}

void ObjectGuards::clear() { *this = ObjectGuards(); }

GlobalState::GlobalState() {
  nb::object guard = nb::module_::import_("torch._C._dynamo.guards").attr("GlobalStateGuard")();
  check = PyRef::steal(nb::object(guard.attr("check")).release().ptr());
  inferenceMode = Torch::get().inferenceMode();
}

bool GlobalState::holds() const {
  PyRef same = PyRef::steal(PyObject_CallNoArgs(check.get()));
  if (!same) {
    PyErr_Clear();
    return false;
  }
  return same.get() == Py_True && Torch::get().inferenceMode() == inferenceMode;
}

int GlobalState::traverse(visitproc visit, void *arg) const {
  Py_VISIT(check.get());
  return 0;
}

void GlobalState::clear() { check = PyRef(); }

bool interpositionActive() { return Torch::get().interpositionActive(); }

} // namespace weft
