// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Makes records of the log from operations and writes, and checks operands for opcodes and calls.
#include "capture/Arrays.h"
#include "capture/Observer.h"
#include "capture/Plain.h"

#include <algorithm>
#include <iterator>

namespace weft::capture {

std::string nameOf(PyObject *callable) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__qualname__"));
  const char *text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  std::string made = text ? text : Py_TYPE(callable)->tp_name;
  PyErr_Clear();
  // pybind11 puts the class of its own records ahead of a function's name.
  if (made.starts_with("pybind11_"))
    made.erase(0, made.rfind('.') + 1);
  return made;
}

bool Observer::expect(Frame &frame, Then then, bool python, std::string what) {
  frame.pending.then = then;
  frame.pending.python = python;
  frame.pending.what = std::move(what);
  return true;
}

void Observer::noteMetadata(std::string_view name) {
  // Whether the value is neither a size nor computed from sizes; anything not listed may be.
  static constexpr std::string_view sizeless[] = {
      "dim",          "ndim",      "ndimension",        "dtype",         "device",
      "layout",       "itemsize",  "is_leaf",           "get_device",    "element_size",
      "is_cuda",      "is_cpu",    "is_meta",           "is_sparse",     "is_complex",
      "is_quantized", "is_nested", "is_floating_point", "requires_grad", "is_signed"};
  name = name.substr(name.rfind('.') + 1);
  observation.readsSizes |= std::ranges::find(sizeless, name) == std::end(sizeless);
}

bool Observer::isTensor(PyObject *object) { return Tensors::get()->isAny(object); }

bool Observer::allUsable(Arguments arguments, const std::string &what) {
  for (PyObject *each : arguments)
    if (!values.isUsable(each))
      return values.fail(what + " takes " + shown(each) + " of unknown origin");
  return true;
}

bool Observer::takeNumbers(Arguments arguments) {
  bool any = false;
  for (PyObject *each : arguments) {
    if (!PyFloat_CheckExact(each) && !PyLong_CheckExact(each) && !PyBool_Check(each) &&
        !isArrayScalar(each))
      return false;
    any |= values.isNumber(each);
  }
  return any;
}

PyObject *Observer::tellerOf(PyObject *object) {
  static PyObject *const text = PyUnicode_InternFromString("__str__");
  static PyObject *const shown = PyUnicode_InternFromString("__repr__");
  if (PyType_Check(object) || isTensor(object) ||
      !answersInPython(object, {"__str__", "__repr__", "__format__"}))
    return nullptr;
  PyObject *found = interpreter::typeLookup(Py_TYPE(object), text);
  // Object's own method calls the other one.
  if (found == interpreter::typeLookup(&PyBaseObject_Type, text))
    found = interpreter::typeLookup(Py_TYPE(object), shown);
  return found && PyFunction_Check(found) ? found : nullptr;
}

PyObject *Observer::methodOf(PyObject *object, const char *method) {
  PyRef name = PyRef::steal(PyUnicode_InternFromString(method));
  if (PyType_Check(object) || isTensor(object) || !answersInPython(object, {method}))
    return nullptr;
  PyObject *found = interpreter::typeLookup(Py_TYPE(object), name.get());
  return found && PyFunction_Check(found) ? found : nullptr;
}

bool Observer::tellsArguments(PyObject *error) {
  if (!PyExceptionInstance_Check(error) || !values.isFresh(error))
    return false;
  reprfunc text = Py_TYPE(error)->tp_str;
  bool own = text == ((PyTypeObject *)PyExc_BaseException)->tp_str ||
             text == ((PyTypeObject *)PyExc_KeyError)->tp_str;
  own &= Py_TYPE(error)->tp_repr == ((PyTypeObject *)PyExc_BaseException)->tp_repr;
  return own && isPlain(reinterpret_cast<PyBaseExceptionObject *>(error)->args);
}

bool Observer::isPlainWithin(PyObject *object) {
  if (isPlain(object))
    return true;
  if (!values.readWhole(object))
    return false;
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < Py_SIZE(object); ++i) {
      PyObject *item =
          PyTuple_Check(object) ? PyTuple_GET_ITEM(object, i) : PyList_GET_ITEM(object, i);
      if (!isPlainWithin(item))
        return false;
    }
    return values.isUsable(object);
  }
  if (PyAnySet_CheckExact(object) && values.find(object)) {
    PyRef items = values.isExternal(object) ? PyRef() : keysOf(object);
    return !items || isPlain(items.get());
  }
  // The view's dict was read as a whole.
  if (PyDictViewSet_Check(object) &&
      (values.isFresh(object) || (values.isExternal(object) && values.readView(object)))) {
    PyRef items = PyRef::steal(PySequence_Tuple(object));
    PyErr_Clear();
    return items && isPlain(items.get());
  }
  if (!PyDict_CheckExact(object) || !values.find(object))
    return false;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);)
    if (!isPlain(key) || !isPlainWithin(value))
      return false;
  return true;
}

void Observer::guardNames(PyObject *object) {
  bool many = PyTuple_CheckExact(object) || PyList_CheckExact(object);
  for (Py_ssize_t i = 0; many && i < Py_SIZE(object); ++i)
    if (PyRef item = itemAt(object, i); PyType_Check(item.get()))
      guardNames(item.get());
  if (!PyType_Check(object) || !PyType_HasFeature((PyTypeObject *)object, Py_TPFLAGS_HEAPTYPE))
    return;
  for (const char *each : {"__qualname__", "__module__"}) {
    PyRef name = PyRef::steal(PyUnicode_InternFromString(each));
    PyObject *descriptor = interpreter::typeLookup(Py_TYPE(object), name.get());
    if (PyRef now = descriptor ? memberOf(descriptor, object) : PyRef())
      guards.member({-1, PyRef::borrow(object)}, descriptor, {Expected::Equal, std::move(now), -1},
                    nameOf(object) + "." + each);
  }
}

void Observer::guardMethods(PyObject *object, std::initializer_list<const char *> methods) {
  PyTypeObject *type = Py_TYPE(object);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
    return;
  // Interned and never released.
  static auto &names = *new std::unordered_map<const char *, PyObject *>;
  for (const char *method : methods) {
    PyObject *&name = names[method];
    if (!name)
      name = PyUnicode_InternFromString(method);
    PyObject *found = interpreter::typeLookup(type, name);
    guards.typeItem(type, name, found);
    if (found && PyFunction_Check(found))
      values.pin(found, std::string(type->tp_name) + "." + method);
  }
}

bool Observer::answersInPython(PyObject *object, std::initializer_list<const char *> methods) {
  if (!PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) || isPlain(object) ||
      !values.isUsable(object))
    return false;
  guardMethods(object, methods);
  return true;
}

bool Observer::operation(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  std::string what = nameOf(callable);
  frame.pending.record = {};
  Record &record = frame.pending.record;
  record.callable = PyRef::borrow(callable);
  record.names = PyRef::borrow(names);
  PyObject *out = nullptr;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "out") == 0)
      out = arguments[arguments.size() - PyTuple_GET_SIZE(names) + i];
  for (PyObject *each : arguments) {
    if (!values.isOperand(each))
      return values.fail(what + " takes " + shown(each));
    if (isTorchGenerator(each) && !keepGenerator(each))
      return false;
    std::optional<Form> form = values.form(each);
    if (!form)
      return false;
    record.arguments.push_back(std::move(*form));
    frame.pending.ofArray |= isArray(each) && wasWritten(each);
    frame.pending.arrays |= isArray(each) && (values.isExternal(each) || !ownsMemory(each));
  }
  frame.pending.numeric = takeNumbers(arguments);
  frame.pending.number = frame.pending.numeric || operators().item == callable ||
                         (callable == (PyObject *)&PyFloat_Type && arguments.size() == 1);
  frame.pending.dataSized = sizesDependOnData(callable, what, arguments);
  expect(frame, Then::Append, true, std::move(what));
  observation.readsSizes |= out != nullptr; // an output of another size is resized, with a warning
  if (!out || out == Py_None || isArray(out))
    return true;
  return writesTo(frame, out);
}

bool Observer::inPlace(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  return !arguments.empty() && operation(frame, callable, arguments, names) &&
         writesTo(frame, arguments[0]);
}

bool Observer::writesTo(Frame &frame, PyObject *tensors) {
  if (!PyTuple_CheckExact(tensors) && !PyList_CheckExact(tensors))
    return writes(frame, tensors);
  for (Py_ssize_t i = 0; i < Py_SIZE(tensors); ++i)
    if (!writes(frame, itemAt(tensors, i).get()))
      return false;
  return true;
}

bool Observer::writes(Frame &frame, PyObject *tensor) {
  if (!tensor || !isTensor(tensor) || !values.find(tensor))
    return values.fail(frame.pending.what + " writes to no tensor");
  for (const PyRef &each : redirected)
    if (each.get() == tensor || values.sharesMemory(each.get(), tensor))
      return values.fail(frame.pending.what + " writes to a tensor whose data was set");
  if (values.isArrayMemory(tensor))
    return values.fail(frame.pending.what + " writes to the memory of an array");
  PyObject *external = values.externalOf(tensor);
  if (!external)
    return true;
  if (nodes)
    return values.fail("an autograd.Function with gradients writes to a tensor from outside");
  std::optional<TensorFacts> facts = TensorFacts::of(tensor);
  PyRef enabled = PyRef::steal(PyObject_CallNoArgs(operators().isGradEnabled));
  frame.pending.unrecorded = enabled.get() == Py_False;
  if (!facts || (facts->gradient() && !frame.pending.unrecorded))
    return values.fail(frame.pending.what + " writes to a tensor from outside that has gradients");
  frame.pending.written.push_back({tensor, facts});
  PyRef snapshot = PyRef::steal(PyObject_CallOneArg(operators().snapshot, external));
  std::optional<Form> form = values.form(external);
  if (!snapshot || !form)
    return values.fail(frame.pending.what + " writes to memory that cannot be copied");
  observation.snapshots.push_back(std::move(snapshot));
  log.write(std::move(*form));
  return true;
}

static bool recordsGradients(const Outcome &outcome) {
  return std::ranges::any_of(outcome.facts,
                             [](const TensorFacts &each) { return each.gradient(); }) ||
         std::ranges::any_of(outcome.parts, recordsGradients);
}

bool Observer::appendRecord(Frame &frame, PyObject *value) {
  if (frame.pending.node && !endNode())
    return false;
  frame.pending.dataSized |= frame.pending.node && nodeDataSized;
  Record &record = frame.pending.record;
  bool integer = frame.pending.numeric && PyLong_CheckExact(value);
  bool number = frame.pending.number && (integer || PyFloat_CheckExact(value)) && !nodes;
  number |= (frame.pending.ofArray || frame.pending.numeric) && isArrayScalar(value) && !nodes;
  number |= frame.pending.text && PyUnicode_CheckExact(value) && PyUnicode_GET_LENGTH(value) > 0 &&
            !isSharedText(value);
  std::optional<Outcome> outcome =
      number ? values.enterNumber(value) : values.enterOutcome(value, frame.pending.what);
  if (!outcome)
    return false;
  nodeDataSized = frame.pending.dataSized || (nodeDataSized && !frame.pending.node && nodes);
  if (recordsGradients(*outcome) && isWithinCheckpoint())
    return values.fail("a checkpoint of what records gradients");
  if (frame.pending.dataSized)
    values.noteDataSized(value);
  if (frame.pending.arrays && isTensor(value))
    values.noteArrayMemory(value);
  // For plain values a function of NumPy gives the same result each time.
  if (frame.pending.pure && outcome->kind == Outcome::Plain)
    return true;
  for (const auto &[tensor, facts] : frame.pending.written) {
    std::optional<TensorFacts> now = TensorFacts::of(tensor);
    if (!now || (now->gradient() && !frame.pending.redirects && !frame.pending.unrecorded) ||
        (facts && !facts->match(tensor)))
      return values.fail(frame.pending.what + " changes a tensor from outside");
    values.noteWritten(tensor);
  }
  if (frame.pending.backward)
    noteGradients();
  record.outcome = std::move(*outcome);
  record.location = here();
  log.append(std::move(record));
  return true;
}

} // namespace weft::capture
