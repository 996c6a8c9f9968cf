// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Iterators. One that the call makes gives what it was made of. Of many from outside the position
// is known (Iterators.h): the items that the call takes are inputs of the program, which are read
// ahead of it, and that the iterator goes on is an effect.
#include "capture/Declared.h"
#include "capture/Iterators.h"
#include "capture/Observer.h"
#include "capture/Plain.h"

namespace weft::capture {

PyObject *advance(PyObject *, PyObject *iterator) {
  if (!PyIter_Check(iterator))
    return PyErr_Format(PyExc_TypeError, "expected an iterator");
  PyRef item = PyRef::steal(PyIter_Next(iterator));
  return !item && PyErr_Occurred() ? nullptr : Py_NewRef(Py_None);
}

PyObject *positionOf(PyObject *, PyObject *iterator) {
  return interpreter::positionOf(iterator).release();
}

PyObject *setPosition(PyObject *, PyObject *args) {
  PyObject *iterator, *position;
  if (!PyArg_ParseTuple(args, "OO", &iterator, &position) ||
      !interpreter::setPosition(iterator, position))
    return nullptr;
  Py_RETURN_NONE;
}

PyObject *positioned(PyObject *, PyObject *iterator) {
  return PyBool_FromLong(interpreter::hasPosition(iterator));
}

// Methods of Values.

Py_ssize_t Values::taken(PyObject *iterator) const {
  auto found = advanced.find(iterator);
  return found == advanced.end() ? 0 : found->second;
}

bool Values::readNext(PyObject *iterator) {
  Value held = *find(iterator); // entering values moves the others in memory
  Owner at = owner(iterator, held);
  Py_ssize_t number = advanced[iterator]++;
  std::vector<PyObject *> sources = interpreter::sourcesOf(iterator);
  for (PyObject *each : sources)
    if (each && PyList_Check(each) && (hasChanged(each) || hasSet(each, nullptr)))
      return fail("steps an iterator over a list that it has changed");
  for (size_t i = 0; number == 0 && i <= sources.size(); ++i) {
    PyObject *each = i < sources.size() ? sources[i] : nullptr;
    if (each && !PyList_Check(each)) // which nobody changes
      continue;
    std::string name = "what " + held.name + " goes over";
    auto place = static_cast<Py_ssize_t>(i);
    std::optional<Expected> expected = enter(held, each, name);
    if (!expected || !settle(each, *expected, name, [&](Expected made) {
          guards.iterated(at, place, std::move(made), name);
        }))
      return false;
  }
  PyRef found = interpreter::upcoming(iterator, 0);
  PyRef key = PyRef::steal(PyLong_FromSsize_t(number));
  std::string name = "item " + std::to_string(number) + " that " + held.name + " gives";
  if (found && isNumberInput(found.get())) {
    Site site{Place::Upcoming, reinterpret_cast<uintptr_t>(iterator), key};
    loadNumber(site, {Place::Upcoming, at, PyRef::borrow(iterator), key, found, name});
    return true;
  }
  const Value *known = found ? find(found.get()) : nullptr;
  bool loads = held.origin == Origin::Pinned && found && isInput(found.get()) &&
               (!known || known->origin == Origin::Argument);
  std::optional<Expected> expected =
      loads ? Expected{Expected::Load, {}, guards.newRegister(found.get())}
            : enter(held, found.get(), name);
  return expected && settle(found.get(), *expected, name, [&](Expected made) {
           guards.upcoming(at, number, std::move(made), name);
         });
}

// Methods of the observer.

bool Observer::iterate(Frame &frame, PyObject *iterable) {
  if ((values.isExternal(iterable) || values.isKept(iterable)) &&
      interpreter::hasPosition(iterable))
    return expect(frame, Then::Usable, false); // an iterator is its own
  if (!readIterable(frame, iterable))
    return false;
  bool python = frame.pending.python;
  return expect(frame, Then::Fresh, python);
}

bool Observer::step(Frame &frame, PyObject *iterator) {
  frame.pending.python = true;
  if (values.isFresh(iterator)) {
    std::string_view type = Py_TYPE(iterator)->tp_name;
    if (type == "itertools.groupby" || type == "callable_iterator") // of matches
      frame.pending.then = Then::Stepped;
    return true;
  }
  if ((values.isExternal(iterator) || values.isKept(iterator)) &&
      interpreter::hasPosition(iterator))
    return takesNext(frame, iterator);
  return (values.isUsable(iterator) && !answering(iterator, "__next__")) ||
         values.fail("steps " + shown(iterator) + " from outside");
}

bool Observer::groups(Frame &frame, Arguments arguments, PyObject *names) {
  static PyObject *const byKey = Py_BuildValue("(s)", "key");
  PyObject *items = arguments.empty() || arguments.size() > 2 ? nullptr : arguments[0];
  PyObject *key = arguments.size() == 2 ? arguments[1] : Py_None;
  bool function = PyFunction_Check(key) || PyMethod_Check(key);
  bool typed = kindOf(key) == Kind::Type && items && hasPlainItems(items);
  bool compared =
      function || typed ||
      (key == Py_None ? items && hasPlainItems(items) : items && getsKeys(frame, arguments, byKey));
  if (!items || (names && arguments.size() != 2) || !compared || !readIterable(frame, items))
    return values.fail("groups " + shown(items) + " by " + shown(key));
  if (function) // C compares what it gives
    tested.push_back(PyRef::borrow(PyMethod_Check(key) ? PyMethod_GET_FUNCTION(key) : key));
  return carries(frame) && expect(frame, Then::Fresh, true, "groupby");
}

bool Observer::comparesBy(Frame &frame, Arguments arguments) {
  PyObject *function = arguments.size() == 1 ? arguments[0] : nullptr;
  if (!function || !(PyFunction_Check(function) || PyMethod_Check(function)))
    return values.fail("cmp_to_key of " + shown(function));
  tested.push_back( // C compares what it gives with zero
      PyRef::borrow(PyMethod_Check(function) ? PyMethod_GET_FUNCTION(function) : function));
  return carries(frame) && expect(frame, Then::Fresh, false, "cmp_to_key");
}

bool Observer::isComparison(PyObject *object) {
  return values.isFresh(object) &&
         std::string_view(Py_TYPE(object)->tp_name) == "functools.KeyWrapper";
}

bool Observer::takesNext(Frame &frame, PyObject *iterator) {
  bool kept = values.isKept(iterator); // what it goes over was read when the call made it
  bool first = values.taken(iterator) == 0;
  if (first && !interpreter::isAlone(iterator))
    return values.fail("steps " + shown(iterator) + ", whose parts others may step as well");
  if (!effect(frame, operators().advance, Arguments(&iterator, 1), nullptr) ||
      (first && !keepState(iterator, nullptr)) || !appendRecord(frame, Py_None))
    return false;
  values.expectNumber(true);
  bool read = kept || values.readNext(iterator);
  values.expectNumber(false);
  return read && expect(frame, Then::Nothing, false);
}

} // namespace weft::capture
