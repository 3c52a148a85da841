"""Arguments against the annotations of what takes them: one sentence for a wrong type, without a check for each."""

from __future__ import annotations

import builtins
import os
import sys
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from robustmdp import _checks

# Types that are told in words, each with its test.
_KNOWN: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    NoneType: ("None", lambda value: value is None),
    bool: ("True or False", lambda value: isinstance(value, bool | np.bool_)),
    float: ("a number", _checks.is_number),
    int: ("a whole number", _checks.is_whole),
    str: ("a string", lambda value: isinstance(value, str)),
    os.PathLike: ("a path", lambda value: isinstance(value, os.PathLike)),
    Callable: ("a function", callable),
    Iterable: ("a list", lambda value: _is_list(value, sized=False)),
    Mapping: ("a dict", lambda value: isinstance(value, Mapping)),
    Sequence: ("a list", lambda value: _is_list(value, sized=True)),
}
_EXAMPLES = {
    "Criterion": "one such as FiniteHorizon(12), TotalReward() or AverageReward()",
    "FDivergence": "one, such as rm.KL()",
    "Solver": "a solver such as ValueIteration()",
}
_CHECKED_ELSEWHERE = ("Ambiguity", "Schedule")  # a user's own need not inherit


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Refuse an argument whose type is not that of its annotation; for the first line of a function, with `locals()`.

    Annotations that hold for any array, and those that cannot be looked up, are left to the function.

    >>> def half(number: float) -> float:
    ...     check_arguments(half, locals())
    ...     return number / 2
    >>> half("1")
    Traceback (most recent call last):
        ...
    TypeError: number must be a number: got '1'
    """
    for name, hint in _hints(function).items():
        if name in arguments and not _fits(arguments[name], hint):
            _checks.refuse_type(name, _describe(hint), arguments[name])


def check_fields(record: Any) -> None:
    """The same for the fields of a dataclass, for its `__post_init__`."""
    check_arguments(type(record), vars(record))


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations that can be looked up: in the function's module, or among the public names."""
    found: dict[str, Any] = {}
    owners = reversed(function.__mro__) if isinstance(function, type) else [function]
    for owner in owners:
        known = ChainMap(vars(sys.modules[owner.__module__]), _Public())
        for name, text in getattr(owner, "__annotations__", {}).items():
            try:
                found[name] = eval(text, {}, known) if isinstance(text, str) else text
            except (NameError, TypeError):
                found[name] = Any
    found.pop("return", None)
    return found


class _Public(dict[str, Any]):
    """Public names, for annotations whose import is for type checkers alone."""

    def __missing__(self, name: str) -> Any:
        import robustmdp

        if hasattr(builtins, name) or name not in robustmdp.__all__:
            raise KeyError(name)
        return getattr(robustmdp, name)


def _fits(value: Any, hint: Any) -> bool:
    """Is this a value of that type? Yes, where the type is not one of those known here."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return any(type(value) is type(part) for part in parts)  # the function suggests the nearest word
    if origin is tuple:
        return _is_tuple(value, parts)
    kind = origin or hint
    if kind is Any or getattr(kind, "__name__", "") in _CHECKED_ELSEWHERE:
        return True
    if kind in (Iterable, Sequence) and parts == (str,) and isinstance(value, str):
        return True
    if kind in _KNOWN:
        return _KNOWN[kind][1](value)
    if kind is type:
        return isinstance(value, type) and any(issubclass(value, part) for part in parts)
    if getattr(kind, "_is_protocol", False) and origin is None:
        return not isinstance(value, type) and all(hasattr(value, name) for name in _members(kind))
    if not isinstance(kind, type) or kind.__module__.startswith("numpy"):
        return True
    return isinstance(value, kind)


def _is_list(value: Any, *, sized: bool) -> bool:
    """Can it be gone through, in an order of its own? Arrays and columns of tables are no `Sequence` by name."""
    if isinstance(value, str | bytes | type) or (sized and isinstance(value, Mapping | Set)):
        return False
    try:
        if sized:
            len(value)
        iter(value)
    except TypeError:
        return False
    return True


def _is_tuple(value: Any, parts: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple | list):
        return False
    hints = [parts[0]] * len(value) if parts[-1] is Ellipsis else list(parts)
    return len(value) == len(hints) and all(map(_fits, value, hints))


@cache
def _members(protocol: type) -> list[str]:
    """The names that a protocol asks for."""
    names = {*vars(protocol), *getattr(protocol, "__annotations__", {})}
    return [name for name in names if not name.startswith("_")]


def _describe(hint: Any) -> str:
    """A type in words."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        words = list(dict.fromkeys(_describe(part) for part in parts if part is not NoneType))
        return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if origin is tuple and parts[-1] is not Ellipsis:
        return f"a tuple of {len(parts)}: {', '.join(map(_describe, parts))}"
    if origin is type:
        return f"the class {' or '.join(part.__name__ for part in parts)}"
    kind = origin or hint
    if kind in _KNOWN:
        return _KNOWN[kind][0]
    name = getattr(kind, "__name__", str(kind))
    if name in _EXAMPLES:
        return _EXAMPLES[name]
    return f"{'an' if name[0] in 'AEIO' or name.startswith('MDP') else 'a'} {name}"
