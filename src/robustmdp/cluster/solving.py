"""One model in shards: `solve`, and what is asked for later."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity, check_ambiguity
from robustmdp.cluster.driver import Driver
from robustmdp.cluster.exchange import Assignment, Exchange, Problem, Traffic
from robustmdp.cluster.operator import IN_SHARDS, ShardedBellman
from robustmdp.cluster.sources import ModelSource
from robustmdp.cluster.writing import write_solution
from robustmdp.models import MDP
from robustmdp.models.part import Outline, Sizes
from robustmdp.planning.criteria import Settings
from robustmdp.planning.policy_iteration import PolicyIteration
from robustmdp.planning.run import Callback, Step, check_discounted, check_tolerance, run
from robustmdp.result import Solution

_LEVELS = ("level", "lower", "upper", "weights", "support")  # of sets, which may be arrays


class Engine(Protocol):
    """Starts as many shards as it is set to."""

    def exchange(self, threads: int | None) -> AbstractContextManager[Exchange]: ...


class ShardedStep(NamedTuple):
    """A `Step` with the number of sweeps over all pairs so far and the cost of the exchanges in it."""

    step: int
    residual: float
    error_bound: float
    rows: int
    sweeps: int
    traffic: Traffic


class ShardedSolution(Solution):
    """A solution whose q, eta, penalty and worst_case are computed when they are written to a file."""

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the worst case, as a model that `read` opens, with all tables to a .safetensors file.

        Beside the arrays of the model it has value, lower, upper and policy, one entry per state, and q, penalty and
        eta, one per pair of state and action in the model's order; a random policy has policy_probabilities, one per
        pair. The shards are started again; what they write is never in memory as a whole.
        """
        adversary: ShardedAdversary = self.adversary  # type: ignore[assignment]  # the only one that it is made with
        target = Path(os.fspath(path))
        _checks.must(
            target.suffix.lower() == ".safetensors",
            f"a solution of a model in shards must be written to a .safetensors file: got {target.name!r}",
        )
        with adversary.model.open() as opened:
            bellman = opened.bellman(opened.driver({}, None))
            try:
                write_solution(self, bellman, target)
            finally:
                bellman.driver.close(keep=False)
        return target


@dataclass(frozen=True)
class ShardedAdversary:
    """What a solution asks for nature's choice, which is not kept in memory."""

    mdp: Outline
    model: ShardedModel

    def worst_case(self, v: FloatArray) -> NoReturn:
        """Refused: it may exceed the memory."""
        del v
        raise AttributeError(IN_SHARDS.format(name="the worst case (with penalty and eta)"))

    def worst_noise(self, v: FloatArray, pair: int) -> NoReturn:
        """Refused likewise."""
        del pair
        self.worst_case(v)


@dataclass(frozen=True)
class ShardedModel:
    """A model and a set, to be opened on the shards of an engine."""

    source: ModelSource
    ambiguity: Ambiguity
    engine: Engine
    threads: int | None

    @contextmanager
    def open(self) -> Iterator[OpenModel]:
        """Start shards, load rows and make operators."""
        with self.engine.exchange(self.threads) as exchange:
            cuts = self.source.cut(exchange.count)
            on_successors = self.source.model.rewards_on_successors
            loaded = exchange.load(Assignment(self.source.sources(cuts), cuts, on_successors))
            sizes = [each.sizes for each in loaded]
            outline = self.source.outline(Sizes.combine(sizes))
            pair_cuts = [0, *np.cumsum([size.n_pairs for size in sizes]).tolist()]
            ends = [0, *np.cumsum([size.nnz for size in sizes]).tolist()]
            sets = [
                self.ambiguity.on_part(outline, slice(*cuts[i : i + 2]), slice(*ends[i : i + 2]))
                for i in range(len(sizes))
            ]
            exchange.prepare(Problem(outline, sets, cuts))
            checksums = np.array([checksum for each in loaded for checksum in each.checksums], dtype=np.int64)
            checksum = zlib.crc32(checksums.tobytes())
            yield OpenModel(self, exchange, cuts, outline, pair_cuts, checksum)


@dataclass(frozen=True)
class OpenModel:
    """A model whose rows are with the shards."""

    model: ShardedModel
    exchange: Exchange
    cuts: Sequence[int]
    outline: Outline
    pair_cuts: Sequence[int]
    checksum: int

    def driver(self, settings: dict[str, str], checkpoint: Path | None) -> Driver:
        """A driver whose checkpoints are of this model and these settings."""
        sizes = f"{self.outline.n_states} states, {self.outline.nnz} transitions, discount {self.outline.discount!r}"
        problem = {"model": f"{sizes}, checksum {self.checksum:08x}", "set": _describe(self.model.ambiguity)}
        return Driver(self.exchange, self.cuts, self.pair_cuts, problem | settings, checkpoint)

    def bellman(self, driver: Driver) -> ShardedBellman:
        """The operator."""
        adversary = ShardedAdversary(self.outline, self.model)
        return ShardedBellman(driver, self.outline, self.model.ambiguity, adversary)


def solve_in_shards(
    source: Any, ambiguity: Ambiguity, settings: Settings, engine: Engine, checkpoint: str | os.PathLike[str] | None
) -> Solution:
    """`solve` of a model in shards; the loop, the bounds and the statuses are those of planning."""
    check_tolerance(settings.tol)
    given, ambiguity = ModelSource.of(source), check_ambiguity(ambiguity)
    check_discounted(given.model)  # type: ignore[arg-type]  # anything with a discount
    if isinstance(given.model, MDP):
        ambiguity = ambiguity.on_transitions(given.model)
    ambiguity.check_parts()
    solver = settings.solver if settings.solver is not None else PolicyIteration()
    _checks.must(not solver.fixed_steps, f"the solver must be ValueIteration() or PolicyIteration(): got {solver!r}")
    path = None if checkpoint is None else Path(os.fspath(checkpoint))
    with ShardedModel(given, ambiguity, engine, settings.threads).open() as opened:
        driver = opened.driver({"solver": repr(solver), "tol": repr(settings.tol)}, path)
        code = "interrupted"
        try:
            bellman: Any = opened.bellman(driver)  # like a RobustBellman, for Values
            callback = _with_traffic(settings.callback, bellman)
            solution = run(
                solver, bellman, tol=settings.tol, callback=callback, start=settings.start, returns_interrupted=True
            )
            code = solution.status.code
        finally:
            driver.close(keep=code == "interrupted")
    return ShardedSolution(**{field.name: getattr(solution, field.name) for field in fields(solution)})


def _with_traffic(callback: Callback | None, bellman: ShardedBellman) -> Callback | None:
    """A callback that gives a user's one a `ShardedStep`."""
    if callback is None:
        return None
    exchange = bellman.driver.exchange

    def report(step: Step) -> Any:
        sharded: Any = ShardedStep(*step, bellman.sweeps, exchange.traffic())  # has all that a Step has
        return callback(sharded)

    return report


def _describe(ambiguity: Any) -> str:
    """A set as it is printed, with a checksum of its arrays, which are not."""
    checksum, part = 0, ambiguity
    while part is not None:
        for name in _LEVELS:
            array = getattr(part, name, None)
            if isinstance(array, np.ndarray):
                checksum = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data, checksum)
        part = getattr(part, "set", None) or getattr(part, "risk", None)
    return f"{ambiguity!r}, checksum {checksum:08x}" if checksum else repr(ambiguity)
