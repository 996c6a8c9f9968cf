// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What guards say to people, as text.
#include "capture/Guards.h"
#include "capture/Plain.h"

namespace weft::capture {

static std::string textOf(const Expected &expected, const std::string &name) {
  switch (expected.kind) {
  case Expected::Absent:
    return name + " is absent";
  case Expected::Identity:
    return name + " is " + shown(expected.value.get());
  case Expected::Equal:
    return name + " == " + shown(expected.value.get());
  case Expected::Typed:
    return "type(" + name + ") is " + ((PyTypeObject *)expected.value.get())->tp_name;
  case Expected::Load:
    return "";
  }
  return "";
}

/// Check number 0 is the form of the call: how many arguments it has and which keywords.
std::string Guards::text(size_t number) const {
  if (number == 0)
    return std::to_string(argumentCount) + " positional arguments, keywords " +
           (argumentNames ? shown(argumentNames.get()) : "()");
  const Check &check = checks[number - 1];
  std::string text;
  auto list = [&](const std::vector<Entry> &entries, const std::string &prefix) {
    for (const Entry &each : entries) {
      std::string name =
          each.name.empty() ? prefix + "." + PyUnicode_AsUTF8(each.key.get()) : each.name;
      text += (text.empty() ? "" : "\n") + textOf(each.expected, name);
    }
  };
  switch (check.kind) {
  case Kind::Watch:
    list(dictWatches[check.number].entries, "");
    return text;
  case Kind::TypeWatch:
    list(typeWatches[check.number].entries, check.name);
    return text;
  case Kind::Length:
    return "len(" + check.name + ") == " + std::to_string(check.number);
  case Kind::Keys:
    return "list(" + check.name + ") == list(" + shown(check.key.get()) + ")";
  case Kind::Type:
    return "type(" + check.name + ") is " + ((PyTypeObject *)check.key.get())->tp_name;
  case Kind::Resolves:
    return check.name + " is what " + ((PyTypeObject *)check.owner.object.get())->tp_name +
           " looks up";
  case Kind::Function:
    return "code and defaults of " + check.name;
  case Kind::Array:
  case Kind::Tensor:
  case Kind::Same:
  case Kind::Different:
    return check.name;
  default:
    return textOf(check.expected, check.name);
  }
}

std::vector<std::string> Guards::texts() const {
  std::vector<std::string> all;
  for (size_t i = 0; i <= checks.size(); ++i)
    if (std::string each = text(i); !each.empty())
      all.push_back(std::move(each));
  return all;
}

} // namespace weft::capture
