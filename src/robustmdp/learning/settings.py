"""A learner's settings as values that JSON can hold, and back; only records known here come back."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from robustmdp import _checks, ambiguity, divergences
from robustmdp.learning import behaviour, schedules

_DIVERGENCES = ("ChiSquare", "KL", "TotalVariation", "Burg", "Hellinger", "JensenShannon", "CressieRead")
_SCHEDULES = (
    "Constant", "Polynomial", "RescaledPolynomial", "RescaledLinear", "WeightOverRoot", "DualPolynomial",
    "Theorem41", "Theorem42", "Theorem51", "Theorem51Dual", "Growing",
)  # fmt: skip


_known: dict[str, Any] = {
    **{name: getattr(divergences, name) for name in _DIVERGENCES},
    **{name: getattr(schedules, name) for name in _SCHEDULES},
    "Nominal": ambiguity.Nominal,
    "Penalized": ambiguity.Penalized,
    "Constrained": ambiguity.Constrained,
    "EpsilonGreedy": behaviour.EpsilonGreedy,
}


def register(record: type) -> None:
    """Let a learner's record come back from a checkpoint."""
    _known[record.__name__] = record


def encode(thing: Any) -> Any:
    """Records become {"type": name, field: ...}; infinities become text, which JSON has no number for."""
    if isinstance(thing, np.generic):
        thing = thing.item()
    if isinstance(thing, float) and not math.isfinite(thing):
        return {"number": repr(thing)}
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, np.ndarray | tuple | list):
        return [encode(entry) for entry in (thing.tolist() if isinstance(thing, np.ndarray) else thing)]
    name = type(thing).__name__
    if getattr(thing, "has_weight", False) or getattr(thing, "has_radius", False):
        return {"type": name, "divergence": encode(thing.divergence), thing.level_name: encode(thing.level)}
    if getattr(thing, "is_nominal", False):
        return {"type": name}
    # A user's own divergence is made of functions.
    _checks.must(getattr(thing, "is_built_in", True), f"a checkpoint can hold built-in divergences only: got {thing!r}")
    if is_dataclass(thing):
        return {"type": name} | {field.name: encode(getattr(thing, field.name)) for field in fields(thing)}
    _checks.fail(f"a checkpoint can hold records and numbers only: got {thing!r}")


def decode(value: Any) -> Any:
    """The inverse of `encode`."""
    if isinstance(value, list):
        return [decode(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if "number" in value:
        return float(value["number"])
    name = str(value.get("type"))
    _checks.must(name in _known, f"a checkpoint must hold records that this version knows: got {name!r}")
    arguments = {key: decode(entry) for key, entry in value.items() if key != "type"}
    try:
        return _known[name](**arguments)
    except TypeError as problem:
        _checks.fail(f"a checkpoint must hold settings that this version knows: {name} does not fit ({problem})")
