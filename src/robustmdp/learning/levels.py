"""An ambiguity for a world of pairs: the price of nature's choice, compiled, and its level."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robustmdp import _checks, _core, _types
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity, check_ambiguity
from robustmdp.divergences import FDivergence, TotalVariation
from robustmdp.learning.schedules import Setting, check_schedule
from robustmdp.learning.sources import Shape

_SMALLEST_WEIGHT = 1e-300  # below it, outcomes in units of the weight are no numbers
_LARGEST_WEIGHT = 1e15  # in spreads of values, or 1: an infinite one would make 0 * inf


class Level(NamedTuple):
    """`price` makes compiled learners; `numbers` is the level, one or one per pair, in the price's unit."""

    price: Any
    is_robust: bool
    is_smooth: bool
    is_constrained: bool
    edge: float  # f'(inf) in normal form
    numbers: FloatArray


def check_learnable(ambiguity: object) -> Ambiguity:
    """Refuse anything but a penalty or a ball of a divergence, or no doubt at all."""
    known = check_ambiguity(ambiguity)
    divergence: FDivergence | None = getattr(known, "divergence", None)
    if divergence is None or not (known.is_nominal or known.has_weight or known.has_radius):
        _checks.fail(f"a learner's ambiguity must be Nominal(), Penalized(...) or Constrained(...): got {known!r}")
    _checks.must(
        hasattr(price_of(divergence), "follower"),
        f"a learner's divergence must be a built-in one or a Divergence(...): got {divergence!r}",
    )
    return known


def check_q_learning(learner: Any) -> None:
    """Check what the settings of both Q-learners have in common."""
    check_learnable(learner.ambiguity)
    _types.check_fields(learner)
    check_schedule("q_steps", learner.q_steps)
    check_schedule("eta_steps", learner.eta_steps)
    burn_in = _checks.finite_number("burn_in", learner.burn_in)
    _checks.must(0.0 <= burn_in < 1.0, f"burn_in must lie in [0, 1): got {burn_in:g}")
    if learner.initial is not None:
        _checks.finite_number("initial", learner.initial)


def price_of(divergence: FDivergence) -> Any:
    """A divergence for compiled learners; a user's own by the addresses of its functions."""
    core = divergence.core
    return core.callable_core if hasattr(core, "callable_core") else core


def level_of(ambiguity: Ambiguity, shape: Shape) -> Level:
    """The limits become what they are: no ambiguity, or the lowest successor."""
    table = np.asarray(ambiguity.kernel_level(shape.discount), dtype=np.float64)
    if table.ndim == 2:
        table = shape.pairs(table, ambiguity.level_name)
    numbers = np.atleast_1d(table)
    _checks.must(
        not np.isnan(numbers).any(), f"{ambiguity.level_name} must be a number at every available pair: got nan"
    )
    no_choice = 0.0 if ambiguity.has_radius else math.inf
    if ambiguity.is_nominal or bool(np.all(numbers == no_choice)):
        return Level(_core.Nominal(), False, False, False, math.inf, np.zeros(1))
    divergence = ambiguity.divergence
    constrained = ambiguity.has_radius
    if constrained and np.isinf(numbers).all():
        constrained, numbers = False, np.zeros(1)
    if not constrained:
        low, high = shape.value_range if shape.reward_range else (0.0, 1.0)
        numbers = np.where(numbers < _SMALLEST_WEIGHT, 0.0, np.minimum(numbers, _LARGEST_WEIGHT * max(high - low, 1.0)))
    is_smooth = divergence != TotalVariation()
    numbers = np.ascontiguousarray(numbers)
    return Level(price_of(divergence), True, is_smooth, constrained, divergence.edge, numbers)


def setting_of(ambiguity: Ambiguity, shape: Shape, d_min: float | None = None, d_max: float | None = None) -> Setting:
    """What schedules may depend on; of several weights the largest, whose dual is the flattest."""
    weight = ambiguity.level if ambiguity.has_weight else 1.0
    finite = np.asarray(weight)[np.isfinite(weight)]
    return Setting(
        shape.discount,
        float(finite.max()) if finite.size else 1.0,
        shape.value_range,
        ambiguity.divergence.scale,
        d_min,
        d_max,
        ambiguity.divergence if ambiguity.has_weight else None,
    )
