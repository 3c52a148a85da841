"""Checks for the tests of those who add a set or a divergence; each raises AssertionError with one sentence."""

from robustmdp.testing.divergences import check_divergence as check_divergence
from robustmdp.testing.sets import check_set as check_set
