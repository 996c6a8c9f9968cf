// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Guards.h"

#include "capture/Arrays.h"
#include "capture/Interpreter.h"
#include "capture/Iterators.h"
#include "capture/Plain.h"

#include <algorithm>

namespace weft::capture {

PyObject *superLookup(PyTypeObject *type, PyObject *after, PyObject *name) {
  PyObject *order = type->tp_mro;
  bool behind = false;
  for (Py_ssize_t i = 0; order && i < PyTuple_GET_SIZE(order); ++i) {
    PyObject *each = PyTuple_GET_ITEM(order, i);
    if (behind)
      if (PyObject *found = PyDict_GetItemWithError(((PyTypeObject *)each)->tp_dict, name))
        return found;
    behind |= each == after;
  }
  PyErr_Clear();
  return nullptr;
}

// Building the guards.

void Guards::add(Kind kind, const Owner &owner, PyRef key, Py_ssize_t number, Expected expected,
                 std::string name) {
  // A pinned object needs no check twice, and a load checks nothing.
  bool once = owner.reg < 0 && owner.object && kind != Kind::Same && kind != Kind::Different &&
              expected.kind != Expected::Load;
  if (once &&
      !places
           .try_emplace({owner.object.get(), key.get(), reinterpret_cast<PyObject *>(number), kind},
                        0)
           .second)
    return;
  checks.push_back({kind, owner, {}, std::move(key), number, std::move(expected), std::move(name)});
}

void Guards::arguments(Py_ssize_t count, PyObject *names) {
  argumentCount = count;
  argumentNames = PyRef::borrow(names);
}

void Guards::argument(Py_ssize_t i, Expected expected, std::string name) {
  add(Kind::Argument, {}, {}, i, std::move(expected), std::move(name));
}

bool Guards::watches(PyObject *owner, bool ofInstance, PyObject *key) const {
  return places.contains({owner, key, nullptr, ofInstance ? Kind::InstanceItem : Kind::DictItem});
}

void Guards::watch(bool ofInstance, PyObject *owner, PyObject *key, Expected expected,
                   std::string name) {
  Kind kind = ofInstance ? Kind::InstanceItem : Kind::DictItem;
  if (!places.try_emplace({owner, key, nullptr, kind}, 0).second)
    return;
  auto [place, isNew] = places.try_emplace({owner, nullptr, nullptr, kind}, dictWatches.size());
  if (isNew) {
    add(Kind::Watch, {}, {}, static_cast<Py_ssize_t>(dictWatches.size()), {}, name);
    dictWatches.push_back({PyRef::borrow(owner), ofInstance, {}, 0, {}});
  }
  dictWatches[place->second].entries.push_back(
      {PyRef::borrow(key), {}, std::move(expected), std::move(name)});
}

// A number in a pinned object tells counted entries apart.
static constexpr Py_ssize_t counted = 1;

void Guards::instanceItem(const Owner &owner, PyObject *key, Expected expected, std::string name) {
  if (owner.reg < 0 && expected.kind != Expected::Load)
    watch(true, owner.object.get(), key, std::move(expected), std::move(name));
  else
    add(Kind::InstanceItem, owner, PyRef::borrow(key), 0, std::move(expected), std::move(name));
}

void Guards::dictItem(const Owner &owner, PyObject *key, Expected expected, std::string name) {
  if (owner.reg < 0 && expected.kind != Expected::Load)
    watch(false, owner.object.get(), key, std::move(expected), std::move(name));
  else
    add(Kind::DictItem, owner, PyRef::borrow(key), 0, std::move(expected), std::move(name));
}

void Guards::instanceDict(const Owner &owner, Expected expected, std::string name) {
  add(Kind::InstanceDict, owner, {}, 0, std::move(expected), std::move(name));
}
void Guards::length(const Owner &owner, Py_ssize_t length, std::string name) {
  add(Kind::Length, owner, {}, length, {}, std::move(name));
}
void Guards::item(const Owner &owner, Py_ssize_t i, Expected expected, std::string name) {
  add(Kind::Item, owner, {}, i, std::move(expected), std::move(name));
}
void Guards::keys(const Owner &owner, PyObject *keys, std::string name) {
  add(Kind::Keys, owner, PyRef::borrow(keys), 0, {}, std::move(name));
}
void Guards::cell(const Owner &owner, Expected expected, std::string name) {
  add(Kind::Cell, owner, {}, 0, std::move(expected), std::move(name));
}
void Guards::member(const Owner &owner, PyObject *descriptor, Expected expected, std::string name) {
  add(Kind::Member, owner, PyRef::borrow(descriptor), 0, std::move(expected), std::move(name));
}
void Guards::iterated(const Owner &iterator, Py_ssize_t number, Expected expected,
                      std::string name) {
  add(Kind::Iterated, iterator, {}, number, std::move(expected), std::move(name));
}
void Guards::upcoming(const Owner &iterator, Py_ssize_t number, Expected expected,
                      std::string name) {
  add(Kind::Upcoming, iterator, {}, number, std::move(expected), std::move(name));
}
void Guards::classItem(const Owner &owner, PyObject *name, Expected expected, std::string text) {
  add(Kind::ClassItem, owner, PyRef::borrow(name), 0, std::move(expected), std::move(text));
}
void Guards::resolves(PyTypeObject *type, PyObject *name, PyTypeObject *holder, std::string text) {
  auto *owner = (PyObject *)type;
  if (!places.try_emplace({owner, name, (PyObject *)holder, Kind::Resolves}, 0).second)
    return;
  add(Kind::Resolves, {-1, PyRef::borrow(owner)}, PyRef::borrow(name), 0, {}, std::move(text));
  checks.back().other = {-1, PyRef::borrow((PyObject *)holder)};
}
void Guards::counter(Place place, const Owner &owner, PyObject *key, PyTypeObject *type,
                     std::string name) {
  Kind kind = place == Place::Attribute ? Kind::InstanceItem
              : place == Place::Item    ? Kind::DictItem
              : place == Place::Member  ? Kind::Member
              : place == Place::Class   ? Kind::ClassItem
                                        : Kind::Cell;
  add(kind, owner, place == Place::Cell ? PyRef() : PyRef::borrow(key), counted,
      {Expected::Typed, PyRef::borrow((PyObject *)type), -1}, std::move(name));
}
void Guards::type(const Owner &owner, PyTypeObject *type, std::string name) {
  add(Kind::Type, owner, PyRef::borrow((PyObject *)type), 0, {}, std::move(name));
}
void Guards::value(const Owner &owner, PyRef value, std::string name) {
  add(Kind::Value, owner, {}, 0, {Expected::Equal, std::move(value), -1}, std::move(name));
}
void Guards::context(const Owner &owner, Expected expected, std::string name) {
  add(Kind::Context, owner, {}, 0, std::move(expected), std::move(name));
}
void Guards::tensor(const Owner &owner, TensorFacts facts, std::string name) {
  add(Kind::Tensor, owner, {}, static_cast<Py_ssize_t>(tensors.size()), {},
      name + ": " + facts.text());
  tensors.push_back(std::move(facts));
}
void Guards::array(const Owner &owner, PyRef facts, std::string name) {
  name += ": " + shown(facts.get());
  add(Kind::Array, owner, std::move(facts), 0, {}, std::move(name));
}
void Guards::identity(const Owner &left, const Owner &right, bool same, std::string name) {
  add(same ? Kind::Same : Kind::Different, left, {}, 0, {}, std::move(name));
  checks.back().other = right;
}

void Guards::typeItem(PyTypeObject *type, PyObject *name, PyObject *found, PyObject *after) {
  auto *owner = (PyObject *)type;
  if (!places.try_emplace({owner, name, after, Kind::TypeWatch}, 0).second)
    return;
  auto [place, isNew] =
      places.try_emplace({owner, nullptr, nullptr, Kind::TypeWatch}, typeWatches.size());
  if (isNew) {
    add(Kind::TypeWatch, {}, {}, static_cast<Py_ssize_t>(typeWatches.size()), {}, type->tp_name);
    typeWatches.push_back({PyRef::borrow(owner), 0, {}});
  }
  Expected expected{found ? Expected::Identity : Expected::Absent, PyRef::borrow(found), -1};
  typeWatches[place->second].entries.push_back(
      {PyRef::borrow(name), PyRef::borrow(after), std::move(expected), ""});
}

void Guards::bases(PyTypeObject *type) {
  static PyObject *const name = PyUnicode_InternFromString("__mro__");
  member({-1, PyRef::borrow((PyObject *)type)}, interpreter::typeLookup(&PyType_Type, name),
         {Expected::Identity, PyRef::borrow(type->tp_mro), -1},
         std::string(type->tp_name) + ".__mro__");
}

static PyFunctionObject *asFunction(const PyRef &ref) {
  return reinterpret_cast<PyFunctionObject *>(ref.get());
}

void Guards::function(PyObject *function) {
  if (!places.try_emplace({function, nullptr, nullptr, Kind::Function}, 0).second)
    return;
  auto *made = reinterpret_cast<PyFunctionObject *>(function);
  add(Kind::Function, {}, {}, static_cast<Py_ssize_t>(functions.size()), {}, shown(function));
  functions.push_back({PyRef::borrow(function), PyRef::borrow(made->func_code),
                       PyRef::borrow(made->func_defaults), PyRef::borrow(made->func_kwdefaults)});
}

// Checking the guards.

/// `found` is borrowed, and null if nothing was found.
static bool accept(const Expected &expected, PyObject *found, Guards::Registers &registers) {
  switch (expected.kind) {
  case Expected::Absent:
    return !found;
  case Expected::Identity:
    return found == expected.value.get();
  case Expected::Equal:
    return found && plainEqual(expected.value.get(), found);
  case Expected::Typed:
    return found && (PyObject *)Py_TYPE(found) == expected.value.get();
  case Expected::Load:
    if (found)
      registers[expected.reg] = PyRef::borrow(found);
    return found != nullptr;
  }
  return false;
}

/// `i`: from the end on, if it is negative.
static PyRef fromEitherEnd(PyObject *sequence, Py_ssize_t i) {
  return itemAt(sequence, i < 0 ? i + Py_SIZE(sequence) : i);
}

/// Plain keys run no Python code when they are compared, unless other keys of the dict do; such
/// keys make the check a miss.
static PyObject *lookUp(PyObject *dict, PyObject *key) { return entryOf(dict, key); }

bool Guards::Watch::holds() const {
  PyObject *now = ofInstance ? interpreter::instanceDict(owner.get()) : owner.get();
  if (!now)
    return std::ranges::all_of(
        entries, [](const Entry &each) { return each.expected.kind == Expected::Absent; });
  if (now == dict.get() && interpreter::dictVersion(now) == version)
    return true;
  Registers none;
  for (const Entry &each : entries)
    if (!accept(each.expected, lookUp(now, each.key.get()), none))
      return false;
  dict = PyRef::borrow(now);
  version = interpreter::dictVersion(now);
  return true;
}

bool Guards::TypeWatch::holds() const {
  auto *now = (PyTypeObject *)type.get();
  unsigned current = interpreter::typeVersion(now);
  if (current && current == version)
    return true;
  Registers none;
  for (const Entry &each : entries) {
    PyObject *found = each.after ? superLookup(now, each.after.get(), each.key.get())
                                 : interpreter::typeLookup(now, each.key.get());
    if (!accept(each.expected, found, none))
      return false;
  }
  version = interpreter::typeVersion(now);
  return true;
}

bool Guards::FunctionWatch::holds() const {
  PyFunctionObject *now = asFunction(function);
  return now->func_code == code.get() && now->func_defaults == defaults.get() &&
         now->func_kwdefaults == keywordDefaults.get();
}

PyRef contextValue(PyObject *variable) {
  static PyObject *const unset = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
  PyObject *found = nullptr;
  if (!PyContextVar_CheckExact(variable) || PyContextVar_Get(variable, unset, &found) < 0)
    PyErr_Clear();
  PyRef held = PyRef::steal(found);
  return found == unset ? PyRef() : held;
}

/// Whether a key is the one that was seen. What is no plain value may be returned by iteration.
static bool sameKey(PyObject *seen, PyObject *found) {
  return seen == found || (isPlain(seen) && plainEqual(seen, found));
}

static bool sameKeys(PyObject *dict, PyObject *keys) {
  Py_ssize_t count = PyDict_Check(dict) ? PyDict_GET_SIZE(dict) : PySet_GET_SIZE(dict);
  if (count != PyTuple_GET_SIZE(keys))
    return false;
  if (PyDict_CheckExact(dict)) {
    Py_ssize_t at = 0, i = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &at, &key, &value))
      if (!sameKey(PyTuple_GET_ITEM(keys, i++), key))
        return false;
    return true;
  }
  PyRef found = keysOf(dict); // an OrderedDict keeps its order separately
  bool same = found && PyTuple_GET_SIZE(found.get()) == count;
  for (Py_ssize_t i = 0; same && i < count; ++i)
    same = sameKey(PyTuple_GET_ITEM(keys, i), PyTuple_GET_ITEM(found.get(), i));
  PyErr_Clear();
  return same;
}

bool Guards::holds(const Check &check, const CallArguments &call, Registers &registers) const {
  auto resolved = [&](const Owner &owner) {
    return owner.reg < 0 ? owner.object.get() : registers[owner.reg].get();
  };
  PyObject *owner = resolved(check.owner);
  switch (check.kind) {
  case Kind::Argument:
    return accept(check.expected, call.values[check.number], registers);
  case Kind::InstanceItem: {
    PyObject *dict = interpreter::instanceDict(owner);
    return accept(check.expected, dict ? lookUp(dict, check.key.get()) : nullptr, registers);
  }
  case Kind::DictItem:
    return accept(check.expected, lookUp(owner, check.key.get()), registers);
  case Kind::InstanceDict:
    return accept(check.expected, interpreter::instanceDict(owner), registers);
  case Kind::Length:
    return (PyDict_Check(owner) ? PyDict_GET_SIZE(owner) : Py_SIZE(owner)) == check.number;
  case Kind::Item: {
    PyRef found = fromEitherEnd(owner, check.number);
    return accept(check.expected, found.get(), registers);
  }
  case Kind::Keys:
    return sameKeys(owner, check.key.get());
  case Kind::Cell:
    return accept(check.expected, PyCell_GET(owner), registers);
  case Kind::Member: {
    PyRef found = memberOf(check.key.get(), owner);
    return accept(check.expected, found.get(), registers);
  }
  case Kind::ClassItem:
    return accept(check.expected, lookUp(((PyTypeObject *)owner)->tp_dict, check.key.get()),
                  registers);
  case Kind::Resolves: {
    PyObject *order = ((PyTypeObject *)owner)->tp_mro, *holder = check.other.object.get();
    for (Py_ssize_t i = 0; order && i < PyTuple_GET_SIZE(order); ++i) {
      PyObject *each = PyTuple_GET_ITEM(order, i);
      if (each == holder)
        return true;
      if (lookUp(((PyTypeObject *)each)->tp_dict, check.key.get()))
        return false;
    }
    return false;
  }
  case Kind::Iterated: {
    if (PyObject *dict = dictOfView(owner))
      return accept(check.expected, dict, registers);
    if (!interpreter::hasPosition(owner) || !interpreter::isAlone(owner))
      return false;
    std::vector<PyObject *> sources = interpreter::sourcesOf(owner);
    size_t at = static_cast<size_t>(check.number);
    return accept(check.expected, at < sources.size() ? sources[at] : nullptr, registers);
  }
  case Kind::Upcoming: {
    PyRef found = interpreter::upcoming(owner, check.number);
    return accept(check.expected, found.get(), registers);
  }
  case Kind::Value: {
    PyRef found = valueOf(owner);
    return accept(check.expected, found.get(), registers);
  }
  case Kind::Context: {
    PyRef found = contextValue(owner);
    return accept(check.expected, found.get(), registers);
  }
  case Kind::Type:
    return (PyObject *)Py_TYPE(owner) == check.key.get();
  case Kind::Tensor:
    return tensors[check.number].match(owner);
  case Kind::Array: {
    PyRef facts = isArray(owner) ? arrayFacts(owner) : PyRef();
    return facts && plainEqual(facts.get(), check.key.get());
  }
  case Kind::Same:
    return owner == resolved(check.other);
  case Kind::Different:
    return owner != resolved(check.other);
  case Kind::Watch:
    return dictWatches[check.number].holds();
  case Kind::TypeWatch:
    return typeWatches[check.number].holds();
  case Kind::Function:
    return functions[check.number].holds();
  }
  return false;
}

static bool sameNames(PyObject *expected, PyObject *found) {
  Py_ssize_t count = expected ? PyTuple_GET_SIZE(expected) : 0;
  if (count != (found ? PyTuple_GET_SIZE(found) : 0))
    return false;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (PyTuple_GET_ITEM(expected, i) != PyTuple_GET_ITEM(found, i) &&
        PyUnicode_Compare(PyTuple_GET_ITEM(expected, i), PyTuple_GET_ITEM(found, i)) != 0)
      return false;
  return true;
}

bool Guards::hasForm(const CallArguments &call) const {
  return call.positional == argumentCount && sameNames(argumentNames.get(), call.names);
}

bool Guards::check(const CallArguments &call, Registers &registers, size_t *failed) const {
  registers.assign(registerCount, {});
  size_t at = 0;
  bool all = hasForm(call);
  while (all && at < checks.size()) {
    all = holds(checks[at], call, registers);
    ++at;
  }
  if (failed)
    *failed = at;
  return all;
}

std::optional<Guards> Guards::resized(const CallArguments &call, Registers &registers) const {
  registers.assign(registerCount, {});
  if (!hasForm(call))
    return std::nullopt;
  Guards made = *this;
  for (Check &check : made.checks) {
    if (check.kind != Kind::Tensor || check.owner.reg < 0) {
      if (!made.holds(check, call, registers))
        return std::nullopt;
      continue;
    }
    TensorFacts &known = made.tensors[check.number];
    std::optional<TensorFacts> now = TensorFacts::of(registers[check.owner.reg].get());
    if (!now || !known.resizes(*now))
      return std::nullopt;
    check.name.resize(check.name.size() - known.text().size());
    check.name += now->text();
    known = std::move(*now);
  }
  made.inObserved = registers;
  return made;
}

std::vector<Site> Guards::moved() const {
  std::vector<Site> sites;
  Registers none;
  auto note = [&](const Owner &owner, Place place, const PyRef &key, const Expected &expected,
                  PyObject *found) {
    bool fixed = expected.kind == Expected::Equal || expected.kind == Expected::Identity;
    if (expected.kind != Expected::Load && found && !accept(expected, found, none) &&
        (isInput(found) || (fixed && isNumberInput(found))))
      sites.push_back({place, reinterpret_cast<uintptr_t>(owner.object.get()), key});
  };
  for (const Watch &each : dictWatches) {
    PyObject *dict =
        each.ofInstance ? interpreter::instanceDict(each.owner.get()) : each.owner.get();
    bool ofInstance =
        each.ofInstance && !PyModule_Check(each.owner.get()); // a module's entries are globals
    for (const Entry &entry : each.entries)
      if (dict)
        note({-1, ofInstance ? each.owner : PyRef::borrow(dict)},
             ofInstance ? Place::Attribute : Place::Item, entry.key, entry.expected,
             lookUp(dict, entry.key.get()));
  }
  for (const TypeWatch &each : typeWatches)
    for (const Entry &entry : each.entries) {
      PyObject *order = ((PyTypeObject *)each.type.get())->tp_mro;
      for (Py_ssize_t i = 0; order && !entry.after && i < PyTuple_GET_SIZE(order); ++i) {
        PyRef holder = PyRef::borrow(PyTuple_GET_ITEM(order, i));
        if (PyObject *found = lookUp(((PyTypeObject *)holder.get())->tp_dict, entry.key.get())) {
          note({-1, holder}, Place::Class, entry.key, entry.expected, found);
          break;
        }
      }
    }
  for (const Check &check : checks) {
    PyObject *owner = check.owner.reg < 0 ? check.owner.object.get() : nullptr;
    if (!owner)
      continue;
    if (check.kind == Kind::ClassItem)
      note(check.owner, Place::Class, check.key, check.expected,
           lookUp(((PyTypeObject *)owner)->tp_dict, check.key.get()));
    if (check.kind == Kind::Item) {
      PyRef found = fromEitherEnd(owner, check.number),
            key = PyRef::steal(PyLong_FromSsize_t(check.number));
      note(check.owner, Place::Item, key, check.expected, found.get());
    } else if (check.kind == Kind::Cell) {
      note(check.owner, Place::Cell, PyRef::borrow(Py_None), check.expected, PyCell_GET(owner));
    } else if (check.kind == Kind::Member) {
      PyRef found = memberOf(check.key.get(), owner);
      note(check.owner, Place::Member, check.key, check.expected, found.get());
    }
  }
  return sites;
}

} // namespace weft::capture
