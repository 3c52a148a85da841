"""What installed packages add by entry points: names are known at once, objects are loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

Test = Callable[[Any], bool]


def names(kind: str) -> list[str]:
    """What packages add of a kind: divergence, set, format or problem; the group is `robustmdp.divergences`, ..."""
    return sorted({point.name.lower() for point in _points(kind)})


def find(kind: str, name: str) -> EntryPoint | None:
    """The entry point of a name; None where no package adds it."""
    found = [point for point in _points(kind) if point.name.lower() == name.lower()]
    if len(found) > 1:
        owners = " and ".join(sorted(map(_package, found)))
        raise ValueError(f"{kind} {name!r} must come from one package: {owners} add it")
    return found[0] if found else None


def load(kind: str, point: EntryPoint, must: str, is_right: Test) -> Any:
    """The object of an entry point, if it passes the test; `must` says what that is."""
    return _get(kind, point, must, is_right, point.load)


def call(
    kind: str, point: EntryPoint, must: str, is_right: Test, function: Any, *arguments: Any, **options: Any
) -> Any:
    """What a function of an entry point's object returns, if it passes the test."""
    return _get(kind, point, must, is_right, lambda: function(*arguments, **options))


def build(kind: str, point: EntryPoint, must: str, is_right: Test, *arguments: Any, **options: Any) -> Any:
    """The same where the object is the function."""
    function = load(kind, point, f"be a function, to {must}", callable)
    return call(kind, point, must, is_right, function, *arguments, **options)


def code(point: EntryPoint, name: str, call: str = "") -> list[str]:
    """Python that gives this name to its object, or to what a call of it returns."""
    return [f"import {point.module}", f"{name} = {point.module}.{point.attr}{call}"]


def _get(kind: str, point: EntryPoint, must: str, is_right: Test, make: Callable[[], Any]) -> Any:
    added = f"{kind} {point.name!r} of the package {_package(point)}"
    try:
        thing = make()
    except Exception as error:
        raise ValueError(f"{added} must {must}: got {type(error).__name__}: {error}") from error
    if not is_right(thing):
        raise ValueError(f"{added} must {must}: got {type(thing).__name__}")
    return thing


def _points(kind: str) -> list[EntryPoint]:
    return list(entry_points(group=f"robustmdp.{kind}s"))


def _package(point: EntryPoint) -> str:
    return "?" if point.dist is None else f"{point.dist.name} {point.dist.version}"
