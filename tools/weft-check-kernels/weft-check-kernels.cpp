// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `weft-check-kernels FILE`: compiles a module, runs it on inputs from a seed, and compares what it
// gives with a reference that interprets the same module in float64, without a schedule or
// generated code. A file may hold several modules, split by `// -----`. A module is of the stage
// `graph`, whose reference is lowered without any optimisation, or has kernels of the stage
// `linalg` or `scheduled`, whose schedules are kept. Each function is checked if there is no
// `main`. Exits with 1 after the first difference of each result.
#include "Comparison.h"
#include "Interpreter.h"
#include "Subject.h"
#include "compiler/Driver/Compile.h"
#include "compiler/Driver/ModuleText.h"
#include "compiler/Driver/StageRunner.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/ToolUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace weft;
namespace cl = llvm::cl;

static cl::opt<std::string> inputName(cl::Positional, cl::desc("<module>"), cl::init("-"));
static cl::opt<std::string> referenceName("weft-reference",
                                          cl::desc("Another module, for the reference"));
static cl::opt<std::string> isaName("weft-isa", cl::desc("native, avx2, avx512 or amx"),
                                    cl::init("native"));
static cl::opt<int64_t> threads("weft-threads",
                                cl::desc("Threads of a second run after one on one"), cl::init(2));
static cl::opt<std::string> schedule("weft-schedule", cl::desc("Fixed numbers of contractions"));
static cl::opt<std::string> precision("weft-precision", cl::desc("float32 or bf16"),
                                      cl::init("float32"));
static cl::opt<int64_t> level("weft-level", cl::desc("Of optimisation"), cl::init(highestLevel));
static cl::list<std::string> fields("weft-set", cl::desc("A field of a kernel's schedule"),
                                    cl::value_desc("kernel.field=value"));
static cl::list<std::string> fills("weft-fill", cl::desc("From what to what an input is drawn"),
                                   cl::value_desc("input=low:high"));
static cl::opt<uint64_t> seed("weft-seed", cl::desc("Of the inputs"), cl::init(0));
static cl::opt<double> slack("weft-slack", cl::desc("Error bounds that a result may be off"),
                             cl::init(4));

namespace {

/// A file in the temporary folder that goes with its owner.
class TemporaryFile {
public:
  TemporaryFile() {
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("weft-check", "so", path))
      llvm::report_fatal_error(llvm::Twine("cannot make a file: ") + error.message());
    remover.setFile(path);
  }
  std::string name() const { return path.str().str(); }

private:
  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};

using Ranges = std::map<std::string, check::Range>;

/// The command line. It is read once, before anything is linked: lld resets the options of the
/// process.
struct Settings {
  CompileOptions compile;
  std::vector<std::string> fields;
  Ranges ranges;
  uint64_t seed;
  double slack;
};

/// A module with its entry.
struct Subject {
  OwningOpRef<ModuleOp> module;
  bool isGraph;
};

} // namespace

/// Success, or a failure whose message is printed.
static LogicalResult print(llvm::Error error) {
  if (!error)
    return success();
  llvm::errs() << "weft-check-kernels: " << llvm::toString(std::move(error)) << "\n";
  return failure();
}

/// Null after a message.
static std::unique_ptr<llvm::MemoryBuffer> openFile(StringRef name) {
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(name, &message);
  if (!file)
    llvm::errs() << message << "\n";
  return file;
}

static FailureOr<Subject> readSubject(StringRef text, MLIRContext &context) {
  Subject subject{readModule(text, context), false};
  if (!subject.module || failed(check::addEntry(*subject.module)))
    return failure();
  subject.isGraph = !check::hasKernels(*subject.module);
  return subject;
}

/// Brings a subject to `stage`.
static LogicalResult lower(Subject &subject, CompileOptions options, StringRef stage) {
  llvm::Expected<StageSettings> settings = resolveSettings(options);
  if (!settings)
    return print(settings.takeError());
  StageRunner::Timings seconds;
  return StageRunner(*settings, seconds)
      .run(*subject.module, stage, subject.isGraph ? "graph" : "linalg");
}

/// The reference's results on the inputs.
static FailureOr<check::Tensors> referenceResults(Subject subject, CompileOptions options,
                                                  ArrayRef<check::Numbers> inputs) {
  options.level = 0;
  options.schedule = "";
  if (subject.isGraph && failed(lower(subject, options, "linalg")))
    return failure();
  auto entry = subject.module->lookupSymbol<func::FuncOp>("main");
  if (entry.getNumArguments() != inputs.size())
    return entry.emitError("expected ")
           << inputs.size() << " inputs, found " << entry.getNumArguments();
  check::Tensors arguments;
  for (auto [type, numbers] : llvm::zip_equal(entry.getArgumentTypes(), inputs)) {
    auto tensor = std::make_shared<check::Tensor>(type);
    if (tensor->numbers.size() != numbers.size())
      return entry.emitError("expected an input of ")
             << numbers.size() << " elements, found " << type;
    tensor->numbers = numbers;
    arguments.push_back(tensor);
  }
  return check::interpret(entry, arguments);
}

/// The file of the artifact of a subject, whose kernels are listed.
static LogicalResult compile(Subject subject, const Settings &settings, StringRef path) {
  if (failed(lower(subject, settings.compile, "scheduled")) ||
      failed(check::setFields(*subject.module, settings.fields)))
    return failure();
  check::printEmitters(*subject.module, llvm::outs());
  std::string text;
  llvm::raw_string_ostream stream(text);
  subject.module->print(stream, OpPrintingFlags().enableDebugInfo());
  llvm::Expected<CompileReport> report =
      compileGraph(text, settings.compile, path, nullptr, "scheduled");
  return print(report ? check::seal(path.str()) : report.takeError());
}

/// What the artifact gives on the inputs. Fails after a message.
static FailureOr<check::Run> run(const Settings &settings, const std::string &path,
                                 int64_t threads) {
  llvm::Expected<check::Run> run =
      check::runArtifact(path, settings.ranges, settings.seed, int32_t(threads));
  if (run)
    return std::move(*run);
  return print(run.takeError());
}

/// Fails after a message.
static FailureOr<Settings> readSettings() {
  Settings settings{{}, {fields.begin(), fields.end()}, {}, seed, slack};
  settings.compile.isa = isaName;
  settings.compile.threads = threads;
  settings.compile.schedule = schedule;
  settings.compile.precision = precision;
  settings.compile.level = level;
  for (StringRef fill : fills) {
    auto [name, numbers] = fill.split('=');
    auto [low, high] = numbers.split(':');
    check::Range &range = settings.ranges[name.str()];
    if (low.getAsDouble(range.low) || high.getAsDouble(range.high)) {
      llvm::errs() << "expected input=low:high, found '" << fill << "'\n";
      return failure();
    }
  }
  return settings;
}

/// Whether the results of a run are the reference's.
static bool isRight(const check::Run &run, ArrayRef<check::TensorRef> expected,
                    ArrayRef<std::string> names, double slack) {
  if (!run.fault.empty())
    llvm::outs() << run.fault << "\n";
  bool isRight = run.fault.empty();
  for (auto [name, tensor, found] : llvm::zip_equal(names, expected, run.results))
    isRight &= check::compare(name, *tensor, found, slack, llvm::outs());
  return isRight;
}

/// `inputs`: gets the names of the module's inputs.
static LogicalResult checkModule(StringRef text, StringRef referenceText, const Settings &settings,
                                 MLIRContext &context, SmallVectorImpl<std::string> &inputs) {
  FailureOr<Subject> subject = readSubject(text, context);
  FailureOr<Subject> reference = readSubject(referenceText, context);
  if (failed(subject) || failed(reference))
    return failure();
  SmallVector<std::string> names = check::resultNames(*subject->module);
  TemporaryFile artifact;
  if (failed(compile(std::move(*subject), settings, artifact.name())))
    return failure();
  FailureOr<check::Run> alone = run(settings, artifact.name(), 1);
  if (failed(alone))
    return failure();
  llvm::append_range(inputs, alone->inputNames);
  FailureOr<check::Tensors> expected =
      referenceResults(std::move(*reference), settings.compile, alone->inputs);
  if (failed(expected) || !isRight(*alone, *expected, names, settings.slack))
    return failure();
  int64_t threads = settings.compile.threads;
  if (threads == 1)
    return success();
  llvm::outs() << "on " << threads << " threads\n";
  FailureOr<check::Run> team = run(settings, artifact.name(), threads);
  return success(succeeded(team) && isRight(*team, *expected, names, settings.slack));
}

/// Checks each module of a file against its part of the reference.
static LogicalResult checkFile(StringRef file, StringRef reference, const Settings &settings,
                               MLIRContext &context) {
  SmallVector<StringRef> modules, references;
  file.split(modules, kDefaultSplitMarker);
  reference.split(references, kDefaultSplitMarker);
  if (modules.size() != references.size()) {
    llvm::errs() << "expected a reference of " << modules.size() << " modules, found "
                 << references.size() << "\n";
    return failure();
  }
  SmallVector<std::string> inputs;
  bool allRight = true;
  for (auto [module, other] : llvm::zip_equal(modules, references))
    allRight &= succeeded(checkModule(module, other, settings, context, inputs));
  for (const auto &[name, range] : settings.ranges)
    if (allRight && !llvm::is_contained(inputs, name)) {
      llvm::errs() << "expected a range of one of: " << llvm::join(inputs, ", ") << "; found '"
                   << name << "'\n";
      return failure();
    }
  return success(allRight);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "Runs kernels against a reference\n");
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  std::unique_ptr<llvm::MemoryBuffer> file = openFile(inputName);
  std::unique_ptr<llvm::MemoryBuffer> reference =
      openFile(referenceName.empty() ? inputName : referenceName);
  FailureOr<Settings> settings = readSettings();
  if (!file || !reference || failed(settings))
    return EXIT_FAILURE;
  return succeeded(checkFile(file->getBuffer(), reference->getBuffer(), *settings, context))
             ? EXIT_SUCCESS
             : EXIT_FAILURE;
}
