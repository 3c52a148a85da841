"""Random rows, easy and nasty, and what the referees say about them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from mpmath import mp, mpf

import robustmdp as rm
from oracles import dual, own_divergences

NAMED = (rm.ChiSquare(), rm.KL(), rm.TotalVariation(), rm.Burg(), rm.Hellinger(), rm.JensenShannon())
POWERS = (3.0, -1.0, 1.5, 0.25, 20.0, -20.0, 4.0, 1e-9, -1e-9, 1 + 1e-9, 1 - 1e-9)
DIVERGENCES = (*NAMED, *(rm.CressieRead(k) for k in POWERS))
MODES = (rm.Penalized, rm.Constrained)

# Clarabel has no opinion where t^k leaves its range, and cvxpy's power none near k = 0 and 1.
MODERATE = (*NAMED, *(rm.CressieRead(k) for k in (3.0, -1.0, 1.5, 0.25, 4.0)))

_NORMAL_FORM = {
    rm.ChiSquare(): (2.0, 2.0),
    rm.KL(): (1.0, 1.0),
    rm.Burg(): (0.0, 1.0),
    rm.Hellinger(): (0.5, 0.5),
}


class Problem(NamedTuple):
    """One row and how far the truth may be from it."""

    ambiguity: Any
    p: npt.NDArray[np.float64]
    v: npt.NDArray[np.float64]

    @property
    def scale(self) -> float:
        """max|v| on the support: what all errors are relative to."""
        return float(np.abs(self.v[self.p > 0]).max())

    def __str__(self) -> str:
        return f"rm.{self.ambiguity!r}\np = {self.p.tolist()}\nv = {self.v.tolist()}"


class Certificate(NamedTuple):
    """What a distribution is worth, in 50 digits: E_q v (plus its price) and D(q || p)."""

    objective: mpf
    divergence: mpf


def random_problem(seed: int, index: int) -> Problem:
    """Problem `index` of a stream that does not depend on how it is cut; the index walks through all divergences."""
    rng = np.random.default_rng([seed, index])
    divergence = DIVERGENCES[index % len(DIVERGENCES)]
    mode = MODES[index // len(DIVERGENCES) % 2]
    p = _probabilities(rng, _length(rng))
    v = _outcomes(rng, p)
    if p.size > 100 and mode is rm.Constrained:  # the referee merges ties, so a few outcomes keep it quick
        v = rng.choice(v[:20], size=p.size)
    support = v[p > 0]
    level = _weight(rng, float(np.ptp(support))) if mode is rm.Penalized else _radius(rng)
    return Problem(mode(divergence, level), p, v)


def moderate_problem(seed: int, index: int) -> Problem:
    """Within what an interior-point method solves to 1e-7: spread 0.1 to 10, p >= 1e-3, middling levels."""
    rng = np.random.default_rng([seed, index, 1])
    divergence = MODERATE[index % len(MODERATE)]
    mode = MODES[index // len(MODERATE) % 2]
    n = int(rng.integers(2, 12))
    p = rng.dirichlet(np.ones(n)) * (1 - 1e-3 * n) + 1e-3
    spread = 10 ** rng.uniform(-1, 1)
    v = spread * np.concatenate([[0.0, 1.0], rng.uniform(size=n - 2)]) + rng.choice([0.0, spread * rng.normal()])
    level = 10 ** (rng.uniform(-2, 2) if mode is rm.Penalized else rng.uniform(-3, 1))
    return Problem(mode(divergence, level), p / p.sum(), rng.permutation(v))


def _length(rng: np.random.Generator) -> int:
    draw = rng.uniform()
    if draw < 0.05:
        return 1
    if draw < 0.75:
        return int(rng.integers(2, 7))
    return int(rng.integers(1000, 3001)) if draw > 0.998 else int(rng.integers(7, 25))


def _probabilities(rng: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    p = rng.dirichlet(np.full(n, rng.choice([0.02, 0.2, 1.0, 1.0, 10.0])))
    if rng.uniform() < 0.3:
        p[rng.uniform(size=n) < 0.4] = 0.0
    if not p.sum() > 0:
        p[rng.integers(n)] = 1.0
    return p / p.sum()


def _outcomes(rng: np.random.Generator, p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    n = p.size
    kind = rng.choice(["normal", "uniform", "ties", "constant", "offset"], p=[0.3, 0.3, 0.2, 0.05, 0.15])
    scale = rng.choice([1.0, 1e6, 1e-9, 10 ** rng.uniform(-6, 6)])
    v = {
        "normal": lambda: scale * rng.normal(size=n),
        "uniform": lambda: scale * rng.uniform(size=n),
        "ties": lambda: scale * rng.integers(0, 3, size=n),
        "constant": lambda: np.full(n, scale * rng.normal()),
        "offset": lambda: 1e6 + 10 ** rng.uniform(-6, 2) * rng.normal(size=n),
    }[kind]()
    # What lies outside the support would show, were it ever looked at.
    v[p == 0] = rng.choice([-2.0, 2.0]) * (1.0 + np.abs(v).max())
    return v


def _weight(rng: np.random.Generator, spread: float) -> float:
    draw = rng.uniform()
    if draw < 0.06:
        return 0.0 if draw < 0.03 else math.inf
    if draw < 0.5 and spread > 0:  # where nature neither gives up nor takes all
        return float(np.clip(spread * 10 ** rng.uniform(-3, 3), 1e-8, 1e8))
    return float(10 ** rng.uniform(-8, 8))


def _radius(rng: np.random.Generator) -> float:
    draw = rng.uniform()
    if draw < 0.06:
        return 0.0 if draw < 0.03 else math.inf
    return float(10 ** (rng.uniform(-3, 1) if draw < 0.5 else rng.uniform(-10, 8)))


def normal_form(divergence: Any, context: Any = mp) -> tuple[dual.Conjugate, float]:
    """The oracle's f with f'(1) = 0 and the factor that makes it ours, for numbers of a context of mpmath."""
    if isinstance(divergence, rm.Divergence):
        return own_divergences.normal_form(divergence, context)
    if isinstance(divergence, rm.TotalVariation):
        return dual.total_variation(context), 1.0
    if isinstance(divergence, rm.JensenShannon):
        return dual.jensen_shannon(context), 1.0
    k, scale = (divergence.k, 1.0) if isinstance(divergence, rm.CressieRead) else _NORMAL_FORM[divergence]
    return dual.power(k, context), scale


def _merged(problem: Problem) -> tuple[list[float], list[float]]:
    """The support with ties merged: f is convex, so successors of equal value share their mass in proportion to p."""
    masses: dict[float, list[float]] = {}
    for a, x in zip(problem.p.tolist(), problem.v.tolist(), strict=True):
        if a > 0:
            masses.setdefault(x, []).append(a)
    return [math.fsum(a) for a in masses.values()], list(masses)


def reference(problem: Problem) -> mpf:
    """The exact value, from the mpmath dual; at the boundary levels the mean or the minimum over the support."""
    ambiguity, level = problem.ambiguity, problem.ambiguity.level
    p, v = _merged(problem)
    penalized = isinstance(ambiguity, rm.Penalized)
    if level == (math.inf if penalized else 0.0):
        return mp.fsum(mpf(a) * mpf(x) for a, x in zip(p, v, strict=True)) / mp.fsum(mpf(a) for a in p)
    if level == (0.0 if penalized else math.inf):
        return mpf(min(v))
    if isinstance(ambiguity.divergence, rm.TotalVariation):
        return (dual.total_variation_penalized if penalized else dual.total_variation_constrained)(p, v, level)
    conjugate, scale = normal_form(ambiguity.divergence)
    return (dual.penalized if penalized else dual.constrained)(conjugate, p, v, level, scale)


def certify(problem: Problem, distribution: npt.NDArray[np.float64]) -> Certificate:
    """What `distribution` is worth to nature, by the definition of D alone."""
    ambiguity = problem.ambiguity
    support = np.flatnonzero(problem.p)
    p = [mpf(float(problem.p[i])) for i in support]
    total = mp.fsum(p)
    p = [a / total for a in p]
    q = [mpf(float(distribution[i])) for i in support]
    mean = mp.fsum(b * mpf(float(problem.v[i])) for b, i in zip(q, support, strict=True))
    if isinstance(ambiguity.divergence, rm.TotalVariation):
        divergence = mp.fsum(abs(b - a) for a, b in zip(p, q, strict=True)) / 2
    else:
        conjugate, scale = normal_form(ambiguity.divergence)
        divergence = mpf(scale) * mp.fsum(a * conjugate.f(b / a) for a, b in zip(p, q, strict=True))
    if isinstance(ambiguity, rm.Constrained) or ambiguity.level in (0.0, math.inf):
        return Certificate(mean, divergence)
    return Certificate(mean + mpf(ambiguity.level) * divergence, divergence)
