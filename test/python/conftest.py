# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the Python tests: seeds are fixed, artifacts go to a cache of the session's own,
and the folder's helpers can be imported."""

import ctypes
import os
import sys
import tempfile
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

import chosen_cases  # noqa: E402

_CACHE = tempfile.TemporaryDirectory(prefix="weft-test-cache-")
os.environ["WEFT_CACHE_DIR"] = _CACHE.name
# LLVM packages come without assertions: the verifier after every pass stands in for them.
os.environ["WEFT_VERIFY"] = "1"
# First calls run compiled, so that what tests compare is the program; tests of the comparison with
# eager execution switch it on.
os.environ["WEFT_VERIFY_PROGRAMS"] = "off"
# What tests compare is the program for their sizes, on their memory; tests of programs for ranges
# of sizes switch these on.
os.environ["WEFT_AUTOMATIC_SIZES"] = "0"


# Few tests, and minutes each: the other files run beside them if they begin first.
_LONGEST = ("test_opinfo.py", "test_capture_fuzz.py", "test_random_programs.py")


def pytest_configure(config):
    config.addinivalue_line("markers", "sampled(n): `make test` runs one in n of the test's cases")
    config.addinivalue_line("markers", "at_length: for minutes; `make test` leaves the test out")


def pytest_collection_modifyitems(config, items):
    cases = config.getoption("cases")
    if cases != "all":
        chosen = chosen_cases.chosen(items)
        among = {id(item) for item in chosen}
        rest = [item for item in items if id(item) not in among]
        items[:], left = (chosen, rest) if cases == "chosen" else (rest, chosen)
        config.hook.pytest_deselected(items=left)
    items.sort(key=lambda item: item.path.name not in _LONGEST)


def pytest_addoption(parser):
    parser.addoption(
        "--cases",
        choices=["chosen", "rest", "all"],
        default="all",
        help="what chosen_cases.py chooses, the rest, or all tests",
    )
    parser.addoption(
        "--guard-pages",
        choices=["few", "whole"],
        default="few",
        help="how many sizes of each kind of kernel run on guarded memory",
    )
    parser.addoption(
        "--rule-cases",
        type=int,
        default=1,
        help="how many random calls of each overload of the frontend's table are compiled",
    )
    parser.addoption(
        "--random-programs",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="how long random programs are compiled, instead of a fixed few",
    )
    parser.addoption(
        "--capture-fuzz",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="how long programs of the corpus are changed, all of them, instead of a fixed few",
    )


# Reports are as wide as in a file, whatever runs the tests.
os.environ.pop("COLUMNS", None)


@pytest.fixture(scope="module", autouse=True)
def freed_memory_returned():
    """To the system: a trace forks, and a fork copies the table of all pages that are held."""
    yield
    ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture
def automatic_sizes(monkeypatch):
    """A size of which a second value comes is a symbol, as by default."""
    import weft

    monkeypatch.setattr(weft.config, "automatic_sizes", True)


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(0)


@pytest.fixture
def no_grad():
    with torch.no_grad():
        yield


@pytest.fixture
def own_threads():
    """The test may set Weft's number of threads: it is put back behind it."""
    import weft

    before = weft.get_num_threads()
    yield
    weft.set_num_threads(before)


@pytest.fixture
def verified(monkeypatch):
    """The first call of each program is run by PyTorch and compared."""
    import weft

    monkeypatch.setattr(weft.config, "verify", "first")


@pytest.fixture
def compiled_only(monkeypatch):
    """Fails a test whose call PyTorch runs."""
    from weft.compiled.compiled import Compiled
    from weft.compiled.observing import TracedOrObserved

    def refuse(self, reason, args, kwargs):
        raise AssertionError(f"ran eagerly: {reason}")

    for face in (Compiled, TracedOrObserved):
        monkeypatch.setattr(face, "_eager", refuse)
