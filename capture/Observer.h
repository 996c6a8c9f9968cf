// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Watches one call run in the real interpreter, opcode by opcode, and makes of it a log of
// operations and the guards under which the log stands for the call. The first construct whose
// reads, writes and aliases are not known ends the observation; the call itself goes on.
//
// Ahead of an opcode its operands are looked at, and behind it, at the frame's next event, its
// result. Observer.cpp has the frames, ObserverRecords.cpp what goes into the log,
// ObserverOpcodes.cpp the opcodes, ObserverOperators.cpp operators, ObserverIterators.cpp
// iteration, ObserverKeys.cpp keys, ObserverCalls.cpp, ObserverDeclared.cpp and ObserverMethods.cpp
// calls, ObserverFunctions.cpp those of autograd.Function, ObserverThrough.cpp and
// ObserverCopies.cpp those of a few functions in Python, ObserverArrays.cpp NumPy,
// ObserverHistories.cpp lists that grow, ObserverAttributes.cpp attributes, ObserverClasses.cpp
// those of classes, and ObserverEffects.cpp what is done to the world outside, ObserverTelling.cpp
// what that is told.
#ifndef WEFT_CAPTURE_OBSERVER_H
#define WEFT_CAPTURE_OBSERVER_H

#include "capture/Declared.h"
#include "capture/Frame.h"
#include "capture/Interpreter.h"
#include "capture/Observation.h"
#include "capture/Values.h"

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weft::capture {

class Observer {
public:
  /// `refusal`: an exception type, or null. It takes the reason and the line, and breaks the call
  /// off as soon as it is known that no program will stand for the call, if the call has done
  /// nothing yet. `sites`: places known for holding something else in each call.
  Observer(Observation &observation, PyObject *refusal, std::vector<Site> sites)
      : guards(observation.guards), log(observation.log), values(guards, log),
        observation(observation), refusal(refusal) {
    values.expectAt(std::move(sites));
  }

  /// Makes the call, and observes it as far as it can.
  void run(PyObject *target, PyObject *args, PyObject *kwargs);
  /// False with an error set: the call is broken off.
  bool guardedEvent(PyFrameObject *frame, int what, PyObject *argument) noexcept;

private:
  void event(PyFrameObject *frame, int what, PyObject *argument);

  using Counter = Frame::Counter;
  using Arguments = std::span<PyObject *const>;

  // Frames.
  bool enterCall(PyObject *target, PyObject *args, PyObject *kwargs);
  bool giveInstead(Py_ssize_t number, PyObject *keyword, PyRef object, PyObject *args,
                   PyObject *kwargs);
  void enterFrame(PyFrameObject *frame);
  bool enterFunction(PyObject *function);
  Frame &current(PyFrameObject *frame);
  void finish(Frame &frame);
  void enterMade(PyObject *object);
  static std::string textOf(const Pending &pending);
  bool appendRecord(Frame &frame, PyObject *outcome);
  bool finishRun(PyObject *value);
  void returns(PyFrameObject *frame, PyObject *value);
  bool isForeign(PyFrameObject *frame) const;
  void stop();
  bool refuses();
  std::string reason() const;

  // Opcodes.
  bool opcode(Frame &frame, const interpreter::Instruction &instruction);
  bool global(Frame &frame, int argument);
  bool truth(Frame &frame, PyObject *object);
  bool unary(Frame &frame, PyObject *object, PyObject *function, const char *method);
  bool binary(Frame &frame, int argument, PyObject *left, PyObject *right);
  bool compare(Frame &frame, int argument, PyObject *left, PyObject *right);
  /// Whether an object can be a key beside those of the set or dict, null for none: it is plain, or
  /// its identity is compared.
  bool isKey(PyObject *container, PyObject *object);
  bool haveKeys(PyObject *container);
  void guardKeyMethods(PyObject *object);
  bool readsKey(PyObject *object);
  /// Whether the frame is that of a method by which a dict knows a key, whose fields have been
  /// read: what it gives follows from them.
  static bool isOfKey(PyFrameObject *frame);
  /// Whether guards can look for the object in dicts from outside: it is plain, a member of an
  /// enumeration, a key by its value, or an object that the program holds and knows by its address.
  bool isLookupKey(PyObject *object);
  bool contains(Frame &frame, PyObject *container, PyObject *item);
  bool subscript(Frame &frame, PyObject *container, PyObject *key);
  bool storeSubscript(Frame &frame, PyObject *container, PyObject *key, PyObject *value);
  bool iterate(Frame &frame, PyObject *iterable);
  bool unpack(Frame &frame, PyObject *sequence, int count);
  bool step(Frame &frame, PyObject *iterator);
  /// Takes the next item of an iterator from outside whose position is known.
  bool takesNext(Frame &frame, PyObject *iterator);
  /// itertools.groupby, and functools.cmp_to_key.
  bool groups(Frame &frame, Arguments arguments, PyObject *names);
  bool comparesBy(Frame &frame, Arguments arguments);
  /// Whether it makes keys that a function in Python compares.
  bool isComparison(PyObject *object);
  bool knowsLengths(PyObject *items);
  bool cell(Frame &frame, int argument, bool reads, bool deletes);
  /// Reads the variables of outer functions, which locals() gives with the frame's own.
  bool readsVariables(Frame &frame);
  bool import(Frame &frame, PyObject *name, PyObject *level);

  // Calls.
  bool call(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  bool callSpread(Frame &frame, PyObject *callable, PyObject *args, PyObject *kwargs);
  bool callDeclared(Frame &frame, Kind kind, PyObject *callable, Arguments arguments,
                    PyObject *names);
  /// `plainly`: as type.__call__ does, whatever the metaclass makes of it.
  bool callClass(Frame &frame, PyTypeObject *type, Arguments arguments, PyObject *names,
                 bool plainly);
  bool runsPython(PyObject *callable);
  bool callGetter(Frame &frame, PyObject *getter, Arguments arguments, PyObject *names);
  bool callsForMatches(Frame &frame, const std::string &what);
  bool callReduce(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  /// itertools.accumulate.
  bool accumulates(Frame &frame, Arguments arguments, PyObject *names, const std::string &what);
  bool givesToKeys(PyObject *object);
  bool looksUp(PyObject *method);
  bool sorts(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  bool orders(Frame &frame, Arguments arguments, PyObject *names, const std::string &what);
  bool sortsByKey(Arguments arguments, PyObject *names);
  bool takesEntries(PyObject *function, Arguments taken);
  bool callMap(Frame &frame, Kind kind, PyObject *callable, Arguments arguments);
  bool callContext(Frame &frame, Kind kind, Arguments arguments, PyObject *names);
  bool signature(Frame &frame, Arguments arguments, PyObject *names);
  bool enterSignature(PyObject *signature);
  bool callCached(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  bool endCached(Frame &frame, PyObject *value);
  bool isCopying(const Frame &frame);
  /// Whether the object's address is the same in each call, as the program holds the object.
  bool hasKnownAddress(PyObject *object);
  /// Python's module copy knows by its address what it has copied.
  bool comparesAddress(PyObject *object);
  bool sharesTensor(Frame &frame, PyObject *tensor);
  bool copiesTensor(Frame &frame, PyObject *tensor, PyObject *memo);
  void enterMemo(PyObject *memo);
  /// Calls a function that torch.compile is told to leave alone, by code of TorchDynamo's that is
  /// not observed.
  bool callDisabled(Frame &frame, PyObject *function, Arguments arguments, PyObject *names);
  /// A function in Python that calls `function`, for what C would call unobserved. It takes that
  /// one's place among the operands of the instruction. Null if that is not there. `maker`: makes
  /// another function of it than one that only calls it.
  PyObject *calledInPython(Frame &frame, PyObject *function, PyObject *maker = nullptr);
  /// Calls a loop in Python in place of sum, any or all, if `items` are what C would iterate over
  /// unobserved. False without a reason if it does not.
  bool foldsByLoop(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  /// Whether a function in Python can call it in C's place: it does not look at its caller.
  bool mayBeCalledInPython(PyObject *function);
  bool callCheckpoint(Frame &frame, Arguments arguments, PyObject *names);
  bool isWithinCheckpoint() const;
  /// Calls what functools.singledispatch finds for a class.
  bool callDispatch(Frame &frame, PyObject *function, Arguments arguments);
  /// Enters or leaves torch.inference_mode.
  bool setsInference(PyObject *function, std::span<PyObject *const> locals);
  bool reduces(Frame &frame, Arguments arguments, PyObject *names);
  void enterReduced(PyObject *part);
  bool matchKeys(Frame &frame, PyObject *subject, PyObject *keys);
  bool matchClass(Frame &frame, PyObject *subject, PyObject *type, PyObject *names);
  bool callMethod(Frame &frame, Kind kind, PyObject *callable, Arguments arguments,
                  PyObject *names);
  bool isInstance(Frame &frame, PyObject *object, PyObject *type);
  bool getsKeys(Frame &frame, Arguments arguments, PyObject *names);
  bool foldsInPython(PyObject *items, bool adds);
  bool fold(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  bool callFunction(Frame &frame, PyObject *bound, Arguments arguments, PyObject *names);
  bool endNode();
  bool isContextSetting(PyObject *object, PyObject *name);
  bool callArrays(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  bool draws(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  bool seeds(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  /// Notes a generator of torch's whose state an operation changes.
  bool keepGenerator(PyObject *generator);
  /// From now on the program depends on the values of its items.
  bool readArray(Frame &frame, PyObject *array);
  /// The operation that is about to be recorded writes to the array, which may be from outside.
  bool writesArray(PyObject *array);
  /// Whether the call has written to the array, or to one from outside of which it is a view.
  bool wasWritten(PyObject *array);
  bool arrayAttribute(Frame &frame, PyObject *array, PyObject *name);
  bool callPartial(Frame &frame, PyObject *partial, Arguments arguments, PyObject *names);
  bool yields(PyObject *value, bool byGenerator = false);
  /// A map of this call that calls a function in Python for each item.
  bool isMap(PyObject *object);
  bool isPlainMap(PyObject *object);
  /// The items, as a list, of a view of a dict of this call or of what answers as a list.
  PyRef itemsOf(PyObject *object);
  bool changesItem(Frame &frame, Arguments operands);

  // Histories.
  bool isMovingHistory(PyObject *object);
  bool isHistoryOfNumbers(PyObject *object);
  /// Reads an item, or the last items, by their places from the end; false without a reason if
  /// these are not the same in each call.
  bool readsLastItem(PyObject *list, Py_ssize_t i);
  bool readsWindow(PyObject *list, PyObject *slice);
  /// Takes a part of a history of numbers that is only asked for its length, sum or the like; false
  /// without a reason for any other part.
  bool opensWindow(Frame &frame, PyObject *list, PyObject *slice);
  bool isOnlyAsked(Frame &frame);
  void noteWindow(PyObject *items, const Pending &pending);
  /// A call that takes such a part.
  bool asksWindow(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  bool isWindow(PyObject *object) const;
  /// Records a question to a history, whose answer is another number in each call.
  bool asksHistory(Frame &frame, PyObject *callable, Arguments arguments);

  // Gradients.
  bool goesBackward(Frame &frame, Arguments arguments, PyObject *names);
  void noteGradients();
  bool readHooks(PyObject *tensor);
  /// Notes that the call changes the attribute `grad` of a tensor.
  bool changesGradient(PyObject *tensor);
  bool gradient(Frame &frame, PyObject *tensor, PyObject *name);
  bool setsGradient(Frame &frame, PyObject *tensor, PyObject *name, PyObject *value);
  bool requiresGradient(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);

  // Attributes.
  bool attribute(Frame &frame, PyObject *object, PyObject *name);
  void guardDescriptor(PyObject *found);
  bool ownAttribute(Frame &frame, PyObject *object, PyObject *name);
  bool typeAttribute(Frame &frame, PyTypeObject *type, PyObject *name);
  /// Reads what looking the name up in the class gives. `counts`: it is read as a counter of the
  /// class itself is. `entered`: whether more is known of it than that it was found, and it is not
  /// code.
  bool readClass(PyTypeObject *type, PyObject *name, PyObject *found, bool counts, bool &entered);
  /// `value`: null to delete the attribute.
  bool storeClass(Frame &frame, PyTypeObject *type, PyObject *name, PyObject *value);
  // Classes that the call makes.
  bool areBases(Arguments bases);
  bool buildsClass(Frame &frame, Arguments arguments, PyObject *names);
  bool callType(Frame &frame, Arguments arguments, PyObject *names);
  bool generatesClass(Frame &frame, PyObject *callable, Arguments arguments);
  /// `global`: the index of a global's name, or -1 for the cell `cellOf`.
  bool nameInBody(Frame &frame, PyObject *name, int global, int cellOf);
  bool superAttribute(Frame &frame, PyObject *object, PyObject *name);
  bool tensorAttribute(Frame &frame, PyObject *object, PyObject *found, PyObject *name);
  bool instanceAttribute(Frame &frame, PyObject *object, PyObject *name);
  bool dataDescriptor(Frame &frame, PyObject *object, PyObject *descriptor, PyObject *name);
  bool readInstance(PyObject *object, PyObject *name);
  bool setsAttribute(Frame &frame, PyObject *object, PyObject *name, PyObject *value);
  bool storeDescriptor(Frame &frame, PyObject *descriptor, PyObject *value,
                       const std::string &text);
  bool storeOwn(Frame &frame, PyObject *object, PyObject *name, PyObject *value);
  bool storeAttribute(Frame &frame, PyObject *object, PyObject *name, PyObject *value);

  // Counters.
  bool loadsCounter(Frame &frame, int store, int argument, size_t below, PyObject *object,
                    PyObject *key);
  bool beginStore(Frame &frame, Counter &counter, PyObject *object, PyObject *key);
  void endStore(const Counter &counter);
  /// `load`, `store`: what the instruction itself does.
  template <typename Load>
  bool loadCounter(Frame &frame, int store, int argument, size_t below, PyObject *object,
                   PyObject *key, Load load) {
    bool counts = !nodes && loadsCounter(frame, store, argument, below, object, key);
    values.expectCounter(counts);
    values.expectNumber(!nodes);
    bool loaded = load();
    values.expectNumber(false);
    values.expectCounter(false);
    return loaded;
  }
  template <typename Store>
  bool storeCounter(Frame &frame, PyObject *object, PyObject *key, Store store) {
    if (!frame.counter.object)
      return store();
    Counter counter = std::exchange(frame.counter, {});
    bool ends = beginStore(frame, counter, object, key);
    bool stored = store();
    if (ends)
      endStore(counter);
    return stored;
  }
  // Numbers, and texts that tell of them.
  /// Records a call of a function that makes a text of what may be another number in each call.
  bool makesText(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  /// FORMAT_VALUE and BUILD_STRING; false without a reason for a text that tells of no such number.
  bool formats(Frame &frame, PyObject *value, PyObject *spec);
  bool joins(Frame &frame, Arguments parts);
  /// C is about to look at what the texts are, so that the program depends on them.
  void fixTexts(Arguments taken);
  void takeNumber(Frame &frame);
  PyObject *ownResult(Frame &frame, PyObject *top);
  void compareOriginals(Frame &frame);
  /// C is about to look at the numbers that a call or an instruction takes, unless they go into a
  /// record or are handed on.
  void fixTaken(Frame &frame, Arguments taken);
  void fixOperands(Frame &frame, int opcode, int argument);
  /// C has asked a method in Python for what it gives.
  void fixGiven(PyFrameObject *frame, PyObject *value);
  bool carries(Frame &frame) { return frame.pending.carries = true; }

  bool countsInModule(Frame &frame, PyObject *object, PyObject *name, PyObject *value);

  // For all.
  /// Records a call of `callable`, whose outcome is the frame's next top.
  bool operation(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  /// Records that an entry of a dict from outside is set. `object`: whose dict it is; null if the
  /// dict stands for itself.
  bool setsEntry(Frame &frame, PyObject *dict, PyObject *object, PyObject *key, PyObject *value);
  /// Records that an item of a list from outside is set.
  bool setsItem(Frame &frame, PyObject *list, PyObject *key, PyObject *value);
  /// Records that an entry of `__slots__` is set.
  bool setsSlot(Frame &frame, PyObject *object, PyObject *slot, PyObject *name, PyObject *value);
  /// Records what changes the world outside; objects that it stores are made to last.
  bool effect(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  bool keepState(PyObject *object, PyObject *key);
  /// Records that a method changes a container from outside, its first argument. `whole`: what it
  /// does depends on what the container holds.
  bool changes(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names, bool whole);
  /// Records that a list from outside gets what a generator gives.
  bool extends(Frame &frame, PyObject *list);
  void endExtension(const Pending &pending);
  /// Records that the tensor is given other memory, of the same form.
  bool setsData(Frame &frame, PyObject *tensor, PyObject *value);
  bool setsCell(Frame &frame, PyObject *cell, PyObject *value, const std::string &name);
  bool tells(Frame &frame, PyObject *callable, std::vector<PyRef> arguments, PyObject *names);
  bool prints(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  /// Whether its text is that of tensors and plain values in containers of Python's, which are
  /// read.
  bool tellsContents(PyObject *object);
  /// A method in Python gives the text of what is printed.
  bool takesText(PyFrameObject *frame, PyObject *value);
  bool warns(Frame &frame, Arguments arguments, PyObject *names);
  /// Appends a record that enters a context of Python by `enter`, with `set` as its argument, or
  /// leaves the innermost one by `leave`. `noted` says whether the depth before the call is kept.
  bool logContext(PyObject *enter, PyObject *leave, PyObject *set, bool enters, bool &noted);
  bool profiles(std::span<PyObject *const> locals);
  /// warnings.catch_warnings is entered or left.
  bool setsFilters(PyObject *function, std::span<PyObject *const> locals);
  bool filtersWarnings(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  bool logs(Frame &frame, Arguments arguments, PyObject *names);
  /// Begins the record of a call of what is given as it is.
  bool beginRecord(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  /// Records a call of a function in Python or C that a replay asks again.
  bool asks(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  /// The operation that is pending will write to the tensor.
  bool writes(Frame &frame, PyObject *tensor);
  /// The same for a tensor, or for all tensors of a list.
  bool writesTo(Frame &frame, PyObject *tensors);
  bool inPlace(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names);
  /// Whether an operand has a class in Python whose methods may answer; these methods are guarded.
  bool answersInPython(PyObject *object, std::initializer_list<const char *> methods);
  /// Guards the name of a class, also within a tuple or list, as a text may tell it.
  void guardNames(PyObject *object);
  void guardMethods(PyObject *object, std::initializer_list<const char *> methods);
  /// The class in C that answers a method for the object: its own, or the one that its class
  /// derives from. Null if Python code answers, or nothing.
  PyTypeObject *answering(PyObject *object, const char *method);
  bool answersAsDict(PyObject *object, const char *method);
  /// Whether the call made the object, and a class in C answers for it.
  bool isOfC(PyTypeObject *answers, PyObject *object);
  bool truthOf(Frame &frame, PyObject *object);
  bool lengthOf(Frame &frame, PyObject *object, const char *method);
  bool iterableItems(Frame &frame, PyObject *object);
  /// Whether a subscript of the class is C's, as in list[int], whatever the subscript is.
  bool makesAlias(PyObject *type);
  bool answersInClass(PyObject *type, const char *method);
  bool subscriptsClass(Frame &frame, PyTypeObject *type);
  /// Whether the object is a class, an expression such as list[int], or a union of these, which C
  /// puts into unions.
  bool isTypeExpression(PyObject *object);
  /// Reads an entry of a dict, or of what answers as one.
  bool readEntry(Frame &frame, PyObject *dict, PyObject *key);
  bool addsEntry(Frame &frame, PyObject *dict, PyObject *key);
  /// Whether the object's class in Python has a generator for `__iter__`.
  bool iteratesByGenerator(PyObject *object);
  /// Whether all that iterating over the object gives is plain.
  bool hasPlainItems(PyObject *object);
  /// Whether the argument is one that a defaultdict can be made with.
  static bool isFactoryOf(PyObject *type, PyObject *argument, PyObject *first);
  bool isNumberLike(PyObject *object); // plain, or a number or text of a class in Python
  /// Whether the two are compared for equality without Python code; guards what the comparison
  /// reads.
  bool comparesAlone(PyObject *left, PyObject *right);
  /// Whether the two are lists or tuples whose items are plain or compared in Python; guards what
  /// comparing them for equality reads itself.
  bool comparesItems(PyObject *left, PyObject *right);
  bool isTensor(PyObject *object);
  bool isPlain(PyObject *object) { return values.isPlain(object); }
  /// Whether one of them is a float that may be another in each call, and the rest are numbers.
  bool takeNumbers(Arguments arguments);
  /// Whether sizes of what an operation gives may follow from data.
  bool sizesDependOnData(PyObject *callable, std::string_view what, Arguments arguments);
  bool allUsable(Arguments arguments, const std::string &what);
  /// The function in Python that gives the object's text; null if none does.
  PyObject *tellerOf(PyObject *object);
  /// The function in Python that C calls for such a method of the object; null if there is none.
  PyObject *methodOf(PyObject *object, const char *method);
  bool asksMethod(Frame &frame, PyObject *function, const std::string &what);
  /// Whether the text of an error that the call has made is the text of its arguments, which are
  /// plain.
  bool tellsArguments(PyObject *error);
  /// Reads the whole contents, which are plain.
  bool isPlainWithin(PyObject *object);
  /// Reads what iterating over the object gives, which must have entered.
  bool readIterable(Frame &frame, PyObject *object);
  /// Reads what a dict can be made of: the object is a dict, or iterating over it gives pairs,
  /// which C takes apart.
  bool readPairs(Frame &frame, PyObject *object);
  bool readPair(PyObject *pair); // that C takes apart
  bool expect(Frame &frame, Then then, bool python, std::string what = "");
  std::string here();
  /// Reads what the program asks of a tensor, by the name of the method or attribute.
  void noteMetadata(std::string_view name);

  Guards &guards;
  Log &log;
  Values values;
  Observation &observation;
  PyObject *refusal;
  bool ahead = false; // of an opcode: it has not run
  std::vector<Frame> frames;
  std::unordered_map<PyObject *, std::string> declaredNames;
  std::vector<PyObject *> settings; // what the log has asked for since a setting was last changed
  bool over = false;
  Counter *counting = nullptr;        // the value that is being stored
  std::vector<PyRef> writtenArrays;   // from outside
  PyRef givenArgs, givenKwargs;       // arguments with which the call is made instead
  std::vector<PyRef> redirected;      // tensors that have been given other memory
  std::vector<PyObject *> generators; // generators of random numbers whose state is kept
  bool casts = false;                 // whether the call has set what torch's autocast does
  bool infers = false;                // whether the call has set the inference mode
  bool filters = false;               // whether the call has set filters of warnings
  std::vector<bool> silent;           // whether warnings.catch_warnings catches all, innermost last
  int nodes = 0;                      // calls of autograd.Function that are one operation
  bool nodeDataSized = false;         // an operation within gave sizes that follow from data
  size_t nodeBegin = 0;               // the position in the log where the latest one began
  int nodeResults = 0;
  /// Context variables that the call has set and not yet reset, with what each is set to.
  struct ContextValue {
    PyRef variable, value, token;
  };
  std::vector<ContextValue> contexts;
  /// Parts of histories, which are only asked about, with the length of the log ahead of them.
  struct Window {
    PyRef items, history, slice;
    size_t logged;
  };
  std::vector<Window> windows;
  std::vector<PyRef> accumulated; // tensors from outside whose gradients the call changes
  std::vector<PyRef> tested;      // functions whose results C tests for truth
  // Objects from outside of which copies have been made: those that the program holds, and others.
  std::vector<PyRef> addressed, addressedArguments;
  struct CopiedTensor {
    PyRef tensor, memo;
  };
  std::vector<CopiedTensor> copied;
  std::vector<PyRef> plainMaps;
  std::vector<PyRef> maps; // maps that call a function in Python for each item
};

/// count(target, key, function, step): sets a counter, which is an entry of a dict, an attribute of
/// an object or what a cell holds, to function(what it is, step).
PyObject *count(PyObject *, PyObject *args);
/// advance(iterator): takes an item of an iterator, if there is one left.
PyObject *advance(PyObject *, PyObject *iterator);
/// position_of(iterator): where an iterator is, as set_position(iterator, position) takes it.
PyObject *positionOf(PyObject *, PyObject *iterator);
PyObject *setPosition(PyObject *, PyObject *args);
PyObject *positioned(PyObject *, PyObject *iterator);
/// Whether the object is a dict or an OrderedDict and of no derived class, which may answer
/// otherwise.
bool isDict(PyObject *object);
/// Whether a function keeps its results, by functools.lru_cache.
bool isCached(PyObject *callable);
/// The callable's name, for people.
std::string nameOf(PyObject *callable);

} // namespace weft::capture

#endif
