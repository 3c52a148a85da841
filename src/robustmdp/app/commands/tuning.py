"""The commands `curve` and `stress`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

import robustmdp as rm
from robustmdp.app.commands import options as given
from robustmdp.app.commands import show
from robustmdp.app.commands.options import INTERRUPTED
from robustmdp.app.commands.progress import Bar

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
    from robustmdp.app.commands import sets, sources, words
    from robustmdp.io.tables import write_table

    words.check_out(options["out"], *words.TABLES)
    levels = {name: words.parse_numbers(word, options[word[2:]]) for name, word in _PLURAL.items()}
    choice = sets.parse_set({**options, **levels}, plural=_PLURAL, needs_level=False)
    source = sources.source_of(problem, options)
    choice = choice.within(source.bounds)
    with Bar(quiet) as bar:
        table = rm.robustness_curve(
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
        show.print_json({"problem": problem, "set": choice.name or "penalty", **columns, **dict(table.notes)})
    else:
        what = f"{table.notes['divergence']} divergence" if choice.is_divergence else str(choice)
        show.print_rows(
            f"{problem}, discount {source.mdp.discount:g}: {what}",
            [name.replace("_", " ") for name in columns],
            _spread(list(zip(*columns.values(), strict=True)), rows),
            limit=rows,
            total=len(table),
        )
        # One of the sets behind a curve says the same as all.
        first = [] if choice.is_divergence else next(iter(columns.values()))[:1]
        notes = show.notes_on(*(choice.at(level, source.mdp, source.bounds) for level in first))
        for sentence in (_describe_knee(table), *notes):
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
    if not choice.is_divergence:
        return choice.arguments(source.mdp, source.bounds, threads)
    if choice.name != "ball":
        return {"divergence": choice.divergence, "weights": choice.levels or None}
    spread = rm.levels_for(source.mdp, choice.divergence, form=rm.Constrained, threads=threads)
    return {"divergence": choice.divergence, "radii": choice.levels or spread}


def _describe_knee(table: rm.CurveTable) -> str:
    at, level = table.notes["knee"], next(iter(table.columns))
    if at < 0 and (table["worst"] - table["nominal_worst"] <= 4.0 * table["error_bound"]).all():
        return "At none of these levels does a robust policy improve the worst case."
    if at < 0:
        return "No knee: robustness costs more than it gains, or pays most at the first or the last of these levels."
    gain, price = table["worst"][at] - table["nominal_worst"][at], table.notes["best"] - table["nominal"][at]
    solved = " of the levels that were solved" if table.notes["interrupted"] else ""
    return f"Knee{solved}: {level} {table[level][at]:.4g} improves the worst case by {gain:.4g} and costs {price:.4g}."


@click.command(short_help="Try policies in worlds that are not the model.")
@given.problem_argument()
@given.set_option()
@given.divergence_option()
@click.option("--weight", type=float, multiple=True, help="Try the policy robust at this weight; may be repeated.")
@click.option("--radius", type=float, multiple=True, help="Try the policy robust at this radius; may be repeated.")
@click.option("--level", type=float, multiple=True, help="The same for any other set; may be repeated.")
@given.share_option
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
    from robustmdp.app.commands import sources, words
    from robustmdp.divergences import divergence_named
    from robustmdp.io.tables import write_table

    words.check_out(options["out"], *words.TABLES)
    divergence, choice = divergence_named(options["divergence"]), _choice(options)
    source = sources.source_of(problem, options)
    sets = _robust_sets(choice, divergence, source, options)
    policies = {"nominal": rm.Nominal(), **sets, **source.policies(options["policy"])}
    worlds = _worlds(source, divergence, options)
    if choice is not None and not choice.is_divergence:  # the worst cases of a divergence are there already
        worlds += [rm.worlds.Adversary(each, name) for name, each in sets.items()]
    with Bar(quiet) as bar:
        settings = {"threads": options["threads"], "progress": bar.count("Values")}
        table = rm.stress(source.mdp, policies, worlds, initial=source.initial, **settings)
    if options["out"] is not None:
        write_table(table.outcomes, options["out"])
    if as_json:
        record = {"problem": problem, "sets": {name: repr(each) for name, each in sets.items()}}
        show.print_json({**record, **show.columns_of(table)})
        return
    for family in dict.fromkeys(table["family"].tolist()):
        _print_family(family, table.where(family=family))
    for sentence in show.notes_on(*sets.values()):
        show.say(sentence)


def _print_family(family: str, table: Any) -> None:
    """Mean, worst, quantiles and wins; of a single world its value alone."""
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
    if choice is not None:
        name = "" if choice.has_divergence else f"{choice.name} "
        name = f"s-rectangular {name}" if choice.is_shared else name
        new = ", new successors" if choice.support not in (None, "model") else ""
        return {
            f"{name}{choice.level_name} {_format_level(level)}{new}": choice.at(level, source.mdp, source.bounds)
            for level in choice.levels or (1.0,)
        }
    return {
        **{f"weight {_format_level(weight)}": rm.Penalized(divergence, weight) for weight in options["weight"]},
        **{f"radius {_format_level(radius)}": rm.Constrained(divergence, radius) for radius in options["radius"]},
    }


def _format_level(level: float) -> str:
    """Short, but never so short that another level reads the same."""
    return f"{level:g}" if float(f"{level:g}") == level else repr(level)


def _worlds(source: Source, divergence: Any, options: dict[str, Any]) -> list[Any]:
    found: list[Any] = [source.held_out] if source.held_out is not None else []
    if source.counts is not None:
        found.append(rm.worlds.Plausible(source.counts, options["worlds"], options["seed"]))
    for radius in dict.fromkeys(options["within"]):
        found.append(rm.worlds.RandomKernels(divergence, radius, options["worlds"], options["seed"]))
        found.append(rm.worlds.Adversary(rm.Constrained(divergence, radius)))
    return found
