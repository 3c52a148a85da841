"""Sets that are records of a level and a few settings."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.ambiguity.base import Ambiguity, Level


class Levelled(Ambiguity):
    """A level, one number or an (S, A) array, and settings that give the set its kind; equal by value, immutable."""

    lowest: ClassVar[float] = 0.0
    highest: ClassVar[float] = np.inf

    def __init__(self, level: npt.ArrayLike, **settings: Any) -> None:
        checked = _checks.level(self.level_name, level, self.lowest, self.highest)
        if isinstance(checked, np.ndarray):
            checked = checked.copy()
            checked.flags.writeable = False
        vars(self).update(settings, _level=checked, _settings=settings)

    @property
    def level(self) -> Level:
        level: Level = vars(self)["_level"]
        return level

    @property
    def _own(self) -> dict[str, Any]:
        """The settings, by the names of the constructor's arguments."""
        settings: dict[str, Any] = vars(self)["_settings"]
        return settings

    @property
    def label(self) -> str:
        per_pair = "per pair" if isinstance(self.level, np.ndarray) else f"{self.level:.3g}"
        return f"{type(self).__name__} {self.level_name} {per_pair}"

    def is_like(self, other: Ambiguity) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, Levelled)
            and all(_is_same(mine, other._own[name]) for name, mine in self._own.items())
        )

    def contains(self, other: Ambiguity) -> bool:
        if other.is_nominal:
            return True
        if not self.is_like(other):
            return False
        compare = np.greater_equal if self.grows else np.less_equal
        missing = np.isnan(self.level) & np.isnan(other.level)
        return bool(np.all(compare(self.level, other.level) | missing))

    def check_parts(self) -> None:
        """Levels are cut with the states."""

    def on_part(self, model: Any, states: slice, transitions: slice) -> Ambiguity:
        del model, transitions
        if isinstance(self.level, float):
            return self
        return _build(type(self), {**self._own, self.level_name: self.level[states]})

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Levelled)
            and self.is_like(other)
            and np.array_equal(self.level, other.level, equal_nan=True)
        )

    def __hash__(self) -> int:
        return hash((type(self), np.asarray(self.level).tobytes(), *map(_hashable, self._own.values())))

    def __reduce__(self) -> tuple[object, ...]:
        return _build, (type(self), {**self._own, self.level_name: self.level})

    def __repr__(self) -> str:
        level = f"{self.level!r}" if isinstance(self.level, float) else f"<{self._level_text()}>"
        given = [f"{name}={_describe(value)}" for name, value in self._own.items() if value is not None]
        return f"{type(self).__name__}({', '.join([level, *given])})"


def _build(kind: type[Levelled], arguments: dict[str, Any]) -> Levelled:
    return kind(**arguments)


def arrays_of(value: Any) -> tuple[np.ndarray, ...] | None:
    """What an array or a sparse matrix consists of; None for anything else."""
    if isinstance(value, np.ndarray):
        return (value,)
    return (value.indptr, value.indices, value.data) if hasattr(value, "indptr") else None


def _is_same(mine: Any, other: Any) -> bool:
    parts, others = arrays_of(mine), arrays_of(other)
    if mine is other or parts is None or others is None:
        return mine is other or (parts is others and bool(mine == other))
    return len(parts) == len(others) and all(map(np.array_equal, parts, others))


def _describe(value: Any) -> str:
    return repr(value) if arrays_of(value) is None else f"<{value.size} numbers>"


def _hashable(value: Any) -> Any:
    parts = arrays_of(value)
    return value if parts is None else tuple(part.tobytes() for part in parts)
