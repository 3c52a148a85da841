"""Nested risk measures: what nature may do to the outcomes of one step, not to the total."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity.base import Ambiguity, Call, Level, RowKernel
from robustmdp.ambiguity.levelled import Levelled
from robustmdp.ambiguity.rowwise import EPS
from robustmdp.ambiguity.support import Supported

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
    kernel_type = _core.Contamination

    def __init__(self, share: npt.ArrayLike, *, support: Any = "model") -> None:
        super().__init__(share, support=support)

    @property
    def share(self) -> Level:
        """The probability of something else."""
        return self.level

    def added_successors(
        self, outcome: FloatArray, longest_row: int, *, highest: float, rewards_differ: bool
    ) -> npt.NDArray[np.int32]:
        return self.lowest_candidates(outcome, 1 + longest_row * rewards_differ)

    def _meaning(self, level: str) -> str:
        return f"contamination: a share of {level} of each distribution is nature's to choose"


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

    @cached_property
    def kernel(self) -> RowKernel:
        kernel: RowKernel = _core.Tail()
        return kernel

    def __str__(self) -> str:
        return f"CVaR: the mean of the lowest {self._level_text()} of the outcomes, {_NESTED}"


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

    @cached_property
    def kernel(self) -> RowKernel:
        return _kullback_leibler().constrained()  # type: ignore[no-any-return]

    def kernel_level(self, discount: float) -> Level:
        del discount
        level = -np.log(self.level) + 0.0
        return level if isinstance(self.level, np.ndarray) else float(level)

    def __str__(self) -> str:
        return f"EVaR: the entropic value at risk of level {self._level_text()}, {_NESTED}"


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

    def __init__(self, aversion: npt.ArrayLike) -> None:
        super().__init__(aversion)

    @property
    def aversion(self) -> Level:
        """Per unit of reward."""
        return self.level

    @cached_property
    def kernel(self) -> RowKernel:
        return _kullback_leibler().penalized()  # type: ignore[no-any-return]

    def kernel_level(self, discount: float) -> Level:
        del discount
        with np.errstate(divide="ignore"):
            level = np.divide(1.0, self.level)
        return level if isinstance(self.level, np.ndarray) else float(level)

    def __str__(self) -> str:
        return f"entropic risk of aversion {self._level_text()}, {_NESTED}"


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
    risk: Ambiguity

    def __init__(self, share: npt.ArrayLike, risk: Ambiguity) -> None:
        if not isinstance(risk, Ambiguity):
            _checks.refuse_type("risk", "a risk measure such as CVaR(0.1)", risk)
        _checks.must(risk.sign > 0.0, f"risk must be against the player: got {risk!r}")
        _checks.must(not risk.invents, f"risk must keep to the model's successors: got {risk!r}")
        super().__init__(share, risk=risk)

    @property
    def share(self) -> Level:
        """How much the risk measure counts."""
        return self.level

    @property
    def kernel(self) -> RowKernel:
        raise TypeError("a mixture has a level for each part: use kernel_for")

    def kernel_for(self, model: Any) -> RowKernel:
        level = self.risk.kernel_level(model.discount)
        levels = model.pairs(level, self.risk.level_name) if isinstance(level, np.ndarray) else np.array([level])
        return _MixedKernel(self.risk.kernel_for(model), levels)

    def kernel_for_row(self, p: FloatArray) -> tuple[RowKernel, BoolArray]:
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

    def restricted(self, model: Any, transitions: IntArray) -> MeanRisk:
        return MeanRisk(self.level, self.risk.restricted(model, transitions))

    def check_parts(self) -> None:
        self.risk.check_parts()

    def on_part(self, model: Any, states: slice, transitions: slice) -> MeanRisk:
        share = self.level if isinstance(self.level, float) else self.level[states]
        return MeanRisk(share, self.risk.on_part(model, states, transitions))

    def __repr__(self) -> str:
        level = f"{self.level!r}" if isinstance(self.level, float) else f"<{self._level_text()}>"
        return f"MeanRisk({level}, {self.risk!r})"

    def __str__(self) -> str:
        return f"mean and risk: a share of {self._level_text()} of {self.risk}"


class _MixedKernel(RowKernel):
    """(1 - share) of the expectation and `share` of another kernel; `levels` are the other's, shares come in calls."""

    def __init__(self, risk: RowKernel, levels: FloatArray) -> None:
        self._risk, self._levels, self.memory_per_row = risk, levels, risk.memory_per_row
        self._nominal: RowKernel = _core.Nominal()

    def write_values(self, call: Call, q: FloatArray) -> None:
        levels, pairs, own = call.levels, call.pairs, slice(call.lo, call.hi)
        inner, mean = call._replace(levels=self._levels), np.empty_like(q)
        self._risk.values(*inner, q)
        self._nominal.values(*inner, mean)
        share = levels if len(levels) == 1 else levels[own] if pairs is None else levels[pairs[own]]
        q[own] = (1.0 - share) * mean[own] + share * q[own]

    def write_bounds(self, call: Call, scale: float, lower: FloatArray, upper: FloatArray) -> None:
        model, levels, outcome, _, lo, hi, memory = call
        low, high = np.empty_like(lower), np.empty_like(upper)
        self._nominal.bracket(model, self._levels, outcome, scale, lo, hi, memory, low, high)
        self._risk.bracket(model, self._levels, outcome, scale, lo, hi, memory, lower, upper)
        share, rounding = levels if len(levels) == 1 else levels[lo:hi], 4.0 * EPS * scale
        lower[lo:hi] = (1.0 - share) * low[lo:hi] + share * lower[lo:hi] - rounding
        upper[lo:hi] = (1.0 - share) * high[lo:hi] + share * upper[lo:hi] + rounding

    def write_responses(
        self, call: Call, starts: IntArray, data: FloatArray, penalty: FloatArray, eta: FloatArray
    ) -> None:
        model, levels, outcome, pairs, lo, hi, memory = call
        self._risk.respond(model, self._levels, outcome, pairs, starts, lo, hi, memory, data, penalty, eta)
        chosen = np.arange(lo, hi) if pairs is None else pairs[lo:hi]
        share = np.broadcast_to(levels, chosen.shape) if len(levels) == 1 else levels[chosen]
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


def _kullback_leibler() -> Any:
    from robustmdp.divergences import KL

    return KL().core
