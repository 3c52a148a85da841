"""Options that several commands share, so that they mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
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


def completer(known: Sequence[str], kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Completes our names, then those that packages add, in capitals or not."""
    return lambda context, parameter, begun: [
        word for word in (*known, *_plugins.names(kind)) if word.startswith(begun.lower())
    ]


def combine(*options: Command) -> Command:
    """One decorator that adds several options, in this order."""
    return lambda command: reduce(lambda found, option: option(found), reversed(options), command)


def problem_argument(name: str = "problem", **settings: Any) -> Command:
    """PROBLEM: a ready-made world, a file or a Gymnasium id."""
    return click.argument(name, shell_complete=complete_problem, **settings)


def divergence_option(default: str = "kl") -> Command:
    """Which divergence."""
    return click.option(
        "--divergence",
        default=default,
        shell_complete=completer(DIVERGENCES, "divergence"),
        metavar="NAME",
        help=", ".join(f"{name} (default)" if name == default else name for name in DIVERGENCES) + ".",
    )


def set_option(about: str = ", ".join(SETS) + ".") -> Command:
    """Which set."""
    return click.option("--set", "set_name", metavar="NAME", shell_complete=completer(SETS, "set"), help=about)


weight_option = click.option("--weight", type=float, help="Penalty per unit of divergence (lambda).")
radius_option = click.option("--radius", type=float, help="Of a ball: how far nature may go (rho).")
levels_option = click.option(
    "--levels", metavar="A,B,...", help="Levels of any other set than a divergence's; 50 that fit if none are given."
)
share_option = click.option("--share", type=float, help="Of contamination; of cvar, ..., beside the mean.")
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
    "--rows", type=click.IntRange(min=0), default=20, show_default=True, metavar="N", help="Lines of the table to show."
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


level_options = combine(divergence_option("chi2"), weight_option, radius_option)
output_options = combine(
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object at full precision."),
    click.option("--quiet", is_flag=True, help="No progress, no warnings."),
)
study_options = combine(  # a family of sets, and the problem that it belongs to
    set_option(),
    divergence_option(),
    levels_option,
    mixture_option,
    support_option,
    distance_option,
    rectangular_option,
    discount_option,
    confidence_option,
    initial_option,
    held_out_option,
    vary_option,
    column_option,
    method_option,
)
set_options = combine(  # one set with its level
    set_option(),
    level_options,
    click.option("--level", type=float, help="Of cvar and evar, in (0, 1]; of any other set."),
    share_option,
    click.option("--aversion", type=float, help="Of entropic risk, per unit of reward."),
    support_option,
    distance_option,
    click.option("--optimistic", is_flag=True, help="Nature helps instead."),
    rectangular_option,
)


def was_typed(option: str) -> bool:
    """Whether an option was given, not left at its default."""
    from click.core import ParameterSource

    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT
