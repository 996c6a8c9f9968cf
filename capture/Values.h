// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the objects come from that an observed call works with. An object that is not plain has
// entered by one of four doors: it was read from outside (pinned, or reached from an argument), an
// operation gave it, or the call made it. An object that entered by none may not be used.
//
// Objects are known by their addresses. Those that entered are held, except for the tensors that
// operations gave: a weak reference stands for each, so that memory is released as in an eager
// call.
#ifndef WEFT_CAPTURE_VALUES_H
#define WEFT_CAPTURE_VALUES_H

#include "capture/Guards.h"
#include "capture/Log.h"

#include <optional>
#include <string>
#include <unordered_map>

namespace weft::capture {

enum class Origin : uint8_t { Pinned, Argument, Result, Fresh };

struct Value {
  Origin origin;
  int index = -1; // the number of the register or result
  PyRef holder;   // the object, or a weak reference to it
  std::string name;
  bool held = false;      // a result that is held, as it is no tensor
  bool dataSized = false; // a result whose sizes may follow from data
  bool weak = false;      // a generator that runs code when it is released, which must not wait
};

class Values {
public:
  Values(Guards &guards, Log &log) : guards(guards), log(log) {}

  /// From now on the dict is the `__dict__` of an object of this call.
  void noteAttributes(PyObject *dict) { attributes.push_back(PyRef::borrow(dict)); }
  /// Notes a class that the call has made.
  void enterClass(PyObject *type);
  bool isOwnClass(PyObject *object) const;
  /// Whether the object is such a class or an instance of one, or holds one as a tuple.
  bool holdsOwnClass(PyObject *object) const;
  /// What is known of the object; null if it has not entered.
  const Value *find(PyObject *object);
  bool isFresh(PyObject *object);
  bool isExternal(PyObject *object);
  /// Whether the object is a container or instance of this call that an operation of the log makes.
  bool isKept(PyObject *object);
  /// Whether the value is plain, in which case the program depends on it from now on.
  bool isPlain(PyObject *object);
  /// Whether sizes of this tensor may follow from data.
  bool isDataSized(PyObject *object);
  /// The sizes of the tensors that an operation has given follow from data.
  void noteDataSized(PyObject *outcome);
  /// Whether the object is a number that an operation gave, or an input, which nothing has looked
  /// at yet: its value may be another in each call. It is known by its address.
  bool isNumber(PyObject *object) const { return numbers.contains(object); }
  /// Whether the object is such a number or a text that tells of one, unless the program depends on
  /// it already.
  bool mayDiffer(PyObject *object) const {
    auto found = numbers.find(object);
    return found != numbers.end() && !found->second.fixed;
  }
  /// From now on the program depends on the numbers in `object`: on itself, or on what it is bound
  /// to or holds, to that depth of containers.
  void fixWithin(PyObject *object, int containers = mostDepth);
  /// The next record gives a float that may be another in each call.
  bool holdsNumber(PyObject *object) const;
  std::optional<Outcome> enterNumber(PyObject *number);
  /// Whether the object is plain or has entered; for tuples, slices and bound methods, whether all
  /// that they hold is.
  bool isUsable(PyObject *object);

  // Doors. They take guards, and fail with a reason.

  /// Enters an object that the program itself holds, known under `name`.
  bool pin(PyObject *object, std::string name);
  /// C looks into the object, of which no guard tells what it finds there: from now on the program
  /// depends on which object it is.
  bool fixIdentity(PyObject *object);
  /// Enters a value found in `container`, which is external, with the check that finds it there.
  std::optional<Expected> enter(const Value &container, PyObject *object, std::string name);
  /// Enters what is found at a place of an object; null if nothing is. It is an input of the call
  /// if the place is known for holding something else in each call.
  bool readAt(Place place, PyObject *owner, PyObject *key, const Value &held, PyObject *found,
              const std::string &name);
  /// From now on these places are known for holding something else in each call.
  void expectAt(std::vector<Site> places) { sites = std::move(places); }
  bool expectsInput(Place place, PyObject *owner, PyObject *key) {
    return siteOf(place, owner, key);
  }
  /// Whether a list or deque that the program holds is known for having other items in each call.
  bool isMoving(PyObject *container);
  /// Whether what is there is an input of the call already.
  bool isLoaded(Place place, PyObject *owner, PyObject *key);
  /// Enters the i-th value of the call.
  bool enterArgument(Py_ssize_t i, PyObject *object, std::string name);
  bool enterFresh(PyObject *object);
  /// Enters what an operation gave. `of`: the operation's name.
  std::optional<Outcome> enterOutcome(PyObject *object, const std::string &of);

  /// Reads an external list, tuple or dict as a whole; does nothing for any other object.
  bool readWhole(PyObject *container);
  bool readLength(PyObject *container);
  /// Reads an item of a list or tuple.
  bool readItem(PyObject *container, Py_ssize_t i);
  /// Reads an entry of a dict, or that there is none.
  bool readKey(PyObject *dict, PyObject *key);
  /// Reads an entry of an instance's `__dict__`. `found`: null if there is none.
  bool readAttribute(PyObject *object, PyObject *name, PyObject *found);
  /// Reads what C keeps for the object behind a descriptor, such as a slot.
  bool readMember(PyObject *object, PyObject *descriptor, const std::string &name);
  /// Reads the object's `__dict__` itself.
  bool readDict(PyObject *object);
  bool readCell(PyObject *cell, const std::string &name);
  /// Reads what an iterator from outside, whose position is known, gives next; an item that it
  /// gives is an input, as the next call gets another one.
  bool readNext(PyObject *iterator);
  /// Reads the dict that a view from outside shows.
  bool readView(PyObject *view);
  /// How many items the call has taken from such an iterator.
  Py_ssize_t taken(PyObject *iterator) const;
  /// Reads what a context variable is set to. `found`: null if it is not set.
  bool readContext(PyObject *variable, const Value &held, PyObject *found);
  /// Reads whether the two are the same object.
  bool readIdentity(PyObject *left, PyObject *right);

  Owner owner(PyObject *object, const Value &value) const;
  /// The form by which a replay makes the object.
  std::optional<Form> form(PyObject *object);
  /// A tensor from outside that shares memory with this one, borrowed, or null.
  PyObject *externalOf(PyObject *tensor);
  bool sharesMemory(PyObject *left, PyObject *right);
  std::vector<PyRef> externalTensors() const;
  /// Notes that the tensor has just been written to, as the log says.
  void noteWritten(PyObject *tensor);
  /// Whether the object can be handed to an operation: tensors and plain values can, in containers
  /// that are read as a whole.
  bool isOperand(PyObject *object);
  /// Whether iterating over the object starts over with what it was made of, as over a list, tuple,
  /// zip, map or enumeration, whose parts enter.
  bool isNewIterator(PyObject *object);
  /// Whether a generator of this call has not come to its end, so that releasing it would run code.
  bool leavesGeneratorOpen() const;
  /// Forgets the results from that one on.
  void forgetResults(int from) {
    std::erase_if(entered, [&](const auto &each) {
      return each.second.origin == Origin::Result && each.second.index >= from;
    });
  }
  /// Notes that the call sets an entry of a dict from outside, which is known from then on.
  void noteSet(PyObject *dict, PyObject *key) {
    set.push_back({PyRef::borrow(dict), PyRef::borrow(key)});
  }
  bool hasSet(PyObject *dict, PyObject *key) const;
  /// The same for a list, by the index, or for a dict that stands for itself. The other items are
  /// those that it held ahead of the call.
  void noteItemSet(PyObject *container, PyObject *key);

  // Counters (ObserverCounters.cpp).

  /// What is read from now on goes nowhere but into what is stored in its place.
  void expectCounter(bool expected) { counting = expected; }
  bool isCounter(PyObject *where, PyObject *key) const { return counterOf(where, key); }
  /// Whether there is a counter; the program depends on the number that it had unless the call
  /// counts on.
  bool readCounter(PyObject *where, PyObject *key);
  /// From now on the program depends on the number that the counter had ahead of the call.
  void fixCounter(PyObject *where, PyObject *key);
  /// Notes a counter that was found. `where`: the dict or the cell that has it.
  struct Counter {
    Place place;
    PyRef where, key;
    Owner owner;
    std::string name;
    PyRef before = {};
  };
  /// Whether what was found is a counter from now on.
  bool startsCounter(Counter counter, PyObject *found);

  // Numbers as inputs (ObserverNumbers.cpp).

  /// What is loaded from now on is what the current instruction leaves on the stack.
  void expectNumber(bool expected) { pushes = expected; }
  /// A copy of what the instruction has left on the stack, with which the frame goes on; null if
  /// there is none to make.
  PyRef takePushed(PyObject *top);
  /// Enters the i-th value of the call as a number that is an input: a copy, which the call is
  /// given in its place. Null if it is not known for being another number in each call.
  PyRef enterNumberArgument(Py_ssize_t i, PyObject *object, const std::string &name);
  /// The number on the stack that a copy stands for; null for any other object.
  PyObject *originalOf(PyObject *number) const;

  /// Notes that the call changes a container from outside. `whole`: the container is read as a
  /// whole ahead of that, so that its items are known; otherwise it must not be read from then on.
  bool change(PyObject *container, bool whole);
  bool hasChanged(PyObject *container) const { return changed.contains(container); }
  /// Notes that the call sets an entry of a dict from outside by a text that may be another in each
  /// call, until something is read of that dict.
  void noteFreeKey(PyObject *dict, PyObject *key) {
    freeKeys.push_back({PyRef::borrow(dict), PyRef::borrow(key)});
  }
  /// Notes that the call puts so many items behind those of a list from outside; 0 for any other
  /// change.
  void noteAppended(PyObject *list, Py_ssize_t count);
  /// How many items of its own the call has put at the end of a list: they are the last ones,
  /// whatever was in the list ahead of the call.
  Py_ssize_t appended(PyObject *list) const;
  /// Whether the list is a history, to which the call has done nothing but put items behind its
  /// own: an item has one place from the end, in each call another one from the beginning.
  bool growsAtEnd(PyObject *list);
  /// Reads the item that is the `back`-th last one ahead of the call, which has to exist. It is an
  /// input.
  bool readFromEnd(PyObject *list, Py_ssize_t back);
  /// Notes that the call changes an object from outside, of whatever kind.
  void noteTarget(PyObject *object) { targets.push_back(PyRef::borrow(object)); }
  /// Guards that what was changed is none of the other objects that the call has read, as they were
  /// distinct.
  void guardTargets();
  /// Notes that the container is empty now.
  void noteCleared(PyObject *container) { changed[container] = true; }
  /// The form by which a replay finds what an effect stores. An object of this call is made by an
  /// operation of its own, so that it stays one object and can be changed later.
  std::optional<Form> lasting(PyObject *object);
  /// Whether the tensor's memory is also that of an array, which the observer does not put back.
  void noteArrayMemory(PyObject *tensor);
  bool isArrayMemory(PyObject *tensor);
  /// Whether operations have written to a tensor from outside.
  bool externalWasWritten() const;

  /// Notes the first reason why no program stands for the call, and returns false.
  bool fail(std::string why);
  bool failed() const { return !why.empty(); }
  const std::string &reason() const { return why; }

private:
  // How deep containers may nest of which a form is made; a list may hold itself.
  static constexpr int mostDepth = 64;
  struct External {
    PyRef tensor;
    int64_t version;
  };
  template <typename AddCheck>
  bool settle(PyObject *object, Expected expected, const std::string &name, AddCheck add);
  bool put(PyObject *object, Value value);
  /// Whether the container was changed; false with a reason if what it holds is not known.
  bool readItemOf(PyObject *container, Py_ssize_t i, const PyRef &item);
  bool readKeyOf(PyObject *dict, PyObject *key, PyObject *item);
  bool readAhead(PyObject *container);
  /// A copy of what the container holds ahead of the call's first change.
  void keepAhead(PyObject *container);
  bool readsChanged(PyObject *container, const Value &value, bool &read);
  Site *siteOf(Place place, PyObject *owner, PyObject *key);
  const Counter *counterOf(PyObject *where, PyObject *key) const;
  bool enterArray(PyObject *object, const Owner &owner, const std::string &name);
  bool enterTensor(PyObject *object, const Owner &owner, const std::string &name);
  bool enterRegister(PyObject *object, int reg, const std::string &name);
  /// For an object that a class in C makes by a call, the arguments that make one like it. False
  /// for any other.
  bool callsFor(PyObject *object, PyRef &arguments, PyRef &keywords);
  /// Whether a form of a dict or set can have the object as a key.
  bool isKey(PyObject *object);
  /// Whether guards can compare such keys: they are plain, or members of enumerations, which the
  /// program holds from now on.
  bool knowsKey(PyObject *key);
  bool knowsKeys(PyObject *keys);
  std::optional<Expected> enterKnown(const Value &container, const Value &known, PyObject *object,
                                     const std::string &name);

  Guards &guards;
  Log &log;
  std::unordered_map<PyObject *, Value> entered;
  std::vector<External> externals;
  void fixKeys(PyObject *dict);
  std::vector<std::pair<PyRef, PyRef>> set, freeKeys; // dicts, with keys
  struct Number {
    PyRef held;
    int result;
    size_t record;
    bool fixed = false;
    int input = -1; // an input, in place of a result
    PyRef original = {};
  };
  /// A number in a register, found at a place that is known for holding another one in each call.
  struct NumberInput {
    Place place;
    Owner owner;
    PyRef of, key, original; // of: the object that has it, for an argument null
    std::string name;
    int reg = -1;
    bool fixed = false;
  };
  /// Notes the number in a new register, and returns its index.
  int addNumber(NumberInput number);
  PyRef copyOf(int input, PyObject *number);
  /// Loads a number that is known for being another one in each call.
  void loadNumber(Site &site, NumberInput number);
  Site *argumentSite(const std::string &name);
  void pushNumber(int input);
  void fixNumber(int input);
  void guardAt(Place place, const Owner &owner, PyObject *of, PyObject *key, Expected expected,
               const std::string &name);
  std::unordered_map<PyObject *, Number> numbers;
  std::vector<PyRef> targets, ownClasses;
  std::vector<PyRef> arrayMemory;
  std::vector<PyRef> attributes;                // of objects of this call
  std::unordered_map<PyObject *, bool> changed; // whether what it holds is known
  struct Tail {
    Py_ssize_t count = 0; // of the items at the end that the call has appended
    bool alone = true;    // whether the call has done nothing else to the list
  };
  std::unordered_map<PyObject *, Tail> tails;          // of lists
  std::unordered_map<PyObject *, Py_ssize_t> advanced; // for iterators, how far the call has come
  std::unordered_map<PyObject *, PyRef> ahead; // copies of containers that have been changed
  std::vector<Counter> counters;
  std::vector<Site> sites;
  std::vector<NumberInput> numberInputs;
  int pushed = -1;
  bool counting = false, pushes = false;
  std::string why;
  int depth = 0, freshCount = 0;
};

// Checks run in their order: one that loads a register stands ahead of those that look into what it
// loaded.
template <typename AddCheck>
bool Values::settle(PyObject *object, Expected expected, const std::string &name, AddCheck add) {
  bool loads = expected.kind == Expected::Load;
  int reg = expected.reg;
  const Value *known = loads ? find(object) : nullptr;
  int before = known ? known->index : -1;
  add(std::move(expected));
  if (loads && before >= 0)
    guards.identity({before, {}}, {reg, {}}, true, name);
  return !loads || before >= 0 || enterRegister(object, reg, name);
}

} // namespace weft::capture

#endif
