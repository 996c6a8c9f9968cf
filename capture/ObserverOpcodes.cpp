// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each opcode reads and makes. An opcode that is not listed ends the observation.
#include "capture/Observer.h"

#include "capture/Arrays.h"
#include "capture/Plain.h"

#include <opcode.h>

namespace weft::capture {

bool isDict(PyObject *object) { return PyDict_CheckExact(object) || PyODict_CheckExact(object); }

bool Observer::opcode(Frame &frame, const interpreter::Instruction &instruction) {
  auto [opcode, argument, offset] = instruction;
  std::span<PyObject *const> stack = interpreter::stack(frame.frame);
  auto peek = [&](size_t depth) { return stack[stack.size() - depth]; };
  PyCodeObject *code = interpreter::code(frame.frame);
  auto name = [&](int i) { return PyTuple_GET_ITEM(code->co_names, i); };
  auto local = [&](int i) { return interpreter::locals(frame.frame)[static_cast<size_t>(i)]; };
  switch (opcode) {
  // These opcodes move values, or take constants that the compiler made.
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
  case JUMP_FORWARD:
  case JUMP_BACKWARD:
  case JUMP_BACKWARD_NO_INTERRUPT:
  case PRECALL:
  case RETURN_VALUE:
  case BUILD_TUPLE:
  case BUILD_SLICE:
  case LIST_TO_TUPLE:
  case LOAD_ASSERTION_ERROR:
  case MAKE_CELL:
  case COPY_FREE_VARS:
  case RETURN_GENERATOR:
  case PUSH_EXC_INFO:
  case POP_EXCEPT:
  case RERAISE:
  case RAISE_VARARGS:
  case CHECK_EXC_MATCH:
  case POP_JUMP_FORWARD_IF_NONE:
  case POP_JUMP_BACKWARD_IF_NONE:
  case POP_JUMP_FORWARD_IF_NOT_NONE:
  case POP_JUMP_BACKWARD_IF_NOT_NONE:
    frame.pending.python = opcode == RAISE_VARARGS;
    return true;
  case LOAD_CONST: // the order of a constant frozenset is fixed, since the code is guarded
    if (PyObject *constant = PyTuple_GET_ITEM(code->co_consts, argument);
        PyFrozenSet_CheckExact(constant) && !values.find(constant))
      values.enterFresh(constant);
    return true;
  case YIELD_VALUE:
    return yields(peek(1), true);
  case KW_NAMES:
    frame.names = PyTuple_GET_ITEM(code->co_consts, argument);
    return true;
  case SET_ADD:
    return isKey(peek(static_cast<size_t>(argument) + 1), peek(1));
  case MAP_ADD:
    return isKey(peek(static_cast<size_t>(argument) + 2), peek(2)) &&
           (values.isUsable(peek(1)) ||
            values.fail("a comprehension takes " + shown(peek(1)) + " of unknown origin"));
  case LIST_APPEND:
    return values.isUsable(peek(1)) ||
           values.fail("a comprehension takes " + shown(peek(1)) + " of unknown origin");
  case MAKE_FUNCTION:
    return expect(frame, Then::Fresh, false);
  case BUILD_LIST:
    return expect(frame, Then::Fresh, false);
  case BUILD_STRING:
    if (joins(frame, stack.last(static_cast<size_t>(argument))))
      return true;
    return !values.failed() && expect(frame, Then::Fresh, false);
  case BUILD_SET:
  case BUILD_CONST_KEY_MAP:
  case BUILD_MAP: {
    for (int i = 1; opcode != BUILD_CONST_KEY_MAP && i <= argument * (opcode == BUILD_MAP ? 2 : 1);
         ++i)
      if ((opcode == BUILD_SET || i % 2 == 0) && !isKey(nullptr, peek(i)))
        return false;
    return expect(frame, Then::Fresh, true); // the opcode compares keys afterwards
  }
  case STORE_GLOBAL: {
    PyObject *globals = interpreter::globals(frame.frame);
    return PyDict_CheckExact(globals) && values.pin(globals, "globals()") &&
           storeCounter(frame, globals, name(argument), [&] {
             return setsEntry(frame, globals, nullptr, name(argument), peek(1));
           });
  }
  case LOAD_GLOBAL:
    return loadCounter(frame, STORE_GLOBAL, argument >> 1, 0, interpreter::globals(frame.frame),
                       name(argument >> 1), [&] { return global(frame, argument); });
  case LOAD_ATTR:
    return loadCounter(frame, STORE_ATTR, argument, 1, peek(1), name(argument),
                       [&] { return attribute(frame, peek(1), name(argument)); });
  case LOAD_METHOD:
    return attribute(frame, peek(1), name(argument));
  case STORE_ATTR:
    return storeCounter(frame, peek(1), name(argument),
                        [&] { return storeAttribute(frame, peek(1), name(argument), peek(2)); });
  case DELETE_ATTR:
    return storeAttribute(frame, peek(1), name(argument), nullptr);
  case LOAD_DEREF:
    return loadCounter(frame, STORE_DEREF, argument, 0, local(argument), Py_None,
                       [&] { return cell(frame, argument, true, false); });
  case STORE_DEREF:
    return storeCounter(frame, local(argument), Py_None,
                        [&] { return cell(frame, argument, false, false); });
  case DELETE_DEREF:
    return cell(frame, argument, false, true);
  case BINARY_OP:
    return binary(frame, argument, peek(2), peek(1));
  case COMPARE_OP:
    return compare(frame, argument, peek(2), peek(1));
  case IS_OP: {
    compareOriginals(frame);
    stack = interpreter::stack(frame.frame);
    // An immutable object is its own copy, and so is a tuple of such objects.
    auto copies = [&](PyObject *object) {
      return isPlain(object) || (PyTuple_CheckExact(object) && values.isUsable(object));
    };
    return (isCopying(frame) && copies(peek(1)) && copies(peek(2))) ||
           values.readIdentity(peek(2), peek(1));
  }
  case CONTAINS_OP:
    return contains(frame, peek(1), peek(2));
  case BINARY_SUBSCR: {
    // An item that is changed, as in `a[i] += 1`.
    bool changes = stack.size() > 3 && peek(4) == peek(2) && peek(3) == peek(1);
    return loadCounter(frame, STORE_SUBSCR, -1, 2, peek(2), peek(1), [&] {
      bool read = subscript(frame, peek(2), peek(1));
      frame.pending.ofArray |= changes && isArray(peek(2));
      return read;
    });
  }
  case STORE_SUBSCR:
    return storeCounter(frame, peek(2), peek(1),
                        [&] { return storeSubscript(frame, peek(2), peek(1), peek(3)); });
  case DELETE_SUBSCR:
    return storeSubscript(frame, peek(2), peek(1), nullptr);
  case UNARY_NEGATIVE:
    return unary(frame, peek(1), operators().negative, "__neg__");
  case UNARY_POSITIVE:
    return unary(frame, peek(1), operators().positive, "__pos__");
  case UNARY_INVERT:
    return unary(frame, peek(1), operators().invert, "__invert__");
  case UNARY_NOT:
  case POP_JUMP_FORWARD_IF_TRUE:
  case POP_JUMP_FORWARD_IF_FALSE:
  case POP_JUMP_BACKWARD_IF_TRUE:
  case POP_JUMP_BACKWARD_IF_FALSE:
  case JUMP_IF_TRUE_OR_POP:
  case JUMP_IF_FALSE_OR_POP:
    return truth(frame, peek(1));
  case GET_ITER:
  case GET_YIELD_FROM_ITER:
    return iterate(frame, peek(1));
  case FOR_ITER:
    return step(frame, peek(1));
  case SEND:
    return step(frame, peek(2));
  case UNPACK_SEQUENCE:
    return unpack(frame, peek(1), argument);
  case UNPACK_EX:
    return unpack(frame, peek(1), -1 - (argument & 0xFF));
  case LIST_EXTEND:
  case SET_UPDATE:
    return readIterable(frame, peek(1));
  case DICT_UPDATE:
  case DICT_MERGE:
    return (PyDict_Check(peek(1)) && values.find(peek(1)) && values.readWhole(peek(1))) ||
           values.fail("spreads " + shown(peek(1)));
  case FORMAT_VALUE: {
    bool spec = (argument & 0x04) == 0x04;
    guardNames(peek(spec ? 2 : 1));
    if ((argument & 0x03) == 0 && formats(frame, peek(spec ? 2 : 1), spec ? peek(1) : nullptr))
      return true;
    if (values.failed())
      return false;
    static PyObject *const own = PyUnicode_InternFromString("__format__");
    PyObject *each = peek(spec ? 2 : 1), *teller = nullptr;
    if (argument == FVC_NONE || argument == 0x04)
      teller = isTensor(each) ? nullptr : methodOf(each, "__format__");
    if (teller) // it is given the specification
      return carries(frame) && asksMethod(frame, teller, "formatting");
    if (argument == FVC_REPR)
      teller = isTensor(each) ? nullptr : methodOf(each, "__repr__");
    else if (argument <= FVC_STR && // object.__format__ calls its __str__
             interpreter::typeLookup(Py_TYPE(each), own) ==
                 interpreter::typeLookup(&PyBaseObject_Type, own))
      teller = tellerOf(each);
    if (teller)
      return carries(frame) && asksMethod(frame, teller, "formatting");
    return (isPlainWithin(peek(spec ? 2 : 1)) && expect(frame, Then::Plain, false, "formatting")) ||
           values.fail("formats " + shown(peek(spec ? 2 : 1)));
  }
  case CALL: {
    size_t count = static_cast<size_t>(argument);
    if (peek(count + 2)) // a method, with the object that it belongs to
      ++count;
    PyObject *names = std::exchange(frame.names, nullptr);
    Arguments taken = stack.subspan(stack.size() - count);
    if (!call(frame, peek(count + 1), taken, names))
      return false;
    fixTaken(frame, stack.subspan(stack.size() - count - 1));
    return true;
  }
  case CALL_FUNCTION_EX: {
    bool keywords = argument & 1;
    PyObject *function = peek(keywords ? 3 : 2);
    if (!callSpread(frame, function, peek(keywords ? 2 : 1), keywords ? peek(1) : nullptr))
      return false;
    fixTaken(frame, stack.subspan(stack.size() - (keywords ? 3 : 2)));
    return true;
  }
  case BEFORE_WITH:
    return (answersInPython(peek(1), {"__enter__", "__exit__"}) &&
            expect(frame, Then::Usable, true, "a context manager")) ||
           values.fail("enters " + shown(peek(1)));
  case WITH_EXCEPT_START:
    return expect(frame, Then::Usable, true, "a context manager");
  case GET_LEN:
    return (lengthOf(frame, peek(1), "__len__") &&
            expect(frame, Then::Plain, frame.pending.python, "the length")) ||
           values.fail("the length of " + shown(peek(1)));
  case MATCH_SEQUENCE: // these look only at the type
  case MATCH_MAPPING:
    return expect(frame, Then::Plain, false, "a match");
  case MATCH_KEYS:
    return matchKeys(frame, peek(2), peek(1));
  case MATCH_CLASS:
    return matchClass(frame, peek(3), peek(2), peek(1));
  case IMPORT_NAME:
    return import(frame, name(argument), peek(2));
  case IMPORT_FROM:
    return attribute(frame, peek(1), name(argument));
  case LOAD_BUILD_CLASS: {
    static PyObject *const builds = PyUnicode_InternFromString("__build_class__");
    PyObject *builtins = interpreter::builtins(frame.frame);
    PyObject *function =
        PyDict_CheckExact(builtins) ? PyDict_GetItemWithError(builtins, builds) : nullptr;
    if (!function || kindOf(function) != Kind::BuildsClass)
      return values.fail("makes a class by another function");
    guards.dictItem({-1, PyRef::borrow(builtins)}, builds,
                    {Expected::Identity, PyRef::borrow(function), -1}, "__build_class__");
    return expect(frame, Then::Plain, false, "__build_class__");
  }
  case STORE_NAME:
    return values.isUsable(peek(1)) || values.fail("names " + shown(peek(1)) + " in a class");
  case LOAD_NAME:
    return nameInBody(frame, name(argument), argument, -1);
  case LOAD_CLASSDEREF:
    return nameInBody(frame, PyTuple_GET_ITEM(code->co_localsplusnames, argument), -1, argument);
  case SETUP_ANNOTATIONS:
    return true;
  case GET_AWAITABLE:
  case GET_AITER:
  case GET_ANEXT:
  case BEFORE_ASYNC_WITH:
    return values.fail("asynchronous code");
  default:
    return values.fail("opcode " + std::to_string(opcode) + " is not observed");
  }
}

bool Observer::global(Frame &frame, int argument) {
  PyObject *name = PyTuple_GET_ITEM(interpreter::code(frame.frame)->co_names, argument >> 1);
  PyObject *globals = interpreter::globals(frame.frame);
  PyObject *builtins = interpreter::builtins(frame.frame);
  if (!PyDict_CheckExact(globals) || !PyDict_CheckExact(builtins))
    return values.fail("globals that are no dict");
  if (values.readCounter(globals, name) || values.hasSet(globals, name) ||
      values.isLoaded(Place::Item, globals, name))
    return true;
  if (guards.watches(globals, false, name) &&
      (PyDict_GetItemWithError(globals, name) || guards.watches(builtins, false, name)))
    return true;
  Value held{Origin::Pinned, -1, {}, PyUnicode_AsUTF8(name)};
  PyObject *found = nullptr;
  for (PyObject *dict : {globals, builtins}) {
    found = PyDict_GetItemWithError(dict, name);
    Owner owner{-1, PyRef::borrow(dict)};
    if (dict == globals &&
        values.startsCounter(
            {Place::Item, PyRef::borrow(dict), PyRef::borrow(name), owner, held.name}, found))
      return true;
    if (!values.readAt(Place::Item, dict, name, held, found, held.name))
      return false;
    if (found)
      break;
  }
  return true;
}

bool Observer::cell(Frame &frame, int argument, bool reads, bool deletes) {
  PyObject *cell = interpreter::locals(frame.frame)[static_cast<size_t>(argument)];
  PyObject *names = interpreter::code(frame.frame)->co_localsplusnames;
  std::string name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, argument));
  if (reads)
    return values.readCell(cell, name);
  std::span<PyObject *const> stack = interpreter::stack(frame.frame);
  return values.isFresh(cell) || setsCell(frame, cell, deletes ? nullptr : stack.back(), name);
}

bool Observer::readsVariables(Frame &frame) {
  std::span<PyObject *const> locals = interpreter::locals(frame.frame);
  PyObject *names = interpreter::code(frame.frame)->co_localsplusnames;
  for (size_t i = 0; i < locals.size(); ++i)
    if (locals[i] && PyCell_Check(locals[i]) && !interpreter::isOwnCell(frame.frame, i) &&
        !values.readCell(locals[i],
                         PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)))))
      return false;
  return true;
}

bool Observer::import(Frame &frame, PyObject *name, PyObject *level) {
  if (!PyLong_CheckExact(level) || PyLong_AsLong(level) != 0)
    return values.fail("a relative import");
  PyObject *modules = PyImport_GetModuleDict();
  PyRef parts = PyRef::steal(PyUnicode_Split(name, nullptr, 0));
  PyRef dot = PyRef::steal(PyUnicode_FromString("."));
  PyRef split = PyRef::steal(PyUnicode_Partition(name, dot.get()));
  Value held{Origin::Pinned, -1, {}, "sys.modules"};
  for (PyObject *each : {name, split ? PyTuple_GET_ITEM(split.get(), 0) : name}) {
    PyObject *module = PyDict_GetItemWithError(modules, each);
    if (!module || !PyModule_Check(module))
      return values.fail("imports " + shown(name) + " for the first time");
    guards.dictItem({-1, PyRef::borrow(modules)}, each,
                    {Expected::Identity, PyRef::borrow(module), -1},
                    "sys.modules[" + shown(each) + "]");
  }
  PyRef import = PyRef::steal(PyUnicode_InternFromString("__import__"));
  PyObject *builtins = interpreter::builtins(frame.frame);
  PyObject *function = PyDict_GetItemWithError(builtins, import.get());
  guards.dictItem({-1, PyRef::borrow(builtins)}, import.get(),
                  {Expected::Identity, PyRef::borrow(function), -1}, "__import__");
  return expect(frame, Then::Plain, true, "an import");
}

} // namespace weft::capture
