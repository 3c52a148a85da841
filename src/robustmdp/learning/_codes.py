"""How the compiled learners know a set: integer codes, and a user's own functions compiled in.

f = scale * (its normal form) + slope_at_one * (t - 1); the formulas of the normal forms are in `_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from robustmdp import _checks
from robustmdp.ambiguity import Ambiguity, check_ambiguity
from robustmdp.divergences import FDivergence, JensenShannon, TotalVariation
from robustmdp.learning import _jit, _kernels
from robustmdp.learning._kernels import (
    CONSTRAINED,
    CRESSIE_READ,
    JENSEN_SHANNON,
    NOMINAL,
    OWN,
    PENALIZED,
    TOTAL_VARIATION,
)

_Functions = tuple[Callable[[float], float], Callable[[float], float]]


class Code(NamedTuple):
    """A divergence for compiled code: `k` is the power of Cressie-Read, or f'(1) of a user's own."""

    kind: int
    k: float
    scale: float


class Spec(NamedTuple):
    """An ambiguity for compiled code; `edge` is f'(inf) in normal form."""

    mode: int
    kind: int
    k: float
    edge: float


def code_of(divergence: FDivergence) -> Code:
    """The code of a divergence.

    >>> from robustmdp import Hellinger
    >>> code_of(Hellinger())
    Code(kind=0, k=0.5, scale=0.5)
    """
    power = getattr(divergence, "power", None)
    if power is not None:
        return Code(CRESSIE_READ, power, divergence.scale)
    if _functions(divergence) is not None:
        return Code(OWN, divergence.slope_at_one, divergence.scale)
    if divergence == JensenShannon():
        return Code(JENSEN_SHANNON, 0.0, divergence.scale)
    if divergence == TotalVariation():
        return Code(TOTAL_VARIATION, 0.0, divergence.scale)
    _checks.fail(f"a learner's divergence must be a built-in one or a Divergence(...): got {divergence!r}")


def spec_of(ambiguity: Ambiguity) -> Spec:
    """The code of an ambiguity.

    >>> from robustmdp import KL, Penalized
    >>> spec_of(Penalized(KL(), 1.0))
    Spec(mode=1, kind=0, k=1.0, edge=inf)
    """
    divergence: FDivergence | None = getattr(ambiguity, "divergence", None)
    if divergence is None or not (ambiguity.is_nominal or ambiguity.has_weight or ambiguity.has_radius):
        _checks.fail(f"a learner's ambiguity must be Nominal(), Penalized(...) or Constrained(...): got {ambiguity!r}")
    kind, k, _ = code_of(divergence)
    mode = NOMINAL if ambiguity.is_nominal else PENALIZED if ambiguity.has_weight else CONSTRAINED
    return Spec(mode, kind, k, divergence.edge)


def check_learnable(ambiguity: object) -> Ambiguity:
    """Refuse anything but an ambiguity that the learners have codes for."""
    known = check_ambiguity(ambiguity)
    spec_of(known)
    return known


def specialise(divergence: FDivergence | None, entry: Any) -> Any:
    """The compiled kernel `entry` for a divergence; built-in ones share one copy."""
    functions = _functions(divergence)
    return entry if functions is None else _jit.respecialise(entry, _copies(*functions))


def _functions(divergence: FDivergence | None) -> _Functions | None:
    """(f*, f*') of a user's own divergence, None of a built-in one."""
    functions: _Functions | None = getattr(divergence, "functions", None)
    if functions is None and hasattr(divergence, "_derivative"):
        own: Any = divergence
        functions = own._conjugate, own._derivative
    return functions


@lru_cache(maxsize=64)
def _copies(conjugate: Any, derivative: Any) -> dict[Any, Any]:
    """The compiled copies of kernels for one pair of functions, in memory, to be added to."""
    return {
        _kernels.own_conjugate: _jit.compile_own(conjugate),
        _kernels.own_conjugate_derivative: _jit.compile_own(derivative),
    }
