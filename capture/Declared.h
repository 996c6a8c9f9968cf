// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What functions and classes in C read and write. The Python side declares it once;
// python/weft/observe/declared.py says what each kind means. A call of anything that is not
// declared ends the observation.
#ifndef WEFT_CAPTURE_DECLARED_H
#define WEFT_CAPTURE_DECLARED_H

#include "capture/PyRef.h"

#include <string>

namespace weft::capture {

enum class Kind : uint8_t {
  None,
  Pure,       // takes plain arguments, also within containers, and gives a plain value
  Types,      // looks at its arguments' types alone
  Builds,     // reads its arguments' items, and makes a container or iterator of them
  Reads,      // a method that reads its container
  Changes,    // a method that changes its container
  Operation,  // an operation of torch, which goes into the log
  InPlace,    // an operation of torch that writes to its first argument
  Metadata,   // reads a property of a tensor, not its values
  Setting,    // a question to torch, which a replay asks again and compares
  State,      // sets a state of torch's for this thread, and goes into the log
  Statistics, // an operation of torch that writes running statistics in training mode
  Get,
  IsInstance,
  GetAttribute,
  HasAttribute,
  SetAttribute,
  Length,
  Type,
  Super,
  Next,
  Fold,     // sum, min, max of numbers or tensors
  Partial,  // functools.partial
  Any,      // any, all
  Referent, // calls a weak reference
  Asked,    // asked again by a replay, although it may run Python code
  Map,      // calls its first argument
  Fills,    // a method that changes its container, whatever that holds
  Prints,
  Warns,
  Logs,
  Autocast,      // sets what torch's autocast does, as State does, and puts it back
  Sort,          // sorted
  Address,       // id
  Arrays,        // a function of NumPy that reads numbers and arrays, and makes such
  ArrayWrites,   // one that writes to its first argument, an array
  Draws,         // a method of a generator of random numbers
  Same,          // gives its argument back, unless that belongs to a transform
  ApplyFunction, // a method of autograd.Function
  NewObject,
  NewTuple,
  OwnAttribute, // object.__getattribute__
  ContextGet,   // reads a contextvars.ContextVar; the next two set and reset it
  ContextSet,
  ContextReset,
  Bound,     // binds a function to an object
  Orders,    // reorders a list of plain values by comparing them
  Reduce,    // functools.reduce
  Filter,    // like Map, of a function whose results are tested for truth
  Sums,      // adds up plain items, as itertools.accumulate does
  Reduces,   // object.__reduce_ex__
  Signature, // inspect.signature
  Getter,    // operator.itemgetter, operator.attrgetter
  Backward,  // runs torch's autograd engine, which makes gradients
  RequiresGradient,
  Ignored,      // notes that others keep about an object, which a replay does not make
  MakeInstance, // type.__call__
  Namespace,    // types.SimpleNamespace
  Attributes,   // vars
  Counts,       // a method of Counter that counts how often items occur
  Seeds,        // sets the state of torch's own generator of random numbers
  Seeded,       // makes a generator of random numbers of NumPy's from a seed
  BuildsClass,
  GeneratesClass, // a function in Python that makes or extends a class by code of its own
  Compares,       // functools.cmp_to_key
  Locals,
  Filters, // warnings.simplefilter and the like
  Names,   // the number of kinds
};

/// The result has kind None for what is not declared.
Kind kindOf(PyObject *callable);
/// `names` are what declared.py calls the kinds, in their order from Pure on. False with an error
/// set.
bool declare(PyObject *callable, const char *name);

/// The functions in Python by which a log does what opcodes do.
struct Operators {
  PyObject *binary[26] = {}; // by the argument of BINARY_OP
  PyObject *compare[6] = {};
  PyObject *getItem = nullptr, *setItem = nullptr, *negative = nullptr, *positive = nullptr;
  PyObject *invert = nullptr, *truth = nullptr, *getAttribute = nullptr, *storage = nullptr;
  PyObject *tuple = nullptr, *snapshot = nullptr;
  PyObject *setAttribute = nullptr; // without the methods of classes in Python
  PyObject *deleteAttribute = nullptr, *deleteItem = nullptr, *setCell = nullptr;
  PyObject *setClassAttribute = nullptr, *deleteClassAttribute = nullptr;
  PyObject *array = nullptr, *arrayScalar = nullptr; // numpy.ndarray; numpy.number, without objects
  PyObject *overload = nullptr, *overloadPacket = nullptr, *isPure = nullptr; // of torch.ops
  PyObject *item = nullptr, *toList = nullptr;    // a tensor's, an array's
  PyObject *count = nullptr;                      // of a counter
  PyObject *overNumbers = nullptr;                // asks a function about a container of numbers
  PyObject *getLogger = nullptr, *copy = nullptr; // of the modules logging and copy
  PyObject *shareTensor = nullptr;                // the operation of a shallow copy
  PyObject *advance = nullptr;                    // takes an item of an iterator
  PyObject *runBackward = nullptr, *setGradient = nullptr, *setRequiresGradient = nullptr;
  PyObject *setData = nullptr, *tensorHash = nullptr;
  PyObject *listAppend = nullptr, *listExtend = nullptr;
  PyObject *disabledCode = nullptr, *disabled = nullptr, *dispatchCode = nullptr;
  PyObject *inPython = nullptr; // makes a function in Python of a callable
  PyObject *testedInPython = nullptr, *foldedInPython = nullptr; // of predicates; of sum, any, all
  PyObject *checkpoint = nullptr; // torch.utils.checkpoint's function
  PyObject *enterInference = nullptr, *leaveInference = nullptr; // of torch.inference_mode
  PyObject *pushInference = nullptr, *popInference = nullptr;    // the operations
  PyObject *deepCopy = nullptr, *deepCopyParameter = nullptr;    // the methods of tensors
  PyObject *copyTensor = nullptr;                                // the operation
  PyObject *answerOfCache = nullptr; // of functools.lru_cache, which does not count it
  PyObject *scriptFunction = nullptr,
           *isFunctional = nullptr;       // the type; whether one writes nothing
  PyObject *cachedPropertyCode = nullptr; // of functools.cached_property.__get__
  PyObject *reprCode = nullptr;           // of the function around the `__repr__` of each dataclass
  PyObject *optimizerCode = nullptr;      // of the function around each optimizer's step
  PyObject *isGradEnabled = nullptr, *context = nullptr;
  PyObject *generator = nullptr, *defaultGenerator = nullptr; // torch's class, its own one
  PyObject *generatorOfArrays = nullptr, *olderGeneratorOfArrays = nullptr; // NumPy's classes
  PyObject *generatorOfPython = nullptr;                                    // random.Random
  PyObject *counter = nullptr, *iter = nullptr;              // collections.Counter, the builtin
  PyObject *seedArrays = nullptr, *arrayGenerator = nullptr; // of NumPy
  PyObject *format = nullptr, *join = nullptr;               // the builtin; of a tuple of texts
  PyObject *begin = nullptr; // makes a generator of its function and arguments
  PyObject *enterFilters = nullptr, *leaveFilters = nullptr; // of warnings.catch_warnings
  PyObject *enterProfile = nullptr, *leaveProfile = nullptr; // of torch.profiler.record_function
  PyObject *pushFilters = nullptr, *popFilters = nullptr;    // the operations
  PyObject *warn = nullptr, *log = nullptr; // which are told the line that they tell of
};
Operators &operators();
/// A generator of random numbers of torch's.
inline bool isTorchGenerator(PyObject *object) {
  return (PyObject *)Py_TYPE(object) == operators().generator;
}
/// A generator of random numbers of torch's, NumPy's or Python's.
inline bool isGenerator(PyObject *object) {
  auto *type = (PyObject *)Py_TYPE(object);
  return type == operators().generator || type == operators().generatorOfArrays ||
         type == operators().olderGeneratorOfArrays || type == operators().generatorOfPython;
}
/// A collections.Counter.
inline bool isCounter(PyObject *object) {
  return (PyObject *)Py_TYPE(object) == operators().counter;
}
/// Whether the function calls another one in place of C, in a map that would have had that one.
bool isCalledForC(PyObject *function);
/// name: of a field, or "binary 3". False if there is none.
bool setOperator(const std::string &name, PyObject *function);

} // namespace weft::capture

#endif
