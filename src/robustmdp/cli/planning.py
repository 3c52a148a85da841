"""The commands `solve` and `match`."""

from __future__ import annotations

import sys
from typing import Any

import click

from robustmdp.cli import options as given
from robustmdp.cli.options import CONVERGED, INTERRUPTED, NOT_CONVERGED

_SOLVERS = ("auto", "value-iteration", "policy-iteration", "dual-ascent")


@click.command(short_help="The policy with the best worst case, with certified bounds.")
@given.problem_argument()
@given.level_options
@given.discount_option
@click.option("--policy", type=click.Path(), help="Evaluate the policy in this file instead.")
@click.option("--solver", default="auto", show_default=True, metavar="NAME", help=", ".join(_SOLVERS) + ".")
@click.option(
    "--tol", type=float, default=1e-8, show_default=True, help="Certified error, relative to max(1, |value|)."
)
@given.threads_option
@given.rows_option
@click.option("--out", type=click.Path(), help="Write policy and values: .csv, .parquet or .json.")
@given.output_options
def solve(problem: str, as_json: bool, quiet: bool, rows: int, **options: Any) -> None:
    """Solve PROBLEM robustly: policy, worst-case value, certified bounds.

    PROBLEM is a file, a Gymnasium id (gym:FrozenLake-v1), perhaps with parameters as in
    'gym:FrozenLake-v1?is_slippery=false&map_name=8x8', or a ready-made world: see `robustmdp problems`. Without
    --weight and --radius the model is taken as true. Exit code 3: not converged.

    \b
    Examples:
      robustmdp solve gym:FrozenLake-v1 --divergence kl --radius 0.1
      robustmdp solve model.parquet --weight 1 --out policy.csv
    """
    from robustmdp import _checks, evaluate, io
    from robustmdp import solve as solved
    from robustmdp.cli import show
    from robustmdp.cli.progress import Bar
    from robustmdp.cli.words import check_out, parse_ambiguity, parse_problem, parse_solver

    check_out(options["out"], ".csv", ".parquet", ".pq", ".json")
    ambiguity = parse_ambiguity(options["divergence"], options["weight"], options["radius"])
    _checks.must(
        not ambiguity.is_nominal or not given.was_typed("divergence"),
        "--divergence must come with --weight or --radius: without them the model is taken as true",
    )
    solver = parse_solver(options["solver"], _SOLVERS)
    mdp = parse_problem(problem, options["discount"])
    policy = None if options["policy"] is None else io.read_policy(options["policy"], mdp)
    how: dict[str, Any] = {"tol": options["tol"], "threads": options["threads"]}
    with Bar(quiet) as bar:

        def report(step: Any) -> None:
            bar.show(f"Step {step.step}: certified error about {step.error_bound:.3g}")

        if policy is None:
            solution = solved(mdp, ambiguity, solver=solver, callback=report, **how)
        else:
            solution = evaluate(mdp, policy, ambiguity, callback=report, **how)
    interrupted = solution.status.code == "interrupted"
    if options["out"] is not None and not interrupted:
        io.write(solution, options["out"])
    if as_json:
        show.print_json(show.solution_record(problem, mdp, ambiguity, solution))
    else:
        show.print_solution(f"{problem}, discount {mdp.discount:g}", ambiguity, solution, rows)
    if interrupted:
        nothing = f"; nothing was written to {options['out']}" if options["out"] is not None else ""
        click.echo(f"Interrupted: the bounds are those of the last step{nothing}.", err=True)
    sys.exit({"converged": CONVERGED, "interrupted": INTERRUPTED}.get(solution.status.code, NOT_CONVERGED))


@click.command(short_help="The radius of a weight, or the weight of a radius.")
@given.problem_argument()
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
    from robustmdp.cli import show
    from robustmdp.cli.sources import parse_source
    from robustmdp.cli.words import parse_ambiguity, refuse_log
    from robustmdp.models.start import distribution

    del quiet
    ambiguity: Any = parse_ambiguity(options["divergence"], options["weight"], options["radius"])
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
