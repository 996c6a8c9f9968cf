// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/ObjectGuards.h"

#include "python/bindings/DictVersion.h"
#include "python/bindings/Torch.h"

#include <nanobind/nanobind.h>

#include <algorithm>

namespace nb = nanobind;

namespace weft {

/// What stands for a value: itself, or its type alone. Null for none.
static PyObject *standsFor(PyObject *value, bool byType) {
  return value && byType ? (PyObject *)Py_TYPE(value) : value;
}

ObjectGuards::DictGuard::DictGuard(PyObject *watched, PyObject *free)
    : dict(PyRef::borrow(watched)) {
  if (!watched)
    return;
  version = dictVersion(watched);
  PyObject *key, *value;
  for (Py_ssize_t position = 0; PyDict_Next(watched, &position, &key, &value);) {
    bool byType = free && PySet_Contains(free, key) == 1;
    items.push_back(PyRef::borrow(key));
    items.push_back(PyRef::borrow(standsFor(value, byType)));
    if (free)
      isFree.push_back(byType);
  }
}

bool ObjectGuards::DictGuard::sameValue(size_t item, PyObject *value) const {
  bool byType = !isFree.empty() && isFree[item / 2];
  return items[item + 1].get() == standsFor(value, byType);
}

bool ObjectGuards::DictGuard::holds() const {
  uint64_t now = dictVersion(dict.get());
  if (now == version)
    return true;
  PyObject *key, *value;
  size_t next = 0;
  for (Py_ssize_t position = 0; PyDict_Next(dict.get(), &position, &key, &value); next += 2)
    if (next == items.size() || items[next].get() != key || !sameValue(next, value))
      return false;
  if (next != items.size())
    return false;
  version = now;
  return true;
}

void ObjectGuards::watchObject(PyObject *object, PyObject *free) {
  PyTypeObject *type = Py_TYPE(object);
  objects.push_back({PyRef::borrow(object), PyRef::borrow((PyObject *)type),
                     DictGuard(instanceDict(object), free), assignTypeVersion(type)});
}

/// The keys in the order of the dict itself, whatever a subclass makes of it.
static PyObject *orderedKeys(PyObject *dict) {
  PyRef iterator = PyRef::steal(PyODict_Type.tp_iter(dict));
  return iterator ? PySequence_Tuple(iterator.get()) : nullptr;
}

void ObjectGuards::watchDict(PyObject *dict, PyObject *free) {
  dicts.emplace_back(dict, free);
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

void ObjectGuards::watchList(PyObject *list, PyObject *free) {
  ListGuard guard{PyRef::borrow(list), {}, {}};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject *item = PyList_GET_ITEM(list, i);
    PyRef place = PyRef::steal(free ? PyLong_FromSsize_t(i) : nullptr);
    bool byType = place && PySet_Contains(free, place.get()) == 1;
    guard.items.push_back(PyRef::borrow(standsFor(item, byType)));
    guard.isFree.push_back(byType);
  }
  lists.push_back(std::move(guard));
}

bool ObjectGuards::ListGuard::holds() const {
  if (PyList_GET_SIZE(list.get()) != static_cast<Py_ssize_t>(items.size()))
    return false;
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].get() !=
        standsFor(PyList_GET_ITEM(list.get(), static_cast<Py_ssize_t>(i)), isFree[i]))
      return false;
  return true;
}

void ObjectGuards::watchSet(PyObject *set) {
  PyObject *copy = PyFrozenSet_New(set);
  if (!copy)
    throw nb::python_error();
  sets.push_back({PyRef::borrow(set), PyRef::steal(copy)});
}

ObjectGuards::FunctionGuard::FunctionGuard(PyFunctionObject *watched)
    : function(PyRef::borrow((PyObject *)watched)), code(PyRef::borrow(watched->func_code)),
      defaults(PyRef::borrow(watched->func_defaults)),
      keywordDefaults(PyRef::borrow(watched->func_kwdefaults)),
      name(PyRef::borrow(watched->func_name)), qualifiedName(PyRef::borrow(watched->func_qualname)),
      module(PyRef::borrow(watched->func_module)), doc(PyRef::borrow(watched->func_doc)),
      annotations(PyRef::borrow(watched->func_annotations)) {}

bool ObjectGuards::FunctionGuard::holds() const {
  auto *now = reinterpret_cast<PyFunctionObject *>(function.get());
  return now->func_code == code.get() && now->func_defaults == defaults.get() &&
         now->func_kwdefaults == keywordDefaults.get() && now->func_name == name.get() &&
         now->func_qualname == qualifiedName.get() && now->func_module == module.get() &&
         now->func_doc == doc.get() && now->func_annotations == annotations.get();
}

int ObjectGuards::FunctionGuard::traverse(visitproc visit, void *arg) const {
  for (const PyRef *each : {&function, &code, &defaults, &keywordDefaults, &name, &qualifiedName,
                            &module, &doc, &annotations})
    Py_VISIT(each->get());
  return 0;
}

void ObjectGuards::watchFunction(PyObject *function) {
  functions.emplace_back(reinterpret_cast<PyFunctionObject *>(function));
  if (PyObject *defaults = PyFunction_GET_KW_DEFAULTS(function))
    watchDict(defaults);
}

void ObjectGuards::watchType(PyObject *type) {
  auto *watched = reinterpret_cast<PyHeapTypeObject *>(type);
  if (PyType_HasFeature(&watched->ht_type, Py_TPFLAGS_HEAPTYPE)) // others never change
    types.push_back({PyRef::borrow(type), PyRef::borrow(watched->ht_type.tp_mro),
                     PyRef::borrow(watched->ht_name), PyRef::borrow(watched->ht_qualname)});
}

bool ObjectGuards::TypeGuard::holds() const {
  auto *now = reinterpret_cast<PyHeapTypeObject *>(type.get());
  return now->ht_type.tp_mro == order.get() && now->ht_name == name.get() &&
         now->ht_qualname == qualifiedName.get();
}

void ObjectGuards::watchCell(PyObject *cell) {
  cells.push_back({PyRef::borrow(cell), PyRef::borrow(PyCell_GET(cell))});
}

ObjectGuards::NamespaceGuard &ObjectGuards::namespaceGuard(PyObject *dict) {
  auto found = std::ranges::find_if(
      namespaces, [&](const NamespaceGuard &guard) { return guard.dict.get() == dict; });
  if (found == namespaces.end())
    found = namespaces.insert(found, {PyRef::borrow(dict), {}, dictVersion(dict), PyRef()});
  return *found;
}

void ObjectGuards::watchName(PyObject *dict, PyObject *name, bool byType) {
  PyObject *value = standsFor(PyDict_GetItem(dict, name), byType);
  namespaceGuard(dict).names.push_back({PyRef::borrow(name), PyRef::borrow(value), byType});
}

void ObjectGuards::watchNames(PyObject *dict) {
  PyObject *names = PyFrozenSet_New(dict);
  if (!names)
    throw nb::python_error();
  namespaceGuard(dict).all = PyRef::steal(names);
}

bool ObjectGuards::NamespaceGuard::holds() const {
  uint64_t now = dictVersion(dict.get());
  if (now == version)
    return true;
  for (const Name &each : names)
    if (each.value.get() != standsFor(PyDict_GetItem(dict.get(), each.name.get()), each.byType))
      return false;
  if (all) {
    if (PySet_GET_SIZE(all.get()) != PyDict_GET_SIZE(dict.get()))
      return false;
    PyObject *key, *value;
    for (Py_ssize_t position = 0; PyDict_Next(dict.get(), &position, &key, &value);)
      if (PySet_Contains(all.get(), key) != 1) {
        PyErr_Clear(); // a name without a hash is a new one
        return false;
      }
  }
  version = now;
  return true;
}

void ObjectGuards::watchAnswer(PyObject *function) {
  if (std::ranges::any_of(
          answers, [&](const ContentGuard &guard) { return guard.container.get() == function; }))
    return;
  PyObject *answer = PyObject_CallNoArgs(function);
  if (!answer)
    throw nb::python_error();
  answers.push_back({PyRef::borrow(function), PyRef::steal(answer)});
}

static bool sameAnswer(PyObject *function, PyObject *then) {
  PyRef now = PyRef::steal(PyObject_CallNoArgs(function));
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
  for (const ListGuard &guard : lists)
    if (!guard.holds())
      return false;
  for (const ContentGuard &guard : cells)
    if (PyCell_GET(guard.container.get()) != guard.copy.get())
      return false;
  for (const FunctionGuard &guard : functions)
    if (!guard.holds())
      return false;
  for (const TypeGuard &guard : types)
    if (!guard.holds())
      return false;
  for (const NamespaceGuard &guard : namespaces)
    if (!guard.holds())
      return false;
  for (const BufferGuard &guard : buffers)
    if (!guard.holds())
      return false;
  for (const ContentGuard &guard : sets) {
    int same = PyObject_RichCompareBool(guard.container.get(), guard.copy.get(), Py_EQ);
    if (same != 1) {
      PyErr_Clear(); // an unequal or incomparable set is a changed one
      return false;
    }
  }
  return std::ranges::all_of(answers, [](const ContentGuard &guard) {
    return sameAnswer(guard.container.get(), guard.copy.get());
  });
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
  for (const ListGuard &guard : lists) {
    auto *list = reinterpret_cast<PyListObject *>(guard.list.get());
    footprint.add(list);
    footprint.add(static_cast<const void *>(list->ob_item),
                  guard.items.size() * sizeof(PyObject *));
    footprint.add(static_cast<const void *>(guard.items.data()),
                  guard.items.size() * sizeof(PyRef));
  }
  for (const ContentGuard &guard : cells)
    footprint.add(reinterpret_cast<PyCellObject *>(guard.container.get()));
  for (const FunctionGuard &guard : functions)
    footprint.add(reinterpret_cast<PyFunctionObject *>(guard.function.get()));
  for (const TypeGuard &guard : types) {
    auto *type = reinterpret_cast<PyHeapTypeObject *>(guard.type.get());
    footprint.add(&type->ht_type.tp_mro);
    footprint.add(&type->ht_name);
  }
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
  for (const ListGuard &guard : lists) {
    Py_VISIT(guard.list.get());
    for (const PyRef &item : guard.items)
      Py_VISIT(item.get());
  }
  for (const PyRef &dict : hooks)
    Py_VISIT(dict.get());
  for (const std::vector<ContentGuard> *guards : {&sets, &orders, &cells, &answers})
    for (const ContentGuard &guard : *guards) {
      Py_VISIT(guard.container.get());
      Py_VISIT(guard.copy.get());
    }
  for (const FunctionGuard &guard : functions)
    if (int status = guard.traverse(visit, arg))
      return status;
  for (const TypeGuard &guard : types) {
    Py_VISIT(guard.type.get());
    Py_VISIT(guard.order.get());
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
