// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layout of CPython 3.11's iterators. One that is made of others is stepped by C itself, and
// then put back: what it keeps, and the positions of those that it is made of.
#include "capture/Imported.h"
#include "capture/Iterators.h"

#include <algorithm>
#include <unordered_map>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030C0000
#error "iterators are read as CPython 3.11 keeps them"
#endif

namespace weft::capture::interpreter {

namespace {

/// The iterators of lists and of tuples; that of a reversed list; reversed, of a tuple.
struct ItemIterator {
  PyObject_HEAD Py_ssize_t index;
  PyObject *items; // null at the end
};
struct RangeIterator {
  PyObject_HEAD long index, start, step, length;
};
struct Count {
  PyObject_HEAD Py_ssize_t next; // PY_SSIZE_T_MAX if it counts by other objects
  PyObject *other, *step;
};
struct Repeat {
  PyObject_HEAD PyObject *element;
  Py_ssize_t left;
};
struct Enumerate {
  PyObject_HEAD Py_ssize_t index;
  PyObject *inner, *pair, *longIndex;
};
struct Zip {
  PyObject_HEAD Py_ssize_t count;
  PyObject *inner, *items; // tuples
  int strict;
};
struct Cycle {
  PyObject_HEAD PyObject *inner, *saved; // null behind the first round; a list
  Py_ssize_t index;
  int kept; // whether the first round keeps no items
};
struct Slice {
  PyObject_HEAD PyObject *inner; // null at the end
  Py_ssize_t next, stop, step, taken;
};
struct Chain {
  PyObject_HEAD PyObject *source, *active;
};
struct Pairwise {
  PyObject_HEAD PyObject *inner, *last;
};

enum class Kind {
  None,
  Items,
  Back,
  Range,
  Count,
  Repeat,
  Enumerate,
  Zip,
  Cycle,
  Slice,
  Chain,
  Pairwise
};

} // namespace

template <typename Layout> static Layout *as(PyObject *iterator) {
  return reinterpret_cast<Layout *>(iterator);
}

static PyTypeObject *ofItertools(const char *name) {
  return reinterpret_cast<PyTypeObject *>(imported("itertools", name).release());
}

static Kind kindOf(PyObject *iterator) {
  static PyTypeObject *const count = ofItertools("count");
  static PyTypeObject *const repeat = ofItertools("repeat");
  static PyTypeObject *const cycle = ofItertools("cycle");
  static PyTypeObject *const slice = ofItertools("islice");
  static PyTypeObject *const chain = ofItertools("chain");
  static PyTypeObject *const pairwise = ofItertools("pairwise");
  PyTypeObject *type = Py_TYPE(iterator);
  return type == &PyListIter_Type || type == &PyTupleIter_Type     ? Kind::Items
         : type == &PyListRevIter_Type || type == &PyReversed_Type ? Kind::Back
         : type == &PyRangeIter_Type                               ? Kind::Range
         : type == &PyEnum_Type                                    ? Kind::Enumerate
         : type == &PyZip_Type                                     ? Kind::Zip
         : type == count                                           ? Kind::Count
         : type == repeat                                          ? Kind::Repeat
         : type == cycle                                           ? Kind::Cycle
         : type == slice                                           ? Kind::Slice
         : type == chain                                           ? Kind::Chain
         : type == pairwise                                        ? Kind::Pairwise
                                                                   : Kind::None;
}

/// The iterators that it is made of, borrowed; null for those that have come to their end.
static std::vector<PyObject *> partsOf(PyObject *iterator) {
  std::vector<PyObject *> parts;
  switch (kindOf(iterator)) {
  case Kind::Enumerate:
    return {as<Enumerate>(iterator)->inner};
  case Kind::Zip:
    for (Py_ssize_t i = 0; i < as<Zip>(iterator)->count; ++i)
      parts.push_back(PyTuple_GET_ITEM(as<Zip>(iterator)->inner, i));
    return parts;
  case Kind::Cycle:
    return {as<Cycle>(iterator)->inner};
  case Kind::Slice:
    return {as<Slice>(iterator)->inner};
  case Kind::Chain:
    return {as<Chain>(iterator)->source, as<Chain>(iterator)->active};
  case Kind::Pairwise:
    return {as<Pairwise>(iterator)->inner};
  default:
    return {};
  }
}

static bool isSequence(PyObject *object) {
  return PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyRange_Check(object);
}

static bool isNumber(PyObject *object) {
  return object && (PyLong_CheckExact(object) || PyFloat_CheckExact(object));
}

bool hasPosition(PyObject *iterator) {
  Kind kind = kindOf(iterator);
  if (kind == Kind::None)
    return false;
  if (kind == Kind::Back) {
    PyObject *items = as<ItemIterator>(iterator)->items;
    return !items || PyList_CheckExact(items) || PyTuple_CheckExact(items);
  }
  if (kind == Kind::Count) {
    auto *count = as<Count>(iterator);
    bool known = !count->other || isNumber(count->other); // null until it passes 64 bits
    return count->next != PY_SSIZE_T_MAX || (known && isNumber(count->step));
  }
  if (kind == Kind::Chain && as<Chain>(iterator)->source) { // it iterates over what that gives
    PyObject *source = as<Chain>(iterator)->source;
    PyObject *all = kindOf(source) == Kind::Items ? as<ItemIterator>(source)->items : nullptr;
    for (Py_ssize_t i = 0; all && PyTuple_Check(all) && i < PyTuple_GET_SIZE(all); ++i)
      if (!isSequence(PyTuple_GET_ITEM(all, i)))
        return false;
    if (kindOf(source) != Kind::Items || (all && !PyTuple_Check(all)))
      return false;
  }
  std::vector<PyObject *> parts = partsOf(iterator);
  return std::ranges::all_of(parts, [](PyObject *each) { return !each || hasPosition(each); });
}

/// How many positions hold an iterator.
static std::unordered_map<PyObject *, Py_ssize_t> &holders() {
  static auto *all = new std::unordered_map<PyObject *, Py_ssize_t>;
  return *all;
}

static void release(PyObject *holder) {
  auto *part = static_cast<PyObject *>(PyCapsule_GetPointer(holder, nullptr));
  if (--holders()[part] == 0)
    holders().erase(part);
  Py_DECREF(part);
}

/// What holds an iterator for a position; None for null. New reference.
static PyObject *hold(PyObject *part) {
  PyObject *holder = part ? PyCapsule_New(part, nullptr, release) : Py_NewRef(Py_None);
  if (part && holder) {
    Py_INCREF(part);
    ++holders()[part];
  }
  return holder;
}

bool isAlone(PyObject *iterator) {
  std::vector<PyObject *> parts = partsOf(iterator);
  return std::ranges::all_of(parts, [](PyObject *each) {
    auto held = each ? holders().find(each) : holders().end();
    Py_ssize_t own = held == holders().end() ? 0 : held->second;
    return !each || (Py_REFCNT(each) == 1 + own && isAlone(each));
  });
}

/// A tuple of the objects, new references, null standing for None.
static PyRef pack(std::initializer_list<PyObject *> objects) {
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(objects.size())));
  Py_ssize_t i = 0;
  for (PyObject *each : objects)
    if (tuple)
      PyTuple_SET_ITEM(tuple.get(), i++, each ? each : Py_NewRef(Py_None));
  return tuple;
}

static PyRef ownPosition(PyObject *iterator) {
  auto number = [](Py_ssize_t value) { return PyLong_FromSsize_t(value); };
  switch (kindOf(iterator)) {
  case Kind::Items:
  case Kind::Back: {
    auto *over = as<ItemIterator>(iterator);
    return pack({Py_XNewRef(over->items), number(over->index)});
  }
  case Kind::Range:
    return pack({number(as<RangeIterator>(iterator)->index)});
  case Kind::Count:
    return pack({Py_XNewRef(as<Count>(iterator)->other), number(as<Count>(iterator)->next)});
  case Kind::Repeat:
    return pack({number(as<Repeat>(iterator)->left)});
  case Kind::Enumerate:
    return pack(
        {Py_XNewRef(as<Enumerate>(iterator)->longIndex), number(as<Enumerate>(iterator)->index)});
  case Kind::Cycle: {
    auto *cycle = as<Cycle>(iterator); // behind the first round it keeps no more items
    return pack({cycle->inner ? PySequence_Tuple(cycle->saved) : nullptr, number(cycle->index)});
  }
  case Kind::Slice:
    return pack({number(as<Slice>(iterator)->next), number(as<Slice>(iterator)->taken)});
  case Kind::Pairwise:
    return pack({Py_XNewRef(as<Pairwise>(iterator)->last)});
  default:
    return pack({});
  }
}

PyRef positionOf(PyObject *iterator) {
  if (!hasPosition(iterator)) {
    PyErr_SetString(PyExc_TypeError, "expected an iterator whose position is known");
    return {};
  }
  std::vector<PyObject *> parts = partsOf(iterator);
  PyRef own = ownPosition(iterator);
  PyRef inner = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(parts.size())));
  for (size_t i = 0; own && inner && i < parts.size(); ++i) {
    PyRef position = parts[i] ? positionOf(parts[i]) : PyRef::borrow(Py_None);
    PyRef holder = PyRef::steal(position ? hold(parts[i]) : nullptr);
    PyRef pair = holder ? pack({holder.release(), position.release()}) : PyRef();
    if (!pair)
      return {};
    PyTuple_SET_ITEM(inner.get(), static_cast<Py_ssize_t>(i), pair.release());
  }
  return own && inner ? pack({own.release(), inner.release()}) : PyRef();
}

static void put(PyObject *&place, PyObject *object) {
  Py_XSETREF(place, !object || object == Py_None ? nullptr : Py_NewRef(object));
}

static void setOwnPosition(PyObject *iterator, PyObject *own) {
  auto object = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(own, i); };
  auto number = [&](Py_ssize_t i) { return PyLong_AsSsize_t(object(i)); };
  switch (kindOf(iterator)) {
  case Kind::Items:
  case Kind::Back:
    as<ItemIterator>(iterator)->index = number(1);
    put(as<ItemIterator>(iterator)->items, object(0));
    return;
  case Kind::Range:
    as<RangeIterator>(iterator)->index = static_cast<long>(number(0));
    return;
  case Kind::Count:
    as<Count>(iterator)->next = number(1);
    put(as<Count>(iterator)->other, object(0));
    return;
  case Kind::Repeat:
    as<Repeat>(iterator)->left = number(0);
    return;
  case Kind::Enumerate:
    as<Enumerate>(iterator)->index = number(1);
    put(as<Enumerate>(iterator)->longIndex, object(0));
    return;
  case Kind::Cycle: {
    auto *cycle = as<Cycle>(iterator);
    cycle->index = number(1);
    if (object(0) != Py_None &&
        PyList_SetSlice(cycle->saved, 0, PyList_GET_SIZE(cycle->saved), object(0)) < 0)
      PyErr_Clear();
    return;
  }
  case Kind::Slice:
    as<Slice>(iterator)->next = number(0);
    as<Slice>(iterator)->taken = number(1);
    return;
  case Kind::Pairwise:
    put(as<Pairwise>(iterator)->last, object(0));
    return;
  default:
    return;
  }
}

static void setPart(PyObject *iterator, size_t i, PyObject *part) {
  switch (kindOf(iterator)) {
  case Kind::Cycle:
    return put(as<Cycle>(iterator)->inner, part);
  case Kind::Slice:
    return put(as<Slice>(iterator)->inner, part);
  case Kind::Chain:
    return put(i ? as<Chain>(iterator)->active : as<Chain>(iterator)->source, part);
  case Kind::Pairwise:
    return put(as<Pairwise>(iterator)->inner, part);
  default: // which keep their parts
    return;
  }
}

bool setPosition(PyObject *iterator, PyObject *position) {
  bool known =
      kindOf(iterator) != Kind::None && PyTuple_Check(position) && PyTuple_GET_SIZE(position) == 2;
  if (!known) {
    PyErr_SetString(PyExc_TypeError, "expected an iterator whose position is known");
    return false;
  }
  PyObject *inner = PyTuple_GET_ITEM(position, 1);
  setOwnPosition(iterator, PyTuple_GET_ITEM(position, 0));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inner); ++i) {
    PyObject *pair = PyTuple_GET_ITEM(inner, i), *holder = PyTuple_GET_ITEM(pair, 0);
    auto *part = holder == Py_None ? nullptr
                                   : static_cast<PyObject *>(PyCapsule_GetPointer(holder, nullptr));
    setPart(iterator, static_cast<size_t>(i), part);
    if (part && !setPosition(part, PyTuple_GET_ITEM(pair, 1)))
      return false;
  }
  return true;
}

PyRef upcoming(PyObject *iterator, Py_ssize_t number) {
  Kind kind = kindOf(iterator);
  if (kind == Kind::Items) { // the most common ones, without a step
    auto *over = as<ItemIterator>(iterator);
    if (!over->items || number >= Py_SIZE(over->items) - over->index)
      return {};
    Py_ssize_t at = over->index + number;
    return PyRef::borrow(PyList_Check(over->items) ? PyList_GET_ITEM(over->items, at)
                                                   : PyTuple_GET_ITEM(over->items, at));
  }
  PyRef before = kind == Kind::None ? PyRef() : positionOf(iterator), item;
  for (Py_ssize_t i = 0; before && i <= number; ++i) {
    item = PyRef::steal(Py_TYPE(iterator)->tp_iternext(iterator));
    if (!item)
      break;
  }
  PyErr_Clear(); // such as that of a strict zip
  if (before && !setPosition(iterator, before.get()))
    PyErr_Clear();
  return item;
}

std::vector<PyObject *> sourcesOf(PyObject *iterator) {
  std::vector<PyObject *> sources;
  Kind kind = kindOf(iterator);
  if (kind == Kind::Items || kind == Kind::Back)
    return {as<ItemIterator>(iterator)->items};
  if (kind == Kind::Chain && as<Chain>(iterator)->source)
    if (PyObject *all = as<ItemIterator>(as<Chain>(iterator)->source)->items)
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all); ++i)
        sources.push_back(PyTuple_GET_ITEM(all, i));
  for (PyObject *part : partsOf(iterator))
    if (part) {
      std::vector<PyObject *> more = sourcesOf(part);
      sources.insert(sources.end(), more.begin(), more.end());
    }
  return sources;
}

} // namespace weft::capture::interpreter
