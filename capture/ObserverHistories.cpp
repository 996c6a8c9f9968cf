// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists and deques that the program holds and that each call fills, such as a history of losses. If
// one was read and has other items by now, the next capture does not read it: its length, its sum
// and the like are operations of the log, which give another number in each call.
#include "capture/Declared.h"
#include "capture/Observer.h"
#include "capture/Plain.h"

#include <algorithm>
#include <opcode.h>

namespace weft::capture {

static bool isHistory(PyObject *object) { return PyList_CheckExact(object) || isDeque(object); }

bool Guards::readsItems(PyObject *container) const {
  for (const Check &each : checks)
    if ((each.kind == Kind::Length || each.kind == Kind::Item) &&
        each.owner.object.get() == container)
      return true;
  return false;
}

std::vector<Site> Log::stored() const {
  std::vector<Site> sites;
  for (const Written &each : written) {
    PyObject *owner = each.object.object.get(), *key = each.key.get();
    if (each.object.kind != Form::Constant || !key || Tensors::get()->isAny(owner))
      continue;
    bool cell = PyCell_Check(owner), slot = isSlot(key), list = PyList_CheckExact(owner);
    bool dict = PyDict_CheckExact(owner) || isDefaultDict(owner) || isCounter(owner);
    PyObject *entries = dict ? owner : cell || slot ? nullptr : interpreter::instanceDict(owner);
    PyRef held = slot   ? memberOf(key, owner)
                 : list ? itemAt(owner, PyLong_AsSsize_t(key))
                        : PyRef();
    PyObject *found = slot || list ? held.get()
                      : cell       ? PyCell_GET(owner)
                      : entries    ? entryOf(entries, key)
                                   : nullptr;
    if (found && isInput(found))
      sites.push_back({PyType_Check(owner) ? Place::Class
                       : slot              ? Place::Member
                       : cell              ? Place::Cell
                       : dict || list      ? Place::Item
                                           : Place::Attribute,
                       reinterpret_cast<uintptr_t>(owner), each.key});
    PyErr_Clear();
  }
  return sites;
}

std::vector<Site> Log::filled(const Guards &guards) const {
  std::vector<Site> sites;
  for (const Written &each : written) {
    PyObject *owner = each.object.object.get();
    if (each.object.kind == Form::Constant && !each.key && isHistory(owner) &&
        guards.readsItems(owner))
      sites.push_back(
          {Place::Contents, reinterpret_cast<uintptr_t>(owner), PyRef::borrow(Py_None)});
  }
  return sites;
}

bool Values::isMoving(PyObject *container) {
  const Value *value = find(container);
  return value && value->origin == Origin::Pinned && siteOf(Place::Contents, container, Py_None);
}

bool Values::growsAtEnd(PyObject *list) {
  auto tail = tails.find(list);
  return PyList_CheckExact(list) && isMoving(list) && !hasSet(list, nullptr) &&
         (tail == tails.end() || tail->second.alone);
}

bool Values::readFromEnd(PyObject *list, Py_ssize_t back) {
  PyRef item = itemAt(list, Py_SIZE(list) - appended(list) - back);
  PyRef at = PyRef::steal(PyLong_FromSsize_t(-back));
  if (!item || !at)
    return fail("reads an item that a list lacks");
  if (isLoaded(Place::Item, list, at.get()))
    return true;
  if (!siteOf(Place::Item, list, at.get()))
    sites.push_back({Place::Item, reinterpret_cast<uintptr_t>(list), at});
  Value held = *find(list); // entering values moves the others in memory
  std::string name = held.name + "[" + std::to_string(-back) + "]";
  return readAt(Place::Item, list, at.get(), held, item.get(), name);
}

bool Observer::isMovingHistory(PyObject *object) {
  // The effect by which a generator extends a list is logged behind what the generator does.
  bool extended = std::ranges::any_of(
      frames, [&](const Frame &each) { return each.pending.extended == object; });
  return !nodes && !extended && isHistory(object) && values.isMoving(object);
}

bool Observer::readsLastItem(PyObject *list, Py_ssize_t i) {
  return i < 0 && -i <= Py_SIZE(list) && values.growsAtEnd(list) &&
         values.readFromEnd(list, -i - values.appended(list));
}

bool Observer::readsWindow(PyObject *list, PyObject *slice) {
  auto *bounds = reinterpret_cast<PySliceObject *>(slice);
  bool last =
      PyLong_CheckExact(bounds->start) && bounds->stop == Py_None && bounds->step == Py_None;
  Py_ssize_t count = last ? -PyLong_AsSsize_t(bounds->start) : 0;
  PyErr_Clear();
  if (count <= 0 || count > Py_SIZE(list) || !values.growsAtEnd(list))
    return false;
  for (Py_ssize_t back = count - values.appended(list); back > 0; --back)
    if (!values.readFromEnd(list, back))
      return false;
  return true;
}

bool Observer::isHistoryOfNumbers(PyObject *object) {
  if (!isMovingHistory(object))
    return false;
  for (Py_ssize_t i = 0; i < Py_SIZE(object); ++i) {
    PyRef item = itemAt(object, i);
    if (!PyFloat_CheckExact(item.get()) && !PyLong_CheckExact(item.get()))
      return false;
  }
  return true;
}

/// Whether it gives a number about what it is given.
static bool counts(PyObject *callable) {
  return callable && (kindOf(callable) == Kind::Fold || kindOf(callable) == Kind::Length);
}

/// Whether the instruction's result goes into a call of such a function at once, or into a variable
/// of which each use does.
bool Observer::isOnlyAsked(Frame &frame) {
  auto calls = [](std::span<const interpreter::Instruction> two) {
    return two[0].opcode == PRECALL && two[0].argument == 1 && two[1].opcode == CALL;
  };
  interpreter::Instruction next[2];
  std::span<PyObject *const> stack = interpreter::stack(frame.frame);
  if (interpreter::following(frame.frame, next) < 2 || stack.size() < 2)
    return false;
  if (calls(next)) // below the list and the slice lie what is called and null
    return stack.size() >= 4 && !stack[stack.size() - 4] && counts(stack[stack.size() - 3]);
  if (next[0].opcode != STORE_FAST)
    return false;
  std::vector<interpreter::Instruction> all =
      interpreter::instructions(interpreter::code(frame.frame));
  PyObject *names = interpreter::code(frame.frame)->co_names;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].opcode != LOAD_FAST || all[i].argument != next[0].argument)
      continue;
    if (i == 0 || i + 2 >= all.size() || !calls(std::span(all).subspan(i + 1, 2)) ||
        all[i - 1].opcode != LOAD_GLOBAL || !(all[i - 1].argument & 1))
      return false;
    PyObject *name = PyTuple_GET_ITEM(names, all[i - 1].argument >> 1);
    PyObject *found = PyDict_GetItemWithError(interpreter::globals(frame.frame), name);
    if (!counts(found ? found : PyDict_GetItemWithError(interpreter::builtins(frame.frame), name)))
      return false;
  }
  return true;
}

bool Observer::opensWindow(Frame &frame, PyObject *list, PyObject *slice) {
  if (!isHistoryOfNumbers(list) || !isOnlyAsked(frame))
    return false;
  frame.pending.added = {PyRef::borrow(list), PyRef::borrow(slice)};
  return expect(frame, Then::Window, false, "a part of a list");
}

void Observer::noteWindow(PyObject *items, const Pending &pending) {
  windows.push_back({PyRef::borrow(items), pending.added.first, pending.added.second, log.size()});
}

bool Observer::isWindow(PyObject *object) const {
  return std::ranges::any_of(windows,
                             [&](const Window &each) { return each.items.get() == object; });
}

bool Observer::asksWindow(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  for (const Window &each : windows) {
    if (arguments.size() != 1 || names || each.items.get() != arguments[0] || !counts(callable))
      continue;
    bool changed = false;
    for (size_t i = each.logged; i < log.size(); ++i)
      changed |= log.all()[i].changes;
    PyObject *asked[] = {callable, each.history.get(), each.slice.get()};
    return !changed ? asksHistory(frame, operators().overNumbers, asked)
                    : values.fail("asks for a part of a list behind a change");
  }
  return values.fail("hands on a part of a list that each call fills");
}

bool Observer::asksHistory(Frame &frame, PyObject *callable, Arguments arguments) {
  if (!beginRecord(frame, callable, arguments, nullptr))
    return false;
  frame.pending.number = frame.pending.numeric = true;
  return expect(frame, Then::Append, false, nameOf(callable));
}

} // namespace weft::capture
