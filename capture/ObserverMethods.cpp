// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of methods in C of containers.
#include "capture/Observer.h"
#include "capture/Plain.h"

namespace weft::capture {

bool Observer::callMethod(Frame &frame, Kind kind, PyObject *callable, Arguments arguments,
                          PyObject *names) {
  std::string what = nameOf(callable);
  PyObject *self = arguments.empty() ? nullptr : arguments[0];
  if (!self)
    return values.fail(what + " of nothing");
  if (isPlain(self)) // a tuple or text
    return expect(frame, Then::Plain, false, what);
  // This is the method in C, even if a class in Python overrides it.
  bool exact = PyList_Check(self) || PyDict_Check(self) || PyTuple_Check(self) ||
               PyAnySet_Check(self) || isDeque(self) || values.isFresh(self);
  if (!exact)
    return values.fail(what + " of " + shown(self));
  if (kind == Kind::Get) {
    if (!PyDict_Check(self) || arguments.size() < 2 || !isLookupKey(arguments[1]))
      return values.fail(what + " of " + shown(self));
    if (what.ends_with("__getitem__") && !entryOf(self, arguments[1]) &&
        !isDict(self)) // __missing__ may store something there
      return values.fail("an item that " + shown(self) + " lacks");
    values.expectNumber(!nodes && !what.ends_with("__contains__"));
    bool read = values.readKey(self, arguments[1]);
    values.expectNumber(false);
    return read && carries(frame) && expect(frame, Then::Usable, !isPlain(arguments[1]), what);
  }
  if (kind == Kind::Reads) {
    if (PyAnySet_Check(self)) // methods with other sets hash and compare items
      for (PyObject *each : arguments)
        if (!isPlainWithin(each))
          return values.fail(what + " of " + shown(each));
    // These methods compare items, and comparing tensors reads their data.
    bool compares = what.ends_with("index") || what.ends_with("count");
    for (PyObject *each : arguments)
      if (compares && !isPlainWithin(each))
        return values.fail(what + " of " + shown(each));
    // These give a copy, an iterator or a view of a known container.
    for (const char *each : {"copy", "__iter__", "keys", "values", "items"})
      frame.pending.carries |= what.ends_with(each);
    return values.readWhole(self) && expect(frame, Then::Fresh, true, what);
  }
  if (what == "dict.setdefault" && PyDict_CheckExact(self) && values.isExternal(self) && !names &&
      arguments.size() > 1 && isPlain(arguments[1]) && !values.hasChanged(self))
    return values.readKey(self, arguments[1]) &&
           (PyDict_GetItemWithError(self, arguments[1]) ||
            setsEntry(frame, self, nullptr, arguments[1],
                      arguments.size() > 2 ? arguments[2] : Py_None)) &&
           expect(frame, Then::Usable, false, what);
  // Numbers are stored in the container, unless they are indices, keys or counts. The container's
  // contents are not looked at.
  if (!what.ends_with("append") && !what.ends_with("appendleft"))
    fixTaken(frame, arguments.subspan(1));
  frame.pending.carries = true;
  bool many = what.ends_with("extend") || what.ends_with("update") || what.ends_with("__init__");
  bool keyed = (PyDict_Check(self) || PyAnySet_CheckExact(self)) && !many;
  if (keyed && arguments.size() > 1 && !isKey(self, arguments[1]))
    return values.fail(what + " of a key that is not plain");
  Arguments given =
      arguments.subspan(1, arguments.size() - 1 - (names ? PyTuple_GET_SIZE(names) : 0));
  for (PyObject *each : given)
    if (many && !(PyDict_Check(self) ? readPairs(frame, each) : readIterable(frame, each)))
      return false;
  if (what.ends_with(".remove") && !PyAnySet_Check(self)) // removal compares items
    for (PyObject *each : arguments)
      if (!isPlainWithin(each))
        return values.fail(what + " of " + shown(each));
  if (!values.isFresh(self)) {
    bool ownType = PyList_CheckExact(self) || isDict(self) || PyAnySet_CheckExact(self) ||
                   (isDeque(self) && !PyType_HasFeature(Py_TYPE(self), Py_TPFLAGS_HEAPTYPE)) ||
                   (isCounter(self) && what == "dict.update");
    if (!ownType)
      return values.fail(what + " changes " + shown(self) + " from outside");
    PyObject *items = callable == operators().listExtend && given.size() == 1 ? given[0] : nullptr;
    if (items && values.isExternal(self) && values.isFresh(items) &&
        (isMap(items) || (PyGen_CheckExact(items) && !interpreter::isSuspended(items))))
      return extends(frame, self);
    PyRef listed = !items                 ? PyRef()
                   : PyRange_Check(items) ? PyRef::steal(PySequence_List(items))
                                          : itemsOf(items);
    if (listed) {
      PyObject *all[] = {self, listed.get()};
      return values.enterFresh(listed.get()) &&
             changes(frame, callable, all, nullptr, kind == Kind::Changes);
    }
    if (many)
      for (PyObject *each : given)
        if (!PyList_CheckExact(each) && !PyTuple_CheckExact(each) && !PyDict_CheckExact(each))
          return values.fail(what + " of " + shown(each));
    return changes(frame, callable, arguments, names, kind == Kind::Changes);
  }
  return expect(frame, Then::Usable, true, what);
}

} // namespace weft::capture
