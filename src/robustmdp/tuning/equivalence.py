"""Theorem 3.1: a penalty and a radius that give the same value."""

from __future__ import annotations

import math

import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp.ambiguity import Ambiguity, Constrained, Penalized
from robustmdp.models import MDP
from robustmdp.models.labels import distribution
from robustmdp.planning.solving import solve_or_raise
from robustmdp.tuning.units import Units

_TOL = 1e-10
_LEVEL_TOLERANCE = 1e-8


def matching_radius(mdp: MDP, ambiguity: Ambiguity, initial: npt.ArrayLike, *, threads: int | None = None) -> float:
    """The radius rho with V_constrained(initial) = V_penalized(initial) (Theorem 3.1), in [0, inf].

    Parameters
    ----------
    mdp : MDP
    ambiguity : Penalized, with one weight
    initial : a state by number or name, or (S,) probabilities of the first state
        The matching level depends on it. Where many radii match, the least robust one is returned.

    >>> from robustmdp import ChiSquare, Penalized, problems
    >>> world = problems.two_state(0.5, 0.9)
    >>> matching_radius(world, Penalized(ChiSquare(), float("inf")), 0)
    0.0
    """
    _types.check_arguments(matching_radius, locals())
    if not getattr(ambiguity, "has_weight", False):
        _checks.refuse_type("ambiguity", "Penalized(...) to have a matching radius", ambiguity)
    return _Search(mdp, ambiguity, initial, threads).level(Constrained)


def matching_weight(mdp: MDP, ambiguity: Ambiguity, initial: npt.ArrayLike, *, threads: int | None = None) -> float:
    """The weight lambda with V_penalized(initial) = V_constrained(initial) (Theorem 3.1), in [0, inf].

    0.0 once the ball contains the worst point mass. Parameters as in `matching_radius`.

    >>> from robustmdp import ChiSquare, Constrained, problems
    >>> world = problems.two_state(0.5, 0.9)
    >>> matching_weight(world, Constrained(ChiSquare(), 10.0), 0)
    0.0
    """
    _types.check_arguments(matching_weight, locals())
    if not getattr(ambiguity, "has_radius", False):
        _checks.refuse_type("ambiguity", "Constrained(...) to have a matching weight", ambiguity)
    search = _Search(mdp, ambiguity, initial, threads)
    return search.unit * search.level(Penalized)


class _Search:
    """Bisection for the level of the other form; values are monotone in it.

    It runs in units in which rewards lie in [-1, 1], around 0 where no episode ends: a weight is a multiple of `unit`.
    """

    def __init__(self, mdp: MDP, given: Ambiguity, initial: npt.ArrayLike, threads: int | None) -> None:
        _checks.must(
            isinstance(given.level, float), f"{given.level_name} must be one number to have a match: got an array"
        )
        _checks.must(
            mdp.discount > 0.0, "discount must be above 0 for levels to match: at 0 a penalty costs nature nothing"
        )
        self.divergence, self.threads = given.divergence, threads
        self.start = distribution(mdp, initial)
        units = Units.of(mdp)
        self.mdp, self.unit = units.standardise(mdp), units.unit
        given_form, unit = (Penalized, self.unit) if given.has_weight else (Constrained, 1.0)
        self.wanted, error = self._value(given_form(self.divergence, given.level / unit))
        # Two values closer than their certified errors are the same value.
        self.same = 4.0 * error

    def _value(self, ambiguity: Ambiguity) -> tuple[float, float]:
        solution = solve_or_raise(self.mdp, ambiguity, tol=_TOL, threads=self.threads)
        return float(self.start @ solution.value), solution.error_bound

    def _excess(self, form: type[Penalized] | type[Constrained], level: float) -> float:
        return self._value(form(self.divergence, level))[0] - self.wanted

    def level(self, form: type[Penalized] | type[Constrained]) -> float:
        """The least robust level that matches: the smallest radius, or the largest weight."""
        robust, nominal = (math.inf, 0.0) if form.has_radius else (0.0, math.inf)
        if abs(self._excess(form, nominal)) <= self.same:
            return nominal
        if self._excess(form, robust) >= -self.same:
            return self._least_robust_minimum(form)
        return self._bisect(form, *self._bracket(form))

    def _bracket(self, form: type[Penalized] | type[Constrained]) -> tuple[float, float]:
        """Levels (too robust, not robust enough) around the match."""
        away = 10.0 if form.has_radius else 0.1
        level = 1.0
        direction = away if self._excess(form, level) > 0 else 1.0 / away
        while True:
            following = level * direction
            if not 1e-300 < following < 1e300:
                return (level, level)
            excess = self._excess(form, following)
            if direction == away and excess <= 0:
                return following, level
            if direction != away and excess >= 0:
                return level, following
            level = following

    def _bisect(self, form: type[Penalized] | type[Constrained], robust: float, nominal: float) -> float:
        """Brent's method on the logarithm of the level."""
        from scipy.optimize import brentq

        if robust == nominal:
            return robust
        low, high = sorted((math.log(robust), math.log(nominal)))
        root = brentq(lambda log: self._excess(form, math.exp(log)), low, high, xtol=_LEVEL_TOLERANCE, rtol=1e-12)
        return math.exp(root)

    def _least_robust_minimum(self, form: type[Penalized] | type[Constrained]) -> float:
        """The value is the minimum over the support: weight 0, or the smallest radius that reaches it."""
        if form.has_weight:
            return 0.0
        low, high = 1e-12, 1.0
        while self._excess(form, high) > self.same:
            low, high = high, 10.0 * high
            if high > 1e300:
                return math.inf
        while high > low * (1.0 + _LEVEL_TOLERANCE):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self._excess(form, middle) > self.same else (low, middle)
        return high
