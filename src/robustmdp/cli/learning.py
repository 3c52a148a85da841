"""The command `learn`: from words to a learner and a world, and back to words."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustmdp import _checks
from robustmdp.cli.words import parse_ambiguity, parse_problem

if TYPE_CHECKING:
    from robustmdp.result import Solution

_SETTINGS = frozenset({"algorithm", "divergence", "weight", "radius", "paper", "inner_steps", "epsilon"})


@dataclass(frozen=True)
class Learned:
    """What is shown; `error` is max |Q - Q*|, NaN where no model is known."""

    title: str
    learner: Any
    solution: Solution
    error: float


def learn(problem: str | None, given: set[str], algorithms: Sequence[str], **options: Any) -> Learned:
    """Run or resume a learner with live progress; `given` are the options that the user wrote."""
    if options["resume"] is not None:
        return _resume(problem, given, algorithms, **options)
    _checks.must(
        (problem is None) != (options["log"] is None), "give a PROBLEM or --log FILE, one of them, or --resume FILE"
    )
    if options["log"] is not None and "algorithm" not in given:
        options["algorithm"] = "markovian"
    learner, world = _learner(algorithms, **options), _world(problem, **options)
    exact = _exact(world, learner)
    with _Bar() as bar:
        solution = learner.run(
            world,
            options["steps"],
            samples=options["samples"],
            seed=options["seed"],
            reference=exact,
            checkpoint=options["checkpoint"],
            progress=bar,
            discount=options["discount"],
        )
    return Learned(problem or options["log"], learner, solution, _error(solution, exact))


def _resume(problem: str | None, given: set[str], algorithms: Sequence[str], **options: Any) -> Learned:
    from robustmdp.learning import checkpoints, resume

    fixed = given & {"steps", "samples", "seed", "discount"}
    if fixed:
        _checks.fail(f"a resumed run has its own --{sorted(fixed)[0]}: leave the option out")
    path = options["resume"]
    saved = checkpoints.read(Path(path))
    learner = _learner(algorithms, **options) if given & _SETTINGS else checkpoints.learner_of(saved)
    world = _world(problem, **options) if problem or options["log"] else None
    with _Bar() as bar:
        solution = resume(path, world, learner=learner, checkpoint=options["checkpoint"], progress=bar)
    exact = _exact(solution.adversary.mdp, learner)
    return Learned(f"resumed from {path}", learner, solution, _error(solution, exact))


def _learner(algorithms: Sequence[str], **options: Any) -> Any:
    import robustmdp as rm

    name = options["algorithm"]
    if name not in algorithms:
        _checks.nearest("algorithm", name, algorithms)
    ambiguity = parse_ambiguity(options["divergence"], options["weight"], options["radius"])
    behaviour = None if options["epsilon"] is None else rm.EpsilonGreedy(options["epsilon"])
    _checks.must(behaviour is None or name == "markovian", "--epsilon is for --algorithm markovian")
    _checks.must(not options["paper"] or name in ("generative", "markovian"), f"--paper has no meaning for {name}")
    if name == "plugin":
        return rm.PlugIn(ambiguity, trajectory=options["log"] is not None)
    if name == "mlmc":
        return rm.MultilevelQLearning(ambiguity)
    if name == "generative":
        inner = options["inner_steps"]
        return rm.GenerativeQLearning.paper(ambiguity, inner) if options["paper"] else rm.GenerativeQLearning(ambiguity)
    return (rm.MarkovianQLearning.paper if options["paper"] else rm.MarkovianQLearning)(ambiguity, behaviour)


def _world(problem: str | None, **options: Any) -> Any:
    """A log, a model, or an environment that publishes none."""
    from robustmdp import read_log

    if problem is None:
        return read_log(options["log"])
    if problem.startswith("gym:"):
        from robustmdp.models import gymnasium

        env = gymnasium.made(problem.removeprefix("gym:"))
        if getattr(env.unwrapped, "P", None) is None:
            return env
    return parse_problem(problem, options["discount"])


def _exact(world: Any, learner: Any) -> Any:
    from robustmdp import MDP, solve

    return solve(world, learner.ambiguity).q if isinstance(world, MDP) else None


def _error(solution: Solution, exact: Any) -> float:
    import numpy as np

    if exact is None:
        return math.nan
    available = np.isfinite(exact)
    return float(np.abs(solution.q[available] - exact[available]).max())


class _Bar:
    """How far, how fast, how long still; on stderr, and only where that is a terminal."""

    def __enter__(self) -> _Bar:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[rate]}"),
        )
        self._bar = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
        self._task = self._bar.add_task("Preparing the kernels (the first run compiles them)", total=1.0, rate="")
        self._bar.start()
        return self

    def __call__(self, progress: Any) -> None:
        error = "" if math.isnan(progress.error) else f", error {progress.error:.3g}"
        self._bar.update(
            self._task,
            completed=progress.step,
            total=progress.steps,
            description=f"{progress.samples:,} samples{error}",
            rate=f"{progress.rate:,.0f}/s",
        )

    def __exit__(self, *problem: object) -> None:
        self._bar.stop()


def show(learned: Learned, rows: int, as_json: bool) -> None:
    """A table of states or one JSON object."""
    if as_json:
        _print_json(learned)
    else:
        _print_table(learned, rows)


def _print_table(learned: Learned, rows: int) -> None:
    from rich.console import Console
    from rich.table import Table

    console, solution = Console(), learned.solution
    certified = math.isfinite(solution.error_bound)
    table = Table(title=f"{learned.title}\n{learned.learner.ambiguity}", title_justify="left")
    table.add_column("state")
    table.add_column("action")
    for name in ("worst-case value", *(("lower bound", "upper bound") if certified else ())):
        table.add_column(name, justify="right")
    for state, action, *numbers in list(zip(*solution.columns().values(), strict=True))[:rows]:
        table.add_row(str(state), str(action), *(f"{number:.4f}" for number in numbers[: 3 if certified else 1]))
    console.print(table)
    if len(solution.value) > rows:
        console.print(
            f"{len(solution.value) - rows:,} more states: use --rows {len(solution.value)} or --json to see all."
        )
    console.print(f"{solution.samples:,} samples", highlight=False, end="")
    if not math.isnan(learned.error):
        console.print(f", error of Q against the exact solution {learned.error:.4g}", highlight=False, end="")
    console.print()
    console.print(str(solution.status), highlight=False, soft_wrap=True)


def _print_json(learned: Learned) -> None:
    import msgspec
    import numpy as np

    solution = learned.solution
    visits = solution.visits
    record = {
        "problem": learned.title,
        "learner": repr(learned.learner),
        "status": solution.status.code,
        "message": solution.status.sentence,
        "steps": solution.steps,
        "samples": solution.samples,
        "error": learned.error,
        "error_bound": solution.error_bound,
        "policy": solution.policy.tolist(),
        "value": solution.value.tolist(),
        "q": np.where(np.isfinite(solution.q), solution.q, np.nan).tolist(),
        "visits": None if visits is None else visits.tolist(),
    }
    sys.stdout.buffer.write(msgspec.json.encode(record) + b"\n")
    sys.stdout.flush()
