"""The commands `analyse`, `suggest`, `curve` and `stress`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustmdp.cli import options as given
from robustmdp.cli.options import INTERRUPTED

if TYPE_CHECKING:
    from robustmdp.cli.sources import Source


def _source(problem: str, options: dict[str, Any]) -> Source:
    from robustmdp.cli.sources import parse_source

    return parse_source(
        problem,
        discount=options["discount"],
        initial=options["initial"],
        held_out=options.get("held_out", ()),
        vary=options.get("vary", ()),
    )


@click.command(short_help="A report on a problem: how robust should the decision be?")
@given.problem_argument()
@click.option("--out", type=click.Path(), default="report.html", show_default=True, help="The page to write.")
@given.divergence_option()
@given.discount_option
@given.confidence_option
@given.initial_option
@given.held_out_option
@given.vary_option
@click.option("--policy", type=click.Path(), multiple=True, help="One more policy for the stress test.")
@given.threads_option
@given.output_options
def analyse(problem: str, out: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Study PROBLEM and write one page: how robust should the decision be?

    PROBLEM is a model (a file or a ready-made world), a log of transitions (.csv, .parquet, minari:ID) or a Gymnasium
    id. The page has the robustness curve with a slider, a recommended level with its reasons, a stress test, and where
    robustness changes the decision. It works offline.

    \b
    Examples:
      robustmdp analyse gym:FrozenLake8x8-v1 --discount 0.99 --vary success_rate=0.4..0.9:21
      robustmdp analyse visits.csv --discount 0.95 --confidence 0.9 --out visits.html
    """
    from robustmdp.analysis import analyse as studied
    from robustmdp.cli import show
    from robustmdp.cli.progress import Bar
    from robustmdp.divergences import divergence_named
    from robustmdp.io import read_policy

    _check_page(out)
    source = _source(problem, options)
    policies = {Path(file).name: read_policy(file, source.mdp) for file in options["policy"]}
    with Bar(quiet) as bar:
        analysis = studied(
            source.mdp,
            divergence_named(options["divergence"]),
            counts=source.counts,
            confidence=options["confidence"],
            held_out=source.held_out,
            initial=source.initial,
            policies=policies,
            layout=source.layout,
            title=f"{source.title}: how robust should the decision be?",
            told=source.told,
            source="\n".join(source.code),
            threads=options["threads"],
            progress=lambda part, share: bar.show(part.capitalize(), share),
        )
        bar.show("Writing the page", 1.0)
        page = analysis.write(out)
    advice = analysis.study.suggestion
    if as_json:
        show.print_json({"problem": problem, "report": str(page), **_advice_record(advice)})
    else:
        for reason in (f"Recommended: {advice.ambiguity}.", *advice.reasons):
            show.say(reason)
        show.say(f"report   {page}")


def _check_page(out: str) -> None:
    """What cannot be written is said before anything is computed."""
    from robustmdp import _checks

    path = Path(out)
    _checks.must(path.suffix.lower() in (".html", ".htm"), f"--out must be an .html file: got {out!r}")
    _checks.must(not path.is_dir(), f"--out must be a file: {out} is a folder")


def _advice_record(advice: Any) -> dict[str, Any]:
    from robustmdp.cli import show

    return {
        "ambiguity": repr(advice.ambiguity),
        "level": advice.ambiguity.level,
        "pays": advice.pays,
        "reasons": list(advice.reasons),
        "candidates": show.columns_of(advice.candidates),
        "policy": advice.solution.policy,
        "value": advice.solution.value,
        "error_bound": advice.solution.error_bound,
    }


@click.command(short_help="Recommend a level, with the reasons.")
@given.problem_argument()
@given.divergence_option()
@given.discount_option
@given.confidence_option
@given.initial_option
@given.held_out_option
@given.vary_option
@click.option("--loss", type=float, default=0.05, show_default=True, help="Average loss that is bearable.")
@given.seed_option
@given.threads_option
@given.output_options
def suggest(problem: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Recommend a level for PROBLEM, with the reasons.

    From a log: shares of the radii at --confidence, tried in models that the log leaves possible. From --held-out
    models or --vary: radii, tried in them. From a model alone: the knee of the robustness curve.

    \b
    Examples:
      robustmdp suggest visits.csv --discount 0.95 --confidence 0.9
      robustmdp suggest gym:FrozenLake-v1 --vary success_rate=0.4,0.6,0.8,0.9
    """
    from robustmdp import suggest as suggested
    from robustmdp.cli import show
    from robustmdp.cli.progress import Bar
    from robustmdp.divergences import divergence_named

    source = _source(problem, options)
    with Bar(quiet) as bar:
        advice = suggested(
            source.mdp,
            divergence_named(options["divergence"]),
            counts=source.counts,
            confidence=options["confidence"],
            held_out=source.held_out,
            initial=source.initial,
            loss=options["loss"],
            seed=options["seed"],
            threads=options["threads"],
            progress=bar.count("Trying levels"),
        )
    if as_json:
        show.print_json({"problem": problem, **_advice_record(advice)})
        return
    table = advice.candidates
    if "pays" in table.notes:
        rows = list(zip(*show.columns_of(table).values(), strict=True))
        show.print_rows("Levels that were tried", [name.replace("_", " ") for name in table.columns], rows)
    for sentence in (f"Recommended: {advice.ambiguity}.", *advice.reasons):
        show.say(sentence)


@click.command(short_help="What robustness costs and buys, level by level.")
@given.problem_argument()
@given.divergence_option()
@click.option("--weights", metavar="A,B,...", help="Levels of the penalized form; 50 that fit if none are given.")
@click.option("--radii", metavar="A,B,...", help="Levels of the constrained form, instead.")
@given.discount_option
@given.initial_option
@click.option("--tol", type=float, default=1e-6, show_default=True, help="Certified error, relative.")
@given.threads_option
@given.rows_option
@click.option("--out", type=click.Path(), help="Write the table: .csv or .parquet.")
@given.output_options
def curve(problem: str, as_json: bool, quiet: bool, rows: int, **options: Any) -> None:
    """What robustness costs and buys on PROBLEM, level by level.

    For each level: the robust policy's value if the model is right (nominal), its worst case (worst), the worst case of
    the policy that trusts the model (trusting), and in how many states the decision changes. Ctrl-C keeps the levels
    that are solved.

    \b
    Examples:
      robustmdp curve machine-replacement --initial "age 0"
      robustmdp curve model.csv --discount 0.95 --radii 0.01,0.1,1 --out curve.csv
    """
    from robustmdp import robustness_curve
    from robustmdp.cli import show
    from robustmdp.cli.progress import Bar
    from robustmdp.cli.words import parse_numbers
    from robustmdp.divergences import divergence_named
    from robustmdp.io.tables import write_table

    source = _source(problem, options)
    with Bar(quiet) as bar:
        table = robustness_curve(
            source.mdp,
            divergence_named(options["divergence"]),
            None if options["weights"] is None else parse_numbers("--weights", options["weights"]),
            radii=None if options["radii"] is None else parse_numbers("--radii", options["radii"]),
            initial=source.initial,
            tol=options["tol"],
            threads=options["threads"],
            progress=bar.count("Levels"),
        )
    if options["out"] is not None:
        write_table(table, options["out"])
    columns = show.columns_of(table)
    if as_json:
        show.print_json({"problem": problem, **columns, **dict(table.notes)})
    else:
        show.print_rows(
            f"{problem}: {table.notes['divergence']}",
            list(columns),
            list(zip(*columns.values(), strict=True)),
            limit=rows,
        )
        _say_knee(table)
    if table.notes["interrupted"]:
        sys.exit(INTERRUPTED)


def _say_knee(table: Any) -> None:
    from robustmdp.cli import show

    at, level = table.notes["knee"], next(iter(table.columns))
    if at < 0:
        show.say("At no level does a robust policy improve the worst case.")
    else:
        bought, paid = table["worst"][at] - table["trusting"][at], table.notes["best"] - table["nominal"][at]
        show.say(f"Knee: {level} {table[level][at]:.4g} improves the worst case by {bought:.4g} and costs {paid:.4g}.")


@click.command(short_help="Try policies in worlds that are not the model.")
@given.problem_argument()
@given.divergence_option()
@click.option("--weight", type=float, multiple=True, help="Try the policy robust at this weight; may be repeated.")
@click.option("--radius", type=float, multiple=True, help="Try the policy robust at this radius; may be repeated.")
@click.option("--policy", type=click.Path(), multiple=True, help="Try the policy in this file; may be repeated.")
@click.option("--within", type=float, default=0.1, show_default=True, help="Radius of random and worst-case worlds.")
@click.option("--worlds", type=int, default=100, show_default=True, help="How many random worlds.")
@given.held_out_option
@given.vary_option
@given.discount_option
@given.initial_option
@given.seed_option
@given.threads_option
@click.option("--out", type=click.Path(), help="Write every single value: .csv or .parquet.")
@given.output_options
def stress(problem: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Try policies in worlds that are not PROBLEM: mean, worst, quantiles, wins.

    The policy that trusts the model is always among them. Worlds: random within a radius, each policy's own worst case
    there, and --held-out models or --vary where given.

    \b
    Examples:
      robustmdp stress machine-replacement --radius 0.1 --radius 0.3 --within 0.2
      robustmdp stress gym:FrozenLake-v1 --radius 0.2 --vary success_rate=0.4..0.9:11
    """
    from robustmdp import stress as stressed
    from robustmdp.cli import show
    from robustmdp.cli.progress import Bar
    from robustmdp.io.tables import write_table

    source = _source(problem, options)
    with Bar(quiet) as bar:
        table = stressed(
            source.mdp,
            _policies(source, options),
            _worlds(source, options),
            initial=source.initial,
            threads=options["threads"],
            progress=bar.count("Values"),
        )
    if options["out"] is not None:
        write_table(table.outcomes, options["out"])
    columns = show.columns_of(table)
    if as_json:
        show.print_json({"problem": problem, **columns})
        return
    for family in dict.fromkeys(table["family"].tolist()):
        found = {
            name: column for name, column in show.columns_of(table.where(family=family)).items() if name != "family"
        }
        header = [name.replace("_", " ") for name in found]
        show.print_rows(f"Worlds: {family}", header, list(zip(*found.values(), strict=True)))


def _policies(source: Source, options: dict[str, Any]) -> dict[str, Any]:
    from robustmdp import Constrained, Nominal, Penalized
    from robustmdp.divergences import divergence_named
    from robustmdp.io import read_policy

    divergence = divergence_named(options["divergence"])
    return {
        "trusting": Nominal(),
        **{f"weight {weight:g}": Penalized(divergence, weight) for weight in options["weight"]},
        **{f"radius {radius:g}": Constrained(divergence, radius) for radius in options["radius"]},
        **{Path(file).name: read_policy(file, source.mdp) for file in options["policy"]},
    }


def _worlds(source: Source, options: dict[str, Any]) -> list[Any]:
    from robustmdp import Constrained
    from robustmdp.divergences import divergence_named
    from robustmdp.tuning.worlds import Adversary, Plausible, RandomKernels

    divergence = divergence_named(options["divergence"])
    found: list[Any] = [source.held_out] if source.held_out is not None else []
    if source.counts is not None:
        found.append(Plausible(source.counts, options["worlds"], options["seed"]))
    random = RandomKernels(divergence, options["within"], options["worlds"], options["seed"])
    return [*found, random, Adversary(Constrained(divergence, options["within"]))]
