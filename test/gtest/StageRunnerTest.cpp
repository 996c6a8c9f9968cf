// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pass that fails names the user's line and leaves a reproducer that weft-opt runs.
#include "compiler/Driver/StageRunner.h"
#include "compiler/Driver/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <gtest/gtest.h>

using namespace weft;

// A shape that is not static ahead of fusion; the compiler's own importer makes none.
static constexpr llvm::StringLiteral source = R"mlir(
  func.func @main(%x: tensor<4xf32>) -> tensor<?xf32> attributes {weft.entry = #weft.entry<main>} {
    %0 = weft.exp %x : tensor<4xf32>
    %1 = tensor.cast %0 : tensor<4xf32> to tensor<?xf32> loc("model.py":12:0)
    return %1 : tensor<?xf32>
  })mlir";

namespace {
class StageRunnerTest : public testing::Test {
protected:
  StageRunnerTest() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    registerPasses();
    module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  }

  StageRunner runner() {
    return StageRunner({llvm::cantFail(TargetInfo::host("native")), ""}, seconds);
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  StageRunner::Timings seconds;
};
} // namespace

TEST_F(StageRunnerTest, FailureNamesTheLineAndLeavesAReproducer) {
  DiagnosticLog log(context);
  ASSERT_TRUE(failed(runner().run(*module, "llvm")));
  EXPECT_NE(log.text.find("model.py:12: error: "), std::string::npos) << log.text;
  EXPECT_NE(log.text.find("cannot reach stage 'kernels'"), std::string::npos) << log.text;

  llvm::StringRef command = "weft-opt --run-reproducer ";
  llvm::StringRef path = llvm::StringRef(log.text).split(command).second.trim();
  ASSERT_TRUE(llvm::sys::fs::exists(path)) << log.text;
  llvm::FileRemover reproducer(path), output("reproducer.out");

  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(""),
                                                llvm::StringRef("reproducer.out")};
  int status = llvm::sys::ExecuteAndWait(WEFT_OPT, {WEFT_OPT, "--run-reproducer", path},
                                         std::nullopt, redirects);
  EXPECT_EQ(status, 1);
  auto text = llvm::MemoryBuffer::getFile("reproducer.out");
  ASSERT_TRUE(bool(text));
  llvm::StringRef errors = (*text)->getBuffer();
  EXPECT_TRUE(errors.contains("expected a primitive op")) << errors.str();
  EXPECT_TRUE(errors.contains("model.py:12")) << errors.str();
}

TEST_F(StageRunnerTest, EveryStageIsTimed) {
  ASSERT_TRUE(succeeded(runner().run(*module, "optimized")));
  ASSERT_EQ(seconds.size(), 1u);
  EXPECT_EQ(seconds.front().first, "optimized");
}
