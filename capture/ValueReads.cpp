// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a call reads of known objects, with the guards for that.
#include "capture/Declared.h"
#include "capture/Interpreter.h"
#include "capture/Plain.h"
#include "capture/Values.h"

namespace weft::capture {

/// From now on the program depends on the keys by which it has set entries of the dict.
void Values::fixKeys(PyObject *dict) {
  for (const auto &[each, key] : freeKeys)
    if (each.get() == dict)
      fixWithin(key.get());
}

bool Values::readsChanged(PyObject *container, const Value &value, bool &read) {
  auto found = changed.find(container);
  if (found == changed.end())
    return false;
  fixKeys(container);
  read = found->second || readAhead(container);
  return true;
}

bool Values::change(PyObject *container, bool whole) {
  if (whole)
    fixKeys(container);
  auto found = changed.find(container);
  if (found != changed.end())
    return !whole || found->second || readAhead(container);
  if (whole && !readWhole(container))
    return false;
  changed[container] = whole;
  if (!whole)
    keepAhead(container);
  return true;
}

void Values::keepAhead(PyObject *container) {
  if (!ahead.contains(container))
    ahead[container] = PyRef::steal(PyDict_Check(container)     ? PyDict_Copy(container)
                                    : PyAnySet_Check(container) ? PyFrozenSet_New(container)
                                                                : PySequence_Tuple(container));
}

void Values::noteItemSet(PyObject *container, PyObject *key) {
  keepAhead(container);
  noteSet(container, key);
}

void Values::noteAppended(PyObject *list, Py_ssize_t count) {
  Tail &tail = tails[list];
  tail.count = count > 0 ? tail.count + count : 0;
  tail.alone &= count > 0;
}

Py_ssize_t Values::appended(PyObject *list) const {
  auto found = tails.find(list);
  return found == tails.end() ? 0 : found->second.count;
}

void Values::guardTargets() {
  for (const PyRef &target : targets) {
    const Value *changedOne = find(target.get());
    if (!changedOne || !isExternal(target.get()))
      continue;
    for (const auto &[other, value] : entered) {
      if (other == target.get() || value.origin == Origin::Result || value.origin == Origin::Fresh)
        continue;
      bool oneIsArgument =
          changedOne->origin == Origin::Argument || value.origin == Origin::Argument;
      if (oneIsArgument && Py_TYPE(other) == Py_TYPE(target.get()))
        guards.identity(owner(target.get(), *changedOne), owner(other, value), false,
                        changedOne->name + " is not " + value.name);
      // An argument may be the dict of an object that the program holds.
      PyObject *dict = value.origin == Origin::Pinned ? interpreter::instanceDict(other) : nullptr;
      if (dict && changedOne->origin == Origin::Argument && PyDict_CheckExact(target.get()))
        guards.identity(owner(target.get(), *changedOne), {-1, PyRef::borrow(dict)}, false,
                        changedOne->name + " is not " + value.name + ".__dict__");
    }
  }
}

bool Values::readLength(PyObject *container) {
  const Value *value = find(container);
  if (!value || value->origin == Origin::Fresh || value->origin == Origin::Result ||
      PyTuple_Check(container))
    return true;
  if (bool read = true; readsChanged(container, *value, read))
    return read;
  if (PyDict_Check(container) && hasSet(container, nullptr))
    return readAhead(container);
  Py_ssize_t length = PyDict_Check(container) ? PyDict_GET_SIZE(container) : Py_SIZE(container);
  guards.length(owner(container, *value), length, value->name);
  return true;
}

bool Values::readItem(PyObject *container, Py_ssize_t i) {
  const Value *value = find(container);
  if (!value || value->origin == Origin::Fresh || value->origin == Origin::Result)
    return true;
  if (bool read = true; readsChanged(container, *value, read))
    return read;
  if (i < 0)
    i += Py_SIZE(container);
  if (i < 0 || i >= Py_SIZE(container))
    return readLength(container);
  // It is pinned together with the tuple.
  if (PyTuple_Check(container) && value->origin == Origin::Pinned)
    return true;
  PyRef at = PyRef::steal(PyLong_FromSsize_t(i));
  if (hasSet(container, at.get()))
    return true;
  return readItemOf(container, i, itemAt(container, i));
}

/// `item` is the object that was there before the call.
bool Values::readItemOf(PyObject *container, Py_ssize_t i, const PyRef &item) {
  Value held = *find(container); // entering values moves the others in memory
  std::string name = held.name + "[" + std::to_string(i) + "]";
  PyRef at = PyRef::steal(PyLong_FromSsize_t(i));
  if (isLoaded(Place::Item, container, at.get()))
    return true;
  return readAt(Place::Item, container, at.get(), held, item.get(), name);
}

bool Values::readAt(Place place, PyObject *owner, PyObject *key, const Value &held, PyObject *found,
                    const std::string &name) {
  bool number = found && isNumberInput(found), inArgument = held.origin == Origin::Argument;
  Site *site = inArgument ? number ? argumentSite(name) : nullptr : siteOf(place, owner, key);
  if (site && number) {
    loadNumber(*site, {place, this->owner(owner, held), PyRef::borrow(owner), PyRef::borrow(key),
                       PyRef::borrow(found), name});
    return true;
  }
  const Value *known = site && found ? find(found) : nullptr;
  bool loads = site && found && isInput(found) && (!known || known->origin == Origin::Argument);
  std::optional<Expected> expected =
      loads ? Expected{Expected::Load, {}, guards.newRegister(found)} : enter(held, found, name);
  if (!expected)
    return false;
  if (loads)
    site->loaded = true;
  Owner at =
      held.origin == Origin::Argument ? Owner{held.index, {}} : Owner{-1, PyRef::borrow(owner)};
  return settle(found, *expected, name,
                [&](Expected made) { guardAt(place, at, owner, key, std::move(made), name); });
}

/// `of` is the object that has the entry.
void Values::guardAt(Place place, const Owner &owner, PyObject *of, PyObject *key,
                     Expected expected, const std::string &name) {
  switch (place) {
  case Place::Attribute:
    return guards.instanceItem(owner, key, std::move(expected), name);
  case Place::Item:
    return PyDict_Check(of) ? guards.dictItem(owner, key, std::move(expected), name)
                            : guards.item(owner, PyLong_AsSsize_t(key), std::move(expected), name);
  case Place::Cell:
    return guards.cell(owner, std::move(expected), name);
  case Place::Member:
    return guards.member(owner, key, std::move(expected), name);
  case Place::Class:
    return guards.classItem(owner, key, std::move(expected), name);
  case Place::Upcoming:
    return guards.upcoming(owner, PyLong_AsSsize_t(key), std::move(expected), name);
  case Place::Argument:
    return guards.argument(PyLong_AsSsize_t(key), std::move(expected), name);
  case Place::Contents: // it is never read at once
    return;
  }
}

/// Reads what a container held before the call, for a call that has changed it without looking.
bool Values::readAhead(PyObject *container) {
  auto found = ahead.find(container);
  if (found == ahead.end())
    return fail("reads " + find(container)->name + ", which it has changed");
  PyRef before = found->second;
  Value held = *find(container);
  changed[container] = true;
  if (PyDict_Check(before.get()) || PyAnySet_Check(before.get())) {
    PyRef keys = keysOf(before.get());
    if (!keys || !knowsKeys(keys.get()))
      return fail("reads all of " + held.name + ", whose keys are not plain");
    guards.keys(owner(container, held), keys.get(), held.name);
    for (Py_ssize_t i = 0; PyDict_Check(before.get()) && i < PyTuple_GET_SIZE(keys.get()); ++i) {
      PyObject *key = PyTuple_GET_ITEM(keys.get(), i);
      if (!readKeyOf(container, key, PyDict_GetItemWithError(before.get(), key)))
        return false;
    }
    return true;
  }
  guards.length(owner(container, held), Py_SIZE(before.get()), held.name);
  for (Py_ssize_t i = 0; i < Py_SIZE(before.get()); ++i)
    if (!readItemOf(container, i, itemAt(before.get(), i)))
      return false;
  return true;
}

bool Values::knowsKey(PyObject *key) {
  if (isPlain(key) || (isValueKey(key) && isFresh(key)))
    return true;
  bool known = isMemberKey(key) || isValueKey(key) || isAddressKey(key);
  return known && !isFresh(key) && pin(key, Py_TYPE(key)->tp_name);
}

bool Values::knowsKeys(PyObject *keys) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i)
    if (!knowsKey(PyTuple_GET_ITEM(keys, i)))
      return false;
  return true;
}

bool Values::readKey(PyObject *dict, PyObject *key) {
  const Value *value = find(dict);
  if (!value || value->origin == Origin::Fresh || value->origin == Origin::Result)
    return true;
  if (bool read = true; readsChanged(dict, *value, read))
    return read;
  if (guards.watches(dict, false, key) || readCounter(dict, key) || hasSet(dict, key) ||
      isLoaded(Place::Item, dict, key))
    return true;
  if (!isValueKey(key) && !knowsKey(key)) // it is looked up by its value
    return fail("looks up a key of " + find(dict)->name + " that is not plain");
  PyObject *item = entryOf(dict, key);
  return readKeyOf(dict, key, item);
}

/// `item` is the object that was there before the call, null if there was none.
bool Values::readKeyOf(PyObject *dict, PyObject *key, PyObject *item) {
  Value held = *find(dict);
  std::string name = held.name + "[" + shown(key) + "]";
  PyRef where = PyRef::borrow(dict);
  bool countable = PyDict_CheckExact(dict) || isDefaultDict(dict) || capture::isCounter(dict);
  if (countable &&
      startsCounter({Place::Item, where, PyRef::borrow(key), owner(dict, held), name}, item))
    return true;
  return readAt(Place::Item, dict, key, held, item, name);
}

bool Values::readWhole(PyObject *container) {
  const Value *value = find(container);
  if (!value || value->origin == Origin::Fresh || value->origin == Origin::Result)
    return true;
  if (bool read = true; readsChanged(container, *value, read))
    return read;
  if (hasSet(container, nullptr))
    return readAhead(container);
  bool set = PyAnySet_Check(container);
  if (PyDict_Check(container) || set) {
    PyRef keys = keysOf(container);
    if (!keys || !knowsKeys(keys.get())) {
      PyErr_Clear();
      return fail("reads all of " + find(container)->name + ", whose keys are not plain");
    }
    value = find(container); // entering keys moves the others in memory
    guards.keys(owner(container, *value), keys.get(), value->name);
    for (Py_ssize_t i = 0; !set && i < PyTuple_GET_SIZE(keys.get()); ++i)
      if (!readKey(container, PyTuple_GET_ITEM(keys.get(), i)))
        return false;
    return true;
  }
  if (!PyList_Check(container) && !PyTuple_Check(container) && !isDeque(container))
    return true;
  if (value->origin == Origin::Argument || !PyTuple_Check(container))
    guards.length(owner(container, *value), Py_SIZE(container), value->name);
  for (Py_ssize_t i = 0; i < Py_SIZE(container); ++i)
    if (!readItem(container, i))
      return false;
  return true;
}

bool Values::readAttribute(PyObject *object, PyObject *name, PyObject *found) {
  PyRef dict = PyRef::borrow(interpreter::instanceDict(object));
  if (guards.watches(object, true, name) || readCounter(dict.get(), name) ||
      hasSet(dict.get(), name) || isLoaded(Place::Attribute, object, name))
    return true;
  Value held = *find(object);
  std::string text = held.name + "." + PyUnicode_AsUTF8(name);
  if (startsCounter({Place::Attribute, dict, PyRef::borrow(name), owner(object, held), text},
                    found))
    return true;
  return readAt(Place::Attribute, object, name, held, found, text);
}

bool Values::readMember(PyObject *object, PyObject *descriptor, const std::string &name) {
  if (!find(object)) // a module or a class, which are plain
    return fail("reads " + name + " of " + shown(object));
  if (readCounter(object, descriptor) || hasSet(object, descriptor) ||
      isLoaded(Place::Member, object, descriptor))
    return true;
  Value held = *find(object);
  PyRef found = memberOf(descriptor, object);
  std::string text = held.name + "." + name;
  if (isSlot(descriptor) && startsCounter({Place::Member, PyRef::borrow(object),
                                           PyRef::borrow(descriptor), owner(object, held), text},
                                          found.get()))
    return true;
  return readAt(Place::Member, object, descriptor, held, found.get(), text);
}

bool Values::readDict(PyObject *object) {
  const Value *value = find(object);
  PyObject *dict = interpreter::instanceDict(object);
  if (!value || !dict)
    return fail("reads the __dict__ of " + shown(object));
  Value held = *value;
  std::string text = held.name + ".__dict__";
  std::optional<Expected> expected = enter(held, dict, text);
  if (!expected)
    return false;
  return settle(dict, *expected, text, [&](Expected made) {
    guards.instanceDict(owner(object, held), std::move(made), text);
  });
}

bool Values::readCell(PyObject *cell, const std::string &name) {
  const Value *value = find(cell);
  if (!value)
    return fail("reads " + name + ", a cell of unknown origin");
  if (value->origin == Origin::Fresh || readCounter(cell, Py_None) || hasSet(cell, nullptr) ||
      isLoaded(Place::Cell, cell, Py_None))
    return true;
  Value held = *value;
  PyRef where = PyRef::borrow(cell);
  if (startsCounter({Place::Cell, where, PyRef::borrow(Py_None), owner(cell, held), name},
                    PyCell_GET(cell)))
    return true;
  return readAt(Place::Cell, cell, Py_None, held, PyCell_GET(cell), name);
}

bool Values::readView(PyObject *view) {
  Value held = *find(view);
  PyObject *dict = dictOfView(view);
  std::string text = "what " + held.name + " shows";
  std::optional<Expected> expected = enter(held, dict, text);
  return expected &&
         settle(dict, *expected, text,
                [&](Expected made) {
                  guards.iterated(owner(view, held), 0, std::move(made), text);
                }) &&
         readWhole(dict);
}

bool Values::readContext(PyObject *variable, const Value &held, PyObject *found) {
  std::string name = held.name + ".get()";
  std::optional<Expected> expected = enter(held, found, name);
  if (!expected)
    return false;
  return settle(found, *expected, name, [&](Expected made) {
    guards.context(owner(variable, held), std::move(made), name);
  });
}

/// Whether no other object has the same value: torch makes each dtype, layout and memory format
/// once.
static bool isOneOfItsKind(PyObject *object) {
  std::string_view type = Py_TYPE(object)->tp_name;
  return isSingleton(object) || type == "torch.dtype" || type == "torch.layout" ||
         type == "torch.memory_format";
}

bool Values::readIdentity(PyObject *left, PyObject *right) {
  if (left == Py_None || right == Py_None || left == Py_True || right == Py_True ||
      left == Py_False || right == Py_False)
    return true;
  if (Py_TYPE(left) != Py_TYPE(right))
    return true; // they are never the same object
  const Value *x = find(left), *y = find(right);
  if ((x && capture::isPlain(right)) || (y && capture::isPlain(left)))
    return true; // they are never the same object
  if (!x || !y)  // of plain values only singletons have a meaningful identity
    return ((x || isOneOfItsKind(left)) && (y || isOneOfItsKind(right))) ||
           fail("compares identities of values that have none");
  if (x->origin != Origin::Argument && y->origin != Origin::Argument)
    return true;
  if (isExternal(left) && isExternal(right) && left != right)
    guards.identity(owner(left, *x), owner(right, *y), false, x->name + " is not " + y->name);
  return true;
}

} // namespace weft::capture
