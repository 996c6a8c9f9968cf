# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `weft`, and `python -m weft`.

argparse, as a richer library would be one more package for everyone who installs Weft.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from weft import __version__, errors, get_num_threads

STAGES = ("graph", "optimized", "kernels", "linalg", "scheduled", "loops", "llvm")
_FORMS = "MODEL.onnx, MODEL.pt2 or FILE.py:FACTORY"
_EXAMPLES = {
    "compile": """\
examples:
  weft compile model.onnx --shape image=1x3x224x224
  weft compile model.pt2 --target x86-64-v3 -o model.so
  weft compile model.py:make       # make() returns (module, args)
""",
    "run": """\
examples:
  weft run model.onnx --inputs inputs.pt --output outputs.pt
  weft run model.py:make --compare
""",
    "show": """\
examples:
  weft show model.pt2                          # the captured graph
  weft show model.onnx --stage kernels | less
""",
    "explain": """\
examples:
  weft explain model.py:make
""",
    "visualize": """\
examples:
  weft visualize model.onnx -o model.svg       # equal layers are drawn once
  weft visualize model.py:make -o kernels.png --stage kernels
""",
    "bisect": """\
examples:
  weft bisect model.py:make                    # exit status 1: a pass changes results
  weft bisect model.pt2 --tolerance 1e-5 --slowdown 1.5
""",
    "tune": """\
examples:
  weft tune model.py:make                      # again, it goes on where it was
  weft tune model.onnx --records kernels.db --trials 48
""",
    "bench": """\
examples:
  weft bench model.pt2 --systems eager weft --rounds 5
  weft bench model.onnx --shape x=1x128 --json results.json
""",
}


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0; 1 with one line on standard error that says what is wrong, or of a bisect
    that has found something; 2 for a command line that makes no sense; 130 after an interrupt."""
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
        _check(options)
    except SystemExit as end:  # of --help with 0, of a wrong command line with 2
        return int(end.code or 0)
    status = 0
    try:
        status = options.command(options) or 0
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("weft: interrupted", file=sys.stderr)
        return 130
    except (errors.Error, OSError, ModuleNotFoundError) as error:
        print(f"weft: {_said(error)}", file=sys.stderr)
        return 1
    return status


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _check(options: argparse.Namespace) -> None:
    """Ends like the parser where it cannot see that something makes no sense."""
    text = getattr(options, "model", None)
    if text is None:
        return
    if form_of(text) is None:
        options.parser.error(f"expected {_FORMS}, found {text!r}")


def form_of(text: str) -> str | None:
    """ "onnx", "pt2" or "py" of what names a model; None, if it is of none of the forms."""
    path, colon, factory = text.rpartition(":")
    if colon and path.endswith(".py") and factory.isidentifier():
        return "py"
    suffix = Path(text).suffix[1:]
    return suffix if suffix in ("onnx", "pt2") else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "weft",
        description="Compiles PyTorch programs for CPUs.",
        epilog="weft COMMAND --help says more, with examples.",
    )
    parser.add_argument("--version", action="version", version=f"weft {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    compile_ = _command(commands, "compile", "compile a model for one kind of call")
    compile_.add_argument(
        "-o", "--output", type=Path, metavar="FILE.so", help="copy the artifact there"
    )
    run = _command(commands, "run", "call a compiled model, and print what it returns")
    run.add_argument("--output", type=Path, metavar="FILE.pt", help="torch.save it there")
    run.add_argument("--compare", action="store_true", help="with what PyTorch computes")
    show = _command(commands, "show", "print a model's IR")
    show.add_argument("--stage", choices=STAGES, default="graph")
    visualize = _command(commands, "visualize", "draw a model's IR")
    visualize.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.svg|png|dot")
    visualize.add_argument("--stage", choices=STAGES[:4], default="graph")
    visualize.add_argument("--no-fold", action="store_true", help="draw every layer")
    bisect = _command(commands, "bisect", "find the first pass that changes results")
    bisect.add_argument("--tolerance", type=float, default=1e-4)
    bisect.add_argument(
        "--slowdown", type=float, metavar="FACTOR", help="or without which it is so much faster"
    )
    _command(commands, "explain", "print kernels, times, and what PyTorch runs and why")
    tune = _command(commands, "tune", "measure schedules of a model's kernels")
    tune.add_argument(
        "--records",
        type=Path,
        default=Path("weft-records.db"),
        metavar="FILE",
        help="what is measured is kept there, and not measured again; weft-records.db by default",
    )
    tune.add_argument("--trials", type=int, default=24, help="of a kernel, at most")
    tune.add_argument("--patience", type=int, default=8, help="trials without a faster one")
    tune.add_argument("--rounds", type=int, default=5, help="of candidate and default in turns")
    tune.add_argument("--timeout", type=float, default=30.0, help="seconds for a candidate")
    tune.add_argument("--runner", choices=["local", "ray"], default="local")
    bench = _command(commands, "bench", "measure a model in several systems", compiles=False)
    bench.add_argument("--systems", nargs="+", default=["eager", "inductor", "weft"])
    bench.add_argument("--threads", type=int, default=get_num_threads())
    bench.add_argument("--rounds", type=int, default=15)
    bench.add_argument("--seconds", type=float, default=0.2, help="of each system in a round")
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    inspect = commands.add_parser("inspect", help="print what is inside a compiled artifact")
    inspect.add_argument("artifact", type=Path, metavar="ARTIFACT.so")
    inspect.set_defaults(command=_later("inspect"))
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    compiles: bool = True,
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=_EXAMPLES[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=_later(name), parser=parser)
    parser.add_argument("model", metavar="MODEL", help=_FORMS)
    parser.add_argument(
        "--inputs",
        type=Path,
        metavar="FILE.pt",
        help="of torch.save: a tuple of positional or a dict of keyword arguments; by default "
        "those that a .pt2 was exported with or a factory returns, random ones for a .onnx",
    )
    parser.add_argument(
        "--shape",
        action="append",
        type=_shape,
        default=[],
        metavar="NAME=2x3",
        help="of an input of a .onnx that leaves it open; may be repeated",
    )
    if compiles:
        parser.add_argument("--target", help="native (default), x86-64-v3, x86-64-v4, …")
        parser.add_argument("--threads", type=int, help="the most that a call runs on")
        parser.add_argument(
            "--level", type=int, choices=range(4), default=3, help="of optimisation; 3 by default"
        )
        parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    return parser


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, sign, sizes = text.rpartition("=")
    parts = sizes.split("x") if sizes else []
    if not name or not sign or not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"expected NAME=2x3, found {text!r}")
    return name, tuple(map(int, parts))


def _later(name: str) -> Callable[[argparse.Namespace], int | None]:
    """The commands load torch, which `--help` need not wait for."""

    def command(options: argparse.Namespace) -> int | None:
        from weft.cli import commands

        return commands.COMMANDS[name](options)

    return command
