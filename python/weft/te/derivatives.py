# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of tensor expressions, as tensor expressions.

Each element that a tensor reads gives one term of the gradient: the sum, over all elements of the
result that read it, of the result's gradient times the partial derivative. These elements are found
by solving the index expressions for axes; an index that cannot be solved becomes a condition.
"""

from __future__ import annotations

from weft.te import dtypes, functions
from weft.te import expressions as ex
from weft.te.errors import TEError
from weft.te.expressions import Axis, Call, Const, Expr, Load, Reduce, arithmetic, compared
from weft.te.linear import AxisAtom, Linear, linear
from weft.te.scans import Scan
from weft.te.sizes import alike, bounded
from weft.te.tensors import Operation, Tensor, in_order


def gradients(outputs: list[Tensor], seeds: list[Tensor], wrt: list[Tensor]) -> list[Tensor]:
    """The gradients of Σ seed · output by the placeholders `wrt`, with their shapes. seeds:
    placeholders with the shapes of the outputs."""
    from weft.te.scan_derivatives import through_scan

    order = in_order(outputs)
    found: dict[Tensor, list[Tensor]] = {tensor: [] for tensor in (*order, *wrt)}
    for output, seed in zip(outputs, seeds):
        if dtypes.is_float(output.dtype):
            found[output].append(seed)

    def add(source: Tensor, terms: list[Tensor]) -> None:
        if source in found:
            found[source] += terms

    seen: list[Scan] = []
    for tensor in reversed(order):
        terms = found[tensor]
        if (made := tensor.op.scan) is not None:
            if made not in seen and any(found[each] for each in made.results):
                through_scan(made, found, add)
            seen.append(made)
            continue
        if tensor.op.body is None or not terms:
            continue
        gradient = total_of(tensor, terms)
        for source in tensor.op.input_tensors:
            if source in found and dtypes.is_float(source.dtype):
                found[source] += terms_of(tensor, gradient, source)
    return [total_of(each, found[each]) for each in wrt]


def made_of(name: str, axes: list[Axis], body: Expr) -> Tensor:
    shape = tuple(axis.extent for axis in axes)
    return Tensor(shape, body.dtype, Operation(name, tuple(axes), body))


def fresh(tensor: Tensor) -> list[Axis]:
    return [Axis(size, f"i{dim}", "spatial") for dim, size in enumerate(tensor.shape)]


def total_of(tensor: Tensor, terms: list[Tensor]) -> Tensor:
    """The sum of the terms, zeros if there are none."""
    if len(terms) == 1:
        return terms[0]
    axes = fresh(tensor)
    body: Expr = Const(0.0, tensor.dtype)
    for number, term in enumerate(terms):
        element = Load(term, tuple(axes))
        body = arithmetic("add", body, element) if number else element
    return made_of(f"d_{tensor.name}", axes, body)


def terms_of(tensor: Tensor, gradient: Tensor, source: Tensor) -> list[Tensor]:
    """One tensor for each element of `source` that an element of `tensor` reads."""
    body = tensor.op.body
    assert body is not None
    upstream: Expr = Load(gradient, tensor.op.axis)
    value = body
    if isinstance(body, Reduce):
        value = body.value
        upstream = _through(tensor, body, upstream)
    loads = loads_of(value, source)
    return [
        _gathered(tensor, source, load, arithmetic("mul", upstream, partial(value, load)), number)
        for number, load in enumerate(loads)
    ]


def _through(tensor: Tensor, body: Reduce, upstream: Expr) -> Expr:
    """The gradient of the reduced expression, for each value that is reduced."""
    if body.reducer is not None:
        raise TEError(
            f"{tensor.name}: expected a sum, product, maximum or minimum to differentiate, found "
            f"the reduction {body.reducer.name} of one's own"
        )
    if body.kind == "sum":
        return upstream
    if body.kind in ("max", "min"):
        # Equal extrema share the gradient evenly, as in torch.amax.
        result = Load(tensor, tensor.op.axis)
        hit = compared("eq", body.value, result)
        one = ex.Select(hit, Const(1.0, body.dtype), Const(0.0, body.dtype))
        count = made_of(f"{tensor.name}_ties", list(tensor.op.axis), Reduce("sum", one, body.axes))
        share = arithmetic("div", upstream, Load(count, tensor.op.axis))
        return ex.Select(hit, share, Const(0.0, body.dtype))
    others = Load(_others(tensor, body), (*tensor.op.axis, *body.axes))
    return arithmetic("mul", upstream, others)


def _others(tensor: Tensor, body: Reduce) -> Tensor:
    """For each value of a product the product of all others, computed so that it holds for zeros,
    too."""
    spatial = [Axis(axis.extent, axis.name, "spatial") for axis in tensor.op.axis]
    left = [Axis(axis.extent, f"{axis.name}.left", "spatial") for axis in body.axes]
    over = [Axis(axis.extent, axis.name, "reduce") for axis in body.axes]
    values = dict(zip((*tensor.op.axis, *body.axes), (*spatial, *over)))
    itself = functions.all(*(compared("eq", a, b) for a, b in zip(left, over)))
    value = ex.Select(itself, Const(1.0, body.dtype), ex.substituted(body.value, values))
    product = Reduce("prod", value, tuple(over), body.dtype)
    return made_of(f"{tensor.name}_others", [*spatial, *left], product)


def loads_of(value: Expr, source: Tensor) -> list[Load]:
    """The elements of `source` that are read, each once, without those read as part of an index."""
    found: list[Load] = []

    def visit(node: Expr) -> None:
        if isinstance(node, Load):
            if node.tensor is source and not any(_same(node, each) for each in found):
                found.append(node)
            return
        for operand in node.operands():
            visit(operand)

    visit(value)
    return found


def _same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are the same tree."""
    if a is b:
        return True
    if type(a) is not type(b) or a.dtype != b.dtype or isinstance(a, Axis):
        return False
    fields = ("op", "name", "value", "kind")
    if isinstance(a, Const) or any(
        isinstance(getattr(a, f, None), str) and getattr(a, f) != getattr(b, f) for f in fields
    ):
        return isinstance(a, Const) and isinstance(b, Const) and a.value == b.value
    if isinstance(a, Load) and isinstance(b, Load) and a.tensor is not b.tensor:
        return False
    mine, others = a.operands(), b.operands()
    return len(mine) == len(others) and all(map(_same, mine, others))


def partial(expr: Expr, load: Load) -> Expr:
    """∂ expr / ∂ load."""
    dtype = expr.dtype
    zero, one = Const(0.0, dtype), Const(1.0, dtype)
    if isinstance(expr, Load):
        return one if _same(expr, load) else zero
    if not dtypes.is_float(dtype) or not expr.operands():
        return Const(0.0, dtype if dtypes.is_float(dtype) else load.dtype)
    if isinstance(expr, ex.Cast):
        inner = partial(expr.value, load)
        return zero if _is_zero(inner) else inner.astype(dtype)
    if isinstance(expr, ex.Select):
        then, otherwise = partial(expr.then, load), partial(expr.otherwise, load)
        if _is_zero(then) and _is_zero(otherwise):
            return zero
        return ex.Select(expr.condition, then, otherwise)
    if isinstance(expr, Call):
        inner = partial(expr.args[0], load)
        return zero if _is_zero(inner) else arithmetic("mul", _outer(expr), inner)
    assert isinstance(expr, ex.Binary)
    return _of_binary(expr, partial(expr.lhs, load), partial(expr.rhs, load))


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 0


def _times(a: Expr, b: Expr) -> Expr:
    if _is_zero(a) or _is_zero(b):
        return Const(0.0, a.dtype)
    if isinstance(a, Const) and a.value == 1:
        return b
    return a if isinstance(b, Const) and b.value == 1 else arithmetic("mul", a, b)


def _plus(a: Expr, b: Expr) -> Expr:
    if _is_zero(a) or _is_zero(b):
        return b if _is_zero(a) else a
    return arithmetic("add", a, b)


def _of_binary(expr: ex.Binary, da: Expr, db: Expr) -> Expr:
    a, b = expr.lhs, expr.rhs
    if expr.op == "add":
        return _plus(da, db)
    if expr.op == "sub":
        return _plus(da, _times(Const(-1.0, expr.dtype), db))
    if expr.op == "mul":
        return _plus(_times(da, b), _times(a, db))
    if expr.op == "div":
        first = Const(0.0, expr.dtype) if _is_zero(da) else arithmetic("div", da, b)
        second = _times(arithmetic("div", arithmetic("mul", expr, -1.0), b), db)
        return _plus(first, second)
    if expr.op in ("max", "min"):
        test = "gt" if expr.op == "max" else "lt"
        half = arithmetic("mul", _plus(da, db), 0.5)
        tie = ex.Select(compared("eq", a, b), half, db)
        both = _is_zero(da) and _is_zero(db)
        return da if both else ex.Select(compared(test, a, b), da, tie)
    if expr.op == "pow":
        return _plus(*(_times(each, d) for each, d in zip(_of_power(expr), (da, db))))
    if expr.op == "mod":
        return _plus(da, _times(arithmetic("mul", arithmetic("floordiv", a, b), -1.0), db))
    return Const(0.0, expr.dtype)  # floordiv


def _of_power(expr: ex.Binary) -> tuple[Expr, Expr]:
    """The derivatives of a power by base and by exponent. As in PyTorch they are 0 where the
    formula would multiply zero by infinity: x ** 0 does not depend on x, and 0 ** y not on y >=
    0."""
    a, b, zero = expr.lhs, expr.rhs, Const(0.0, expr.dtype)
    less = arithmetic("mul", b, arithmetic("pow", a, arithmetic("sub", b, 1.0)))
    by_exponent = arithmetic("mul", expr, functions.log(a))
    at_zero = functions.all(compared("eq", a, 0.0), compared("ge", b, 0.0))
    return (
        ex.selected(compared("eq", b, 0.0), zero, less),
        ex.selected(at_zero, zero, by_exponent),
    )


def _outer(expr: Call) -> Expr:
    """The derivative of an elementary function at its argument."""
    x, y = expr.args[0], expr
    square = arithmetic("mul", x, x)
    rules = {
        "exp": lambda: y,
        "exp2": lambda: y * 0.6931471805599453,
        "expm1": lambda: y + 1.0,
        "log": lambda: 1.0 / x,
        "log2": lambda: 1.4426950408889634 / x,
        "log10": lambda: 0.4342944819032518 / x,
        "log1p": lambda: 1.0 / (x + 1.0),
        "sqrt": lambda: 0.5 / y,
        "rsqrt": lambda: y * y * y * -0.5,
        "sin": lambda: functions.cos(x),
        "cos": lambda: -functions.sin(x),
        "tan": lambda: y * y + 1.0,
        "sinh": lambda: functions.cosh(x),
        "cosh": lambda: functions.sinh(x),
        "tanh": lambda: 1.0 - y * y,
        "sigmoid": lambda: y * (1.0 - y),
        "asin": lambda: functions.rsqrt(1.0 - square),
        "acos": lambda: -functions.rsqrt(1.0 - square),
        "atan": lambda: 1.0 / (square + 1.0),
        "asinh": lambda: functions.rsqrt(square + 1.0),
        "acosh": lambda: functions.rsqrt(square - 1.0),
        "atanh": lambda: 1.0 / (1.0 - square),
        "erf": lambda: functions.exp(-square) * 1.1283791670955126,
        "abs": lambda: functions.if_then_else(
            x > 0, Const(1.0, x.dtype), functions.if_then_else(x < 0, -1.0, x * 0.0)
        ),
    }
    if expr.name in rules:
        return rules[expr.name]()
    return Const(0.0, expr.dtype)  # floor, ceil, round, trunc


def _gathered(tensor: Tensor, source: Tensor, load: Load, value: Expr, number: int) -> Tensor:
    """Σ of `value` over all places at which `load` reads an element of `source`."""
    places = [Axis(size, f"p{dim}", "spatial") for dim, size in enumerate(source.shape)]
    body = tensor.op.body
    free = [*tensor.op.axis, *(body.axes if isinstance(body, Reduce) else ())]
    known: dict[Axis, Expr] = {}
    conditions: list[Expr] = []
    for place, index in zip(places, load.indices):
        axis, solution = _solved(place, index, free, known)
        if axis is None:
            conditions.append(compared("eq", index, place))
            continue
        known[axis] = solution
        if not isinstance(solution, Axis) or not _is_within(place, axis):
            conditions += [compared("ge", solution, 0), compared("lt", solution, axis.extent)]
    left = [axis for axis in free if axis not in known]
    sums = [Axis(axis.extent, axis.name, "reduce") for axis in left]
    values: dict[Axis, Expr] = {**dict(zip(left, sums)), **known}
    for _ in known:  # a solution may contain axes that were solved after it
        values = {axis: ex.substituted(each, values) for axis, each in values.items()}
    term = ex.substituted(value, values)
    if conditions:
        test = functions.all(*(ex.substituted(each, values) for each in conditions))
        term = ex.Select(test, term, Const(0.0, term.dtype))
    term = term.astype(source.dtype)
    total = Reduce("sum", term, tuple(sums)) if sums else term
    return made_of(f"d_{source.name}_{tensor.name}_{number}", places, total)


def _is_within(place: Axis, axis: Axis) -> bool:
    """Whether all values of one axis are known to be values of the other."""
    known = not (isinstance(place.extent, Expr) or isinstance(axis.extent, Expr))
    return place.extent <= axis.extent if known else alike((place.extent,), (axis.extent,))


def _solved(
    place: Axis, index: Expr, free: list[Axis], known: dict[Axis, Expr]
) -> tuple[Axis | None, Expr]:
    """An axis that occurs in the index with the factor 1 or -1, and its value in terms of the
    others."""
    form = linear(index, {}, bounded)
    for axis in free:
        factor = form.coefficient(axis) if form is not None else None
        if form is None or factor not in (1, -1) or axis in known:
            continue
        rest = Linear({a: c for a, c in form.terms.items() if a != AxisAtom(axis)})
        if not all(isinstance(atom, AxisAtom) for atom in rest.terms):
            continue
        solution: Expr = place if factor == 1 else arithmetic("mul", place, -1)
        for atom, c in rest.terms.items():
            assert isinstance(atom, AxisAtom)
            moved = atom.axis if c in (1, -1) else arithmetic("mul", atom.axis, abs(c))
            solution = arithmetic("sub" if c * factor > 0 else "add", solution, moved)
        if form.constant:
            solution = arithmetic("sub", solution, form.constant * factor)
        return axis, solution
    return None, place
