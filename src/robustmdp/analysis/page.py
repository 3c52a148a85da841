"""The page: what a person wants to know, in the order of asking."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robustmdp import __version__
from robustmdp.ambiguity import Ambiguity, Nominal, Penalized
from robustmdp.analysis.explorer import explorer, policy_grid
from robustmdp.analysis.names import Names
from robustmdp.analysis.study import Row, Study, rows_of
from robustmdp.report import Code, DataTable, Distribution, Listing, Paragraph, Section
from robustmdp.report.blocks import Block
from robustmdp.table import Table

_MOST_ROWS = 20
_PICTURED = 4
_SLACK = 2e-6  # relative: what evaluation leaves open


def sections_of(study: Study, names: Names, told: Sequence[tuple[str, str]], code: str) -> tuple[str, list[Section]]:
    """The lead and the sections; `told` is what the user said of the problem."""
    sections = [
        Section("The problem", (_problem(study, told), *_policies(study, names))),
        Section("The recommendation", _recommendation(study)),
        Section("What robustness costs and buys", (explorer(study, names),)),
        Section("When the world is another", _stress(study)),
        Section("Where robustness changes the decision", _decisions(study, names)),
        Section("What is certain", (_certain(study),)),
        Section("The same from Python", (Paragraph("This program repeats what is above."), Code(code))),
    ]
    return _lead(study), sections


def _lead(study: Study) -> str:
    advice = study.suggestion
    if isinstance(advice.ambiguity, Nominal):
        return "Trusting the model is the best that was found here: no level of robustness did better where it matters."
    recommended = f"Recommended: {level_in_words(advice.ambiguity)}."
    if advice.pays:
        return f"{recommended} It does better than trusting the model where the model is most wrong."
    if "pays" in advice.candidates.notes:
        return f"{recommended} In worlds that had no part in the choice it did not pay: see the numbers."
    return f"{recommended} This is the knee of the curve: how far the truth is from the model, only data can say."


def level_in_words(ambiguity: Ambiguity) -> str:
    """A level as one would say it."""
    if isinstance(ambiguity, Nominal):
        return "trust the model"
    name, level = ambiguity.divergence.name, ambiguity.level
    if isinstance(level, np.ndarray):
        finite = level[np.isfinite(level)]
        return f"one radius per state and action, {finite.min():.3g} to {finite.max():.3g} in {name} divergence"
    if isinstance(ambiguity, Penalized):
        return f"a penalty of λ = {level:.3g} per unit of {name} divergence"
    return f"a radius of {level:.3g} in {name} divergence"


def _problem(study: Study, told: Sequence[tuple[str, str]]) -> Listing:
    mdp = study.mdp
    first = np.flatnonzero(study.start)
    begin = f"state {mdp.state_name(int(first[0]))}" if len(first) == 1 else f"any of {len(first):,} states"
    facts = [
        *told,
        ("states", f"{mdp.n_states:,}"),
        ("actions", f"{mdp.n_actions:,} ({mdp.n_pairs:,} pairs available)"),
        ("transitions", f"{mdp.nnz:,}" + (", some end the episode" if mdp.can_end else "")),
        ("rewards", f"{mdp.rewards.min():g} to {mdp.rewards.max():g}"),
        ("discount", f"{mdp.discount:g}"),
        ("start", begin.replace("state state", "state")),
        ("doubt measured in", f"{study.divergence.name} divergence"),
        ("robustmdp", __version__),
    ]
    return Listing(tuple(facts))


def _policies(study: Study, names: Names) -> tuple[Block, ...]:
    """Both policies as grids, where states are places."""
    if names.layout is None:
        return ()
    changed = set(study.changed.tolist())
    which = "robust policy at the knee" if isinstance(study.suggestion.ambiguity, Nominal) else "recommended policy"
    return (
        policy_grid(names, study.trusting, set(), "Policy that trusts the model, and its value if that is right"),
        policy_grid(names, study.robust, changed, f"The {which}, and its worst-case value"),
    )


def _recommendation(study: Study) -> tuple[Block, ...]:
    advice = study.suggestion
    facts = [("level", level_in_words(advice.ambiguity))]
    if study.matching:
        facts += [
            ("as a radius", f"{study.matching['radius']:.4g}"),
            ("as a weight λ", f"{study.matching['weight']:.4g} (equal value from the start, Theorem 3.1)"),
        ]
    reasons = tuple(Paragraph(reason) for reason in advice.reasons)
    tried = () if "pays" not in advice.candidates.notes else (_candidates(advice.candidates),)
    return (Listing(tuple(facts)), *reasons, *tried)


def _candidates(candidates: Table) -> DataTable:
    unit = candidates.notes["unit"]
    header = ("share of the radii" if unit == "share" else "radius", "mean", "worst tenth", "mean, judged",
              "worst tenth, judged")  # fmt: skip
    columns = (candidates[name].tolist() for name in (unit, "mean", "worst_tenth", "judged_mean", "judged_worst_tenth"))
    marked = tuple(np.flatnonzero(candidates["chosen"]).tolist())
    caption = "Levels that were tried: values over the worlds that chose, and over those that judged"
    return DataTable(header, tuple(zip(*columns, strict=True)), caption, marked_rows=marked, mark="chosen")


def _stress(study: Study) -> tuple[Block, ...]:
    intro = Paragraph(
        "Every policy in worlds that are not the model. The worst tenth is the mean over the worst tenth of worlds; a "
        "win is a world in which no other policy is better."
    )
    families = list(dict.fromkeys(study.stress["family"].tolist()))
    single = [family for family in families if study.stress.where(family=family)["worlds"][0] == 1]
    several = (_worlds_table(study.stress, family) for family in families if family not in single)
    return (intro, *several, *([_single_table(study.stress, single)] if single else []))


def _worlds_table(table: Table, family: str) -> DataTable:
    """Mean, worst and wins over the worlds of a family."""
    of = table.where(family=family)
    header = ("policy", "mean", "worst", "worst tenth", "median", "wins")
    columns = (of[name].tolist() for name in ("policy", "mean", "worst", "worst_tenth", "median", "wins"))
    tails = of["worst_tenth"]
    best = tuple(np.flatnonzero(tails >= tails.max() - _SLACK * max(1.0, float(np.abs(tails).max()))).tolist())
    caption = f"{of['worlds'][0]:,} worlds, {family}"
    return DataTable(
        header, tuple(zip(*columns, strict=True)), caption, marked_rows=best, mark="best in the worst tenth"
    )


def _single_table(table: Table, families: Sequence[str]) -> DataTable:
    """Families of one world side by side: nature's answers to each policy."""
    policies = list(dict.fromkeys(table["policy"].tolist()))
    rows = tuple(
        (policy, *(float(table.where(policy=policy, family=family)["mean"][0]) for family in families))
        for policy in policies
    )
    return DataTable(("policy", *families), rows, "Each policy against its own worst case")


def _decisions(study: Study, names: Names) -> tuple[Block, ...]:
    """The states whose action changes, by what the trusting action would lose there, and the pull behind it."""
    robust, states = study.robust, study.changed
    if not len(states):
        return (Paragraph("Nowhere: the robust policy decides as the trusting one does, in every state."),)
    lost = robust.q[states, robust.policy[states]] - robust.q[states, study.trusting.policy[states]]
    order = states[np.argsort(-lost, kind="stable")][:_MOST_ROWS]
    kept, given_up = (
        rows_of(study.mdp, study.doubt, robust.value, order, policy)
        for policy in (robust.policy, study.trusting.policy)
    )
    body = tuple(
        (names.state(new.state), names.action(old.action), names.action(new.action),
         float(robust.q[new.state, new.action] - robust.q[old.state, old.action]), names.pull(old), names.pull(new))
        for old, new in zip(given_up, kept, strict=True)
    )  # fmt: skip
    header = (
        "state",
        "trusting",
        "robust",
        "worst case gained",
        "nature on the trusting action",
        "... on the robust one",
    )
    more = "" if len(order) == len(states) else f", the {len(order)} with most to gain"
    table = DataTable(header, body, f"{len(states):,} of {study.mdp.n_states:,} states change their action{more}")
    why = Paragraph(
        "A decision changes where nature can hurt the trusting action more than another: the bars show how it bends "
        "the rows of the trusting actions, the strongest first."
    )
    by_pull = sorted(given_up, key=lambda row: -row.moved)[:_PICTURED]
    return (table, why, *(_picture(row, names) for row in by_pull))


def _picture(row: Row, names: Names) -> Distribution:
    return Distribution(names.pair(row), names.outcomes(row))


def _certain(study: Study) -> Listing:
    solution = study.suggestion.solution
    worst, best = (float(study.start @ bound) for bound in (solution.lower, solution.upper))
    return Listing(
        (
            ("recommended policy, worst case", f"between {worst:.8g} and {best:.8g} from the start, proved"),
            ("how the solve ended", str(solution.status)),
            ("if the model is right", f"the best possible is {study.curve.notes['best']:.8g}, certified to "
             f"{study.trusting.error_bound:.1g}"),
            ("on the curve", f"every level is certified to {float(study.curve['error_bound'].max()):.1g}"),
            ("in the stress test", "values are exact to 1e-6 relative; the worlds are samples, not a proof"),
        )
    )  # fmt: skip
