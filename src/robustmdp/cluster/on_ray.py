"""Shards as Ray actors: one per node, threads inside; parcels go from node to node through Ray's object store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp.cluster.exchange import Lost, Problem, Rows, Traffic, traffic_of, transposed
from robustmdp.cluster.shard import Loaded, Program, Shard, Wanted

_ANSWERS = 15.0  # seconds in which a shard that lives must say so
_LOOK = 1.0  # seconds between looks at what has ended


class Place(NamedTuple):
    """A node for a shard, and the threads that it has there."""

    node: str
    address: str
    threads: int


class RayShard(Shard):
    """A shard that fetches its parcels itself."""

    def ping(self) -> bool:
        """It lives."""
        return True

    def carry_out(self, program: Program, parcels: Sequence[Any]) -> Any:
        """The answer and the seconds it took, and behind them what is shared, each array once."""
        import ray

        found = iter(ray.get([parcel for parcel in parcels if parcel is not None]))
        reply = self.run(program, [None if parcel is None else next(found) for parcel in parcels])
        shared = [reply.parcels[reader] for reader in first_readers(self._wanted)] if reply.parcels else []
        return ((reply.answer, reply.seconds), *shared) if shared else (reply.answer, reply.seconds)


def first_readers(wanted: Sequence[Wanted]) -> list[int]:
    """One reader for each different parcel: those who want everything share one."""
    found = [reader for reader, each in enumerate(wanted) if len(each.places)]
    return [*[reader for reader, each in enumerate(wanted) if each.everything][:1], *found]


def parcel_of_reader(wanted: Sequence[Wanted]) -> list[int | None]:
    """Which parcel goes to each reader."""
    first = first_readers(wanted)
    everything = next((reader for reader, each in enumerate(wanted) if each.everything), None)
    kinds = [
        everything if each.everything else reader if len(each.places) else None for reader, each in enumerate(wanted)
    ]
    return [None if kind is None else first.index(kind) for kind in kinds]


class RayExchange:
    """Shards on the nodes of a running Ray; see `Exchange`.

    Parameters
    ----------
    ray : the module, connected
    count : shards; None is one per node
    threads : of each shard; None shares out the cores of its node
    """

    def __init__(self, ray: Any, count: int | None, threads: int | None) -> None:
        self._ray, self._threads = ray, threads
        self._places = self._find_places(count)
        self.count = len(self._places)
        self._actors: list[Any] = []
        self._parcels: list[list[Any]] | None = None

    def _find_places(self, count: int | None) -> list[Place]:
        """Nodes in turn, those with most cores first."""
        nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        if not nodes:
            raise RuntimeError("the cluster must have a node with a core: it has none")
        nodes.sort(key=lambda node: (-node["Resources"]["CPU"], node["NodeID"]))
        count = count or len(nodes)
        places = []
        for i in range(count):
            node = nodes[i % len(nodes)]
            sharing = len(range(i % len(nodes), count, len(nodes)))
            threads = self._threads or max(1, int(node["Resources"]["CPU"]) // sharing)
            places.append(Place(node["NodeID"], node["NodeManagerAddress"], threads))
        return places

    def _start(self, place: Place) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        where = NodeAffinitySchedulingStrategy(place.node, soft=True)
        # No cores are reserved: a replacement must find room on the nodes that are left.
        remote = self._ray.remote(num_cpus=0, max_restarts=0, scheduling_strategy=where)(RayShard)
        return remote.remote(place.threads)

    def load(self, rows: Rows) -> list[Loaded]:
        self.count = len(rows.sources)
        self._rows = rows
        self._actors = [self._start(place) for place in self._places[: self.count]]
        self._seconds = np.zeros(self.count)
        return self._get([self._load(i) for i in range(self.count)])

    def _load(self, shard: int) -> Any:
        return self._actors[shard].load.remote(*self._rows.of_each()[shard])

    def prepare(self, problem: Problem) -> None:
        self._problem = problem
        wanted = self._get([self._prepare(i) for i in range(self.count)])
        self._wanted = transposed(wanted)
        self._route = [parcel_of_reader(each) for each in self._wanted]
        sizes = self._get([self._serve(i) for i in range(self.count)])
        self._sizes = np.array(sizes)

    def _prepare(self, shard: int) -> Any:
        return self._actors[shard].prepare.remote(*self._problem.of_each()[shard])

    def _serve(self, shard: int) -> Any:
        return self._actors[shard].serve.remote(self._wanted[shard])

    def run(self, programs: Sequence[Program], *, last: bool) -> list[Any]:
        answers, parcels = [], []
        shares = any(name == "share" for name, *_ in programs[0])
        for i, (actor, program) in enumerate(zip(self._actors, programs, strict=True)):
            returns = 1 + (len(first_readers(self._wanted[i])) if shares else 0)
            first, *others = self._many(
                actor.carry_out.options(num_returns=returns).remote(program, self._incoming(i)), returns
            )
            answers.append(first)
            parcels.append(others)
        self._parcels = parcels if shares else None
        if not last:
            return []
        found = self._get(answers)
        self._seconds += [seconds for _, seconds in found]
        return [answer for answer, _ in found]

    @staticmethod
    def _many(references: Any, count: int) -> list[Any]:
        return [references] if count == 1 else references

    def _incoming(self, reader: int) -> list[Any]:
        """References to what the other shards shared for this one."""
        if self._parcels is None:
            return [None] * self.count
        routes = (route[reader] for route in self._route)
        return [None if at is None else self._parcels[owner][at] for owner, at in enumerate(routes)]

    def fetch(self, x: int) -> Iterator[npt.NDArray[Any]]:
        for actor in self._actors:
            answer, _ = self._get([actor.carry_out.remote([("fetch", x)], [None] * self.count)])[0]
            yield answer

    def restore(self) -> None:
        """Replace the shards that do not answer; only those make their rows again."""
        self._parcels = None
        lost = [i for i, actor in enumerate(self._actors) if not self._lives(actor)]
        if not lost:
            return
        places = self._find_places(self.count)
        for i in lost:
            self._ray.kill(self._actors[i])
            self._actors[i] = self._start(places[i])
        self._get([self._load(i) for i in lost])
        self._get([self._prepare(i) for i in lost])
        self._get([self._serve(i) for i in lost])

    def _lives(self, actor: Any) -> bool:
        try:
            return bool(self._ray.get(actor.ping.remote(), timeout=_ANSWERS))
        except self._ray.exceptions.RayError:
            return False

    def traffic(self) -> Traffic:
        return traffic_of(self._sizes, self._seconds)

    def close(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []

    def _get(self, references: list[Any]) -> list[Any]:
        """All answers; the first loss that shows ends it."""
        errors = self._ray.exceptions
        waiting = list(references)
        while waiting:
            ended, waiting = self._ray.wait(waiting, num_returns=1, timeout=_LOOK)
            try:
                self._ray.get(ended)
            except errors.RayTaskError as problem:
                if isinstance(problem.cause, errors.RayError):  # what another shard made is gone
                    raise Lost(str(problem.cause).partition("\n")[0]) from None
                raise problem.cause from None
            except errors.RayError as problem:
                raise Lost(str(problem).partition("\n")[0]) from None
        found: list[Any] = self._ray.get(references)
        return found
