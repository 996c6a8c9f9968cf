// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A module that is read, changed, lowered and compiled step by step, for callers that are built
// with exceptions and RTTI, which LLVM is not: no type of LLVM's or MLIR's appears here.
#ifndef WEFT_COMPILER_DRIVER_SESSION_H
#define WEFT_COMPILER_DRIVER_SESSION_H

#include "compiler/Driver/Api.h"
#include "compiler/Driver/Datum.h"
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace weft::api {

/// Names an op, a block or a block argument of one session for as long as the session lives, and
/// is never used again. 0 names nothing.
using Handle = uint64_t;

/// Result `index` of the op `owner`, or the block argument `owner` where `index` is -1.
struct ValueRef {
  Handle owner = 0;
  int64_t index = -1;
};

/// Why a call failed. `line` and `column` are those of text that does not parse.
struct Fault {
  enum class Kind { None, Stale, Invalid, Syntax, Refused, Failed };
  Kind kind = Kind::None;
  std::string text;
  int64_t line = 0, column = 0;
  explicit operator bool() const { return kind != Kind::None; }
};

/// A line of the user's program.
struct Line {
  std::string file;
  int64_t line = 0; ///< 0: unknown
  std::string function;
};

/// `dtype`, `shape` and `layout` (empty: row-major) are those of a ranked tensor of elements that
/// the graph knows; of other types only the `text` is told.
struct TypeInfo {
  std::string text, dtype, layout;
  std::vector<int64_t> shape;
};

struct NewOp {
  std::string name;
  std::vector<std::vector<ValueRef>> operands; ///< by the groups of the op's definition
  std::vector<std::pair<std::string, Datum>> attributes;
  std::vector<std::string> resultTypes; ///< empty: inferred
  Line line;
  Handle block = 0, before = 0; ///< where: ahead of `before`, or at the end of `block`
};

/// What a pass had to say of an optimisation: `kind` is "passed", "missed", "failed" or "analysis".
struct Remark {
  std::string pass, kind, text;
  Line line;
};

struct PrintOptions {
  bool locations = false;
  int64_t mostElements = -1; ///< constants of more elements are left out; -1: none is
};

/// Owns one module with its context. Every call takes handles and checks them: one whose object is
/// gone is a Stale fault that says what became of it. After a fault the module is as it was.
class Session {
public:
  static std::unique_ptr<Session> create(Fault &fault);
  /// `name` is that of the text, in diagnostics.
  static std::unique_ptr<Session> parse(Fault &fault, const std::string &text,
                                        const std::string &name);
  static std::unique_ptr<Session> importGraph(Fault &fault, std::string_view json);
  ~Session();

  /// Equal modules of their own; their handles are new.
  std::unique_ptr<Session> clone(Fault &fault);
  std::unique_ptr<Session> lower(Fault &fault, const std::string &from, const std::string &to,
                                 const Options &options);
  /// compileGraph from the stage `from` on.
  Outcome compile(const std::string &from, const std::string &outputPath, const Options &options,
                  const std::atomic<bool> &cancelled);
  std::string assembly(Fault &fault, const std::string &from, const Options &options);

  std::string print(Fault &fault, Handle op, const PrintOptions &options);
  /// The text of what the module means, which the names of parameters are no part of.
  std::string structure(Fault &fault);
  void verify(Fault &fault);
  /// A pipeline as weft-opt takes it, in place. Handles on what lies in the module go stale.
  void runPasses(Fault &fault, const std::string &pipeline);
  /// Of the passes and stages that led to this module.
  std::vector<Remark> remarks() const;

  /// Remembers the module, until `restore` brings it back, or `forget` lets it go. Handles that
  /// are alive now are alive then.
  void remember(Fault &fault);
  void restore(Fault &fault, const std::string &reason);
  void forget(Fault &fault);

  // Reading.
  Handle module() const;
  std::vector<Handle> blocks(Fault &fault, Handle op);
  std::vector<Handle> ops(Fault &fault, Handle block);
  /// All ops inside one, those inside an op before it.
  std::vector<Handle> walk(Fault &fault, Handle op);
  std::vector<ValueRef> arguments(Fault &fault, Handle block);
  Handle ownerBlock(Fault &fault, ValueRef value);
  Handle parentOp(Fault &fault, Handle block);
  Handle parentBlock(Fault &fault, Handle op);
  std::string name(Fault &fault, Handle op);
  std::vector<ValueRef> operands(Fault &fault, Handle op);
  std::vector<ValueRef> results(Fault &fault, Handle op);
  std::vector<std::pair<std::string, Datum>> attributes(Fault &fault, Handle op);
  Line line(Fault &fault, Handle op);
  TypeInfo type(Fault &fault, ValueRef value);
  /// The op and the number of the operand of each use, in the order of the block.
  std::vector<std::pair<Handle, int64_t>> uses(Fault &fault, ValueRef value);
  std::pair<std::vector<TypeInfo>, std::vector<TypeInfo>> signature(Fault &fault, Handle function);
  /// What stands for the object now: another, where a rewrite has replaced it.
  ValueRef current(Fault &fault, ValueRef value);
  Handle follow(Handle handle) const;
  bool isAlive(Handle handle) const;
  bool isBefore(Fault &fault, Handle op, Handle other);

  // Changing.
  Handle createOp(Fault &fault, const NewOp &request);
  /// Adds the functions of a module in text. Their names have to be new.
  void addFunctions(Fault &fault, const std::string &text);
  /// A function with a block and no results yet, `names` being those of its parameters.
  Handle createFunction(Fault &fault, const std::string &name,
                        const std::vector<std::string> &types,
                        const std::vector<std::string> &names, bool isPrivate, const Line &line);
  /// Ends the function by a return of `values`, in place of the one it has.
  void setReturn(Fault &fault, Handle function, const std::vector<ValueRef> &values);
  void eraseParameter(Fault &fault, Handle function, int64_t number);
  std::vector<std::pair<std::string, Datum>> parameterAttributes(Fault &fault, Handle function,
                                                                 int64_t number);
  void setParameterAttribute(Fault &fault, Handle function, int64_t number, const std::string &name,
                             const Datum &value);
  void replaceOp(Fault &fault, Handle op, const std::vector<ValueRef> &values);
  void replaceUses(Fault &fault, ValueRef value, ValueRef with);
  void eraseOp(Fault &fault, Handle op);
  void setOperand(Fault &fault, Handle op, int64_t number, ValueRef value);
  void setAttribute(Fault &fault, Handle op, const std::string &name, const Datum &value);
  void removeAttribute(Fault &fault, Handle op, const std::string &name);
  void setLine(Fault &fault, Handle op, const Line &line);
  /// Erases ops without effect or use, and private functions that nothing calls; how many.
  int64_t removeUnused(Fault &fault);

  struct State; ///< of LLVM's types

private:
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// The stages in order.
std::vector<std::string> stageNames();

/// The passes that lead to a stage from the one before, as runPasses takes them.
std::vector<std::string> stagePasses(Fault &fault, const std::string &stage,
                                     const Options &options);

} // namespace weft::api

#endif
