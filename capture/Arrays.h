// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program may see of a NumPy array besides its values.
#ifndef WEFT_CAPTURE_ARRAYS_H
#define WEFT_CAPTURE_ARRAYS_H

#include "capture/PyRef.h"

namespace weft::capture {

/// numpy.ndarray itself.
bool isArray(PyObject *object);
/// Its type of numbers, shape and strides, as plain values; null, with no error set, for arrays of
/// objects and of records.
PyRef arrayFacts(PyObject *array);
/// Whether its memory is its own.
bool ownsMemory(PyObject *array);
/// A number as NumPy gives it.
bool isArrayScalar(PyObject *object);
/// Of one type, bit by bit.
bool arrayScalarsEqual(PyObject *left, PyObject *right);

} // namespace weft::capture

#endif
