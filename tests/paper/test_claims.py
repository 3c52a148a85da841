"""The tests behind the claims: what they find, what they leave open, and how often they are wrong where nothing is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from robustmdp.paper import claims, curves
from robustmdp.paper.claims import (
    LEVEL,
    Claim,
    Finding,
    as_table,
    compare,
    dependence,
    spread,
    together,
    trend,
    width_trend,
)
from robustmdp.table import Table

LABELS = "abcdefg"


def rng(*key: int) -> np.random.Generator:
    return np.random.default_rng([2302, 1248, *key])


def noise(seeds: int, levels: int, *key: int) -> np.ndarray:
    return 10.0 + rng(*key, seeds, levels).normal(size=(seeds, levels))


def most(share: float, trials: int) -> float:
    """A share of trials that chance exceeds in less than one of ten thousand cases: four standard errors."""
    return share + 4.0 * math.sqrt(share * (1.0 - share) / trials)


# Trends.


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("levels", [2, 3, 7])
def test_a_clear_trend_holds_one_way_and_fails_the_other(levels: int, direction: Any) -> None:
    values = noise(30, levels) + 2.0 * direction * np.arange(levels)
    found = trend(values, LABELS[:levels], direction)
    assert (found.verdict, found.why) == ("holds", "")
    assert all(f"{label}: {values[:, i].mean():.3g}" in found.numbers for i, label in enumerate(LABELS[:levels]))
    opposite = trend(values, LABELS[:levels], -direction)
    assert opposite.verdict == "does not hold"
    assert f"does not {'fall' if direction > 0 else 'grow'} from" in opposite.why
    assert "a to b" in opposite.why


def test_one_step_back_is_named() -> None:
    found = trend(noise(30, 4) + np.array([0.0, 3.0, 1.0, 4.0]), "abcd", 1)
    assert found.verdict == "does not hold"
    assert "b to c" in found.why
    assert "a to b" not in found.why
    assert "c to d" not in found.why


@pytest.mark.parametrize("seeds", [2, 3, 30])
def test_noise_is_within_noise(seeds: int) -> None:
    found = trend(noise(seeds, 4), "abcd", 1)
    assert found.verdict == "within noise"
    assert "p = " in found.why


@pytest.mark.parametrize("values", [np.full((5, 3), 7.0), np.full((5, 3), 0.0), np.repeat(noise(5, 1), 3, axis=1)])
@pytest.mark.parametrize("direction", [1, -1])
def test_what_is_equal_everywhere_shows_no_trend(values: np.ndarray, direction: Any) -> None:
    found = trend(values, "abc", direction)
    assert found.verdict == "does not hold"
    assert "is the same at every level" in found.why


def test_what_rounding_makes_is_no_trend() -> None:
    values = 7.0 + 1e-14 * np.arange(3) * np.ones((20, 1))
    assert "is the same at every level" in trend(values, "abc", 1).why


def test_one_level_shows_nothing() -> None:
    found = trend(noise(9, 1), "a", 1)
    assert (found.verdict, found.why) == ("within noise", "One level shows no trend.")


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_one_seed_shows_nothing(levels: int) -> None:
    found = trend(np.arange(float(levels))[None], LABELS[:levels], 1)
    assert found.verdict == "within noise"
    assert found.why


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize("levels", [2, 3, 7])
def test_one_or_two_seeds_say_nothing_about_a_width(seeds: int, levels: int) -> None:
    # Of two seeds both are as far from their median: the differences of widths have no spread of their own.
    errors = noise(seeds, levels) * np.arange(1.0, levels + 1)
    assert width_trend(errors, LABELS[:levels], 1).verdict == "within noise"
    assert width_trend(errors, LABELS[:levels], -1).verdict == "within noise"


def test_spread_is_the_distance_from_the_median_of_a_level() -> None:
    values = np.array([[1.0, 10.0], [2.0, 20.0], [9.0, 60.0]])
    assert spread(values).tolist() == [[1.0, 10.0], [0.0, 0.0], [7.0, 40.0]]


def test_a_width_that_grows_is_found() -> None:
    values = (noise(100, 4) - 10.0) * np.array([1.0, 2.0, 4.0, 8.0])
    assert width_trend(values, "abcd", 1).verdict == "holds"
    assert width_trend(values, "abcd", -1).verdict == "does not hold"


def verdicts(trials: int, seeds: int, levels: int, of: Callable[..., Finding], shared: float) -> Counter:
    """Verdicts where all levels have one law; `shared` is noise that is common to the levels of a seed."""
    draws = rng(seeds, levels, round(shared))
    found: Counter = Counter()
    for _ in range(trials):
        values = 10.0 + draws.normal(size=(seeds, levels)) + shared * draws.normal(size=(seeds, 1))
        found[of(values, LABELS[:levels], 1).verdict] += 1
    return found


@pytest.mark.parametrize(
    ("seeds", "levels", "of", "shared"),
    [
        (3, 7, trend, 0.0),
        (10, 2, trend, 3.0),
        (30, 7, trend, 3.0),
        (5, 7, width_trend, 3.0),
        (10, 2, width_trend, 3.0),
        (100, 7, width_trend, 0.0),
    ],
    ids=lambda thing: getattr(thing, "__name__", thing),
)
def test_where_nothing_is_verdicts_are_rare(seeds: int, levels: int, of: Any, shared: float) -> None:
    trials = 300
    found = verdicts(trials, seeds, levels, of, shared)
    assert found["holds"] / trials <= most(LEVEL, trials)
    # One side of two-sided intervals.
    assert found["does not hold"] / trials <= most(LEVEL / 2, trials)


# Intervals.


@pytest.mark.parametrize("comparisons", [1, 6])
@pytest.mark.parametrize("seeds", [2, 5, 50])
def test_intervals_cover_the_true_difference(seeds: int, comparisons: int) -> None:
    trials, draws, covered = 300, rng(seeds, comparisons), 0
    for _ in range(trials):
        one = draws.normal(size=seeds)
        other = one + 0.7 + 0.3 * draws.normal(size=seeds)
        found = compare(one, other, "", comparisons)
        covered += abs(found.difference - 0.7) <= found.margin
    assert 1.0 - covered / trials <= most(LEVEL / comparisons, trials)
    assert 1.0 - covered / trials >= LEVEL / comparisons - (most(LEVEL / comparisons, trials) - LEVEL / comparisons)


def test_an_interval_is_that_of_the_textbook() -> None:
    found = compare(np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 2.0, 5.0, 5.0]), "x to y")
    # Differences 1, 0, 2, 1: mean 1, deviation sqrt(2/3), t(0.975, 3) = 3.182446.
    assert found.difference == 1.0
    assert found.margin == pytest.approx(3.182446305 * math.sqrt(2 / 3) / 2, rel=1e-8)
    assert all(part in str(found) for part in ("x to y", "+1 ± 1.3"))
    assert found.sign() == 0


def test_one_seed_has_no_interval() -> None:
    found = compare(np.array([1.0]), np.array([5.0]), "x to y")
    assert (found.difference, found.margin, found.sign()) == (4.0, math.inf, 0)


@pytest.mark.parametrize(("difference", "sign"), [(1.0, 1), (-1.0, -1), (0.0, 0), (1e-12, 0)])
def test_a_constant_difference_has_its_sign_unless_it_is_rounding(difference: float, sign: int) -> None:
    one = noise(5, 1)[:, 0]
    assert compare(one, one + difference, "").sign() == sign


# Several parts, several worlds.

HOLDS = Finding("holds", "1", "by sight")
FAILS = Finding("does not hold", "2", "by sight", "It is not so.")
OPEN = Finding("within noise", "3", "by chance", "Who knows.")


@pytest.mark.parametrize(
    ("parts", "verdict", "why"),
    [
        ([HOLDS, HOLDS], "holds", ""),
        ([HOLDS, OPEN], "within noise", "b: Who knows."),
        ([OPEN, FAILS], "does not hold", "a: Who knows. b: It is not so."),
        ([FAILS, HOLDS], "does not hold", "a: It is not so."),
    ],
)
def test_a_statement_holds_with_all_its_parts(parts: list[Finding], verdict: str, why: str) -> None:
    found = together(list(zip("ab", parts, strict=True)))
    assert (found.verdict, found.why) == (verdict, why)
    assert found.numbers == " | ".join(f"{x}: {p.verdict} ({p.numbers})" for x, p in zip("ab", parts, strict=True))
    assert found.test == "; ".join(dict.fromkeys(part.test for part in parts))


def test_the_table_of_claims() -> None:
    made = [Claim(3, "here", 0.8, FAILS), Claim(1, "there", 0.8, HOLDS), Claim(3, "here", 0.6, OPEN)]
    table = as_table(made)
    assert list(table.columns) == [
        "claim",
        "statement",
        "stay",
        "setting",
        "verdict",
        "numbers",
        "test",
        "explanation",
    ]
    assert list(zip(table["claim"].tolist(), table["stay"].tolist(), strict=True)) == [(1, 0.8), (3, 0.6), (3, 0.8)]
    assert table.where(claim=3, stay=0.8)["explanation"].tolist() == ["It is not so."]
    assert table["statement"][0] == claims.STATEMENTS[1]


def test_no_claims_are_a_table_too() -> None:
    assert len(as_table([])) == 0
    assert dependence(as_table([])) == []


def test_where_verdicts_depend_on_the_world() -> None:
    made = [Claim(3, "", 0.8, FAILS), Claim(3, "", 0.6, HOLDS), Claim(3, "", 0.7, HOLDS), Claim(4, "", 0.8, HOLDS)]
    assert dependence(as_table(made)) == [
        "Claim 3 depends on the world: it does not hold for stay 0.8; holds for stay 0.6, 0.7."
    ]


# Curves.


def test_a_matrix_has_a_row_for_each_seed() -> None:
    from robustmdp.table import Table

    table = Table.of(seed=[1, 0, 0, 1], step=[5, 5, 2, 2], error=[4.0, 2.0, 1.0, 3.0])
    levels, values = curves.by_seed(table, "step")
    assert levels.tolist() == [2.0, 5.0]
    assert values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_band_is_a_confidence_interval() -> None:
    values = np.array([[1.0], [2.0], [3.0], [6.0]])
    mean, low, high = curves.band(values)
    margin = 3.182446305 * math.sqrt(14 / 3) / 2
    assert (mean[0], low[0], high[0]) == pytest.approx((3.0, 3.0 - margin, 3.0 + margin), rel=1e-8)


@pytest.mark.parametrize(
    ("y", "share", "time"),
    [
        ([1.0, 0.1, 0.01], 0.1, 1.0),
        ([1.0, 0.1, 0.01], 0.01, 2.0),
        ([4.0, 1.0, 3.0], 0.5, 2.0),  # it comes back
        ([1.0, 0.9, 0.8], 0.5, 2.0),  # never: the last
        ([1.0, 2.0, 0.0], 0.5, 2.0),  # nothing left
    ],
)
def test_the_time_after_which_a_share_of_the_first_value_is_enough(y: list[float], share: float, time: float) -> None:
    assert curves.time_below(np.array([0.0, 1.0, 2.0]), np.array(y), share) == time


def test_rows_that_are_missing_are_not_made_up() -> None:
    table = Table.of(seed=[0, 0, 1, 1, 2, 2], step=[1, 2, 1, 3, 1, 2], error=np.arange(6.0))
    with pytest.raises(ValueError, match="every seed must have one row per step, 3 times 3: got 6"):
        curves.by_seed(table, "step")


def test_a_steady_drift_the_other_way_is_seen() -> None:
    values = noise(60, 7) - 0.1 * np.arange(7)
    found = trend(values, LABELS, 1)
    assert found.verdict == "does not hold"
