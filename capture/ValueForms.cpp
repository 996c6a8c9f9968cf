// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How replays make the values that operations take and that the call returns, and which objects
// these share.
#include "capture/Arrays.h"
#include "capture/Declared.h"
#include "capture/Interpreter.h"
#include "capture/Iterators.h"
#include "capture/Plain.h"
#include "capture/Values.h"

namespace weft::capture {

/// Whether the instance consists only of what its base makes, of its attributes and, where `slots`
/// are allowed, of slots.
static bool isOrdinary(PyObject *object, PyTypeObject *base = &PyBaseObject_Type,
                       bool slots = false) {
  PyTypeObject *type = Py_TYPE(object);
  if (type->tp_new != base->tp_new || type->tp_itemsize)
    return false;
  for (; type != base; type = type->tp_base) {
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
      return false;
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(type->tp_dict, &at, &key, &item);)
      if (Py_TYPE(item) == &PyMemberDescr_Type && !(slots && isSlot(item)))
        return false;
  }
  return true;
}

/// The attributes of an instance, by their names, and what its slots hold, by their descriptors.
static std::vector<std::pair<PyObject *, PyRef>> attributesOf(PyObject *object) {
  std::vector<std::pair<PyObject *, PyRef>> attributes;
  PyObject *dict = interpreter::instanceDict(object), *key, *item;
  for (Py_ssize_t at = 0; dict && PyDict_Next(dict, &at, &key, &item);)
    attributes.emplace_back(key, PyRef::borrow(item));
  for (PyObject *slot : slotsOf(Py_TYPE(object)))
    if (PyRef held = memberOf(slot, object))
      attributes.emplace_back(slot, std::move(held));
  return attributes;
}

/// Whether the exception consists only of its arguments and attributes, and was never raised.
static bool isOrdinaryError(PyObject *object) {
  auto *base = reinterpret_cast<PyTypeObject *>(PyExc_BaseException);
  if (!PyExceptionInstance_Check(object) || Py_TYPE(object)->tp_new != base->tp_new)
    return false;
  auto *error = reinterpret_cast<PyBaseExceptionObject *>(object);
  if (error->traceback || error->context || error->cause || error->notes || error->suppress_context)
    return false;
  for (PyTypeObject *type = Py_TYPE(object); type != base; type = type->tp_base) {
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(type->tp_dict, &at, &key, &item);)
      if (Py_TYPE(item) == &PyMemberDescr_Type) // of a slot, or of a member that C fills
        return false;
  }
  return true;
}

/// Whether it is an OrderedDict that has attributes, as a module's state has.
static bool isDictWithAttributes(PyObject *object) {
  PyObject *dict = PyODict_CheckExact(object) ? interpreter::instanceDict(object) : nullptr;
  return dict && PyDict_GET_SIZE(dict) > 0;
}

static bool isSubclassInstance(PyObject *object) {
  if (isDictWithAttributes(object))
    return true;
  PyTypeObject *base = builtinBase(Py_TYPE(object));
  return base != Py_TYPE(object) && isOrdinary(object, base) &&
         (base == &PyDict_Type || base == &PyODict_Type || base == &PyList_Type);
}

/// Whether the object is an iterator made by the function iter.
static bool isOfItems(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  return type == &PyListIter_Type || type == &PyTupleIter_Type || type == &PyRangeIter_Type;
}

/// Whether the object is an itertools.cycle that has given nothing yet, over an iterator that
/// nobody else has.
static bool isNewCycle(PyObject *object) {
  if (std::string_view(Py_TYPE(object)->tp_name) != "itertools.cycle" ||
      !interpreter::isAlone(object))
    return false;
  PyRef position = interpreter::positionOf(object);
  PyErr_Clear();
  PyObject *saved = position ? PyTuple_GET_ITEM(PyTuple_GET_ITEM(position.get(), 0), 0) : Py_None;
  return saved != Py_None && PyTuple_GET_SIZE(saved) == 0;
}

/// The arguments by which types.FunctionType makes a function like this one; null if those are not
/// enough.
static PyRef functionArguments(PyObject *object) {
  auto *made = reinterpret_cast<PyFunctionObject *>(object);
  PyObject *defaults = made->func_defaults ? made->func_defaults : Py_None;
  PyObject *closure = made->func_closure ? made->func_closure : Py_None;
  PyRef arguments = PyRef::steal(
      PyTuple_Pack(5, made->func_code, made->func_globals, made->func_name, defaults, closure));
  PyRef twin = PyRef::steal(
      arguments ? PyObject_Call((PyObject *)&PyFunction_Type, arguments.get(), nullptr) : nullptr);
  PyErr_Clear();
  auto *like = reinterpret_cast<PyFunctionObject *>(twin.get());
  auto same = [](PyObject *one, PyObject *other) {
    return one == other || (one && other && plainEqual(one, other));
  };
  bool whole = twin && !made->func_kwdefaults && !made->func_annotations &&
               (!made->func_dict || PyDict_GET_SIZE(made->func_dict) == 0) &&
               same(made->func_doc, like->func_doc) && same(made->func_module, like->func_module) &&
               same(made->func_qualname, like->func_qualname);
  return whole ? std::move(arguments) : PyRef();
}

bool Values::isKey(PyObject *object) {
  return isPlain(object) ||
         (find(object) && (Tensors::get()->isAny(object) || hashesByAddress(object) ||
                           isMemberKey(object) || isValueKey(object)));
}

/// The iterator's description of itself: the callable and the arguments that make one like it, and
/// its position; null if its kind is not known.
static PyRef partsOfIterator(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  if (type != &PyListIter_Type && type != &PyTupleIter_Type && type != &PyZip_Type &&
      type != &PyMap_Type && type != &PyEnum_Type && type != &PyRangeIter_Type &&
      !isNewCycle(object))
    return {};
  PyRef parts = PyRef::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
  PyErr_Clear();
  return parts && PyTuple_CheckExact(parts.get()) && PyTuple_GET_SIZE(parts.get()) >= 2 &&
                 PyTuple_CheckExact(PyTuple_GET_ITEM(parts.get(), 1))
             ? std::move(parts)
             : PyRef();
}

bool Values::isNewIterator(PyObject *object) {
  PyRef parts = partsOfIterator(object);
  if (!parts)
    return false;
  PyObject *first = PyTuple_GET_ITEM(parts.get(), 1);
  if (isOfItems(object)) // with the index
    return PyTuple_GET_SIZE(parts.get()) == 3 &&
           PyLong_AsSsize_t(PyTuple_GET_ITEM(parts.get(), 2)) == 0 &&
           isUsable(PyTuple_GET_ITEM(first, 0));
  if (PyTuple_GET_SIZE(parts.get()) != 2 && !isNewCycle(object)) // a strict zip
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(first); ++i)
    if (PyObject *each = PyTuple_GET_ITEM(first, i);
        isCalledForC(each) || (!isUsable(each) && !(isNewIterator(each) && enterFresh(each))))
      return false;
  return true;
}

/// The method that makes such a view.
static PyObject *methodOfView(PyObject *view) {
  PyTypeObject *type = PyODict_Check(dictOfView(view)) ? &PyODict_Type : &PyDict_Type;
  return PyDict_GetItemString(type->tp_dict, PyDictKeys_Check(view)     ? "keys"
                                             : PyDictValues_Check(view) ? "values"
                                                                        : "items");
}

bool Values::callsFor(PyObject *object, PyRef &arguments, PyRef &keywords) {
  PyTypeObject *type = Py_TYPE(object);
  PyRef first, second; // the second may be missing
  keywords = PyRef::steal(PyDict_New());
  if (isNewIterator(object)) {
    PyRef parts = partsOfIterator(object);
    arguments = PyRef::borrow(PyTuple_GET_ITEM(parts.get(), 1));
    return keywords && enterFresh(keywords.get());
  }
  if (PyAnySet_CheckExact(object)) {
    PyRef items = keysOf(object);
    for (Py_ssize_t i = 0; items && i < PyTuple_GET_SIZE(items.get()); ++i)
      if (!isKey(PyTuple_GET_ITEM(items.get(), i)))
        return fail("uses a set whose items are not plain");
    first = std::move(items);
  } else if (isDeque(object) && !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
    first = PyRef::steal(PySequence_Tuple(object));
    second = PyRef::steal(PyObject_GetAttrString(object, "maxlen"));
  } else if (isDefaultDict(object)) {
    first = PyRef::steal(PyObject_GetAttrString(object, "default_factory"));
    second = PyRef::steal(PyDict_New());
    if (!second || PyDict_Update(second.get(), object) < 0 || !enterFresh(second.get()))
      return false;
  } else if (PyObject *dict = dictOfView(object)) {
    arguments = PyRef::steal(PyTuple_Pack(1, dict));
    return arguments && keywords && enterFresh(keywords.get());
  } else if (PyCell_Check(object)) {
    PyObject *content = PyCell_GET(object);
    arguments = PyRef::steal(content ? PyTuple_Pack(1, content) : PyTuple_New(0));
    return arguments && keywords && enterFresh(keywords.get());
  } else if (PyFunction_Check(object)) {
    arguments = functionArguments(object);
    PyObject *globals = reinterpret_cast<PyFunctionObject *>(object)->func_globals;
    return arguments && keywords && pin(globals, "globals()") && enterFresh(keywords.get());
  } else if (PyGen_CheckExact(object)) {
    arguments = PyRef::steal(interpreter::callOfGenerator(object));
    PyObject *function = arguments ? PyTuple_GET_ITEM(arguments.get(), 0) : nullptr;
    return function && (find(function) || pin(function, "the function of a generator")) &&
           enterFresh(PyTuple_GET_ITEM(arguments.get(), 2)) && keywords &&
           enterFresh(keywords.get());
  } else if (kindOf((PyObject *)type) == Kind::Namespace) {
    arguments = PyRef::steal(PyTuple_New(0));
    keywords = PyRef::steal(PyDict_Copy(interpreter::instanceDict(object)));
    return arguments && keywords && enterFresh(keywords.get());
  } else if (kindOf((PyObject *)type) == Kind::Partial) {
    PyRef given = PyRef::steal(PyObject_GetAttrString(object, "args"));
    PyRef function = PyRef::steal(PyObject_GetAttrString(object, "func"));
    keywords = PyRef::steal(PyObject_GetAttrString(object, "keywords"));
    PyRef alone = PyRef::steal(function ? PyTuple_Pack(1, function.get()) : nullptr);
    arguments =
        PyRef::steal(alone && given ? PySequence_Concat(alone.get(), given.get()) : nullptr);
    PyObject *dict = interpreter::instanceDict(object);
    return arguments && keywords && (!dict || !PyDict_GET_SIZE(dict)) &&
           (find(keywords.get()) || enterFresh(keywords.get()));
  }
  arguments = PyRef::steal(!first    ? nullptr
                           : !second ? PyTuple_Pack(1, first.get())
                                     : PyTuple_Pack(2, first.get(), second.get()));
  PyErr_Clear();
  return arguments && keywords && enterFresh(keywords.get());
}

std::optional<Form> Values::lasting(PyObject *object) {
  const Value *value = find(object);
  bool fresh = value && value->origin == Origin::Fresh;
  bool number = isNumber(object) || (holdsNumber(object) && capture::isPlain(object));
  if (number || isPlain(object) || (value && !fresh))
    return form(object);
  if (++depth > mostDepth) {
    --depth;
    fail("keeps a value that holds itself");
    return std::nullopt;
  }
  auto all = [&](PyObject *each) { return lasting(each).has_value(); };
  bool made = true;
  PyObject *key, *item;
  if (PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(object); ++i)
      made = all(PyTuple_GET_ITEM(object, i));
  } else if (fresh && PyList_CheckExact(object)) {
    for (Py_ssize_t i = 0; made && i < PyList_GET_SIZE(object); ++i)
      made = all(PyList_GET_ITEM(object, i));
  } else if (fresh && isOrdinaryError(object)) {
    made = all(reinterpret_cast<PyBaseExceptionObject *>(object)->args);
    PyObject *dict = interpreter::instanceDict(object);
    for (Py_ssize_t at = 0; dict && made && PyDict_Next(dict, &at, &key, &item);)
      made = all(item);
  } else if (fresh && !isDictWithAttributes(object) &&
             (PyDict_CheckExact(object) || PyODict_CheckExact(object))) {
    for (Py_ssize_t at = 0; made && PyDict_Next(object, &at, &key, &item);)
      made = all(item);
  } else if (fresh && isOrdinary(object, &PyBaseObject_Type, true)) {
    for (const auto &[name, held] : attributesOf(object))
      made = made && all(held.get());
  } else if (PyRef arguments, keywords; // iterators of other kinds may advance unseen
             fresh && (isOfItems(object) || isNewCycle(object) || !isNewIterator(object)) &&
             !PyGen_CheckExact(object) && callsFor(object, arguments, keywords)) {
    made = all(arguments.get());
    for (Py_ssize_t at = 0; made && PyDict_Next(keywords.get(), &at, &key, &item);)
      made = all(item);
  } else {
    made = fail("keeps " + shown(object));
  }
  --depth;
  std::optional<Form> parts = made ? form(object) : std::nullopt;
  if (!parts || PyTuple_Check(object))
    return parts;
  Record record;
  record.arguments.push_back(std::move(*parts));
  record.outcome.kind = Outcome::Made;
  record.outcome.index = log.newResult();
  Form kept;
  kept.kind = Form::Result;
  kept.index = record.outcome.index;
  log.append(std::move(record));
  put(object, {Origin::Result, kept.index, PyRef::borrow(object), "", true});
  return kept;
}

bool Values::holdsNumber(PyObject *object) const {
  if (numbers.empty() || !PyTuple_CheckExact(object))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (PyObject *item = PyTuple_GET_ITEM(object, i); isNumber(item) || holdsNumber(item))
      return true;
  return false;
}

std::optional<Form> Values::form(PyObject *object) {
  Form form;
  auto add = [&](PyObject *part) {
    std::optional<Form> made = this->form(part);
    if (made)
      form.parts.push_back(std::move(*made));
    return made.has_value();
  };
  auto give = [&](bool made) -> std::optional<Form> {
    --depth;
    return made ? std::optional(std::move(form)) : std::nullopt;
  };
  if (++depth > mostDepth)
    return give(fail("uses a value that holds itself"));
  if (holdsOwnClass(object))
    return give(fail("lets out a class that it has made, or an instance of it"));
  if (auto found = numbers.find(object); found != numbers.end() && !found->second.fixed) {
    int input = found->second.input;
    form.kind = input < 0 ? Form::Result : Form::Register;
    form.index = input < 0 ? found->second.result : numberInputs[input].reg;
    return give(true);
  }
  if (holdsNumber(object)) { // a tuple that is plain except for the number
    form.kind = Form::Tuple;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      if (!add(PyTuple_GET_ITEM(object, i)))
        return give(false);
    return give(true);
  }
  if (isPlain(object)) {
    form.object = PyRef::borrow(object);
    return give(true);
  }
  const Value *value = find(object);
  if (value && value->origin == Origin::Result) {
    form.kind = Form::Result;
    form.index = value->index;
    return give(true);
  }
  if (value && value->origin != Origin::Fresh) {
    form.kind = value->origin == Origin::Argument ? Form::Register : Form::Constant;
    form.index = value->index;
    form.object = value->origin == Origin::Argument ? PyRef() : PyRef::borrow(object);
    return give(true);
  }
  bool made = true;
  if (PyTuple_Check(object)) {
    form.kind = Form::Tuple;
    if (!PyTuple_CheckExact(object)) { // a namedtuple
      made = isNamedResult(Py_TYPE(object)) ||
             (PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) &&
              !interpreter::instanceDict(object));
      form.object = PyRef::borrow((PyObject *)Py_TYPE(object));
    }
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(object); ++i)
      made = add(PyTuple_GET_ITEM(object, i));
    return give(made || fail("uses " + shown(object)));
  }
  if (PySlice_Check(object)) {
    auto *slice = reinterpret_cast<PySliceObject *>(object);
    form.kind = Form::Slice;
    return give(add(slice->start) && add(slice->stop) && add(slice->step));
  }
  if (value && !isDictWithAttributes(object) &&
      (PyList_CheckExact(object) || PyDict_CheckExact(object) || PyODict_CheckExact(object))) {
    for (const PyRef &each : attributes) // a replay makes these separately from the object
      if (each.get() == object)
        return give(fail("uses the __dict__ of an object that the call has made"));
    bool list = PyList_CheckExact(object);
    form.kind = list ? Form::List : Form::Dict;
    form.index = value->index;
    if (PyODict_CheckExact(object)) { // it keeps its order separately from the dict's
      form.object = PyRef::borrow((PyObject *)Py_TYPE(object));
      PyRef keys = PyRef::steal(PySequence_Tuple(object));
      for (Py_ssize_t i = 0; keys && made && i < PyTuple_GET_SIZE(keys.get()); ++i) {
        PyObject *key = PyTuple_GET_ITEM(keys.get(), i);
        made = (isKey(key) || fail("uses a dict whose keys are not plain")) && add(key) &&
               add(PyDict_GetItemWithError(object, key));
      }
      return give(made && keys);
    }
    for (Py_ssize_t i = 0; list && made && i < PyList_GET_SIZE(object); ++i)
      made = add(PyList_GET_ITEM(object, i));
    Py_ssize_t at = 0;
    PyObject *key, *item;
    while (!list && made && PyDict_Next(object, &at, &key, &item))
      made = (isKey(key) || fail("uses a dict whose keys are not plain")) && add(key) && add(item);
    return give(made);
  }
  if (value && isSubclassInstance(object)) {
    form.kind = Form::Subclass;
    form.object = PyRef::borrow((PyObject *)Py_TYPE(object));
    form.index = value->index;
    Form items, attributes;
    items.kind = PyList_Check(object) ? Form::List : Form::Dict;
    attributes.kind = Form::Dict;
    auto addTo = [&](Form &to, PyObject *part) {
      std::optional<Form> each = this->form(part);
      if (each)
        to.parts.push_back(std::move(*each));
      return each.has_value();
    };
    for (Py_ssize_t i = 0; PyList_Check(object) && made && i < PyList_GET_SIZE(object); ++i)
      made = addTo(items, PyList_GET_ITEM(object, i));
    PyRef keys = keysOf(object);
    for (Py_ssize_t i = 0; keys && made && i < PyTuple_GET_SIZE(keys.get()); ++i) {
      PyObject *each = PyTuple_GET_ITEM(keys.get(), i);
      made = (isPlain(each) || fail("uses a dict whose keys are not plain")) &&
             addTo(items, each) && addTo(items, PyDict_GetItemWithError(object, each));
    }
    PyObject *dict = interpreter::instanceDict(object), *key, *item;
    for (Py_ssize_t at = 0; dict && made && PyDict_Next(dict, &at, &key, &item);)
      made = (isPlain(key) || fail("uses an object with odd attributes")) &&
             addTo(attributes, key) && addTo(attributes, item);
    form.parts.push_back(std::move(items));
    form.parts.push_back(std::move(attributes));
    return give(made);
  }
  if (PyRef arguments, keywords; value && callsFor(object, arguments, keywords)) {
    form.kind = Form::Called;
    form.object = PyRef::borrow(isOfItems(object)          ? operators().iter
                                : PyGen_CheckExact(object) ? operators().begin
                                : dictOfView(object)       ? methodOfView(object)
                                                           : (PyObject *)Py_TYPE(object));
    form.index = value->index;
    PyRef items = PyAnySet_Check(object) ? keysOf(object) : PyRef();
    if (!items || !isPlain(items.get()))
      return give(add(arguments.get()) && add(keywords.get()));
    // A copy of a set keeps the set's order, which a set that is filled in that order may not have.
    Form all, copied;
    copied.object = PyRef::steal(PySet_New(object));
    all.kind = Form::Tuple;
    all.parts.push_back(std::move(copied));
    form.parts.push_back(std::move(all));
    return give(form.parts[0].parts[0].object && add(keywords.get()));
  }
  if (failed())
    return give(false);
  bool error = value && isOrdinaryError(object);
  if (error || (value && isOrdinary(object, &PyBaseObject_Type, true))) {
    form.kind = Form::Instance;
    form.object = PyRef::borrow((PyObject *)Py_TYPE(object));
    form.index = value->index;
    if (error)
      made = add(reinterpret_cast<PyBaseExceptionObject *>(object)->args);
    for (const auto &[name, held] : attributesOf(object))
      made = made && (isPlain(name) || fail("uses an object with odd attributes")) && add(name) &&
             add(held.get());
    return give(made);
  }
  return give(fail("uses " + shown(object) + (value ? "" : " of unknown origin")));
}

bool Values::isOperand(PyObject *object) {
  if (capture::isPlain(object) || Tensors::get()->isAny(object) || isArray(object) ||
      isTorchGenerator(object) || (isValue(object) && isExternal(object)) || depth > mostDepth)
    return true;
  ++depth;
  bool operand = (PyTuple_Check(object) || PyList_CheckExact(object)) && readWhole(object);
  for (Py_ssize_t i = 0; operand && i < Py_SIZE(object); ++i)
    operand =
        isOperand(PyTuple_Check(object) ? PyTuple_GET_ITEM(object, i) : PyList_GET_ITEM(object, i));
  if (PySlice_Check(object)) {
    auto *slice = reinterpret_cast<PySliceObject *>(object);
    operand = isOperand(slice->start) && isOperand(slice->stop) && isOperand(slice->step);
  }
  --depth;
  return operand;
}

bool Values::leavesGeneratorOpen() const {
  for (const auto &[object, value] : entered) {
    if (value.origin != Origin::Fresh ||
        (value.weak && PyWeakref_GetObject(value.holder.get()) != object))
      continue;
    if (PyGen_CheckExact(object) && interpreter::isSuspended(object) &&
        !interpreter::closesQuietly(object))
      return true;
  }
  return false;
}

/// `key` is null for any key.
bool Values::hasSet(PyObject *dict, PyObject *key) const {
  for (const auto &[each, name] : set)
    if (each.get() == dict && (!key || plainEqual(name.get(), key)))
      return true;
  return false;
}

} // namespace weft::capture
