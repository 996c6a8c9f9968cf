// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A frame that the observer watches, with what its current instruction waits for: what is looked at
// ahead of an instruction says what is to be made of its result, which is there at the frame's next
// event.
#ifndef WEFT_CAPTURE_FRAME_H
#define WEFT_CAPTURE_FRAME_H

#include "capture/Log.h"
#include "capture/PyRef.h"
#include "capture/Tensors.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::capture {

/// What an opcode leaves that is looked at behind it.
enum class Then : uint8_t {
  Nothing,
  Fresh,    // the top is made by this call, unless it is known already
  Plain,    // the top must be plain
  Usable,   // the top must have entered by a door
  Python,   // as Usable, and Python code must have run
  Append,   // the top is the outcome of `record`
  Instance, // the top is an instance of `type` that this call makes
  Items,    // as Append, of a tensor that was unpacked into `count` items
  Stored,   // as Append, of a function that gives None
  Star,     // a list that unpacking made lies below `count` items
  Added,    // the top is what a dict from outside has made for a key
  Window,   // the top is a part of a history that is only asked about
  Class,    // the top is a class that the call has made
  Stepped,  // what an iterator of this call has given may be made by the call as well
  Made,     // the top is plain, or made by a function that reads nothing else
};
inline bool appends(Then then) {
  return then == Then::Append || then == Then::Items || then == Then::Stored;
}
struct Written {
  PyObject *tensor;
  std::optional<TensorFacts> facts; // a snapshot ahead of the write
};
struct Pending {
  Then then = Then::Nothing;
  bool python = false;  // whether C code may enter Python frames
  bool entered = false; // whether frames were entered
  bool slot = false;    // an operator, whose record a method in Python replaces
  // For a function that takes what a generator or a method gives: that must be plain, or it is
  // kept, or the function looks at its numbers, or at what its pairs hold; or it is the argument
  // of a class in C that makes a container of it.
  enum class Yields : uint8_t {
    Anything,
    Plain,
    Collected,
    Numbers,
    Keys, // of items that a generator may yield
    Pairs,
    Parts
  } yields = Yields::Anything;
  PyObject *extended = nullptr; // a list from outside that is changed by what a generator gives
  Record record;
  PyTypeObject *type = nullptr;
  std::vector<Written> written;    // tensors from outside that it writes
  bool backward = false;           // torch's engine runs, and C enters no frame
  bool nested = false;             // Python code within the function is a part of it
  bool foreign = false;            // and that code is not observed
  bool unrecorded = false;         // gradients are off
  bool number = false;             // a number that it gives may be another in each call
  bool text = false;               // a text that it gives may be another in each call
  bool numeric = false;            // because such a number is among its arguments
  bool redirects = false;          // it gives a tensor other memory
  bool arrays = false;             // it takes an array
  bool ofArray = false;            // a scalar that it gives of an array may be another one
  bool dataSized = false;          // it gives tensors whose sizes may follow from data
  bool pure = false;               // it takes plain values alone
  bool carries = false;            // it hands numbers on; C does not look at their values
  bool signature = false;          // it gives a function's signature
  bool cached = false;             // a function whose results are kept
  bool keyed = false;              // it looks for a key by its value, whose fields have been read
  bool reduced = false;            // for an object that is copied, what it is made of
  PyObject *memo = nullptr;        // the dict in which it notes what it has copied
  PyObject *through = nullptr;     // a function that is called by code which is not observed
  std::vector<size_t> texts;       // arguments of the record that methods in Python give
  bool checkpoint = false;         // it keeps what autograd saves in a way of its own
  size_t logBegin = 0;             // the position in the log where its call began
  bool plainMaps = false;          // it makes a map whose items are plain
  bool maps = false;               // it makes a map of a function in Python
  bool node = false;               // an autograd.Function that is one operation
  PyTypeObject *context = nullptr; // for an autograd.Function, what its forward is given
  std::string what;                // the callable in words; otherwise
  PyObject *attribute = nullptr;   // the name of one of `type`, a constant of the code
  PyRef callable;
  std::pair<PyRef, PyRef> added; // the dict and the key; the history and the slice
  int count = 0;

  /// Sets all fields back; most opcodes have left little in them.
  void reset() {
    then = Then::Nothing;
    python = entered = slot = backward = nested = foreign = node = signature = cached = reduced =
        keyed = plainMaps = maps = arrays = ofArray = pure = numeric = text = redirects = number =
            unrecorded = dataSized = carries = false;
    context = nullptr;
    yields = Yields::Anything;
    extended = nullptr;
    attribute = nullptr;
    if (callable || !what.empty() || record.callable)
      *this = Pending();
  }
};
struct Frame {
  /// What the load of a counter has found, until it is stored by the instruction at that offset of
  /// the code.
  struct Counter {
    PyRef object, key;
    PyObject *function = nullptr, *step = nullptr; // of an operator, and the code's constant
    int offset = -1;
    bool stored = false; // as counters are
  };

  PyFrameObject *frame; // null: what called the target
  PyRef held;           // the frame, until it returns
  Pending pending;
  PyObject *names = nullptr; // the next call's keywords, a constant of the code
  Counter counter = {};
};

} // namespace weft::capture

#endif
