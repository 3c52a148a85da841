"""The noise behind a model: one distribution that all pairs share, so that entry k of each row is its value k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.models import columns, row_sums
from robustmdp.models.labels import read_only

_STORED = "biufU"  # kinds of values that files can hold


@dataclass(frozen=True, eq=False, repr=False)
class Noise:
    """P(noise = values[k]) = probabilities[k].

    Attributes
    ----------
    probabilities : (K,) all positive, with sum 1
    values : (K,) or (K, d) numbers, or (K,) words or objects

    >>> Noise.of([0.25, 0.0, 0.75], [0, 10, 20])
    Noise of 2 values
    """

    probabilities: FloatArray
    values: npt.NDArray[Any]

    @staticmethod
    def of(probabilities: npt.ArrayLike, values: Any = None) -> Noise:
        """Checked copies, without the values of probability 0; the values are 0, 1, ... where none are given."""
        given = columns.real_numbers("noise", probabilities)
        _checks.must(
            given.ndim == 1 and given.size > 0, f"noise must be a 1-D array of probabilities: got shape {given.shape}"
        )
        columns.refuse_where(~(np.isfinite(given) & (given >= 0)), "be finite and at least 0", "noise", given)
        _checks.must(
            not _checks.wrong_sums(given.sum()).size,
            f"noise must hold probabilities that sum to 1: got {given.sum():.9g}; divide counts by their sum, as in "
            "noise=counts / counts.sum()",
        )
        listed = np.arange(len(given)) if values is None else _as_values(values)
        _checks.must(
            len(listed) == len(given),
            f"values must be as many as the probabilities of the noise ({len(given)}): got {len(listed)}",
        )
        kept = given > 0
        own = row_sums.normalise(
            np.array([0, kept.sum()]), given[kept], lambda _, total: f"noise must sum to 1: got {total:.9g}"
        )
        return Noise(read_only(own), read_only(listed[kept]))

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def column(self) -> npt.NDArray[Any]:
        """The values as a column of a table: those of shape (K, d) as tuples."""
        return _listed(list(map(tuple, self.values.tolist()))) if self.values.ndim == 2 else self.values

    def to_builtins(self) -> tuple[Any, ...]:
        """The values as files hold them."""
        kind = self.values.dtype.kind
        _checks.must(
            kind in _STORED and (kind != "f" or bool(np.isfinite(self.values).all())),
            "the values of the noise must be finite numbers, flags or words to be stored: number them instead",
        )
        return tuple(self.values.tolist())

    @staticmethod
    def from_builtins(values: Sequence[Any], probabilities: FloatArray, name: str) -> Noise:
        """The reverse, for what came out of a file; `probabilities` are those of its first row."""
        listed = _as_values(values)
        _checks.must(
            listed.dtype.kind in _STORED and len(listed) == len(probabilities) > 0,
            f"the noise of {name} must have one number, flag or word per entry of a row",
        )
        return Noise.of(probabilities, listed)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Noise):
            return NotImplemented
        return np.array_equal(self.probabilities, other.probabilities) and self.values.tolist() == other.values.tolist()

    def __hash__(self) -> int:
        return hash((len(self), self.probabilities.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Noise.of, (self.probabilities, self.values)  # a copy is checked and made read-only again

    def __repr__(self) -> str:
        return f"Noise of {len(self):,} values"


def _as_values(given: Any) -> npt.NDArray[Any]:
    """A copy: numbers of one or two dimensions in 64 bits, flags, words, or objects one by one."""
    try:
        array = np.array(given)
    except (TypeError, ValueError):  # nested lists of different lengths
        return _listed(given)
    is_words = array.dtype.kind == "U" and all(isinstance(value, str) for value in given)  # 1 beside "a" stays 1
    if array.ndim == 1 and (array.dtype.kind == "b" or is_words):
        return array
    if array.ndim in (1, 2) and array.dtype.kind == "f":
        return array.astype(np.float64)
    if array.ndim in (1, 2) and array.dtype.kind in "iu" and np.can_cast(array.dtype, np.int64):
        return array.astype(np.int64)
    return _listed(given)


def _listed(objects: Any) -> npt.NDArray[Any]:
    """A column of objects."""
    if not hasattr(objects, "__len__") or hasattr(objects, "tocsr"):
        raise TypeError(f"values must be an array or a list: got {type(objects).__name__}")
    out = np.empty(len(objects), dtype=object)
    for place, thing in enumerate(objects):
        out[place] = thing
    return out
