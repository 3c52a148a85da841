"""Where a pair leads, under the model and in the worst case, as pairs of bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from robustmdp import _checks

Outcome = tuple[str, float, float, float | None]  # name, nominal and worst-case probability, value

_MOST = 12  # rows
_ONE = 1 + _checks.SUM_TOLERANCE
_WIDTHS = (0.1, 0.2, 0.5, 1.0)  # probabilities that a bar of full width may stand for: few, so that frames agree


@dataclass(frozen=True)
class Distribution:
    """For each successor its probability under the model and in the worst case, and its value.

    Of more than twelve successors the likeliest stay and the others are summed up. `high` is the probability that
    fills the width.

    >>> Distribution("from s, right", (("ahead", 0.8, 0.6, 1.0), ("back", 0.2, 0.4, 0.0))).html().count("<tr>")
    3
    """

    title: str
    outcomes: tuple[Outcome, ...]
    high: float | None = None

    def __post_init__(self) -> None:
        _checks.must(len(self.outcomes) > 0, "a distribution must have outcomes: got none")
        for name, nominal, worst, _ in self.outcomes:
            for p in (nominal, worst):
                _checks.must(0 <= p <= _ONE, f"probabilities must lie in [0, 1]: got {p} for {name!r}")
        _checks.must(self.high is None or 0 < self.high <= 1, f"high must lie in (0, 1]: got {self.high}")

    def html(self) -> str:
        outcomes = _shortened(self.outcomes)
        largest = max(max(nominal, worst) for _, nominal, worst, _ in outcomes)
        full = self.high or next((width for width in _WIDTHS if width >= largest), 1.0)
        rows = "".join(_row(outcome, full) for outcome in outcomes)
        return (
            f'<table class="distribution"><caption><span>{escape(self.title)}</span></caption>'
            f'<thead><tr><th scope="col">next state</th><th scope="col" class="number">value</th>'
            f'<th scope="col" class="bars">{_sample("nominal", "nominal")}{_sample("worst", "worst case")}</th></tr>'
            f"</thead><tbody>{rows}</tbody></table>"
        )


def _shortened(outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """The likeliest in their order, and the sum of the others."""
    if len(outcomes) <= _MOST:
        return outcomes
    ranked = sorted(range(len(outcomes)), key=lambda i: -max(outcomes[i][1:3]))
    kept, others = sorted(ranked[: _MOST - 1]), ranked[_MOST - 1 :]
    nominal, worst = math.fsum(outcomes[i][1] for i in others), math.fsum(outcomes[i][2] for i in others)
    return [*(outcomes[i] for i in kept), (f"{len(others)} more", nominal, worst, None)]


def _row(outcome: Outcome, full: float) -> str:
    name, nominal, worst, value = outcome
    shown = "" if value is None else f"{value:.4g}"
    bars = _bar("nominal", "nominal", nominal, full) + _bar("worst", "worst case", worst, full)
    return f'<tr><th scope="row">{escape(name)}</th><td class="number">{shown}</td><td class="bars">{bars}</td></tr>'


def _bar(kind: str, word: str, p: float, full: float) -> str:
    share = f"--share: {min(p / full, 1.0):.4g}"
    number = "< 0.001" if 0 < p < 0.0005 else f"{p:.3f}"
    return f'<div><span class="unseen">{word} </span><span class="{kind}" style="{share}"></span>{escape(number)}</div>'


def _sample(kind: str, word: str) -> str:
    return f'<span class="sort"><span class="{kind}"></span>{word}</span> '
