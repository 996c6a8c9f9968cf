// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of declared functions, by their kind.
#include "capture/Arrays.h"
#include "capture/Observer.h"
#include "capture/Plain.h"

#include <algorithm>
#include <cmath>

namespace weft::capture {

static bool holdsNan(PyObject *object) {
  if (PyFloat_CheckExact(object))
    return std::isnan(PyFloat_AS_DOUBLE(object));
  bool found = PyComplex_CheckExact(object);
  for (Py_ssize_t i = 0; PyTuple_CheckExact(object) && !found && i < PyTuple_GET_SIZE(object); ++i)
    found = holdsNan(PyTuple_GET_ITEM(object, i));
  return found;
}

bool Observer::callDeclared(Frame &frame, Kind kind, PyObject *callable, Arguments arguments,
                            PyObject *names) {
  std::string &what = declaredNames[callable];
  if (what.empty())
    what = nameOf(callable);
  auto argument = [&](size_t i) { return i < arguments.size() ? arguments[i] : nullptr; };
  auto positional = [&] {
    return arguments.first(arguments.size() - (names ? PyTuple_GET_SIZE(names) : 0));
  };
  auto allPlain = [&] {
    for (PyObject *each : arguments)
      if (!isPlainWithin(each))
        return values.fail(what + " of " + shown(each));
    return true;
  };
  bool texts = kind == Kind::Pure && (callable == (PyObject *)&PyUnicode_Type ||
                                      callable == operators().format || what == "str.format");
  if (!texts && kind != Kind::Prints && kind != Kind::Logs && callable != operators().listAppend)
    fixTexts(arguments);
  bool ofArray = positional().size() == 1 && isArray(arguments[0]);
  switch (kind) {
  case Kind::Pure:
    if (texts && !nodes &&
        std::ranges::any_of(arguments, [&](PyObject *each) { return values.mayDiffer(each); }) &&
        std::ranges::all_of(arguments, [](PyObject *each) { return capture::isPlain(each); }))
      return makesText(frame, callable, arguments, names);
    if (ofArray && !names && PyType_Check(callable))
      return operation(frame, callable, arguments, names); // int(x), float(x)
    if (arguments.size() == 1 && isTensor(arguments[0]) && PyType_Check(callable) && !names)
      return operation(frame, callable, arguments, names); // int(x), float(x), bool(x)
    if (!names && takeNumbers(arguments) &&                // functions of math
        (!PyType_Check(callable) ||
         (arguments.size() == 1 &&
          (callable == (PyObject *)&PyFloat_Type || callable == (PyObject *)&PyLong_Type))))
      return operation(frame, callable, arguments, names);
    if (callable == (PyObject *)&PyBool_Type && arguments.size() == 1)
      return truth(frame, arguments[0]) && expect(frame, Then::Plain, true, what);
    if (bool joins = what == "str.join" && arguments.size() == 2 && isPlain(arguments[0]);
        joins && values.isFresh(arguments[1])) {
      bool python = PyGen_CheckExact(arguments[1]) || isMap(arguments[1]);
      frame.pending.yields = python ? Pending::Yields::Plain : frame.pending.yields;
      if (python || isPlainMap(arguments[1]))
        return expect(frame, Then::Plain, python, what);
    }
    if (PyObject *teller =
            arguments.size() != 1 || names || PyType_Check(arguments[0]) ? nullptr
            : callable == (PyObject *)&PyUnicode_Type                    ? tellerOf(arguments[0])
            : what == "repr"                        ? methodOf(arguments[0], "__repr__")
            : callable == (PyObject *)&PyFloat_Type ? methodOf(arguments[0], "__float__")
            : callable == (PyObject *)&PyLong_Type  ? methodOf(arguments[0], "__int__")
            : what == "hash"                        ? methodOf(arguments[0], "__hash__")
                                                    : nullptr)
      return carries(frame) && asksMethod(frame, teller, what);
    if ((callable == (PyObject *)&PyUnicode_Type || what == "repr") && arguments.size() == 1 &&
        tellsArguments(arguments[0]))
      return expect(frame, Then::Plain, false, what);
    if (callable == (PyObject *)&PySlice_Type && !names)
      return expect(frame, Then::Usable, false, what);
    if (what.starts_with("Pattern.sub") && arguments.size() > 1 && !names &&
        PyFunction_Check(arguments[1]) && isPlain(arguments[0]) &&
        std::ranges::all_of(arguments.subspan(2), [this](PyObject *each) { return isPlain(each); }))
      return callsForMatches(frame, what);
    if (what == "hash" && arguments.size() == 1 && holdsNan(arguments[0]))
      return values.fail("the hash of NaN, which is that of its address");
    for (PyObject *each : arguments)
      guardNames(each);
    // The code of a function in Python is known, and so is re's, but not that of classes.
    frame.pending.foreign = PyFunction_Check(callable) || what.starts_with("Pattern.");
    if (PyFunction_Check(callable) && !enterFunction(callable))
      return false;
    for (PyObject *each : arguments)
      if (frame.pending.foreign && PyType_Check(each))
        return values.fail(what + " of " + shown(each));
    if (what == "_compile" && arguments.size() == 2) { // of re, which may print what it compiles
      static constexpr int tells = 128 | 1;            // re.DEBUG, re.TEMPLATE
      PyObject *flags = arguments[1];
      bool member = isEnumMember(flags) && isMemberKey(flags) && values.isUsable(flags);
      return (isPlain(arguments[0]) && (member || isPlain(flags)) && PyLong_Check(flags) &&
              (PyLong_AsLong(flags) & tells) == 0 && expect(frame, Then::Made, true, what)) ||
             values.fail("compiles a regular expression of " + shown(arguments[0]));
    }
    return allPlain() && expect(frame, Then::Made, frame.pending.foreign, what);
  case Kind::Sort:
    return sorts(frame, callable, arguments, names);
  case Kind::Any:
    if (ofArray && !names)
      return callArrays(frame, callable, arguments, names);
    if (arguments.size() == 1 && isPlainMap(arguments[0]))
      return expect(frame, Then::Plain, false, what);
    if (!names && foldsByLoop(frame, callable, arguments, names))
      return true;
    if (values.failed())
      return false;
    if (arguments.size() == 1 && values.isFresh(arguments[0]) &&
        (PyGen_CheckExact(arguments[0]) || isMap(arguments[0]))) {
      frame.pending.yields = Pending::Yields::Plain;
      return expect(frame, Then::Plain, true, what);
    }
    return allPlain() && expect(frame, Then::Plain, false, what);
  case Kind::Partial:
    return carries(frame) && expect(frame, Then::Fresh, false, what);
  case Kind::Types:
    if (what == "callable" && !arguments.empty())
      guardMethods(arguments[0], {"__call__"});
    return carries(frame) && expect(frame, Then::Plain, false, what);
  case Kind::Builds:
    // Other arguments are keys, counts and steps.
    frame.pending.carries =
        callable == (PyObject *)&PyList_Type || callable == (PyObject *)&PyTuple_Type;
    // The two-argument form compares a function's results.
    if (what == "groupby")
      return groups(frame, arguments, names);
    if (what == "_group_tensors_by_device_and_dtype") { // their own lists, of the same tensors
      for (PyObject *each : arguments)
        for (Py_ssize_t i = 0; PyList_CheckExact(each) && i < PyList_GET_SIZE(each); ++i)
          if (!values.readWhole(each) || !values.readWhole(PyList_GET_ITEM(each, i)))
            return false;
      return expect(frame, Then::Made, false, what);
    }
    if (what == "tee")
      return !names && !arguments.empty() && readIterable(frame, arguments[0]) &&
             expect(frame, Then::Made, true, what);
    if (what == "iter" && arguments.size() > 1)
      return values.fail("iterates up to a sentinel");
    if (ofArray && !names &&
        (callable == (PyObject *)&PyList_Type || callable == (PyObject *)&PyTuple_Type))
      return callArrays(frame, callable, arguments, names);
    if (Py_TYPE(callable) == &PyClassMethodDescr_Type &&
        what.ends_with("from_iterable")) { // chain.from_iterable
      PyObject *all = arguments.size() == 2 ? arguments[1] : nullptr;
      if (!all || !(PyTuple_CheckExact(all) || PyList_CheckExact(all)) || !readIterable(frame, all))
        return values.fail(what + " of " + shown(argument(1)));
      for (Py_ssize_t i = 0; i < Py_SIZE(all); ++i)
        if (!readIterable(frame, itemAt(all, i).get()))
          return false;
      return expect(frame, Then::Fresh, true, what);
    }
    if (Py_TYPE(callable) == &PyClassMethodDescr_Type) // dict.fromkeys
      return (arguments.size() > 1 && arguments[0] == (PyObject *)&PyDict_Type &&
              readIterable(frame, arguments[1]) && expect(frame, Then::Fresh, true, what)) ||
             values.fail(what + " of " + shown(argument(0)));
    if (PyType_Check(callable) && PyType_IsSubtype((PyTypeObject *)callable, &PyDict_Type)) {
      for (PyObject *each : positional())
        if (!isFactoryOf(callable, each, argument(0)) && !readPairs(frame, each))
          return false;
      return expect(frame, Then::Fresh, true, what);
    }
    if (what == "compress" && !isPlainWithin(argument(1))) // its selectors are tested for truth
      return values.fail(what + " by " + shown(argument(1)));
    for (PyObject *each : arguments)
      if (!readIterable(frame, each) || (PyDict_Check(each) && !values.readWhole(each)))
        return false;
    frame.pending.plainMaps =
        std::ranges::all_of(arguments, [this](PyObject *each) { return hasPlainItems(each); });
    return expect(frame, Then::Fresh, true, what);
  case Kind::Map:
  case Kind::Filter:
    return callMap(frame, kind, callable, arguments);
  case Kind::Reduce:
    return callReduce(frame, callable, arguments, names);
  case Kind::Sums:
    return accumulates(frame, arguments, names, what);
  case Kind::Getter:
    return allPlain() && expect(frame, Then::Fresh, false, what);
  case Kind::Signature:
    return signature(frame, arguments, names);
  case Kind::Orders:
    return orders(frame, arguments, names, what);
  case Kind::Bound:
    return !names && allUsable(arguments, what) && carries(frame) &&
           expect(frame, Then::Usable, false, what);
  case Kind::OwnAttribute:
    return arguments.size() == 2 && carries(frame) &&
           ownAttribute(frame, arguments[0], arguments[1]);
  case Kind::ContextGet:
  case Kind::ContextSet:
  case Kind::ContextReset:
    return carries(frame) && callContext(frame, kind, arguments, names);
  case Kind::Reads:
  case Kind::Changes:
  case Kind::Fills:
  case Kind::Get:
    return callMethod(frame, kind, callable, arguments, names);
  case Kind::Prints:
    return prints(frame, callable, arguments, names);
  case Kind::Warns:
    return warns(frame, arguments, names);
  case Kind::Logs:
    return logs(frame, arguments, names);
  case Kind::Setting:
    if (arguments.empty() && std::ranges::find(settings, callable) != settings.end())
      return expect(frame, Then::Plain, false, what);
    if (arguments.empty())
      settings.push_back(callable);
    frame.pending.nested = frame.pending.foreign = PyFunction_Check(callable);
    return operation(frame, callable, arguments, names);
  case Kind::Autocast:
    settings.clear();
    if (nodes || !operation(frame, callable, arguments, names))
      return values.fail("an autograd.Function with gradients sets what is cast");
    return std::exchange(casts, true) || keepState(callable, nullptr);
  case Kind::State:
    settings.clear();
    return operation(frame, callable, arguments, names);
  case Kind::Operation:
    if (PyType_Check(callable) && PyType_HasFeature((PyTypeObject *)callable, Py_TPFLAGS_HEAPTYPE))
      for (const char *each : {"__new__", "__init__"}) {
        PyRef name = PyRef::steal(PyUnicode_InternFromString(each));
        auto *type = (PyTypeObject *)callable;
        guards.typeItem(type, name.get(), interpreter::typeLookup(type, name.get()));
      }
    return operation(frame, callable, arguments, names);
  case Kind::InPlace:
    if (callable == operators().setItem && arguments.size() == 3 && !names &&
        !isTensor(arguments[0]))
      return storeSubscript(frame, arguments[0], arguments[1], arguments[2]);
    return inPlace(frame, callable, arguments, names);
  case Kind::Metadata:
    for (PyObject *each : arguments)
      if (!isPlain(each) && !isTensor(each))
        return values.fail(what + " of " + shown(each));
    noteMetadata(what);
    for (PyObject *each : arguments)
      if (values.isDataSized(each))
        return operation(frame, callable, arguments, names);
    return expect(frame, Then::Plain, false, what);
  case Kind::Statistics:
    if (names || arguments.size() < 6)
      return values.fail(what + " with arguments by name");
    if (!operation(frame, callable, arguments, names))
      return false;
    for (size_t i : {3, 4})
      if (arguments[5] != Py_False && arguments[i] != Py_None && !writes(frame, arguments[i]))
        return false;
    return true;
  case Kind::Referent: {
    // The referent lives as long as the program, which holds it for another reason.
    PyObject *referent = arguments.size() == 1 ? PyWeakref_GetObject(arguments[0]) : Py_None;
    return (referent != Py_None && values.find(referent) && values.fixIdentity(arguments[0]) &&
            expect(frame, Then::Usable, false, what)) ||
           values.fail("asks a weak reference");
  }
  case Kind::Asked:
    if (callable == operators().getLogger) {
      PyRef found = allPlain() && !names && arguments.size() <= 1
                        ? PyRef::steal(PyObject_Vectorcall(callable, arguments.data(),
                                                           arguments.size(), nullptr))
                        : PyRef();
      if (!found || !enterFunction(callable) || !values.pin(found.get(), what))
        return values.fail(what + " in a way that is not observed");
    }
    return asks(frame, callable, arguments, names);
  case Kind::IsInstance:
    frame.pending.carries = true;
    // The method of type itself.
    if (arguments.size() == 2 && Py_TYPE(callable) == &PyMethodDescr_Type)
      return isInstance(frame, arguments[1], arguments[0]) &&
             expect(frame, Then::Plain, false, what);
    return arguments.size() == 2 && isInstance(frame, arguments[0], arguments[1]);
  case Kind::GetAttribute:
  case Kind::HasAttribute: {
    if (arguments.size() < 2 || !PyUnicode_CheckExact(arguments[1]))
      return values.fail(what + " of a name that is not text");
    PyRef name = PyRef::borrow(arguments[1]);
    PyObject *interned = name.release();
    PyUnicode_InternInPlace(&interned);
    name = PyRef::steal(interned);
    frame.pending.carries = true;
    values.expectNumber(!nodes && kind == Kind::GetAttribute);
    bool read = attribute(frame, arguments[0], name.get());
    values.expectNumber(false);
    if (kind == Kind::HasAttribute && frame.pending.then != Then::Append)
      frame.pending.then = Then::Plain;
    return read && (kind == Kind::GetAttribute || frame.pending.then == Then::Plain ||
                    values.fail("hasattr of a tensor"));
  }
  case Kind::Attributes: {
    static PyObject *const dict = PyUnicode_InternFromString("__dict__");
    return (arguments.size() == 1 && !names && carries(frame) &&
            attribute(frame, arguments[0], dict)) ||
           values.fail(what + " of the frame");
  }
  case Kind::SetAttribute:
    frame.pending.carries = true;
    if (arguments.size() < 2 || !PyUnicode_CheckExact(arguments[1]))
      return values.fail(what + " of a name that is not text");
    if (PyCFunction_Check(callable))
      return storeAttribute(frame, arguments[0], arguments[1], argument(2));
    return storeOwn(frame, arguments[0], arguments[1], argument(2));
  case Kind::Length: {
    PyObject *object = argument(0);
    if (object && isArray(object))
      return expect(frame, Then::Plain, false, what);
    if (object && PyType_Check(object))
      return (answersInClass(object, "__len__") && carries(frame) &&
              expect(frame, Then::Plain, true, what)) ||
             values.fail("the length of " + shown(object));
    if (!object || isPlain(object) || PyTuple_CheckExact(object))
      return true;
    if (isMovingHistory(object))
      return asksHistory(frame, callable, arguments);
    if (!lengthOf(frame, object, "__len__"))
      return values.fail("the length of " + shown(object));
    // The arguments are handed on; a length from a function in Python is looked at.
    frame.pending.carries = true;
    return expect(frame, Then::Plain, frame.pending.python, what);
  }
  case Kind::Type:
    return arguments.size() == 1 ? carries(frame) && expect(frame, Then::Plain, false, what)
                                 : callType(frame, arguments, names);
  case Kind::BuildsClass:
    return buildsClass(frame, arguments, names);
  case Kind::GeneratesClass:
    return generatesClass(frame, callable, arguments);
  case Kind::Super: {
    std::span<PyObject *const> locals = interpreter::locals(frame.frame);
    PyObject *localNames = interpreter::code(frame.frame)->co_localsplusnames;
    for (size_t i = 0; arguments.empty() && i < locals.size(); ++i)
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(localNames, static_cast<Py_ssize_t>(i)),
                                           "__class__") == 0)
        if (!values.readCell(locals[i], "__class__"))
          return false;
    return carries(frame) && expect(frame, Then::Fresh, false, what);
  }
  case Kind::Next:
    frame.pending.carries = true;
    if (arguments.size() > 2 || arguments.empty())
      return values.fail(what + " of nothing");
    return step(frame, arguments[0]) &&
           (frame.pending.then == Then::Stepped || expect(frame, Then::Usable, true, what));
  case Kind::Fold:
    if (ofArray && !names)
      return callArrays(frame, callable, arguments, names);
    return fold(frame, callable, arguments, names);
  case Kind::NewObject: {
    PyObject *type = argument(0);
    if (!type || !PyType_Check(type))
      return values.fail(what + " of " + shown(type));
    frame.pending.type = (PyTypeObject *)type;
    return carries(frame) && expect(frame, Then::Instance, false, what);
  }
  case Kind::NewTuple: {
    PyObject *items = argument(1);
    bool map = items && values.isFresh(items) && Py_TYPE(items) == &PyMap_Type;
    bool list = items && (PyTuple_CheckExact(items) || PyList_CheckExact(items));
    return (arguments.size() == 2 && (map || (list && values.readWhole(items))) && carries(frame) &&
            expect(frame, Then::Fresh, map, what)) ||
           values.fail(what + " of " + shown(items));
  }
  case Kind::MakeInstance:
    return (!arguments.empty() && PyType_Check(arguments[0]) &&
            callClass(frame, (PyTypeObject *)arguments[0], arguments.subspan(1), names, true)) ||
           values.fail(what + " of " + shown(argument(0)));
  case Kind::Namespace:
    return positional().empty() && carries(frame) && expect(frame, Then::Fresh, false, what);
  case Kind::Counts:
    if (arguments.size() == 2 && isCounter(arguments[0]) && values.isExternal(arguments[0]) &&
        isPlainWithin(arguments[1]))
      return changes(frame, callable, arguments, nullptr, false);
    return (arguments.size() == 2 && PyDict_Check(arguments[0]) && values.isFresh(arguments[0]) &&
            isPlainWithin(arguments[1]) && expect(frame, Then::Plain, false, what)) ||
           values.fail(what + " of " + shown(argument(1)));
  case Kind::Arrays:
    return callArrays(frame, callable, arguments, names);
  case Kind::ArrayWrites:
    return !arguments.empty() && isArray(arguments[0]) && writesArray(arguments[0]) &&
           callArrays(frame, callable, arguments, names) && !(frame.pending.pure = false);
  case Kind::Draws:
    return draws(frame, callable, arguments, names);
  case Kind::Address: {
    // A set or dict identifies a tensor by its hash.
    bool known = interpreter::function(frame.frame) == operators().tensorHash ||
                 (isCopying(frame) && arguments.size() == 1 && comparesAddress(arguments[0])) ||
                 (arguments.size() == 1 && hasKnownAddress(arguments[0]));
    return (known && expect(frame, Then::Plain, false, what)) || values.fail("asks for an address");
  }
  case Kind::Backward:
    return goesBackward(frame, arguments, names);
  case Kind::RequiresGradient:
    return requiresGradient(frame, callable, arguments, names);
  case Kind::Seeds:
    return seeds(frame, callable, arguments, names);
  case Kind::Seeded:
    if (arguments.size() != 1 || names || !PyLong_CheckExact(arguments[0]) ||
        !operation(frame, callable, arguments, names))
      return values.fail(what + " without a seed");
    return frame.pending.nested = frame.pending.foreign = true;
  case Kind::Filters:
    return filtersWarnings(frame, callable, arguments, names);
  case Kind::Compares:
    return comparesBy(frame, arguments);
  case Kind::Locals:
    return arguments.empty() && windows.empty() && readsVariables(frame) && carries(frame) &&
           expect(frame, Then::Fresh, false, what);
  case Kind::Ignored:
    frame.pending.foreign = true;
    return expect(frame, Then::Plain, true, what);
  case Kind::Reduces:
    return reduces(frame, arguments, names);
  case Kind::Same:
    return (arguments.size() == 1 && (!isTensor(arguments[0]) || TensorFacts::of(arguments[0])) &&
            carries(frame) && expect(frame, Then::Usable, false, what)) ||
           values.fail(what);
  case Kind::ApplyFunction:
  case Kind::None:
  case Kind::Names:
    break;
  }
  return values.fail("calls " + what + ", which is not declared");
}

} // namespace weft::capture
