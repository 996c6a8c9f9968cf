// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers as inputs: a number at a place where there was another one in an earlier call, such as
// the number of steps that a decay depends on, or an argument. It is loaded into a register. The
// frame continues with a copy of the number at an address of its own, by which it is recognised
// everywhere; results of operations on such numbers have their own addresses too. Any other use
// makes the number a guarded constant: a call of a function in C, an instruction, or a result of a
// method in Python that C has asked for, unless it is known only to pass numbers on. A text made
// from such numbers is treated like them.
#include "capture/Observer.h"
#include "capture/Plain.h"

#include <algorithm>
#include <opcode.h>

namespace weft::capture {

// Methods of Values.

int Values::addNumber(NumberInput number) {
  number.reg = guards.newRegister(number.original.get());
  guardAt(number.place, number.owner, number.of.get(), number.key.get(),
          {Expected::Load, {}, number.reg}, number.name);
  guards.type({number.reg, {}}, Py_TYPE(number.original.get()), number.name);
  numberInputs.push_back(std::move(number));
  return static_cast<int>(numberInputs.size()) - 1;
}

void Values::loadNumber(Site &site, NumberInput number) {
  site.loaded = true;
  site.number = addNumber(std::move(number));
  pushNumber(site.number);
}

Site *Values::argumentSite(const std::string &name) {
  for (Site &each : sites)
    if (const char *text =
            each.place == Place::Argument ? PyUnicode_AsUTF8(each.key.get()) : nullptr;
        text && name == text)
      return &each;
  return nullptr;
}

PyRef Values::enterNumberArgument(Py_ssize_t i, PyObject *object, const std::string &name) {
  if (!isNumberInput(object) || !argumentSite(name))
    return {};
  PyRef index = PyRef::steal(PyLong_FromSsize_t(i));
  return copyOf(addNumber({Place::Argument, {}, {}, index, PyRef::borrow(object), name}), object);
}

void Values::pushNumber(int input) {
  if (pushed >= 0)
    fixNumber(pushed);
  pushed = pushes ? input : -1;
  if (!pushes)
    fixNumber(input);
}

/// Makes the number a guarded constant, since the program depends on its value.
void Values::fixNumber(int input) {
  NumberInput &number = numberInputs[input];
  if (!std::exchange(number.fixed, true))
    guardAt(number.place, number.owner, number.of.get(), number.key.get(),
            {Expected::Equal, number.original, -1}, number.name);
}

void Values::fixWithin(PyObject *object, int containers) {
  if (numbers.empty() || !object || containers < 0)
    return;
  if (auto found = numbers.find(object); found != numbers.end()) {
    if (std::exchange(found->second.fixed, true))
      return;
    if (found->second.input >= 0)
      fixNumber(found->second.input);
    else
      log.fix(found->second.record);
  } else if (PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      fixWithin(PyTuple_GET_ITEM(object, i), containers);
  } else if (PySlice_Check(object)) {
    auto *slice = reinterpret_cast<PySliceObject *>(object);
    for (PyObject *each : {slice->start, slice->stop, slice->step})
      fixWithin(each, containers);
  } else if (PyMethod_Check(object)) {
    fixWithin(PyMethod_GET_SELF(object), containers - 1);
  } else if (PyCFunction_CheckExact(object)) {
    fixWithin(PyCFunction_GET_SELF(object), containers - 1);
  } else if (PyList_Check(object) || isDeque(object)) {
    for (Py_ssize_t i = 0; i < Py_SIZE(object); ++i)
      fixWithin(itemAt(object, i).get(), containers - 1);
  } else if (PyDict_Check(object)) {
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &item);)
      fixWithin(item, containers - 1);
  }
}

PyRef Values::takePushed(PyObject *top) {
  int input = std::exchange(pushed, -1);
  if (input < 0 || numberInputs[input].fixed)
    return {};
  PyRef copy;
  PyObject *original = numberInputs[input].original.get();
  bool computed = numberInputs[input].place == Place::Upcoming; // as a range computes its items
  if (top && (top == original || (computed && plainEqual(top, original))))
    copy = copyOf(input, top);
  if (!copy)
    fixNumber(input);
  return copy;
}

/// A copy of the number, which stands for it from now on.
PyRef Values::copyOf(int input, PyObject *original) {
  PyRef copy = PyRef::steal(interpreter::ownNumber(original));
  if (!copy)
    return copy;
  Number number{copy, -1, 0};
  number.input = input;
  number.original = numberInputs[input].original;
  numbers.emplace(copy.get(), std::move(number));
  return copy;
}

PyObject *Values::originalOf(PyObject *number) const {
  auto found = numbers.find(number);
  return found == numbers.end() ? nullptr : found->second.original.get();
}

// Methods of the observer.

/// Handles a number that a load has left on the stack.
void Observer::takeNumber(Frame &frame) {
  std::span<PyObject *const> stack = interpreter::stack(frame.frame);
  if (PyRef copy = values.takePushed(stack.empty() ? nullptr : stack.back()))
    interpreter::replace(frame.frame, 0, copy.release());
}

/// The result of an operation on numbers that may vary, at an address of its own: the least of two
/// numbers would otherwise be one of them.
PyObject *Observer::ownResult(Frame &frame, PyObject *top) {
  if (frame.pending.text && !nodes && isSharedText(top)) {
    Py_UCS4 character = PyUnicode_READ_CHAR(top, 0);
    PyObject *copy = PyUnicode_New(1, character);
    if (!copy)
      return top;
    PyUnicode_WRITE(PyUnicode_KIND(copy), PyUnicode_DATA(copy), 0, character);
    interpreter::replace(frame.frame, 0, copy);
    return copy;
  }
  if (!frame.pending.numeric || nodes || !(PyLong_CheckExact(top) || PyFloat_CheckExact(top)))
    return top;
  PyObject *copy = interpreter::ownNumber(top);
  if (!copy)
    return top;
  interpreter::replace(frame.frame, 0, copy);
  return copy;
}

void Observer::fixTaken(Frame &frame, Arguments taken) {
  Pending &pending = frame.pending;
  if (appends(pending.then) || pending.carries)
    return;
  for (PyObject *each : taken)
    values.fixWithin(each);
  if (pending.yields == Pending::Yields::Anything)
    pending.yields = Pending::Yields::Numbers;
}

bool Observer::makesText(Frame &frame, PyObject *callable, Arguments arguments, PyObject *names) {
  return operation(frame, callable, arguments, names) && (frame.pending.text = true);
}

bool Observer::formats(Frame &frame, PyObject *value, PyObject *spec) {
  static PyObject *const none = PyUnicode_InternFromString("");
  if (nodes || !values.mayDiffer(value))
    return false;
  if (PyUnicode_Check(value) && !spec) // formatting a text without a format gives the text itself
    return carries(frame) && expect(frame, Then::Usable, false);
  PyObject *operands[] = {value, spec ? spec : none};
  return (!spec || isPlain(spec)) && makesText(frame, operators().format, operands, nullptr);
}

bool Observer::joins(Frame &frame, Arguments parts) {
  if (nodes || std::ranges::none_of(parts, [&](PyObject *each) { return values.mayDiffer(each); }))
    return false;
  PyRef all = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(parts.size())));
  for (size_t i = 0; all && i < parts.size(); ++i)
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), Py_NewRef(parts[i]));
  PyObject *operand = all.get();
  return operand && makesText(frame, operators().join, Arguments(&operand, 1), nullptr);
}

void Observer::fixTexts(Arguments taken) {
  for (PyObject *each : taken)
    if (each && PyUnicode_Check(each))
      values.fixWithin(each);
}

/// How many operands an instruction examines in C. It is none for those that only move values, put
/// them into containers, or take them out.
static size_t operandsLookedAt(int opcode, int argument, std::span<PyObject *const> stack) {
  switch (opcode) {
  case BINARY_SUBSCR: { // the item is taken out, of a tuple or list by no other's value
    PyObject *container = stack.size() > 1 ? stack[stack.size() - 2] : nullptr;
    return container && (PyTuple_CheckExact(container) || PyList_CheckExact(container)) ? 1 : 2;
  }
  case CALL: // examines only the kind of the callable
  case CALL_FUNCTION_EX:
  case NOP:
  case RESUME:
  case CACHE:
  case POP_TOP:
  case PUSH_NULL:
  case COPY:
  case SWAP:
  case LOAD_FAST:
  case STORE_FAST:
  case DELETE_FAST:
  case LOAD_CLOSURE:
  case LOAD_CONST:
  case LOAD_BUILD_CLASS:
  case STORE_NAME:
  case LOAD_NAME:
  case LOAD_CLASSDEREF:
  case SETUP_ANNOTATIONS:
  case LOAD_GLOBAL:
  case STORE_GLOBAL:
  case LOAD_DEREF:
  case STORE_DEREF:
  case DELETE_DEREF:
  case LOAD_ATTR: // attributes of a number are plain
  case LOAD_METHOD:
  case STORE_ATTR:
  case DELETE_ATTR:
  case LOAD_ASSERTION_ERROR:
  case MAKE_CELL:
  case MAKE_FUNCTION:
  case COPY_FREE_VARS:
  case JUMP_FORWARD:
  case JUMP_BACKWARD:
  case JUMP_BACKWARD_NO_INTERRUPT:
  case POP_JUMP_FORWARD_IF_NONE:
  case POP_JUMP_BACKWARD_IF_NONE:
  case POP_JUMP_FORWARD_IF_NOT_NONE:
  case POP_JUMP_BACKWARD_IF_NOT_NONE:
  case PRECALL:
  case KW_NAMES:
  case RETURN_VALUE:
  case YIELD_VALUE:
  case SEND:
  case FOR_ITER:
  case GET_ITER:
  case GET_YIELD_FROM_ITER:
  case RETURN_GENERATOR:
  case BUILD_TUPLE:
  case BUILD_LIST:
  case BUILD_SLICE:
  case LIST_TO_TUPLE:
  case LIST_APPEND:
  case LIST_EXTEND:
  case UNPACK_SEQUENCE:
  case UNPACK_EX:
  case BUILD_MAP: // keys are examined
  case BUILD_CONST_KEY_MAP:
  case MAP_ADD:
  case DICT_UPDATE:
  case DICT_MERGE:
  case STORE_SUBSCR:
  case MATCH_SEQUENCE:
  case MATCH_MAPPING:
  case MATCH_KEYS:
  case MATCH_CLASS:
  case GET_LEN:
  case IS_OP: // compares the numbers themselves
  case BEFORE_WITH:
  case WITH_EXCEPT_START:
  case PUSH_EXC_INFO:
  case POP_EXCEPT:
  case RERAISE:
  case RAISE_VARARGS:
  case CHECK_EXC_MATCH:
    return 0;
  case UNARY_NEGATIVE:
  case UNARY_POSITIVE:
  case UNARY_INVERT:
  case UNARY_NOT:
  case POP_JUMP_FORWARD_IF_TRUE:
  case POP_JUMP_FORWARD_IF_FALSE:
  case POP_JUMP_BACKWARD_IF_TRUE:
  case POP_JUMP_BACKWARD_IF_FALSE:
  case JUMP_IF_TRUE_OR_POP:
  case JUMP_IF_FALSE_OR_POP:
  case SET_ADD:
  case SET_UPDATE:
    return 1;
  case BUILD_SET:
  case BUILD_STRING:
    return static_cast<size_t>(argument);
  case FORMAT_VALUE:
    return (argument & 0x04) == 0x04 ? 2 : 1;
  default:
    return 2;
  }
}

/// Whether an instruction that passes numbers on examines a text.
static bool takesApart(int opcode) {
  static constexpr int all[] = {GET_ITER,    UNPACK_SEQUENCE, UNPACK_EX, LIST_EXTEND,
                                LOAD_ATTR,   LOAD_METHOD,     GET_LEN,   MATCH_SEQUENCE,
                                MATCH_CLASS, MATCH_MAPPING,   SEND};
  return std::ranges::find(all, opcode) != std::end(all);
}

void Observer::fixOperands(Frame &frame, int opcode, int argument) {
  const Pending &pending = frame.pending;
  if (takesApart(opcode) && !interpreter::stack(frame.frame).empty())
    fixTexts(interpreter::stack(frame.frame).last(1));
  std::span<PyObject *const> stack = interpreter::stack(frame.frame);
  size_t count = operandsLookedAt(opcode, argument, stack);
  if (!count || appends(pending.then) || pending.carries)
    return;
  // A method in Python receives the numbers; an operand that is tested or concatenated keeps them.
  bool hands = pending.python && pending.then != Then::Plain;
  bool within = pending.then == Then::Plain;
  for (size_t i = 1; !hands && i <= std::min(count, stack.size()); ++i)
    if (PyObject *each = stack[stack.size() - i]; within)
      values.fixWithin(each);
    else
      values.fixWithin(each, 0);
}

/// Whether C passes on what the method gives, or the method is not one that C asks.
static bool handsOn(PyObject *method) {
  static constexpr std::string_view operators[] = {"add", "and",     "floordiv", "lshift", "matmul",
                                                   "mul", "mod",     "or",       "pow",    "rshift",
                                                   "sub", "truediv", "xor"};
  static constexpr std::string_view others[] = {
      "lt",   "le",      "eq",      "ne",   "gt",    "ge",   "neg",          "str",
      "repr", "pos",     "invert",  "abs",  "call",  "get",  "getattr",      "getattribute",
      "next", "getitem", "missing", "iter", "enter", "exit", "class_getitem"};
  const char *text = PyUnicode_AsUTF8(method);
  std::string_view name = text ? text : "";
  if (!name.starts_with("__") || !name.ends_with("__") || name.size() < 5)
    return true;
  name = name.substr(2, name.size() - 4);
  if (std::ranges::find(others, name) != std::end(others))
    return true;
  auto known = [&] { return std::ranges::find(operators, name) != std::end(operators); };
  if (known())
    return true;
  name.remove_prefix(name.starts_with("r") || name.starts_with("i") ? 1 : 0);
  return known();
}

void Observer::fixGiven(PyFrameObject *frame, PyObject *value) {
  if (!handsOn(interpreter::code(frame)->co_name))
    values.fixWithin(value);
}

/// Compares identities of the original objects, not of copies.
void Observer::compareOriginals(Frame &frame) {
  for (size_t below : {0, 1}) {
    std::span<PyObject *const> stack = interpreter::stack(frame.frame);
    PyObject *number = stack[stack.size() - 1 - below];
    if (!values.isNumber(number))
      continue;
    values.isPlain(number);
    if (PyUnicode_CheckExact(number) && PyUnicode_GET_LENGTH(number) == 1)
      interpreter::replace(frame.frame, below,
                           PyUnicode_FromOrdinal(static_cast<int>(PyUnicode_READ_CHAR(number, 0))));
    else if (PyObject *original = values.originalOf(number))
      interpreter::replace(frame.frame, below, Py_NewRef(original));
    else if (int overflows = 0; PyLong_CheckExact(number)) // small numbers are shared
      if (long value = PyLong_AsLongAndOverflow(number, &overflows); !overflows)
        interpreter::replace(frame.frame, below, PyLong_FromLong(value));
  }
}

} // namespace weft::capture
