"""What the experiments share: an item of work is a plain dict, its outcome a table of rows that repeat its settings."""

from __future__ import annotations

import dataclasses
import functools
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from robustmdp import __version__
from robustmdp.engine import Engine, Serial
from robustmdp.paper.claims import Claim, no_claims
from robustmdp.planning.solving import solve_or_raise
from robustmdp.table import Table

if TYPE_CHECKING:
    from robustmdp.ambiguity import Penalized
    from robustmdp.models import MDP
    from robustmdp.paper.figures import Figure
    from robustmdp.result import Solution

Item = dict[str, Any]
VOLATILE = ("seconds", "peak_bytes")  # columns that the clock and the machine write: no two runs agree on them
solve_exactly = functools.partial(solve_or_raise, tol=1e-10, threads=1)
_SEEDS_AT_ONCE = 25  # replications that share compiled calls, and the work that a kill can lose


@dataclass(frozen=True)
class Experiment:
    """One figure and its claims.

    Attributes
    ----------
    name : on the command line
    parameters : their record, whose fields are the command's options
    tasks : (parameters) -> settings of each task, plain dicts
    measure : (task) -> rows; tasks of two experiments with the same `measure` and settings are run once
    figure : (records) -> what is drawn
    check : (records) -> claims
    """

    name: str
    title: str
    parameters: type[Any]
    tasks: Callable[[Any], list[Item]]
    measure: Callable[[Item], Table]
    figure: Callable[[Table], Figure]
    check: Callable[[Table], list[Claim]] = no_claims

    def run(self, params: Any, engine: Engine) -> Table:
        """The records: all rows in the order of the tasks, with notes on where they come from."""
        began = time.time()
        tables = engine.map(self.measure, self.tasks(params))
        return Table.concat(tables).with_notes(
            version=__version__,
            parameters=dataclasses.asdict(params),
            started=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(began)),
            wall_seconds=round(time.time() - began, 2),  # of this call; tasks found done took theirs before
            task_seconds=round(sum(float(table["seconds"][0]) for table in tables), 2),
            python=platform.python_version(),
            numpy=version("numpy"),
            machine=f"{platform.system()} {platform.machine()}",
        )


def timed(task: Callable[[Item], Table]) -> Callable[[Item], Table]:
    """The task, with the seconds that it took in a column of their own."""

    @functools.wraps(task)
    def with_seconds(item: Item) -> Table:
        began = time.perf_counter()
        table = task(item)
        return Table({**table.columns, "seconds": np.full(len(table), round(time.perf_counter() - began, 4))})

    return with_seconds


def rows(item: Item, **columns: Any) -> Table:
    """Columns, and the settings of the item beside them, in an order that experiments that share a task agree on."""
    settings = {name: value for name, value in sorted(item.items()) if not isinstance(value, list)}
    return Table.of(**settings, **columns)


def seed_groups(seeds: int) -> Iterator[list[int]]:
    """0..seeds-1 in groups of a size that does not depend on the machine."""
    for first in range(0, seeds, _SEEDS_AT_ONCE):
        yield list(range(first, min(first + _SEEDS_AT_ONCE, seeds)))


def build_chain(item: Item) -> MDP:
    """The paper's chain with the p and q of an item."""
    from robustmdp import problems

    return problems.chain(item["stay"], item.get("restart", 0.0), item["discount"])


def build_penalty(item: Item) -> Penalized:
    """The ambiguity of an item."""
    from robustmdp.ambiguity import Penalized
    from robustmdp.divergences import divergence_named

    return Penalized(divergence_named(item["divergence"]), item["weight"])


def replicate(learner: Any, world: Any, steps: int | None = None, **settings: Any) -> list[Solution]:
    """Runs with several seeds; Ctrl-C raises here as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # pairs never visited: their error says it
        found: list[Solution] = learner.run_many(world, steps, threads=1, engine=Serial(), **settings)
    return found


def trace_errors(item: Item, learner: Any, *, start: float, every: int, dense: int) -> Table:
    """The error of a learner along its runs, from Q = `start` at step 0.

    Of the records, one every so many steps, the first `dense` are kept, then each tenth, and the last.
    """
    mdp = build_chain(item)
    exact = solve_exactly(mdp, learner.ambiguity).q
    first = float(np.abs(start - mdp.pairs(exact)).max())

    def keep(step: int) -> bool:
        return step <= dense * every or step % (10 * every) == 0 or step == item["steps"]

    solutions = replicate(learner, mdp, item["steps"], seeds=item["seeds"], reference=exact, record_every=every)
    runs = zip(item["seeds"], solutions, strict=True)
    return Table.concat([_run_rows(item, *run, first, keep) for run in runs])


def measure_final_errors(item: Item, mdp: MDP, learner: Any) -> Table:
    """The errors of some replications after item["budget"] samples."""
    budget, exact = item["budget"], solve_exactly(mdp, learner.ambiguity).q
    solutions = replicate(learner, mdp, samples=budget, seeds=item["seeds"], reference=exact, record_every=budget)
    return rows(
        item,
        seed=np.array(item["seeds"]),
        samples=np.array([solution.samples for solution in solutions]),
        error=np.array([solution.trace["error"][-1] for solution in solutions]),
    )


def _run_rows(item: Item, seed: int, solution: Any, first: float, keep: Callable[[int], bool]) -> Table:
    trace = solution.trace
    # A run that only ends far off has its errors to show.
    diverged = solution.status.code == "diverged" and not np.isfinite(solution.q).all()
    kept = [] if diverged else [index for index, step in enumerate(trace["steps"]) if keep(int(step))]
    ends = (solution.steps, solution.samples, np.inf)  # of a run that left the numbers

    def column(name: str, start: float, end: float, dtype: type) -> npt.NDArray[Any]:
        return np.concatenate([[start], np.asarray(trace[name])[kept], [end] if diverged else []]).astype(dtype)

    return rows(
        item,
        seed=seed,
        step=column("steps", 0, ends[0], np.int64),
        samples=column("samples", 0, ends[1], np.int64),
        error=column("error", first, ends[2], np.float64),
        status="diverged" if diverged else "step_limit",
    )


def product(**levels: Iterable[Any]) -> Iterator[Item]:
    """Every combination of the named levels, the first slowest."""
    items: list[Item] = [{}]
    for name, values in levels.items():
        choices = list(values)
        items = [{**item, name: value} for item in items for value in choices]
    return iter(items)
