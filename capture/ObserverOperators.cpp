// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators, items and iteration, for plain values, values of classes in C, tensors, and instances
// of classes in Python.
#include "capture/Arrays.h"
#include "capture/Imported.h"
#include "capture/Observer.h"
#include "capture/Plain.h"

#include <opcode.h>

namespace weft::capture {

bool Observer::truth(Frame &frame, PyObject *object) {
  if (isPlain(object))
    return true;
  if (!values.isUsable(object))
    return values.fail("tests " + shown(object) + " of unknown origin");
  if (isTensor(object)) {
    // The operation reads the value now, since the opcode does not leave its result on the stack.
    if (!operation(frame, operators().truth, Arguments(&object, 1), nullptr))
      return false;
    int isTrue = PyObject_IsTrue(object);
    if (isTrue < 0)
      return values.fail("the truth of a tensor raised an error");
    bool appended = appendRecord(frame, isTrue ? Py_True : Py_False);
    frame.pending = {};
    guardMethods(object, {"__bool__"});
    return appended;
  }
  if (isMovingHistory(object)) {
    bool appended = asksHistory(frame, operators().truth, Arguments(&object, 1)) &&
                    appendRecord(frame, Py_SIZE(object) ? Py_True : Py_False);
    frame.pending = {};
    return appended;
  }
  return truthOf(frame, object);
}

bool Observer::unary(Frame &frame, PyObject *object, PyObject *function, const char *method) {
  if (takeNumbers(Arguments(&object, 1)))
    return operation(frame, function, Arguments(&object, 1), nullptr);
  if (isPlain(object))
    return expect(frame, Then::Plain, false, "an operator");
  if (isArray(object))
    return callArrays(frame, function, Arguments(&object, 1), nullptr);
  if (isTensor(object)) {
    guardMethods(object, {method});
    return operation(frame, function, Arguments(&object, 1), nullptr) &&
           (frame.pending.slot = true);
  }
  bool number = isValue(object); // a method in C gives a plain value
  return (answersInPython(object, {method}) &&
          expect(frame, number ? Then::Usable : Then::Python, true, "an operator")) ||
         values.fail("an operator on " + shown(object));
}

static const char *const binaryMethods[][3] = {
    {"__add__", "__radd__", "__iadd__"},
    {"__and__", "__rand__", "__iand__"},
    {"__floordiv__", "__rfloordiv__", "__ifloordiv__"},
    {"__lshift__", "__rlshift__", "__ilshift__"},
    {"__matmul__", "__rmatmul__", "__imatmul__"},
    {"__mul__", "__rmul__", "__imul__"},
    {"__mod__", "__rmod__", "__imod__"},
    {"__or__", "__ror__", "__ior__"},
    {"__pow__", "__rpow__", "__ipow__"},
    {"__rshift__", "__rrshift__", "__irshift__"},
    {"__sub__", "__rsub__", "__isub__"},
    {"__truediv__", "__rtruediv__", "__itruediv__"},
    {"__xor__", "__rxor__", "__ixor__"},
};

bool Observer::binary(Frame &frame, int argument, PyObject *left, PyObject *right) {
  if (argument == NB_OR && isTypeExpression(left) && isTypeExpression(right))
    return expect(frame, Then::Fresh, false);
  if (PyObject *pair[] = {left, right}; takeNumbers(pair))
    return operation(frame, operators().binary[argument], pair, nullptr);
  if (argument % NB_INPLACE_ADD == NB_REMAINDER) // this may be the formatting of a text
    guardNames(right);
  if (PyObject *pair[] = {left, right};
      argument % NB_INPLACE_ADD == NB_REMAINDER && PyUnicode_CheckExact(left) && !nodes &&
      capture::isPlain(right) && (values.mayDiffer(right) || values.holdsNumber(right)))
    return makesText(frame, operators().binary[argument], pair, nullptr);
  if (capture::isPlain(right) && isPlain(left) && isPlain(right)) // else a number may vary
    return expect(frame, Then::Plain, false, "an operator");
  bool writes = argument >= NB_INPLACE_ADD;
  const char *const *methods = binaryMethods[argument % NB_INPLACE_ADD];
  PyObject *operands[] = {left, right};
  if (!allUsable(operands, "an operator"))
    return false;
  if (isTensor(right) && !isTensor(left) && !values.isOperand(left) &&
      answersInPython(left, {methods[0], methods[1], methods[2]}))
    return expect(frame, Then::Python, true, "an operator on " + shown(left));
  if (isTensor(left) || isTensor(right)) {
    for (PyObject *each : operands)
      guardMethods(each, {methods[0], methods[1], methods[2]});
    PyObject *function = operators().binary[argument];
    bool made = writes && isTensor(left) ? inPlace(frame, function, operands, nullptr)
                                         : operation(frame, function, operands, nullptr);
    frame.pending.slot = !writes;
    return made;
  }
  if (isArray(left) || isArray(right)) {
    if (writes && isArray(left) && !writesArray(left))
      return false;
    return callArrays(frame, operators().binary[argument], operands, nullptr);
  }
  if (argument % NB_INPLACE_ADD == NB_REMAINDER && isPlain(left) &&
      !answersInPython(right, {methods[1]})) // formatting uses all that the right operand holds
    return (isPlainWithin(right) && expect(frame, Then::Plain, false, "formatting")) ||
           values.fail("formats " + shown(right));
  bool dicts = isDict(left) && isDict(right);
  auto isSet = [](PyObject *each) {
    return PyAnySet_CheckExact(each) || PyDictViewSet_Check(each);
  };
  bool sets = isSet(left) && isSet(right) && isPlainWithin(left) && isPlainWithin(right);
  if ((dicts || sets) && (!writes || values.isFresh(left)))
    return values.readWhole(left) && values.readWhole(right) && expect(frame, Then::Fresh, false);
  bool list = PyList_CheckExact(left) || PyList_CheckExact(right);
  bool tuple = PyTuple_CheckExact(left) || PyTuple_CheckExact(right);
  if (list || tuple) {
    for (PyObject *each : operands)
      if (answersInPython(each, {methods[0], methods[1], methods[2]}))
        return expect(frame, Then::Python, true, "an operator on " + shown(each));
    if (argument == NB_INPLACE_ADD && PyList_CheckExact(left) && values.isFresh(left))
      return readIterable(frame, right); // it is left's extend, and gives left
    for (PyObject *each : operands)
      if (!isPlain(each) && !PyList_CheckExact(each) && !PyTuple_CheckExact(each))
        return values.fail("an operator on " + shown(each));
    if (writes && PyList_CheckExact(left) && !values.isFresh(left)) {
      PyObject *arguments[] = {left, right};
      return values.readWhole(right) &&
             changes(frame, operators().binary[argument], arguments, nullptr, false);
    }
    return values.readWhole(left) && values.readWhole(right) && expect(frame, Then::Fresh, false);
  }
  bool numbers = true;
  for (PyObject *each : operands) {
    if (!isPlain(each) && !answersInPython(each, {methods[0], methods[1], methods[2]}))
      return values.fail("an operator on " + shown(each));
    numbers &= isNumberLike(each);
  }
  return expect(frame, numbers ? Then::Usable : Then::Python, true,
                "an operator on " + shown(left));
}

bool Observer::compare(Frame &frame, int argument, PyObject *left, PyObject *right) {
  if (PyObject *pair[] = {left, right}; takeNumbers(pair))
    return operation(frame, operators().compare[argument], pair, nullptr);
  if (capture::isPlain(right) && isPlain(left) && isPlain(right)) // else a number may vary
    return expect(frame, Then::Plain, false, "a comparison");
  PyObject *operands[] = {left, right};
  if (!allUsable(operands, "a comparison"))
    return false;
  static constexpr std::initializer_list<const char *> methods = {"__lt__", "__le__", "__eq__",
                                                                  "__ne__", "__gt__", "__ge__"};
  if ((isArray(left) || isArray(right)) && !isTensor(left) && !isTensor(right))
    return callArrays(frame, operators().compare[argument], operands, nullptr);
  if (isTensor(left) || isTensor(right)) {
    guardMethods(left, methods);
    guardMethods(right, methods);
    return operation(frame, operators().compare[argument], operands, nullptr) &&
           (frame.pending.slot = true);
  }
  if (isPlainWithin(left) && isPlainWithin(right))
    return expect(frame, Then::Plain, false, "a comparison");
  if ((PyFunction_Check(left) || isPlain(left)) && (PyFunction_Check(right) || isPlain(right)))
    return values.readIdentity(left, right) && expect(frame, Then::Plain, false, "a comparison");
  if ((argument == Py_EQ || argument == Py_NE) && comparesAlone(left, right))
    return expect(frame, Then::Plain, false, "a comparison");
  if ((argument == Py_EQ || argument == Py_NE) && comparesItems(left, right)) {
    frame.pending.yields = Pending::Yields::Plain;
    return expect(frame, Then::Plain, true, "a comparison");
  }
  bool numbers = true;
  for (PyObject *each : operands) {
    if (!isPlain(each) && !answersInPython(each, methods))
      return values.fail("compares " + shown(each));
    numbers &= isNumberLike(each);
  }
  return expect(frame, numbers ? Then::Usable : Then::Python, true,
                "a comparison with " + shown(left));
}

bool Observer::comparesItems(PyObject *left, PyObject *right) {
  bool lists = PyList_CheckExact(left) && PyList_CheckExact(right);
  auto isTuple = [](PyObject *each) { // or a named one
    return PyTuple_Check(each) && Py_TYPE(each)->tp_richcompare == PyTuple_Type.tp_richcompare;
  };
  if (!lists && !(isTuple(left) && isTuple(right)))
    return false;
  for (PyObject *each : {left, right})
    guardMethods(each, {"__eq__", "__ne__"});
  for (PyObject *each : {left, right}) {
    if (!values.readWhole(each))
      return false;
    for (Py_ssize_t i = 0; i < Py_SIZE(each); ++i)
      if (PyObject *item = itemAt(each, i).get();
          isTensor(item) || !(isPlain(item) || answersInPython(item, {"__eq__", "__ne__"})))
        return false;
  }
  // Identical items are not compared.
  for (Py_ssize_t i = 0; i < std::min(Py_SIZE(left), Py_SIZE(right)); ++i)
    if (PyObject *one = itemAt(left, i).get(), *other = itemAt(right, i).get();
        !isPlain(one) && !isPlain(other) && !values.readIdentity(one, other))
      return false;
  return true;
}

bool Observer::contains(Frame &frame, PyObject *container, PyObject *item) {
  if (!PyType_Check(container) && isPlain(container) && isPlain(item))
    return expect(frame, Then::Plain, false, "in");
  if (!values.isUsable(container) || !values.isUsable(item))
    return values.fail("looks for " + shown(item) + " in " + shown(container));
  if (PyType_Check(container) && answersInClass(container, "__contains__"))
    return carries(frame) && expect(frame, Then::Plain, true, "in");
  if (isLookupKey(item) && answersAsDict(container, "__contains__")) // its values are not looked at
    return values.readKey(container, item) && carries(frame) &&
           expect(frame, Then::Plain, true, "in");
  if (isLookupKey(item) && PyAnySet_CheckExact(container) && values.isExternal(container))
    return values.readWhole(container) && expect(frame, Then::Plain, true, "in");
  if (isPlain(item) && isPlainWithin(container))
    return expect(frame, Then::Plain, false, "in");
  if (PyTuple_CheckExact(container) || PyList_CheckExact(container)) {
    bool alone = values.readWhole(container);
    for (Py_ssize_t i = 0; alone && i < Py_SIZE(container); ++i)
      alone = comparesAlone(PyTuple_Check(container) ? PyTuple_GET_ITEM(container, i)
                                                     : PyList_GET_ITEM(container, i),
                            item);
    if (alone)
      return expect(frame, Then::Plain, false, "in");
  }
  if (Py_TYPE(container) == &PyDictProxy_Type && values.isFresh(container) && isPlain(item))
    return expect(frame, Then::Plain, false, "in"); // the parameters of a signature
  if (isArray(container) && isPlain(item))
    return readArray(frame, container) && expect(frame, Then::Plain, false, "in");
  if (isTensor(container)) // Tensor.__contains__ is a function in Python
    return !answering(container, "__contains__") && expect(frame, Then::Plain, true, "in");
  if ((PyAnySet_CheckExact(container) || isDict(container)) && values.isFresh(container))
    return isKey(container, item) && expect(frame, Then::Plain, true, "in");
  frame.pending.yields = Pending::Yields::Numbers;
  return (!PyDict_Check(container) && answersInPython(container, {"__contains__", "__iter__"}) &&
          expect(frame, Then::Python, true, "looking into " + shown(container))) ||
         values.fail("looks for " + shown(item) + " in " + shown(container));
}

bool Observer::subscript(Frame &frame, PyObject *container, PyObject *key) {
  if (isPlain(container) && isPlain(key)) {
    if (PyType_Check(container))
      return (makesAlias(container) && expect(frame, Then::Fresh, false)) ||
             subscriptsClass(frame, (PyTypeObject *)container) || values.fail("subscripts a class");
    return expect(frame, Then::Plain, false, "an item");
  }
  PyObject *operands[] = {container, key};
  if (!allUsable(operands, "an item"))
    return false;
  if (isArray(container))
    return callArrays(frame, operators().getItem, operands, nullptr);
  if (isTensor(container)) {
    guardMethods(container, {"__getitem__"});
    return operation(frame, operators().getItem, operands, nullptr) && (frame.pending.slot = true);
  }
  if (isLookupKey(key) && answersAsDict(container, "__getitem__"))
    return readEntry(frame, container, key);
  if (isMatch(container) && values.isFresh(container) && isPlain(key))
    return expect(frame, Then::Plain, false, "a group of a match");
  if (isTypingForm(container)) { // List[int], by code and caches of typing
    frame.pending.foreign = true;
    return values.fixIdentity(container) && expect(frame, Then::Fresh, true);
  }
  if (values.isFresh(container) && isDict(container))
    return isKey(container, key) && expect(frame, Then::Usable, true, "an item");
  bool list = PyList_CheckExact(container) || PyTuple_Check(container);
  bool deque = isDeque(container) &&
               (!PyType_HasFeature(Py_TYPE(container), Py_TPFLAGS_HEAPTYPE) ||
                answering(container, "__getitem__") == builtinBase(Py_TYPE(container)));
  bool scalar = isArrayScalar(key) && PyIndex_Check(key); // a scalar of NumPy
  if ((list || deque) && ((PyLong_Check(key) && isNumberLike(key)) || (scalar && isPlain(key)))) {
    Py_ssize_t i = PyNumber_AsSsize_t(key, nullptr);
    if (i < 0 && PyErr_Occurred())
      PyErr_Clear();
    else if (i < 0 && -i <= values.appended(container)) // the call has put the item there
      return expect(frame, Then::Usable, false, "an item");
    else if (!readsLastItem(container, i) &&
             (values.failed() || (i < 0 && !values.readLength(container)) ||
              !values.readItem(container, i)))
      return false;
    return expect(frame, Then::Usable, false, "an item");
  }
  if (list && PySlice_Check(key) && isPlain(key) && opensWindow(frame, container, key))
    return true;
  if (list && PySlice_Check(key) && isPlain(key))
    return (readsWindow(container, key) || (!values.failed() && values.readWhole(container))) &&
           expect(frame, Then::Fresh, false);
  return (!PyDict_CheckExact(container) && !list &&
          answersInPython(container, {"__getitem__", "__missing__"}) &&
          expect(frame, Then::Python, true, "an item of " + shown(container))) ||
         values.fail("an item of " + shown(container));
}

/// Sets or deletes an item of a container from outside.
bool Observer::changesItem(Frame &frame, Arguments operands) {
  bool sets = operands.size() == 3;
  if (!changes(frame, sets ? operators().setItem : operators().deleteItem, operands, nullptr, true))
    return false;
  frame.pending.then = Then::Stored;
  return true;
}

static bool hasIndex(PyObject *list, PyObject *index) {
  Py_ssize_t i = PyLong_AsSsize_t(index), count = PyList_GET_SIZE(list);
  if (i == -1 && PyErr_Occurred())
    PyErr_Clear();
  else
    return -count <= i && i < count;
  return false;
}

bool Observer::storeSubscript(Frame &frame, PyObject *container, PyObject *key, PyObject *value) {
  PyObject *operands[] = {container, key, value};
  size_t count = value ? 3 : 2;
  if (!allUsable(Arguments(operands, count), "an assignment to an item"))
    return false;
  if (isArray(container) && value) {
    if (!writesArray(container) || !callArrays(frame, operators().setItem, operands, nullptr))
      return false;
    frame.pending.then = Then::Stored;
    frame.pending.pure = false;
    return true;
  }
  if (isTensor(container)) {
    guardMethods(container, {"__setitem__", "__delitem__"});
    if (!value || !inPlace(frame, operators().setItem, operands, nullptr))
      return values.fail("deletes an item of a tensor");
    frame.pending.then = Then::Stored; // nothing is left on the stack
    return true;
  }
  if (value && PyDict_CheckExact(container) && values.isExternal(container) && !nodes &&
      PyUnicode_CheckExact(key) && values.mayDiffer(key) &&
      !PyDict_GetItemWithError(container, key)) { // keys that come again are constants
    values.noteFreeKey(container, key);
    if (!changes(frame, operators().setItem, operands, nullptr, false))
      return false;
    frame.pending.then = Then::Stored;
    return true;
  }
  bool counter = isDefaultDict(container) || isCounter(container);
  if (value && values.isExternal(container) && isLookupKey(key) && !values.hasChanged(container)) {
    if (PyDict_CheckExact(container) || (counter && answersAsDict(container, "__setitem__"))) {
      bool set = setsEntry(frame, container, nullptr, key, value);
      frame.pending.python |= !isPlain(key); // it hashes by its name
      return set;
    }
    if (PyList_CheckExact(container) && PyLong_Check(key) && isNumberLike(key) &&
        hasIndex(container, key))
      return setsItem(frame, container, key, value);
  }
  if (values.isFresh(container) && value &&
      (answersAsDict(container, "__setitem__") ||
       (PyList_Check(container) && answering(container, "__setitem__") == &PyList_Type &&
        !PySlice_Check(key))))
    return (PyDict_Check(container) ? isKey(container, key)
                                    : isPlain(key) || values.fail("a key that is not plain")) &&
           expect(frame, Then::Nothing, true);
  bool asDict = value && PyDict_Check(container) && answersAsDict(container, "__setitem__");
  if (PyList_CheckExact(container) || isDict(container) || isDefaultDict(container) || asDict)
    return (isPlain(key) || values.fail("a key that is not plain")) &&
           (!value || !PySlice_Check(key) || isPlain(value) || values.readWhole(value)) &&
           (values.isFresh(container) || changesItem(frame, Arguments(operands, count)));
  return (answersInPython(container, {"__setitem__", "__delitem__"}) &&
          !answering(container, value ? "__setitem__" : "__delitem__") &&
          expect(frame, Then::Nothing, true)) ||
         values.fail("assigns to an item of " + shown(container));
}

// Iteration.

/// Whether the object is a loader of torch's, or of a class derived from that.
static bool isLoader(PyObject *object) {
  static PyObject *kind = nullptr;
  if (!kind)
    kind = imported("torch.utils.data", "DataLoader").release();
  return kind && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject *>(kind));
}

bool Observer::readIterable(Frame &frame, PyObject *object) {
  if (PyType_Check(object)) // such as an enumeration
    return (PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) &&
            iterableItems(frame, object)) ||
           values.fail("iterates over " + shown(object));
  if (PyTuple_CheckExact(object) && capture::isPlain(object))
    return true; // its items are handed on, and numbers among them may vary
  if (isPlain(object))
    return !PyModule_Check(object) || values.fail("iterates over " + shown(object));
  if (isLoader(object))
    return values.fail("iterates over a DataLoader: give what takes one batch to weft.compile");
  if (!values.isUsable(object))
    return values.fail("iterates over " + shown(object) + " of unknown origin");
  if (PyAnySet_Check(object) && values.isFresh(object) && PySet_GET_SIZE(object) > 1) {
    PyRef items = keysOf(object);
    if (!items || !isPlain(items.get()))
      return values.fail("iterates over a set in the order of addresses");
  }
  if (isArray(object))
    return readArray(frame, object);
  if (isTensor(object)) // Tensor.__iter__ is a function in Python
    return answersInPython(object, {"__iter__"}) && (frame.pending.python = true);
  return iterableItems(frame, object);
}

bool Observer::readPair(PyObject *pair) {
  bool known = values.isUsable(pair) && (isPlain(pair) || PyTuple_CheckExact(pair) ||
                                         (PyList_CheckExact(pair) && values.readWhole(pair)));
  return known || values.fail("makes a dict of pairs such as " + shown(pair));
}

bool Observer::readPairs(Frame &frame, PyObject *object) {
  if (!readIterable(frame, object))
    return false;
  if (PyDict_Check(object))
    return values.readWhole(object);
  if (PyList_Check(object) || PyTuple_Check(object) || isDeque(object)) {
    for (Py_ssize_t i = 0; i < Py_SIZE(object); ++i)
      if (!readPair(itemAt(object, i).get()))
        return false;
    return true;
  }
  PyTypeObject *type = Py_TYPE(object);
  if (PyGen_CheckExact(object) || isMap(object) || iteratesByGenerator(object)) {
    frame.pending.yields = Pending::Yields::Pairs;
    return frame.pending.python = true;
  }
  if (answersInPython(object, {"keys"})) { // a mapping, which is asked for each key
    static PyObject *const keys = PyUnicode_InternFromString("keys");
    return interpreter::typeLookup(type, keys) || values.fail("makes a dict of " + shown(object));
  }
  bool pairs = isPlain(object) || isPlainMap(object) || type == &PyZip_Type ||
               type == &PyEnum_Type || PyDictItems_Check(object);
  return pairs || values.fail("makes a dict of " + shown(object));
}

bool Observer::unpack(Frame &frame, PyObject *sequence, int count) {
  if (isTensor(sequence) && count >= 0) {
    if (!values.isUsable(sequence))
      return values.fail("unpacks a tensor of unknown origin");
    guardMethods(sequence, {"__iter__"});
    if (!operation(frame, operators().tuple, Arguments(&sequence, 1), nullptr))
      return false;
    frame.pending.then = Then::Items;
    frame.pending.slot = true;
    frame.pending.count = count;
    return true;
  }
  if (!readIterable(frame, sequence))
    return false;
  if (count >= 0)
    return true;
  frame.pending.count = -1 - count;
  return expect(frame, Then::Star, true);
}

} // namespace weft::capture
