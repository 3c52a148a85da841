"""Statements as tests that can fail, twelve of the figures and more of the text: a verdict, its numbers, its test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.paper.curves import half_width, labels
from robustmdp.table import Table

Verdict = Literal["holds", "does not hold", "within noise"]

_SEEDS_FOR_A_WIDTH = 5
_RESAMPLES = 2000
LEVEL = 0.05  # of a statement in one world, for all its comparisons and parts together
STATEMENTS = {
    1: "The deviation of the robust from the nominal value falls as lambda grows.",
    2: "Algorithm 3 on the estimated model drops at a linear rate, then is flat.",
    3: "The statistical error and its confidence interval grow with lambda.",
    4: "The first stage is faster for small lambda.",
    5: "Algorithm 1 converges slightly faster for smaller lambda.",
    6: "Algorithm 1's final error falls as lambda grows (T' = 100).",
    7: "The confidence interval of its final error grows with lambda, with a drop at lambda = 10.",
    8: "A larger T' gives a smaller error at lambda = 10.",
    9: "Algorithm 2 does badly at lambda = 0.5 and converges for large lambda.",
    10: "Algorithm 2 is better than Algorithm 1 at 1e6 samples.",
    11: "Algorithm 2 is better as the behaviour policy approaches 0.5.",
    12: "The stationary distribution is about uniform at pi = 0.5, and a pair becomes inaccessible as pi nears 0 or 1.",
    13: "Algorithm 2's error falls at least like T^(-1/3) (Theorem 5.1).",
    14: "With Polyak averaging Algorithm 2 comes to T^(-1/2) and closer than without (section 5, conclusion).",
    15: "Algorithm 1's error falls at least like the bound of Theorem 4.2 with T' = T: N^(-1/4) log N in N samples.",
    16: "Under Assumption 5.2 the rate of Algorithm 1 improves from N^(-1/4) to N^(-1/3), T' = sqrt(T) (section 5).",
    17: "Ours, not the paper's: the default learners, which average, come to N^(-1/2).",
    18: "The error of the inner loop falls at least like the bound of Theorem 4.1, T'^(-1/2) log T'.",
    19: "Inner steps alpha = t^-k give T'^-min(k, 1-k), so k = 1/2 is the best (section 4).",
    20: "Outer steps beta = t^-k converge more slowly than 1/(1 + (1-gamma) t) (section 4).",
    21: "Algorithm 2's error grows at most like d_min^-3 (Theorem 5.1 at lambda = 1/(1-gamma)).",
    22: "Algorithm 2 is better than Algorithm 1 at 1e6 samples for lambda >= 1: the text exempts lambda = 0.5.",
    23: "The robust value no longer depends on P* as lambda goes to 0 (section 6.2).",
    24: "For small lambda, TV1 and TV2 are about gamma (min V1 - min V2) apart (section 6.3).",
    25: "For large lambda, TV1 and TV2 are about gamma E(V1 - V2) apart, usually further than for small (section 6.3).",
    26: "The statistical error grows with lambda like the lower bound of Theorem 3.2 (section 6.3).",
}


class Finding(NamedTuple):
    """What a test says; `why` names what contradicts the statement, and is empty where it holds."""

    verdict: Verdict
    numbers: str
    test: str
    why: str = ""


def explain(verdict: Verdict, numbers: str, test: str, why: str) -> Finding:
    """A finding whose explanation is left out where the statement holds."""
    return Finding(verdict, numbers, test, "" if verdict == "holds" else why)


def conclude(numbers: str, test: str, against: str = "", unclear: str = "") -> Finding:
    """A statement holds where nothing speaks against it and nothing leaves it open."""
    verdict: Verdict = "does not hold" if against else "within noise" if unclear else "holds"
    return Finding(verdict, numbers, test, against or unclear)


@dataclass(frozen=True)
class Claim:
    """A statement in one world, and what the records say of it."""

    number: int
    setting: str
    stay: float
    finding: Finding

    @property
    def statement(self) -> str:
        """The paper's words, nearly."""
        return STATEMENTS[self.number]


def as_table(claims: Sequence[Claim]) -> Table:
    """One row per claim and world."""
    ordered = sorted(claims, key=lambda claim: (claim.number, claim.stay))
    names = ("claim", "statement", "stay", "setting", "verdict", "numbers", "test", "explanation")
    kinds = {"claim": np.int64, "stay": np.float64}
    rows = [(claim.number, claim.statement, claim.stay, claim.setting, *claim.finding) for claim in ordered]
    return Table({name: np.array([row[i] for row in rows], kinds.get(name, np.str_)) for i, name in enumerate(names)})


def dependence(claims: Table) -> list[str]:
    """Where a verdict depends on the world."""
    sentences = []
    for (number,), rows in claims.groups("claim"):
        if len(rows.values("verdict")) > 1:
            worlds = rows.groups("verdict")
            parts = [f"{verdict} for stay {', '.join(labels(of['stay']))}" for (verdict,), of in worlds]
            sentences.append(f"Claim {number} depends on the world: it {'; '.join(parts)}.")
    return sentences


class Comparison(NamedTuple):
    """A mean difference over seeds, the half-width of its interval, and what it is between."""

    difference: float
    margin: float
    label: str

    def sign(self) -> int:
        """+1 or -1 where the interval excludes zero, else 0."""
        return 0 if abs(self.difference) <= self.margin else int(math.copysign(1, self.difference))

    def __str__(self) -> str:
        return f"{self.label} ({self.difference:+.3g} ± {self.margin:.2g})"


def compare(one: FloatArray, other: FloatArray, label: str, comparisons: int = 1, level: float = LEVEL) -> Comparison:
    """Mean of other - one, seed by seed, with a t interval, Bonferroni-corrected for the number of comparisons.

    The interval is right whether or not the seeds of the two have anything in common.

    >>> compare(np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.1]), "a to b").sign()
    1
    """
    differences = other - one
    if len(differences) < 2:
        return Comparison(float(differences.mean()), math.inf, label)
    # What rounding can produce is no difference.
    rounding = 1e-9 * float(np.abs(np.concatenate([one, other])).max())
    return Comparison(float(differences.mean()), float(half_width(differences, level / comparisons)) + rounding, label)


def compare_each(one: FloatArray, other: FloatArray, names: Sequence[str], level: float = LEVEL) -> list[Comparison]:
    """`compare`, column by column of (seeds, levels), corrected for their number."""
    return [compare(one[:, i], other[:, i], name, len(names), level) for i, name in enumerate(names)]


def trend(
    values: FloatArray,
    levels: Iterable[Any],
    direction: Literal[1, -1],
    what: str = "value",
    by: str = "level",
    *,
    parts: int = 1,
) -> Finding:
    """Do the columns of (seeds, levels) grow (or fall) from each level to the next?

    Against it speaks any step that is significantly the other way (t intervals of differences seed by seed, Bonferroni)
    and Page's trend test the other way; for it, Page's test. With none of these, the matter is within noise. The level
    of significance is shared by the `parts` of a statement.

    >>> rising = np.arange(4.0) + np.random.default_rng(0).normal(size=(30, 4))
    >>> trend(rising, "abcd", 1).verdict, trend(rising, "abcd", -1).verdict
    ('holds', 'does not hold')
    """
    level, names = LEVEL / parts, labels(levels)
    steps = compare_each(values[:, :-1], values[:, 1:], [f"{one} to {two}" for one, two in pairwise(names)], level)
    means = ", ".join(f"{name}: {_mean_and_interval(values[:, i])}" for i, name in enumerate(names))
    numbers = f"{what} by {by}: {means}"
    test = (
        f"t intervals of adjacent levels, seed by seed, and Page's trend test, {level:.2%} for all together, "
        f"{len(values)} seeds"
    )
    if not steps:
        return Finding("within noise", numbers, test, "One level shows no trend.")
    for_it, against_it = _page(values[:, ::direction]), _page(values[:, ::-direction])
    whole = compare(values[:, 0], values[:, -1], f"{names[0]} to {names[-1]}", 1, level)
    numbers += f"; from {whole}; Page's p {_small(for_it)}"
    against = ", ".join(str(step) for step in steps if step.sign() == -direction)
    if against:
        against = f"The {what} does not {'grow' if direction > 0 else 'fall'} from {by} {against}."
    elif all(step.sign() == 0 and abs(step.difference) <= 1e-6 * float(np.abs(values).max()) for step in steps):
        against = f"The {what} is the same at every {by}."
    elif against_it < 0.5 * level:
        against = f"Over all levels the {what} goes the other way (Page's test, p {_small(against_it)})."
    unclear = f"No step is significantly the other way, but Page's test has p {_small(for_it)}."
    return conclude(numbers, test, against, unclear if for_it >= 0.5 * level else "")


def width_trend(
    values: FloatArray, levels: Iterable[Any], direction: Literal[1, -1], by: str = "level", *, parts: int = 1
) -> Finding:
    """Does the confidence interval of the columns' means grow (or fall) from each level to the next?

    That of `spread`; of fewer than five seeds the deviations from a median are too much alike to be tested.
    """
    finding = trend(spread(values), levels, direction, "deviation from the median error", by, parts=parts)
    if len(values) >= _SEEDS_FOR_A_WIDTH:
        return finding
    why = f"Fewer than {_SEEDS_FOR_A_WIDTH} seeds do not tell how wide an interval is."
    return Finding("within noise", finding.numbers, finding.test, why)


def spread(values: FloatArray) -> FloatArray:
    """|e - median e| over seeds: its mean grows with the width of the confidence interval (Brown and Forsythe)."""
    deviations: FloatArray = np.abs(values - np.median(values, axis=0))
    return deviations


def _page(values: FloatArray) -> float:
    from scipy import stats

    if len(values) < 2:
        return 1.0
    if values.shape[1] < 3:  # Page's test needs three levels; of two, the t test says all
        differences = values[:, 1] - values[:, 0]
        error = float(differences.std(ddof=1)) / math.sqrt(len(differences))
        return float(stats.t.sf(differences.mean() / error, len(differences) - 1)) if error > 0 else 1.0
    # Ranks are blind to size: what rounding can produce must not be ranked.
    rounded = np.round(values / (np.abs(values).max() or 1.0), 9)
    return float(stats.page_trend_test(rounded, method="asymptotic").pvalue)


def _small(p: float) -> str:
    return "< 1e-6" if p < 1e-6 else f"= {p:.2g}"


def _mean_and_interval(values: FloatArray) -> str:
    return f"{values.mean():.3g} ± {half_width(values):.2g}"


class Exponent(NamedTuple):
    """b of error ~ x^b with its bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def fit_exponent(x: FloatArray, values: FloatArray, level: float = LEVEL) -> Exponent:
    """The slope of log mean error, of (seeds, levels), against log x; seeds are drawn with replacement.

    >>> x = np.array([1.0, 10.0, 100.0])
    >>> fit_exponent(x, 3.0 / np.sqrt(x) * np.ones((9, 1)))
    Exponent(value=-0.5, low=-0.5, high=-0.5)
    """
    logs = np.log(x) - np.log(x).mean()
    draws = np.random.default_rng(0).integers(0, len(values), (_RESAMPLES, len(values)))
    means = np.concatenate([values.mean(axis=0)[None], values[draws].mean(axis=1)])
    slopes = np.round(np.log(means) @ logs / (logs @ logs), 9)
    low, high = np.quantile(slopes[1:], [0.5 * level, 1.0 - 0.5 * level])
    return Exponent(float(slopes[0]), float(low), float(high))


def reaches(found: Exponent, rate: float, slower: float | None = None) -> Verdict:
    """Does an error fall at least at a rate?

    It does not if the whole interval is slower. It does if the whole interval is at least as fast or, where a
    `slower` rate is given that the claim improves on, faster than that one.

    >>> reaches(Exponent(-0.5, -0.6, -0.4), -1 / 3), reaches(Exponent(-0.5, -0.6, -0.4), -0.5)
    ('holds', 'within noise')
    >>> reaches(Exponent(-0.5, -0.6, -0.4), -0.5, -1 / 3), reaches(Exponent(-0.3, -0.4, -0.2), -0.5, -1 / 3)
    ('holds', 'does not hold')
    """
    if found.low > rate:
        return "does not hold"
    return "holds" if found.high <= (rate if slower is None else slower) else "within noise"


def comes_near(found: Exponent, wanted: float, slack: float) -> Verdict:
    """Is the whole interval within `slack` of the exponent that is claimed, or none of it?

    >>> comes_near(Exponent(-0.5, -0.55, -0.45), -0.5, 0.1), comes_near(Exponent(-0.5, -0.7, -0.45), -0.5, 0.1)
    ('holds', 'within noise')
    """
    if found.high < wanted - slack or found.low > wanted + slack:
        return "does not hold"
    return "holds" if wanted - slack <= found.low and found.high <= wanted + slack else "within noise"


def smaller_at_every_weight(
    weights: FloatArray, one: FloatArray, other: FloatArray, of: str, complaint: str
) -> tuple[Finding, list[Comparison]]:
    """Are the errors `other` smaller than `one`, (seeds, weights) both, at every weight?"""
    names = [f"λ = {weight:g}" for weight in weights]
    steps = compare_each(one, other, names)
    means = zip(names, one.mean(axis=0), other.mean(axis=0), strict=True)
    numbers = f"errors {of}: {', '.join(f'{name}: {first:.3g} and {second:.3g}' for name, first, second in means)}"
    test = f"t intervals at every λ, {LEVEL:.0%} for all together, {len(one)} seeds"
    against = ", ".join(str(step) for step in steps if step.sign() > 0)
    unclear = ", ".join(step.label for step in steps if step.sign() == 0)
    against = f"{complaint} at {against}." if against else ""
    unclear = f"No significant difference at {unclear}." if unclear else ""
    return conclude(numbers, test, against, unclear), steps


def together(parts: Sequence[tuple[str, Finding]]) -> Finding:
    """A statement with several parts holds if all do, and fails if one does."""
    verdicts = {finding.verdict for _, finding in parts}
    worst: Verdict = "does not hold" if "does not hold" in verdicts else "within noise"
    verdict: Verdict = worst if verdicts - {"holds"} else "holds"
    numbers = " | ".join(f"{name}: {finding.verdict} ({finding.numbers})" for name, finding in parts)
    tests = list(dict.fromkeys(finding.test for _, finding in parts))
    why = " ".join(f"{name}: {finding.why}" for name, finding in parts if finding.why)
    return Finding(verdict, numbers, "; ".join(tests), why)
