"""The stress test as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robustmdp.app.page import DataTable, Paragraph
from robustmdp.app.page.blocks import Block, Entry
from robustmdp.app.study.numbers import alike
from robustmdp.app.study.study import Study
from robustmdp.table import Table

_SLACK = 2e-6  # relative: what evaluation leaves open
_COLUMNS = ("mean", "worst", "worst_tenth", "median")
_WORST = "worst case, "


def stress_test(study: Study) -> tuple[Block, ...]:
    """A table for each family of worlds, and one of nature's answers to each policy."""
    table = study.stress
    families = list(dict.fromkeys(table["family"].tolist()))
    single = [family for family in families if family.startswith(_WORST)]
    intro = Paragraph(
        "What each policy earns from the start in worlds that are not the model. The worst tenth is the mean over "
        "the worst tenth of worlds; a win is a world in which no other policy is better. These worlds are examples: "
        "they show what can happen, and prove nothing about others."
    )
    several = (_worlds_table(table, family) for family in families if family not in single)
    return (intro, *_whole_radii(study), *several, *(_answers(table, single) if single else ()))


def _whole_radii(study: Study) -> tuple[Block, ...]:
    """Around counts, the worlds go further than the recommended level does."""
    candidates = study.suggestion.candidates
    if candidates.notes.get("unit") != "share":
        return ()
    share = float(candidates["share"][candidates["chosen"]][0])
    rest = "trusts the model" if share == 0.0 else f"uses {share:.3g} of them"
    whole = "Random and worst-case worlds go as far as the whole radii that the counts give"
    return (Paragraph(f"{whole}; the recommended level {rest}."),) if share < 1.0 else ()


def _worlds_table(table: Table, family: str) -> DataTable:
    """Mean, worst and wins over the worlds of a family."""
    of = table.where(family=family)
    numbers = np.reshape(alike(np.concatenate([of[name] for name in _COLUMNS])), (len(_COLUMNS), -1))
    tails, count = of["worst_tenth"], int(of["worlds"][0])
    best = tuple(np.flatnonzero(tails >= tails.max() - _SLACK * max(1.0, float(np.abs(tails).max()))).tolist())
    rows = tuple(zip(of["policy"].tolist(), *numbers.tolist(), of["wins"].tolist(), strict=True))
    return DataTable(
        ("policy", *(name.replace("_", " ") for name in _COLUMNS), "wins"),
        rows,
        f"{count:,} {'world' if count == 1 else 'worlds'}: {family}",
        marked_rows=best if len(best) < len(tails) else (),
        mark="best in the worst tenth",
    )


def _answers(table: Table, families: Sequence[str]) -> tuple[Block, ...]:
    """A row for each room that nature has: what it leaves of every policy."""
    policies = list(dict.fromkeys(table["policy"].tolist()))
    rows: list[tuple[Entry, ...]] = []
    for family in families:
        values = [float(table.where(policy=policy, family=family)["mean"][0]) for policy in policies]
        rows.append((family.removeprefix(_WORST), *alike(values)))
    intro = Paragraph(
        "And each policy in the world that is worst for it: nature answers with the chances that hurt this policy "
        "most, in all states at once. This is a yardstick rather than a forecast."
    )
    return (intro, DataTable(("nature may go as far as", *policies), tuple(rows), "What is left in the worst case"))
