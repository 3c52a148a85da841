"""Records of parameters: one docstring per field, and each record is its experiment's command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, get_args, get_origin, get_type_hints

from robustmdp import _checks

_INSIDE = {  # open intervals
    "stay": (0.0, 1.0),
    "restart": (0.0, 1.0),
    "discount": (0.0, 1.0),
    "behaviour": (0.0, 1.0),
    "behaviours": (0.0, 1.0),
    "radius": (0.0, float("inf")),
    "weight": (0.0, float("inf")),
    "weights": (0.0, float("inf")),
    "low_weights": (0.0, float("inf")),
    "others": (0.0, 1.0),
    "leak": (0.0, 1.0),
    "epsilon": (0.0, 1.0),
    "alpha_powers": (0.0, 1.0),
    "beta_powers": (0.0, 1.0),
}


@dataclass(frozen=True, kw_only=True)
class Record:
    """Parameters are checked once, here."""

    quick: ClassVar[Mapping[str, Any]] = {}  # what the version of a minute changes

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            given = getattr(self, field.name)
            if isinstance(given, tuple):
                _checks.must(len(given) > 0, f"{field.name} must hold at least one value: got none")
                twice = [value for value in given if given.count(value) > 1]
                _checks.must(not twice, f"{field.name} must hold different values: got {twice[:1]} more than once")
            for value in given if isinstance(given, tuple) else (given,):
                _check(field.name, value)


def _check(name: str, value: Any) -> None:
    if isinstance(value, str):
        from robustmdp.divergences import divergence_named

        divergence_named(value)
    elif isinstance(value, int):
        _checks.positive_integer(name, value)
    elif name in _INSIDE:
        low, high = _INSIDE[name]
        _checks.must(low < value < high, f"{name} must lie in ({low:g}, {high:g}): got {value:g}")


@dataclass(frozen=True, kw_only=True)
class OnChain(Record):
    """The world: the paper's ten states."""

    stay: Annotated[tuple[float, ...], "Probability p that action 1 stays, one or several"] = (0.8,)
    discount: Annotated[float, "Discount factor gamma"] = 0.9


@dataclass(frozen=True, kw_only=True)
class OnLoop(OnChain):
    """The world of the Markovian experiments, where the last state returns to the first."""

    restart: Annotated[float, "Probability q that the last state returns to the first"] = 0.5


@dataclass(frozen=True, kw_only=True)
class Penalties(Record):
    """How far the truth may be."""

    divergence: Annotated[str, "One of chi2, kl, tv, burg, hellinger, js, cr:K"] = "chi2"
    weights: Annotated[tuple[float, ...], "Penalties lambda"] = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class Replications(Record):
    """How often each setting is repeated."""

    seeds: Annotated[int, "Replications of each setting"] = 100


class Option(NamedTuple):
    """A field as the command line sees it; `several` values are separated by commas."""

    name: str
    of: type
    several: bool
    doc: str


def options_of(record: type) -> dict[str, Option]:
    """What may be said about an experiment.

    >>> sorted(options_of(OnLoop)), options_of(OnLoop)["stay"].several
    (['discount', 'restart', 'stay'], True)
    """
    hints = get_type_hints(record, include_extras=True)
    return {field.name: _option(field.name, hints[field.name]) for field in dataclasses.fields(record)}


def _option(name: str, hint: Any) -> Option:
    kind, doc = get_args(hint)
    several = get_origin(kind) is tuple
    return Option(name, get_args(kind)[0] if several else kind, several, doc)
