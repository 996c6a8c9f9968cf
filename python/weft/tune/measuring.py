# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measurements in a child process, which may hang or die."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from typing import Any

from weft.tune import cores


class Runner:
    """Sends requests to a worker process, which is started when it is needed and killed when it
    takes too long.

    timeout: seconds for each candidate. starting: seconds for a worker to load.
    """

    def __init__(self, timeout: float = 30.0, starting: float = 300.0) -> None:
        self.timeout, self.starting = timeout, starting
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def lanes(self) -> list[Runner]:
        """The runners that may be used at the same time: this one, which measures one candidate at
        a time."""
        return [self]

    def measure(self, request: dict[str, Any]) -> dict[str, Any]:
        """The worker's answer; the outcome is "timeout" or "failed" if it gave none. Waits while
        another process of this user measures on this host."""
        with cores.turn():
            return self._answered(request)

    def _answered(self, request: dict[str, Any]) -> dict[str, Any]:
        fresh = self._process is None
        process = self._process = self._process or self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = _line(process, self.timeout + (self.starting if fresh else 0.0))
        except TimeoutError:
            self._end()
            return {"outcome": "timeout", "note": f"no answer in {self.timeout:g} s"}
        except BrokenPipeError:
            line = b""
        if not line:
            code = process.wait()
            self._end()
            return {"outcome": "failed", "note": f"the worker ended with status {code}"}
        return json.loads(line)

    def _started(self) -> subprocess.Popen[bytes]:
        # The child may not have the path by which this process has found the package.
        path = os.pathsep.join(filter(None, sys.path))
        # Nothing that the worker compiles is needed later, and failed compilations leave
        # reproducers.
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="weft-tune-")
        apart = {"TMPDIR": self._folder.name, "WEFT_CACHE_DIR": self._folder.name}
        return subprocess.Popen(
            [sys.executable, "-m", "weft.tune.worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **apart, "PYTHONPATH": path},
        )

    def close(self) -> None:
        self._end()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _end(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    try:
                        stream.close()
                    # The worker is gone and will not read the rest of the request.
                    except BrokenPipeError:
                        pass
            process.wait()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _line(process: subprocess.Popen[bytes], timeout: float) -> bytes:
    """The next line of the process; empty if it has ended.

    Raises: TimeoutError.
    """
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(timeout):
            raise TimeoutError
    return process.stdout.readline()
