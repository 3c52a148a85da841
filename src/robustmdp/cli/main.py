"""The command `robustmdp`."""

from __future__ import annotations

import sys
from typing import Any

import click

from robustmdp import __version__

NOT_CONVERGED = 3
INTERRUPTED = 130

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
        try:
            return super().invoke(ctx)
        except (ValueError, TypeError, ImportError) as problem:
            raise click.ClickException(str(problem)) from None


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
