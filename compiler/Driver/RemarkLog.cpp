// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Driver/RemarkLog.h"
#include "compiler/Driver/SessionState.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Remarks/Remark.h"

using namespace mlir;
using namespace weft;

static std::string kindOf(llvm::remarks::Type type) {
  switch (type) {
  case llvm::remarks::Type::Passed:
    return "passed";
  case llvm::remarks::Type::Missed:
    return "missed";
  case llvm::remarks::Type::Failure:
    return "failed";
  default:
    return "analysis";
  }
}

namespace {

class Collector : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit Collector(std::vector<api::Remark> &remarks) : remarks(remarks) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    std::string text;
    for (const remark::detail::Remark::Arg &part : remark.getArgs())
      text += part.val;
    remarks.push_back({remark.getCategoryName().str(), kindOf(remark.getRemarkType()),
                       std::move(text), api::Session::State::lineOf(remark.getLocation())});
  }

private:
  std::vector<api::Remark> &remarks;
};

} // namespace

RemarkLog::RemarkLog(MLIRContext &context, std::vector<api::Remark> &remarks) : context(context) {
  remark::RemarkCategories all;
  all.passed = all.missed = all.analysis = all.failed = ".*";
  LogicalResult enabled =
      remark::enableOptimizationRemarks(context, std::make_unique<Collector>(remarks),
                                        std::make_unique<remark::RemarkEmittingPolicyAll>(), all);
  if (failed(enabled))
    llvm_unreachable("the pattern of all categories is one");
}

RemarkLog::~RemarkLog() { context.setRemarkEngine(nullptr); }
