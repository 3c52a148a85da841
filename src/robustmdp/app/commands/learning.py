"""The command `learn`: from words to a learner and a world, and back to words."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import click

import robustmdp as rm
from robustmdp.app.commands import options as given
from robustmdp.app.commands import show
from robustmdp.app.commands.options import INTERRUPTED, NOT_CONVERGED
from robustmdp.app.commands.progress import LEARNING, Bar

_FIXED = ("samples", "seed", "discount", "confidence", "certify_share", "reward_range")  # of a run that is resumed
_GIVEN = ("steps", "samples", "seed", "discount", "confidence", "certify_share", "checkpoint")
_SETTINGS = frozenset({"algorithm", "divergence", "weight", "radius", "paper", "inner_steps", "epsilon"})


@click.command(short_help="Learn robustly from samples, a trajectory or a log.")
@given.problem_argument(required=False)
@click.option(
    "--algorithm", default="generative", show_default=True, metavar="NAME", help=", ".join(given.ALGORITHMS) + "."
)
@click.option("--steps", type=int, help="Rounds over all pairs, or transitions (markovian).")
@click.option("--samples", type=int, help="Transitions to draw, instead of --steps.")
@given.level_options
@given.discount_option
@given.seed_option
@click.option("--confidence", type=float, help="Bounds that hold with this probability, as 0.95.")
@click.option("--certify-share", type=float, default=0.5, show_default=True, help="Of the samples, for --confidence.")
@click.option("--reward-range", metavar="A..B", help="Of a gym: world without a table, or a log.")
@click.option("--paper", is_flag=True, help="The algorithm as printed in the paper.")
@click.option("--inner-steps", type=int, default=100, show_default=True, help="The paper's T', with --paper.")
@click.option("--epsilon", type=float, help="Explore greedily (markovian); uniformly if not given.")
@click.option("--log", type=click.Path(), help="Learn from a log: .csv, .parquet or minari:ID.")
@given.column_option
@click.option("--checkpoint", type=click.Path(), help="Save the run to this file on the way.")
@click.option("--resume", type=click.Path(), help="Go on with the run in this file.")
@given.rows_option
@given.solution_option
@given.output_options
def learn(problem: str | None, as_json: bool, quiet: bool, rows: int, **options: Any) -> None:
    """Learn PROBLEM robustly without its model, from samples or from a log.

    PROBLEM is named as for `solve`; where its model is known, the error against the exact solution is shown. A run
    saved with --checkpoint goes on with --resume, to the same bits; --steps extends it. Exit code 3: diverged.

    \b
    Examples:
      robustmdp learn chain --weight 1 --samples 2000000 --confidence 0.95
      robustmdp learn river-swim --algorithm markovian --weight 1 --steps 100000
      robustmdp learn --log visits.parquet --weight 2 --out policy.csv
    """
    from robustmdp.app.commands import words

    out = options["out"]
    words.check_out(out, *words.TABLES)
    words.check_out(options["checkpoint"], option="--checkpoint", besides=("resume",))
    is_resumed = options["resume"] is not None
    title = f"resumed from {options['resume']}" if is_resumed else problem or options["log"]
    with Bar(quiet, LEARNING) as bar:

        def report(progress: Any) -> None:
            error = "" if math.isnan(progress.error) else f", error {progress.error:.3g}"
            text = f"{progress.samples:,} samples{error}, {progress.rate:,.0f}/s"
            bar.show(text, progress.step / progress.steps if progress.steps else None)

        learner, solution, error = (_resume if is_resumed else _run)(problem, report, options)
    if out is not None:
        rm.write(solution, out)
    if as_json:
        show.print_json(_record(title, learner, solution, error))
    else:
        known = "" if math.isnan(error) else f", error of Q against the exact solution {error:.4g}"
        show.print_solution(title, learner.ambiguity, solution, rows, last=[f"{solution.samples:,} samples{known}"])
    interrupted = solution.status.code == "interrupted"
    if interrupted:
        kept = "" if out is None else f" and written to {out}"
        click.echo(f"Interrupted: what was learned so far is shown{kept}.", err=True)
    sys.exit(INTERRUPTED if interrupted else NOT_CONVERGED if solution.status.code == "diverged" else 0)


def _record(title: str | None, learner: Any, solution: rm.Solution, error: float) -> dict[str, Any]:
    arrays = ("policy", "value", "lower", "upper", "q", "visits")
    return {
        "problem": title,
        "learner": repr(learner),
        "status": solution.status.code,
        "message": solution.status.sentence,
        "steps": solution.steps,
        "samples": solution.samples,
        "error": error,
        "error_bound": solution.error_bound,
        "confidence": solution.confidence,
        **{name: getattr(solution, name) for name in arrays},
    }


def _run(problem: str | None, report: Any, options: dict[str, Any]) -> tuple[Any, rm.Solution, float]:
    """The learner, what it learned, and max |Q - Q*|, NaN where no model is known."""
    from robustmdp import _checks
    from robustmdp.app.commands.words import parse_range

    log = options["log"]
    _checks.must((problem is None) != (log is None), "give a PROBLEM or --log FILE, one of them, or --resume FILE")
    certifies = options["confidence"] is not None
    _checks.must(certifies or not given.was_typed("certify_share"), "--certify-share is for --confidence")
    if log is not None and not given.was_typed("algorithm"):
        options["algorithm"] = "markovian"
    learner, world = _learner(options), _world(problem, options)
    exact = _exact(world, learner)
    solution = learner.run(
        world,
        reference=exact,
        progress=report,
        reward_range=parse_range("--reward-range", options["reward_range"]),
        **{name: options[name] for name in _GIVEN},
    )
    return learner, solution, _error(solution, exact)


def _resume(problem: str | None, report: Any, options: dict[str, Any]) -> tuple[Any, rm.Solution, float]:
    from robustmdp import _checks
    from robustmdp.learning import checkpoints, resume
    from robustmdp.learning.certificates import Certified

    for name in _FIXED:
        text = f"a resumed run has its own --{name.replace('_', '-')}: leave the option out"
        _checks.must(not given.was_typed(name), text)
    path, steps, checkpoint = (options[name] for name in ("resume", "steps", "checkpoint"))
    own = checkpoints.learner_of(checkpoints.read(Path(path)))
    learner = own.learner if isinstance(own, Certified) else own
    if any(given.was_typed(name) for name in _SETTINGS):
        learner = _learner(options)
    world = _world(problem, options) if problem or options["log"] else None
    solution = resume(path, world, steps=steps, learner=learner, checkpoint=checkpoint, progress=report)
    return learner, solution, _error(solution, _exact(solution.adversary.mdp, learner))


def _learner(options: dict[str, Any]) -> Any:
    from robustmdp import _checks
    from robustmdp.app.commands.sets import parse_ambiguity

    name, is_paper = options["algorithm"], options["paper"]
    if name not in given.ALGORITHMS:
        _checks.nearest("algorithm", name, given.ALGORITHMS)
    is_basic = name in ("generative", "markovian")
    _checks.must(
        options["confidence"] is None or is_basic, "--confidence must come with --algorithm generative or markovian"
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
    _checks.must(not is_paper or is_basic, f"--paper has no meaning for {name}")
    if name == "plugin":
        return rm.PlugIn(ambiguity, trajectory=options["log"] is not None)
    if name == "mlmc":
        return rm.MultilevelQLearning(ambiguity)
    if name == "generative":
        inner = options["inner_steps"]
        return rm.GenerativeQLearning.paper(ambiguity, inner) if is_paper else rm.GenerativeQLearning(ambiguity)
    return (rm.MarkovianQLearning.paper if is_paper else rm.MarkovianQLearning)(ambiguity, behaviour)


def _world(problem: str | None, options: dict[str, Any]) -> Any:
    """A log, a model, or an environment that publishes none."""
    from robustmdp.app.commands import words
    from robustmdp.app.commands.environments import PREFIX, parse_environment

    log, discount = options["log"], options["discount"]
    if problem is None:
        if not options["column"]:
            words.check_log(log)
        return rm.read_log(log, columns=words.parse_columns(options["column"]))
    if problem.startswith(PREFIX):
        env = parse_environment(problem).make()
        if getattr(env.unwrapped, "P", None) is None:
            return env
        return rm.MDP.from_gymnasium(env, words.USUAL_DISCOUNT if discount is None else discount)
    return words.parse_problem(problem, discount)


def _exact(world: Any, learner: Any) -> Any:
    return rm.solve(world, learner.ambiguity).q if isinstance(world, rm.MDP) else None


def _error(solution: rm.Solution, exact: Any) -> float:
    import numpy as np

    if exact is None:
        return math.nan
    available = np.isfinite(exact)
    return float(np.abs(solution.q[available] - exact[available]).max())
