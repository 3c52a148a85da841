"""Divergences as a user would write them, and the conjugates by which the referee knows them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import robustmdp as rm
from oracles import dual

_SHIFT = 1e5


class OwnDivergence(NamedTuple):
    """Functions of one number for `rm.Divergence`; the referee's f, which is theirs up to a multiple of t - 1."""

    conjugate: Callable[[float], float]
    conjugate_derivative: Callable[[float], float]
    slope_at_infinity: float
    referee: Callable[..., dual.Conjugate]
    scale: float = 1.0


def _shifted_kl(s: float) -> float:
    return math.exp(s - _SHIFT - 1.0) + _SHIFT


def _shifted_kl_derivative(s: float) -> float:
    return math.exp(s - _SHIFT - 1.0)


def _kl(s: float) -> float:
    return math.exp(s - 1.0)


def _quadratic(s: float) -> float:
    return s + 0.25 * s * s if s > -2.0 else -1.0


def _quadratic_derivative(s: float) -> float:
    return 1.0 + 0.5 * s if s > -2.0 else 0.0


def _hellinger(s: float) -> float:
    return s / (1.0 - s)


def _hellinger_derivative(s: float) -> float:
    return 1.0 / ((1.0 - s) * (1.0 - s))


def _huber(s: float) -> float:
    return s + 0.25 * s * s if s >= -1.0 else -0.75


def _huber_derivative(s: float) -> float:
    return 1.0 + 0.5 * s if s >= -1.0 else 0.0


def _kinked(s: float) -> float:
    beyond = max(abs(s) - 1.0, 0.0)
    return s + 0.25 * beyond * beyond if s >= -3.0 else -2.0


def _kinked_derivative(s: float) -> float:
    if s > 1.0:
        return 1.0 + 0.5 * (s - 1.0)
    return 1.0 if s >= -1.0 else max(1.0 + 0.5 * (s + 1.0), 0.0)


def _flat(s: float) -> float:
    if s > 0.0:
        return 1.5 * s + 0.25 * s * s
    return 0.5 * s + 0.25 * s * s if s >= -1.0 else -0.25


def _flat_derivative(s: float) -> float:
    return 1.5 + 0.5 * s if s > 0.0 else max(0.5 + 0.5 * s, 0.0)


OWN: dict[str, OwnDivergence] = {
    "t log t": OwnDivergence(_kl, _kl, math.inf, partial(dual.power, 1.0)),
    "t log t + 1e5 (t-1)": OwnDivergence(_shifted_kl, _shifted_kl_derivative, math.inf, partial(dual.power, 1.0)),
    "(t-1)^2": OwnDivergence(_quadratic, _quadratic_derivative, math.inf, partial(dual.power, 2.0), 2.0),
    "(sqrt t - 1)^2": OwnDivergence(_hellinger, _hellinger_derivative, 1.0, partial(dual.power, 0.5), 0.5),
    "Huber": OwnDivergence(_huber, _huber_derivative, 1.0, dual.huber),
    "|t-1| + (t-1)^2": OwnDivergence(_kinked, _kinked_derivative, math.inf, dual.kinked),
    "flat at 1": OwnDivergence(_flat, _flat_derivative, math.inf, dual.flat),
}


def build(name: str) -> rm.Divergence:
    """The divergence as a user makes it; a ValueError where the package refuses it."""
    own = OWN[name]
    return rm.Divergence(name, own.conjugate, own.conjugate_derivative, slope_at_infinity=own.slope_at_infinity)


def normal_form(divergence: Any, context: Any) -> tuple[dual.Conjugate, float]:
    """The referee's f with f'(1) = 0 and the factor that makes it the user's."""
    own = OWN[divergence.name]
    return own.referee(context=context), own.scale
