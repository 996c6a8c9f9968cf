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


class ConfigError(Error, ValueError):
    """A setting (environment variable or call) with a value that makes no sense."""


class NotCompiledError(Error, RuntimeError):
    """PyTorch has to run a call that `fullgraph=True` wants compiled; the text says why."""


class WeftWarning(UserWarning):
    """Something that costs speed but not correctness."""


class UnsupportedError(Error, NotImplementedError):
    """An imported model has an operator, or a form of one, that Weft does not know."""


class ModelError(Error, ValueError):
    """An imported model that makes no sense: damaged, or at odds with itself."""
