// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Linked into every executable of a build with sanitizers. LLVM's allocators poison their
// slabs from inlined code that ours instruments, and unpoison them from code in LLVM's
// libraries that nobody did. LLVM replaces the stacks that ASan gives to signals.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0:use_sigaltstack=0";
}
