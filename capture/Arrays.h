// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program may see of a NumPy array besides its values.
#ifndef WEFT_CAPTURE_ARRAYS_H
#define WEFT_CAPTURE_ARRAYS_H

#include "capture/PyRef.h"

namespace weft::capture {

/// numpy.ndarray itself.
bool isArray(PyObject *object);
/// The array's element type, shape and strides as plain values; null, with no error set, for arrays
/// of objects and of records.
PyRef arrayFacts(PyObject *array);
/// Whether the array owns its memory.
bool ownsMemory(PyObject *array);
/// Whether the object is a scalar of NumPy.
bool isArrayScalar(PyObject *object);
/// Whether two scalars of NumPy have one type and the same bits.
bool arrayScalarsEqual(PyObject *left, PyObject *right);

} // namespace weft::capture

#endif
