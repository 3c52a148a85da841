"""One model in shards: who has which rows, and the run that planning makes of it."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from robustmdp import _checks
from robustmdp.ambiguity import Ambiguity, check_ambiguity
from robustmdp.cluster.exchange import Exchange, Problem, Rows
from robustmdp.cluster.machine import Machine
from robustmdp.cluster.operator import ShardedBellman
from robustmdp.cluster.shard import Source, block_size
from robustmdp.io import tensors
from robustmdp.models import MDP, RowSource
from robustmdp.models.part import Sizes, Whole, rows_of
from robustmdp.models.row_source import Rows as Arrays
from robustmdp.planning.criteria import Settings
from robustmdp.planning.policy_iteration import PolicyIteration
from robustmdp.planning.run import check_discounted, check_tolerance, run
from robustmdp.result import Solution


class Engine(Protocol):
    """What brings shards up: as many as it is set to."""

    def exchange(self, threads: int | None) -> AbstractContextManager[Exchange]: ...


class MappedSource(NamedTuple):
    """A model in our own format, which every node opens for itself."""

    path: str

    def part(self, first: int, last: int) -> Arrays:
        return tensors.open_tensors(Path(self.path)).part(first, last)


class GivenSource(NamedTuple):
    """Rows that are sent to their shard."""

    rows: Arrays

    def part(self, first: int, last: int) -> Arrays:
        del first, last
        return self.rows


@dataclass(frozen=True)
class Model:
    """A model before anybody has read its rows."""

    n_states: int
    n_actions: int
    discount: float
    rewards_on_successors: bool
    source: Any
    work: Any = None  # transitions before each state, (S + 1,), where that is known
    mdp: MDP | None = None

    def cut(self, count: int) -> list[int]:
        """Where shards begin and end: between blocks, with about as many transitions each."""
        edges = np.append(np.arange(0, self.n_states, block_size(self.n_states)), self.n_states)
        blocks = len(edges) - 1
        count = min(count, blocks)
        work = edges if self.work is None else self.work[edges]
        chosen = [0]
        for i in range(1, count):
            at = int(np.searchsorted(work, work[-1] * i / count))
            chosen.append(min(max(at, chosen[-1] + 1), blocks - (count - i)))
        return [*edges[chosen].tolist(), self.n_states]

    def sources(self, cuts: Sequence[int]) -> list[Source]:
        """For each shard."""
        if self.mdp is None:
            return [self.source] * (len(cuts) - 1)
        return [GivenSource(rows_of(self.mdp, low, high)) for low, high in pairwise(cuts)]

    def whole(self, sizes: Sizes) -> Whole:
        """What the rows add up to."""
        mdp = self.mdp
        return Whole(
            sizes,
            self.n_actions,
            self.discount,
            self.rewards_on_successors,
            noise=None if mdp is None else mdp.noise,
            state_names=None if mdp is None else mdp.state_names,
            action_names=None if mdp is None else mdp.action_names,
        )


def model_of(source: Any) -> Model:
    """What is known of an MDP, a path or a RowSource at once."""
    if isinstance(source, MDP):
        before = source.indptr[source.state_ptr]
        facts = (source.n_states, source.n_actions, source.discount, source.rewards_on_successors)
        return Model(*facts, source=None, work=before, mdp=source)
    if isinstance(source, RowSource):
        facts = (source.n_states, source.n_actions, source.discount, source.rewards_on_successors)
        return Model(*facts, source=source)
    if isinstance(source, str | os.PathLike):
        mapped = tensors.open_tensors(source)
        facts = (mapped.n_states, mapped.n_actions, mapped.discount, mapped.rewards_on_successors)
        return Model(*facts, source=MappedSource(str(mapped.path.absolute())))
    raise TypeError(f"mdp must be an MDP, a RowSource or the path of a .safetensors model: got {type(source).__name__}")


def solve_in_shards(
    source: Any, ambiguity: Ambiguity, settings: Settings, engine: Engine, checkpoint: str | os.PathLike[str] | None
) -> Solution:
    """`solve` where rows are in shards; the loop, the bounds and the statuses are those of planning."""
    check_tolerance(settings.tol)
    model, ambiguity = model_of(source), check_ambiguity(ambiguity)
    check_discounted(model)
    if model.mdp is not None:
        ambiguity = ambiguity.on_transitions(model.mdp)
    solver = settings.solver if settings.solver is not None else PolicyIteration()
    _checks.must(not solver.fixed_steps, f"the solver must be ValueIteration() or PolicyIteration(): got {solver!r}")
    with engine.exchange(settings.threads) as exchange:
        opened = open_model(exchange, model, ambiguity)
        machine = opened.machine(
            {"set": repr(ambiguity), "solver": repr(solver), "tol": repr(settings.tol)}, checkpoint
        )
        code = "interrupted"
        try:
            bellman = ShardedBellman(machine, opened.whole, ambiguity)
            solution = run(
                solver,
                bellman,
                tol=settings.tol,
                callback=settings.callback,
                start=settings.start,
                returns_interrupted=True,
            )
            code = solution.status.code
        finally:
            machine.close(keep=code == "interrupted")
    return solution


@dataclass(frozen=True)
class Opened:
    """A model whose rows are with the shards."""

    exchange: Exchange
    cuts: Sequence[int]
    whole: Whole
    pair_cuts: Sequence[int]
    checksum: str

    def machine(self, problem: dict[str, str], checkpoint: str | os.PathLike[str] | None) -> Machine:
        """What runs programs there."""
        path = None if checkpoint is None else Path(os.fspath(checkpoint))
        return Machine(self.exchange, self.cuts, self.pair_cuts, {"model": self.checksum, **problem}, path)


def open_model(exchange: Exchange, model: Model, ambiguity: Ambiguity) -> Opened:
    """Have rows and operators made."""
    cuts = model.cut(exchange.count)
    loaded = exchange.load(Rows(model.sources(cuts), cuts, model.rewards_on_successors))
    sizes = [each.sizes for each in loaded]
    whole = model.whole(Sizes.together(sizes))
    pair_cuts = [0, *np.cumsum([size.n_pairs for size in sizes]).tolist()]
    ends = [0, *np.cumsum([size.nnz for size in sizes]).tolist()]
    sets = [ambiguity.on_part(whole, slice(*cuts[i : i + 2]), slice(*ends[i : i + 2])) for i in range(len(cuts) - 1)]
    exchange.prepare(Problem(whole, sets, cuts))
    checksums = np.array([checksum for each in loaded for checksum in each.checksums], dtype=np.int64)
    text = f"{whole.n_states} states, {whole.nnz} transitions, checksum {zlib.crc32(checksums.tobytes()):08x}"
    return Opened(exchange, cuts, whole, pair_cuts, text)
