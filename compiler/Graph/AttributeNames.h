// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The discardable attributes of the dialect, by which functions, their arguments and the module say
// what no op says: which function is an entry, a kernel or a service of the host, and what is known
// of each. VerifyAttributes.cpp says where each may stand and of what type it is.
#ifndef WEFT_COMPILER_GRAPH_ATTRIBUTENAMES_H
#define WEFT_COMPILER_GRAPH_ATTRIBUTENAMES_H

#include "llvm/ADT/StringRef.h"

namespace weft::attr {

using Name = llvm::StringLiteral;

// On functions: what they are.
constexpr Name entry = "weft.entry";         ///< called from outside
constexpr Name step = "weft.step";           ///< run by loops of entries, once an iteration
constexpr Name kernel = "weft.kernel";       ///< its kind: one of `kernelKinds`, or an op's
constexpr Name service = "weft.service";     ///< one of `services`, done by the host
constexpr Name primitive = "weft.primitive"; ///< outlined by a user's pass: one unit

/// What the loops of a kernel are: one nest of its own, an anchor with what is fused to it, or a
/// tensor expression's. An anchor that is emitted whole (OpTraits.h) makes a kind by its name.
constexpr llvm::StringLiteral kernelKinds[] = {"nest", "contraction", "te"};

/// A verdict is a barrier after which all threads leave if thread 0 has found a reason; at a stage
/// the program's next stage begins.
constexpr llvm::StringLiteral services[] = {"barrier",  "verdict", "stage",
                                            "fallback", "assert",  "copy"};

// On scans and loops.
/// [coefficient of each size..., constant] of how many steps count: the later ones leave the states
/// as they are, and nobody reads what they give. A scan without it does the same.
constexpr Name countingSteps = "weft.counting_steps";

// On ops of a graph that is to be differentiated.
constexpr Name subgradient = "weft.subgradient";      ///< at a kink: one of `subgradients`
constexpr Name stopsGradient = "weft.stops_gradient"; ///< detach, no_grad: results are constants
constexpr Name recompute = "weft.recompute";          ///< by the backward, not saved: a checkpoint
constexpr llvm::StringLiteral subgradients[] = {"zero", "one", "first"};

// On a differentiated function: how many of its arguments and results are the program's, which
// arguments there are gradients of, and which the derivatives of decomposed ops read.
constexpr Name jointInputs = "weft.joint_inputs";
constexpr Name jointResults = "weft.joint_results";
constexpr Name jointWrt = "weft.joint_wrt";
constexpr Name jointRead = "weft.joint_read";

// On kernels before they are emitted.
constexpr Name crossThreadReads = "weft.cross_thread_reads"; ///< of what several threads wrote
constexpr Name coldWeights = "weft.cold_weights"; ///< weights come from memory in every call
constexpr Name schedule = "weft.schedule";        ///< how it runs, a ScheduleAttr

/// What of a kernel is padding; see weft-bound-kernels. Its last argument holds the sizes.
constexpr Name bound = "weft.bound";
constexpr Name loops = "weft.loops"; ///< of a declaration: the function that has its loops

// On emitted kernels.
constexpr Name serial = "weft.serial"; ///< thread 0 does all of it
constexpr Name flops = "weft.flops";
constexpr Name bytes = "weft.bytes";                ///< that it touches
constexpr Name scratchBytes = "weft.scratch_bytes"; ///< of each thread
constexpr Name claims = "weft.claims"; ///< sets of counters by which threads claim parts

// On emitted kernels and services.
constexpr Name numInputs = "weft.num_inputs"; ///< operands that are read; outputs follow

// On services.
constexpr Name message = "weft.message";     ///< of an assert
constexpr Name target = "weft.target";       ///< of a fallback: the overload
constexpr Name arguments = "weft.arguments"; ///< of a fallback: JSON

// On entries with a memory plan.
constexpr Name arenaBytes = "weft.arena_bytes";
constexpr Name livenessBound = "weft.liveness_bound"; ///< least arena of any plan
constexpr Name maxThreads = "weft.max_threads";

// On arguments and results of entries and services.
constexpr Name name = "weft.name";                    ///< the frontend's
constexpr Name kind = "weft.kind";                    ///< one of `kinds`
constexpr Name type = "weft.type";                    ///< the tensor that a buffer holds
constexpr Name aliasArgument = "weft.alias_argument"; ///< the argument that the result is
constexpr Name aliasResult = "weft.alias_result";     ///< the other result that it is

constexpr Name bounds = "weft.bounds";   ///< the largest sizes, of the argument that holds sizes
constexpr Name bounded = "weft.bounded"; ///< for each dim the symbol that bounds it, or -1

constexpr llvm::StringLiteral kinds[] = {"input",    "weight", "parameter", "buffer",
                                         "constant", "bound",  "result"};

// On a kernel's results.
constexpr Name inPlace = "weft.in_place"; ///< arguments whose memory it may take when they are dead

// On memref.alloc.
constexpr Name persistent = "weft.persistent"; ///< it keeps its values between calls

// On linalg.generic.
/// [loop over blocks, loop over their lanes, size]: of blocks times lanes that the two loops go
/// through, those from `size` on are padding, and need not be computed.
constexpr Name padded = "weft.padded";

// On the module.
constexpr Name cpuFeatures = "weft.cpu_features";
constexpr Name threads = "weft.threads"; ///< the most that a call runs on

} // namespace weft::attr

#endif
