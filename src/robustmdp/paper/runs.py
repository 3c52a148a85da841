"""What the experiments measure: worlds, exact solutions, learners and the errors of their runs."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.engine import Serial
from robustmdp.paper.work import Item, rows
from robustmdp.planning.solving import solve_or_raise
from robustmdp.table import Table

if TYPE_CHECKING:
    from robustmdp.ambiguity import Penalized
    from robustmdp.models import MDP
    from robustmdp.result import Solution

solve_exactly = functools.partial(solve_or_raise, tol=1e-10, threads=1)


def build_chain(item: Item) -> MDP:
    """The paper's chain with the p and q of an item."""
    from robustmdp import problems

    return problems.chain(item["stay"], item.get("restart", 0.0), item["discount"])


def build_penalty(item: Item) -> Penalized:
    """The ambiguity of an item."""
    from robustmdp.ambiguity import Penalized
    from robustmdp.divergences import divergence_named

    return Penalized(divergence_named(item["divergence"]), item["weight"])


def build_learner(method: str, ambiguity: Any, inner_steps: int = 1, **settings: Any) -> Any:
    """One of those that the experiments compare; `inner_steps` are Algorithm 1's."""
    from robustmdp import learning

    if method == "algorithm-1":
        return learning.GenerativeQLearning.paper(ambiguity, inner_steps, **settings)
    learners: dict[str, Callable[..., Any]] = {
        "algorithm-2": learning.MarkovianQLearning.paper,
        "generative": learning.GenerativeQLearning,
        "markovian": learning.MarkovianQLearning,
        "plug-in": learning.PlugIn,
        "mlmc": learning.MultilevelQLearning,
    }
    return learners[method](ambiguity, **settings)


def algorithm_3(mdp: MDP, ambiguity: Penalized, steps: int, inner_steps: int) -> Iterator[FloatArray]:
    """V_0, ..., V_T: with gradient steps on eta for chi-square and KL, with the exact inner solution for the others."""
    from robustmdp.operators import RobustBellman
    from robustmdp.planning import DualAscent

    bellman = RobustBellman(mdp, ambiguity, threads=1)
    v = np.full(mdp.n_states, mdp.value_range[1])
    yield v
    if ambiguity.divergence.ascent is not None:
        for iterate in itertools.islice(DualAscent(steps, inner_steps).iterate(bellman, None, 0.0), steps):
            yield iterate.swept
        return
    for _ in range(steps):
        v = bellman.apply(v)
        yield v


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
    solutions = replicate(learner, mdp, item["steps"], seeds=item["seeds"], reference=exact, record_every=every)
    tables = []
    for seed, solution in zip(item["seeds"], solutions, strict=True):
        steps = np.asarray(solution.trace["steps"])
        kept = (steps <= dense * every) | (steps % (10 * every) == 0) | (steps == item["steps"])
        shown = {name: np.asarray(solution.trace[name])[kept] for name in ("steps", "samples", "error")}
        # A run that only ends far off has its errors to show.
        diverged = solution.status.code == "diverged" and not np.isfinite(solution.q).all()
        if diverged:
            shown = {"steps": solution.steps, "samples": solution.samples, "error": np.inf}
        tables.append(
            rows(
                item,
                seed=seed,
                step=np.r_[0, shown["steps"]].astype(np.int64),
                samples=np.r_[0, shown["samples"]].astype(np.int64),
                error=np.r_[first, shown["error"]],
                status="diverged" if diverged else "step_limit",
            )
        )
    return Table.concat(tables)


def measure_final_errors(item: Item, mdp: MDP, learner: Any, **more: Callable[[Solution], float]) -> Table:
    """The errors of some replications after item["budget"] samples, and columns of more that is asked of each."""
    budget, exact = item["budget"], solve_exactly(mdp, learner.ambiguity).q
    solutions = replicate(learner, mdp, samples=budget, seeds=item["seeds"], reference=exact, record_every=budget)
    return rows(
        item,
        seed=np.array(item["seeds"]),
        samples=np.array([solution.samples for solution in solutions]),
        error=np.array([solution.trace["error"][-1] for solution in solutions]),
        **{name: np.array([ask(solution) for solution in solutions]) for name, ask in more.items()},
    )
