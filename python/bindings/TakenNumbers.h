// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The numbers of Python among a call's arguments that a program takes: what it reads of them, as a
// tensor of float64. Conditions under which the program stands for them are the function's.
#ifndef WEFT_PYTHON_BINDINGS_TAKENNUMBERS_H
#define WEFT_PYTHON_BINDINGS_TAKENNUMBERS_H

#include "capture/PyRef.h"

#include <cstddef>

namespace weft {

struct TakenNumbers {
  /// Of the numbers, to a tuple of what the program reads, or None if it does not stand for such
  /// numbers. Null where it takes none.
  PyRef function;
  size_t count = 0;

  /// numbers: the first of `count`. Null if the program does not stand for them; no Python error
  /// is left behind.
  PyRef tensorOf(const PyRef *numbers) const;
};

} // namespace weft

#endif
