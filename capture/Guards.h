// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program assumes of the world outside of it, as a list of checks that run on the raw
// arguments of a call. Objects that are reached from the function itself are held and compared by
// identity (pinned); what is reached from the arguments is loaded into registers, and only its
// type and what was read of it is compared. No check runs Python code.
#ifndef WEFT_CAPTURE_GUARDS_H
#define WEFT_CAPTURE_GUARDS_H

#include "capture/CallArguments.h"
#include "capture/PyRef.h"
#include "capture/Sites.h"
#include "capture/Tensors.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::capture {

/// The object that a check looks into: the content of a register, or a pinned object.
struct Owner {
  int reg = -1;
  PyRef object;
};

/// What a check has to find.
struct Expected {
  enum Kind : uint8_t { Absent, Identity, Equal, Load, Typed } kind = Absent;
  PyRef value;  // for Identity and Equal; for Typed, the class that the object is an instance of
  int reg = -1; // for Load, the register that is loaded
};

class Guards {
public:
  using Registers = std::vector<PyRef>;

  /// The number of a new register, from 0 on. `observed`: what the observed call has found there.
  int newRegister(PyObject *observed) {
    inObserved.push_back(PyRef::borrow(observed));
    return registerCount++;
  }
  /// The registers in the observed call, which are let go here.
  Registers takeObserved() { return std::exchange(inObserved, {}); }

  void arguments(Py_ssize_t count, PyObject *names);
  /// Loads the i-th value of the call; positional ones come first.
  void argument(Py_ssize_t i, Expected expected, std::string name);
  /// Whether an entry of a pinned dict, or of a pinned object's dict, is guarded already.
  bool watches(PyObject *owner, bool ofInstance, PyObject *key) const;
  /// Guards an entry of the object's `__dict__`.
  void instanceItem(const Owner &owner, PyObject *key, Expected expected, std::string name);
  void dictItem(const Owner &owner, PyObject *key, Expected expected, std::string name);
  /// Loads the object's `__dict__`, or finds the pinned one.
  void instanceDict(const Owner &owner, Expected expected, std::string name);
  /// Guards an item of a list or tuple, and an entry of a dict. `i`: from the end on, if negative.
  void length(const Owner &owner, Py_ssize_t length, std::string name);
  void item(const Owner &owner, Py_ssize_t i, Expected expected, std::string name);
  /// Guards all keys of a dict or items of a set, which are plain, in their order.
  void keys(const Owner &owner, PyObject *keys, std::string name);
  void cell(const Owner &owner, Expected expected, std::string name);
  /// Guards what a class has in its own dict.
  void classItem(const Owner &owner, PyObject *name, Expected expected, std::string text);
  /// Guards that looking `name` up in the type reaches `holder` before it finds anything.
  void resolves(PyTypeObject *type, PyObject *name, PyTypeObject *holder, std::string text);
  /// Guards what an iterator goes over, by its number in `sourcesOf`, or which dict a view shows; a
  /// source is absent once its iterator has come to its end.
  void iterated(const Owner &iterator, Py_ssize_t number, Expected expected, std::string name);
  /// Guards what the iterator gives after `number` other items; nothing at its end.
  void upcoming(const Owner &iterator, Py_ssize_t number, Expected expected, std::string name);
  /// Guards what a slot, or another member that is kept in C, holds.
  void member(const Owner &owner, PyObject *descriptor, Expected expected, std::string name);
  /// Guards that there is a number of this type, whatever its value.
  void counter(Place place, const Owner &owner, PyObject *key, PyTypeObject *type,
               std::string name);
  void type(const Owner &owner, PyTypeObject *type, std::string name);
  /// Guards the value of an instance of a class derived from a number or a text, as valueOf gives
  /// it.
  void value(const Owner &owner, PyRef value, std::string name);
  /// Guards what a context variable is set to; its default does not count as set.
  void context(const Owner &owner, Expected expected, std::string name);
  /// Guards the type, shape and strides of an array. `facts`: as arrayFacts gives them.
  void array(const Owner &owner, PyRef facts, std::string name);
  void tensor(const Owner &owner, TensorFacts facts, std::string name);
  void identity(const Owner &left, const Owner &right, bool same, std::string name);

  /// Guards what looking `name` up in the type gives; null for nothing. `after`: for super(), the
  /// class of the method resolution order behind which the search starts.
  void typeItem(PyTypeObject *type, PyObject *name, PyObject *found, PyObject *after = nullptr);
  /// Guards what the type is a subclass of.
  void bases(PyTypeObject *type);
  /// Guards the function's code and defaults.
  void function(PyObject *function);

  /// Whether all checks hold; fills the registers. `failed`: gets the number of the first check
  /// that did not hold.
  bool check(const CallArguments &call, Registers &registers, size_t *failed = nullptr) const;
  /// The same for a call whose arguments differ from the observed ones at most in sizes and strides
  /// of tensors; false for any other call.
  std::optional<Guards> resized(const CallArguments &call, Registers &registers) const;
  /// Places in objects that the program holds where there is another object by now, which may be an
  /// input, or another number.
  std::vector<Site> moved() const;
  /// Arguments that were guarded numbers, and are other numbers in this call.
  std::vector<Site> movedArguments(const CallArguments &call) const;
  /// Whether a check is of the length or an item of a container that the program holds.
  bool readsItems(PyObject *container) const;
  /// A description of every check, in the user's terms.
  std::vector<std::string> texts() const;
  std::string text(size_t check) const;

  int traverse(visitproc visit, void *arg) const;
  void clear();

private:
  enum class Kind : uint8_t {
    Argument,
    InstanceItem,
    DictItem,
    InstanceDict,
    Length,
    Item,
    Keys,
    Cell,
    Member,
    ClassItem,
    Resolves,
    Value,
    Context,
    Type,
    Tensor,
    Array,
    Same,
    Different,
    Iterated,
    Upcoming,
    Watch,
    TypeWatch,
    Function,
  };
  struct Check {
    Kind kind;
    Owner owner, other;
    PyRef key; // a name, a key, a descriptor, a tuple of keys, a type
    Py_ssize_t number = 0;
    Expected expected;
    std::string name;
  };
  struct Watched {
    PyObject *owner, *key, *after;
    Kind kind;
    bool operator==(const Watched &) const = default;
  };
  struct WatchedHash {
    size_t operator()(const Watched &place) const {
      auto mix = [](PyObject *object) { return reinterpret_cast<size_t>(object) >> 4; };
      return mix(place.owner) * 31 + mix(place.key) * 17 + mix(place.after) +
             static_cast<size_t>(place.kind);
    }
  };
  struct Entry {
    PyRef key, after;
    Expected expected;
    std::string name;
  };
  /// Entries of one pinned dict, which are looked up only after the dict has changed.
  struct Watch {
    PyRef owner;
    bool ofInstance;
    mutable PyRef dict; // that was looked into last, so that its tag means it
    mutable uint64_t version = 0;
    std::vector<Entry> entries;
    bool holds() const;
  };
  struct TypeWatch {
    PyRef type;
    mutable unsigned version = 0;
    std::vector<Entry> entries;
    bool holds() const;
  };
  struct FunctionWatch {
    PyRef function, code, defaults, keywordDefaults;
    bool holds() const;
  };

  void add(Kind kind, const Owner &owner, PyRef key, Py_ssize_t number, Expected expected,
           std::string name);
  void watch(bool ofInstance, PyObject *owner, PyObject *key, Expected expected, std::string name);
  /// Whether the call has as many arguments, with the same names.
  bool hasForm(const CallArguments &call) const;
  bool holds(const Check &check, const CallArguments &call, Registers &registers) const;

  int registerCount = 0;
  Registers inObserved;
  Py_ssize_t argumentCount = 0;
  PyRef argumentNames;
  std::vector<Check> checks;
  std::deque<Watch> dictWatches;
  std::deque<TypeWatch> typeWatches;
  std::vector<FunctionWatch> functions;
  // The entries that stand already, so that nothing is watched twice; the keys are addresses of
  // objects that the checks hold.
  std::unordered_map<Watched, size_t, WatchedHash> places;
  std::vector<TensorFacts> tensors;
};

/// Whether the descriptor is that of an entry of `__slots__`.
bool isSlot(PyObject *descriptor);
/// The descriptors of the slots of a class and of those that it derives from, borrowed.
std::vector<PyObject *> slotsOf(PyTypeObject *type);
/// What C keeps behind a descriptor, or null with no error set if there is nothing.
PyRef memberOf(PyObject *descriptor, PyObject *owner);
/// What a context variable is set to; null, with no error set, if it is not set.
PyRef contextValue(PyObject *variable);
/// The lookup that super() does. Borrowed; null if nothing is found.
PyObject *superLookup(PyTypeObject *type, PyObject *after, PyObject *name);

} // namespace weft::capture

#endif
