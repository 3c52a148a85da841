"""Nested risk measures: what nature may do to the outcomes of one step, not to the total."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity.base import Ambiguity, Level, Levelled, Supported
from robustmdp.ambiguity.rowwise import EPS

_NESTED = "state by state, which is not the risk of the total"


class Contamination(Supported):
    """(1 - share) E v + share min v: with probability `share` something else happens, as bad as can be.

    Parameters
    ----------
    share : float or (S, A) array in [0, 1]
    support : "model", "all" or a list of states
        Where the rest may lead, as for `L1`.

    >>> from robustmdp import worst_case
    >>> worst_case(Contamination(0.25), [0.5, 0.5], [0.0, 2.0]).value
    0.75
    """

    level_name = "share"
    highest = 1.0
    meaning = "contamination: a share of {} of each distribution is nature's to choose"
    kernel = _core.Contamination()
    share: Level
    """The probability of something else."""

    def __init__(self, share: npt.ArrayLike, *, support: Any = "model") -> None:
        super().__init__(share, support=support)

    def added_successors(
        self, outcome: FloatArray, longest_row: int, *, highest: float, rewards_differ: bool
    ) -> npt.NDArray[np.int32]:
        return self.lowest_candidates(outcome, 1 + longest_row * rewards_differ)


class _TailRisk(Levelled):
    """A risk measure of a share of the outcomes in (0, 1]; 1 is the expectation."""

    level_name = "level"
    grows = False
    lowest = np.nextafter(0.0, 1.0)
    highest = 1.0

    def __init__(self, level: npt.ArrayLike) -> None:
        super().__init__(level)


class CVaR(_TailRisk):
    """sup over eta of eta - E (eta - v)_+ / level: the mean of the lowest share `level` of the outcomes.

    Equals inf over P <= p/level of E_P v. Nested: the risk of each step, not of the total.

    Parameters
    ----------
    level : float or (S, A) array in (0, 1]
        1 is the expectation; the lower, the more careful.

    >>> from robustmdp import worst_case
    >>> worst_case(CVaR(0.4), [0.2] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]).value
    1.5
    """

    meaning = "CVaR: the mean of the lowest {} of the outcomes, " + _NESTED
    kernel = _core.Tail()


class EVaR(_TailRisk):
    """sup over w of -w log(E exp(-v/w)/level): the KL ball of radius -log(level).

    Nested: the risk of each step, not of the total.

    Parameters
    ----------
    level : float or (S, A) array in (0, 1]
        1 is the expectation; the lower, the more careful.

    >>> from robustmdp import worst_case
    >>> round(worst_case(EVaR(0.4), [0.2] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]).value, 4)
    1.2942
    """

    meaning = "EVaR: the entropic value at risk of level {}, " + _NESTED
    kernel = _core.KullbackLeibler().constrained()

    def kernel_level(self, discount: float) -> Level:
        return -np.log(self.level) + 0.0


class EntropicRisk(Levelled):
    """-log(E exp(-aversion v))/aversion: the KL price 1/aversion on the outcomes themselves.

    Nested: the risk of each step, not of the total. Equals `Penalized(KL(), 1/(aversion * discount))`.

    Parameters
    ----------
    aversion : float or (S, A) array in [0, inf]
        0 is the expectation, inf the minimum over the support.

    >>> from robustmdp import worst_case
    >>> round(worst_case(EntropicRisk(1.0), [0.2, 0.3, 0.5], [1.0, 2.0, 3.0]).value, 4)
    1.9728
    """

    level_name = "aversion"
    meaning = "entropic risk of aversion {}, " + _NESTED
    kernel = _core.KullbackLeibler().penalized()
    aversion: Level
    """Per unit of reward."""

    def __init__(self, aversion: npt.ArrayLike) -> None:
        super().__init__(aversion)

    def kernel_level(self, discount: float) -> Level:
        with np.errstate(divide="ignore"):
            return np.divide(1.0, self.level)


class MeanRisk(Levelled):
    """(1 - share) E v + share risk(v): between the expectation and a risk measure.

    Parameters
    ----------
    share : float or (S, A) array in [0, 1]
    risk : CVaR, EVaR, EntropicRisk, or another set that keeps to the model's successors

    >>> from robustmdp import worst_case
    >>> worst_case(MeanRisk(0.5, CVaR(0.4)), [0.2] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]).value  # (3 + 1.5)/2
    2.25
    """

    level_name = "share"
    highest = 1.0
    share: Level
    """How much the risk measure counts."""
    risk: Ambiguity

    def __init__(self, share: npt.ArrayLike, risk: Ambiguity) -> None:
        if not isinstance(risk, Ambiguity):
            _checks.refuse_type("risk", "a risk measure such as CVaR(0.1)", risk)
        _checks.must(risk.sign > 0.0, f"risk must be against the player: got {risk!r}")
        _checks.must(not risk.invents, f"risk must keep to the model's successors: got {risk!r}")
        super().__init__(share, risk=risk)

    def kernel_for(self, model: Any) -> Any:
        level = self.risk.kernel_level(model.discount)
        levels = model.pairs(level, self.risk.level_name) if isinstance(level, np.ndarray) else np.array([level])
        return _MixedKernel(self.risk.kernel_for(model), levels)

    def kernel_for_row(self, p: FloatArray) -> tuple[Any, BoolArray]:
        level = self.risk.kernel_level(1.0)
        _checks.must(isinstance(level, float), f"{self.risk.level_name} must be one number for one distribution")
        kernel, kept = self.risk.kernel_for_row(p)
        return _MixedKernel(kernel, np.array([level])), kept

    @property
    def label(self) -> str:
        return f"{super().label} of {self.risk.label}"

    def contains(self, other: Ambiguity) -> bool:
        if not isinstance(other, MeanRisk) or not self.risk.contains(other.risk):
            return super().contains(other)
        return bool(np.all(np.greater_equal(self.level, other.level)))

    def check_parts(self) -> None:
        self.risk.check_parts()

    def on_part(self, model: Any, states: slice, transitions: slice | IntArray) -> Ambiguity:
        share = self.level if isinstance(self.level, float) else self.level[states]
        return MeanRisk(share, self.risk.on_part(model, states, transitions))

    def __repr__(self) -> str:
        return f"MeanRisk({self._level_code()}, {self.risk!r})"

    def __str__(self) -> str:
        return f"mean and risk: a share of {self._level_text()} of {self.risk}"


class _MixedKernel:
    """(1 - share) of the expectation and `share` of another kernel; `levels` are the other's, shares come in calls."""

    def __init__(self, risk: Any, levels: FloatArray) -> None:
        self._risk, self._levels, self.memory_per_row = risk, levels, risk.memory_per_row
        self._nominal = _core.Nominal()

    def values(
        self, model: Any, shares: FloatArray, outcome: FloatArray, pairs: IntArray | None, lo: int, hi: int,
        memory: FloatArray, q: FloatArray,
    ) -> None:  # fmt: skip
        mean = np.empty_like(q)
        self._risk.values(model, self._levels, outcome, pairs, lo, hi, memory, q)
        self._nominal.values(model, self._levels, outcome, pairs, lo, hi, memory, mean)
        share = _select(shares, pairs, lo, hi)
        q[lo:hi] = (1.0 - share) * mean[lo:hi] + share * q[lo:hi]

    def bracket(
        self, model: Any, shares: FloatArray, outcome: FloatArray, scale: float, lo: int, hi: int,
        memory: FloatArray, lower: FloatArray, upper: FloatArray,
    ) -> None:  # fmt: skip
        low, high = np.empty_like(lower), np.empty_like(upper)
        self._nominal.bracket(model, self._levels, outcome, scale, lo, hi, memory, low, high)
        self._risk.bracket(model, self._levels, outcome, scale, lo, hi, memory, lower, upper)
        share, rounding = _select(shares, None, lo, hi), 4.0 * EPS * scale
        lower[lo:hi] = (1.0 - share) * low[lo:hi] + share * lower[lo:hi] - rounding
        upper[lo:hi] = (1.0 - share) * high[lo:hi] + share * upper[lo:hi] + rounding

    def respond(
        self, model: Any, shares: FloatArray, outcome: FloatArray, pairs: IntArray | None, starts: IntArray, lo: int,
        hi: int, memory: FloatArray, data: FloatArray, penalty: FloatArray, eta: FloatArray,
    ) -> None:  # fmt: skip
        self._risk.respond(model, self._levels, outcome, pairs, starts, lo, hi, memory, data, penalty, eta)
        chosen = np.arange(lo, hi) if pairs is None else pairs[lo:hi]
        share = np.broadcast_to(_select(shares, pairs, lo, hi), chosen.shape)
        lengths = starts[lo + 1 : hi + 1] - starts[lo:hi]
        ends = np.cumsum(lengths)
        entries = np.repeat(model.indptr[chosen] - (ends - lengths), lengths) + np.arange(ends[-1] if hi > lo else 0)
        own, of_risk = slice(int(starts[lo]), int(starts[hi])), np.repeat(share, lengths)
        data[own] = (1.0 - of_risk) * model.probabilities[entries] + of_risk * data[own]
        penalty[lo:hi] *= share

    def worst_case(
        self, p: FloatArray, x: FloatArray, level: float, out: FloatArray
    ) -> tuple[float, float, float, float]:
        value, gap, eta, weight = self._risk.worst_case(p, x, float(self._levels[0]), out)
        out[:] = (1.0 - level) * p + level * out
        return (1.0 - level) * float(p @ x) + level * value, level * gap, eta, weight


def _select(shares: FloatArray, pairs: IntArray | None, lo: int, hi: int) -> FloatArray:
    """Those of the pairs lo..hi."""
    if len(shares) == 1:
        return shares
    return shares[lo:hi] if pairs is None else shares[pairs[lo:hi]]
