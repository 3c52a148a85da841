"""Step sizes: min(cap, scale * (offset + slope n)^-power), where n counts from 0.

Every schedule is a small record that knows its formula; `resolve` turns it into the few numbers that a kernel takes.
What n counts is the learner's choice: visits of the pair, or iterations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from robustmdp import _checks, _types
from robustmdp.divergences import ChiSquare, FDivergence


class Numbers(NamedTuple):
    """A schedule as compiled code sees it: min(cap, scale * (offset + slope n)^-power).

    Where `per_weight` is positive the size is multiplied by it and by the pair's weight in normal form.
    """

    scale: float
    offset: float
    slope: float
    power: float
    cap: float = math.inf
    per_weight: float = 0.0

    def at(self, n: Any) -> Any:
        """The step size at n, a number or an array; without the weight."""
        return np.minimum(self.cap, self.scale * (self.offset + self.slope * n) ** -self.power)


class Setting(NamedTuple):
    """What a schedule may depend on, known when a run starts."""

    discount: float
    weight: float
    value_range: tuple[float, float]
    unit: float = 1.0  # f''(1), which turns a weight into that of the normal form
    d_min: float | None = None
    d_max: float | None = None
    penalty: FDivergence | None = ChiSquare()  # the divergence that nature pays for; None for any other set

    @property
    def spread(self) -> float:
        """High - low of the values: the paper's 1/(1 - discount)."""
        return self.value_range[1] - self.value_range[0]


@runtime_checkable
class Schedule(Protocol):
    """Anything that can turn a setting into numbers."""

    def resolve(self, setting: Setting) -> Numbers: ...


class _Formula:
    """Checks the numbers of a formula by their names."""

    most_power: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _types.check_fields(self)
        for name in ("size", "scale", "power", "offset", "cap"):
            if not hasattr(self, name):
                continue
            value = getattr(self, name)
            if name == "power":
                most = self.most_power
                _checks.must(0.0 <= value <= most, f"power must lie in [0, {most:g}]: got {value:g}")
            else:
                number = value if name == "cap" else _checks.finite_number(name, value)
                _checks.must(number > 0, f"{name} must be positive: got {number:g}")


@dataclass(frozen=True)
class Constant(_Formula):
    """beta_n = size.

    >>> float(Constant(0.1).resolve(Setting(0.9, 1.0, (0.0, 10.0))).at(7))
    0.1
    """

    size: float

    def resolve(self, setting: Setting) -> Numbers:
        return Numbers(self.size, 1.0, 0.0, 0.0)


@dataclass(frozen=True)
class Polynomial(_Formula):
    """beta_n = min(cap, scale (n + offset)^-power).

    >>> float(Polynomial(2.0, 0.5).resolve(Setting(0.9, 1.0, (0.0, 10.0))).at(3))
    1.0
    """

    scale: float = 1.0
    power: float = 0.75
    offset: float = 1.0
    cap: float = math.inf

    def resolve(self, setting: Setting) -> Numbers:
        return Numbers(self.scale, self.offset, 1.0, self.power, self.cap)


@dataclass(frozen=True)
class RescaledPolynomial(_Formula):
    """beta_n = (1 + (1 - discount) n)^-power.

    >>> float(RescaledPolynomial(0.5).resolve(Setting(0.5, 1.0, (0.0, 2.0))).at(6))
    0.5
    """

    power: float = 0.8

    def resolve(self, setting: Setting) -> Numbers:
        return Numbers(1.0, 1.0, 1.0 - setting.discount, self.power)


@dataclass(frozen=True)
class RescaledLinear:
    """beta_n = 1/(1 + (1 - discount) n), the outer steps of the paper's experiments; beta_0 = 1.

    >>> float(RescaledLinear().resolve(Setting(0.5, 1.0, (0.0, 2.0))).at(2))
    0.5
    """

    def resolve(self, setting: Setting) -> Numbers:
        return Numbers(1.0, 1.0, 1.0 - setting.discount, 1.0)


@dataclass(frozen=True)
class WeightOverRoot:
    """alpha_n = weight/sqrt(n + 1), the inner steps of the paper's experiments (section 6.1)."""

    def resolve(self, setting: Setting) -> Numbers:
        return Numbers(1.0, 1.0, 1.0, 0.5, per_weight=1.0 / setting.unit)


@dataclass(frozen=True)
class DualPolynomial(_Formula):
    """alpha_n = weight f''(1) min(1, scale (n + 1)^-power): steps in the unit in which the dual has curvature 1.

    A Newton step is weight f''(1)/E f*'' times the gradient; the default learner divides by a running mean of f*''.
    """

    scale: float = 3.5
    power: float = 0.75

    def resolve(self, setting: Setting) -> Numbers:
        return Numbers(self.scale, 1.0, 1.0, self.power, 1.0, per_weight=1.0)


@dataclass(frozen=True)
class Theorem41:
    """alpha_n = diam(Theta)/(C_g sqrt(n + 1)), the inner steps of Theorem 4.1, for chi-square.

    C_g is Lemma 4.1's, (diam(Theta) + spread)/(2 weight), on the Theta of section 4.1; the paper's sqrt(n) divides by
    zero at n = 0. Both are derived for a chi-square penalty; any other set is refused.

    >>> round(float(Theorem41().resolve(Setting(0.9, 3.0, (0.0, 10.0))).at(0)), 6)
    4.571429
    """

    def resolve(self, setting: Setting) -> Numbers:
        _checks.must(
            setting.penalty == ChiSquare(),
            f"the steps of Theorem 4.1 are for a chi-square penalty: got {setting.penalty or 'no penalty'}",
        )
        diameter = 2.0 * setting.spread + 4.0 * setting.weight
        gradient = (diameter + setting.spread) / (2.0 * setting.weight)
        return Numbers(diameter / gradient, 1.0, 1.0, 0.5)


@dataclass(frozen=True)
class Theorem42:
    """beta_n = 1/(1 + (1 - discount)(n + 1)), the outer steps of Theorem 4.2.

    >>> float(Theorem42().resolve(Setting(0.9, 1.0, (0.0, 10.0))).at(9))
    0.5
    """

    def resolve(self, setting: Setting) -> Numbers:
        return Numbers(1.0, 2.0 - setting.discount, 1.0 - setting.discount, 1.0)


@dataclass(frozen=True)
class Theorem51Dual:
    """alpha_t = 1/(kappa d_min (t + p)^(2/3)), p = ceil((d_max/d_min)^(3/2)), kappa = 1/(6 (weight + spread)).

    The dual steps of Theorem 5.1; kappa is the paper's for chi-square, kept for every divergence.
    """

    def resolve(self, setting: Setting) -> Numbers:
        d_min, d_max = _occupancies(setting)
        kappa = 1.0 / (6.0 * (setting.weight + setting.spread))
        return Numbers(1.0 / (kappa * d_min), _round_up((d_max / d_min) ** 1.5), 1.0, 2.0 / 3.0)


@dataclass(frozen=True)
class Theorem51(_Formula):
    """beta_t = min(cap, 1/((1 - discount) d_min (t + p))), p = ceil(d_max/((1 - discount) d_min)).

    The Q steps of Theorem 5.1, which begin near 1/d_max; a cap of 1 keeps them averages.
    """

    cap: float = 1.0

    def resolve(self, setting: Setting) -> Numbers:
        d_min, d_max = _occupancies(setting)
        rest = 1.0 - setting.discount
        return Numbers(1.0 / (rest * d_min), _round_up(d_max / (rest * d_min)), 1.0, 1.0, self.cap)


@dataclass(frozen=True)
class Growing(_Formula):
    """T'_t = ceil(scale (t + 1)^power): inner steps of Algorithm 1 that grow with the outer iteration.

    The discussion of Theorem 4.2: what the inner loop leaves may vary with t. Under Assumption 5.2 a power of 1/2
    balances both loops.

    >>> [Growing(2.0, 0.5)(t) for t in (0, 1, 3)]
    [2, 3, 4]
    """

    scale: float = 1.0
    power: float = 0.5
    most_power: ClassVar[float] = 2.0

    def __call__(self, iteration: int) -> int:
        return int(_round_up(self.scale * (iteration + 1.0) ** self.power))


def check_schedule(name: str, schedule: object) -> None:
    """Refuse anything that cannot be resolved."""
    if isinstance(schedule, type) or not isinstance(schedule, Schedule):
        _checks.refuse_type(name, "a schedule, such as Polynomial(1.0, 0.75)", schedule)


def _round_up(ratio: float) -> float:
    """To a whole number; rounded to nine digits first, for 1 + 1e-15 must not become 2."""
    return float(math.ceil(round(ratio, 9)))


def _occupancies(setting: Setting) -> tuple[float, float]:
    if setting.d_min is None or setting.d_max is None:
        _checks.fail(
            "the steps of Theorem 5.1 must know d_min and d_max: they follow from an MDP and its behaviour policy; "
            "for another world give both"
        )
    _checks.must(
        setting.d_min <= setting.d_max, f"d_min must be at most d_max: got {setting.d_min:g} and {setting.d_max:g}"
    )
    _checks.must(
        setting.d_min > 0.0,
        f"d_min must be positive, so the behaviour policy must visit every pair: got d_min {setting.d_min:g}",
    )
    return setting.d_min, setting.d_max
