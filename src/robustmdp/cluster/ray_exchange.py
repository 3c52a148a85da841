"""Shards as Ray actors: one per node, threads inside; parcels go from node to node through Ray's object store."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from robustmdp.cluster.exchange import Assignment, Problem, ShardLost, Traffic, measure_traffic, transpose
from robustmdp.cluster.shard import LoadedRows, Program, ReadSet, Shard

_SECONDS = 1.0  # between looks for signals
_PATIENCE = 2.0  # in which a node must answer
_MOST_RESTARTS = 10  # while shards are set up


class Place(NamedTuple):
    """A node for a shard, and the threads that the shard has there."""

    node: str
    address: str
    threads: int


class RayShard(Shard):
    """A shard that fetches its parcels itself."""

    def load(self, *arguments: Any) -> LoadedRows:
        """With the node's address in what the user has to mend there."""
        import ray

        try:
            return super().load(*arguments)
        except (OSError, ValueError) as problem:
            raise ValueError(f"{problem} (on node {ray.util.get_node_ip_address()})") from None

    def ping(self) -> None:
        """Return at once."""

    def run_program(self, program: Program, parcels: Sequence[Any]) -> Any:
        """(answer, seconds), followed by what is shared, each array once."""
        import ray

        arrays = iter(ray.get([parcel for parcel in parcels if parcel is not None]))
        reply = self.run(program, [None if parcel is None else next(arrays) for parcel in parcels])
        shared = [reply.parcels[reader] for reader in distinct_readers(self._readers)] if reply.parcels else []
        return ((reply.answer, reply.seconds), *shared) if shared else (reply.answer, reply.seconds)


def distinct_readers(read_sets: Sequence[ReadSet]) -> list[int]:
    """One reader for each different parcel: those that read everything share one."""
    partly = [reader for reader, each in enumerate(read_sets) if len(each.places)]
    return [*[reader for reader, each in enumerate(read_sets) if each.everything][:1], *partly]


def parcel_of_reader(read_sets: Sequence[ReadSet]) -> list[int | None]:
    """The number of the parcel that goes to each reader, or None."""
    readers = distinct_readers(read_sets)
    return [
        0 if each.everything else readers.index(reader) if len(each.places) else None
        for reader, each in enumerate(read_sets)
    ]


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
        self._problem: Problem | None = None
        self._read_sets: list[tuple[ReadSet, ...]] | None = None
        self._parcels: list[list[Any]] | None = None
        self._stages: list[Callable[[int], Any]] = []  # what every shard has done since it started

    def load(self, assignment: Assignment) -> list[LoadedRows]:
        self.count = len(assignment.sources)
        self._assignment = assignment
        self._actors = [self._start(place) for place in self._places[: self.count]]
        self._seconds = np.zeros(self.count)
        return self._pass_stage(self._load)

    def prepare(self, problem: Problem) -> None:
        self._problem = problem
        self._read_sets = transpose(self._pass_stage(self._prepare))
        self._routes = [parcel_of_reader(each) for each in self._read_sets]
        self._sizes = np.array(self._pass_stage(self._set_readers))

    def run(self, programs: Sequence[Program], *, last: bool) -> list[Any]:
        answers, parcels = [], []
        shares = any(name == "share" for name, *_ in programs[0])
        for i, (actor, program) in enumerate(zip(self._actors, programs, strict=True)):
            count = 1 + (len(distinct_readers(self._readers(i))) if shares else 0)
            returned = actor.run_program.options(num_returns=count).remote(program, self._incoming(i))
            first, *others = [returned] if count == 1 else returned
            answers.append(first)
            parcels.append(others)
        self._parcels = parcels if shares else None
        if not last:
            return []
        replies = self._get(answers)
        self._seconds += [seconds for _, seconds in replies]
        return [answer for answer, _ in replies]

    def ask(self, shard: int, *instruction: Any) -> Any:
        answer, _ = self._get([self._actors[shard].run_program.remote([instruction], [])])[0]
        return answer

    def restore(self) -> None:
        self._replace_lost()

    def traffic(self) -> Traffic:
        return measure_traffic(self._sizes, self._seconds)

    def close(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors, self._parcels = [], None

    # setting up

    def _find_places(self, count: int | None, *, after_loss: bool = False) -> list[Place]:
        """Nodes in turn, those with most cores first; after a loss those that answer."""
        nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        if not nodes:
            raise RuntimeError("the cluster must have a node with a core: it has none")
        if after_loss:
            nodes = list(filter(_answers, nodes)) or nodes
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

    def _load(self, shard: int) -> Any:
        return self._actors[shard].load.remote(*self._assignment.arguments(shard))

    def _prepare(self, shard: int) -> Any:
        assert self._problem is not None
        return self._actors[shard].prepare.remote(*self._problem.arguments(shard))

    def _set_readers(self, shard: int) -> Any:
        return self._actors[shard].set_readers.remote(self._readers(shard))

    def _readers(self, shard: int) -> tuple[ReadSet, ...]:
        assert self._read_sets is not None
        return self._read_sets[shard]

    def _pass_stage(self, call: Callable[[int], Any]) -> list[Any]:
        """What a call returns on every shard; a lost one is replaced, and its replacement passes all earlier stages."""
        references = [call(i) for i in range(self.count)]
        for _ in range(_MOST_RESTARTS):
            try:
                results = self._get(references)
                self._stages.append(call)
                return results
            except ShardLost as loss:
                reason = str(loss)
            for i in self._replace_lost():
                references[i] = call(i)
        raise self._too_many(reason)

    # losses

    def _replace_lost(self) -> list[int]:
        """Start other shards instead of those that ended, up to the present state of setting up; returns which."""
        self._parcels = None
        replaced: set[int] = set()
        for _ in range(_MOST_RESTARTS):
            replaced |= {i for i, actor in enumerate(self._actors) if i not in replaced and self._is_lost(actor)}
            if not replaced:
                return []
            places = self._find_places(self.count, after_loss=True)
            try:
                for i in replaced:
                    self._ray.kill(self._actors[i])
                    self._actors[i] = self._start(places[i])
                self._set_up(replaced)
            except ShardLost as loss:
                reason = str(loss)
                continue
            return sorted(replaced)
        raise self._too_many(reason)

    def _set_up(self, shards: Iterable[int]) -> None:
        for call in self._stages:
            self._get([call(i) for i in shards])

    def _is_lost(self, actor: Any) -> bool:
        """Whether Ray says so: a shard that is slow, or that still waits for parcels that are gone, is not."""
        try:
            self._get([actor.ping.remote()])
        except ShardLost:
            return True
        return False

    @staticmethod
    def _too_many(reason: str) -> RuntimeError:
        return RuntimeError(f"the solve ended because shards were lost {_MOST_RESTARTS} times in a row: {reason}")

    # messages

    def _incoming(self, reader: int) -> list[Any]:
        """References to what the other shards shared for this one."""
        if self._parcels is None:
            return [None] * self.count
        numbers = (route[reader] for route in self._routes)
        return [None if number is None else self._parcels[owner][number] for owner, number in enumerate(numbers)]

    def _get(self, references: list[Any]) -> list[Any]:
        """All results; raises what the first task that failed raised, or `ShardLost`."""
        errors = self._ray.exceptions
        waiting = list(references)
        while waiting:
            ended, waiting = self._ray.wait(waiting, num_returns=1, timeout=_SECONDS)
            try:
                self._ray.get(ended)
            except errors.RayTaskError as problem:
                if isinstance(problem.cause, errors.RayError):  # what another shard made is gone
                    raise _loss(problem.cause) from None
                raise problem.cause from None
            except errors.RayError as problem:
                if "creation task" in str(problem):  # it would fail again
                    reason = str(problem).strip().splitlines()[-1]
                    raise RuntimeError(
                        f"robustmdp must be able to start on every node of the cluster: {reason}"
                    ) from None
                raise _loss(problem) from None
        results: list[Any] = self._ray.get(references)
        return results


def _answers(node: Mapping[str, Any]) -> bool:
    """Whether a node's process is there: Ray itself believes so until several of its own calls have failed."""
    try:
        socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), timeout=_PATIENCE).close()
    except OSError:
        return False
    return True


def _loss(problem: Exception) -> ShardLost:
    return ShardLost(str(problem).partition("\n")[0])
