// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Values.h"

#include "capture/Arrays.h"
#include "capture/Declared.h"
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
  // The address of a deleted tensor may belong to another object by now.
  if (((value.origin == Origin::Result && !value.held) || value.weak) &&
      PyWeakref_GetObject(value.holder.get()) != object)
    return nullptr;
  return &value;
}

bool Values::isDataSized(PyObject *object) {
  const Value *value = find(object);
  return value && value->dataSized;
}

void Values::noteDataSized(PyObject *outcome) {
  if (PyTuple_Check(outcome) || PyList_CheckExact(outcome))
    for (Py_ssize_t i = 0; i < Py_SIZE(outcome); ++i)
      noteDataSized(itemAt(outcome, i).get());
  else if (find(outcome))
    entered.find(outcome)->second.dataSized = true;
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

bool Values::isPlain(PyObject *object) {
  if (!capture::isPlain(object))
    return false;
  fixWithin(object);
  return true;
}

std::optional<Outcome> Values::enterNumber(PyObject *number) {
  Outcome outcome;
  outcome.object = PyRef::borrow(number);
  if (numbers.contains(number))
    return outcome;
  outcome.free = true;
  outcome.index = log.newResult();
  numbers.emplace(number, Number{PyRef::borrow(number), outcome.index, log.size()});
  return outcome;
}

bool Values::isUsable(PyObject *object) {
  if (!object || capture::isPlain(object) || find(object))
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
  } else if (PyCFunction_CheckExact(object)) { // one bound to an object; others are plain
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

// Entering values.

bool Values::enterTensor(PyObject *object, const Owner &owner, const std::string &name) {
  std::optional<TensorFacts> facts = TensorFacts::of(object);
  if (!facts)
    return fail(name + " is a tensor of a class, layout or device that is not observed");
  guards.tensor(owner, *facts, name);
  externals.push_back({PyRef::borrow(object), Tensors::get()->version(object)});
  return true;
}

bool Values::enterArray(PyObject *object, const Owner &owner, const std::string &name) {
  PyRef facts = arrayFacts(object);
  if (!facts)
    return fail(name + " is an array of objects or records");
  guards.array(owner, std::move(facts), name);
  return true;
}

bool Values::pin(PyObject *object, std::string name) {
  if (isPlain(object))
    return true;
  if (const Value *known = find(object)) {
    if (known->origin == Origin::Argument) // the program also holds the argument itself
      guards.identity({known->index, {}}, {-1, PyRef::borrow(object)}, true,
                      known->name + " is " + name);
    return true;
  }
  Owner owner{-1, PyRef::borrow(object)};
  put(object, {Origin::Pinned, -1, owner.object, name});
  if (Tensors::get()->isAny(object))
    return enterTensor(object, owner, name);
  if (isArray(object))
    return enterArray(object, owner, name);
  if (PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      if (!pin(PyTuple_GET_ITEM(object, i), name + "[" + std::to_string(i) + "]"))
        return false;
    return true;
  }
  if (PyMethod_Check(object))
    return pin(PyMethod_GET_FUNCTION(object), name + ".__func__") &&
           pin(PyMethod_GET_SELF(object), name + ".__self__");
  if (PyCFunction_CheckExact(object)) // a method in C, bound to an object
    return pin(PyCFunction_GET_SELF(object), name + ".__self__");
  if (PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE))
    guards.type(owner, Py_TYPE(object), name);
  return true;
}

bool Values::fixIdentity(PyObject *object) {
  const Value *known = find(object);
  return !known || known->origin != Origin::Argument || pin(object, shown(object));
}

bool Values::enterRegister(PyObject *object, int reg, const std::string &name) {
  static PyObject *const longest = PyUnicode_InternFromString("maxlen");
  Owner owner{reg, {}};
  put(object, {Origin::Argument, reg, PyRef::borrow(object), name});
  if (Tensors::get()->isAny(object))
    return enterTensor(object, owner, name);
  if (isArray(object))
    return enterArray(object, owner, name);
  guards.type(owner, Py_TYPE(object), name);
  if (PyRef value = valueOf(object))
    guards.value(owner, std::move(value), name);
  if (isDeque(object)) { // what it drops follows from it
    PyObject *descriptor = interpreter::typeLookup(builtinBase(Py_TYPE(object)), longest);
    guards.member(owner, descriptor, {Expected::Equal, memberOf(descriptor, object), -1},
                  name + ".maxlen");
  }
  return !PyTuple_Check(object) || readWhole(object);
}

/// Functions, bound methods and members of enumerations are compared by identity, wherever they
/// come from.
static bool isCode(PyObject *object) {
  return PyFunction_Check(object) || PyMethod_Check(object) || PyCFunction_CheckExact(object) ||
         isEnumMember(object);
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
    if (known.origin == Origin::Argument) // the program also holds the argument itself
      guards.identity({known.index, {}}, {-1, PyRef::borrow(object)}, true,
                      known.name + " is " + name);
    return identical(object);
  }
  return Expected{Expected::Load, {}, guards.newRegister(object)};
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
  return Expected{Expected::Load, {}, guards.newRegister(object)};
}

Site *Values::siteOf(Place place, PyObject *owner, PyObject *key) {
  for (Site &each : sites)
    if (each.place == place && each.owner == reinterpret_cast<uintptr_t>(owner) &&
        (each.key.get() == key || plainEqual(each.key.get(), key)))
      return &each;
  return nullptr;
}

bool Values::isLoaded(Place place, PyObject *owner, PyObject *key) {
  const Site *site = siteOf(place, owner, key);
  if (site && site->loaded && site->number >= 0)
    pushNumber(site->number);
  return site && site->loaded;
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
  bool weak = PyGen_CheckExact(object) && interpreter::mayRunOnClosing(object);
  PyRef holder = weak ? PyRef::steal(PyWeakref_NewRef(object, nullptr)) : PyRef::borrow(object);
  return holder && put(object, {Origin::Fresh, freshCount++, std::move(holder), "", false, weak});
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
  if (isGenerator(object)) {
    outcome.kind = Outcome::Made;
    outcome.index = log.newResult();
    put(object, {Origin::Result, outcome.index, PyRef::borrow(object), "", true});
    return outcome;
  }
  if (isArray(object)) {
    outcome.object = arrayFacts(object);
    PyRef weak = PyRef::steal(outcome.object ? PyWeakref_NewRef(object, nullptr) : nullptr);
    if (!weak) {
      PyErr_Clear();
      fail(of + " gave an array of objects or records");
      return std::nullopt;
    }
    outcome.kind = Outcome::Array;
    outcome.index = log.newResult();
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

} // namespace weft::capture
