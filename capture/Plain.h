// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plain values: those that cannot change and whose identity tells nothing. A program that was
// captured with one holds for every equal one.
#ifndef WEFT_CAPTURE_PLAIN_H
#define WEFT_CAPTURE_PLAIN_H

#include "capture/PyRef.h"

#include <string>

namespace weft::capture {

/// Makes instances of a type plain, by equality: torch.Size, torch.dtype and the like.
void addPlainType(PyTypeObject *type);

/// Numbers, text, None, tuples and slices of plain values, torch's own constants; and, each by its
/// identity, classes, modules and functions in C that are bound to no object.
bool isPlain(PyObject *object);
/// Whether its identity is the value: a class, a module, a function in C, a singleton.
bool isSingleton(PyObject *object);

/// Exactly equal: types too, bits of floats, items of tuples. Runs no Python code.
bool plainEqual(PyObject *left, PyObject *right);

/// The class in C that an object's class derives from, its own if that is in C: `object` for an
/// ordinary class in Python.
PyTypeObject *builtinBase(PyTypeObject *type);
/// Of an instance of a class in Python that derives from a number, text or bytes: the value that
/// it has by that, which cannot change. Null, with no error set, for anything else.
PyRef valueOf(PyObject *object);
/// Whether there is such a value.
bool isValue(PyObject *object);
/// A member of an enumeration: one object for as long as its class.
bool isEnumMember(PyObject *object);
/// A collections.deque, or an instance of a class derived from it.
bool isDeque(PyObject *object);
/// A collections.defaultdict itself.
bool isDefaultDict(PyObject *object);
/// What typing makes expressions of types of, such as typing.List.
bool isTypingForm(PyObject *object);
/// `int | None`, the classes of which are its `__args__`.
bool isUnion(PyObject *object);
/// Whether it hashes by its address and compares by that, as what has no method for it does.
bool hashesByAddress(PyObject *object);
/// Of what torch's functions give with named fields, such as torch.topk: made by one argument.
bool isNamedResult(PyTypeObject *type);
/// An item of a list, tuple or deque; null, with no error set, behind the end.
PyRef itemAt(PyObject *sequence, Py_ssize_t i);
/// Keys of a dict or items of a set in their order, past what a class in Python makes of them.
/// Null with an error set.
PyRef keysOf(PyObject *container);

/// `repr`, cut; never fails.
std::string shown(PyObject *object);

} // namespace weft::capture

#endif
