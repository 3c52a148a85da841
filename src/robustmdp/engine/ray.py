"""On Ray, here or on a cluster whose nodes may come and go."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from robustmdp.engine.base import Item, Result, Sharding
from robustmdp.engine.remote import Batch, Trouble, describe_trouble, import_extra, run_task

_QUIET = {  # Ray prints losses on stdout, which are no errors where work is repeated; it reads this when imported
    "RAY_DEDUP_LOGS_SKIP_REGEX": "A worker died or was killed|Raylet is terminated|has been marked dead",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
}
_RETRIES = 5  # of a task whose worker or node died
_SECONDS = 1.0  # after which nodes are counted again
_SPECIAL = ("auto", "local")  # addresses that Ray resolves itself
_PATIENCE = 5.0  # seconds in which an address must answer
_SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # an empty frame of settings, with which both sides of HTTP/2 begin
_KIND = 3  # the place of a frame's kind
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS


@dataclass(frozen=True)
class Ray(Sharding):
    """On the Ray cluster at `address`, by default a local one for the while; one already initialised is used as it is.

    At most `workers` tasks run at a time, by default one for every CPU of the cluster. A model that `solve` is given
    with this engine is cut into `workers` shards, by default one for every node.

    >>> Ray(workers=0)
    Traceback (most recent call last):
    ...
    ValueError: workers must be at least 1: got 0
    """

    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        from robustmdp import _checks

        if self.workers is not None:
            _checks.positive_integer("workers", self.workers)

    def each(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        if not items:
            return
        with self.connected(self.workers) as ray:
            batch = _Batch(ray, task, items)
            try:
                while batch.waiting or batch.running:
                    batch.hand_out(self._room(ray))
                    yield from batch.collect()
            finally:
                batch.cancel()

    @contextlib.contextmanager
    def exchange(self, threads: int | None) -> Iterator[Any]:
        """The shards of one model: `workers`, or one for each node."""
        from robustmdp.cluster.ray_exchange import RayExchange

        with self.connected() as ray, contextlib.closing(RayExchange(ray, self.workers, threads)) as exchange:
            yield exchange

    def check(self) -> None:
        """Refuse at once what could not run: no Ray is installed, or none answers at the address."""
        self._ray()
        if self.address is not None:
            _check_address(self.address)

    def nodes(self) -> list[Any]:
        """What the cluster offers: a `cluster.nodes.Node` for each node that is alive."""
        from robustmdp.cluster.nodes import find_nodes

        with self.connected() as ray:
            return find_nodes(ray)

    @contextlib.contextmanager
    def connected(self, cores: int | None = None) -> Iterator[Any]:
        """Stay connected for several calls, which otherwise connect each by itself; yields the module `ray`."""
        ray = self._ray()
        if ray.is_initialized():
            yield ray
            return
        options: dict[str, Any] = {"address": self.address}
        if self.address is None:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            options = {"address": "local", "num_cpus": cores, "include_dashboard": False}
        else:
            _check_address(self.address)
        with _silence():
            try:
                ray.init(**options, log_to_driver=False, configure_logging=False)
            except RuntimeError as problem:  # such as other versions there
                reason = " ".join(str(problem).split())
                raise ConnectionError(f"Ray at {options['address']!r} must accept this process: {reason}") from None
        try:
            yield ray
        finally:
            ray.shutdown()

    @staticmethod
    def _ray() -> Any:
        with _silence():
            return import_extra("ray", "ray")

    def _room(self, ray: Any) -> int:
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        return cores if self.workers is None else min(cores, self.workers)


class _Batch(Batch):
    """The items of one call, on Ray."""

    def __init__(self, ray: Any, task: Callable[..., Any], items: Sequence[Any]) -> None:
        super().__init__(ray.cloudpickle.dumps, task, items, deque(range(len(items))))
        self._ray = ray
        self._remote = ray.remote(max_retries=_RETRIES, retry_exceptions=False)(run_task)
        self._task = ray.put(self.packed_task)

    def submit(self, item: bytes) -> Any:
        return self._remote.remote(self.dumps, self._task, item)

    def collect(self) -> Iterator[tuple[int, Any]]:
        """What has ended, the good results first: they are not to be lost with the bad."""
        self._ray.wait(list(self.running), num_returns=1, timeout=_SECONDS)
        ended, _ = self._ray.wait(list(self.running), num_returns=len(self.running), timeout=0)
        outcomes = [(self._outcome(reference), self.running.pop(reference)) for reference in ended]
        for outcome, position in sorted(outcomes, key=lambda pair: isinstance(pair[0], Trouble)):
            yield self.unpack(outcome, position)

    def _outcome(self, reference: Any) -> bytes | Trouble:
        try:
            outcome: bytes | Trouble = self._ray.get(reference)
        except self._ray.exceptions.RayError as problem:  # its worker or node died too often
            return describe_trouble(problem)
        return outcome

    def cancel(self) -> None:
        for reference in self.running:
            self._ray.cancel(reference, force=True)


def _check_address(address: str) -> None:
    """Refuse an address where no Ray answers; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if address in _SPECIAL:
        return
    if not port.isdigit():
        raise ConnectionError(f"address must be auto or HOST:PORT, as in 10.0.0.1:6379: got {address!r}")
    try:
        with socket.create_connection((host, int(port)), timeout=_PATIENCE) as line:
            line.settimeout(_PATIENCE)
            line.sendall(_HELLO)
            answer = line.recv(len(_SETTINGS))
    except (OSError, OverflowError) as problem:
        sentence = f"address must be that of a running Ray: nobody answers at {address!r} ({problem})"
        raise ConnectionError(sentence) from None
    speaks = answer[_KIND : _KIND + 1] == _SETTINGS[_KIND : _KIND + 1]
    if not speaks and os.environ.get("RAY_USE_TLS") != "1":
        raise ConnectionError(f"address must be that of a running Ray: something else answers at {address!r}")


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    logger = logging.getLogger("ray")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
