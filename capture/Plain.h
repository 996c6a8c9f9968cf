// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plain values: values that cannot change and whose identity means nothing. A program that was
// captured with one holds for every equal one.
#ifndef WEFT_CAPTURE_PLAIN_H
#define WEFT_CAPTURE_PLAIN_H

#include "capture/PyRef.h"

#include <string>

namespace weft::capture {

/// From now on instances of the type are plain, and compared by equality: torch.Size, torch.dtype
/// and the like.
void addPlainType(PyTypeObject *type);

/// Whether the object is plain: a number, a text, None, a tuple or slice of plain values, a
/// constant of torch's; and, each compared by its identity, a class, a module or a function in C
/// that is bound to no object.
bool isPlain(PyObject *object);
/// Whether the object's identity is its value: a class, a module, a function in C, a singleton.
bool isSingleton(PyObject *object);

/// Whether the two are exactly equal: their types, the bits of floats, the items of tuples. Runs no
/// Python code.
bool plainEqual(PyObject *left, PyObject *right);

/// The class in C that the object's class derives from, or that class if it is in C; `object` for
/// an ordinary class in Python.
PyTypeObject *builtinBase(PyTypeObject *type);
/// For an instance of a class in Python that derives from a number, text or bytes, the value that
/// it has by that class, which cannot change. Null, with no error set, for anything else.
PyRef valueOf(PyObject *object);
/// Whether valueOf gives a value.
bool isValue(PyObject *object);
/// Whether the object is a member of an enumeration, which is one object for as long as its class
/// lives.
bool isEnumMember(PyObject *object);
/// Whether the object is such a member, is equal to no other one, and hashes as Enum does, by its
/// name, or is a number or text that hashes as such. Other code never answers for it as a key.
bool isMemberKey(PyObject *object);
/// Whether the object is a key by its value, which cannot change: a named tuple of plain values, or
/// an instance of a frozen dataclass with the methods that dataclasses make, all of whose fields
/// are plain and compared.
bool isValueKey(PyObject *object);
/// The fields of such an instance, as a tuple; null, with no error set, for a named tuple and
/// anything else.
PyRef fieldsOf(PyObject *object);
/// Whether the object is a key by its address: a tensor, or one that hashes and compares by it.
bool isAddressKey(PyObject *object);
/// The entry of a dict for a plain key or one of these, borrowed; null, with no error set, if there
/// is none. Runs no Python code.
PyObject *entryOf(PyObject *dict, PyObject *key);
/// Whether the object is a text of one character, of which Python has no other.
bool isSharedText(PyObject *object);
/// Whether the object is what a regular expression has matched.
bool isMatch(PyObject *object);
/// Whether the object is a collections.deque, or an instance of a class derived from it.
bool isDeque(PyObject *object);
/// Whether the object is a collections.defaultdict and of no derived class.
bool isDefaultDict(PyObject *object);
/// Whether the object is an expression of types that typing makes, such as typing.List.
bool isTypingForm(PyObject *object);
/// Whether the object is a union such as `int | None`, the classes of which are its `__args__`.
bool isUnion(PyObject *object);
/// Whether the object hashes and compares by its address, as one does that has no method for it.
bool hashesByAddress(PyObject *object);
/// Whether the type is one of the named tuples that torch's functions give, such as that of
/// torch.topk, which are made from one argument.
bool isNamedResult(PyTypeObject *type);
/// An item of a list, tuple or deque; null, with no error set, behind the last one.
PyRef itemAt(PyObject *sequence, Py_ssize_t i);
/// The dict that a view of its keys, values or items shows, borrowed; null for any other object.
PyObject *dictOfView(PyObject *object);
/// The keys of a dict or the items of a set in their order, without the methods that a class in
/// Python defines. Null with an error set.
PyRef keysOf(PyObject *container);

/// The object's `repr`, shortened; never fails.
std::string shown(PyObject *object);

} // namespace weft::capture

#endif
