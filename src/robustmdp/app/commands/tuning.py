"""The commands `curve` and `stress`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from robustmdp.app.commands import options as given
from robustmdp.app.commands.options import INTERRUPTED

if TYPE_CHECKING:
    from robustmdp.app.commands.sets import SetChoice
    from robustmdp.app.commands.sources import Source


_PLURAL = {"weight": "--weights", "radius": "--radii", "level": "--levels"}


@click.command(short_help="Cost and benefit of robustness, level by level.")
@given.problem_argument()
@given.set_option()
@given.divergence_option()
@click.option("--weights", metavar="A,B,...", help="Levels of the penalized form; 50 that fit if none are given.")
@click.option("--radii", metavar="A,B,...", help="Levels of the constrained form, instead.")
@given.levels_option
@given.mixture_option
@given.support_option
@given.distance_option
@given.rectangular_option
@given.discount_option
@given.initial_option
@given.column_option
@click.option("--tol", type=float, default=1e-6, show_default=True, help="Certified error, relative.")
@given.threads_option
@given.rows_option
@click.option("--out", type=click.Path(), help="Write the table: .csv, .parquet or .json.")
@given.output_options
def curve(problem: str, as_json: bool, quiet: bool, rows: int, **options: Any) -> None:
    """Cost and benefit of robustness on PROBLEM, level by level.

    For each level: the robust policy's value if the model is right (nominal), its worst case (worst), the worst case of
    the nominal policy (nominal worst), and in how many states the decision changes. Ctrl-C keeps the levels
    that are solved.

    \b
    Examples:
      robustmdp curve machine-replacement --initial "age 0"
      robustmdp curve model.csv --discount 0.95 --radii 0.01,0.1,1 --out curve.csv
      robustmdp curve chain --set cvar --levels 0.5,0.2,0.1
    """
    from robustmdp import robustness_curve
    from robustmdp.app.commands import show
    from robustmdp.app.commands.progress import Bar
    from robustmdp.app.commands.sets import parse_set
    from robustmdp.app.commands.sources import source_of
    from robustmdp.app.commands.words import check_out, parse_numbers
    from robustmdp.io.tables import write_table

    check_out(options["out"], ".csv", ".parquet")
    levels = {name: parse_numbers(word, options[word[2:]]) for name, word in _PLURAL.items()}
    choice = parse_set({**options, **levels}, plural=_PLURAL, needs_level=False)
    source = source_of(problem, options)
    choice = choice.within(source.bounds)
    with Bar(quiet) as bar:
        table = robustness_curve(
            source.mdp,
            **_family(choice, source, options["threads"]),
            initial=source.initial,
            tol=options["tol"],
            threads=options["threads"],
            progress=bar.count("Levels"),
        )
    if options["out"] is not None:
        write_table(table, options["out"])
    columns = show.columns_of(table)
    if as_json:
        name = choice.name or "penalty"
        show.print_json({"problem": problem, "set": name, **columns, **dict(table.notes)})
    else:
        what = f"{table.notes['divergence']} divergence" if choice.is_divergence else str(choice)
        show.print_rows(
            f"{problem}, discount {source.mdp.discount:g}: {what}",
            [name.replace("_", " ") for name in columns],
            _spread(list(zip(*columns.values(), strict=True)), rows),
            limit=rows,
            total=len(table),
        )
        _say_knee(table)
        for sentence in show.notes_on(*_sets(choice, source, table)):
            show.say(sentence)
    if table.notes["interrupted"]:
        click.echo(f"Interrupted: the {len(table)} levels that were solved are kept.", err=True)
        sys.exit(INTERRUPTED)


def _spread(rows: list[Any], limit: int) -> list[Any]:
    """At most so many, from the first to the last; the first levels of a curve are often all alike."""
    import numpy as np

    if len(rows) <= limit:
        return rows
    return [rows[place] for place in np.linspace(0, len(rows) - 1, limit).round().astype(int)]


def _family(choice: SetChoice, source: Source, threads: int | None) -> dict[str, Any]:
    """The sets of a curve, as arguments of `robustness_curve`."""
    from robustmdp import Constrained
    from robustmdp.tuning import levels_for

    if choice.is_divergence and choice.name == "ball":
        spread = levels_for(source.mdp, choice.divergence, form=Constrained, threads=threads)
        return {"divergence": choice.divergence, "radii": choice.levels or spread}
    if choice.is_divergence:
        return {"divergence": choice.divergence, "weights": choice.levels or None}
    return {
        "divergence": lambda level: choice.at(level, source.mdp, source.bounds),
        "levels": choice.curve_levels(source.mdp, threads),
    }


def _sets(choice: SetChoice, source: Source, table: Any) -> list[Any]:
    """One of the sets behind a curve, for all say the same."""
    levels = [] if choice.is_divergence else next(iter(table.columns.values()))[:1].tolist()
    return [choice.at(level, source.mdp, source.bounds) for level in levels]


def _say_knee(table: Any) -> None:
    from robustmdp.app.commands import show

    at, level = table.notes["knee"], next(iter(table.columns))
    if at < 0 and (table["worst"] - table["nominal_worst"] <= 4.0 * table["error_bound"]).all():
        show.say("At none of these levels does a robust policy improve the worst case.")
    elif at < 0:
        show.say("No knee: robustness costs more than it gains, or pays most at the first or the last of these levels.")
    else:
        bought, paid = table["worst"][at] - table["nominal_worst"][at], table.notes["best"] - table["nominal"][at]
        solved = " of the levels that were solved" if table.notes["interrupted"] else ""
        what = f"{level} {table[level][at]:.4g} improves the worst case by {bought:.4g} and costs {paid:.4g}"
        show.say(f"Knee{solved}: {what}.")


@click.command(short_help="Try policies in worlds that are not the model.")
@given.problem_argument()
@given.set_option()
@given.divergence_option()
@click.option("--weight", type=float, multiple=True, help="Try the policy robust at this weight; may be repeated.")
@click.option("--radius", type=float, multiple=True, help="Try the policy robust at this radius; may be repeated.")
@click.option("--level", type=float, multiple=True, help="The same for any other set; may be repeated.")
@click.option("--share", type=float, help="Of contamination; of cvar, ..., beside the mean.")
@given.support_option
@given.distance_option
@given.rectangular_option
@click.option("--policy", type=click.Path(), multiple=True, help="Try the policy in this file; may be repeated.")
@click.option(
    "--within",
    type=float,
    multiple=True,
    default=(0.1,),
    show_default=True,
    help="Radius of random and worst-case worlds; may be repeated.",
)
@click.option("--worlds", type=int, default=100, show_default=True, help="How many random worlds.")
@given.held_out_option
@given.vary_option
@given.column_option
@given.discount_option
@given.initial_option
@given.seed_option
@given.threads_option
@click.option("--out", type=click.Path(), help="Write every single value: .csv, .parquet or .json.")
@given.output_options
def stress(problem: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Try policies in worlds that are not PROBLEM: mean, worst, quantiles, wins.

    The nominal policy is always among them. Worlds: random, up to a radius on average, each policy's own worst case
    there, and --held-out models or --vary where given. "Worst tenth" is the mean over the worst tenth of worlds, a win
    is a world in which no other policy is better.

    \b
    Examples:
      robustmdp stress machine-replacement --radius 0.1 --radius 0.3 --within 0.2
      robustmdp stress gym:FrozenLake-v1 --radius 0.2 --vary success_rate=0.5,0.9
    """
    from robustmdp import Nominal
    from robustmdp import stress as stressed
    from robustmdp.app.commands import show
    from robustmdp.app.commands.progress import Bar
    from robustmdp.app.commands.sources import source_of
    from robustmdp.app.commands.words import check_out
    from robustmdp.divergences import divergence_named
    from robustmdp.io.tables import write_table
    from robustmdp.tuning.worlds import Adversary

    check_out(options["out"], ".csv", ".parquet")
    divergence, choice = divergence_named(options["divergence"]), _choice(options)
    source = source_of(problem, options)
    sets = _robust_sets(choice, divergence, source, options)
    policies = {"nominal": Nominal(), **sets, **source.policies(options["policy"])}
    # The worst cases of a divergence are there already, at the radii of --within.
    own = sets if choice is not None and not choice.is_divergence else {}
    worlds = [*_worlds(source, divergence, options), *(Adversary(each, name) for name, each in own.items())]
    with Bar(quiet) as bar:
        table = stressed(
            source.mdp,
            policies,
            worlds,
            initial=source.initial,
            threads=options["threads"],
            progress=bar.count("Values"),
        )
    if options["out"] is not None:
        write_table(table.outcomes, options["out"])
    columns = show.columns_of(table)
    if as_json:
        show.print_json({"problem": problem, "sets": {name: repr(each) for name, each in sets.items()}, **columns})
        return
    for family in dict.fromkeys(table["family"].tolist()):
        _print_family(family, table.where(family=family))
    for sentence in show.notes_on(*sets.values()):
        show.say(sentence)


def _print_family(family: str, table: Any) -> None:
    """Mean, worst, quantiles and wins; of a single world its value alone."""
    from robustmdp.app.commands import show

    worlds = int(table["worlds"][0])
    names = [name for name in table.columns if name not in ("family", "worlds")] if worlds > 1 else ["policy", "mean"]
    header = [name.replace("_", " ") for name in names] if worlds > 1 else ["policy", "value"]
    rows = list(zip(*(table[name].tolist() for name in names), strict=True))
    show.print_rows(f"{worlds:,} worlds: {family}" if worlds > 1 else f"{family}", header, rows)


def _choice(options: dict[str, Any]) -> SetChoice | None:
    """The set by its name; without one, weights and radii may both be there."""
    from robustmdp.app.commands.sets import parse_set

    others = {name: options[name] or None for name in ("level", "share", "support", "distance")}
    if options["set_name"] is None and not any(others.values()):
        return None
    # --divergence is that of the random worlds, so that it goes with any set.
    return parse_set(options, typed_divergence=False)


def _robust_sets(choice: SetChoice | None, divergence: Any, source: Source, options: dict[str, Any]) -> dict[str, Any]:
    """The sets whose policies are tried, by name."""
    from robustmdp import Constrained, Penalized

    if choice is not None:
        name = "" if choice.has_divergence else f"{choice.name} "
        name = f"s-rectangular {name}" if choice.is_shared else name
        new = ", new successors" if choice.support not in (None, "model") else ""
        return {
            f"{name}{choice.level_name} {_format_level(level)}{new}": choice.at(level, source.mdp, source.bounds)
            for level in choice.levels or (1.0,)
        }
    return {
        **{f"weight {_format_level(weight)}": Penalized(divergence, weight) for weight in options["weight"]},
        **{f"radius {_format_level(radius)}": Constrained(divergence, radius) for radius in options["radius"]},
    }


def _format_level(level: float) -> str:
    """Short, but never so short that another level reads the same."""
    return f"{level:g}" if float(f"{level:g}") == level else repr(level)


def _worlds(source: Source, divergence: Any, options: dict[str, Any]) -> list[Any]:
    from robustmdp import Constrained
    from robustmdp.tuning.worlds import Adversary, Plausible, RandomKernels

    found: list[Any] = [source.held_out] if source.held_out is not None else []
    if source.counts is not None:
        found.append(Plausible(source.counts, options["worlds"], options["seed"]))
    for radius in dict.fromkeys(options["within"]):
        found.append(RandomKernels(divergence, radius, options["worlds"], options["seed"]))
        found.append(Adversary(Constrained(divergence, radius)))
    return found
