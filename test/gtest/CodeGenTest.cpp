// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels and entry points become a shared object that runs, and bad input becomes an error.
#include "compiler/Driver/CodeGen.h"
#include "compiler/Driver/Link.h"
#include "compiler/Driver/Stages.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <numeric>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#endif

using namespace weft;

namespace {

/// Two kernels, one with a table, and an entry that calls both.
const char *source = R"mlir(
  llvm.func @addTable(!llvm.ptr)
  llvm.func @double(!llvm.ptr)
  llvm.func @weft_artifact(%out: !llvm.ptr) {
    llvm.call @addTable(%out) : (!llvm.ptr) -> ()
    llvm.call @double(%out) : (!llvm.ptr) -> ()
    llvm.return
  }
  module {
    llvm.mlir.global private constant @table(dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>) : !llvm.array<4 x f32>
    llvm.func @addTable(%out: !llvm.ptr {llvm.noalias}) {
      %table = llvm.mlir.addressof @table : !llvm.ptr
      %0 = llvm.load %out {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
      %1 = llvm.load %table {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
      %2 = llvm.fadd %0, %1 : vector<4xf32>
      llvm.store %2, %out {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
      llvm.return
    }
  }
  module {
    llvm.func @double(%out: !llvm.ptr {llvm.noalias}) {
      %0 = llvm.load %out {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
      %1 = llvm.fadd %0, %0 : vector<4xf32>
      llvm.store %1, %out {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
      llvm.return
    }
  }
)mlir";

/// The lower halves of two bf16 vectors, one of which is zero.
const char *lowerHalves = R"mlir(
  llvm.func @halves(!llvm.ptr)
  llvm.func @weft_artifact(%data: !llvm.ptr) {
    llvm.call @halves(%data) : (!llvm.ptr) -> ()
    llvm.return
  }
  module {
    llvm.func @halves(%data: !llvm.ptr {llvm.noalias}) {
      %zero = llvm.mlir.constant(dense<0.0> : vector<16xbf16>) : vector<16xbf16>
      %0 = llvm.load %data {alignment = 2 : i64} : !llvm.ptr -> vector<16xbf16>
      %1 = llvm.shufflevector %zero, %0 [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xbf16>
      llvm.store %1, %data {alignment = 2 : i64} : vector<16xbf16>, !llvm.ptr
      llvm.return
    }
  }
)mlir";

/// The first bf16 number, and one of the first two, from one block to another.
const char *movesBetweenBlocks = R"mlir(
  llvm.func @moves(!llvm.ptr)
  llvm.func @weft_artifact(%data: !llvm.ptr) {
    llvm.call @moves(%data) : (!llvm.ptr) -> ()
    llvm.return
  }
  module {
    llvm.func @moves(%data: !llvm.ptr {llvm.noalias}) {
      %zero = llvm.mlir.constant(0 : i16) : i16
      %0 = llvm.load %data {alignment = 2 : i64} : !llvm.ptr -> bf16
      %1 = llvm.getelementptr %data[1] : (!llvm.ptr) -> !llvm.ptr, bf16
      %2 = llvm.getelementptr %data[2] : (!llvm.ptr) -> !llvm.ptr, bf16
      %3 = llvm.getelementptr %data[3] : (!llvm.ptr) -> !llvm.ptr, bf16
      %4 = llvm.bitcast %0 : bf16 to i16
      %5 = llvm.icmp "slt" %4, %zero : i16
      llvm.cond_br %5, ^end(%0 : bf16), ^other
    ^other:
      llvm.store %zero, %3 {alignment = 2 : i64, volatile_} : i16, !llvm.ptr
      %6 = llvm.load %1 {alignment = 2 : i64} : !llvm.ptr -> bf16
      llvm.br ^end(%6 : bf16)
    ^end(%chosen: bf16):
      llvm.store %chosen, %2 {alignment = 2 : i64} : bf16, !llvm.ptr
      llvm.store %0, %3 {alignment = 2 : i64} : bf16, !llvm.ptr
      llvm.return
    }
  }
)mlir";

/// Loads the first four of eight elements, if a condition holds, and stores eight.
const char *loadOfHalf = R"mlir(
  llvm.func @half(!llvm.ptr, !llvm.ptr, i8)
  llvm.func @weft_artifact(%from: !llvm.ptr, %to: !llvm.ptr, %on: i8) {
    llvm.call @half(%from, %to, %on) : (!llvm.ptr, !llvm.ptr, i8) -> ()
    llvm.return
  }
  module {
    llvm.func @half(%from: !llvm.ptr {llvm.noalias}, %to: !llvm.ptr {llvm.noalias}, %on: i8) {
      %zero = llvm.mlir.constant(0 : i8) : i8
      %first = llvm.mlir.constant(0 : i64) : i64
      %none = llvm.mlir.constant(dense<0.0> : vector<8xf64>) : vector<8xf64>
      %lanes = llvm.mlir.constant(dense<[true, true, true, true, false, false, false, false]>
                                  : vector<8xi1>) : vector<8xi1>
      %0 = llvm.mlir.poison : vector<8xi1>
      %1 = llvm.icmp "ne" %on, %zero : i8
      %2 = llvm.insertelement %1, %0[%first : i64] : vector<8xi1>
      %3 = llvm.shufflevector %2, %0 [0, 0, 0, 0, 0, 0, 0, 0] : vector<8xi1>
      %4 = llvm.and %3, %lanes : vector<8xi1>
      %5 = llvm.intr.masked.load %from, %4, %none {alignment = 8 : i32}
          : (!llvm.ptr, vector<8xi1>, vector<8xf64>) -> vector<8xf64>
      llvm.store %5, %to {alignment = 8 : i64} : vector<8xf64>, !llvm.ptr
      llvm.return
    }
  }
)mlir";

/// A kernel of AMX, which AVX2 alone does not have.
const char *tiles = R"mlir(
  llvm.func @tiles()
  llvm.func @weft_artifact() {
    llvm.call @tiles() : () -> ()
    llvm.return
  }
  module {
    llvm.func @tiles() {
      llvm.call_intrinsic "llvm.x86.tilerelease"() : () -> ()
      llvm.return
    }
  }
)mlir";

/// The lane of a vector of i32 that `mask` leaves, as one byte.
const char *narrowStore = R"mlir(
  llvm.func @narrow(!llvm.ptr, !llvm.ptr)
  llvm.func @weft_artifact(%in: !llvm.ptr, %out: !llvm.ptr) {
    llvm.call @narrow(%in, %out) : (!llvm.ptr, !llvm.ptr) -> ()
    llvm.return
  }
  module {
    llvm.func @narrow(%in: !llvm.ptr {llvm.noalias}, %out: !llvm.ptr {llvm.noalias}) {
      %0 = llvm.load %in {alignment = 4 : i64} : !llvm.ptr -> vector<8xi32>
      %1 = llvm.trunc %0 : vector<8xi32> to vector<8xi8>
      %mask = llvm.mlir.constant(dense<[LANES]> : vector<8xi1>) : vector<8xi1>
      llvm.intr.masked.store %1, %out, %mask {alignment = 1 : i32} : vector<8xi8>, vector<8xi1> into !llvm.ptr
      llvm.return
    }
  }
)mlir";

/// `narrowStore` with one lane set.
std::string storeOfLane(int lane) {
  std::string text = narrowStore, lanes;
  for (int i = 0; i < 8; ++i)
    lanes += std::string(i ? ", " : "") + (i == lane ? "true" : "false");
  return text.replace(text.find("LANES"), 5, lanes);
}

class CodeGen : public ::testing::Test {
protected:
  CodeGen() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    auto host = TargetInfo::host();
    if (host)
      target = *host;
    llvm::sys::fs::createUniqueDirectory("weft-codegen-test", folder);
  }
  ~CodeGen() override { llvm::sys::fs::remove_directories(folder); }

  std::string path(llvm::StringRef name) const { return (folder + "/" + name).str(); }

  std::vector<ObjectCode> compile(llvm::StringRef text = source) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return {};
    auto objects = generateCode(*module, target, "weft_artifact");
    return succeeded(objects) ? std::move(*objects) : std::vector<ObjectCode>();
  }

  mlir::MLIRContext context;
  TargetInfo target;
  llvm::SmallString<128> folder;
};

TEST_F(CodeGen, RunsWhatItCompiled) {
  std::vector<ObjectCode> objects = compile();
  ASSERT_EQ(objects.size(), 3u);
  llvm::Error error = linkSharedObject(objects, path("a.so"));
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));

  void *library = dlopen(path("a.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto *function = reinterpret_cast<void (*)(float *)>(dlsym(library, "weft_artifact"));
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(dlsym(library, "double"), nullptr) << "kernels must not be exported";
  float data[] = {10, 20, 30, 40};
  function(data);
  EXPECT_EQ(data[0], 22);
  EXPECT_EQ(data[3], 88);
  dlclose(library);
}

TEST_F(CodeGen, AStoreOfOneNarrowLaneLeavesItsNeighbours) {
  for (int lane : {0, 5}) {
    std::string name = path(std::to_string(lane));
    llvm::Error error = linkSharedObject(compile(storeOfLane(lane)), name);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto *function =
        reinterpret_cast<void (*)(const int32_t *, char *)>(dlsym(library, "weft_artifact"));
    ASSERT_NE(function, nullptr);
    const int32_t in[] = {1, 2, 3, 4, 5, 6, 7, 8};
    std::string out(16, '.'), expected = out;
    function(in, out.data());
    expected[lane] = char(in[lane]);
    EXPECT_EQ(out, expected);
    dlclose(library);
  }
}

TEST_F(CodeGen, ShufflesVectorsOfBf16) {
  llvm::Error error = linkSharedObject(compile(lowerHalves), path("halves.so"));
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  void *library = dlopen(path("halves.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto *function = reinterpret_cast<void (*)(uint16_t *)>(dlsym(library, "weft_artifact"));
  ASSERT_NE(function, nullptr);
  uint16_t data[16];
  std::iota(std::begin(data), std::end(data), 1);
  function(data);
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(data[i], i < 8 ? 0 : i - 7);
  dlclose(library);
}

TEST_F(CodeGen, KeepsDenormalsOfBf16BetweenBlocks) {
  llvm::Error error = linkSharedObject(compile(movesBetweenBlocks), path("moves.so"));
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  void *library = dlopen(path("moves.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto *function = reinterpret_cast<void (*)(uint16_t *)>(dlsym(library, "weft_artifact"));
  ASSERT_NE(function, nullptr);
  for (uint16_t first : {0x0040, 0x8040}) {
    uint16_t data[] = {first, 0x0003, 0, 0};
    function(data);
    EXPECT_EQ(data[2], first == 0x0040 ? 0x0003 : first);
    EXPECT_EQ(data[3], first);
  }
  dlclose(library);
}

TEST_F(CodeGen, LoadsNothingOfARegisterWithoutLanes) {
  target.features = "+avx2";
  llvm::Error error = linkSharedObject(compile(loadOfHalf), path("half.so"));
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  void *library = dlopen(path("half.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto *function =
      reinterpret_cast<void (*)(const double *, double *, int8_t)>(dlsym(library, "weft_artifact"));
  ASSERT_NE(function, nullptr);
  const size_t page = sysconf(_SC_PAGESIZE);
  void *memory =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char *>(memory) + page, page, PROT_NONE), 0);
  auto *from = reinterpret_cast<double *>(static_cast<char *>(memory) + page) - 4;
  std::iota(from, from + 4, 1.0);
  for (int8_t on : {1, 0}) {
    std::vector<double> to(8, -1.0);
    function(from, to.data(), on);
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(to[i], on && i < 4 ? i + 1.0 : 0.0);
  }
  munmap(memory, 2 * page);
  dlclose(library);
}

TEST_F(CodeGen, WhatLlvmHasNoCodeForIsAnError) {
#if __has_feature(address_sanitizer)
  // What a fatal error of LLVM leaves behind is never freed (FatalErrors.h).
  __lsan::ScopedDisabler ofThisThread;
  context.disableMultithreading();
#endif
  target.features = "+avx2,-amx-tile";
  std::string found;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    found = diagnostic.str();
    return mlir::success();
  });
  EXPECT_TRUE(compile(tiles).empty());
  EXPECT_NE(found.find("LLVM has no code for 'tiles'"), std::string::npos) << found;
  EXPECT_EQ(compile().size(), 3u);
}

TEST_F(CodeGen, EqualInputGivesEqualCode) {
  std::vector<ObjectCode> first = compile(), second = compile();
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].name, second[i].name);
    EXPECT_EQ(first[i].bytes, second[i].bytes);
  }
}

TEST_F(CodeGen, StopsWhenCancelled) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
  ASSERT_TRUE(bool(module));
  mlir::ScopedDiagnosticHandler silence(&context, [](mlir::Diagnostic &) {});
  std::atomic<bool> cancelled = true;
  EXPECT_TRUE(failed(generateCode(*module, target, "weft_artifact", &cancelled)));
  cancelled = false;
  EXPECT_TRUE(succeeded(generateCode(*module, target, "weft_artifact", &cancelled)));
}

TEST_F(CodeGen, ThreadsMayLinkAtOnce) {
  std::vector<ObjectCode> objects = compile();
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      if (llvm::Error error = linkSharedObject(objects, path(std::to_string(i)))) {
        llvm::consumeError(std::move(error));
        ++failures;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(CodeGen, AFailedLinkLeavesNothing) {
  ObjectCode broken{"broken", {}};
  broken.bytes.append({'n', 'o', ' ', 'E', 'L', 'F'});
  llvm::Error error = linkSharedObject({broken}, path("b.so"));
  ASSERT_TRUE(bool(error));
  EXPECT_NE(llvm::toString(std::move(error)).find("cannot link"), std::string::npos);
  std::error_code code;
  EXPECT_EQ(llvm::sys::fs::directory_iterator(folder, code), llvm::sys::fs::directory_iterator());
}

TEST_F(CodeGen, AFolderThatIsNotThereIsNamed) {
  llvm::Error error = linkSharedObject(compile(), path("missing/c.so"));
  ASSERT_TRUE(bool(error));
  EXPECT_NE(llvm::toString(std::move(error)).find("missing/c.so"), std::string::npos);
}

} // namespace
