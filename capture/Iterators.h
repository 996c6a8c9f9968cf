// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What observing needs of the layout of a CPython version's iterators in C: how far they have come,
// and what they give next. Iterators311.cpp is the only file that knows it.
#ifndef WEFT_CAPTURE_ITERATORS_H
#define WEFT_CAPTURE_ITERATORS_H

#include "capture/PyRef.h"

#include <vector>

namespace weft::capture::interpreter {

/// Whether taking an item of the iterator changes only what `positionOf` says, and runs no Python
/// code: it goes over a list, a tuple or a range, forwards or backwards, counts or repeats, or is
/// one of enumerate, zip, cycle, islice, chain and pairwise over such iterators.
bool hasPosition(PyObject *iterator);
/// Whether nobody but positions has the iterators that it is made of, and could take their items.
bool isAlone(PyObject *iterator);
/// Where such an iterator is, as a tuple. Null with an error set.
PyRef positionOf(PyObject *iterator);
/// Lets the iterator, which gave such a position, go on from there. False with an error set.
bool setPosition(PyObject *iterator, PyObject *position);
/// What the iterator gives after `number` other items. Null, with no error set, at its end and for
/// an iterator without a position.
PyRef upcoming(PyObject *iterator, Py_ssize_t number);
/// The lists and tuples that it goes over, borrowed; null in the place of one that has come to its
/// end.
std::vector<PyObject *> sourcesOf(PyObject *iterator);

} // namespace weft::capture::interpreter

#endif
