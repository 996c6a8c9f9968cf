// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What observing one call gives.
#ifndef WEFT_CAPTURE_OBSERVATION_H
#define WEFT_CAPTURE_OBSERVATION_H

#include "capture/Guards.h"
#include "capture/Log.h"

#include <string>
#include <vector>

namespace weft::capture {

/// What one call gave.
struct Observation {
  PyRef value; // null with a Python error set
  Guards guards;
  Log log;
  std::string reason; // why no program stands for the call; empty if one does
  std::string location;
  uint64_t opcodes = 0;
  bool passes = false;     // that reason holds for this call alone: it keeps what later calls find
  bool readsSizes = false; // facts of its tensors, for a log that holds for these sizes alone
  std::vector<PyRef>
      snapshots; // snapshots of the memory that the call has written, taken before it wrote
};

} // namespace weft::capture

#endif
