// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Places in objects that the program holds which had one object in one call and another in the
// next: `self.average = 0.9 * self.average + 0.1 * x`. What is found there is an input of the
// program. It is known by its type and by what is read of it, as an object is that is reached from
// arguments.
#ifndef WEFT_CAPTURE_SITES_H
#define WEFT_CAPTURE_SITES_H

#include "capture/PyRef.h"

#include <cstdint>
#include <vector>

namespace weft::capture {

/// An attribute, an entry or an item (its key is the index), what a cell holds (its key is None),
/// what C keeps behind a descriptor, what a class has itself, what an iterator gives after so many
/// other items (its key), all that a list or deque holds (its key is None), an argument of the call
/// or what is found in one (its key is the text that tells where that is, and it has no owner).
enum class Place : uint8_t { Attribute, Item, Cell, Member, Class, Upcoming, Contents, Argument };

struct Site {
  Place place;
  /// The object's address; nobody holds the object. If another object has got the address, its
  /// place becomes an input without need, which is still right.
  uintptr_t owner;
  PyRef key;
  bool loaded = false; // set by the call that is observed
  int number = -1;     // the index in Values' number inputs, if it is one
};

/// Whether an object may be an input. Tensors, containers and instances may; what stands for code
/// may not, nor may modules and parameters, which are rarely replaced, and compiled into a program.
bool isInput(PyObject *object);

/// Whether the object is an int or a float, no NaN, which a program may take for an input if it
/// changes by itself.
bool isNumberInput(PyObject *object);

/// Sites as Python objects: a list of tuples of place, address and key.
PyRef viewOf(const std::vector<Site> &sites);
/// False with a Python error set.
bool sitesOf(PyObject *view, std::vector<Site> &sites);

} // namespace weft::capture

#endif
