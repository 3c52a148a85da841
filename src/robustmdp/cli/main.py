"""The command `robustmdp`."""

from __future__ import annotations

import sys
from typing import Any

import click

from robustmdp import __version__
from robustmdp.cli.reproduce import Parameters

NOT_CONVERGED = 3
INTERRUPTED = 130

_ALGORITHMS = ("generative", "markovian", "plugin", "mlmc")
_SOLVERS = ("auto", "value-iteration", "policy-iteration", "dual-ascent")


class _Group(click.Group):
    """Turns the package's one-sentence errors into messages, and suggests commands."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None:
            from robustmdp import _checks

            try:
                _checks.nearest("command", args[0], self.list_commands(ctx))
            except ValueError as problem:
                raise click.UsageError(str(problem)) from None
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        import warnings

        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say  # type: ignore[assignment]
                return super().invoke(ctx)
        except (ValueError, TypeError, ImportError, OSError) as problem:
            raise click.ClickException(str(problem)) from None
        except RuntimeError as problem:
            from robustmdp.engine import TaskFailed

            if not isinstance(problem, TaskFailed):
                raise
            raise click.ClickException(str(problem)) from None


def _say(message: Warning | str, *place: Any) -> None:
    """A warning as a sentence, without the line of code that it came from."""
    del place
    click.echo(f"Warning: {message}", err=True)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Decisions that hold up when the model is wrong.

    \b
    Example:
      robustmdp solve chain --divergence chi2 --weight 1
    """


@main.command()
@click.argument("problem")
@click.option("--divergence", default="chi2", show_default=True, help="chi2, kl, tv, burg, hellinger, js or cr:K.")
@click.option("--weight", type=float, help="Penalty per unit of divergence (the paper's lambda).")
@click.option("--radius", type=float, help="Largest divergence that nature may use (the paper's rho).")
@click.option("--discount", type=float, help="Discount factor in [0, 1), instead of the problem's own.")
@click.option("--solver", default="auto", show_default=True, help=", ".join(_SOLVERS) + ".")
@click.option("--tol", type=float, default=1e-8, show_default=True, help="Certified error relative to max(1, |value|).")
@click.option("--threads", type=int, help="Cores to use; all if not given.")
@click.option("--rows", type=int, default=20, show_default=True, help="States to show in the table.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, all states at full precision.")
def solve(problem: str, as_json: bool, rows: int, **options: Any) -> None:
    """Solve PROBLEM robustly and show the policy, its worst-case value and certified bounds.

    PROBLEM is a ready-made world (chain, river-swim, machine-replacement, inventory), one with sizes
    (garnet:1000x5x10, grid:50) or a Gymnasium id (gym:FrozenLake-v1). Without --weight and --radius the model is taken
    as true. Exit code: 0 converged, 1 bad input, 2 wrong usage, 3 not converged, 130 interrupted.

    \b
    Examples:
      robustmdp solve gym:FrozenLake-v1 --divergence kl --radius 0.1
      robustmdp solve garnet:1000x5x10 --weight 1 --json
    """
    from robustmdp.cli import show
    from robustmdp.cli.words import parse_ambiguity, parse_problem, parse_solver

    ambiguity = parse_ambiguity(options["divergence"], options["weight"], options["radius"])
    solver = parse_solver(options["solver"], _SOLVERS)
    mdp = parse_problem(problem, options["discount"])
    solution = show.solve_with_progress(mdp, ambiguity, solver=solver, tol=options["tol"], threads=options["threads"])
    if as_json:
        show.print_json(problem, mdp, ambiguity, solution)
    else:
        show.print_table(problem, mdp, ambiguity, solution, rows)
    sys.exit({"converged": 0, "interrupted": INTERRUPTED}.get(solution.status.code, NOT_CONVERGED))


@main.command()
@click.argument("problem", required=False)
@click.option("--algorithm", default="generative", show_default=True, help=", ".join(_ALGORITHMS) + ".")
@click.option("--steps", type=int, help="Rounds over all pairs (generative, plugin, mlmc) or transitions (markovian).")
@click.option("--samples", type=int, help="Transitions to draw, instead of --steps.")
@click.option("--divergence", default="chi2", show_default=True, help="chi2, kl, tv, burg, hellinger, js or cr:K.")
@click.option("--weight", type=float, help="Penalty per unit of divergence (the paper's lambda).")
@click.option("--radius", type=float, help="Largest divergence that nature may use (the paper's rho).")
@click.option("--discount", type=float, help="Discount factor in [0, 1), instead of the problem's own.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same bits.")
@click.option("--paper", is_flag=True, help="The algorithm as printed in the paper.")
@click.option("--inner-steps", type=int, default=100, show_default=True, help="The paper's T', with --paper.")
@click.option("--epsilon", type=float, help="Explore greedily on the current Q (markovian); uniform if not given.")
@click.option("--log", type=click.Path(), help="Learn from a log of transitions: FILE.csv or FILE.parquet.")
@click.option("--checkpoint", type=click.Path(), help="Save the run to this file ten times on the way.")
@click.option("--resume", type=click.Path(), help="Go on with the run in this file.")
@click.option("--rows", type=int, default=20, show_default=True, help="States to show in the table.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, all states at full precision.")
@click.pass_context
def learn(context: click.Context, /, problem: str | None, as_json: bool, rows: int, **options: Any) -> None:
    """Learn PROBLEM robustly without its model, from samples, a trajectory or a log.

    PROBLEM is named as for `solve`; where its model is known, the error against the exact solution is shown. A run
    that was saved with --checkpoint goes on with --resume, to the same bits. Exit code: 0 all steps taken, 1 bad input,
    2 wrong usage, 3 diverged, 130 interrupted.

    \b
    Examples:
      robustmdp learn chain --weight 1 --samples 2000000
      robustmdp learn gym:FrozenLake-v1 --algorithm markovian --weight 0.5 --steps 1000000 --checkpoint run.ckpt
      robustmdp learn --resume run.ckpt
      robustmdp learn --log visits.parquet --divergence kl --weight 2 --discount 0.95
    """
    from robustmdp.cli import learning

    given = {name for name in options if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}
    outcome = learning.learn(problem, given, _ALGORITHMS, **options)
    learning.show(outcome, rows, as_json)
    sys.exit({"interrupted": INTERRUPTED, "diverged": NOT_CONVERGED}.get(outcome.solution.status.code, 0))


@main.command(cls=Parameters)
@click.argument("experiments", nargs=-1)
@click.option("--quick", is_flag=True, help="Fewer seeds and steps: a look at everything within a minute.")
@click.option("--out", type=click.Path(), default="reproduction", show_default=True, help="Folder for all results.")
@click.option("--engine", default="processes", show_default=True, help="serial, processes or ray.")
@click.option("--workers", type=int, help="How many at once; all cores if not given.")
@click.option("--address", help="Of a Ray cluster; a local one if not given.")
@click.option("--resume/--no-resume", default=True, show_default=True, help="Use what an earlier call finished.")
@click.option("--csv", "as_csv", is_flag=True, help="Write the records as CSV, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all verdicts and numbers.")
def reproduce(experiments: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Run the paper's experiments and check its claims.

    EXPERIMENTS are any of chain-diagrams, connection, statistical, convergence, inner-steps, dmin, markovian,
    behaviour, equivalence, sample-efficiency, memory; all if none is named. The folder --out then holds report.html,
    claims.csv, records/ and figures/. A call that was stopped goes on where it was. The options from --stay on belong
    to the experiments and apply to all that have them; their defaults are the paper's. Exit code: 0 done, 1 bad input
    or a failed task, 2 wrong usage, 130 interrupted.

    \b
    Examples:
      robustmdp reproduce --quick --out look
      robustmdp reproduce markovian behaviour --stay 0.6,0.8 --seeds 20
    """
    from pathlib import Path

    from robustmdp.cli import reproduce as words

    out = Path(options.pop("out"))
    made = words.carry_out(experiments, out, **options)
    if made is None:
        click.echo(f"Interrupted: what is finished is kept in {out}; the same command goes on from there.", err=True)
        sys.exit(INTERRUPTED)
    if as_json:
        words.print_json(made)
    else:
        words.show(made, out)
