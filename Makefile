# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Each target installs and builds what it needs first, then says what it does. Stamps under
# build/ remember finished steps, so that a second run starts at once.

BUILD := build/release
BIN := .venv/bin
JOBS := $(shell nproc)
RUN := $(BIN)/python
say = @echo "weft: $(strip $(1))"

.DEFAULT_GOAL := help
.PHONY: help demo test opinfo capture-fuzz bench bench-ops bench-rnn overhead chart test-bench docs
.PHONY: build
.PHONY: lint lint-code format tidy types debug tsan clean
.PHONY: nets sanitized isa-matrix

help:
	@echo "make demo    compile real models, compare with PyTorch (DEMO_ARGS=...)"
	@echo "make test    build, then lints and tests, of many like cases a part (CASES=rest, CASES=all)"
	@echo "make nets    clang-tidy, our code under sanitizers, kernels by instruction set and threads"
	@echo "make opinfo  judge every op by PyTorch's own samples, about an hour (OPINFO_ARGS=...)"
	@echo "make capture-fuzz  change what programs of all kinds read, between calls (CAPTURE_ARGS=...)"
	@echo "make bench   measure against PyTorch, inductor, onnxruntime, openvino (BENCH_ARGS=...)"
	@echo "make bench-ops  single ops and small compositions beside PyTorch (OPS_ARGS=...)"
	@echo "make bench-rnn  recurrent modules and loops over time beside PyTorch (RNN_ARGS=...),"
	@echo "             an LSTM with one pass after another, as a chart (LADDER_ARGS=...)"
	@echo "make overhead  the time of an empty call, compile times, memory"
	@echo "make chart   the README's chart from benchmarks/results (RESULTS=....json)"
	@echo "make docs    the site (tour, first pass, stages, ops, passes) in build/docs"
	@echo "make build   the compiler, weft-opt and the Python package, into $(BUILD)"
	@echo "make lint    formats, includes, FileCheck, documents    make format   apply the formats"
	@echo "make types   mypy, of the modules in pyproject.toml"
	@echo "make tidy    clang-tidy (20 minutes on two cores)       make debug    ASan and UBSan build"
	@echo "make tsan    ThreadSanitizer build, into build/tsan"
	@echo "make clean   remove build/ and .venv/"

# --- what the machine needs ---

build/stamps/debian: apt-packages.txt tools/setup/install-debian-packages.sh
	$(call say,looking for the Debian packages of apt-packages.txt)
	@tools/setup/install-debian-packages.sh
	@mkdir -p $(@D) && touch $@

# The build tree holds the package: sources are linked, modules lie beside them.
.venv/stamp: requirements-dev.txt | build/stamps/debian
	$(call say,making .venv and installing the Python packages of $<)
	@test -x $(BIN)/python || tools/setup/make-venv.sh .venv
	@$(BIN)/python -m pip install --disable-pip-version-check --requirement $<
	@echo $(CURDIR)/$(BUILD)/python > $$(echo .venv/lib/python*/site-packages)/weft.pth
	@touch $@

.venv/stamp-bench: requirements-bench.txt .venv/stamp
	$(call say,installing the systems to compare with: $<)
	@$(BIN)/python -m pip install --disable-pip-version-check --requirement $<
	@touch $@

# --- build ---

build/%/build.ninja: CMakePresets.json | build/stamps/debian .venv/stamp
	$(call say,configuring $(@D))
	@cmake --preset $* -D Python_EXECUTABLE=$(CURDIR)/$(BIN)/python \
	  -D WEFT_LIT=$(CURDIR)/$(BIN)/lit

build: $(BUILD)/build.ninja .venv/stamp build/stamps/debian
	$(call say,building $(BUILD) with $(JOBS) jobs)
	@cmake --build --preset release --parallel $(JOBS)

debug tsan: %: build/%/build.ninja .venv/stamp build/stamps/debian
	$(call say,building build/$@ with $(JOBS) jobs)
	@cmake --build --preset $@ --parallel $(JOBS)

# --- run ---

demo: build
	$(call say,running the demo)
	@$(RUN) -m examples.demo $(DEMO_ARGS)

# Beside $(RESULTS): the tables as text, and a chart.
RESULTS := benchmarks/results/latest.json

bench: build .venv/stamp-bench
	$(call say,running the benchmarks)
	@mkdir -p $(dir $(RESULTS))
	@$(RUN) -m benchmarks.run --output $(RESULTS) $(BENCH_ARGS)
	@$(RUN) -m benchmarks.chart $(RESULTS) $(RESULTS:.json=.svg)

bench-ops: build
	$(call say,measuring single ops beside PyTorch)
	@mkdir -p benchmarks/results
	@$(RUN) -m benchmarks.ops --json benchmarks/results/ops.json $(OPS_ARGS)

bench-rnn: build
	$(call say,measuring recurrent nets beside PyTorch)
	@$(RUN) -m benchmarks.recurrent $(RNN_ARGS)
	@$(RUN) -m benchmarks.recurrent_ladder $(LADDER_ARGS)

overhead: build .venv/stamp-bench
	$(call say,measuring what Weft costs beside the programs)
	@$(RUN) -m benchmarks.overhead

chart: .venv/stamp-bench
	$(call say,drawing $(RESULTS) into the README)
	@$(RUN) -m benchmarks.chart $(RESULTS) docs/benchmarks.svg --readme README.md

# What needs the packages of requirements-bench.txt.
test-bench: build .venv/stamp-bench
	$(call say,testing the benchmarks' chart)
	@$(RUN) -m pytest -q test/benchmarks

# Every suite runs, whatever the others said; pytest's summary is the last line. Two processes share
# the cores: threads of PyTorch that wait for work leave them to the others. CASES: what
# test/python/chosen_cases.py chooses of the Python tests, the rest, or all.
CASES := chosen
PYTEST := OMP_WAIT_POLICY=PASSIVE $(RUN) -m pytest -q --numprocesses $(JOBS) --dist loadfile \
  --no-loadscope-reorder

test: build
	@failed=""; \
	echo "weft: lints"; $(MAKE) --no-print-directory lint-code || failed="$$failed lint"; \
	echo "weft: types"; $(MAKE) --no-print-directory types || failed="$$failed types"; \
	echo "weft: lit tests"; cmake --build --preset release --target check-weft-lit || failed="$$failed lit"; \
	echo "weft: C++ tests"; \
	ctest --test-dir $(BUILD) --output-on-failure --progress --parallel $(JOBS) \
	  || failed="$$failed ctest"; \
	test -z "$$failed" || echo "weft: failed before the Python tests:$$failed"; \
	echo "weft: Python tests"; $(PYTEST) --cases=$(CASES) $(PYTEST_ARGS) && \
	test -z "$$failed"

# What `make test` does not reach: other builds, and machines other than this one.
nets: tidy sanitized isa-matrix

# Our own code under ASan and UBSan: the run time, the compiler, the bindings as Python uses them;
# the thread team under TSan, too.
sanitized: debug build/tsan/build.ninja
	@echo "weft: lit and C++ tests of build/debug"
	@cmake --build --preset debug --target check-weft-lit
	@ctest --test-dir build/debug --output-on-failure --progress --parallel $(JOBS)
	@echo "weft: the bindings of build/debug"
	@PYTHONPATH=build/debug/python ASAN_OPTIONS=$(PYTHON_ASAN_OPTIONS) \
	  LD_PRELOAD=$$(clang-22 -print-file-name=libclang_rt.asan-x86_64.so) \
	  $(PYTEST) --cases=chosen $(BINDING_TESTS)
	@echo "weft: the run time of build/tsan"
	@cmake --build --preset tsan --parallel $(JOBS) --target weft-runtime-test
	@TSAN_OPTIONS=die_after_fork=0 \
	  build/tsan/test/gtest/runtime/weft-runtime-test --gtest_brief=1

# As cmake/SanitizerOptions.cpp says; CPython leaves memory to the end.
PYTHON_ASAN_OPTIONS := use_sigaltstack=0:detect_leaks=0:allow_user_poisoning=0
BINDING_TESTS := $(patsubst %,test/python/test_%.py,dispatch guards observer_values \
  observer_effects training_bridge recorded_calls ir_rewriting te_calls)

# Instruction sets by threads, on tests that reach every kind of kernel.
isa-matrix: build
	@for isa in avx2 avx512; do for threads in 1 2; do \
	  echo "weft: $$isa on $$threads threads"; \
	  WEFT_ISA=$$isa WEFT_THREADS=$$threads $(PYTEST) --cases=chosen $(ISA_TESTS) || exit 1; \
	done; done

ISA_TESTS := $(patsubst %,test/python/test_%.py,single_ops contraction_shapes long_sums order)

# Goes on behind what build/opinfo/records.jsonl holds of this build.
opinfo: build
	$(call say,judging every op by the samples of PyTorch's op_db)
	@PYTHONPATH=test $(RUN) -m opinfo $(OPINFO_ARGS)

# Goes on behind what build/capture/records.jsonl holds.
capture-fuzz: build
	$(call say,changing one thing after another in the programs of test/capture)
	@PYTHONPATH=test $(RUN) -m capture $(CAPTURE_ARGS)

lint: .venv/stamp lint-code

lint-code:
	$(call say,checking includes; imports; names; lengths; FileCheck directives; documents; clang-format and ruff)
	@$(BIN)/python tools/check-includes.py
	@$(BIN)/python tools/check-imports.py
	@$(BIN)/python tools/check-names.py
	@$(BIN)/python tools/check-lengths.py
	@$(BIN)/python tools/check-filecheck.py
	@$(BIN)/python tools/check-papers.py
	@git ls-files '*.c' '*.cpp' '*.h' | xargs clang-format-22 --dry-run --Werror
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .

format: .venv/stamp
	$(call say,formatting C++ and Python)
	@git ls-files '*.c' '*.cpp' '*.h' | xargs clang-format-22 -i
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

# Every file, or `make tidy TIDY_FILES="..."`: what .clang-tidy finds is an error.
TIDY_FILES = $(shell git ls-files 'compiler/*.cpp' 'runtime/*.cpp' 'capture/*.cpp' 'python/*.cpp' \
  'tools/*.cpp')

tidy: build
	$(call say,running clang-tidy)
	@echo $(TIDY_FILES) \
	  | xargs --max-args=1 --max-procs=$(JOBS) clang-tidy-22 --quiet -p $(BUILD) $(TIDY_ARGS)

# These walk through all of MLIR's headers again for each file, or make others pay for it: 8.5
# seconds of 9.
nets: TIDY_ARGS := --checks=$(shell echo $(foreach check,readability-identifier-naming \
  bugprone-assignment-in-if-condition bugprone-bool-pointer-implicit-conversion \
  bugprone-forward-declaration-namespace bugprone-reserved-identifier \
  bugprone-inc-dec-in-conditions bugprone-infinite-loop bugprone-integer-division \
  bugprone-return-const-ref-from-parameter bugprone-standalone-empty \
  bugprone-std-namespace-modification bugprone-swapped-arguments bugprone-terminating-continue \
  bugprone-throw-keyword-missing bugprone-undelegated-constructor bugprone-unused-raii \
  bugprone-use-after-move modernize-use-equals-default performance-move-const-arg \
  performance-unnecessary-copy-initialization,-$(check)) | tr ' ' ,)

types: build
	$(call say,checking types)
	@MYPYPATH=$(BUILD)/python $(RUN) -m mypy --cache-dir build/mypy

docs: build
	$(call say,making the site in build/docs, and docs/overloads.md)
	@$(RUN) tools/write-overloads.py
	@$(RUN) tools/write-site.py build/site
	@$(RUN) -m mkdocs build --quiet
	@echo "weft: the site begins at build/docs/tour.html"

clean:
	$(call say,removing build and .venv)
	@rm -rf build .venv
