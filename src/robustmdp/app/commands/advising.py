"""The commands `analyse` and `suggest`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from robustmdp.app.commands import options as given

if TYPE_CHECKING:
    from robustmdp.app.commands.sets import SetChoice
    from robustmdp.app.commands.sources import Source


@click.command(short_help="A report on a problem: how robust should the decision be?")
@given.problem_argument()
@click.option("--out", type=click.Path(), default="report.html", show_default=True, help="The page to write.")
@given.study_options
@click.option("--policy", type=click.Path(), multiple=True, help="One more policy for the stress test.")
@click.option("--unit", default="", help="The unit of rewards, such as EUR.")
@given.threads_option
@given.output_options
def analyse(problem: str, out: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Study PROBLEM and write one page: how robust should the decision be?

    PROBLEM is a model (a file or a ready-made world), a log of transitions (.csv, .parquet, minari:ID) or a Gymnasium
    id, as for `solve`. The page has the advice, where robustness changes the decision, the robustness curve with a
    slider, and a stress test. It works offline.

    \b
    Examples:
      robustmdp analyse gym:FrozenLake-v1 --vary success_rate=0.4..0.9:21
      robustmdp analyse visits.csv --discount 0.95 --out visits.html
      robustmdp analyse machine-replacement --set cvar --initial "age 0"
    """
    from robustmdp.app.commands import show
    from robustmdp.app.commands.progress import Bar
    from robustmdp.app.commands.sources import source_of
    from robustmdp.app.commands.words import check_out
    from robustmdp.app.study import analyse as studied

    check_out(out, ".html", ".htm")
    choice = _doubt(options)
    source = source_of(problem, options)
    choice = choice.within(source.bounds)
    policies = source.policies(options["policy"])
    with Bar(quiet) as bar:

        def report(part: str, share: float) -> None:
            bar.check()
            bar.show(part.capitalize(), share)

        analysis = studied(
            source.mdp,
            **choice.arguments(source.mdp, source.bounds, options["threads"]),
            counts=source.counts,
            confidence=options["confidence"],
            method=options["method"],
            held_out=source.held_out,
            initial=source.initial,
            policies=policies,
            layout=source.layout,
            title=f"{source.title}: how robust should the decision be?",
            unit=options["unit"],
            facts=source.facts,
            source="\n".join([*source.code, *choice.code]),
            threads=options["threads"],
            progress=report,
        )
        report("writing the page", 1.0)
        page = analysis.write(out)
    advice = analysis.study.suggestion
    if as_json:
        answer = {"problem": problem, "report": str(page), "headline": analysis.headline}
        show.print_json({**answer, **_advice_record(advice)})
    else:
        _say_advice(problem, source, choice, options["divergence"], advice, analysis.headline)
        show.say(f"report   {page}", soft_wrap=True)


def _doubt(options: dict[str, Any]) -> SetChoice:
    """The kind of set whose levels are tried."""
    from robustmdp import _checks
    from robustmdp.app.commands.sets import parse_set
    from robustmdp.app.commands.words import parse_numbers

    plural = {"level": "--levels"}
    choice = parse_set(
        {**options, "level": parse_numbers("--levels", options["levels"])}, plural=plural, needs_level=False
    )
    _checks.must(
        not (choice.is_divergence and choice.levels),
        f"--levels must come with another set than {choice.name}, whose levels are found",
    )
    return choice


def _say_advice(
    problem: str, source: Source, choice: SetChoice, divergence: str, advice: Any, headline: str = ""
) -> None:
    """The level, why, and what to type next."""
    from robustmdp.app.commands import show
    from robustmdp.app.study.headline import level_text

    show.say(f"{problem}, discount {source.mdp.discount:g}", soft_wrap=True)
    recommended = f"Recommended: {level_text(advice.ambiguity)}."
    if headline:
        sentences = [headline, *([] if advice.ambiguity.is_nominal else [recommended])]
    else:
        sentences = [*([] if advice.comparison is None else [recommended]), *advice.reasons]
    for sentence in sentences:
        show.say(sentence)
    for sentence in show.notes_on(advice.ambiguity):
        show.say(sentence)
    if source.counts is not None and choice.is_divergence:
        return  # a radius per pair cannot be typed
    how = ""
    if not advice.ambiguity.is_nominal and choice.is_divergence:
        how = f" --divergence {shlex.quote(divergence)} --{advice.ambiguity.level_name} {advice.ambiguity.level:.6g}"
    elif not advice.ambiguity.is_nominal:
        how = f" {choice.words(advice.level)}"
    show.say(f"try      robustmdp solve {shlex.quote(problem)} --discount {source.mdp.discount!r}{how}", soft_wrap=True)


def _advice_record(advice: Any) -> dict[str, Any]:
    from robustmdp.app.commands import show

    return {
        "ambiguity": repr(advice.ambiguity),
        "level": advice.ambiguity.level,
        "pays": advice.pays,
        "verdict": advice.verdict,
        "worlds_needed": advice.worlds_needed,
        "baseline": advice.baseline,
        "comparison": None if advice.comparison is None else show.columns_of(advice.comparison),
        "reasons": list(advice.reasons),
        "candidates": show.columns_of(advice.candidates),
        "policy": advice.solution.policy,
        "value": advice.solution.value,
        "error_bound": advice.solution.error_bound,
    }


@click.command(short_help="Recommend a level, with the reasons.")
@given.problem_argument()
@given.study_options
@click.option("--loss", type=float, default=0.5, show_default=True, help="Bearable, per unit gained at worst.")
@given.seed_option
@given.threads_option
@click.option("--out", type=click.Path(), help="Write the recommended policy and its values: .csv, .parquet or .json.")
@given.output_options
def suggest(problem: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Recommend a level for PROBLEM, with the reasons.

    From a log: shares of the radii at --confidence, tried in models that the log leaves possible. From --held-out
    models or --vary: radii, tried in them. Half of these worlds select a level, the others test it. From a model
    alone: no level, but what robustness would gain and cost.

    \b
    Examples:
      robustmdp suggest visits.csv --discount 0.95 --out policy.csv
      robustmdp suggest gym:FrozenLake-v1 --vary success_rate=0.4,0.6,0.8
      robustmdp suggest machine-replacement --set l1 --levels 0.05,0.1,0.2
    """
    from robustmdp import io
    from robustmdp import suggest as suggested
    from robustmdp.app.commands import show
    from robustmdp.app.commands.progress import Bar
    from robustmdp.app.commands.sources import source_of
    from robustmdp.app.commands.words import check_out
    from robustmdp.app.study.headline import compare_policies

    check_out(options["out"], ".csv", ".parquet", ".pq", ".json")
    choice = _doubt(options)
    source = source_of(problem, options)
    choice = choice.within(source.bounds)
    with Bar(quiet) as bar:
        advice = suggested(
            source.mdp,
            **choice.arguments(source.mdp, source.bounds, options["threads"]),
            counts=source.counts,
            confidence=options["confidence"],
            method=options["method"],
            held_out=source.held_out,
            initial=source.initial,
            loss=options["loss"],
            seed=options["seed"],
            threads=options["threads"],
            progress=bar.count("Trying levels"),
        )
    if options["out"] is not None:
        io.write(advice.solution, options["out"])
    if as_json:
        show.print_json({"problem": problem, **_advice_record(advice)})
        return
    if advice.comparison is not None:
        tried, compared = advice.candidates, compare_policies(advice.comparison)
        rows = list(zip(*show.columns_of(tried).values(), strict=True))
        show.print_rows("Levels that were tried", [name.replace("_", " ") for name in tried.columns], rows)
        show.print_rows(compared["caption"], compared["header"], compared["rows"])
    _say_advice(problem, source, choice, options["divergence"], advice)
