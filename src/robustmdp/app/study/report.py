"""What the sections of the page show, as plain data for the template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from robustmdp import __version__
from robustmdp.ambiguity import Constrained, worst_case
from robustmdp.app.page import render
from robustmdp.app.study.figures import WORST_CASE
from robustmdp.app.study.headline import compare_policies, is_close, level_text
from robustmdp.app.study.names import Names, alike, interval, short
from robustmdp.app.study.nature import rows_of, taken_by_nature
from robustmdp.app.study.policies import policies, policy_map, policy_table, random_text, shades, value_span
from robustmdp.app.study.study import Study, Sweep
from robustmdp.table import Table

if TYPE_CHECKING:
    from robustmdp.app.study.analysing import Analysis

_MOST_ROWS = 20  # of the table of decisions
_PICTURED = 4
_WATCHED = 2  # states whose rows are shown beside the slider
_MOST_CELLS = 400  # of the maps in the frames of all sliders: what keeps a page below 3 MB
_LEAST = 1e-9  # of the values: less is not worth a picture


def body(analysis: Analysis) -> str:
    """The sections as HTML."""
    study, names = analysis.study, analysis.names
    compared = study.suggestion.comparison
    matching = study.matching.get("radius" if study.doubt.has_weight else "weight", np.inf)
    return render(
        "report.html.j2",
        "robustmdp.app.study",
        analysis=analysis,
        study=study,
        advice=study.suggestion,
        facts=[*analysis.facts, *_facts(study, names)],
        largest=float(np.abs(study.nominal.value).max()),
        short=short,
        policies=policies(study, names),
        shades=shades() if names.layout is not None else (),
        comparison=None if compared is None else compare_policies(compared),
        candidates=_candidates(study.suggestion.candidates),
        explorers=[_explorer(study, each, names) for each in study.sweeps],
        families=_families(study.stress),
        answers=_answers(study.stress),
        decisions=_decisions(study, names),
        level=level_text(study.suggestion.ambiguity),
        matching=short(matching) if np.isfinite(matching) else "",
        coin=_coin(study),
        certain=_certain(study),
    )


def _facts(study: Study, names: Names) -> list[tuple[str, str]]:
    mdp = study.mdp
    first, last = (study.sweep.points[place].ambiguity.label for place in (0, -1))
    divergence = ("errors measured in", f"{study.divergence.name} divergence, D(truth || model)")
    return [
        ("states", f"{mdp.n_states:,}"),
        ("actions", f"{mdp.n_actions:,} ({mdp.n_pairs:,} pairs of a state and an action)"),
        ("transitions", f"{mdp.nnz:,}" + (", some end the episode" if mdp.can_end else "")),
        ("rewards", " to ".join(f"{reward + 0.0:g}" for reward in mdp.reward_range)),
        ("discount", f"{mdp.discount:g}"),
        ("start", names.start(study.start)),
        divergence if study.function is None else ("sets that were tried", f"{first} to {last}"),
        ("robustmdp", __version__),
    ]


def _candidates(table: Table) -> dict[str, Any] | None:
    """The levels that were compared, by selection worlds and by test worlds."""
    if "test_mean" not in table.columns:
        return None
    unit = next(iter(table.columns))
    levels = [f"{level:.3g}" if level > 0.0 else "nominal" for level in table[unit].tolist()]
    columns = (alike(table[name]) for name in ("mean", "worst_tenth", "test_mean", "test_worst_tenth"))
    header = ("mean, selection", "worst tenth, selection", "mean, test", "worst tenth, test")
    return {
        "header": ("share of the radii" if unit == "share" else unit, *header),
        "rows": list(zip(levels, *columns, strict=True)),
        "caption": "Levels that were compared: values over the worlds that selected, and over the test worlds",
        "marked": np.flatnonzero(table["chosen"]).tolist(),
        "mark": "selected",
    }


def _coin(study: Study) -> str:
    """What a radius does to a coin."""
    radius = study.matching.get("radius", 0.0)
    if not 0.0 < radius < np.inf:
        return ""
    heads = worst_case(Constrained(study.divergence, radius), [0.5, 0.5], [1.0, 0.0]).distribution[0]
    return f"For scale: with a radius of {short(radius)} it may turn a chance of 50 % into {100 * heads:.0f} %."


def _explorer(study: Study, sweep: Sweep, names: Names) -> dict[str, Any]:
    """A frame per level, as they stand on the axis; the pairs that nature changes most are shown in all of them."""
    order = sorted(range(len(sweep.points)), key=lambda place: sweep.points[place].level)
    taken = taken_by_nature(study.mdp, study.doubt, study.robust, study.start)
    least = _LEAST * max(1.0, float(np.abs(study.robust.value).max()))
    watched = [state for state in np.argsort(-taken, kind="stable")[:_WATCHED].tolist() if taken[state] > least]
    return {
        "sweep": sweep,
        "frames": [_frame(study, sweep, names, watched, place) for place in order],
        "start": order.index(sweep.shown),
    }


def _frame(study: Study, sweep: Sweep, names: Names, watched: Sequence[int], place: int) -> dict[str, Any]:
    """What is seen at one level."""
    point, row = sweep.points[place], sweep.curve[place]
    policy, value, changed = point.robust.policy, point.robust.value, set(point.changed.tolist())
    marks = {0: " (hardly robust)", len(sweep.points) - 1: " (most robust)"}
    if sweep.place is not None:
        marks[sweep.place] = " (recommended)" if study.recommended else " (selected)"
    facts = [
        ("if the model is right", f"{short(row['nominal'])}; the best possible is {short(sweep.curve.notes['best'])}"),
        ("worst case", f"{short(row['worst'])}, proved to within {point.robust.error_bound:.1g}"),
        ("worst case of the nominal policy", short(row["nominal_worst"])),
        ("states with another action", f"{len(changed):,} of {study.mdp.n_states:,}"),
    ]
    if study.recommended:
        count = len(study.worse(policy))
        differs = f"differs in {count:,} {'state' if count == 1 else 'states'}"
        facts.append(("recommended policy", differs if count else "the same decisions, up to ties"))
    rows = rows_of(study.mdp, point.ambiguity, value, watched, policy)
    frame = {"label": f"{sweep.text(place)}{marks.get(place, '')}", "x": point.level, "facts": facts}
    frame["rows"] = [names.bars(row) for row in rows]
    if names.layout is None or names.layout.n_states * len(study.sweeps) > _MOST_CELLS:
        return {**frame, "table": policy_table(study, names, point.robust, changed, "Actions and worst-case value")}
    span = value_span(names, *(each.robust.value for each in sweep.points))  # one scale, so that levels compare
    title = f"Policy and worst-case value{random_text(point.robust)}"
    return {**frame, "map": policy_map(names, policy, value, changed, title, span)}


def _families(table: Table) -> list[dict[str, Any]]:
    """Mean, worst and wins of each policy, for each family of several worlds."""
    found, names = [], ("mean", "worst", "worst_tenth", "median")
    for family in dict.fromkeys(table["family"].tolist()):
        if family.startswith(WORST_CASE):
            continue
        of = table.where(family=family)
        numbers = np.reshape(alike(np.concatenate([of[name] for name in names])), (len(names), -1)).tolist()
        tails, count = of["worst_tenth"].tolist(), int(of["worlds"][0])
        best = [place for place, tail in enumerate(tails) if is_close(tail, max(tails))]
        found.append(
            {
                "header": ("policy", *(name.replace("_", " ") for name in names), "wins"),
                "rows": list(zip(of["policy"].tolist(), *numbers, of["wins"].tolist(), strict=True)),
                "caption": f"{count:,} {'world' if count == 1 else 'worlds'}: {family}",
                "marked": best if len(best) < len(tails) else [],
                "mark": "best in the worst tenth",
            }
        )
    return found


def _answers(table: Table) -> dict[str, Any] | None:
    """What nature leaves of every policy, a row for each set of its choices."""
    policies = list(dict.fromkeys(table["policy"].tolist()))
    rows = []
    for family in dict.fromkeys(table["family"].tolist()):
        if family.startswith(WORST_CASE):
            of = dict(zip(*(table.where(family=family)[name].tolist() for name in ("policy", "mean")), strict=True))
            rows.append((family.removeprefix(WORST_CASE), *alike([of[policy] for policy in policies])))
    found = {
        "header": ("nature may go as far as", *policies),
        "rows": rows,
        "caption": "What is left in the worst case",
    }
    return found if rows else None


def _decisions(study: Study, names: Names) -> dict[str, Any] | None:
    """The states whose action changes, by what the nominal action would lose there, and what nature does."""
    states, robust = study.changed, study.robust
    if not len(states):
        return None
    lost = study.loss(study.nominal.policy)[states]
    place = np.argsort(-lost, kind="stable")[:_MOST_ROWS]
    kept, given_up = (
        rows_of(study.mdp, study.doubt, robust.value, states[place], policy)
        for policy in (robust.policy, study.nominal.policy)
    )
    rows = [
        (names.state(new.state), names.action(old.action), names.choice(robust.policy, new.state),
         gain, names.move(old), names.move(new))
        for old, new, gain in zip(given_up, kept, lost[place].tolist(), strict=True)
    ]  # fmt: skip
    count = f"{len(states):,} of {study.mdp.n_states:,} states" if len(states) > 1 else "1 state"
    more = "" if len(place) == len(states) else f", the {len(place)} with most to gain"
    header = ("state", "nominal", "robust", "gain in the worst case", "nature moves, if nominal", "if robust")
    return {
        "table": {"header": header, "rows": rows, "caption": f"A better action in {count}{more}"},
        "bars": [names.bars(row) for row in sorted(given_up, key=lambda row: -row.moved)[:_PICTURED]],
    }


def _certain(study: Study) -> list[tuple[str, str]]:
    """What is proved, computed and unknown."""
    solution = study.robust
    worst = interval(*(float(study.start @ bound) for bound in (solution.lower, solution.upper)))
    error = max(float(sweep.curve["error_bound"].max()) for sweep in study.sweeps)
    best = short(float(study.start @ study.nominal.value))
    unknown = (
        "how far the truth is from the model" if study.suggestion.comparison is None else "which worlds are likely"
    )
    return [
        ("proved", f"the best possible, if the model is right, is {best}, within {study.nominal.error_bound:.1g}"),
        ("proved", f"at its level, the worst case of the robust policy lies between {worst} from the start"),
        ("proved", f"every worst case on a curve is known to within {error:.1g}"),
        ("computed", "each value in the stress test is exact to 1e-10 of the largest value in its world"),
        ("not proved", f"the worlds of the stress test are samples; {unknown}, no calculation can say"),
        ("how the solve ended", str(solution.status)),
    ]
