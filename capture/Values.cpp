// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Values.h"

#include "capture/Interpreter.h"
#include "capture/Plain.h"

namespace weft::capture {

bool Values::fail(std::string reason) {
  if (why.empty())
    why = std::move(reason);
  return false;
}

const Value *Values::find(PyObject *object) {
  auto found = entered.find(object);
  if (found == entered.end())
    return nullptr;
  const Value &value = found->second;
  // A dead tensor's address may have become another object's.
  if (value.origin == Origin::Result && !value.held &&
      PyWeakref_GetObject(value.holder.get()) != object)
    return nullptr;
  return &value;
}

bool Values::isFresh(PyObject *object) {
  const Value *value = find(object);
  return value && value->origin == Origin::Fresh;
}

bool Values::isExternal(PyObject *object) {
  const Value *value = find(object);
  return value && (value->origin == Origin::Pinned || value->origin == Origin::Argument);
}

bool Values::isKept(PyObject *object) {
  const Value *value = find(object);
  return value && value->held;
}

bool Values::isUsable(PyObject *object) {
  if (!object || isPlain(object) || find(object))
    return true;
  if (depth > mostDepth)
    return false;
  ++depth;
  bool usable = false;
  if (PyTuple_CheckExact(object)) {
    usable = true;
    for (Py_ssize_t i = 0; usable && i < PyTuple_GET_SIZE(object); ++i)
      usable = isUsable(PyTuple_GET_ITEM(object, i));
  } else if (PySlice_Check(object)) {
    auto *slice = reinterpret_cast<PySliceObject *>(object);
    usable = isUsable(slice->start) && isUsable(slice->stop) && isUsable(slice->step);
  } else if (PyMethod_Check(object)) {
    usable = isUsable(PyMethod_GET_FUNCTION(object)) && isUsable(PyMethod_GET_SELF(object));
  } else if (Py_TYPE(object) == &_PyMethodWrapper_Type) {
    PyRef self = PyRef::steal(PyObject_GetAttrString(object, "__self__"));
    usable = self && isUsable(self.get());
  } else if (PyCFunction_CheckExact(object)) { // bound to an object, or it were plain
    usable = isUsable(PyCFunction_GET_SELF(object));
  }
  --depth;
  return usable;
}

bool Values::put(PyObject *object, Value value) {
  entered.insert_or_assign(object, std::move(value));
  return true;
}

Owner Values::owner(PyObject *object, const Value &value) const {
  if (value.origin == Origin::Argument)
    return {value.index, {}};
  return {-1, PyRef::borrow(object)};
}

// Doors.

bool Values::enterTensor(PyObject *object, const Owner &owner, const std::string &name) {
  std::optional<TensorFacts> facts = TensorFacts::of(object);
  if (!facts)
    return fail(name + " is a tensor of a class, layout or device that is not observed");
  guards.tensor(owner, *facts, name);
  externals.push_back({PyRef::borrow(object), Tensors::get()->version(object)});
  return true;
}

bool Values::pin(PyObject *object, std::string name) {
  if (isPlain(object))
    return true;
  if (const Value *known = find(object)) {
    if (known->origin == Origin::Argument) // the program holds it itself as well
      guards.identity({known->index, {}}, {-1, PyRef::borrow(object)}, true,
                      known->name + " is " + name);
    return true;
  }
  Owner owner{-1, PyRef::borrow(object)};
  put(object, {Origin::Pinned, -1, owner.object, name});
  if (Tensors::get()->isAny(object))
    return enterTensor(object, owner, name);
  if (PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      if (!pin(PyTuple_GET_ITEM(object, i), name + "[" + std::to_string(i) + "]"))
        return false;
    return true;
  }
  if (PyMethod_Check(object))
    return pin(PyMethod_GET_FUNCTION(object), name + ".__func__") &&
           pin(PyMethod_GET_SELF(object), name + ".__self__");
  if (PyCFunction_CheckExact(object)) // a method of an object in C
    return pin(PyCFunction_GET_SELF(object), name + ".__self__");
  if (PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE))
    guards.type(owner, Py_TYPE(object), name);
  return true;
}

bool Values::enterRegister(PyObject *object, int reg, const std::string &name) {
  Owner owner{reg, {}};
  put(object, {Origin::Argument, reg, PyRef::borrow(object), name});
  if (Tensors::get()->isAny(object))
    return enterTensor(object, owner, name);
  guards.type(owner, Py_TYPE(object), name);
  return !PyTuple_Check(object) || readWhole(object);
}

/// Functions and what is bound are compared by identity, from wherever they come.
static bool isCode(PyObject *object) {
  return PyFunction_Check(object) || PyMethod_Check(object) || PyCFunction_CheckExact(object);
}

static Expected identical(PyObject *object) {
  return {Expected::Identity, PyRef::borrow(object), -1};
}

std::optional<Expected> Values::enterKnown(const Value &container, const Value &known,
                                           PyObject *object, const std::string &name) {
  if (known.origin == Origin::Result || known.origin == Origin::Fresh) {
    fail(name + " was made by this call");
    return std::nullopt;
  }
  if (container.origin == Origin::Pinned || known.origin == Origin::Pinned) {
    if (known.origin == Origin::Argument) // an argument that the program also holds itself
      guards.identity({known.index, {}}, {-1, PyRef::borrow(object)}, true,
                      known.name + " is " + name);
    return identical(object);
  }
  int reg = guards.newRegister();
  return Expected{Expected::Load, {}, reg};
}

std::optional<Expected> Values::enter(const Value &container, PyObject *object, std::string name) {
  if (!object)
    return Expected{};
  if (isPlain(object))
    return isSingleton(object) ? identical(object)
                               : Expected{Expected::Equal, PyRef::borrow(object), -1};
  if (const Value *known = find(object))
    return enterKnown(container, *known, object, name);
  if (container.origin == Origin::Pinned || isCode(object)) {
    if (!pin(object, std::move(name)))
      return std::nullopt;
    return identical(object);
  }
  return Expected{Expected::Load, {}, guards.newRegister()};
}

// Checks run in their order: one that loads a register comes ahead of those of what it loaded.
template <typename AddCheck>
bool Values::settle(PyObject *object, Expected expected, const std::string &name, AddCheck add) {
  bool loads = expected.kind == Expected::Load;
  int reg = expected.reg;
  const Value *known = loads ? find(object) : nullptr;
  int before = known ? known->index : -1;
  add(std::move(expected));
  if (loads && before >= 0)
    guards.identity({before, {}}, {reg, {}}, true, name);
  return !loads || before >= 0 || enterRegister(object, reg, name);
}

bool Values::enterArgument(Py_ssize_t i, PyObject *object, std::string name) {
  Value call{Origin::Argument, -1, {}, ""};
  std::optional<Expected> expected = enter(call, object, name);
  if (!expected)
    return false;
  return settle(object, *expected, name,
                [&](Expected made) { guards.argument(i, std::move(made), name); });
}

bool Values::enterFresh(PyObject *object) {
  static PyObject *const finalizer = PyUnicode_InternFromString("__del__");
  if (PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) &&
      interpreter::typeLookup(Py_TYPE(object), finalizer))
    return fail("makes " + shown(object) + ", which has a finalizer");
  return put(object, {Origin::Fresh, freshCount++, PyRef::borrow(object), ""});
}

std::optional<Outcome> Values::enterOutcome(PyObject *object, const std::string &of) {
  Outcome outcome;
  if (isPlain(object)) {
    outcome.object = PyRef::borrow(object);
    return outcome;
  }
  if (find(object)) {
    std::optional<Form> same = form(object);
    if (!same)
      return std::nullopt;
    outcome.kind = Outcome::Same;
    outcome.same = std::move(*same);
    return outcome;
  }
  if (Tensors::get()->isAny(object)) {
    std::optional<TensorFacts> facts = TensorFacts::of(object);
    PyRef weak = PyRef::steal(facts ? PyWeakref_NewRef(object, nullptr) : nullptr);
    if (!weak) {
      PyErr_Clear();
      fail(of + " gave a tensor of a class, layout or device that is not observed");
      return std::nullopt;
    }
    outcome.kind = Outcome::Tensor;
    outcome.index = log.newResult();
    outcome.facts.push_back(std::move(*facts));
    put(object, {Origin::Result, outcome.index, std::move(weak), ""});
    return outcome;
  }
  if (!PyTuple_Check(object) && !PyList_CheckExact(object)) {
    fail(of + " gave " + shown(object));
    return std::nullopt;
  }
  outcome.kind = Outcome::Sequence;
  outcome.object = PyRef::borrow((PyObject *)Py_TYPE(object));
  bool tuple = PyTuple_Check(object);
  for (Py_ssize_t i = 0; i < Py_SIZE(object); ++i) {
    std::optional<Outcome> part =
        enterOutcome(tuple ? PyTuple_GET_ITEM(object, i) : PyList_GET_ITEM(object, i), of);
    if (!part)
      return std::nullopt;
    outcome.parts.push_back(std::move(*part));
  }
  if (!PyTuple_CheckExact(object))
    enterFresh(object);
  return outcome;
}

// Reads.

bool Values::readsChanged(PyObject *container, const Value &value, bool &read) {
  auto found = changed.find(container);
  if (found == changed.end())
    return false;
  read = found->second || fail("reads " + value.name + ", which it has changed");
  return true;
}

bool Values::change(PyObject *container, bool whole) {
  auto found = changed.find(container);
  if (found != changed.end())
    return !whole || found->second ||
           fail("changes " + find(container)->name + " by what it holds");
  if (whole && !readWhole(container))
    return false;
  changed[container] = whole;
  return true;
}

bool Values::readLength(PyObject *container) {
  const Value *value = find(container);
  if (!value || value->origin == Origin::Fresh || value->origin == Origin::Result ||
      PyTuple_Check(container))
    return true;
  if (bool read = true; readsChanged(container, *value, read))
    return read;
  if (hasSet(container, nullptr))
    return fail("asks for the length of " + value->name + ", which it has changed");
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
  bool tuple = PyTuple_Check(container);
  if (tuple && value->origin == Origin::Pinned) // has entered with it
    return true;
  PyObject *item = tuple ? PyTuple_GET_ITEM(container, i) : PyList_GET_ITEM(container, i);
  Value held = *value; // entering moves the others about
  std::string name = held.name + "[" + std::to_string(i) + "]";
  std::optional<Expected> expected = enter(held, item, name);
  if (!expected)
    return false;
  return settle(item, *expected, name, [&](Expected made) {
    guards.item(owner(container, held), i, std::move(made), name);
  });
}

bool Values::readKey(PyObject *dict, PyObject *key) {
  const Value *value = find(dict);
  if (!value || value->origin == Origin::Fresh || value->origin == Origin::Result)
    return true;
  if (bool read = true; readsChanged(dict, *value, read))
    return read;
  if (guards.watches(dict, false, key) || hasSet(dict, key))
    return true;
  if (!isPlain(key))
    return fail("looks up a key of " + value->name + " that is not plain");
  PyObject *item = PyDict_GetItemWithError(dict, key);
  if (!item && PyErr_Occurred()) {
    PyErr_Clear();
    return true; // not hashable: the program fails as well
  }
  Value held = *value;
  std::string name = held.name + "[" + shown(key) + "]";
  std::optional<Expected> expected = enter(held, item, name);
  if (!expected)
    return false;
  return settle(item, *expected, name, [&](Expected made) {
    guards.dictItem(owner(dict, held), key, std::move(made), name);
  });
}

bool Values::readWhole(PyObject *container) {
  const Value *value = find(container);
  if (!value || value->origin == Origin::Fresh || value->origin == Origin::Result)
    return true;
  if (bool read = true; readsChanged(container, *value, read))
    return read;
  bool set = PyAnySet_CheckExact(container);
  if (PyDict_Check(container) || set) {
    PyRef keys = PyRef::steal(PySequence_Tuple(container));
    if (!keys || !isPlain(keys.get())) {
      PyErr_Clear();
      return fail("reads all of " + value->name + ", whose keys are not plain");
    }
    if (hasSet(container, nullptr))
      return fail("reads all of " + value->name + ", which it has changed");
    guards.keys(owner(container, *value), keys.get(), value->name);
    for (Py_ssize_t i = 0; !set && i < PyTuple_GET_SIZE(keys.get()); ++i)
      if (!readKey(container, PyTuple_GET_ITEM(keys.get(), i)))
        return false;
    return true;
  }
  if (!PyList_Check(container) && !PyTuple_Check(container))
    return true;
  if (value->origin == Origin::Argument || PyList_Check(container))
    guards.length(owner(container, *value), Py_SIZE(container), value->name);
  for (Py_ssize_t i = 0; i < Py_SIZE(container); ++i)
    if (!readItem(container, i))
      return false;
  return true;
}

bool Values::readAttribute(PyObject *object, PyObject *name, PyObject *found) {
  if (guards.watches(object, true, name) || hasSet(interpreter::instanceDict(object), name))
    return true;
  Value held = *find(object);
  std::string text = held.name + "." + PyUnicode_AsUTF8(name);
  std::optional<Expected> expected = enter(held, found, text);
  if (!expected)
    return false;
  return settle(found, *expected, text, [&](Expected made) {
    guards.instanceItem(owner(object, held), name, std::move(made), text);
  });
}

bool Values::readMember(PyObject *object, PyObject *descriptor, const std::string &name) {
  Value held = *find(object);
  PyRef found = PyRef::steal(
      Py_TYPE(descriptor)->tp_descr_get(descriptor, object, (PyObject *)Py_TYPE(object)));
  PyErr_Clear();
  std::string text = held.name + "." + name;
  std::optional<Expected> expected = enter(held, found.get(), text);
  if (!expected)
    return false;
  return settle(found.get(), *expected, text, [&](Expected made) {
    guards.member(owner(object, held), descriptor, std::move(made), text);
  });
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
  if (value->origin == Origin::Fresh || hasSet(cell, nullptr))
    return true;
  Value held = *value;
  std::optional<Expected> expected = enter(held, PyCell_GET(cell), name);
  if (!expected)
    return false;
  guards.cell(owner(cell, held), *expected, name);
  return true;
}

bool Values::readIdentity(PyObject *left, PyObject *right) {
  if (left == Py_None || right == Py_None || left == Py_True || right == Py_True ||
      left == Py_False || right == Py_False)
    return true;
  const Value *x = find(left), *y = find(right);
  if (!x || !y) // of plain values only singletons have an identity that tells something
    return ((x || isSingleton(left)) && (y || isSingleton(right))) ||
           fail("compares identities of values that have none");
  if (x->origin != Origin::Argument && y->origin != Origin::Argument)
    return true;
  if (isExternal(left) && isExternal(right) && left != right)
    guards.identity(owner(left, *x), owner(right, *y), false, x->name + " is not " + y->name);
  return true;
}

} // namespace weft::capture
