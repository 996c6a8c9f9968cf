// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How compiled code stands in for a log's operations on tensors. Records that compiled code cannot
// do still run: ahead of it those that ask for settings of torch or compute with numbers, behind it
// those that compare values that depend on data, and last those that set entries of dicts.
#ifndef WEFT_CAPTURE_PLAN_H
#define WEFT_CAPTURE_PLAN_H

#include "capture/Log.h"

namespace weft::capture {

struct Plan {
  PyRef program;                     // takes tensors and numbers, gives a tuple of tensors
  std::vector<size_t> inputs;        // the registers that are its first arguments, in their order
  std::vector<size_t> numbers;       // results of `before`, which are its other arguments
  std::vector<size_t> results;       // the results of the log that it gives, in their order
  std::vector<size_t> before, after; // records that are run as they are
  bool compares = false;             // whether a record of `after` may end the call
};

/// The log as Python objects. A form is ("constant", object), ("register", i), ("result", i),
/// ("tuple", its class or None, parts), ("list" or "dict", number, parts), ("instance", class,
/// parts) or ("slice", parts).
PyRef viewOf(const Form &form);
/// A record is (callable or None, forms of the arguments, names of the last ones or None, outcome,
/// location, whether it changes, whether it tells), where an outcome is ("tensor", "made", "array"
/// or "number", i), ("same", form), ("plain", object) or ("sequence", class, parts).
PyRef viewOf(const Record &record);

} // namespace weft::capture

#endif
