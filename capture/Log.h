// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The operations of one call in their order, each with the form of its arguments and what could be
// seen of its results. The log keeps no tensor that an operation made. A replay calls the same
// operations again and compares what they give with what was seen: if a value that depends on data
// comes out different, the replay ends.
#ifndef WEFT_CAPTURE_LOG_H
#define WEFT_CAPTURE_LOG_H

#include "capture/PyRef.h"
#include "capture/Sites.h"
#include "capture/Tensors.h"

#include <string>
#include <vector>

namespace weft::capture {

/// How a value is made from what a replay has: constants, registers of the guards, and results.
struct Form {
  enum Kind : uint8_t {
    Constant,
    Register,
    Result,
    Tuple,
    List,
    Dict,
    Slice,
    Instance, // an instance of a class in Python
    Subclass, // one of a class that derives from list, dict or OrderedDict: its items, then its
              // attributes
    Called,   // one of a class in C: a tuple of the arguments that make it, a dict of those by
              // keyword
  } kind = Constant;
  PyRef object;  // for Constant; for Tuple, OrderedDict and Instance, the type
  int index = 0; // for Register and Result; for List and the like, the number of the object
  // For Dict, keys and values in turn; for Instance, its attributes; for an exception, its
  // arguments and then its attributes.
  std::vector<Form> parts;
};

/// What an operation gave.
struct Outcome {
  enum Kind : uint8_t { Tensor, Same, Plain, Sequence, Made, Array } kind = Plain;
  int index = -1; // for Tensor, Made, Array and a free number: the number of the result
  std::vector<TensorFacts> facts; // for Tensor
  Form same;                      // for Same: an object that was there before
  bool free = false;              // for Plain: a number that may come out different
  PyRef object;               // for Plain, the value; for Sequence, the type; for Array, its facts
  std::vector<Outcome> parts; // for Sequence
};

struct Record {
  PyRef callable;       // null: makes its one argument, a container or an instance
  bool changes = false; // changes something that is no tensor and was there ahead of the call
  bool tells = false; // tells something to the world outside: runs behind all others, and only once
  std::vector<Form> arguments; // keyword arguments last
  PyRef names;                 // their keywords, a tuple or null
  Outcome outcome;
  std::string location;      // the user's line
  std::vector<int> lastUses; // results that nothing needs after this record
};

class Guards;
struct Plan;

class Log {
public:
  int newResult() { return resultCount++; }
  void append(Record record) { records.push_back(std::move(record)); }
  /// Notes an external tensor whose memory an operation writes; or, with a key, a dict one of whose
  /// entries it sets. `onlyByChanges`: nothing but a record that `changes` something does so.
  void write(Form object, PyObject *key = nullptr, bool onlyByChanges = false) {
    written.push_back({std::move(object), PyRef::borrow(key), onlyByChanges});
  }
  /// The places in what the program holds that it has set, and where an input is by now.
  std::vector<Site> stored() const;
  /// The lists and deques that the program holds, has filled, and reads by its guards.
  std::vector<Site> filled(const Guards &guards) const;
  /// Ends the log: says what the call gives, and finds when results can be released.
  void finish(Form output);
  size_t size() const { return records.size(); }
  int results() const { return resultCount; }
  /// From now on the program depends on the number that the record gave.
  void fix(size_t record) { records[record].outcome.free = false; }
  /// Forgets the records from that one on.
  void cut(size_t from) { records.resize(from); }
  const std::vector<Record> &all() const { return records; }

  /// Replays the log. Gives what the call gives, or null with no error set if an operation gave
  /// something else than it did or raised an error; what had been written until then is put back.
  /// `snapshot`: makes, of a tensor or of a dict and a key, an object whose method `restore` puts
  /// back its state. `isDryRun`: leaves out what prints, warns or logs.
  PyRef replay(const std::vector<PyRef> &registers, PyObject *snapshot, bool isDryRun) const;
  /// The same by compiled code, as `plan` says. `declined`: gets whether it could not run, so that
  /// a replay is due. An error of Python's that no program raises, such as an interruption, stays
  /// set.
  PyRef runCompiled(const Plan &plan, const std::vector<PyRef> &registers, PyObject *snapshot,
                    bool isDryRun, bool &declined) const;
  /// Tells all logs that a node of autograd's graph has got a hook, which may be invisible, as at
  /// the node that accumulates a leaf's gradients. If a replay runs a backward and fails, the hook
  /// would run twice.
  static void noteHook() { ++hooksNoted; }
  /// Replays the log for tensors of other sizes, and becomes the log of that call. Null if an
  /// operation gave anything else than such tensors; what had been written until then is put back.
  /// `before`: gets snapshots of what is written.
  PyRef relearn(const std::vector<PyRef> &registers, PyObject *snapshot,
                std::vector<PyRef> &before);
  const Form &given() const { return output; }
  /// A text of the log, one line an operation.
  std::vector<std::string> texts() const;

  int traverse(visitproc visit, void *arg) const;
  void clear();

private:
  bool meetsNewHooks() const { return goesBackward && hooksKnown != hooksNoted; }
  /// Snapshots of what the operations write, as it is now; an empty one for what cannot be copied.
  std::vector<PyRef> snapshots(const std::vector<PyRef> &registers, PyObject *snapshot) const;
  /// Puts back what was written until then. Containers that nothing has changed yet are let alone,
  /// since another thread may have changed them.
  void restore(const std::vector<PyRef> &snapshots, bool hasChanged) const;

  static inline uint64_t hooksNoted = 0;
  uint64_t hooksKnown = 0; // when it ended
  bool goesBackward = false;
  int resultCount = 0;
  std::vector<Record> records;
  struct Written {
    Form object;
    PyRef key;
    bool onlyByChanges;
  };
  std::vector<Written> written;
  Form output;
};

} // namespace weft::capture

#endif
