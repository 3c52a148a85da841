"""Gymnasium environments as they are written: gym:ID, or gym:ID?NAME=VALUE&NAME=VALUE."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from robustmdp import _checks

if TYPE_CHECKING:
    from robustmdp.app.study import Layout

PREFIX = "gym:"


class Environment(NamedTuple):
    """An environment by its id, with its keyword arguments; `text` is both as they were written."""

    text: str
    identifier: str
    parameters: dict[str, Any]

    def make(self) -> Any:
        """The environment itself."""
        from robustmdp.models.gymnasium import make_environment

        return make_environment(self.identifier, self.parameters)

    @property
    def keywords(self) -> str:
        """The parameters as they follow other arguments of a call in Python."""
        return "".join(f", {name}={value!r}" for name, value in self.parameters.items())


def parse_environment(word: str) -> Environment:
    """An environment as on the command line.

    >>> parse_environment("gym:FrozenLake-v1?is_slippery=false&map_name=8x8")[1:]
    ('FrozenLake-v1', {'is_slippery': False, 'map_name': '8x8'})
    """
    text = word.removeprefix(PREFIX)
    identifier, mark, rest = text.partition("?")
    _checks.must(bool(identifier), "gym: must be followed by an environment's id, such as gym:FrozenLake-v1")
    parameters: dict[str, Any] = {}
    for part in rest.split("&") if mark else ():
        name, sign, value = part.partition("=")
        _checks.must(
            name.isidentifier() and bool(sign),
            f"the parameters of {identifier} must be NAME=VALUE with & between them, as in "
            f"'gym:FrozenLake-v1?is_slippery=false&map_name=8x8': got {part!r}",
        )
        _checks.must(name not in parameters, f"{word} must name each parameter once: {name} came twice")
        # In Python the discount of the model has this name, so that an environment's own could not be told from it.
        _checks.must(name != "discount", f"the discount must be given as --discount: got {word!r}")
        parameters[name] = parse_value(value)
    return Environment(text, identifier, parameters)


def parse_value(word: str) -> Any:
    """A parameter of an environment: JSON where it is JSON, a number, True or False as Python has them, else text.

    >>> [parse_value(word) for word in ("0.5", ".5", "true", "False", "[1, 0]", "null", "8x8", '"8"')]
    [0.5, 0.5, True, False, [1, 0], None, '8x8', '8']
    """
    kinds: tuple[Callable[[str], Any], ...] = (json.loads, int, float)
    for kind in kinds:
        try:
            return kind(word)
        except (ValueError, RecursionError):
            continue
    # The text "False" would count as true in an environment.
    return {"true": True, "false": False}.get(word.lower(), word)


def layout_of(env: Any) -> Layout | None:
    """The layout of a Gymnasium world that is known to be a grid, else None."""
    from robustmdp.app.study import Layout

    inner = getattr(env, "unwrapped", env)
    kind = type(inner).__name__
    if kind == "FrozenLakeEnv":
        rows, columns = inner.desc.shape
        letters = [cell.decode() for cell in inner.desc.ravel()]
        marks = {state: letter for state, letter in enumerate(letters) if letter != "F"}
        closed = frozenset(state for state, letter in marks.items() if letter in "HG")
        return Layout(rows, columns, ("left", "down", "right", "up"), marks, closed)
    if kind == "CliffWalkingEnv":
        rows, columns = (int(size) for size in inner.shape)
        start, goal = (rows - 1) * columns, rows * columns - 1
        cliff = dict.fromkeys(range(start + 1, goal), "C")
        marks = {**cliff, start: "S", goal: "G"}
        return Layout(rows, columns, ("up", "right", "down", "left"), marks, frozenset({*cliff, goal}))
    return None
