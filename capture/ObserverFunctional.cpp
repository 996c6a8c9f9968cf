// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions that are given functions to call (map, filter, functools.reduce, operator.itemgetter),
// sums and the like, context variables, and match statements.
#include "capture/Arrays.h"
#include "capture/Imported.h"
#include "capture/Observer.h"
#include "capture/Plain.h"

#include <algorithm>

namespace weft::capture {

static bool isPythonFunction(PyObject *object) {
  return object && (PyFunction_Check(object) || PyMethod_Check(object));
}

bool Observer::isMap(PyObject *object) {
  return std::ranges::any_of(maps, [&](const PyRef &each) { return each.get() == object; });
}

bool Observer::isPlainMap(PyObject *object) {
  return std::ranges::any_of(plainMaps, [&](const PyRef &each) { return each.get() == object; });
}

/// The items that an iterator over a dict has yet to give; null for any other object.
static PyRef restOf(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  if (type != &PyDictIterItem_Type && type != &PyDictIterKey_Type && type != &PyDictIterValue_Type)
    return {};
  PyRef parts = PyRef::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
  PyErr_Clear();
  return parts ? PyRef::borrow(PyTuple_GET_ITEM(PyTuple_GET_ITEM(parts.get(), 1), 0)) : PyRef();
}

PyRef Observer::itemsOf(PyObject *object) {
  bool view = dictOfView(object) &&
              (values.isFresh(object) || (values.isExternal(object) && values.readView(object)));
  bool list = ((PyList_Check(object) && !PyList_CheckExact(object)) || isDeque(object)) &&
              values.isUsable(object) &&
              answering(object, "__iter__") == builtinBase(Py_TYPE(object)) &&
              values.readWhole(object);
  if (PyRef rest = restOf(object); rest && values.isFresh(object))
    return rest;
  PyRef items = PyRef::steal(view ? PySequence_List(object) : list ? PyList_New(0) : nullptr);
  for (Py_ssize_t i = 0; list && items && i < Py_SIZE(object); ++i)
    if (PyList_Append(items.get(), itemAt(object, i).get()) < 0)
      items = {};
  PyErr_Clear();
  return items;
}

/// Whether the function is a method of a dict of this call that gives one of its values for a plain
/// key, or else a default.
bool Observer::takesEntries(PyObject *function, Arguments taken) {
  static PyObject *const methods[] = {PyDict_GetItemString(PyDict_Type.tp_dict, "pop"),
                                      PyDict_GetItemString(PyDict_Type.tp_dict, "get")};
  PyObject *self = PyCFunction_CheckExact(function) ? PyCFunction_GET_SELF(function) : nullptr;
  if (!self || !PyDict_CheckExact(self) || !values.isFresh(self) || taken.empty() ||
      !isPlain(taken[0]))
    return false;
  PyMethodDef *method = reinterpret_cast<PyCFunctionObject *>(function)->m_ml;
  return std::ranges::any_of(methods, [&](PyObject *each) {
    return reinterpret_cast<PyMethodDescrObject *>(each)->d_method == method;
  });
}

bool Observer::callMap(Frame &frame, Kind kind, PyObject *callable, Arguments arguments) {
  std::string what = nameOf(callable);
  PyRef held = PyRef::borrow(arguments.empty() ? nullptr : arguments[0]);
  PyObject *function = held.get();
  Kind of = function ? kindOf(function) : Kind::None;
  bool plain = true;
  if (of != Kind::None && !values.fixIdentity(function))
    return false;
  for (PyObject *each : arguments.subspan(std::min<size_t>(1, arguments.size())))
    if (!readIterable(frame, each))
      return false;
  auto calls = [&](PyObject *inPython) {
    if (kind == Kind::Filter)
      tested.push_back(
          PyRef::borrow(PyMethod_Check(inPython) ? PyMethod_GET_FUNCTION(inPython) : inPython));
    frame.pending.maps = kind == Kind::Map;
    frame.pending.carries = true;
    return expect(frame, Then::Fresh, true, what);
  };
  bool tests = kind == Kind::Filter && (function == Py_None || isPythonFunction(function));
  if (tests && !(function == Py_None && arguments.size() > 1 && hasPlainItems(arguments[1])))
    if (PyObject *inPython = calledInPython(frame, function, operators().testedInPython))
      return calls(inPython);
  if (isPythonFunction(function))
    return calls(function);
  if (function && kind == Kind::Map && takesEntries(function, arguments.subspan(1)))
    return carries(frame) && expect(frame, Then::Fresh, false, what);
  for (PyObject *each : arguments.subspan(std::min<size_t>(1, arguments.size())))
    plain = plain && (isArray(each) || isPlainWithin(each)); // its items have been read
  bool known = function == Py_None || of == Kind::Pure || of == Kind::Length;
  frame.pending.plainMaps = known && plain && kind == Kind::Map && function != Py_None;
  if (known && plain)
    return expect(frame, Then::Fresh, true, what);
  PyObject *inPython = function && !values.failed() ? calledInPython(frame, function) : nullptr;
  return inPython ? calls(inPython) : values.fail(what + " of " + shown(function));
}

bool Observer::callReduce(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  std::string what = nameOf(callable);
  if (names || arguments.size() < 2)
    return values.fail(what + " with arguments by name");
  if (isPythonFunction(arguments[0]))
    return carries(frame) && readIterable(frame, arguments[1]) &&
           expect(frame, Then::Usable, true, what);
  Kind kind = kindOf(arguments[0]);
  if (kind != Kind::None && !values.fixIdentity(arguments[0]))
    return false;
  bool plain = kind == Kind::Pure || kind == Kind::Operation || kind == Kind::Fold;
  for (PyObject *each : arguments.subspan(1))
    plain = plain && isPlainWithin(each);
  if (plain)
    return expect(frame, Then::Plain, false, what);
  bool items = PyList_CheckExact(arguments[1]) || PyTuple_CheckExact(arguments[1]);
  if (kind == Kind::Operation && items)
    return operation(frame, callable, arguments, names);
  PyRef held = PyRef::borrow(arguments[0]);
  return (!values.failed() && readIterable(frame, arguments[1]) && carries(frame) &&
          calledInPython(frame, held.get()) && expect(frame, Then::Usable, true, what)) ||
         values.fail(what + " by " + shown(held.get()));
}

bool Observer::accumulates(Frame &frame, Arguments arguments, PyObject *names,
                           const std::string &what) {
  size_t given = arguments.size() - (names ? 1 : 0);
  bool initial =
      !names || (PyTuple_GET_SIZE(names) == 1 &&
                 PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "initial") == 0);
  if (!initial || given == 0 || given > 2)
    return values.fail(what + " with such arguments");
  PyRef adds = PyRef::borrow(given == 2 ? arguments[1] : nullptr);
  Kind kind = adds ? kindOf(adds.get()) : Kind::Operation; // without a function it adds
  bool known = kind == Kind::Pure || kind == Kind::Operation || kind == Kind::Fold;
  if (known && isPlainWithin(arguments[0]) && (!names || isPlain(arguments.back()))) {
    frame.pending.plainMaps = true;
    return (!adds || values.fixIdentity(adds.get())) && expect(frame, Then::Fresh, false, what);
  }
  return (adds && (isPythonFunction(adds.get()) || calledInPython(frame, adds.get())) &&
          (!names || values.isUsable(arguments.back())) && readIterable(frame, arguments[0]) &&
          carries(frame) && expect(frame, Then::Fresh, true, what)) ||
         values.fail(what + " of " + shown(arguments[0]));
}

/// A regular expression calls a function in Python with each of its matches.
bool Observer::callsForMatches(Frame &frame, const std::string &what) {
  static PyTypeObject *match = nullptr;
  if (!match)
    match = (PyTypeObject *)imported("re", "Match").release();
  frame.pending.context = match;
  frame.pending.yields = Pending::Yields::Plain;
  return match && carries(frame) && expect(frame, Then::Plain, true, what);
}

/// A getter cannot change. The call that would make one like it tells what it gets.
bool Observer::callGetter(Frame &frame, PyObject *getter, Arguments arguments, PyObject *names) {
  if (std::string_view(Py_TYPE(getter)->tp_name) == "operator.methodcaller") {
    PyObject *inPython = calledInPython(frame, getter);
    return inPython ? call(frame, inPython, arguments, names)
                    : values.fail("calls " + shown(getter));
  }
  PyRef made = PyRef::steal(PyObject_CallMethod(getter, "__reduce__", nullptr));
  PyErr_Clear();
  PyObject *keys = made && PyTuple_Check(made.get()) && PyTuple_GET_SIZE(made.get()) > 1
                       ? PyTuple_GET_ITEM(made.get(), 1)
                       : nullptr;
  if (names || arguments.size() != 1 || !keys || !PyTuple_Check(keys) || !isPlain(keys) ||
      !values.fixIdentity(getter))
    return values.fail("calls " + shown(getter));
  bool items = std::string(Py_TYPE(getter)->tp_name) == "operator.itemgetter";
  bool many = items && (PyTuple_CheckExact(arguments[0]) || PyList_CheckExact(arguments[0]) ||
                        isDict(arguments[0]));
  for (Py_ssize_t i = 0; many && i < PyTuple_GET_SIZE(keys); ++i)
    if (PyObject *each = PyTuple_GET_ITEM(keys, i);
        PySlice_Check(each) || !subscript(frame, arguments[0], each))
      return values.fail("calls " + shown(getter));
  if (many)
    return true;
  bool dotted = false;
  for (Py_ssize_t i = 0; !items && i < PyTuple_GET_SIZE(keys); ++i)
    dotted |= PyUnicode_FindChar(PyTuple_GET_ITEM(keys, i), '.', 0, PY_SSIZE_T_MAX, 1) >= 0;
  if (dotted || PyTuple_GET_SIZE(keys) != 1) {
    PyObject *inPython = calledInPython(frame, getter);
    return inPython ? call(frame, inPython, arguments, names)
                    : values.fail("calls " + shown(getter) + " of " + shown(arguments[0]));
  }
  PyRef key = PyRef::borrow(PyTuple_GET_ITEM(keys, 0));
  if (items)
    return subscript(frame, arguments[0], key.get());
  PyObject *name = key.release();
  PyUnicode_InternInPlace(&name);
  key = PyRef::steal(name);
  return attribute(frame, arguments[0], name);
}

/// The code of inspect is not observed; what it reads is guarded here.
bool Observer::signature(Frame &frame, Arguments arguments, PyObject *names) {
  PyObject *of = arguments.size() == 1 && !names ? arguments[0] : nullptr;
  if (of && PyMethod_Check(of))
    of = PyMethod_GET_FUNCTION(of);
  for (int i = 0; of && PyFunction_Check(of) && i < 16; ++i) {
    if (values.isFresh(of) || !enterFunction(of))
      break;
    PyObject *next = nullptr;
    for (const char *each : {"__signature__", "__wrapped__"}) {
      PyRef name = PyRef::steal(PyUnicode_InternFromString(each));
      if (!readInstance(of, name.get()))
        return false;
      PyObject *dict = interpreter::instanceDict(of);
      PyObject *found = dict ? PyDict_GetItemWithError(dict, name.get()) : nullptr;
      if (found && name && PyUnicode_CompareWithASCIIString(name.get(), "__signature__") == 0)
        return values.fail("asks for a signature that was set");
      next = found;
    }
    if (!next) {
      frame.pending.foreign = frame.pending.signature = true;
      return expect(frame, Then::Fresh, true, "a signature");
    }
    of = next;
  }
  return values.fail("asks for the signature of " + shown(of));
}

/// Names and kinds of parameters may be read; their defaults and annotations are of unknown origin.
bool Observer::enterSignature(PyObject *signature) {
  PyRef parameters = PyRef::steal(PyObject_GetAttrString(signature, "parameters"));
  PyRef all = PyRef::steal(parameters ? PyMapping_Values(parameters.get()) : nullptr);
  if (!all)
    return values.fail("a signature without parameters");
  values.enterFresh(parameters.get());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all.get()); ++i) {
    PyRef kind = PyRef::steal(PyObject_GetAttrString(PyList_GET_ITEM(all.get(), i), "kind"));
    if (!kind || !values.enterFresh(PyList_GET_ITEM(all.get(), i)) ||
        !values.pin(kind.get(), "inspect.Parameter.kind"))
      return false;
  }
  return true;
}

/// What functools.lru_cache has stored for such a call; null if nothing.
static PyRef answerOf(std::span<PyObject *const> taken, PyObject *names) {
  size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  PyRef kept = PyRef::steal(
      PyObject_Vectorcall(operators().answerOfCache, taken.data(), taken.size() - named, names));
  PyErr_Clear();
  return kept;
}

/// functools.lru_cache. A replay looks for a stored result, and asks for it only after everything
/// else has succeeded, so that it is counted once. If no result is stored yet, the function's code
/// is observed, and must be replaceable by its stored result: it gives a plain value without any
/// operation, or tells something once, as `warning_once` does.
bool Observer::callCached(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  std::string what = nameOf(callable);
  for (PyObject *each : arguments) {
    if (isPlain(each))
      continue;
    const Value *value = values.find(each); // for example a logger, which is hashed by its address
    if (!value || value->origin != Origin::Pinned ||
        Py_TYPE(each)->tp_hash != PyBaseObject_Type.tp_hash ||
        Py_TYPE(each)->tp_richcompare != PyBaseObject_Type.tp_richcompare)
      return values.fail(what + ", which is cached, of " + shown(each));
    guardMethods(each, {"__hash__", "__eq__"});
  }
  std::vector<PyObject *> taken{callable};
  taken.insert(taken.end(), arguments.begin(), arguments.end());
  if (!values.isExternal(callable) || nodes ||
      !asks(frame, operators().answerOfCache, taken, names))
    return values.fail("calls " + what + ", which is cached");
  PyRef kept = answerOf(taken, names);
  if (kept && !isPlain(kept.get()) && !values.find(kept.get()) &&
      !values.pin(kept.get(), "what " + what + " keeps"))
    return false;
  frame.pending.nested = frame.pending.foreign = false;
  frame.pending.slot = frame.pending.cached = true;
  frame.pending.logBegin = log.size();
  return true;
}

/// Whether a record asks a cache, or counts that it is asked.
static bool isOfCache(const Record &record) {
  PyObject *callable = record.callable.get();
  return callable && (callable == operators().answerOfCache || kindOf(callable) == Kind::Asked ||
                      (record.tells && isCached(callable)));
}

/// Ends the observation of a cached function, whose effects happen once. Gives whether these were
/// only messages.
bool Observer::endCached(Frame &frame, PyObject *value) {
  Pending &pending = frame.pending;
  const Value *known = isPlain(value) ? nullptr : values.find(value);
  observation.passes = !isPlain(value) && !values.failed() && pending.entered;
  if (!isPlain(value) && (pending.entered || !known || known->origin != Origin::Pinned))
    return values.fail("fills the cache of " + nameOf(pending.callable.get()));
  bool tells = false;
  for (size_t i = pending.logBegin; i < log.size(); ++i) {
    const Record &record = log.all()[i];
    if (!isOfCache(record) && (!record.tells || value != Py_None))
      return values.fail("calls " + nameOf(pending.callable.get()) + ", which is cached");
    tells |= !isOfCache(record);
  }
  log.cut(pending.logBegin);
  Record counts;
  counts.callable = pending.callable;
  counts.names = pending.record.names;
  counts.arguments.assign(pending.record.arguments.begin() + 1, pending.record.arguments.end());
  counts.tells = true;
  pending.then = Then::Nothing;
  if (!tells && !appendRecord(frame, value))
    return false;
  counts.outcome = tells ? Outcome() : log.all().back().outcome;
  if (tells)
    counts.outcome.object = PyRef::borrow(value);
  counts.location = here();
  log.append(std::move(counts));
  return true;
}

// Context variables. What the call sets it also resets, so that a replay need not touch them.

bool Observer::callContext(Frame &frame, Kind kind, Arguments arguments, PyObject *names) {
  PyObject *variable = arguments.empty() ? nullptr : arguments[0];
  const Value *value = variable ? values.find(variable) : nullptr;
  if (!value || !values.isExternal(variable) || names || nodes)
    return values.fail("a context variable of unknown origin");
  if (!values.fixIdentity(variable)) // its default is nowhere else
    return false;
  auto latest =
      std::ranges::find_if(contexts.rbegin(), contexts.rend(), [&](const ContextValue &each) {
        return each.variable.get() == variable;
      });
  bool set = latest != contexts.rend();
  if (kind == Kind::ContextGet) {
    if (set)
      return expect(frame, Then::Usable, false, "a context variable");
    PyRef now = contextValue(variable);
    Value held = *value;
    return values.readContext(variable, held, now.get()) &&
           expect(frame, Then::Usable, false, "a context variable");
  }
  if (kind == Kind::ContextSet) {
    if (arguments.size() != 2)
      return values.fail("sets a context variable to nothing");
    contexts.push_back({PyRef::borrow(variable), PyRef::borrow(arguments[1]), {}});
    return expect(frame, Then::Fresh, false, "ContextVar.set");
  }
  bool reset = set && arguments.size() == 2 && values.isFresh(arguments[1]);
  PyRef of = PyRef::steal(reset ? PyObject_GetAttrString(arguments[1], "var") : nullptr);
  PyErr_Clear();
  if (!of || of.get() != variable || &*latest != &contexts.back())
    return values.fail("resets a context variable that it has not set last");
  contexts.pop_back();
  return expect(frame, Then::Plain, false, "ContextVar.reset");
}

// Match statements.

bool Observer::matchKeys(Frame &frame, PyObject *subject, PyObject *keys) {
  if (!isDict(subject) || !isPlain(keys))
    return values.fail("matches " + shown(subject));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i)
    if (!values.readKey(subject, PyTuple_GET_ITEM(keys, i)))
      return false;
  return expect(frame, Then::Usable, false, "a match");
}

bool Observer::matchClass(Frame &frame, PyObject *subject, PyObject *type, PyObject *names) {
  static PyObject *const matched = PyUnicode_InternFromString("__match_args__");
  if (isTensor(subject) || !PyType_Check(type) || Py_TYPE(type) != &PyType_Type)
    return values.fail("matches " + shown(subject));
  if (!isInstance(frame, subject, type))
    return false;
  PyObject *own = interpreter::typeLookup((PyTypeObject *)type, matched);
  guards.typeItem((PyTypeObject *)type, matched, own);
  if (PyObject_IsInstance(subject, type) == 1) {
    PyRef all = PyRef::steal(PySequence_List(names));
    for (Py_ssize_t i = 0; own && PyTuple_Check(own) && i < PyTuple_GET_SIZE(own); ++i)
      if (PyList_Append(all.get(), PyTuple_GET_ITEM(own, i)) < 0)
        return values.fail("matches " + shown(subject));
    for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all.get()); ++i)
      if (!attribute(frame, subject, PyList_GET_ITEM(all.get(), i)))
        return false;
  }
  return expect(frame, Then::Usable, true, "a match");
}

bool Observer::fold(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  if (arguments.size() > 1 && !names && takeNumbers(arguments)) // the least or greatest of numbers
    return operation(frame, callable, arguments, names);
  std::string what = nameOf(callable);
  if (arguments.size() == 1 && !names && isHistoryOfNumbers(arguments[0])) {
    PyObject *asked[] = {callable, arguments[0]};
    return asksHistory(frame, operators().overNumbers, asked);
  }
  PyObject *key = names && PyTuple_GET_SIZE(names) == 1 && arguments.size() == 2 &&
                          PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "key") == 0
                      ? arguments[1]
                      : nullptr;
  if (key && (PyFunction_Check(key) || PyMethod_Check(key) || isComparison(key)) &&
      givesToKeys(arguments[0])) {
    if (!readIterable(frame, arguments[0]))
      return false;
    frame.pending.yields = Pending::Yields::Keys;
    return carries(frame) && expect(frame, Then::Usable, true, what);
  }
  if (getsKeys(frame, arguments, names))
    return carries(frame) && expect(frame, Then::Usable, false, what);
  bool plain = true, tensors = false;
  std::vector<PyObject *> listed(arguments.begin(), arguments.end());
  if (PyRef list = listed.empty() ? PyRef() : itemsOf(listed[0])) {
    if (!values.enterFresh(list.get()))
      return false;
    listed[0] = list.get();
    arguments = listed;
  }
  for (PyObject *each : arguments)
    plain = isPlainWithin(each) && plain;
  if (values.failed())
    return false;
  if (plain || (arguments.size() == 1 && isPlainMap(arguments[0])))
    return expect(frame, Then::Plain, false, what);
  PyRef together = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
  for (size_t i = 0; together && i < arguments.size(); ++i)
    PyTuple_SET_ITEM(together.get(), static_cast<Py_ssize_t>(i), Py_NewRef(arguments[i]));
  PyObject *items = arguments.size() == 1 ? arguments[0] : together.get();
  if (!names && (what != "sum" || arguments.size() == 1) && foldsInPython(items, what == "sum")) {
    if (what != "sum") // what a comparison gives is tested for truth
      frame.pending.yields = Pending::Yields::Plain;
    return carries(frame) && expect(frame, Then::Usable, true, what);
  }
  auto look = [&](PyObject *each) { tensors |= isTensor(each); };
  bool known = true;
  for (PyObject *each : arguments) {
    look(each);
    if (PyTuple_CheckExact(each) || PyList_CheckExact(each))
      for (Py_ssize_t i = 0; i < Py_SIZE(each); ++i)
        look(PyTuple_Check(each) ? PyTuple_GET_ITEM(each, i) : PyList_GET_ITEM(each, i));
    else
      known &= isPlain(each) || isTensor(each);
  }
  if (tensors && known) {
    for (PyObject *each : arguments)
      for (Py_ssize_t i = 0; PyList_CheckExact(each) && i < PyList_GET_SIZE(each); ++i)
        if (isTensor(PyList_GET_ITEM(each, i)))
          guardMethods(PyList_GET_ITEM(each, i), {"__add__", "__radd__", "__lt__", "__gt__"});
    return operation(frame, callable, arguments, names);
  }
  // A generator's values would be added unobserved, so that they are kept, and added as a list.
  PyObject *first = arguments.empty() ? nullptr : arguments[0];
  bool generator =
      first && (iteratesByGenerator(first) ||
                (values.isFresh(first) &&
                 (isMap(first) || (PyGen_CheckExact(first) && !interpreter::isSuspended(first)))));
  for (PyObject *each : arguments.subspan(arguments.empty() ? 0 : 1))
    generator &= isPlain(each) || isTensor(each);
  if (generator) {
    Record &record = frame.pending.record = {};
    record.callable = PyRef::borrow(callable);
    record.names = PyRef::borrow(names);
    record.arguments.emplace_back();
    record.arguments[0].kind = Form::List;
    record.arguments[0].index = -1;
    for (PyObject *each : arguments.subspan(1)) {
      std::optional<Form> form = values.form(each);
      if (!form)
        return false;
      record.arguments.push_back(std::move(*form));
    }
    frame.pending.slot = true;
    frame.pending.yields = Pending::Yields::Collected;
    return expect(frame, Then::Append, true, what);
  }
  return (what == "sum" && foldsByLoop(frame, callable, arguments, names)) ||
         values.fail(what + " over " + shown(arguments.empty() ? Py_None : arguments[0]));
}

} // namespace weft::capture
