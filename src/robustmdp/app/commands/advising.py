"""The commands `analyse` and `suggest`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

import robustmdp as rm
from robustmdp.app.commands import options as given
from robustmdp.app.commands import show
from robustmdp.app.commands.progress import Bar

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
    from robustmdp.app.commands.words import check_out

    check_out(out, ".html", ".htm")
    choice, source = _choice_and_source(problem, options)
    policies = source.policies(options["policy"])
    with Bar(quiet) as bar:

        def report(part: str, share: float) -> None:
            bar.check()
            bar.show(part.capitalize(), share)

        analysis = rm.analyse(
            source.mdp,
            **_evidence(choice, source, options),
            policies=policies,
            layout=source.layout,
            title=f"{source.title}: how robust should the decision be?",
            unit=options["unit"],
            facts=source.facts,
            source="\n".join([*source.code, *choice.code]),
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


def _choice_and_source(problem: str, options: dict[str, Any]) -> tuple[SetChoice, Source]:
    """The kind of set whose levels are tried, and what is studied."""
    from robustmdp import _checks
    from robustmdp.app.commands import sets, sources, words

    levels = {"level": words.parse_numbers("--levels", options["levels"])}
    choice = sets.parse_set({**options, **levels}, plural={"level": "--levels"}, needs_level=False)
    _checks.must(
        not (choice.is_divergence and choice.levels),
        f"--levels must come with another set than {choice.name}, whose levels are found",
    )
    source = sources.source_of(problem, options)
    return choice.within(source.bounds), source


def _evidence(choice: SetChoice, source: Source, options: dict[str, Any]) -> dict[str, Any]:
    """What `rm.analyse` and `rm.suggest` both take."""
    return {
        **choice.arguments(source.mdp, source.bounds, options["threads"]),
        "counts": source.counts,
        "held_out": source.held_out,
        "initial": source.initial,
        **{name: options[name] for name in ("confidence", "method", "threads")},
    }


def _say_advice(
    problem: str, source: Source, choice: SetChoice, divergence: str, advice: rm.Suggestion, headline: str = ""
) -> None:
    """The level, why, and what to type next."""
    from robustmdp.app.study.headline import level_text

    show.say(f"{problem}, discount {source.mdp.discount:g}", soft_wrap=True)
    recommended, is_nominal = f"Recommended: {level_text(advice.ambiguity)}.", advice.ambiguity.is_nominal
    if headline:
        sentences = [headline, *([] if is_nominal else [recommended])]
    else:
        sentences = [*([] if advice.comparison is None else [recommended]), *advice.reasons]
    for sentence in (*sentences, *show.notes_on(advice.ambiguity)):
        show.say(sentence)
    if source.counts is not None and choice.is_divergence:
        return  # a radius per pair cannot be typed
    how = ""
    if not is_nominal and choice.is_divergence:
        how = f" --divergence {shlex.quote(divergence)} --{advice.ambiguity.level_name} {advice.ambiguity.level:.6g}"
    elif not is_nominal:
        how = f" {choice.words(advice.level)}"
    show.say(f"try      robustmdp solve {shlex.quote(problem)} --discount {source.mdp.discount!r}{how}", soft_wrap=True)


def _advice_record(advice: rm.Suggestion) -> dict[str, Any]:
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
    from robustmdp.app.commands import words
    from robustmdp.app.study.headline import compare_policies

    words.check_out(options["out"], *words.TABLES)
    choice, source = _choice_and_source(problem, options)
    with Bar(quiet) as bar:
        evidence = _evidence(choice, source, options)
        tries = {"loss": options["loss"], "seed": options["seed"], "progress": bar.count("Trying levels")}
        advice = rm.suggest(source.mdp, **evidence, **tries)
    if options["out"] is not None:
        rm.write(advice.solution, options["out"])
    if as_json:
        show.print_json({"problem": problem, **_advice_record(advice)})
        return
    if advice.comparison is not None:
        tried, compared = show.columns_of(advice.candidates), compare_policies(advice.comparison)
        header = [name.replace("_", " ") for name in tried]
        show.print_rows("Levels that were tried", header, list(zip(*tried.values(), strict=True)))
        show.print_rows(compared["caption"], compared["header"], compared["rows"])
    _say_advice(problem, source, choice, options["divergence"], advice)
