# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What Weft raises and warns of. Each message is one line in the user's terms."""


class Error(Exception):
    """The base of all of Weft's errors."""


class ArgumentError(Error, ValueError):
    """An argument that does not fit a loaded artifact's signature."""


class ArtifactError(Error, RuntimeError):
    """A file that is no usable artifact: damaged, of another version, for another CPU."""


class AssertError(Error, RuntimeError):
    """A check inside a program failed, for example an index out of range."""


class CompileError(Error, RuntimeError):
    """The compiler refused a program; the text names the user's line."""


class CaptureError(Error, RuntimeError):
    """A call for which there is no program, so that PyTorch has to run it.

    Attributes: reason (lower case, no final period), location (of the user's source, such as
    `model.py:12 (forward)`, or None), op (that stands in the way, such as `aten.roll.default`, or
    None). The text is the reason, with the location behind it.
    """

    def __init__(self, reason: str, location: object = None, op: str | None = None) -> None:
        super().__init__(f"{reason} ({location})" if location else reason)
        self.reason = reason
        self.location = str(location) if location else None
        self.op = op


class SizeError(Error, ValueError):
    """An argument of a size for which the user wanted no program, see `weft.Range`."""


class ConfigError(Error, ValueError):
    """A setting (environment variable or call) with a value that makes no sense."""


class IRError(Error, ValueError):
    """A step of `weft.ir` that makes no sense, such as erasing an op that has uses."""


class ParseError(IRError):
    """Text that is no IR. Attributes: reason, line and column (from 1; 0 if unknown)."""

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}, column {column}: {reason}" if line else reason)
        self.reason = reason
        self.line = line
        self.column = column


class PassError(Error, RuntimeError):
    """A pass failed or left IR that the verifier refuses.

    Attributes: pass_name, path (of a file with the IR before the pass, or None)."""

    def __init__(self, text: str, pass_name: str = "", path: str | None = None) -> None:
        super().__init__(text)
        self.pass_name = pass_name
        self.path = path


class PatternLimitError(PassError):
    """A pattern whose own result matches it again and again; the text has its name."""


class Stale(Error, ReferenceError):
    """A handle on IR that is gone; the text says what became of it."""


class VerificationError(IRError):
    """IR that breaks a rule of an op. Attributes: constraints (name → text, of the op)."""

    def __init__(self, text: str, constraints: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.constraints = constraints or {}


class NotCompiledError(CaptureError):
    """PyTorch has to run a call that `fullgraph=True`, or `weft.ir`, wants compiled."""


class FailedPassError(NotCompiledError, PassError):
    """With `fullgraph=True`, a pass given to `weft.compile` failed; its own exception is the cause.
    Attributes: those of both."""

    def __init__(self, text: str, pass_name: str = "", path: str | None = None) -> None:
        PassError.__init__(self, text, pass_name, path)
        self.reason, self.location, self.op = text, None, None


class WeftWarning(UserWarning):
    """Something that costs speed but not correctness."""


class UnsupportedError(Error, NotImplementedError):
    """An imported model has an operator, or a form of one, that Weft does not know."""


class ModelError(Error, ValueError):
    """An imported model that makes no sense: damaged, or at odds with itself."""
