"""Records of parameters: one docstring per field, and each record is its experiment's command line."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple, get_args, get_origin, get_type_hints

from robustmdp import _checks

_UNBOUNDED = ("radius", "weight", "weights", "low_weights")  # the others lie in (0, 1)

# Fields of several records.
Divergence = Annotated[str, "One of chi2, kl, tv, burg, hellinger, js, cr:K"]
Weight = Annotated[float, "Penalty lambda"]
Weights = Annotated[tuple[float, ...], "Penalties lambda"]
Rounds = Annotated[int, "Outer iterations T of Algorithm 1"]
InnerSteps = Annotated[int, "Inner iterations T' of Algorithm 1"]
Transitions = Annotated[int, "Transitions T of Algorithm 2"]
Sweeps = Annotated[int, "Outer iterations T of Algorithm 3"]
AscentSteps = Annotated[int, "Inner iterations T' of Algorithm 3"]
Behaviours = Annotated[tuple[float, ...], "Probabilities pi of action 1"]
Budgets = Annotated[tuple[int, ...], "Samples"]
Seeds = Annotated[int, "Replications of each setting"]


def changes(**fields: Any) -> Mapping[str, Any]:
    """Fields with other values than the defaults."""
    return MappingProxyType(fields)


@dataclass(frozen=True, kw_only=True)
class Record:
    """Parameters are checked once, here; `quick` is what the version of a minute changes."""

    quick: ClassVar[Mapping[str, Any]] = changes()

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            given = getattr(self, field.name)
            values = given if isinstance(given, tuple) else (given,)
            _checks.must(len(values) > 0, f"{field.name} must hold at least one value: got none")
            twice = [value for value in values if values.count(value) > 1]
            _checks.must(not twice, f"{field.name} must hold different values: got {twice[:1]} more than once")
            for value in values:
                _check(field.name, value)


def _check(name: str, value: Any) -> None:
    if isinstance(value, str):
        from robustmdp.divergences import divergence_named

        divergence_named(value)
    elif isinstance(value, int):
        _checks.positive_integer(name, value)
    else:
        high = math.inf if name in _UNBOUNDED else 1.0
        _checks.must(0.0 < value < high, f"{name} must lie in (0, {high:g}): got {value:g}")


@dataclass(frozen=True, kw_only=True)
class OnChain(Record):
    """The world: the paper's ten states."""

    stay: Annotated[tuple[float, ...], "Probability p that action 1 stays, one or several"] = (0.8,)
    discount: Annotated[float, "Discount factor gamma"] = 0.9

    @property
    def chain(self) -> dict[str, Any]:
        """As settings of tasks."""
        return {"stay": self.stay, "restart": 0.0, "discount": self.discount}


@dataclass(frozen=True, kw_only=True)
class OnLoop(OnChain):
    """The world of the Markovian experiments, where the last state returns to the first."""

    restart: Annotated[float, "Probability q that the last state returns to the first"] = 0.5

    @property
    def chain(self) -> dict[str, Any]:
        return {**super().chain, "restart": self.restart}


@dataclass(frozen=True, kw_only=True)
class Penalties(Record):
    """How far the truth may be."""

    divergence: Divergence = "chi2"
    weights: Weights = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)

    @property
    def penalties(self) -> dict[str, Any]:
        """As settings of tasks."""
        return {"weight": self.weights, "divergence": self.divergence}


@dataclass(frozen=True, kw_only=True)
class Replications(Record):
    """How often each setting is repeated."""

    seeds: Seeds = 100


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
    options = {}
    hints = get_type_hints(record, include_extras=True)
    for name in (field.name for field in dataclasses.fields(record)):
        kind, doc = get_args(hints[name])
        several = get_origin(kind) is tuple
        options[name] = Option(name, get_args(kind)[0] if several else kind, several, doc)
    return options
