// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Handles of a session under random rewriting: each leads to a live object or is stale, also where
// memory is used again. Meant for the build with sanitizers before all.
#include "compiler/Driver/Session.h"
#include <gtest/gtest.h>
#include <random>

using namespace weft::api;

static const std::string source = R"mlir(
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = weft.exp %x : tensor<4xf32>
    %1 = weft.add %0, %x : tensor<4xf32>
    %2 = weft.mul %1, %0 : tensor<4xf32>
    return %2 : tensor<4xf32>
  })mlir";

namespace {

class SessionTest : public testing::Test {
protected:
  SessionTest() : session(Session::parse(fault, source, "source")) { body = bodyNow(); }

  Handle bodyNow() {
    Handle function =
        session->ops(fault, session->blocks(fault, session->module()).front()).front();
    return session->blocks(fault, function).front();
  }

  Handle make(const std::string &name, std::vector<std::vector<ValueRef>> operands, Handle before) {
    NewOp request;
    request.name = name;
    request.operands = std::move(operands);
    request.before = before;
    return session->createOp(fault, request);
  }

  /// Reads all that can be read through the handle; whether it is alive.
  bool use(Handle op) {
    Fault found;
    std::string name = session->name(found, op);
    for (ValueRef value : session->results(found, op)) {
      session->type(found, value);
      session->uses(found, value);
    }
    session->attributes(found, op);
    session->line(found, op);
    EXPECT_EQ(found.kind == Fault::Kind::None, session->isAlive(op)) << found.text;
    EXPECT_TRUE(!found || found.kind == Fault::Kind::Stale) << found.text;
    EXPECT_TRUE(!found || !found.text.empty());
    return !found && !name.empty();
  }

  Fault fault;
  std::unique_ptr<Session> session;
  Handle body = 0;
};

} // namespace

TEST_F(SessionTest, AHandleFollowsTheReplacement) {
  std::vector<Handle> ops = session->ops(fault, body);
  ValueRef sum{ops[1], 0};
  Handle product = make("weft.mul", {{{ops[0], 0}}, {{ops[0], 0}}}, ops[1]);
  session->replaceOp(fault, ops[1], {{product, 0}});
  ASSERT_FALSE(fault) << fault.text;
  EXPECT_EQ(session->name(fault, ops[1]), "weft.mul");
  EXPECT_EQ(session->follow(ops[1]), product);
  EXPECT_EQ(session->current(fault, sum).owner, product);
}

TEST_F(SessionTest, WhatAFailedChangeMadeIsStale) {
  std::vector<Handle> ops = session->ops(fault, body);
  session->remember(fault);
  Handle made = make("weft.neg", {{{ops[0], 0}}}, ops[1]);
  session->replaceOp(fault, ops[0], session->arguments(fault, body));
  session->restore(fault, "undone");
  ASSERT_FALSE(fault) << fault.text;
  EXPECT_EQ(session->name(fault, ops[0]), "weft.exp");
  EXPECT_FALSE(use(made));
  session->verify(fault);
  EXPECT_FALSE(fault) << fault.text;
}

TEST_F(SessionTest, HandlesNeverLeadToFreedMemory) {
  std::mt19937 random(0);
  std::vector<Handle> all = session->ops(fault, body);
  auto pick = [&](size_t size) { return random() % size; };
  for (int step = 0; step < 3000; ++step) {
    std::vector<Handle> ops = session->ops(fault, bodyNow());
    Handle op = ops[pick(ops.size())];
    bool ends = op == ops.back();
    switch (pick(8)) {
    case 0:
      session->removeUnused(fault);
      break;
    case 1:
      if (step % 16 == 0)
        session->runPasses(fault, "cse");
      break;
    case 2: {
      session->remember(fault);
      if (!ends)
        session->replaceOp(fault, op, {session->operands(fault, op).front()});
      all.push_back(make("weft.exp", {session->arguments(fault, bodyNow())}, ops.back()));
      session->restore(fault, "undone");
      break;
    }
    case 3:
      if (!ends && ops.size() > 3)
        session->replaceOp(fault, op, {session->operands(fault, op).front()});
      break;
    default: {
      ValueRef read = session->operands(fault, op).front();
      Handle made = make("weft.add", {{read}, {read}}, op);
      all.push_back(made);
      session->setOperand(fault, op, 0, {made, 0});
    }
    }
    ASSERT_FALSE(fault) << fault.text;
    for (int count = 0; count < 8; ++count)
      use(all[pick(all.size())]);
  }
  session->verify(fault);
  EXPECT_FALSE(fault) << fault.text;
}
