"""Bounds without a model: what was learned is frozen, and later samples say how far it can be from the truth.

For any V, eta and policy, the mean of J(eta; x) over outcomes x = r + discount V(s') is at most the worst case at V,
and the value of any likelihood ratio t is at least that. Means are what samples bound. With L <= T_policy V_lower and
T V_upper <= U at all states, with m = min(L - V_lower) and M = max(U - V_upper):

    V_lower + m/(1 - discount) <= v of the policy,   best v <= V_upper + M/(1 - discount).

The bounds hold at all times at once, so that the number of visits may depend on chance, and for any behaviour policy.
They assume that the successor depends on state and action alone and that rewards lie in the given range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp.ambiguity import Ambiguity
from robustmdp.learning.bounds import Bounds
from robustmdp.learning.concentration import Means
from robustmdp.learning.dual_function import DualFunction
from robustmdp.learning.frozen import Frozen, freeze
from robustmdp.learning.settings import register
from robustmdp.learning.sources import Shape, Source
from robustmdp.learning.states import TransitionState
from robustmdp.learning.tables import LARGEST_FLOAT, Expected, LearnerState, Tables, check_tables

FloatArray = npt.NDArray[np.float64]
_LEARNING, _LEARNING_MARGINS, _CERTIFYING = range(3)
_FINITE = -LARGEST_FLOAT, LARGEST_FLOAT
_MARGIN_SHARE = 0.1  # of the learning steps on a trajectory: the last ones learn margins
_SAFETY = 1.5  # of margins, which are noisy themselves


class CertifiedState(TransitionState):
    """Learns for some steps, then counts for the others; 52 bytes a pair beside those of the learner, 92 for a ball."""

    def __init__(
        self,
        state: LearnerState,
        function: DualFunction,
        *,
        generative: bool,
        steps: tuple[int, int, int],
        rounds: int,
        delta: float,
    ) -> None:
        shape = function.shape
        self.state, self._function, self._shape, self.generative = state, function, shape, generative
        self._learning, self._margin_steps, self._certifying = steps
        self._rounds, self._delta, self._phase = rounds, delta, np.array([_LEARNING])
        self.inside, self.extent, self.diverged = state.inside, state.extent, state.diverged
        self.q_steps, self.by_visits = state.q_steps, state.by_visits
        cells, states = len(self.diverged) * shape.n_pairs, len(self.diverged) * shape.n_states
        ball = ["cost", "tilted", "outcome"] * function.level.is_constrained
        self.sums: Tables = {"count": np.zeros(cells, np.uint32), "lower": np.zeros((states, 2))}
        self.sums |= {name: np.zeros((cells, 2)) for name in ["dual", *["ratio"] * function.is_smooth, *ball]}
        self.margins: Tables = {}
        if self._margin_steps:
            self.margins = {name: np.zeros((len(self.diverged), shape.n_states + 1)) for name in ("lower", "upper")}
            self.margins["count"] = np.zeros(cells, np.uint32)

    @property
    def tables(self) -> Tables:  # type: ignore[override]
        """Those of the learner, with all visits."""
        visits = self.state.tables["visits"] + self.sums["count"]
        return {**self.state.tables, "visits": visits + self.margins["count"] if self.margins else visits}

    def q(self) -> FloatArray:
        return self.state.q()

    def iterate(self) -> FloatArray:
        return self.state.iterate()

    def eta(self, span: slice) -> FloatArray:
        return self.state.eta(span)

    def bounds(self, means: type[Means] = Means) -> tuple[FloatArray, FloatArray]:
        """lower <= v of the policy <= best v <= upper, (R, S) each; infinite where nothing has been counted."""
        unknown = np.full((len(self.diverged), self._shape.n_states), math.inf)
        if self.phase != _CERTIFYING:
            return -unknown, unknown
        lower, upper = Bounds(self._function, self.frozen, self.sums, self._delta, means).values()
        has_diverged = (self.diverged >= 0)[:, None]
        return np.where(has_diverged, -unknown, lower), np.where(has_diverged, unknown, upper)

    @property
    def phase(self) -> int:
        """What samples are used for now."""
        return int(self._phase[0])

    def advance(self, source: Source, first: int, count: int) -> int:
        """Learn, then learn margins, then count."""
        done, unit = 0, self._rounds if self.generative else 1
        ends = self._learning, self._learning + self._margin_steps, first + count
        for phase, end in enumerate(ends):
            wanted = min(end, first + count) - (first + done)
            if wanted <= 0:
                continue
            if phase == _LEARNING:
                taken = self.state.advance(source, first, wanted)
            else:
                self._enter(phase)
                taken = super().advance(source, (first + done) * unit, wanted * unit) // unit
            done += taken
            if taken < wanted:
                break
        return done

    def _enter(self, phase: int) -> None:
        """A new phase begins with empty sums, and freezes what is known by then."""
        if self.phase == phase:
            return
        self._phase[0] = phase
        self.__dict__.pop("frozen", None)
        self.__dict__.pop("update", None)
        if phase == _LEARNING_MARGINS:
            self._begin_margins()
        elif self.margins:
            self.margins["count"] += self.sums["count"]
            for table in self.sums.values():
                table[...] = 0

    @cached_property
    def update(self) -> Any:
        """The compiled sums, at what has been learned."""
        shape, level, frozen = self._shape, self._function.level, self.frozen
        settings = _core.LearnerSettings(
            levels=level.numbers,
            discount=shape.discount,
            inside=self.inside,
            can_end=shape.can_end,
            constrained=level.is_constrained,
        )
        names = ["eta", "floor", "centre", "eta_lower", "weight_lower", "policy", "v_lower", "v_upper"]
        names += ["weight"] * level.is_constrained
        tables = {name: getattr(frozen, name) for name in names} | self.sums
        is_certifying = self.phase == _CERTIFYING
        if not is_certifying:
            tables |= self._margin_tables()
        arrays = {name: np.ascontiguousarray(table).reshape(-1) for name, table in tables.items()}
        evidence = _core.Evidence(self.state.core_state, self._function.typical_earned, **arrays)
        make = level.price.certifier if is_certifying else level.price.margin_learner
        return make(self.state.core_state, settings, evidence)

    @cached_property
    def frozen(self) -> Frozen:
        """What was learned, with margins once they are known."""
        margins = self.margins if self.phase == _CERTIFYING else {}  # while they are learned, V is as it is
        return freeze(self._function, self.state, self._planned_counts(), margins)

    def _begin_margins(self) -> None:
        """A state's own deviations alone, and all that is possible where nothing was ever seen."""
        shape, (low, high) = self._shape, self._shape.value_range
        by_spread, by_reach = self._expected_deviations()
        own = by_spread * 0.5 * (high - low) + by_reach
        seen = self._planned_counts() > 0.0
        v, starts = self.frozen.v_lower[:, :-1], shape.state_ptr[:-1]
        lower = np.take_along_axis(np.where(seen, own, math.inf), self.frozen.policy, axis=1)
        upper = np.maximum.reduceat(np.where(seen, own, math.inf), starts, axis=1)
        self.margins["lower"][:, :-1] = np.minimum(lower, v - low)
        self.margins["upper"][:, :-1] = np.minimum(upper, high - v)

    def _expected_deviations(self) -> tuple[FloatArray, FloatArray]:
        """What a certificate will say of a pair beyond usual ones: about sqrt(2.5 L var/n) + reach L/n, (R, P) each.

        Pairs with a quarter of the usual number of samples have none: their deviation is at most twice the usual one.
        """
        planned, odds = np.maximum(self._planned_counts(), 1e-3), math.log(2.0 * self._shape.n_pairs / self._delta)
        usual = (planned**2).sum(axis=1, keepdims=True) / planned.sum(axis=1, keepdims=True)
        excess = _SAFETY * np.maximum(1.0 - 2.0 * np.sqrt(planned / usual), 0.0)
        frozen = self.frozen
        lowest = self._function.earned[0] + self._function.value(frozen.eta, frozen.weight, frozen.floor)
        highest = self._function.earned[1] + self._function.outcome_range(frozen.v_upper)[1]
        reach = np.maximum(frozen.centre - lowest, highest - frozen.centre)
        return excess * np.sqrt(2.5 * odds / planned), excess * reach * odds / planned

    def _margin_tables(self) -> Tables:
        low, high = self._shape.value_range
        by_spread, by_reach = (part.astype(np.float32) for part in self._expected_deviations())
        return {
            "margin_lower": self.margins["lower"],
            "margin_upper": self.margins["upper"],
            "by_spread": by_spread,
            "by_reach": by_reach,
            "most": np.full(len(self.diverged), high - low),
        }

    def _planned_counts(self) -> FloatArray:
        """Certifying samples to expect of each pair, from what was known before the first: (R, P)."""
        visits = self.state.tables["visits"].reshape(len(self.diverged), -1)
        if self.generative:
            return np.full(visits.shape, float(self._certifying * self._rounds))
        return visits * (self._certifying / self._learning)

    def save(self) -> Tables:
        return self.state.save() | self._own()

    def load(self, saved: Tables) -> None:
        own = self._own()
        self.state.load({name: table for name, table in saved.items() if name not in own})
        limits = {np.dtype(np.float64): _FINITE, np.dtype(np.int64): (_LEARNING, _CERTIFYING)}
        expected = {
            name: Expected(table.dtype, table.shape, *limits.get(table.dtype, ())) for name, table in own.items()
        }
        check_tables({name: table for name, table in saved.items() if name in own}, expected)
        for name, table in own.items():
            table[...] = saved[name]

    def _own(self) -> Tables:
        margins = {f"margin_{name}": table for name, table in self.margins.items()}
        return {f"certificate_{name}": table for name, table in self.sums.items()} | margins | {"phase": self._phase}


@dataclass(frozen=True)
class Certified:
    """A learner whose first samples teach and whose later ones, a `share` of all, certify."""

    learner: Any
    confidence: float
    share: float

    def __post_init__(self) -> None:
        _checks.must(
            hasattr(self.learner, "eta_steps"),
            f"a certificate needs a learner with a dual variable: got {type(self.learner).__name__}",
        )
        _checks.must(
            isinstance(getattr(self.learner, "inner_steps", 0), int),
            "a certificate needs inner_steps that are one whole number: got others",
        )
        for name in ("confidence", "share"):
            number = _checks.finite_number(name, getattr(self, name))
            _checks.must(0.0 < number < 1.0, f"{name} must lie between 0 and 1: got {number:g}")

    @property
    def ambiguity(self) -> Ambiguity:
        """How far the truth may be."""
        found: Ambiguity = self.learner.ambiguity
        return found

    @property
    def behaviour(self) -> Any:
        """Who chooses the actions, while certifying as while learning."""
        return self.learner.behaviour

    @property
    def generative(self) -> bool:
        """Does a step visit every pair?"""
        return bool(self.learner.generative)

    @property
    def one_by_one(self) -> bool:
        """Does each replication need a run of its own?"""
        return getattr(self.learner, "one_by_one", False)

    def samples_per_step(self, shape: Shape) -> int:
        """Those of the learner."""
        return int(self.learner.samples_per_step(shape))

    def samples_after(self, shape: Shape, steps: int) -> int:
        """As many in each step."""
        return steps * self.samples_per_step(shape)

    def steps_within(self, shape: Shape, samples: int) -> int:
        """As many samples in each step."""
        return samples // self.samples_per_step(shape)

    def initial_state(self, source: Source, replications: int, steps: int) -> CertifiedState:
        """Fresh tables; of a log whose length only reading tells, the expected part teaches."""
        shape = source.shape
        _checks.must(not source.is_replayed, "a certificate must see each transition once: give the log, not a replay")
        learning = math.ceil((1.0 - self.share) * steps)
        _checks.must(learning < steps, f"a certificate needs at least two steps: got {steps}")
        margins = 0 if self.generative else math.floor(_MARGIN_SHARE * learning)
        state = self.learner.initial_state(source, replications, learning - margins)
        return CertifiedState(
            state,
            DualFunction(self.ambiguity, shape, state.inside),
            generative=self.generative,
            steps=(learning - margins, margins, steps - learning),
            rounds=self.samples_per_step(shape) // shape.n_pairs if self.generative else 1,
            delta=1.0 - self.confidence,
        )


register(Certified)
