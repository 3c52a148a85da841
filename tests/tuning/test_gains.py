"""Intervals of what a policy gains, by simulation: how often they hold the truth, and how often nothing is a gain."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from robustmdp.tuning.gains import FEWEST, paired_gains
from robustmdp.tuning.trials import worst_tenth

RUNS = 300
# Of 300 intervals that cover 0.95, fewer than this share hold the truth with probability 1e-3.
FEWEST_HELD = 0.95 + norm.ppf(1e-3) * np.sqrt(0.95 * 0.05 / RUNS)
TAIL = -norm.pdf(norm.ppf(0.1)) / 0.1  # the mean of the worst tenth of a standard normal


def simulated(count: int, spread: float, correlation: float) -> np.ndarray:
    """Low and high ends of the intervals of the mean and of the worst tenth, (RUNS, 2, 2), less the truths.

    Values of two policies are normal and correlated, with means 0 and -0.1.
    """
    rng = np.random.default_rng(count)
    found = []
    for run in range(RUNS):
        common, own = rng.standard_normal((2, count))
        robust = -0.1 + spread * (correlation * common + np.sqrt(1 - correlation**2) * own)
        mean, tail = paired_gains(robust[None], common, 0.95, seed=run)
        found.append([[mean.low[0], mean.high[0]], [tail.low[0], tail.high[0]]])
    truth = np.array([-0.1, -0.1 + (spread - 1.0) * TAIL])
    return np.array(found) - truth[:, None]


@pytest.mark.parametrize(("count", "spread", "correlation"), [(FEWEST, 0.8, 0.95), (50, 0.8, 0.95), (100, 1.0, 0.5)])
def test_intervals_cover(count: int, spread: float, correlation: float) -> None:
    ends = simulated(count, spread, correlation)
    held = (ends[..., 0] <= 0.0) & (ends[..., 1] >= 0.0)
    assert (held.mean(axis=0) >= FEWEST_HELD).all()
    # What is worth nothing is taken for a gain in 1 of 40 cases, and a little more for small tails.
    assert (ends[..., 0] > 0.0).mean(axis=0).max() <= 0.025 - norm.ppf(1e-3) * np.sqrt(0.025 * 0.975 / RUNS)


def test_resamples_are_paired() -> None:
    """A constant gain has an interval of no width, however much worlds differ."""
    reference = np.random.default_rng(0).normal(0.0, 100.0, 60)
    mean, tail = paired_gains(np.stack([reference + 1.0, reference]), reference, 0.95, seed=0)
    for interval in (mean, tail):
        np.testing.assert_allclose(interval.estimate, [1.0, 0.0], atol=1e-12)
        np.testing.assert_allclose(interval.low, [1.0, 0.0], atol=1e-11)
        np.testing.assert_allclose(interval.high, [1.0, 0.0], atol=1e-11)


def test_resampled_tails_by_hand() -> None:
    """Student's t times the standard deviation over the same resamples, one by one."""
    rng = np.random.default_rng(1)
    values, reference = rng.normal(size=(2, 25))
    _, tail = paired_gains(values[None], reference, 0.9, seed=7)
    counts = np.random.default_rng(7).multinomial(25, np.full(25, 0.04), 1000)
    drawn = [worst_tenth(np.repeat(values, each)) - worst_tenth(np.repeat(reference, each)) for each in counts]
    reach = 2.353363 * np.std(drawn)  # t at 0.95 with 3 degrees of freedom: three worlds are the worst tenth
    assert tail.estimate[0] == pytest.approx(worst_tenth(values) - worst_tenth(reference), abs=1e-12)
    assert tail.high[0] - tail.estimate[0] == pytest.approx(reach, rel=1e-6)


def test_few_worlds_have_no_interval() -> None:
    reference = np.arange(FEWEST - 1.0)
    mean, tail = paired_gains(reference[None] + 1.0, reference, 0.95, seed=0)
    assert mean.estimate[0] == tail.estimate[0] == 1.0
    assert np.isnan([mean.low, mean.high, tail.low, tail.high]).all()
