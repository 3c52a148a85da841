"""From words to a learner and a world, and back to words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustmdp import _checks
from robustmdp.app.commands.environments import PREFIX, parse_environment
from robustmdp.app.commands.options import ALGORITHMS
from robustmdp.app.commands.progress import Bar
from robustmdp.app.commands.sets import parse_ambiguity
from robustmdp.app.commands.words import USUAL_DISCOUNT, check_log, parse_columns, parse_problem, parse_range

if TYPE_CHECKING:
    from robustmdp.result import Solution

_FIXED = ("samples", "seed", "discount", "confidence", "certify_share", "reward_range")  # of a run that is resumed
_SETTINGS = frozenset({"algorithm", "divergence", "weight", "radius", "paper", "inner_steps", "epsilon"})


@dataclass(frozen=True)
class Learned:
    """What is shown; `error` is max |Q - Q*|, NaN where no model is known."""

    title: str
    learner: Any
    solution: Solution
    error: float


def learned(problem: str | None, written: set[str], meter: Meter, **options: Any) -> Learned:
    """Run or resume a learner; `written` are the options that the user wrote."""
    if options["resume"] is not None:
        return _resume(problem, written, meter, **options)
    _checks.must(
        (problem is None) != (options["log"] is None), "give a PROBLEM or --log FILE, one of them, or --resume FILE"
    )
    _checks.must(
        options["confidence"] is not None or "certify_share" not in written, "--certify-share is for --confidence"
    )
    if options["log"] is not None and "algorithm" not in written:
        options["algorithm"] = "markovian"
    learner, world = _learner(**options), _world(problem, **options)
    exact = _exact(world, learner)
    solution = learner.run(
        world,
        options["steps"],
        samples=options["samples"],
        seed=options["seed"],
        reference=exact,
        confidence=options["confidence"],
        certify_share=options["certify_share"],
        checkpoint=options["checkpoint"],
        progress=meter,
        discount=options["discount"],
        reward_range=parse_range("--reward-range", options["reward_range"]),
    )
    return Learned(problem or options["log"], learner, solution, _error(solution, exact))


def _resume(problem: str | None, written: set[str], meter: Meter, **options: Any) -> Learned:
    from robustmdp.learning import checkpoints, resume
    from robustmdp.learning.certificates import Certified

    for name in _FIXED:
        _checks.must(name not in written, f"a resumed run has its own --{name.replace('_', '-')}: leave the option out")
    path = options["resume"]
    own = checkpoints.learner_of(checkpoints.read(Path(path)))
    learner = _learner(**options) if written & _SETTINGS else own.learner if isinstance(own, Certified) else own
    world = _world(problem, **options) if problem or options["log"] else None
    solution = resume(
        path, world, steps=options["steps"], learner=learner, checkpoint=options["checkpoint"], progress=meter
    )
    exact = _exact(solution.adversary.mdp, learner)
    return Learned(f"resumed from {path}", learner, solution, _error(solution, exact))


def _learner(**options: Any) -> Any:
    import robustmdp as rm

    name = options["algorithm"]
    if name not in ALGORITHMS:
        _checks.nearest("algorithm", name, ALGORITHMS)
    _checks.must(
        options["confidence"] is None or name in ("generative", "markovian"),
        "--confidence must come with --algorithm generative or markovian",
    )
    _checks.must(
        options["log"] is None or name in ("markovian", "plugin"),
        f"--algorithm {name} must be able to ask about any pair, but a log only goes its way: "
        "use --algorithm markovian",
    )
    ambiguity = parse_ambiguity(options)
    _checks.must(
        name != "mlmc" or (ambiguity.has_radius and ambiguity.divergence.name == rm.KL().name),
        "--algorithm mlmc is for a Kullback-Leibler ball: give --divergence kl and --radius",
    )
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
    from robustmdp import MDP, read_log

    if problem is None:
        if not options["column"]:
            check_log(options["log"])
        return read_log(options["log"], columns=parse_columns(options["column"]))
    if problem.startswith(PREFIX):
        env, discount = parse_environment(problem).make(), options["discount"]
        if getattr(env.unwrapped, "P", None) is None:
            return env
        return MDP.from_gymnasium(env, USUAL_DISCOUNT if discount is None else discount)
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


@dataclass
class Meter:
    """A learner's progress on the bar."""

    bar: Bar

    def __call__(self, progress: Any) -> None:
        error = "" if math.isnan(progress.error) else f", error {progress.error:.3g}"
        text = f"{progress.samples:,} samples{error}, {progress.rate:,.0f}/s"
        self.bar.show(text, progress.step / progress.steps if progress.steps else None)


def print_table(learned: Learned, rows: int) -> None:
    """A table of states."""
    from robustmdp.app.commands import show

    solution = learned.solution
    samples = f"{solution.samples:,} samples"
    if not math.isnan(learned.error):
        samples += f", error of Q against the exact solution {learned.error:.4g}"
    show.print_solution(learned.title, learned.learner.ambiguity, solution, rows, last=[samples])


def print_json(learned: Learned) -> None:
    """One JSON object."""
    from robustmdp.app.commands import show

    solution = learned.solution
    show.print_json(
        {
            "problem": learned.title,
            "learner": repr(learned.learner),
            "status": solution.status.code,
            "message": solution.status.sentence,
            "steps": solution.steps,
            "samples": solution.samples,
            "error": learned.error,
            "error_bound": solution.error_bound,
            "confidence": solution.confidence,
            "policy": solution.policy,
            "value": solution.value,
            "lower": solution.lower,
            "upper": solution.upper,
            "q": solution.q,
            "visits": solution.visits,
        }
    )
