// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checks that decide, on every call and without running Python code, whether anything
// a program was specialised on has changed: attributes and members of modules and other
// objects, their classes, containers, closure cells, and torch's global state. Whatever is
// watched is held strongly, so that an address never comes to mean another object.
#ifndef WEFT_PYTHON_BINDINGS_OBJECTGUARDS_H
#define WEFT_PYTHON_BINDINGS_OBJECTGUARDS_H

#include "capture/PyRef.h"
#include "python/bindings/Footprint.h"

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

class ObjectGuards {
public:
  /// The object's class and its `__dict__`, or that it has none. free: a set of names whose values
  /// are compared by type alone.
  void watchObject(PyObject *object, PyObject *free = nullptr);
  /// Its items, and the order of an OrderedDict. free: a set of keys whose values are compared by
  /// type alone.
  void watchDict(PyObject *dict, PyObject *free = nullptr);
  /// Hooks, which PyTorch has to run: whether there are any.
  void watchHooks(PyObject *dict);
  /// Length and the items' identities. free: a set of the places of items that are compared by type
  /// alone.
  void watchList(PyObject *list, PyObject *free = nullptr);
  /// A set of plain values, by equality with a copy made now.
  void watchSet(PyObject *set);
  /// The bytes and the form of an object with the buffer protocol.
  void watchBuffer(PyObject *object);
  /// What lies outside of a function's `__dict__`: its code, its defaults and what it is called.
  void watchFunction(PyObject *function);
  /// What lies outside of a class's `__dict__`: its bases and what it is called.
  void watchType(PyObject *type);
  void watchCell(PyObject *cell);
  /// One name of a module's or function's namespace, by the value's identity, or its type alone.
  void watchName(PyObject *dict, PyObject *name, bool byType = false);
  /// All names of a namespace, whatever they stand for.
  void watchNames(PyObject *dict);
  /// What a function in C without arguments gives, by equality. It is called on every check.
  void watchAnswer(PyObject *function);

  /// From now on nothing is as it was.
  void expire() { expired = true; }

  /// Whether everything is as it was; never leaves a Python error behind.
  bool hold() const;
  /// Whether there are hooks now.
  bool hooked() const;

  /// What `hold` reads, but for what is rare: sets, orders, buffers and namespaces.
  Footprint footprint() const;

  int traverse(visitproc visit, void *arg) const;
  void clear();

private:
  /// A dict's items, in order. They are compared only after the dict has changed in some way: what
  /// was put back is as it was.
  struct DictGuard {
    PyRef dict;
    mutable uint64_t version = 0;
    std::vector<PyRef> items; // keys and values in turn
    std::vector<bool> isFree; // of each item, whether its value's type stands for it; or empty
    explicit DictGuard(PyObject *dict = nullptr, PyObject *free = nullptr);
    bool sameValue(size_t item, PyObject *value) const;
    bool holds() const;
    int traverse(visitproc visit, void *arg) const;
  };
  struct ObjectGuard {
    PyRef object;
    PyRef type;
    DictGuard attributes; // of no dict for an object without one
    unsigned typeVersion;
  };
  struct ContentGuard {
    PyRef container;
    PyRef copy;
  };
  struct ListGuard {
    PyRef list;
    std::vector<PyRef> items; // types in the place of free ones
    std::vector<bool> isFree;
    bool holds() const;
  };
  struct FunctionGuard {
    PyRef function;
    PyRef code, defaults, keywordDefaults;
    PyRef name, qualifiedName, module, doc, annotations;
    explicit FunctionGuard(PyFunctionObject *function);
    bool holds() const;
    int traverse(visitproc visit, void *arg) const;
  };
  struct TypeGuard {
    PyRef type;
    PyRef order; // in which methods are resolved
    PyRef name, qualifiedName;
    bool holds() const;
  };
  struct Name {
    PyRef name;
    PyRef value; // null when the name was absent; the value's type where that stands for it
    bool byType = false;
  };
  /// Names are looked up only after their namespace has changed in some way.
  struct NamespaceGuard {
    PyRef dict;
    std::vector<Name> names;
    mutable uint64_t version;
    PyRef all; // a set of the names there are, if that is watched
    bool holds() const;
  };
  struct BufferGuard {
    PyRef object;
    std::vector<Py_ssize_t> shape;
    std::string format;
    std::string bytes;
    bool read(PyObject *from);
    bool holds() const;
  };
  NamespaceGuard &namespaceGuard(PyObject *dict);

  std::vector<ObjectGuard> objects;
  std::vector<DictGuard> dicts;
  std::vector<PyRef> hooks;
  bool hadHooks = false;
  bool expired = false;
  std::vector<ListGuard> lists;
  std::vector<ContentGuard> sets;
  std::vector<ContentGuard> orders; // of keys, which a dict's version does not count
  std::vector<ContentGuard> cells;
  std::vector<FunctionGuard> functions;
  std::vector<TypeGuard> types;
  std::vector<NamespaceGuard> namespaces;
  std::vector<BufferGuard> buffers;
  std::vector<ContentGuard> answers; // of functions
};

/// torch's state that changes what an operation does.
class GlobalState {
public:
  /// Takes the state of the calling thread as the one to compare with.
  GlobalState();
  bool holds() const;
  int traverse(visitproc visit, void *arg) const;
  void clear();

private:
  PyRef check; // torch._C._dynamo.guards.GlobalStateGuard().check
  bool inferenceMode;
};

/// True while a function mode, a dispatch mode, a functorch transform or forward-mode
/// differentiation is active, under which an operation may mean anything.
bool interpositionActive();

} // namespace weft

#endif
