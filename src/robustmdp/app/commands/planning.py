"""The commands `solve`, `reach` and `match`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import click

import robustmdp as rm
from robustmdp.app.commands import options as given
from robustmdp.app.commands import sharded, show
from robustmdp.app.commands.options import CONVERGED, INTERRUPTED, NOT_CONVERGED
from robustmdp.app.commands.progress import Bar, Steps

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
def solve(problem: str, **options: Any) -> None:
    """Solve PROBLEM (see `robustmdp problems`) robustly, as it is without a set.

    \b
    Examples:
      robustmdp solve 'gym:FrozenLake-v1?is_slippery=false&map_name=8x8' --horizon 12
      robustmdp solve model.csv --divergence kl --radius 0.1 --out policy.csv
    """
    from robustmdp import _checks
    from robustmdp.app.commands import sets, words

    _check_full(options)
    engine, out = sharded.parse_engine(options), options["out"]
    words.check_out(out, *words.TABLES, *(() if engine is None else (sharded.MAPPED,)))
    choice, criterion = sets.parse_set(options), _criterion(options)
    solver = words.parse_solver(options["solver"], _SOLVERS)
    _checks.must(
        choice.name is not None or not given.was_typed("divergence"),
        "--divergence must come with --weight or --radius: without them the model is taken as true",
    )
    is_mapped = sharded.is_mapped(problem, engine)
    if is_mapped:
        mdp, bounds = sharded.open_mapped(problem, options["discount"]), None
    else:
        mdp, bounds = words.parse_bounded(problem, options["discount"])
    ambiguity = sets.build_set(choice, mdp, bounds)
    policy = None if options["policy"] is None else words.parse_policy(options["policy"], mdp, options["horizon"])

    def run(callback: Any) -> rm.Solution:
        how = {"criterion": criterion, "tol": options["tol"], "threads": options["threads"], "callback": callback}
        if policy is not None:
            return rm.evaluate(mdp, policy, ambiguity, **how)
        source, checkpoint = mdp.path if is_mapped else mdp, options["checkpoint"]
        return rm.solve(source, ambiguity, solver=solver, engine=engine, checkpoint=checkpoint, **how)

    steps = "" if options["horizon"] is None else f"step 0 of {options['horizon']:,}, "
    text = f"{steps}discount {mdp.discount:g}"
    if options["total"] or options["average"]:
        text = "total reward" if options["total"] else "average reward"
    word = "gain" if options["average"] else "value"
    with sharded.connection(engine):
        _finish(run, problem, mdp, ambiguity, options, criterion=text, word=word, steps=options["horizon"])


def _check_full(options: Mapping[str, Any]) -> None:
    from robustmdp import _checks

    is_shown = options["as_json"] or not options["full"]
    _checks.must(is_shown, "--full must come with --json: it adds Q, for which a table of states has no room")


def _criterion(options: Mapping[str, Any]) -> Any:
    """What is summed; None for the discounted rewards."""
    from robustmdp import _checks

    steps, solver = options["horizon"], options["solver"]
    chosen = [name for name in ("horizon", "total", "average") if options[name] not in (None, False)]
    _checks.must(len(chosen) < 2, f"give {' or '.join(f'--{name}' for name in chosen)}, not both")
    if steps is not None:
        _checks.must(steps >= 1, f"--horizon must be at least 1: got {steps}")
        _checks.must(solver == "auto", "--horizon must come without --solver")
        return rm.FiniteHorizon(steps)
    if not chosen:
        return None
    what = "sums" if options["total"] else "averages"
    _checks.must(options["discount"] is None, f"--{chosen[0]} {what} rewards without a discount: leave --discount out")
    able = "auto, value-iteration or policy-iteration"
    _checks.must(solver != "dual-ascent", f"--total and --average must come with --solver {able}")
    return rm.TotalReward() if options["total"] else rm.AverageReward()


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
def reach(problem: str, **options: Any) -> None:
    """The best worst-case probability of reaching --goal in PROBLEM, with certified bounds.

    With --rewards, the sum of rewards until the goal, infinite where it is not reached surely. There is no discount.
    Sets are those of `solve`. Exit code 3: not converged.

    \b
    Examples:
      robustmdp reach river-swim --goal 5 --within 20 --set l1 --radius 0.1
      robustmdp reach model.drn --goal done --avoid failed
    """
    from robustmdp import _checks
    from robustmdp.app.commands import sets, words

    _check_full(options)
    words.check_out(options["out"], *words.TABLES)
    _checks.must(not options["rewards"] or not options["avoid"], "give --avoid or --rewards, not both")
    steps = options["within"]
    _checks.must(steps is None or steps >= 1, f"--within must be at least 1: got {steps}")
    choice = sets.parse_set(options)
    mdp, bounds = words.parse_bounded(problem, 1.0)
    ambiguity = sets.build_set(choice, mdp, bounds)
    goal, avoid = (words.parse_states(mdp, options[name], f"--{name}") for name in ("goal", "avoid"))
    assert goal is not None  # the option is required
    _warn_if_nothing_leads_to(mdp, ambiguity, goal)

    def run(callback: Any) -> rm.Solution:
        how = {name: options[name] for name in ("within", "minimise", "rewards", "tol", "threads")}
        return rm.reach(mdp, ambiguity, goal, avoid=avoid, callback=callback, **how)

    what, word = ("rewards until", "sum") if options["rewards"] else ("probability of", "probability")
    text = f"{what} {options['goal']}{f' within {steps:,} steps' if steps else ''}"
    _finish(run, problem, mdp, ambiguity, options, criterion=text, word=word, steps=steps)


def _warn_if_nothing_leads_to(mdp: rm.MDP, ambiguity: Any, goal: Any) -> None:
    """A step that ends the episode leads to no state, which is easily overlooked."""
    import warnings

    import numpy as np

    states = np.flatnonzero(mdp.labels[goal]) if isinstance(goal, str) else np.array(goal)
    from_elsewhere = np.repeat(~np.isin(mdp.states, states), np.diff(mdp.indptr))
    if not ambiguity.invents and not np.isin(mdp.indices[from_elsewhere], states).any():
        ends = "; a step that ends the episode leads to no state" if mdp.can_end else ""
        warnings.warn(f"no transition leads from another state to the goal{ends}", stacklevel=2)


def _finish(
    run: Callable[[Any], rm.Solution],
    problem: str,
    mdp: Any,
    ambiguity: Any,
    options: Mapping[str, Any],
    *,
    criterion: str,
    word: str,
    steps: int | None,
) -> NoReturn:
    """Run it with a progress bar, write and print what it found, and leave with the exit code.

    `criterion` is what is summed, in words; `word` is what a value is called; `steps` is their number, if it is known.
    """
    low, high = getattr(mdp, "value_range", (0.0, 0.0))  # rows that are mapped are not looked through
    size = max(abs(low), abs(high))  # values are at most as large as a model without doubt allows
    accuracy = options["tol"] * max(1.0, size if math.isfinite(size) else 1.0)
    with Bar(options["quiet"]) as bar:
        solution = run(Steps(bar, accuracy, steps, sharded.step_text))
    if options["as_json"]:
        record = show.solution_record(problem, mdp, ambiguity, solution)
        show.print_json({**record, **(sharded.q_for_json(solution) if options["full"] else {}), "criterion": criterion})
    else:
        show.print_solution(f"{problem}, {criterion}", ambiguity, solution, options["rows"], word=word)
    if options["out"] is not None:  # after the answer, since a large table takes longer than its bounds
        sharded.write(solution, options["out"])
    if solution.status.code == "interrupted":
        written = f", also in {options['out']}" if options["out"] is not None else ""
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
    from robustmdp import _checks
    from robustmdp.app.commands import sets, sources, words
    from robustmdp.models.labels import distribution

    del quiet
    sets.check_known(options, "match", ("penalty", "ball"), "which have a divergence in common")
    ambiguity: Any = sets.parse_ambiguity(options)
    _checks.must(not ambiguity.is_nominal, "give --weight to get its radius, or --radius to get its weight")
    words.refuse_log(problem)
    source = sources.parse_source(problem, discount=options["discount"], initial=options["initial"])
    mdp, start = source.mdp, distribution(source.mdp, source.initial)
    matching, wanted = (rm.matching_radius, "radius") if ambiguity.has_weight else (rm.matching_weight, "weight")
    found = matching(mdp, ambiguity, start, threads=options["threads"])
    if as_json:
        show.print_json({"problem": problem, "ambiguity": repr(ambiguity), wanted: found})
    else:
        anywhere = "all states alike" if source.initial is None else "where it begins"
        start_name = anywhere if options["initial"] is None else f"state {options['initial']}"
        show.say(
            f"{ambiguity.level_name} {ambiguity.level:g} matches {wanted} {found:.10g} in {ambiguity.divergence.name} "
            f"divergence, from {start_name}"
        )
