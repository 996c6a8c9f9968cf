# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`runner="ray"`: candidates are measured by the hosts of a Ray cluster, one at a time on each.

Each host has one worker, an actor that holds a `measuring.Runner`. The runner compiles and times in
a child process, so that a candidate that hangs or dies does no harm. The records are written by the
process that called `tune.run`. Ray is an optional dependency, `pip install weft[ray]`.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from typing import Any

from weft import errors
from weft.tune.measuring import Runner


class RayRunner:
    """Uses the cluster that this process is connected to, or starts one on this host.

    timeout: seconds for each candidate. workers: their number; by default one for each host.
    Attributes: lanes: one for each worker. They may be used at the same time; those of one host
    take turns.
    """

    def __init__(self, timeout: float = 30.0, workers: int | None = None) -> None:
        if importlib.util.find_spec("ray") is None:
            raise errors.ConfigError("runner='ray' needs Ray: pip install 'weft[ray]'")
        import ray

        self._own = not ray.is_initialized()
        if self._own:
            # What is timed is no background work: Ray would run it at a niceness of 15.
            settings = {"worker_niceness": 0}
            ray.init(
                include_dashboard=False, log_to_driver=False, num_cpus=2, _system_config=settings
            )
        hosts = max(1, sum(node["Alive"] for node in ray.nodes()))
        path = [each for each in sys.path if each]
        actor = ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(_Worker)
        self._ray = ray
        self._actors = [actor.remote(timeout, path) for _ in range(workers or hosts)]
        locks: dict[str, threading.Lock] = {}
        hosts_of = ray.get([each.host.remote() for each in self._actors])
        self.lanes = [
            _Lane(ray, each, locks.setdefault(host, threading.Lock()))
            for each, host in zip(self._actors, hosts_of)
        ]

    def close(self) -> None:
        for actor in self._actors:
            try:
                self._ray.get(actor.close.remote(), timeout=10)
            except self._ray.exceptions.RayError:  # the actor is gone already
                pass
            self._ray.kill(actor)
        if self._own:
            self._ray.shutdown()

    def __enter__(self) -> RayRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Lane:
    """One worker. turn: a lock that is held while the worker's host measures."""

    def __init__(self, ray: Any, actor: Any, turn: threading.Lock) -> None:
        self._ray, self._actor, self._turn = ray, actor, turn

    def measure(self, request: dict[str, Any]) -> dict[str, Any]:
        """As `Runner.measure`. If the host is lost, the candidate that it was measuring has
        failed."""
        with self._turn:
            try:
                return self._ray.get(self._actor.measure.remote(request))
            except self._ray.exceptions.RayError as error:
                return {"outcome": "failed", "note": str(error).partition("\n")[0]}


class _Worker:
    """The actor that runs on a host. path: the search path for modules of the process that
    tunes."""

    def __init__(self, timeout: float, path: list[str]) -> None:
        sys.path.extend(each for each in path if each not in sys.path)
        self._runner = Runner(timeout)

    def host(self) -> str:
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def measure(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._runner.measure(request)

    def close(self) -> None:
        self._runner.close()
