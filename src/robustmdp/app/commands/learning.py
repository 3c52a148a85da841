"""The command `learn`."""

from __future__ import annotations

import sys
from typing import Any

import click

from robustmdp.app.commands import options as given
from robustmdp.app.commands.options import INTERRUPTED, NOT_CONVERGED
from robustmdp.app.commands.progress import LEARNING, Bar


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
@click.option("--out", type=click.Path(), help="Write policy and values: .csv, .parquet or .json.")
@given.output_options
@click.pass_context
def learn(
    context: click.Context, /, problem: str | None, as_json: bool, quiet: bool, rows: int, **options: Any
) -> None:
    """Learn PROBLEM robustly without its model, from samples or from a log.

    PROBLEM is named as for `solve`; where its model is known, the error against the exact solution is shown. A run
    saved with --checkpoint goes on with --resume, to the same bits; --steps extends it. Exit code 3: diverged.

    \b
    Examples:
      robustmdp learn chain --weight 1 --samples 2000000 --confidence 0.95
      robustmdp learn river-swim --algorithm markovian --weight 1 --steps 100000
      robustmdp learn --log visits.parquet --weight 2 --out policy.csv
    """
    from robustmdp import io
    from robustmdp.app.commands import learners
    from robustmdp.app.commands.words import check_out

    out = options.pop("out")
    check_out(out, ".csv", ".parquet", ".pq", ".json")
    check_out(options["checkpoint"], option="--checkpoint", besides=("resume",))
    written = {name for name in options if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}
    with Bar(quiet, LEARNING) as bar:
        found = learners.learned(problem, written, learners.Meter(bar), **options)
    if out is not None and found.solution.status.code != "interrupted":
        io.write(found.solution, out)
    if as_json:
        learners.print_json(found)
    else:
        learners.print_table(found, rows)
    sys.exit({"interrupted": INTERRUPTED, "diverged": NOT_CONVERGED}.get(found.solution.status.code, 0))
