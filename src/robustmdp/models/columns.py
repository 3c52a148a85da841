"""What users bring as arrays, with the type that it must have: converted without loss, or refused by name and place."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import BoolArray, FloatArray, IntArray

LARGEST = 2**31 - 2  # states and actions are stored in 32 bits, and the end needs a number, too
NAMES = ("state", "action", "next_state", "probability", "reward")  # of what says one transition
NUMBERS = "iuf"  # kinds of arrays that hold real numbers
NUMBERS_OR_FLAGS = "biuf"

_EXACT = 2.0**53  # up to here every whole number is a float
_LONGEST = 80  # letters of a value in a message
_TRUE, _FALSE = ("true", "1", "1.0"), ("false", "0", "0.0")

Place = Callable[[str, int], str]


@dataclass(frozen=True, eq=False)
class Words:
    """A column of words: entry i is `words[codes[i]]`, and lacks where the code is -1. Words may repeat.

    >>> column = Words.of(["keep", "repair", "keep"])
    >>> column.codes.tolist(), column.words, np.asarray(column).tolist()
    ([0, 1, 0], ['keep', 'repair'], ['keep', 'repair', 'keep'])
    """

    codes: IntArray
    words: Sequence[Any]

    @staticmethod
    def of(entries: Sequence[Any]) -> Words:
        """Each different entry once, as they first appear."""
        known: dict[Any, int] = {}
        codes = np.fromiter((known.setdefault(entry, len(known)) for entry in entries), np.int64, len(entries))
        return Words(codes, list(known))

    @property
    def shape(self) -> tuple[int, ...]:
        """(n,)"""
        return self.codes.shape

    def __len__(self) -> int:
        return len(self.codes)

    def used(self) -> list[Any]:
        """The words that come, without those that only stand in the list."""
        here = np.bincount(self.codes + 1, minlength=len(self.words) + 1)[1:] > 0
        return [word for word, comes in zip(self.words, here.tolist(), strict=True) if comes]

    def stripped(self) -> Words:
        """Without the blanks around words."""
        return Words(self.codes, [word.strip() for word in self.words])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """The entries as objects, None where one lacks."""
        return np.array([*self.words, None], object)[self.codes]


Column = npt.NDArray[Any] | Words


def column_of(name: str, value: Any) -> Column:
    """`value` as an array of its own type, or as words where it holds text."""
    if isinstance(value, Words):
        return value
    array = array_of(name, value)
    if array.ndim == 1 and (array.dtype.kind in "UT" or (array.dtype.kind == "O" and _starts_with_text(array))):
        return Words.of(value if isinstance(value, (list, tuple)) else array.tolist())  # numpy makes text of numbers
    return array


def _starts_with_text(array: npt.NDArray[Any]) -> bool:
    """Is the first entry that does not lack a word?"""
    return isinstance(next((entry for entry in array if entry is not None and entry == entry), None), str)


def array_of(name: str, value: Any) -> npt.NDArray[Any]:
    """`value` as an array of its own type, refused where a mask would be ignored."""
    if _is_masked(value):
        _checks.fail(f"{name} must have no masked entries: fill them in or leave their transitions out")
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as problem:
        _checks.fail(f"{name} must be an array of numbers: {problem}")


def to_columns(given: Mapping[str, Any], where: str = "") -> dict[str, Column]:
    """The columns with their own types, all 1-D and as long as the first."""
    found = {name: column_of(name, value) for name, value in given.items()}
    first = next(iter(found))
    length = math.prod(found[first].shape)
    for name, column in found.items():
        must = f"1-D and as long as {first} ({length})"
        _checks.must(column.shape == (length,), f"{name} must be {must}: got shape {column.shape}{where}")
    return found


def _is_masked(value: Any) -> bool:
    masked_arrays = sys.modules.get("numpy.ma")  # slow to import; without it there are none
    if masked_arrays is None:
        return False
    if isinstance(value, masked_arrays.MaskedArray):
        return bool(masked_arrays.is_masked(value))
    if not isinstance(value, (list, tuple)):
        return False
    suspects = tuple(kind for kind in set(map(type, value)) if issubclass(kind, (list, tuple, np.ndarray)))
    return bool(suspects) and any(_is_masked(item) for item in value if isinstance(item, suspects))


def real_numbers(name: str, value: Any, place: Place | None = None, *, kinds: str = NUMBERS) -> FloatArray:
    """float64, contiguous where they are 1-D; NaN and infinities pass."""
    if type(value) is np.ndarray and value.dtype == np.float64 and value.flags.c_contiguous:
        return value
    raw = array_of(name, value)
    numbers = _numbers("be a number" if raw.ndim == 1 else "hold numbers", name, raw, place, kinds)
    with np.errstate(over="ignore"):  # of longer types: infinities are the caller's to refuse
        return np.asarray(numbers, dtype=np.float64, order="C" if numbers.ndim == 1 else None)


def finite_numbers(name: str, value: Any, place: Place | None = None, *, kinds: str = NUMBERS) -> FloatArray:
    """The same without NaN and infinities."""
    numbers = real_numbers(name, value, place, kinds=kinds)
    refuse_where(~np.isfinite(numbers), "be finite", name, numbers, place)
    return numbers


def whole_numbers(
    name: str, value: Any, most: int | None = None, place: Place | None = None, *, kinds: str = NUMBERS
) -> IntArray:
    """Contiguous int64 in 0..most; checked before they are converted, since that wraps."""
    raw = array_of(name, value)
    numbers = _numbers("be a whole number", name, raw, place, kinds)
    if numbers.dtype.kind == "f":
        refuse_where(~(np.isfinite(numbers) & (numbers == np.floor(numbers))), "be a whole number", name, raw, place)
    limit = LARGEST if most is None else most
    if numbers.size and not (numbers.min() >= 0 and numbers.max() <= limit):
        shown = numbers.astype(np.int64) if np.abs(numbers, dtype=np.float64).max() < _EXACT else raw
        refuse_where(numbers < 0, "be at least 0" if most is None else f"lie in 0..{limit}", name, shown, place)
        refuse_where(numbers > limit, f"lie in 0..{limit}", name, shown, place)
    return np.asarray(numbers, dtype=np.int64, order="C")


def check_size(name: str, value: Any, most: int = LARGEST + 1) -> int:
    """How many states or actions there are."""
    size = _checks.positive_integer(name, value)
    _checks.must(size <= most, f"{name} must be at most {most}: got {size}")
    return size


def flags(name: str, value: Any, place: Place | None = None) -> BoolArray:
    """Contiguous bool, from 0 and 1 and from words, too."""
    raw = column_of(name, value)
    if isinstance(raw, Words):
        spelled = [str(word).strip().lower() for word in [*raw.words, None]]
        true, false = (np.array([word in listed for word in spelled])[raw.codes] for listed in (_TRUE, _FALSE))
    elif raw.dtype.kind == "b":
        return np.asarray(raw, order="C")
    elif raw.dtype.kind in NUMBERS:
        true, false = raw == 1, raw == 0
    else:
        words = np.char.lower(np.char.strip(raw.astype(str)))
        true, false = (np.logical_or.reduce([words == word for word in listed]) for listed in (_TRUE, _FALSE))
    if not (true | false).all():
        refuse_where(~(true | false), "be 0, 1, true or false", name, array_of(name, raw), place)
    return np.asarray(true, order="C")


def _numbers(must: str, name: str, raw: npt.NDArray[Any], place: Place | None, kinds: str) -> npt.NDArray[Any]:
    """The same numbers in an array whose type says that they are."""
    if raw.dtype.kind in kinds:
        return raw
    if raw.dtype.kind != "O":  # text, complex numbers, dates, flags
        refuse_where(np.ones(raw.shape, bool), must, name, raw, place)
        _checks.fail(f"{name} must hold numbers: got an empty array of {raw.dtype}")
    wrong = [not isinstance(entry, (Real, Decimal)) or isinstance(entry, (bool, np.bool_)) for entry in raw.flat]
    refuse_where(np.reshape(wrong, raw.shape), must, name, raw, place)
    try:
        return raw.astype(np.float64)
    except OverflowError:
        _checks.fail(f"{name} must hold numbers below 1.8e308: got a larger one")


def refuse_where(wrong: BoolArray, must: str, name: str, values: npt.NDArray[Any], place: Place | None = None) -> None:
    """Name the first wrong entry, if there is one."""
    if wrong.any():
        refuse(int(np.argmax(wrong)), must, name, values, place)


def refuse(entry: int, must: str, name: str, values: npt.NDArray[Any], place: Place | None = None) -> NoReturn:
    """Name an entry, by its number in the flat array."""
    value = values.flat[entry]
    shown = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    _checks.fail(f"{name} must {must}: got {shown[:_LONGEST]} at {(place or _placer(values.shape))(name, entry)}")


def _placer(shape: tuple[int, ...]) -> Place:
    return lambda name, entry: f"{name}{[int(i) for i in np.unravel_index(entry, shape)] or ''}"
