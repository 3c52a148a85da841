"""Options that several commands share, so that they mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from robustmdp import _plugins

CONVERGED, NOT_CONVERGED, INTERRUPTED = 0, 3, 130

ALGORITHMS = ("generative", "markovian", "plugin", "mlmc")
DIVERGENCES = ("chi2", "kl", "tv", "burg", "hellinger", "js", "cr:K")
SETS = ("penalty", "ball", "l1", "l2", "linf", "contamination", "cvar", "evar", "entropic", "interval", "wasserstein")
PROBLEMS = ("chain", "river-swim", "machine-replacement", "inventory", "pump", "garnet:SxAxK", "grid:N", "gym:ID")

Command = Callable[..., Any]


def complete_problem(context: click.Context, parameter: click.Parameter, begun: str) -> list[Any]:
    """Names of ready-made worlds, then files."""
    del context, parameter
    from click.shell_completion import CompletionItem

    known = (*PROBLEMS, *_plugins.names("problem"))
    found: list[Any] = [CompletionItem(word) for word in known if word.startswith(begun)]
    return found or [CompletionItem(begun, type="file")]


def complete_divergence(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Short names of divergences."""
    del context, parameter
    return [word for word in (*DIVERGENCES, *_plugins.names("divergence")) if word.startswith(begun.lower())]


def complete_set(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Names of sets."""
    del context, parameter
    return [word for word in (*SETS, *_plugins.names("set")) if word.startswith(begun.lower())]


def problem_argument(name: str = "problem", **settings: Any) -> Command:
    """PROBLEM: a ready-made world, a file or a Gymnasium id."""
    return click.argument(name, shell_complete=complete_problem, **settings)


def divergence_option(default: str = "kl") -> Command:
    """Which divergence."""
    return click.option(
        "--divergence",
        default=default,
        shell_complete=complete_divergence,
        metavar="NAME",
        help=", ".join(f"{name} (default)" if name == default else name for name in DIVERGENCES) + ".",
    )


def set_option(about: str = ", ".join(SETS) + ".") -> Command:
    """Which set."""
    return click.option("--set", "set_name", metavar="NAME", shell_complete=complete_set, help=about)


weight_option = click.option("--weight", type=float, help="Penalty per unit of divergence (lambda).")
radius_option = click.option("--radius", type=float, help="Of a ball: how far nature may go (rho).")
levels_option = click.option(
    "--levels", metavar="A,B,...", help="Levels of any other set than a divergence's; 50 that fit if none are given."
)
mixture_option = click.option("--share", type=float, help="Of cvar, evar or entropic, beside the mean.")
support_option = click.option("--support", metavar="STATES", help="Where l1, ... may lead: model, all or 1,5,7.")
distance_option = click.option(
    "--distance", type=click.Path(), help="Of wasserstein: distances or coordinates, in a file."
)
rectangular_option = click.option("--rectangular", metavar="sa|s", help="s: the actions of a state share the level.")
discount_option = click.option("--discount", type=float, help="In [0, 1), instead of the problem's own.")
any_discount_option = click.option("--discount", type=float, help="In [0, 1], instead of the problem's own.")
initial_option = click.option(
    "--initial", metavar="STATE", help="Where it begins, by name or number; all alike if not given."
)
threads_option = click.option("--threads", type=int, help="Cores to use; all if not given.")
rows_option = click.option(
    "--rows",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Lines of the table to show.",
)
tolerance_option = click.option("--tol", type=float, default=1e-8, show_default=True, help="Certified relative error.")
solution_option = click.option("--out", type=click.Path(), help="Write policy and values: .csv, .parquet or .json.")
full_option = click.option("--full", is_flag=True, help="With --json: Q as well.")
confidence_option = click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="Of the radii, for a log."
)
method_option = click.option("--method", help="Of radii: simulated, asymptotic, finite-sample.")
held_out_option = click.option(
    "--held-out", type=click.Path(), multiple=True, help="A model not used for this one; may be repeated."
)
vary_option = click.option(
    "--vary", multiple=True, metavar="NAME=A,B,...", help="Other parameters of a gym: world, as held-out models."
)
column_option = click.option(
    "--column", multiple=True, metavar="NAME=OWN", help="What a log calls a column, as in terminated=done."
)
seed_option = click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same bits.")


def output_options(command: Command) -> Command:
    """--json and --quiet, which every command has."""
    for option in (
        click.option("--quiet", is_flag=True, help="No progress, no warnings."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object at full precision."),
    ):
        command = option(command)
    return command


def level_options(command: Command) -> Command:
    """A divergence with a weight or a radius."""
    for option in (radius_option, weight_option, divergence_option("chi2")):
        command = option(command)
    return command


def study_options(command: Command) -> Command:
    """A family of sets, and the problem that it belongs to."""
    for option in (
        method_option,
        column_option,
        vary_option,
        held_out_option,
        initial_option,
        confidence_option,
        discount_option,
        rectangular_option,
        distance_option,
        support_option,
        mixture_option,
        levels_option,
        divergence_option(),
        set_option(),
    ):
        command = option(command)
    return command


def set_options(command: Command) -> Command:
    """One set with its level."""
    for option in (
        rectangular_option,
        click.option("--optimistic", is_flag=True, help="Nature helps instead."),
        distance_option,
        support_option,
        click.option("--aversion", type=float, help="Of entropic risk, per unit of reward."),
        click.option("--share", type=float, help="Of contamination; of cvar, ..., beside the mean."),
        click.option("--level", type=float, help="Of cvar and evar, in (0, 1]; of any other set."),
        level_options,
        set_option(),
    ):
        command = option(command)
    return command


def was_typed(option: str) -> bool:
    """Was an option given, or is it at its default?"""
    from click.core import ParameterSource

    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT
