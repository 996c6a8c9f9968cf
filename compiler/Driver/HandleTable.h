// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Handles on the objects of a module that is being rewritten.
#ifndef WEFT_COMPILER_DRIVER_HANDLETABLE_H
#define WEFT_COMPILER_DRIVER_HANDLETABLE_H

#include "compiler/Driver/Session.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace weft {

/// Which object each handle names, or what became of it. Is told of all changes through the
/// rewriter that it listens to, so that no handle ever leads to freed memory: an op that is
/// replaced by another with as many results is from then on that other one, and each result is
/// its replacement; what is erased is Stale.
class HandleTable : public mlir::RewriterBase::Listener {
public:
  class Record;

  api::Handle of(mlir::Operation *op) { return enter(op, Kind::Op); }
  api::Handle of(mlir::Block *block) { return enter(block, Kind::Block); }
  api::ValueRef of(mlir::Value value);

  /// Null after a fault.
  mlir::Operation *op(api::Fault &fault, api::Handle handle) const;
  mlir::Block *block(api::Fault &fault, api::Handle handle) const;
  mlir::Value value(api::Fault &fault, api::ValueRef ref) const;

  bool isAlive(api::Handle handle) const;
  /// The handle, or that of what has replaced its object.
  api::Handle follow(api::Handle handle) const;

  /// What becomes of handles whose objects are erased from now on.
  void setCause(std::string text) { cause = std::move(text); }
  /// All go stale but those on `kept` and its blocks.
  void expire(mlir::Operation *kept, llvm::StringRef why);
  void forget(mlir::BlockArgument argument);
  /// The handles as they are, but on the copies that `mapping` has made of their objects.
  Record mapped(const mlir::IRMapping &mapping) const;
  /// Goes back to what was recorded; newer handles are stale.
  void rewind(Record earlier, llvm::StringRef why);

  void notifyOperationReplaced(mlir::Operation *op, mlir::ValueRange replacement) override;
  void notifyOperationErased(mlir::Operation *op) override;
  void notifyBlockErased(mlir::Block *block) override;

private:
  enum class Kind : uint8_t { Op, Block, Argument };
  struct Entry {
    void *object; ///< null: it is gone
    Kind kind;
    api::Handle replacement = 0;
    std::string fate;
  };

  api::Handle enter(void *object, Kind kind);
  void *find(api::Fault &fault, api::Handle handle, Kind kind) const;
  void erase(void *object, std::string fate);

  std::vector<Entry> entries; ///< of handle 1, 2, ...
  llvm::DenseMap<void *, api::Handle> handles;
  /// Of results, by the op's handle and their number.
  llvm::DenseMap<std::pair<api::Handle, int64_t>, api::ValueRef> replacements;
  std::string cause;
};

/// What a table held at one time.
class HandleTable::Record {
  friend HandleTable;
  std::vector<Entry> entries;
  llvm::DenseMap<void *, api::Handle> handles;
  llvm::DenseMap<std::pair<api::Handle, int64_t>, api::ValueRef> replacements;
};

} // namespace weft

#endif
