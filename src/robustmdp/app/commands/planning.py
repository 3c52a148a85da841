"""The commands `solve`, `reach` and `match`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import click

from robustmdp.app.commands import options as given
from robustmdp.app.commands import sharded
from robustmdp.app.commands.options import CONVERGED, INTERRUPTED, NOT_CONVERGED

if TYPE_CHECKING:
    from robustmdp.ambiguity import Ambiguity
    from robustmdp.models import MDP
    from robustmdp.result import Solution

_SOLVERS = ("auto", "value-iteration", "policy-iteration", "dual-ascent")


@click.command(short_help="The policy with the best worst case, with certified bounds.")
@given.problem_argument()
@given.set_options
@given.any_discount_option
@click.option("--horizon", type=int, metavar="STEPS", help="Decisions that are left; without end if not given.")
@click.option("--total", is_flag=True, help="The sum of all rewards until the end, undiscounted.")
@click.option("--average", is_flag=True, help="The reward per step in the long run.")
@click.option("--policy", type=click.Path(), help="Evaluate the policy in this file instead.")
@click.option("--solver", default="auto", metavar="NAME", help=", ".join(_SOLVERS) + ".")
@given.tolerance_option
@given.threads_option
@sharded.engine_options
@given.rows_option
@given.solution_option
@given.full_option
@given.output_options
def solve(problem: str, as_json: bool, quiet: bool, rows: int, **options: Any) -> None:
    """Solve PROBLEM (see `robustmdp problems`) robustly, as it is without a set.

    \b
    Examples:
      robustmdp solve 'gym:FrozenLake-v1?is_slippery=false&map_name=8x8' --horizon 12
      robustmdp solve model.csv --divergence kl --radius 0.1 --out policy.csv
    """
    from robustmdp import _checks, evaluate
    from robustmdp import solve as solved
    from robustmdp.app.commands.sets import build_set, parse_set
    from robustmdp.app.commands.words import check_out, parse_bounded, parse_policy, parse_solver

    engine = sharded.parse_engine(options)
    check_out(options["out"], *sharded.out_extensions(engine))
    choice, criterion, solver = parse_set(options), _criterion(options), parse_solver(options["solver"], _SOLVERS)
    _checks.must(
        choice.name is not None or not given.was_typed("divergence"),
        "--divergence must come with --weight or --radius: without them the model is taken as true",
    )
    if sharded.is_mapped(problem, engine):
        mdp, bounds = sharded.open_mapped(problem, options["discount"]), None
    else:
        mdp, bounds = parse_bounded(problem, options["discount"])
    ambiguity = build_set(choice, mdp, bounds)
    policy = None if options["policy"] is None else parse_policy(options["policy"], mdp, options["horizon"])

    def run(callback: Any) -> Solution:
        how = {"criterion": criterion, "tol": options["tol"], "threads": options["threads"], "callback": callback}
        if policy is None:
            source = mdp.path if sharded.is_mapped(problem, engine) else mdp
            return solved(source, ambiguity, solver=solver, engine=engine, checkpoint=options["checkpoint"], **how)
        return evaluate(mdp, policy, ambiguity, **how)

    criterion_text = _criterion_text(options, mdp)
    word = "gain" if options["average"] else "value"
    question = _Question(problem, criterion_text, mdp, ambiguity, word, options["tol"], options["horizon"])
    with sharded.connection(engine):
        _finish(question, run, as_json, quiet, rows, options["out"])


def _criterion(options: Mapping[str, Any]) -> Any:
    """What is summed; None for the discounted rewards."""
    from robustmdp import AverageReward, FiniteHorizon, TotalReward, _checks

    steps, solver = options["horizon"], options.get("solver", "auto")
    chosen = [name for name in ("horizon", "total", "average") if options[name] not in (None, False)]
    _checks.must(len(chosen) < 2, f"give {' or '.join(f'--{name}' for name in chosen)}, not both")
    if steps is not None:
        _checks.must(steps >= 1, f"--horizon must be at least 1: got {steps}")
        _checks.must(solver == "auto", "--horizon must come without --solver")
        return FiniteHorizon(steps)
    if not chosen:
        return None
    what = "sums" if options["total"] else "averages"
    _checks.must(options["discount"] is None, f"--{chosen[0]} {what} rewards without a discount: leave --discount out")
    known = [name for name in _SOLVERS if name != "dual-ascent"]
    _checks.must(
        solver in known, f"--total and --average must come with --solver {', '.join(known[:-1])} or {known[-1]}"
    )
    return TotalReward() if options["total"] else AverageReward()


def _criterion_text(options: Mapping[str, Any], mdp: MDP) -> str:
    if options["total"] or options["average"]:
        return "total reward" if options["total"] else "average reward"
    steps = "" if options["horizon"] is None else f"step 0 of {options['horizon']:,}, "
    return f"{steps}discount {mdp.discount:g}"


@click.command(short_help="The probability of reaching a goal, or what is collected until then.")
@given.problem_argument()
@click.option("--goal", metavar="STATES", required=True, help="A label, or states as in 1,5,7.")
@click.option("--avoid", metavar="STATES", help="States that must not come before the goal.")
@click.option("--within", type=int, metavar="STEPS", help="Steps in which to reach it.")
@click.option("--minimise", is_flag=True, help="Make the probability, or the sum, small.")
@click.option("--rewards", is_flag=True, help="The sum of rewards until the goal instead.")
@given.set_options
@given.tolerance_option
@given.threads_option
@given.rows_option
@given.solution_option
@given.full_option
@given.output_options
def reach(problem: str, as_json: bool, quiet: bool, rows: int, **options: Any) -> None:
    """The best worst-case probability of reaching --goal in PROBLEM, with certified bounds.

    With --rewards, the sum of rewards until the goal, infinite where it is not reached surely. There is no discount.
    Sets are those of `solve`. Exit code 3: not converged.

    \b
    Examples:
      robustmdp reach river-swim --goal 5 --within 20 --set l1 --radius 0.1
      robustmdp reach model.drn --goal done --avoid failed
    """
    from robustmdp import _checks
    from robustmdp import reach as reached
    from robustmdp.app.commands.sets import build_set, parse_set
    from robustmdp.app.commands.words import check_out, parse_bounded, parse_states

    check_out(options["out"], ".csv", ".parquet", ".pq", ".json")
    _checks.must(not options["rewards"] or not options["avoid"], "give --avoid or --rewards, not both")
    steps = options["within"]
    _checks.must(steps is None or steps >= 1, f"--within must be at least 1: got {steps}")
    choice = parse_set(options)
    mdp, bounds = parse_bounded(problem, 1.0)
    ambiguity = build_set(choice, mdp, bounds)
    goal, avoid = (parse_states(mdp, options[name], f"--{name}") for name in ("goal", "avoid"))
    assert goal is not None  # the option is required
    _warn_if_nothing_leads_to(mdp, ambiguity, goal)

    def run(callback: Any) -> Solution:
        how = {name: options[name] for name in ("within", "minimise", "rewards", "tol", "threads")}
        return reached(mdp, ambiguity, goal, avoid=avoid, callback=callback, **how)

    what = "rewards until" if options["rewards"] else "probability of"
    text = f"{what} {options['goal']}{f' within {steps:,} steps' if steps else ''}"
    word = "sum" if options["rewards"] else "probability"
    question = _Question(problem, text, mdp, ambiguity, word, options["tol"], steps)
    _finish(question, run, as_json, quiet, rows, options["out"])


def _warn_if_nothing_leads_to(mdp: MDP, ambiguity: Ambiguity, goal: Any) -> None:
    """A step that ends the episode leads to no state, which is easily overlooked."""
    import warnings

    import numpy as np

    states = np.flatnonzero(mdp.labels[goal]) if isinstance(goal, str) else np.array(goal)
    from_elsewhere = np.repeat(~np.isin(mdp.states, states), np.diff(mdp.indptr))
    if not ambiguity.invents and not np.isin(mdp.indices[from_elsewhere], states).any():
        ends = "; a step that ends the episode leads to no state" if mdp.can_end else ""
        warnings.warn(f"no transition leads from another state to the goal{ends}", stacklevel=2)


@dataclass(frozen=True)
class _Question:
    """What a command asks: `criterion` in words, what a value is called, and the error or steps at which it ends."""

    problem: str
    criterion: str
    mdp: MDP
    ambiguity: Ambiguity
    word: str = "value"
    tol: float = 1e-8
    steps: int | None = None

    @property
    def accuracy(self) -> float:
        """The error that is small enough, roughly: values are at most as large as a model without doubt allows."""
        low, high = getattr(self.mdp, "value_range", (0.0, 0.0))  # rows that are mapped are not looked through
        size = max(abs(low), abs(high))
        return self.tol * max(1.0, size if math.isfinite(size) else 1.0)


def _finish(
    question: _Question, run: Callable[[Any], Solution], as_json: bool, quiet: bool, rows: int, out: str | None
) -> NoReturn:
    """Run it with a progress bar, write and print what it found, and leave with the exit code."""
    from robustmdp.app.commands import show
    from robustmdp.app.commands.progress import Bar, Steps

    with Bar(quiet) as bar:
        solution = run(Steps(bar, question.accuracy, question.steps, sharded.step_text))
    interrupted = solution.status.code == "interrupted"
    if as_json:
        record = show.solution_record(question.problem, question.mdp, question.ambiguity, solution)
        large = {"q": solution.q, **sharded.not_in_json(solution)} if given.was_typed("full") else {}
        show.print_json({**record, **large, "criterion": question.criterion})
    else:
        title = f"{question.problem}, {question.criterion}"
        show.print_solution(title, question.ambiguity, solution, rows, word=question.word)
    if out is not None:  # after the answer, since a large table takes longer than its bounds
        sharded.write(solution, out)
    if interrupted:
        written = f", also in {out}" if out is not None else ""
        click.echo(f"Interrupted: the bounds are those of the last step{written}{sharded.way_on()}.", err=True)
    sys.exit({"converged": CONVERGED, "interrupted": INTERRUPTED}.get(solution.status.code, NOT_CONVERGED))


@click.command(short_help="The radius of a weight, or the weight of a radius.")
@given.problem_argument()
@given.set_option("penalty or ball.")
@given.level_options
@given.discount_option
@given.initial_option
@given.threads_option
@given.output_options
def match(problem: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """The radius that says the same as a weight, or the weight that says the same as a radius.

    Same means: an equal value from the first state (Theorem 3.1 of the paper), which is why the answer depends on
    --initial. 0 and inf are possible answers; JSON has null for inf.

    \b
    Examples:
      robustmdp match chain --weight 1 --initial s1
      robustmdp match chain --divergence kl --radius 0.1
    """
    from robustmdp import _checks, matching_radius, matching_weight
    from robustmdp.app.commands import show
    from robustmdp.app.commands.sets import check_known, parse_ambiguity
    from robustmdp.app.commands.sources import parse_source
    from robustmdp.app.commands.words import refuse_log
    from robustmdp.models.labels import distribution

    del quiet
    check_known(options, "match", ("penalty", "ball"), "which have a divergence in common")
    ambiguity: Any = parse_ambiguity(options)
    _checks.must(not ambiguity.is_nominal, "give --weight to get its radius, or --radius to get its weight")
    refuse_log(problem)
    source = parse_source(problem, discount=options["discount"], initial=options["initial"])
    mdp, start = source.mdp, distribution(source.mdp, source.initial)
    to_radius = ambiguity.has_weight
    found = (matching_radius if to_radius else matching_weight)(mdp, ambiguity, start, threads=options["threads"])
    wanted = "radius" if to_radius else "weight"
    if as_json:
        show.print_json({"problem": problem, "ambiguity": repr(ambiguity), wanted: found})
    else:
        anywhere = "all states alike" if source.initial is None else "where it begins"
        start_name = anywhere if options["initial"] is None else f"state {options['initial']}"
        show.say(
            f"{ambiguity.level_name} {ambiguity.level:g} matches {wanted} {found:.10g} in {ambiguity.divergence.name} "
            f"divergence, from {start_name}"
        )
