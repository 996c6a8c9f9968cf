# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on scalars or vectors in registers, as MLIR ops that give the values PyTorch gives."""

from __future__ import annotations

from dataclasses import dataclass

from weft.te import dtypes
from weft.te.code import Code
from weft.te.values import computed_type, literal, of_lanes, stored_type

_HALVES = ("bfloat16", "float16")
_FLOAT_OPS = {
    "add": "addf",
    "sub": "subf",
    "mul": "mulf",
    "div": "divf",
    "max": "maximumf",
    "min": "minimumf",
}
_INTEGER_OPS = {
    "add": "addi",
    "sub": "subi",
    "mul": "muli",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
}
_SHIFTS = ("shl", "shr")
_FLOAT_TESTS = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_KEPT_SCALAR = ("sqrt", "ceil", "floor", "trunc", "round", "abs")  # these are one instruction each
_MATH = {"abs": "absf", "round": "roundeven"}


@dataclass(frozen=True)
class Value:
    """A value in a register. lanes: 0 for a scalar. A value of a half-precision type is held as a
    float32 that the type can represent."""

    name: str
    dtype: str
    lanes: int

    @property
    def type(self) -> str:
        return of_lanes(computed_type(self.dtype), self.lanes)


class Arithmetic:
    def __init__(self, code: Code) -> None:
        self.code = code

    def constant(self, value: bool | int | float, dtype: str, lanes: int = 0) -> Value:
        text = literal(value, dtype)
        kind = of_lanes(computed_type(dtype), lanes)
        typed = text if kind == "i1" else f"{f'dense<{text}>' if lanes else text} : {kind}"
        name = self.code.op(f"arith.constant {typed}")
        made = Value(name, dtype, lanes)
        return self.rounded(made) if dtype in _HALVES else made

    def splat(self, value: Value, lanes: int) -> Value:
        """The value in all lanes; a vector is returned as it is."""
        if value.lanes or not lanes:
            return value
        made = Value("", value.dtype, lanes)
        text = f"vector.broadcast {value.name} : {value.type} to {made.type}"
        return Value(self.code.op(text), value.dtype, lanes)

    def alike(self, *values: Value) -> list[Value]:
        lanes = max(each.lanes for each in values)
        return [self.splat(each, lanes) for each in values]

    def _op(self, op: str, dtype: str, *operands: Value) -> Value:
        first = operands[0]
        names = ", ".join(each.name for each in operands)
        return Value(self.code.op(f"{op} {names} : {first.type}"), dtype, first.lanes)

    def rounded(self, value: Value) -> Value:
        """The float32 value rounded to the half-precision type that it represents."""
        if value.dtype not in _HALVES:
            return value
        narrow = self.narrowed(value)
        return self.widened(narrow, value.dtype, value.lanes)

    def narrowed(self, value: Value) -> str:
        """The value converted to the type in which it is stored."""
        stored = of_lanes(stored_type(value.dtype), value.lanes)
        if value.dtype in _HALVES:
            return self.code.op(f"arith.truncf {value.name} : {value.type} to {stored}")
        if value.dtype == "bool":
            return self.code.op(f"arith.extui {value.name} : {value.type} to {stored}")
        return value.name

    def widened(self, name: str, dtype: str, lanes: int) -> Value:
        """A stored value converted to the type in which it is computed."""
        stored, made = of_lanes(stored_type(dtype), lanes), Value(name, dtype, lanes)
        if dtype in _HALVES:
            return Value(self.code.op(f"arith.extf {name} : {stored} to {made.type}"), dtype, lanes)
        if dtype == "bool":
            zero = f"arith.constant {'dense<0>' if lanes else 0} : {stored}"
            text = f"arith.cmpi ne, {name}, {self.code.op(zero)} : {stored}"
            return Value(self.code.op(text), dtype, lanes)
        return made

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        condition, then, otherwise = self.alike(condition, then, otherwise)
        tests = condition.type + ", " if condition.lanes else ""
        names = f"{condition.name}, {then.name}, {otherwise.name}"
        text = f"arith.select {names} : {tests}{then.type}"
        return Value(self.code.op(text), then.dtype, then.lanes)

    def compare(self, op: str, a: Value, b: Value) -> Value:
        a, b = self.alike(a, b)
        if dtypes.is_float(a.dtype):
            text = f"arith.cmpf {_FLOAT_TESTS[op]}, {a.name}, {b.name} : {a.type}"
        else:
            sign = "u" if a.dtype in ("uint8", "bool") else "s"
            test = op if op in ("eq", "ne") else sign + op
            text = f"arith.cmpi {test}, {a.name}, {b.name} : {a.type}"
        return Value(self.code.op(text), "bool", a.lanes)

    def binary(self, op: str, a: Value, b: Value) -> Value:
        """A binary operation on operands of one dtype. op: a name as in expressions.Binary."""
        if op in _FLOAT_TESTS:
            return self.compare(op, a, b)
        a, b = self.alike(a, b)
        if dtypes.is_float(a.dtype):
            return self.rounded(self._float(op, a, b))
        if op in ("max", "min"):
            if a.dtype == "bool":
                return self._op(f"arith.{'ori' if op == 'max' else 'andi'}", "bool", a, b)
            return self._op(f"arith.{op}{'u' if a.dtype == 'uint8' else 's'}i", a.dtype, a, b)
        if op in ("floordiv", "mod"):
            return self._divided(op, a, b)
        if op in _SHIFTS:
            return self._shifted(op, a, b)
        return self._op(f"arith.{_INTEGER_OPS[op]}", a.dtype, a, b)

    def _float(self, op: str, a: Value, b: Value) -> Value:
        if op in _FLOAT_OPS:
            return self._op(f"arith.{_FLOAT_OPS[op]}", a.dtype, a, b)
        if op == "pow":
            return self.elementary("powf", a, b)
        return self._float_quotient(a, b) if op == "floordiv" else self._float_remainder(a, b)[0]

    def _float_remainder(self, a: Value, b: Value) -> tuple[Value, Value]:
        """The remainder with the sign of the divisor, and whether C's remainder has the other
        sign."""
        rest = self.elementary("remf", a, b)
        zero = self.constant(0.0, "float64" if a.dtype == "float64" else "float32", a.lanes)
        zero = Value(zero.name, a.dtype, a.lanes)
        signs = self.binary("xor", self.compare("lt", rest, zero), self.compare("lt", b, zero))
        other = self.binary("and", signs, self.compare("ne", rest, zero))
        return self.select(other, self._op("arith.addf", a.dtype, rest, b), rest), other

    def _float_quotient(self, a: Value, b: Value) -> Value:
        """The quotient of PyTorch's floor_divide, computed from the exact remainder."""
        rest, _ = self._float_remainder(a, b)
        whole = self._op("arith.divf", a.dtype, self._op("arith.subf", a.dtype, a, rest), b)
        floor = self.elementary("round", whole)
        exact = self._op("arith.divf", a.dtype, a, b)
        zero = Value(
            self.constant(0.0, "float64" if a.dtype == "float64" else "float32", a.lanes).name,
            a.dtype,
            a.lanes,
        )
        return self.select(self.compare("eq", b, zero), exact, floor)

    def _divided(self, op: str, a: Value, b: Value) -> Value:
        """Integer division, rounded towards minus infinity. A divisor of zero gives zero, as in
        NumPy."""
        zero, one = self.constant(0, a.dtype, a.lanes), self.constant(1, a.dtype, a.lanes)
        by_zero = self.compare("eq", b, zero)
        unsigned = a.dtype == "uint8"
        safe = self.select(by_zero, one, b)
        if not unsigned:  # the least integer divided by -1 overflows, and the processor traps
            minus = self.compare("eq", b, self.constant(-1, a.dtype, a.lanes))
            safe = self.select(minus, one, safe)
        letter = "u" if unsigned else "s"
        quotient = self._op(f"arith.div{letter}i", a.dtype, a, safe)
        rest = self._op(f"arith.rem{letter}i", a.dtype, a, safe)
        if not unsigned:
            signs = self.binary(
                "xor", self.compare("lt", rest, zero), self.compare("lt", safe, zero)
            )
            below = self.binary("and", signs, self.compare("ne", rest, zero))
            quotient = self.select(below, self._op("arith.subi", a.dtype, quotient, one), quotient)
            rest = self.select(below, self._op("arith.addi", a.dtype, rest, safe), rest)
            quotient = self.select(minus, self._op("arith.subi", a.dtype, zero, a), quotient)
        return self.select(by_zero, zero, quotient if op == "floordiv" else rest)

    def _shifted(self, op: str, a: Value, b: Value) -> Value:
        """A shift. By as many bits as the type has or more, or by a negative number, it gives the
        sign in all bits for a right shift of signed integers, and zero otherwise."""
        bits = self.constant(_width(a.dtype), a.dtype, a.lanes)
        zero = self.constant(0, a.dtype, a.lanes)
        last = self.constant(_width(a.dtype) - 1, a.dtype, a.lanes)
        inside = self.compare("lt", b, bits)
        if a.dtype != "uint8":
            inside = self.binary("and", inside, self.compare("ge", b, zero))
        amount = self.select(inside, b, last)
        if op == "shl":
            return self.select(inside, self._op("arith.shli", a.dtype, a, amount), zero)
        letter = "u" if a.dtype == "uint8" else "s"
        moved = self._op(f"arith.shr{letter}i", a.dtype, a, amount)
        return self.select(inside, moved, zero) if letter == "u" else moved

    def unrounded(self, op: str, a: Value, b: Value) -> Value:
        """A floating-point sum or product of a reduction, in which halves are accumulated in
        float32."""
        return self._op(f"arith.{_FLOAT_OPS[op]}", a.dtype, a, b)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        a, b, c = self.alike(a, b, c)
        return self._op("math.fma", c.dtype, a, b, c)

    def elementary(self, name: str, *args: Value) -> Value:
        """An elementary function of floats. A scalar is computed as a vector of one lane, for which
        there is vector code, instead of a call of a library."""
        args = tuple(self.alike(*args))
        first = args[0]
        op = "arith.remf" if name == "remf" else f"math.{_MATH.get(name, name)}"
        if first.lanes or name in _KEPT_SCALAR:
            return self.rounded(self._op(op, first.dtype, *args))
        made = self._op(op, first.dtype, *(self.splat(each, 1) for each in args))
        return self.rounded(self.lane(made, 0))

    def sigmoid(self, value: Value) -> Value:
        """The sigmoid. For half precision it is computed in float32 and rounded once."""
        wide = "float64" if value.dtype == "float64" else "float32"
        x = Value(value.name, wide, value.lanes)
        zero, one = self.constant(0.0, wide, x.lanes), self.constant(1.0, wide, x.lanes)
        power = self.elementary("exp", self._op("arith.subf", wide, zero, x))
        made = self._op("arith.divf", wide, one, self._op("arith.addf", wide, one, power))
        return self.rounded(Value(made.name, value.dtype, value.lanes))

    def converted(self, value: Value, dtype: str) -> Value:
        """A conversion like PyTorch's `to`: floats are truncated to integers, and nonzero values
        are true."""
        source = value.dtype
        if source == dtype:
            return value
        if dtype == "bool":
            zero = self.constant(0.0 if dtypes.is_float(source) else 0, source, value.lanes)
            return self.compare("ne", value, zero)
        old, made = value.type, of_lanes(computed_type(dtype), value.lanes)
        name = value.name
        if dtypes.is_float(source) and dtypes.is_float(dtype):
            if old != made:
                op = "extf" if dtype == "float64" else "truncf"
                name = self.code.op(f"arith.{op} {name} : {old} to {made}")
            return self.rounded(Value(name, dtype, value.lanes))
        if dtypes.is_float(dtype):
            op = "uitofp" if source in ("bool", "uint8") else "sitofp"
            name = self.code.op(f"arith.{op} {name} : {old} to {made}")
            return self.rounded(Value(name, dtype, value.lanes))
        if dtypes.is_float(source):
            return self._truncated(value, dtype)
        before, after = _width(source), _width(dtype)
        if before != after:
            sign = "extui" if source in ("bool", "uint8") else "extsi"
            op = "trunci" if after < before else sign
            name = self.code.op(f"arith.{op} {name} : {old} to {made}")
        return Value(name, dtype, value.lanes)

    def _truncated(self, value: Value, dtype: str) -> Value:
        """A float converted to an integer. A value outside of int32, or of int64 for int64, gives
        its least value, as in the processor's instruction and so in PyTorch; LLVM leaves such a
        value undefined. Narrower integers wrap around from int32."""
        wide = "int64" if dtype == "int64" else "int32"
        bound = float(1 << (_width(wide) - 1))
        kind = "float64" if value.dtype == "float64" else "float32"
        x = Value(value.name, kind, value.lanes)
        low, high = (self.constant(each, kind, x.lanes) for each in (-bound, bound))
        held = self.binary("and", self.compare("ge", x, low), self.compare("lt", x, high))
        x = self.select(held, x, low)
        made = Value("", wide, x.lanes)
        name = self.code.op(f"arith.fptosi {x.name} : {x.type} to {made.type}")
        return self.converted(Value(name, wide, x.lanes), dtype)

    def lane(self, value: Value, number: int) -> Value:
        one = Value("", value.dtype, 0)
        text = f"vector.extract {value.name}[{number}] : {one.type} from {value.type}"
        return Value(self.code.op(text), value.dtype, 0)

    def part(self, value: Value, first: int, lanes: int) -> Value:
        made = Value("", value.dtype, lanes)
        places = f"{{offsets = [{first}], sizes = [{lanes}], strides = [1]}}"
        text = f"vector.extract_strided_slice {value.name} {places} : {value.type} to {made.type}"
        return Value(self.code.op(text), value.dtype, lanes)

    def reduced(self, kind: str, value: Value) -> Value:
        """Combines all lanes to one value."""
        floats = dtypes.is_float(value.dtype)
        sign = "u" if value.dtype == "uint8" else "s"
        extreme = "imumf" if floats else f"{sign}i"
        op = {"sum": "add", "prod": "mul", "max": f"max{extreme}", "min": f"min{extreme}"}[kind]
        if value.dtype == "bool":
            op = "or" if kind == "max" else "and"
        scalar = computed_type(value.dtype)
        text = f"vector.reduction <{op}>, {value.name} : {value.type} into {scalar}"
        return Value(self.code.op(text), value.dtype, 0)


def _width(dtype: str) -> int:
    return 1 if dtype == "bool" else dtypes.BYTES[dtype] * 8
