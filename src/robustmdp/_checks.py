"""Argument checks. Each error is one sentence: what must hold, what came, where."""

from __future__ import annotations

import difflib
import math
import reprlib
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from numbers import Integral
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray, IntArray

_MOST_LISTED, _MOST_CLOSE = 40, 10  # names in a message, and of more than these the nearest
_MOST_COMPARED = 10_000  # names that a wrong one is compared with

# Float32 data sum to 1 within 1e-7; anything further off is a mistake, not rounding.
SUM_TOLERANCE = 1e-6


def wrong_sums(sums: npt.ArrayLike) -> IntArray:
    """Where sums of probabilities are not 1; NaN is not."""
    return np.flatnonzero(~(np.abs(np.asarray(sums) - 1.0) <= SUM_TOLERANCE))


def fail(
    sentence: str, *, argument: str = "", advice: str = "", kind: type[Exception] = ValueError, **values: Any
) -> NoReturn:
    """Raise the error that users of this package catch.

    It carries what another interface needs to say it in its own words: the name of the argument, with which a sentence
    begins unless another one is given, what to do about it in Python, and the values that this advice speaks of.
    """
    carried = {"argument": argument or sentence.partition(" ")[0], "advice": advice, "values": values}
    raise _with(kind(f"{sentence}{advice}"), carried)


def _with(error: Exception, carried: dict[str, Any]) -> Exception:
    """A name for it in the frame that raises would keep all of the traceback alive."""
    vars(error).update(carried)
    return error


def must(holds: bool, sentence: str, *, argument: str = "", advice: str = "") -> None:
    """Raise unless the condition holds."""
    if not holds:
        fail(sentence, argument=argument, advice=advice)


def refuse_type(name: str, wanted: str, value: Any) -> NoReturn:
    """Raise for an argument of a wrong type: what it must be, and what came."""
    is_class = isinstance(value, type)
    got = f"the class {value.__name__}, where {value.__name__}() makes one" if is_class else show(value)
    fail(f"{name} must be {wanted}: got {got}", kind=TypeError)


def show(value: Any) -> str:
    """A value in one line of an error."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape} and type {value.dtype}"
    text = reprlib.repr(value)
    return text if "\n" not in text and len(text) <= 80 else f"an object of type {type(value).__name__}"


def is_number(value: Any) -> bool:
    """Is it one real number, such as 2, 0.5, a NumPy number or a 0-dimensional array of one?"""
    if isinstance(value, np.generic | np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "biuf"
    return not isinstance(value, type) and hasattr(value, "__float__") and getattr(value, "shape", ()) == ()


def is_whole(value: Any) -> bool:
    """Is it an integer of Python or NumPy?"""
    return isinstance(value, Integral) and not isinstance(value, bool)


def finite_number(name: str, value: Any) -> float:
    """`value` as a finite float."""
    if not is_number(value):
        refuse_type(name, "a number", value)
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    must(math.isfinite(number), f"{name} must be finite: got {number}")
    return number


def probability(name: str, value: Any) -> float:
    """A number in [0, 1]."""
    number = finite_number(name, value)
    must(0.0 <= number <= 1.0, f"{name} must lie in [0, 1]: got {number:g}")
    return number


def discount(value: Any) -> float:
    """A discount factor in [0, 1)."""
    number = finite_number("discount", value)
    must(0.0 <= number < 1.0, f"discount must lie in [0, 1): got {number:g}")
    return number


def model_discount(value: Any) -> float:
    """A discount factor in [0, 1]: a model may have 1, which some criteria allow."""
    return probability("discount", value)


def array(name: str, value: Any) -> npt.NDArray[Any]:
    """`value` as an array of any type and shape."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError):  # lists of different lengths
        raise TypeError(f"{name} must be an array: got {show(value)}") from None


def numbers(name: str, value: Any) -> FloatArray:
    """A copy of `value` as an array of floats."""
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of numbers: got {show(value)}") from None


def positive_integer(name: str, value: Any) -> int:
    """`value` as an int >= 1."""
    if not is_whole(value):
        refuse_type(name, "a whole number", value)
    must(bool(value >= 1), f"{name} must be at least 1: got {value}")
    return int(value)


def level(name: str, value: npt.ArrayLike, lowest: float = 0.0, highest: float = math.inf) -> float | FloatArray:
    """A weight, radius or the like: one number in [lowest, highest], or an (S, A) array of them, NaN where unused.

    Sets that share a level among the actions of a state take (S,) numbers as well.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number or an (S, A) array: got {show(value)}") from None
    must(array.ndim <= 2, f"{name} must be a number or an (S, A) array: got shape {array.shape}")
    low = "(0" if 0.0 < lowest < 1e-300 else f"[{lowest:g}"  # the least number above 0 stands for an open end
    if array.ndim == 0:
        must(not math.isnan(float(array)), f"{name} must be a number in {low}, {highest:g}]: got nan")
    wrong = np.argwhere((array < lowest) | (array > highest))
    if len(wrong):
        where = tuple(int(i) for i in wrong[0])
        place = f" at {name}{list(where)}" if where else ""
        allowed = f"be at least {lowest:g}" if highest == math.inf else f"lie in {low}, {highest:g}]"
        fail(f"{name} must {allowed}: got {array[where]:g}{place}")
    return float(array) if array.ndim == 0 else array


def nearest(kind: str, name: str, known: Iterable[str], *, argument: str = "") -> NoReturn:
    """Refuse an unknown name and suggest the nearest known one; of many names only the nearest are listed."""
    names = list(known)
    must(bool(names), f"{kind} must be left out: there is none to choose from, got {name!r}")
    compared = {n.lower(): n for n in reversed(names[:_MOST_COMPARED])}
    matches = difflib.get_close_matches(name.lower(), list(compared), n=_MOST_CLOSE, cutoff=0.4)
    close = [compared[match] for match in matches]
    few = len(names) <= _MOST_LISTED
    listed = ", ".join(names) if few else f"{len(names):,} names, such as {', '.join(close or names[:_MOST_CLOSE])}"
    hint = f"; did you mean {close[0]!r}?" if close else ""
    fail(f"{kind} must be one of {listed}: got {name!r}{hint}", argument=argument)


def file_there(path: Path) -> None:
    """Refuse a folder, and a file that is not there; suggest one whose name is nearly the same."""
    must(not path.is_dir(), f"path must be a file: {path} is a folder")
    if path.is_file():
        return
    beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, beside, n=1)
    hint = f"; did you mean {str(path.with_name(close[0]))!r}?" if close else ""
    fail(f"path must exist: there is no file {path}{hint}")


def package(name: str, purpose: str, source: str = "") -> Any:
    """A package, or an error that says what it is needed for and how to get it: from `source`, which brings it."""
    try:
        return import_module(name)
    except ImportError:
        install = f"pip install {repr(source) if source else name}"
        raise ImportError(f"{name} must be installed {purpose}: {install}") from None


def names(kind: str, given: Sequence[Any] | None, count: int) -> tuple[str, ...] | None:
    """Names of states or actions, as many as there are and all different."""
    if given is None:
        return None
    listed = tuple(str(name) for name in given)
    must(len(listed) == count, f"{kind}_names must have one name per {kind}: got {len(listed)} for {count} {kind}s")
    if len(set(listed)) != count:
        twice, _ = Counter(listed).most_common(1)[0]  # of several the first one
        fail(f"{kind}_names must all differ: {twice!r} came twice")
    return listed
