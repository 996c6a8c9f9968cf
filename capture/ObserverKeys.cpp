// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys of dicts and items of sets in an observed call.
#include "capture/Observer.h"
#include "capture/Plain.h"

namespace weft::capture {

bool Observer::isKey(PyObject *container, PyObject *object) {
  if (isPlain(object))
    return true;
  if (!values.isUsable(object) ||
      !(hashesByAddress(object) || isTensor(object) || isMemberKey(object) || readsKey(object)))
    return values.fail("a key or a set's item that is not plain");
  guardKeyMethods(object);
  PyRef others = container && !isValueKey(object) ? keysOf(container) : PyRef();
  for (Py_ssize_t i = 0; others && i < PyTuple_GET_SIZE(others.get()); ++i)
    if (PyObject *other = PyTuple_GET_ITEM(others.get(), i);
        !isPlain(other) && !isValueKey(other) && other != object &&
        !values.readIdentity(object, other))
      return false;
  return true;
}

/// Frames of these methods may not be observed, so that their code is guarded here.
void Observer::guardKeyMethods(PyObject *object) {
  guardMethods(object, {"__hash__", "__eq__"});
  for (const char *each : {"__hash__", "__eq__"})
    if (PyObject *method = isTensor(object) ? nullptr : methodOf(object, each))
      enterFunction(method);
}

/// Whether the object is a key by its value, which is read.
bool Observer::readsKey(PyObject *object) {
  if (!isValueKey(object) || !values.readWhole(object))
    return false;
  PyRef fields = fieldsOf(object);
  PyObject *dict = fields ? interpreter::instanceDict(object) : nullptr;
  PyObject *items = fields ? fields.get() : object, *key, *item;
  for (Py_ssize_t at = 0; dict && PyDict_Next(dict, &at, &key, &item);)
    if (!readInstance(object, key))
      return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i)
    if (!isPlain(PyTuple_GET_ITEM(items, i)))
      return false;
  return frames.back().pending.keyed = true;
}

bool Observer::isLookupKey(PyObject *object) {
  if (isPlain(object))
    return true;
  const Value *value = values.find(object);
  bool pinned = value && value->origin == Origin::Pinned;
  if (!values.isUsable(object) ||
      !(isMemberKey(object) || (pinned && isAddressKey(object)) || readsKey(object)))
    return false;
  guardKeyMethods(object);
  return frames.back().pending.keyed = true;
}

bool Observer::haveKeys(PyObject *container) {
  PyRef keys = keysOf(container);
  if (!keys || PyTuple_GET_SIZE(keys.get()) > 256)
    return true;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i)
    if (!isKey(container, PyTuple_GET_ITEM(keys.get(), i)))
      return false;
  return true;
}

bool Observer::isOfKey(PyFrameObject *frame) {
  std::span<PyObject *const> locals = interpreter::locals(frame);
  PyCodeObject *code = interpreter::code(frame);
  bool generated = PyUnicode_CompareWithASCIIString(code->co_filename, "<string>") == 0;
  bool hashes = PyUnicode_CompareWithASCIIString(code->co_name, "__hash__") == 0;
  return !locals.empty() && locals[0] &&
         ((generated && isValueKey(locals[0])) || (hashes && isMemberKey(locals[0])));
}

} // namespace weft::capture
