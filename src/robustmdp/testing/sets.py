"""What must hold for the worst case of a row, whatever the set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity, check_ambiguity, worst_case

_EPS = float(np.finfo(np.float64).eps)
_MASS = 1e-9  # what a distribution may be off by: its sum, or its divergence from the model
_SHIFTS = (-3.0, 1.0, 1000.0)


def check_set(
    set: Any,
    *,
    p: npt.ArrayLike | None = None,
    nominal: Any = None,
    unlimited: Any = None,
    tol: float = 1e-6,
    seed: int = 0,
) -> None:
    """Check the worst cases w(v) = inf over P of E_P v + payment that a set answers, on rows drawn at random.

    - min v <= w(v) <= E v, the minimum over the successors that can have mass.
    - Nature's distribution is at least 0 and sums to 1, and attains w(v) with what it pays: nothing within the radius
      of a ball, weight * divergence under a penalty.
    - The lower bound is below w(v) by at most `tol` times the largest outcome, and it bounds as well what the
      distributions are worth that nature chose for other outcomes.
    - w is monotone, 1-Lipschitz, and w(v + c) = w(v) + c.

    For a set that helps, everything is said of -v. Raises AssertionError with the property that fails, and its numbers.

    Parameters
    ----------
    set : a set with one level
    p : (n,) probabilities, optional
        A row that the set is for, where it has numbers of its own for states or transitions; by default many rows.
    nominal, unlimited : sets, optional
        The same at the levels at which nature has no choice, and every one: w(v) = E v and w(v) = min v.

    >>> import robustmdp as rm
    >>> check_set(rm.L1(0.1), nominal=rm.L1(0.0), unlimited=rm.L1(2.0))
    """
    rows = list(_draw_rows(np.random.default_rng(seed)) if p is None else [_checks.numbers("p", p)])
    for number, row in enumerate(rows):
        rng = np.random.default_rng((seed, number))
        _Row(check_ambiguity(set), row, tol).check(rng)
        for limit, is_nominal in ((nominal, True), (unlimited, False)):
            if limit is not None:
                _Row(check_ambiguity(limit), row, tol).check_limit(rng, is_nominal)


def _draw_rows(rng: np.random.Generator) -> Iterator[FloatArray]:
    """A few successors: likely, unlikely and impossible ones."""
    for n in (1, 2, 3, 5, 8):
        yield np.full(n, 1.0 / n)
        for concentration in (1.0, 0.1):
            row = rng.dirichlet(np.full(n, concentration))
            if n > 2:
                row[rng.integers(n)] = 0.0
            yield row / row.sum()


def _draw_outcomes(n: int, rng: np.random.Generator) -> list[FloatArray]:
    """Different, equal, with ties at the minimum, and large outcomes."""
    plain = rng.normal(size=n)
    return [plain, rng.normal(size=n), np.full(n, 0.3), np.floor(3.0 * rng.random(n)), 1e4 * rng.normal(size=n)]


class _Answer:
    """Nature's answer to outcomes z, in the form of a minimum."""

    def __init__(self, set: Ambiguity, p: FloatArray, z: FloatArray) -> None:
        try:
            answer = worst_case(set, p, set.sign * z)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"{error}; p = {p.tolist()}, v = {(set.sign * z).tolist()}") from error
        self.z, self.q, self.gap = z, answer.distribution, answer.gap
        self.value = set.sign * answer.value
        self.rounding = (4.0 * z.size + 64.0) * _EPS * float(np.abs(z).max())
        self.paid = self.value - float(self.q @ z)

    @property
    def lower(self) -> float:
        return self.value - self.gap


class _Row:
    """A set at one row of a model."""

    def __init__(self, set: Ambiguity, p: FloatArray, tol: float) -> None:
        self.set, self.p, self.tol = set, p, tol
        self.support = set.kernel_for_row(p)[1]
        self.size = int(p.size)

    def check(self, rng: np.random.Generator) -> None:
        answers = [_Answer(self.set, self.p, z) for z in _draw_outcomes(self.size, rng)]
        for answer in answers:
            self._check_range(answer)
            self._check_distribution(answer)
            self._check_payment(answer)
            self._check_change(answer, rng)
        for one in answers:
            for other in answers:
                self._check_bound(one, other)

    def check_limit(self, rng: np.random.Generator, is_nominal: bool) -> None:
        for z in _draw_outcomes(self.size, rng):
            answer = _Answer(self.set, self.p, z)
            wanted = float(self.p @ z) if is_nominal else float(z[self.support].min())
            what = "no choice must give the mean" if is_nominal else "every choice must give the least outcome"
            self._must(abs(answer.value - wanted) <= answer.gap + answer.rounding, f"{what} {wanted:.9g}", answer)

    def _check_range(self, answer: _Answer) -> None:
        least, mean = float(answer.z[self.support].min()), float(self.p @ answer.z)
        self._must(
            least - answer.rounding <= answer.value <= mean + answer.rounding + answer.gap,
            f"value must lie between the least outcome {least:.9g} and the mean {mean:.9g}",
            answer,
        )
        largest = self.tol * max(float(np.abs(answer.z).max()), 1e-300) + answer.rounding
        self._must(
            -answer.rounding <= answer.gap <= largest,
            f"lower bound must be at most {largest:.3g} below the value: it is {answer.gap:.9g} below",
            answer,
        )

    def _check_distribution(self, answer: _Answer) -> None:
        q, total = answer.q, float(answer.q.sum())
        self._must(bool((q >= 0.0).all()), f"distribution must be at least 0: got {q.min():.9g}", answer)
        self._must(abs(total - 1.0) <= _MASS, f"distribution must sum to 1: got {total:.12g}", answer)

    def _check_payment(self, answer: _Answer) -> None:
        slack = answer.gap + answer.rounding
        self._must(answer.paid >= -slack, f"distribution must attain the value: it misses {-answer.paid:.9g}", answer)
        if not (self.set.has_weight or self.set.has_radius):
            return
        known = self.p > 0.0
        distance = float(self.p[known] @ self.set.divergence.f(answer.q[known] / self.p[known]))
        level = float(np.asarray(self.set.level))
        price = level * distance if self.set.has_weight and distance > 0.0 else 0.0
        self._must(
            abs(answer.paid - price) <= slack + _MASS * price,
            f"nature must pay {price:.9g} for its distribution: it pays {answer.paid:.9g}",
            answer,
        )
        self._must(
            self.set.has_weight or distance <= level * (1.0 + _MASS) + _MASS,
            f"distribution must be within the radius {level:.9g}: its divergence is {distance:.12g}",
            answer,
        )

    def _check_change(self, answer: _Answer, rng: np.random.Generator) -> None:
        """What a change of the outcomes may change."""
        for shift in _SHIFTS:
            moved = _Answer(self.set, self.p, answer.z + shift)
            slack = answer.gap + moved.gap + answer.rounding + moved.rounding
            wanted = answer.value + shift
            self._must(
                abs(moved.value - wanted) <= slack,
                f"value must grow with the outcomes by {shift:g}, to {wanted:.12g}: got {moved.value:.12g}",
                answer,
            )
        amounts = rng.exponential(size=self.size)
        self._check_rise(answer, amounts)
        self._check_rise(answer, np.where(answer.z == answer.z.max(), amounts, 0.0))

    def _check_rise(self, answer: _Answer, step: FloatArray) -> None:
        raised = _Answer(self.set, self.p, answer.z + step)
        slack = answer.gap + raised.gap + answer.rounding + raised.rounding
        change, most = raised.value - answer.value, float(step.max())
        rise = f"where outcomes rise by {step.tolist()}"
        self._must(change >= -slack, f"value must not fall {rise}: it changes by {change:.9g}", answer)
        self._must(change <= most + slack, f"value must rise by at most {most:.9g} {rise}: got {change:.9g}", answer)

    def _check_bound(self, answer: _Answer, other: _Answer) -> None:
        """What nature did elsewhere it can do here."""
        reached = other.paid + float(other.q @ answer.z)
        slack = other.gap + answer.rounding + other.rounding + _MASS * float(np.ptp(answer.z))
        self._must(
            answer.lower <= reached + slack,
            f"lower bound {answer.lower:.12g} must hold for every distribution of the set: the one for "
            f"{other.z.tolist()} is worth {reached:.12g}",
            answer,
        )

    def _must(self, holds: bool, sentence: str, answer: _Answer) -> None:
        if not holds:
            helps = " with outcomes negated, as nature helps" if self.set.sign < 0.0 else ""
            raise AssertionError(
                f"worst_case of {self.set!r}{helps}: {sentence}; value {answer.value:.12g} at p = {self.p.tolist()}, "
                f"v = {answer.z.tolist()}"
            )
