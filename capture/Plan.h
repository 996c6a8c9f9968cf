// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How compiled code stands in for a log's operations on tensors. What it cannot do, other records
// still do: ahead of it settings of torch are asked for, behind it values that depend on data are
// compared, and then entries of dicts are set.
#ifndef WEFT_CAPTURE_PLAN_H
#define WEFT_CAPTURE_PLAN_H

#include "capture/Log.h"

namespace weft::capture {

struct Plan {
  PyRef program;                     // takes tensors, gives a tuple of tensors
  std::vector<size_t> inputs;        // registers, in the order of its arguments
  std::vector<size_t> results;       // of the log, in the order of what it gives
  std::vector<size_t> before, after; // records that are run as they are
  bool compares = false;             // whether a record of `after` may end the call
};

/// The log as Python objects. A form is ("constant", object), ("register", i), ("result", i),
/// ("tuple", its class or None, parts), ("list" or "dict", number, parts), ("instance", class,
/// parts) or ("slice", parts).
PyRef viewOf(const Form &form);
/// (callable or None, forms of the arguments, names of the last ones or None, outcome, location,
/// whether it changes, whether it tells), where an outcome is ("tensor", "made", "array" or
/// "number", i), ("same", form), ("plain", object) or ("sequence", class, parts).
PyRef viewOf(const Record &record);

} // namespace weft::capture

#endif
