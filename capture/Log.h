// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operations of one call in their order, each with the form of its arguments and what could be
// seen of its results. It keeps no tensor that an operation made. Replaying it calls the same
// operations again and compares what they give with what was seen: a value that depends on data
// and comes out otherwise ends the replay.
#ifndef WEFT_CAPTURE_LOG_H
#define WEFT_CAPTURE_LOG_H

#include "capture/PyRef.h"
#include "capture/Sites.h"
#include "capture/Tensors.h"

#include <string>
#include <vector>

namespace weft::capture {

/// How a value is made from what a replay has: constants, registers of the guards, results.
struct Form {
  enum Kind : uint8_t {
    Constant,
    Register,
    Result,
    Tuple,
    List,
    Dict,
    Slice,
    Instance, // of a class in Python
    Subclass, // of one that derives from list, dict or OrderedDict: its items, its attributes
    Called,   // of a class in C: a tuple of the arguments that make it, a dict of those by keyword
  } kind = Constant;
  PyRef object;  // Constant; of a Tuple, OrderedDict or Instance, its type
  int index = 0; // Register, Result; of a List and the like, what its identity is known by
  // Of a Dict, keys and values in turn; of an Instance, its attributes, of an exception behind its
  // arguments.
  std::vector<Form> parts;
};

/// What an operation gave.
struct Outcome {
  enum Kind : uint8_t { Tensor, Same, Plain, Sequence, Made, Array } kind = Plain;
  int index = -1;                 // Tensor, Made, Array, a free number: which result it is
  std::vector<TensorFacts> facts; // Tensor: one
  Form same;                      // Same: an object that was there before
  bool free = false;              // Plain: a number, which may come out otherwise
  PyRef object;                   // Plain: the value. Sequence: the type. Array: its facts
  std::vector<Outcome> parts;     // Sequence
};

struct Record {
  PyRef callable;       // null: makes a container or an instance, its one argument
  bool changes = false; // something that is no tensor, and was there ahead of the call
  bool tells = false;   // something to the world outside: comes behind all others, and only once
  std::vector<Form> arguments; // those by keyword last
  PyRef names;                 // of keywords, a tuple or null
  Outcome outcome;
  std::string location;      // the user's line
  std::vector<int> lastUses; // results that nothing needs after this
};

struct Plan;

class Log {
public:
  int newResult() { return resultCount++; }
  void append(Record record) { records.push_back(std::move(record)); }
  /// An external tensor whose memory an operation writes; or, with a key, a dict one of whose
  /// entries it sets.
  void write(Form object, PyObject *key = nullptr) {
    written.push_back({std::move(object), PyRef::borrow(key)});
  }
  /// Places in what the program holds that it has set, where an input, or a number, is by now.
  std::vector<Site> stored(bool numbers) const;
  /// Ends the log: what the call gives, and when results are let go.
  void finish(Form output);
  size_t size() const { return records.size(); }
  int results() const { return resultCount; }
  /// The number that the record gave is a value that the program depends on from now on.
  void fix(size_t record) { records[record].outcome.free = false; }
  /// Forgets the records from that one on.
  void cut(size_t from) { records.resize(from); }
  const std::vector<Record> &all() const { return records; }

  /// What the call gives, or null with no error set if an operation gave something else than it
  /// did or raised an error; what had been written until then is as it was.
  /// snapshot: makes of a tensor, or a dict and a key, what puts back its state: an object with a
  /// method `restore`.
  /// isDryRun: without what prints, warns or logs.
  PyRef replay(const std::vector<PyRef> &registers, PyObject *snapshot, bool isDryRun) const;
  /// The same by compiled code, as `plan` says. declined: whether it could not run, so that a
  /// replay is due. Leaves an error of Python's set that is none of a program's, such as an
  /// interruption.
  PyRef runCompiled(const Plan &plan, const std::vector<PyRef> &registers, PyObject *snapshot,
                    bool isDryRun, bool &declined) const;
  /// Tells all logs that a node of autograd has got a hook, which perhaps nothing shows, as at what
  /// accumulates the gradients of a leaf: where a replay goes backward and fails, it would run
  /// twice.
  static void noteHook() { ++hooksNoted; }
  /// Replays it for tensors of other sizes, and becomes the log of that call. Null if an operation
  /// gave anything else than such tensors; what had been written until then is as it was.
  /// before: gets snapshots of what is written.
  PyRef relearn(const std::vector<PyRef> &registers, PyObject *snapshot,
                std::vector<PyRef> &before);
  const Form &given() const { return output; }
  /// One line an operation.
  std::vector<std::string> texts() const;

  int traverse(visitproc visit, void *arg) const;
  void clear();

private:
  bool meetsNewHooks() const { return goesBackward && hooksKnown != hooksNoted; }
  /// Of what operations write, as it is now; an empty one for what cannot be copied.
  std::vector<PyRef> snapshots(const std::vector<PyRef> &registers, PyObject *snapshot) const;

  static inline uint64_t hooksNoted = 0;
  uint64_t hooksKnown = 0; // when it ended
  bool goesBackward = false;
  int resultCount = 0;
  std::vector<Record> records;
  struct Written {
    Form object;
    PyRef key;
  };
  std::vector<Written> written;
  Form output;
};

} // namespace weft::capture

#endif
