# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures and settings of the Python tests: seeds are fixed, artifacts go to a cache for the test
session, and the folder's helper modules can be imported."""

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
# LLVM packages are built without assertions, so that the verifier runs after every pass instead.
os.environ["WEFT_VERIFY"] = "1"
# First calls are run by the program, so that tests compare the program's results. Tests of the
# comparison with eager execution enable it.
os.environ["WEFT_VERIFY_PROGRAMS"] = "off"
# Tests compare the program for exactly their sizes. Tests of programs for ranges of sizes enable
# these.
os.environ["WEFT_AUTOMATIC_SIZES"] = "0"


# These files have few tests that take minutes each: if they begin first, the others run beside
# them.
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


# Reports are formatted as for a file, whatever terminal runs the tests.
os.environ.pop("COLUMNS", None)


@pytest.fixture(scope="module", autouse=True)
def freed_memory_returned():
    """Returns freed memory to the system: tracing forks, and a fork copies the table of all
    pages."""
    yield
    ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture
def automatic_sizes(monkeypatch):
    """Makes a size a symbol once a second value of it occurs, as by default."""
    import weft

    monkeypatch.setattr(weft.config, "automatic_sizes", True)


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def own_threads_alone(monkeypatch):
    """Lets only the threads that the test starts be others: those of pytest share nothing with
    it."""
    from weft.observe import other_threads

    before = set(sys._current_frames())
    monkeypatch.setattr(other_threads, "live", lambda: bool(set(sys._current_frames()) - before))


@pytest.fixture
def no_grad():
    with torch.no_grad():
        yield


@pytest.fixture
def own_threads():
    """Lets the test set Weft's number of threads, which is restored afterwards."""
    import weft

    before = weft.get_num_threads()
    yield
    weft.set_num_threads(before)


@pytest.fixture
def verified(monkeypatch):
    """Lets PyTorch run the first call of each program, for comparison."""
    import weft

    monkeypatch.setattr(weft.config, "verify", "first")


@pytest.fixture
def compiled_only(monkeypatch):
    """Fails a test if PyTorch runs one of its calls."""
    from weft.compiled.compiled import Compiled
    from weft.compiled.observing import TracedOrObserved

    def refuse(self, reason, args, kwargs):
        raise AssertionError(f"ran eagerly: {reason}")

    for face in (Compiled, TracedOrObserved):
        monkeypatch.setattr(face, "_eager", refuse)
