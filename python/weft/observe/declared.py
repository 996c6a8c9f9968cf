# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What functions, methods and classes in C read and write, told to the observer once.

The kinds that hold more than one function:

pure: takes plain arguments, also within lists, tuples and dicts, gives a plain value, and reads and
writes nothing else. types: looks at no more than the types of its arguments. builds: reads the
items of its arguments and makes a container or an iterator of them. reads, get: a method that reads
its container, the second by key. changes: a method that changes its container, fills: one that does
so whatever the container holds. operation: an operation of torch, which goes into the log with its
result. in place: one that writes to its first argument. metadata: reads a property of a tensor;
that of a tensor from outside is guarded. setting: a question to torch, which a replay asks again
and compares. state: sets what torch keeps for the thread. statistics: a norm that writes running
statistics if its sixth argument says that it trains. fold: adds or compares items. map, reduce,
filter: call their first argument. asked: asked again by a replay and compared. own attribute:
object.__getattribute__. context get, context set, context reset: what they do to a context
variable. bound: binds a function to an object. orders: changes a list by comparing its items. sums:
adds up plain items. getter: makes one of operator's getters of items or attributes. signature:
gives a function's signature, by inspect. backward: makes gradients by torch's engine. requires
gradient: requires_grad_. reduces: says how an object is copied. ignored: keeps notes of torch's
about objects that it has seen. arrays: a function of NumPy that reads its arguments alone. array
writes: one that writes to its first argument. draws: draws random numbers from the generator that
is its first argument. make instance: type.__call__. builds class: the function behind `class`.
generates class: one in Python that makes or extends a class. partial: keeps its arguments.
compares: functools.cmp_to_key. locals: the values of the frame. namespace: makes an object of the
attributes given by keyword. counts: the function that Counter counts with. seeded: makes a
generator of random numbers of NumPy's from a seed. prints, warns, logs: tell something to the world
outside.

Every other kind is a single function. A call of what is not declared here ends the
observation.
"""

from __future__ import annotations

import abc
import bisect
import builtins
import collections
import copy
import dataclasses
import functools
import heapq
import inspect
import itertools
import json
import math
import operator
import os
import re
import struct
import sys
import types
import zlib
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Generator, Iterator
from contextvars import ContextVar
from typing import Any

import numpy
import torch
import torch.utils.checkpoint

from weft import _capture
from weft.capture import remembered_calls
from weft.frontend.inplace import WRITES_STATISTICS
from weft.observe.arrays import declare_arrays
from weft.observe.copies import copy_tensor, share_tensor
from weft.observe.histories import over_numbers
from weft.observe.inference import pop_inference, push_inference
from weft.observe.node_hooks import notice_hooks
from weft.observe.snapshot import snapshot
from weft.observe.telling import declare_telling
from weft.observe.through import disabled, dispatch_code, folded, in_python, tested

_PLAIN = (torch.Size, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.finfo,
          torch.iinfo)  # fmt: skip

_BUILTINS = {
    "operation": "abs divmod pow round".split(),
    "pure": "ascii bin bool bytes chr complex float format hash hex int oct ord range "
    "repr slice str".split(),
    "sort": ["sorted"],
    "address": ["id"],
    "any": "any all".split(),
    "builds": "list tuple dict set frozenset zip enumerate reversed iter".split(),
    "fold": "sum min max".split(),
    "map": ["map"],
    "locals": ["locals"],
    "builds class": ["__build_class__"],
    "partial": "property staticmethod classmethod".split(),
    "types": "callable".split(),
    "isinstance": "isinstance issubclass".split(),
    **{name: [name] for name in "getattr hasattr setattr len type super next vars".split()},
}
_METHODS: list[tuple[type, str, str]] = [
    (list, "reads", "index count copy __iter__"),
    (list, "fills", "append extend insert clear"),
    (list, "changes", "pop reverse remove"),
    (tuple, "reads", "index count __iter__"),
    (dict, "reads", "keys values items copy __iter__"),
    (dict, "get", "get __getitem__ __contains__"),
    (dict, "fills", "update clear"),
    (dict, "changes", "pop setdefault popitem"),
    (OrderedDict, "reads", "keys values items copy __iter__"),
    (OrderedDict, "changes", "pop setdefault update clear popitem move_to_end"),
    (deque, "reads", "index count copy __iter__"),
    (deque, "fills", "append appendleft extend extendleft clear"),
    (deque, "changes", "pop popleft rotate reverse"),
    (set, "fills", "add discard update clear"),
    (set, "changes", "remove"),
    *(
        (
            kind,
            "reads",
            "copy union intersection difference symmetric_difference issubset issuperset "
            "isdisjoint __contains__",
        )
        for kind in (set, frozenset)
    ),
    (re.Match, "reads", "group groups groupdict start end span __getitem__"),
    (OrderedDict, "fills", "__setitem__"),
    (dict, "fills", "__setitem__ __init__"),
    (defaultdict, "reads", "copy"),
    (types.GeneratorType, "changes", "send close throw"),
]
_ITERTOOLS = (
    "chain islice product repeat count zip_longest combinations pairwise cycle compress "
    "permutations combinations_with_replacement groupby tee"
).split()
# For a tensor from outside the observer guards the answers of these.
_METADATA = set(
    "size stride dim ndimension numel nelement is_contiguous is_floating_point is_complex "
    "element_size get_device is_conj is_neg is_inference is_signed is_same_size "
    "promote_types can_cast result_type".split()
)
_METADATA_GETTERS = (
    "shape dtype device ndim layout is_cuda is_cpu is_xla is_xpu is_mps is_meta is_sparse "
    "is_sparse_csr is_mkldnn is_quantized is_nested itemsize nbytes requires_grad is_leaf is_mtia "
    "is_maia is_vulkan is_ipu"
).split()
_VIEW_GETTERS = "T H mT mH real imag data".split()
# These are in addition to those that are operators of aten by their name.
_MORE = set(
    "bfloat16 byte char double cdouble float cfloat bool half int long short type tolist "
    "new new_tensor tensor as_tensor numpy from_numpy".split()
)
# These are refused although what they compute is harmless: they share memory with objects that the
# observer does not know, reveal addresses, or change what the observer takes for fixed.
_REFUSED = set(
    "set_ set_data resize_ resize_as_ resize_as_sparse_ retain_grad _backward rename_ rename names "
    "align_to align_as refine_names storage_offset data_ptr const_data_ptr untyped_storage "
    "apply_ map_ map2_ as_subclass frombuffer _from_blob from_file asarray is_set_to "
    "share_memory_ pin_memory is_pinned _version output_nr _fw_primal _make_dual _unpack_dual "
    "record_stream is_coalesced seed manual_seed _use_cudnn_ctc_loss sparse_resize_ "
    "set_source_Tensor_storage_offset resize sym_size sym_numel sym_stride sym_storage_offset "
    "get_num_threads set_num_threads retains_grad copy_sparse_to_sparse_ "
    # These write to arguments other than the first.
    "_fused_adam_ _fused_adamw_ _fused_sgd_ _fused_adagrad_ _amp_update_scale_ "
    "_amp_foreach_non_finite_check_and_unscale_ rrelu_with_noise rrelu_with_noise_ "
    "fused_moving_avg_obs_fake_quant _fused_moving_avg_obs_fq_helper _cummax_helper _cummin_helper "
    "_flash_attention_forward_no_dropout_inplace fbgemm_linear_fp16_weight "
    "fbgemm_linear_fp16_weight_fp32_activation".split()
)
_AUTOCAST = (
    "set_autocast_enabled set_autocast_dtype set_autocast_cache_enabled clear_autocast_cache "
    "autocast_increment_nesting autocast_decrement_nesting"
).split()
_STATISTICS = ("batch_norm", "instance_norm")  # their arguments say whether they write
# The results depend on types alone, or are settings: a replay asks again and compares.
_TYPES = ("_has_torch_function", "_has_torch_function_unary", "_has_torch_function_variadic")
_SETTINGS = ("_get_tracing_state", "_log_api_usage_once", "is_grad_enabled",
             "is_inference_mode_enabled", "is_autocast_enabled", "get_default_dtype",
             "_is_torch_function_mode_enabled", "_len_torch_function_stack",
             "_len_torch_dispatch_stack",
             "_is_torch_function_enabled", "is_autocast_cache_enabled", "get_autocast_dtype",
             "_is_tracing", "_get_grad_mode", "is_anomaly_enabled", "_get_cudnn_enabled",
             "_get_cudnn_benchmark", "_get_cudnn_deterministic", "_get_mkldnn_enabled",
             "_get_flash_sdp_enabled", "_get_math_sdp_enabled", "_is_autocast_available",
             "_get_deterministic_algorithms", "get_num_threads", "_get_privateuse1_backend_name",
             "_are_functorch_transforms_active", "_accelerator_getAccelerator")  # fmt: skip


@functools.cache
def declare_all() -> None:
    for kind in _PLAIN:
        _capture.declare_plain(kind)
        if kind not in (torch.layout, torch.memory_format, torch.dtype):
            _capture.declare(kind, "pure")
    for kind, names in _BUILTINS.items():
        for name in names:
            _capture.declare(getattr(builtins, name), kind)
    for owner, kind, names in _METHODS:
        for name in names.split():
            _capture.declare(vars(owner)[name], kind)
    _declare_plain_types()
    for owner in (list, tuple, dict, set, frozenset, deque):
        _capture.declare(vars(owner)["__len__"], "len")
    _capture.declare(vars(dict)["fromkeys"], "builds")
    _capture.declare(delattr, "setattr")
    _capture.declare(sys.exc_info, "setting")
    for function in (*vars(math).values(), operator.index):
        if isinstance(function, types.BuiltinFunctionType):
            _capture.declare(function, "pure")
    for function in (
        str.maketrans,
        re.escape,
        os.fspath,
        sys.intern,
        json.dumps,
        json.loads,
        struct.pack,
        struct.unpack,
        struct.calcsize,
        zlib.crc32,
        zlib.adler32,
        re._compile,
    ):
        _capture.declare(function, "pure")
    _capture.declare(functools.partial, "partial")
    _capture.declare(functools.reduce, "reduce")
    _capture.declare(functools.cmp_to_key, "compares")
    _capture.declare(collections.namedtuple, "generates class")
    _capture.declare(vars(dataclasses)["_process_class"], "generates class")
    _capture.declare(type.__call__, "make instance")
    _capture.declare(types.SimpleNamespace, "namespace")
    _capture.declare(vars(collections)["_count_elements"], "counts")
    _capture.declare(object.__reduce_ex__, "reduces")
    _capture.declare(inspect.signature, "signature")
    for function in (torch.functional.broadcast_shapes, torch._C._infer_size):
        _capture.declare(function, "pure")
    _capture.declare(object.__getattribute__, "own attribute")
    _capture.declare(ContextVar.get, "context get")
    _capture.declare(ContextVar.set, "context set")
    _capture.declare(ContextVar.reset, "context reset")
    _capture.declare(types.MethodType, "bound")
    _capture.declare(vars(types.FunctionType)["__get__"], "bound")
    heaps = "heapify heappush heappop heappushpop heapreplace _heapify_max _heappop_max"
    for name in (heaps + " _heapreplace_max").split():
        _capture.declare(getattr(heapq, name), "orders")
    for name in ("insort_left", "insort_right"):
        _capture.declare(getattr(bisect, name), "orders")
    for name in ("bisect_left", "bisect_right"):
        _capture.declare(getattr(bisect, name), "pure")
    _capture.declare(list.sort, "orders")
    for name in ("truth", "not_", "contains", "countOf", "indexOf", "concat"):
        _capture.declare(getattr(operator, name), "pure")
    for function in (filter, itertools.filterfalse, itertools.takewhile, itertools.dropwhile):
        _capture.declare(function, "filter")
    _capture.declare(itertools.starmap, "map")
    _capture.declare(itertools.accumulate, "sums")
    _capture.declare(operator.itemgetter, "getter")
    _capture.declare(operator.attrgetter, "getter")
    _capture.declare(operator.methodcaller, "getter")
    _capture.declare_plain(re.Pattern)
    for name in ("match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"):
        _capture.declare(vars(re.Pattern)[name], "pure")
    _capture.declare(vars(abc)["_abc_instancecheck"], "asked")
    _capture.declare(vars(abc)["_abc_subclasscheck"], "asked")
    _capture.declare(vars(itertools.chain)["from_iterable"], "builds")
    for name in _ITERTOOLS:
        _capture.declare(getattr(itertools, name), "builds")
    for made in (iter([]), iter(()), iter(range(0)), iter({}), iter({}.values()), iter({}.items())):
        _capture.declare(vars(type(made))["__next__"], "next")
    for kind in (zip, map, filter, enumerate, *(getattr(itertools, each) for each in _ITERTOOLS)):
        if isinstance(kind, type):
            _capture.declare(vars(kind)["__next__"], "next")
    for function in (OrderedDict, defaultdict, deque, torch._C._group_tensors_by_device_and_dtype):
        _capture.declare(function, "builds")
    _capture.declare(object.__new__, "new object")
    _capture.declare(tuple.__new__, "new tuple")
    _capture.declare(object.__init__, "types")
    _capture.declare(vars(object)["__init_subclass__"], "types")
    _capture.declare(property.__init__, "types")
    for kind in (BaseException, Exception, RuntimeError, ValueError, TypeError, StopIteration):
        _capture.declare(kind.__init__, "types")
    _capture.declare(object.__setattr__, "setattr")
    _capture.declare(object.__delattr__, "setattr")
    _capture.declare(vars(type)["__instancecheck__"], "isinstance")
    # For torch.FloatTensor and the like, whose check asks for the dtype and the device.
    _capture.declare(vars(type(torch.FloatTensor))["__instancecheck__"], "isinstance")
    _declare_operators()
    declare_telling()
    declare_arrays()
    for function, kind in _torch_functions():
        _capture.declare(function, kind)
    _capture.declare(torch._C._set_grad_enabled, "state")
    for name in _AUTOCAST:
        _capture.declare(getattr(torch, name), "autocast")
    _capture.declare(torch._C._functorch.unwrap_if_dead, "same")
    _capture.declare(torch.Generator, "operation")
    for name in ("manual_seed", "set_state", "get_state", "initial_seed"):
        _capture.declare(vars(torch.Generator)[name], "operation")
    _capture.declare(torch.random.manual_seed, "seeds")
    _capture.declare(torch.cuda.device_count, "setting")  # called by torch.random.fork_rng
    _capture.set_operator("generator", torch.Generator)
    _capture.set_operator("default generator", torch.default_generator)
    _capture.declare(vars(torch._C._FunctionBase)["apply"], "apply")
    _capture.set_operator("context", torch._C._FunctionBase)
    _capture.set_operator("grad enabled", torch.is_grad_enabled)
    _capture.declare(torch.Tensor._make_subclass, "operation")
    for kind in (torch.Tensor, torch.autograd.Variable, *_typed_tensors()):
        _capture.declare(kind, "operation")
    _capture.set_operator("overload", torch._ops.OpOverload)
    _capture.set_operator("overload packet", torch._ops.OpOverloadPacket)
    _capture.set_operator("is pure", _is_pure)
    _capture.set_operator("item", vars(torch._C.TensorBase)["item"])
    _capture.set_operator("tolist", numpy.ndarray.tolist)
    _capture.set_operator("setdata", torch.Tensor.data.__set__)
    _capture.set_operator("setgrad", torch.Tensor.grad.__set__)
    _capture.set_operator("setrequiresgrad", torch.Tensor.requires_grad.__set__)
    _capture.declare(torch.autograd.graph._engine_run_backward, "backward")
    notice_hooks()
    engine = torch.autograd.Variable._execution_engine
    _capture.set_operator("run backward", engine.run_backward)
    _capture.set_operator("tensor hash", torch.Tensor.__hash__)
    _capture.set_operator("counter", collections.Counter)
    _capture.set_operator("iter", iter)
    _capture.set_operator("begin", _begin)
    _capture.set_operator("format", format)
    _capture.set_operator("join", "".join)
    _capture.set_operator("list append", list.append)
    _capture.set_operator("list extend", list.extend)
    _capture.set_operator("disabled code", torch._disable_dynamo(abs).__code__)
    _capture.set_operator("disabled", disabled)
    _capture.set_operator("in python", in_python)
    _capture.set_operator("tested in python", tested)
    _capture.set_operator("folded in python", folded)
    _capture.set_operator("enter profile", torch.profiler.record_function.__enter__)
    _capture.set_operator("leave profile", torch.profiler.record_function.__exit__)
    _capture.set_operator("cached property code", functools.cached_property.__get__.__code__)
    _capture.set_operator("repr code", dataclasses._recursive_repr(_storage).__code__)
    step = torch.optim.Optimizer.profile_hook_step(_storage)
    _capture.set_operator("optimizer code", step.__code__)
    _capture.set_operator("checkpoint", torch.utils.checkpoint.checkpoint.__wrapped__)
    _capture.set_operator("dispatch code", dispatch_code())
    _capture.set_operator("enter inference", torch.inference_mode.__enter__)
    _capture.set_operator("leave inference", torch.inference_mode.__exit__)
    _capture.set_operator("push inference", push_inference)
    _capture.set_operator("pop inference", pop_inference)
    _capture.set_operator("deep copy", torch.Tensor.__deepcopy__)
    _capture.set_operator("deep copy of a parameter", torch.nn.Parameter.__deepcopy__)
    _capture.set_operator("copy tensor", copy_tensor)
    _capture.set_operator("copy", copy.copy)
    _capture.set_operator("share tensor", share_tensor)
    _capture.set_operator("over numbers", over_numbers)
    _capture.set_operator("answer of a cache", remembered_calls.answer)
    _capture.set_operator("script function", torch.jit.ScriptFunction)
    _capture.set_operator("is functional", _is_functional)


def declare_imported() -> None:
    """Declares functions that exist only once torch.compile has been used: another
    torch.manual_seed, and one that notes for TorchDynamo which modules have been made since."""
    _capture.declare(torch.manual_seed, "seeds")
    guard = sys.modules.get("torch._dynamo.mutation_guard")
    if guard is not None and (tracker := getattr(guard, "GenerationTracker", None)) is not None:
        _capture.declare(tracker.tag.__func__, "ignored")


def _declare_plain_types() -> None:
    """Declares methods of texts, numbers and the like, which cannot change their object."""
    for owner in (str, int, float, complex, bytes, bool, range, slice, *_PLAIN):
        for function in vars(owner).values():
            if isinstance(function, (types.MethodDescriptorType, types.ClassMethodDescriptorType)):
                _capture.declare(function, "pure")


def _declare_operators() -> None:
    """Declares the functions that opcodes stand for."""
    names = ("add and_ floordiv lshift matmul mul mod or_ pow rshift sub truediv xor").split()
    for number, name in enumerate(names):
        _capture.set_operator(f"binary {number}", getattr(operator, name))
        in_place = getattr(operator, "i" + name.rstrip("_"))
        _capture.set_operator(f"binary {number + len(names)}", in_place)
    for number, name in enumerate("lt le eq ne gt ge".split()):
        _capture.set_operator(f"compare {number}", getattr(operator, name))
    for name in ("getitem", "setitem", "delitem", "neg", "pos", "invert", "truth"):
        _capture.set_operator(name, getattr(operator, name))
    _capture.set_operator("getattr", getattr)
    _capture.set_operator("tuple", tuple)
    _capture.set_operator("storage", _storage)
    _capture.set_operator("snapshot", snapshot)
    _capture.set_operator("setattr", object.__setattr__)
    _capture.set_operator("delattr", object.__delattr__)
    _capture.set_operator("setattr of a class", type.__setattr__)
    _capture.set_operator("delattr of a class", type.__delattr__)
    _capture.set_operator("count", _capture.count)
    _capture.set_operator("advance", _capture.advance)
    _capture.set_operator("setcell", types.CellType.cell_contents.__set__)
    _capture.declare(operator.setitem, "in place")
    for name in (
        *names,
        "getitem",
        "lt",
        "le",
        "eq",
        "ne",
        "gt",
        "ge",
        "neg",
        "pos",
        "invert",
        "abs",
    ):
        _capture.declare(getattr(operator, name), "operation")


def _typed_tensors() -> list[Any]:
    names = "Float Double Half BFloat16 Byte Char Short Int Long Bool".split()
    return [getattr(torch, f"{name}Tensor") for name in names]


def _is_pure(operator: Any) -> bool:
    """Whether an operator of torch.ops writes to none of its arguments."""
    if isinstance(operator, torch._ops.OpOverloadPacket):
        names = [name for name in operator.overloads() if not name.endswith("out")]
        return all(_is_pure(getattr(operator, name)) for name in names)
    name = operator._schema.name
    hides = name in WRITES_STATISTICS or "set_" in name
    return not operator._schema.is_mutable and not hides


def _is_functional(function: torch.jit.ScriptFunction) -> bool:
    """Whether a scripted function only computes, without any effect."""
    graph = str(function.inlined_graph)
    return not re.search(
        r"(\w_\(|prim::(Print|PythonOp|CallMethod|SetAttr|GetAttr)|::_?set_)", graph
    )


def _begin(
    function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> Generator[Any, Any, Any]:
    made: Generator[Any, Any, Any] = function(*args, **kwargs)
    return made


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _torch_functions() -> Iterator[tuple[Any, str]]:
    impl = torch._C
    places: list[dict[str, Any]] = [vars(impl.TensorBase), vars(torch)]
    for owner in (impl._VariableFunctions, impl._nn, impl._linalg, impl._fft, impl._special):
        places.append({name: getattr(owner, name) for name in dir(owner)})
    for number, place in enumerate(places):
        for name, function in place.items():
            kind = _kind_of(name, function, of_tensor=number == 0)
            if kind is not None:
                yield function, kind
    for names, kind in ((_TYPES, "types"), (_SETTINGS, "setting")):
        for name in names:
            for owner in (impl, torch):
                if hasattr(owner, name):
                    yield getattr(owner, name), kind


def _kind_of(name: str, function: Any, of_tensor: bool) -> str | None:
    if isinstance(function, types.GetSetDescriptorType) and of_tensor:
        if name in _METADATA_GETTERS:
            return "metadata"
        return "operation" if name in _VIEW_GETTERS else None
    if not isinstance(function, (types.BuiltinFunctionType, types.MethodDescriptorType)):
        return None
    if (
        name in _REFUSED
        or (name.startswith("__") and not of_tensor)
        or name.startswith("_functionalize")
    ):
        return None
    if name == "requires_grad_":
        return "requires gradient"
    if name in _METADATA:
        return "metadata"
    if name in _STATISTICS:
        return "statistics"
    if f"aten::{name}" in WRITES_STATISTICS:
        return None
    if of_tensor and name.startswith("__"):
        writes = name.startswith("__i") and name not in ("__invert__", "__int__", "__index__")
        return "in place" if writes else "operation"
    bare = name.removeprefix("linalg_").removeprefix("fft_").removeprefix("special_")
    if name not in _MORE and not any(hasattr(torch.ops.aten, each) for each in (name, bare)):
        return None
    if name.endswith("_") and not name.endswith("__"):
        return "in place"
    return "operation"
