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

from robustmdp import _checks, _core
from robustmdp._arrays import FloatArray
from robustmdp.learning.bounds import Evidence
from robustmdp.learning.concentration import Means
from robustmdp.learning.dual_function import DualFunction
from robustmdp.learning.frozen import Frozen, freeze, split_states
from robustmdp.learning.runs import Learner
from robustmdp.learning.settings import register
from robustmdp.learning.sources import Shape, Source
from robustmdp.learning.states import TransitionState
from robustmdp.learning.tables import LARGEST_FLOAT, LearnerState, Tables, load_tables

_LEARNING, _LEARNING_MARGINS, _CERTIFYING = range(3)
_FINITE = -LARGEST_FLOAT, LARGEST_FLOAT
_MARGIN_SHARE = 0.1  # of the learning steps on a trajectory: the last ones learn margins
_SAFETY = 1.5  # of margins, which are noisy themselves


class CertifiedState(TransitionState):
    """Learns for some steps, then counts for the others; 44 bytes a pair beside the learner's, 108 for a ball."""

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
        self.state, self._function, self.generative = state, function, generative
        self._ambiguity, self._shape = state._ambiguity, shape
        self._learning, self._margin_steps, self._certifying = steps
        self._rounds, self._delta, self._phase = rounds, delta, np.array([_LEARNING])
        self.inside, self.extent, self.diverged = state.inside, state.extent, state.diverged
        self.q_steps, self.by_visits = state.q_steps, state.by_visits
        cells, own = len(self.diverged) * shape.n_pairs, len(self.diverged) * shape.policy_size
        ball = ["cost", "tilted", "outcome"] * function.level.is_constrained
        self.sums: Tables = {"count": np.zeros(cells, np.uint32), "lower": np.zeros((own, 2))}
        self.sums |= {name: np.zeros((cells, 2)) for name in ["dual", *["ratio"] * function.is_smooth, *ball]}
        self.margins: Tables = {}
        if self._margin_steps:
            self.margins = {name: np.zeros((len(self.diverged), shape.n_states + 1)) for name in ("lower", "upper")}

    @property
    def tables(self) -> Tables:  # type: ignore[override]
        """Those of the learner, whose visits go on; what it has drawn does not, each step takes as many samples."""
        return {name: table for name, table in self.state.tables.items() if name != "drawn"}

    def q(self) -> FloatArray:
        return self.state.q()

    def iterate(self) -> FloatArray:
        return self.state.iterate()

    def eta(self, span: slice) -> FloatArray:
        return self.state.eta(span)

    def bounds(self, means: type[Means] = Means) -> tuple[FloatArray, FloatArray]:
        """lower <= v of the policy <= best v <= upper, (R, S) each: what is possible before anything is counted."""
        if self.is_certifying:
            lower, upper = self.evidence(means).bound_values()
        else:
            sizes = len(self.diverged), self._shape.n_states
            lower, upper = (np.full(sizes, bound) for bound in self._shape.value_range)
        has_diverged = (self.diverged >= 0)[:, None]
        return np.where(has_diverged, -math.inf, lower), np.where(has_diverged, math.inf, upper)

    def evidence(self, means: type[Means] = Means) -> Evidence:
        """What has been counted so far."""
        return Evidence(self._function, self.frozen, self.sums, self._delta, means)

    @property
    def is_certifying(self) -> bool:
        """Has learning ended?"""
        return int(self._phase[0]) == _CERTIFYING

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
        if self._phase[0] == phase:
            return
        self._phase[0] = phase
        for table in self.sums.values():
            table[...] = 0
        self._forget_frozen()
        if phase == _LEARNING_MARGINS:
            self._begin_margins()

    def _forget_frozen(self) -> None:
        for name in ("frozen", "update"):
            self.__dict__.pop(name, None)

    @cached_property
    def update(self) -> Any:
        """The compiled sums, at what has been learned."""
        level, frozen = self._function.level, self.frozen
        settings = self.core_settings(level.numbers, constrained=level.is_constrained)
        names = ["eta", "floor", "centre", "eta_lower", "weight_lower", "policy", "v_lower", "v_upper"]
        names += ["weight"] * level.is_constrained
        tables = {name: getattr(frozen, name) for name in names} | self.sums
        if not self.is_certifying:
            tables |= self._margin_tables()
        arrays = {name: np.ascontiguousarray(table).reshape(-1) for name, table in tables.items()}
        evidence = _core.Evidence(self.state.core_state, self._function.typical_earned, **arrays)
        make = level.price.certifier if self.is_certifying else level.price.margin_learner
        return make(self.state.core_state, settings, evidence)

    @cached_property
    def frozen(self) -> Frozen:
        """What was learned, with margins once they are known."""
        margins = self.margins if self.is_certifying else {}  # while they are learned, V is as it is
        return freeze(self._function, self.state, self._expected_samples, margins)

    def _begin_margins(self) -> None:
        """A state's own deviations alone, and all that is possible where nothing was ever seen."""
        shape, frozen = self._shape, self.frozen
        low, high = shape.value_range
        for block in split_states(shape):
            by_spread, by_reach = self._expected_deviations(block.pairs)
            own = by_spread * 0.5 * (high - low) + by_reach
            own = np.where(self._expected_samples(block.pairs) > 0.0, own, math.inf)
            v, policy = frozen.v_lower[:, block.states], frozen.policy[:, block.own] - block.pairs.start
            lower = block.over_policy(np.take_along_axis(own, policy, axis=1))
            upper = block.over_actions(own)
            self.margins["lower"][:, block.states] = np.minimum(lower, v - low)
            self.margins["upper"][:, block.states] = np.minimum(upper, high - v)

    def _expected_deviations(self, pairs: slice) -> tuple[FloatArray, FloatArray]:
        """What a certificate will say of pairs beyond usual ones: about sqrt(2.5 L var/n) + reach L/n, (R, P) each.

        Pairs with a quarter of the usual number of samples have none: their deviation is at most twice the usual one.
        """
        frozen, function = self.frozen, self._function
        samples = np.maximum(self._expected_samples(pairs), 1e-3)
        odds = math.log(2.0 * self._shape.n_pairs / self._delta)
        excess = _SAFETY * np.maximum(1.0 - 2.0 * np.sqrt(samples / self._usual_samples), 0.0)
        eta, weight, floor = (table[:, pairs].astype(np.float64) for table in (frozen.eta, frozen.weight, frozen.floor))
        lowest = function.value(eta, weight, floor)
        highest, centre = function.outcome_range(frozen.v_upper)[1], frozen.centre[:, pairs]
        reach = np.maximum(centre - function.earned[0] - lowest, function.earned[1] + highest - centre)
        return excess * np.sqrt(2.5 * odds / samples), excess * reach * odds / samples

    @property
    def _usual_samples(self) -> FloatArray:
        """Certifying samples to expect of the pair of a transition, (R, 1)."""
        squares = (self._frozen_visits(slice(None)) ** 2).sum(axis=1, keepdims=True)
        usual: FloatArray = self._certifying * squares / np.maximum(self._frozen_total, 1.0) ** 2
        return usual

    def _margin_tables(self) -> Tables:
        low, high = self._shape.value_range
        tables = {name: np.empty(self.frozen.eta.shape, np.float32) for name in ("by_spread", "by_reach")}
        for block in split_states(self._shape):
            found = self._expected_deviations(block.pairs)
            tables["by_spread"][:, block.pairs], tables["by_reach"][:, block.pairs] = found
        return {
            **tables,
            "margin_lower": self.margins["lower"],
            "margin_upper": self.margins["upper"],
            "most": np.full(len(self.diverged), high - low),
        }

    def _frozen_visits(self, pairs: slice) -> FloatArray:
        """Those before this phase, (R, pairs)."""
        tables = self.state.tables["visits"], self.sums["count"]
        visits, counted = (table.reshape(len(self.diverged), -1)[:, pairs] for table in tables)
        return visits.astype(np.float64) - counted

    def _expected_samples(self, pairs: slice) -> FloatArray:
        """Certifying samples to expect of some pairs, from what was known before the first: (R, pairs)."""
        visits = self._frozen_visits(pairs)
        if self.generative:
            return np.full(visits.shape, float(self._certifying * self._rounds))
        return visits * (self._certifying / np.maximum(self._frozen_total, 1.0))

    @property
    def _frozen_total(self) -> FloatArray:
        """Visits of all pairs before this phase, (R, 1)."""
        tables = (table.reshape(len(self.diverged), -1) for table in (self.state.tables["visits"], self.sums["count"]))
        visits, counted = (table.sum(axis=1, keepdims=True, dtype=np.float64) for table in tables)
        return np.asarray(visits - counted)

    def save(self) -> Tables:
        return self.state.save() | self._own()

    def load(self, saved: Tables) -> None:
        own = self._own()
        self.state.load({name: table for name, table in saved.items() if name not in own})
        limits: dict[str, tuple[Any, Any]] = {name: _FINITE for name in own if own[name].dtype == np.float64}
        limits["phase"] = _LEARNING, _CERTIFYING
        load_tables(own, {name: table for name, table in saved.items() if name in own}, limits)
        self._forget_frozen()

    def _own(self) -> Tables:
        margins = {f"margin_{name}": table for name, table in self.margins.items()}
        return {f"certificate_{name}": table for name, table in self.sums.items()} | margins | {"phase": self._phase}


@dataclass(frozen=True)
class Certified(Learner):
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
        for name, share in (("confidence", self.confidence), ("certify_share", self.share)):
            number = _checks.finite_number(name, share)
            _checks.must(0.0 < number < 1.0, f"{name} must lie between 0 and 1: got {number:g}")
        own = self.learner
        vars(self).update(ambiguity=own.ambiguity, behaviour=own.behaviour, generative=own.generative)

    def runs_one_by_one(self, world: Any) -> bool:
        return bool(self.learner.runs_one_by_one(world))

    def samples_per_step(self, shape: Shape) -> int:
        return int(self.learner.samples_per_step(shape))

    def initial_state(self, source: Source, replications: int, steps: int) -> CertifiedState:
        """Fresh tables; of a log whose length only reading tells, the expected part teaches."""
        shape = source.shape
        _checks.must(
            source.is_fresh, "a certificate must see each transition once, in order: give the log, not a replay"
        )
        _checks.must(steps >= 2, f"a certificate needs at least two steps: got {steps}")
        learning = min(math.ceil((1.0 - self.share) * steps), steps - 1)
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
