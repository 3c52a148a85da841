"""Bounds of every family of sets under every criterion: a small part of `verify_worlds.py`."""

from __future__ import annotations

import pytest

import verify_worlds

SEED = 1  # other worlds than those of `make verify`
COUNTS = {"horizon": 3, "total": 6, "reach": 6}


@pytest.mark.parametrize("family", verify_worlds.ALL)
@pytest.mark.parametrize("criterion", COUNTS)
def test_bounds_hold(criterion: str, family: str) -> None:
    judge = verify_worlds.JUDGES[criterion]
    verdicts = [verdict for index in range(COUNTS[criterion]) for verdict in judge(family, SEED, index)]
    assert [failure for verdict in verdicts for failure in verdict.failures] == []
    assert sum(verdict.width > 0.0 for verdict in verdicts) >= len(verdicts) // 3  # of the rest, many are infinite
