"""What the sections of the page show, as plain data for the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import __version__
from robustmdp._arrays import IntArray
from robustmdp.ambiguity import Constrained, worst_case
from robustmdp.app.page import render
from robustmdp.app.study import maps
from robustmdp.app.study.explorer import bars, explorer
from robustmdp.app.study.headline import compare_policies, level_text
from robustmdp.app.study.names import Names
from robustmdp.app.study.nature import Row, rows_of
from robustmdp.app.study.numbers import alike, interval, short
from robustmdp.app.study.policies import policies
from robustmdp.app.study.study import Study
from robustmdp.table import Table

_MOST_ROWS = 20  # of the table of decisions
_PICTURED = 4
_SMALL = 1e-3  # below, values come near the tolerance of the solves
_CLOSE = 2e-6  # relative: what evaluation leaves open
_COLUMNS = ("mean", "worst", "worst_tenth", "median")
_WORST_CASE = "worst case, "


def body(
    study: Study,
    names: Names,
    source_facts: Sequence[tuple[str, str]],
    extra: Mapping[str, Sequence[Any]],
    figures: Mapping[str, Any],
    code: str,
    opening: str = "",
) -> Any:
    """The sections as HTML; `opening` is what the decision begins with where the page begins with something else."""
    compared = study.suggestion.comparison
    return render(
        "report.html.j2",
        "robustmdp.app.study",
        study=study,
        advice=study.suggestion,
        opening=opening,
        extra=extra,
        figures=figures,
        facts=_facts(study, names, source_facts),
        cautions=_cautions(study),
        policies=policies(study, names),
        shades=maps.shades() if names.layout is not None else (),
        comparison=None if compared is None else compare_policies(compared),
        candidates=_candidates(study.suggestion.candidates),
        explorers=[explorer(study, each, names) for each in study.sweeps],
        families=_families(study.stress),
        answers=_answers(study.stress),
        decisions=_decisions(study, names),
        level=level_text(study.suggestion.ambiguity),
        matching=_matching(study),
        coin=_coin(study),
        certain=_certain(study),
        code=code,
    )


def _facts(study: Study, names: Names, source_facts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    mdp = study.mdp
    first, last = (study.sweep.points[place].ambiguity.label for place in (0, -1))
    divergence = ("errors measured in", f"{study.divergence.name} divergence, D(truth || model)")
    return [
        *source_facts,
        ("states", f"{mdp.n_states:,}"),
        ("actions", f"{mdp.n_actions:,} ({mdp.n_pairs:,} pairs of a state and an action)"),
        ("transitions", f"{mdp.nnz:,}" + (", some end the episode" if mdp.can_end else "")),
        ("rewards", " to ".join(f"{reward + 0.0:g}" for reward in mdp.reward_range)),
        ("discount", f"{mdp.discount:g}"),
        ("start", names.start(study.start)),
        divergence if study.function is None else ("sets that were tried", f"{first} to {last}"),
        ("robustmdp", __version__),
    ]


def _cautions(study: Study) -> list[str]:
    """What makes the numbers say less than they seem to."""
    largest, found = float(np.abs(study.nominal.value).max()), []
    if 0.0 < largest < _SMALL:
        found.append(
            f"Values are at most {short(largest)}, and errors are certified to 1e-06: smaller differences do not show. "
            "Multiply the rewards, by 1,000 say, to see them."
        )
    if study.mdp.discount == 0.0:
        found.append(
            "At discount 0 a penalty costs nature nothing: every λ means the same, the least of what can come."
        )
    return found


# The recommendation.


def _candidates(table: Table) -> dict[str, Any] | None:
    """The levels that were compared, by selection worlds and by test worlds."""
    if "test_mean" not in table.columns:
        return None
    unit = next(iter(table.columns))
    levels = [f"{level:.3g}" if level > 0.0 else "nominal" for level in table[unit].tolist()]
    columns = (alike(table[name]) for name in ("mean", "worst_tenth", "test_mean", "test_worst_tenth"))
    return {
        "header": (
            "share of the radii" if unit == "share" else unit,
            "mean, selection",
            "worst tenth, selection",
            "mean, test",
            "worst tenth, test",
        ),
        "rows": list(zip(levels, *columns, strict=True)),
        "caption": "Levels that were compared: values over the worlds that selected, and over the test worlds",
        "marked": np.flatnonzero(table["chosen"]).tolist(),
        "mark": "selected",
    }


def _matching(study: Study) -> str:
    """The same level in the other form, where there is one."""
    other = "radius" if study.doubt.has_weight else "weight"
    if not np.isfinite(study.matching.get(other, np.inf)):
        return ""
    return f"{'a radius of' if other == 'radius' else 'λ ='} {short(study.matching[other])}"


def _coin(study: Study) -> str:
    """What a radius does to a coin."""
    radius = study.matching.get("radius", 0.0)
    if not 0.0 < radius < np.inf:
        return ""
    heads = worst_case(Constrained(study.divergence, radius), [0.5, 0.5], [1.0, 0.0]).distribution[0]
    return f"For scale: with a radius of {short(radius)} it may turn a chance of 50 % into {100 * heads:.0f} %."


# The stress test.


def _families(table: Table) -> list[dict[str, Any]]:
    """Mean, worst and wins of each policy, for each family of several worlds."""
    found = []
    for family in dict.fromkeys(table["family"].tolist()):
        if family.startswith(_WORST_CASE):
            continue
        of = table.where(family=family)
        numbers = np.reshape(alike(np.concatenate([of[name] for name in _COLUMNS])), (len(_COLUMNS), -1))
        tails, count = of["worst_tenth"], int(of["worlds"][0])
        best = np.flatnonzero(tails >= tails.max() - _CLOSE * max(1.0, float(np.abs(tails).max()))).tolist()
        found.append(
            {
                "header": ("policy", *(name.replace("_", " ") for name in _COLUMNS), "wins"),
                "rows": list(zip(of["policy"].tolist(), *numbers.tolist(), of["wins"].tolist(), strict=True)),
                "caption": f"{count:,} {'world' if count == 1 else 'worlds'}: {family}",
                "marked": best if len(best) < len(tails) else [],
                "mark": "best in the worst tenth",
            }
        )
    return found


def _answers(table: Table) -> dict[str, Any] | None:
    """What nature leaves of every policy, a row for each set of its choices."""
    policies = list(dict.fromkeys(table["policy"].tolist()))
    families = [name for name in dict.fromkeys(table["family"].tolist()) if name.startswith(_WORST_CASE)]
    rows = []
    for family in families:
        values = [float(table.where(policy=policy, family=family)["mean"][0]) for policy in policies]
        rows.append((family.removeprefix(_WORST_CASE), *alike(values)))
    header = ("nature may go as far as", *policies)
    return {"header": header, "rows": rows, "caption": "What is left in the worst case"} if rows else None


# Where decisions change.


def _decisions(study: Study, names: Names) -> dict[str, Any] | None:
    """The states whose action changes, by what the nominal action would lose there, and what nature does."""
    states = study.changed
    if not len(states):
        return None
    lost = study.loss(study.nominal.policy)[states]
    place = np.argsort(-lost, kind="stable")[:_MOST_ROWS]
    order, gains = states[place], lost[place].tolist()
    kept, given_up = (_rows(study, order, policy) for policy in (study.robust.policy, study.nominal.policy))
    rows = [
        (names.state(new.state), names.action(old.action), names.choice(study.robust.policy, new.state),
         gain, names.pull(old), names.pull(new))
        for old, new, gain in zip(given_up, kept, gains, strict=True)
    ]  # fmt: skip
    count = f"{len(states):,} of {study.mdp.n_states:,} states" if len(states) > 1 else "1 state"
    more = "" if len(order) == len(states) else f", the {len(order)} with most to gain"
    return {
        "table": {
            "header": ("state", "nominal", "robust", "gain in the worst case", "nature moves, if nominal", "if robust"),
            "rows": rows,
            "caption": f"A better action in {count}{more}",
        },
        "bars": [bars(names, row) for row in sorted(given_up, key=lambda row: -row.moved)[:_PICTURED]],
    }


def _rows(study: Study, states: IntArray, policy: npt.NDArray[Any]) -> list[Row]:
    return rows_of(study.mdp, study.doubt, study.robust.value, states, policy)


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
