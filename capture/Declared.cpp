// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/Declared.h"

#include <charconv>
#include <cstring>
#include <unordered_map>

namespace weft::capture {

static constexpr const char *names[] = {
    "pure",        "types",         "builds",
    "reads",       "changes",       "operation",
    "in place",    "metadata",      "setting",
    "state",       "statistics",    "get",
    "isinstance",  "getattr",       "hasattr",
    "setattr",     "len",           "type",
    "super",       "next",          "fold",
    "partial",     "any",           "referent",
    "asked",       "map",           "fills",
    "prints",      "warns",         "logs",
    "autocast",    "sort",          "address",
    "arrays",      "array writes",  "draws",
    "same",        "apply",         "new object",
    "new tuple",   "own attribute", "context get",
    "context set", "context reset", "bound",
    "orders",      "reduce",        "filter",
    "sums",        "reduces",       "signature",
    "getter",      "backward",      "requires gradient",
    "ignored",     "make instance", "namespace",
    "vars",        "counts",        "seeds",
    "seeded",      "builds class",  "generates class",
    "compares",    "locals",        "filters",
};
static_assert(std::size(names) + 1 == static_cast<size_t>(Kind::Names));

static std::unordered_map<PyObject *, Kind> &table() {
  static std::unordered_map<PyObject *, Kind> kinds;
  return kinds;
}

Kind kindOf(PyObject *callable) {
  auto found = table().find(callable);
  return found == table().end() ? Kind::None : found->second;
}

bool declare(PyObject *callable, const char *name) {
  for (size_t i = 0; i < std::size(names); ++i)
    if (std::strcmp(names[i], name) == 0) {
      Py_INCREF(callable);
      table()[callable] = static_cast<Kind>(i + 1);
      return true;
    }
  PyErr_Format(PyExc_ValueError, "expected a kind of declaration, found '%s'", name);
  return false;
}

Operators &operators() {
  static Operators all;
  return all;
}

bool isCalledForC(PyObject *function) {
  PyObject *maker = operators().inPython;
  return maker && PyFunction_Check(function) &&
         PyFunction_GET_GLOBALS(function) == PyFunction_GET_GLOBALS(maker);
}

bool setOperator(const std::string &name, PyObject *function) {
  Operators &all = operators();
  auto number = [&](const char *prefix, PyObject **list, int count) -> PyObject ** {
    if (!name.starts_with(prefix))
      return nullptr;
    const char *end = name.data() + name.size();
    int i = -1;
    auto [rest, error] = std::from_chars(name.data() + std::strlen(prefix), end, i);
    return error == std::errc() && rest == end && i >= 0 && i < count ? &list[i] : nullptr;
  };
  PyObject **slot = number("binary ", all.binary, 26);
  slot = slot ? slot : number("compare ", all.compare, 6);
  slot = name == "getitem" ? &all.getItem : slot;
  slot = name == "setitem" ? &all.setItem : slot;
  slot = name == "neg" ? &all.negative : slot;
  slot = name == "pos" ? &all.positive : slot;
  slot = name == "invert" ? &all.invert : slot;
  slot = name == "truth" ? &all.truth : slot;
  slot = name == "getattr" ? &all.getAttribute : slot;
  slot = name == "storage" ? &all.storage : slot;
  slot = name == "tuple" ? &all.tuple : slot;
  slot = name == "snapshot" ? &all.snapshot : slot;
  slot = name == "setattr" ? &all.setAttribute : slot;
  slot = name == "delattr" ? &all.deleteAttribute : slot;
  slot = name == "setattr of a class" ? &all.setClassAttribute : slot;
  slot = name == "delattr of a class" ? &all.deleteClassAttribute : slot;
  slot = name == "count" ? &all.count : slot;
  slot = name == "advance" ? &all.advance : slot;
  slot = name == "over numbers" ? &all.overNumbers : slot;
  slot = name == "get logger" ? &all.getLogger : slot;
  slot = name == "copy" ? &all.copy : slot;
  slot = name == "share tensor" ? &all.shareTensor : slot;
  slot = name == "generator of Python" ? &all.generatorOfPython : slot;
  slot = name == "delitem" ? &all.deleteItem : slot;
  slot = name == "grad enabled" ? &all.isGradEnabled : slot;
  slot = name == "context" ? &all.context : slot;
  slot = name == "array" ? &all.array : slot;
  slot = name == "array scalar" ? &all.arrayScalar : slot;
  slot = name == "setdata" ? &all.setData : slot;
  slot = name == "run backward" ? &all.runBackward : slot;
  slot = name == "setgrad" ? &all.setGradient : slot;
  slot = name == "setrequiresgrad" ? &all.setRequiresGradient : slot;
  slot = name == "tensor hash" ? &all.tensorHash : slot;
  slot = name == "list append" ? &all.listAppend : slot;
  slot = name == "list extend" ? &all.listExtend : slot;
  slot = name == "deep copy" ? &all.deepCopy : slot;
  slot = name == "deep copy of a parameter" ? &all.deepCopyParameter : slot;
  slot = name == "disabled code" ? &all.disabledCode : slot;
  slot = name == "disabled" ? &all.disabled : slot;
  slot = name == "in python" ? &all.inPython : slot;
  slot = name == "tested in python" ? &all.testedInPython : slot;
  slot = name == "folded in python" ? &all.foldedInPython : slot;
  slot = name == "checkpoint" ? &all.checkpoint : slot;
  slot = name == "cached property code" ? &all.cachedPropertyCode : slot;
  slot = name == "repr code" ? &all.reprCode : slot;
  slot = name == "optimizer code" ? &all.optimizerCode : slot;
  slot = name == "dispatch code" ? &all.dispatchCode : slot;
  slot = name == "enter inference" ? &all.enterInference : slot;
  slot = name == "leave inference" ? &all.leaveInference : slot;
  slot = name == "push inference" ? &all.pushInference : slot;
  slot = name == "pop inference" ? &all.popInference : slot;
  slot = name == "copy tensor" ? &all.copyTensor : slot;
  slot = name == "enter profile" ? &all.enterProfile : slot;
  slot = name == "leave profile" ? &all.leaveProfile : slot;
  slot = name == "enter filters" ? &all.enterFilters : slot;
  slot = name == "leave filters" ? &all.leaveFilters : slot;
  slot = name == "push filters" ? &all.pushFilters : slot;
  slot = name == "pop filters" ? &all.popFilters : slot;
  slot = name == "answer of a cache" ? &all.answerOfCache : slot;
  slot = name == "script function" ? &all.scriptFunction : slot;
  slot = name == "is functional" ? &all.isFunctional : slot;
  slot = name == "item" ? &all.item : slot;
  slot = name == "tolist" ? &all.toList : slot;
  slot = name == "overload" ? &all.overload : slot;
  slot = name == "overload packet" ? &all.overloadPacket : slot;
  slot = name == "is pure" ? &all.isPure : slot;
  slot = name == "setcell" ? &all.setCell : slot;
  slot = name == "generator" ? &all.generator : slot;
  slot = name == "generator of arrays" ? &all.generatorOfArrays : slot;
  slot = name == "older generator of arrays" ? &all.olderGeneratorOfArrays : slot;
  slot = name == "default generator" ? &all.defaultGenerator : slot;
  slot = name == "counter" ? &all.counter : slot;
  slot = name == "iter" ? &all.iter : slot;
  slot = name == "seed arrays" ? &all.seedArrays : slot;
  slot = name == "array generator" ? &all.arrayGenerator : slot;
  slot = name == "format" ? &all.format : slot;
  slot = name == "join" ? &all.join : slot;
  slot = name == "begin" ? &all.begin : slot;
  slot = name == "warn" ? &all.warn : slot;
  slot = name == "log" ? &all.log : slot;
  if (!slot)
    return false;
  Py_INCREF(function);
  *slot = function;
  return true;
}

} // namespace weft::capture
