"""Tables of a learner, O(|S||A|): how they are saved, and what may be loaded into them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.learning.schedules import Numbers
from robustmdp.learning.sources import Shape, Source
from robustmdp.models import columns

Tables = dict[str, npt.NDArray[Any]]
Limits = Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]
LARGEST_FLOAT = sys.float_info.max
MOST_SAMPLES = 1 << 61  # streams of random numbers are numbered with 63 bits, and a transition takes up to two


class Expected(NamedTuple):
    """What a saved table must be: type, shape, and the range of its entries, one or one per entry."""

    dtype: npt.DTypeLike
    shape: tuple[int, ...]
    least: npt.ArrayLike | None = None
    most: npt.ArrayLike | None = None


def check_tables(saved: Tables, expected: Mapping[str, Expected]) -> None:
    """Refuse tables that no run can have saved, before compiled code takes an entry for an index."""
    _checks.must(
        saved.keys() == expected.keys(), f"the tables must be {', '.join(sorted(expected))}: got {sorted(saved)}"
    )
    for name, (dtype, shape, least, most) in expected.items():
        table = saved[name]
        _checks.must(
            table.dtype == dtype and table.shape == shape,
            f"{name} must be {np.dtype(dtype)} of shape {shape}: got {table.dtype} of shape {table.shape}",
        )
        if least is not None and most is not None:
            wrong = ~((table >= least) & (table <= most))  # NaN is outside of every range
            if wrong.any():
                first = int(np.argmax(wrong))
                low, high = (np.broadcast_to(bound, shape).flat[first] for bound in (least, most))
                columns.refuse(first, f"lie in {low}..{high}", name, table)


def load_tables(own: Tables, saved: Tables, limits: Limits) -> None:
    """Copy what was saved into tables of the same types and shapes."""
    check_tables(
        saved, {name: Expected(table.dtype, table.shape, *limits.get(name, ())) for name, table in own.items()}
    )
    for name, table in own.items():
        table[...] = saved[name]


class LearnerState:
    """Tables of some replications, which move as transitions come.

    The core moves them in place; what it makes of them is made anew where they travel.

    Attributes
    ----------
    tables : named arrays, (replications * n_pairs,) or (replications * n_states,)
    extent : (replications, 2), the least and the largest reward so far
    diverged : (replications,), the step at which Q was no longer finite, or -1
    inside : do rewards belong to the outcome, and so to nature's choice?
    """

    tables: Tables
    q_steps: Numbers
    by_visits: bool

    def __init__(self, ambiguity: Ambiguity, shape: Shape, replications: int, inside: bool = False) -> None:
        self._ambiguity, self._shape, self.inside = ambiguity, shape, inside
        rewards = shape.reward_range or (math.inf, -math.inf)
        self.extent = np.tile(np.array(rewards, dtype=np.float64), (replications, 1))
        self.diverged = np.full(replications, -1, np.int64)

    def advance(self, source: Source, first: int, count: int) -> int:
        """Take `count` steps after the first `first`; returns how many the source could give."""
        raise NotImplementedError

    def q(self) -> FloatArray:
        """The learned Q, (replications * n_pairs,)."""
        return self.tables["q"]

    def iterate(self) -> FloatArray:
        """The current Q, (replications * n_pairs,), the same where nothing is averaged."""
        return self.tables["q"]

    def eta(self, span: slice) -> FloatArray:
        """discount * eta in normal form of some cells; NaN where no dual variable is learned."""
        return self.tables["eta"][span] if "eta" in self.tables else np.full(span.stop - span.start, math.nan)

    def save(self) -> Tables:
        """All that a run goes on from; not copied, for what is saved is written at once."""
        return {**self.tables, "extent": self.extent, "diverged": self.diverged}

    def load(self, saved: Tables) -> None:
        """Into the tables that are there, once they are known to be those of such a run."""
        own = self.save()
        load_tables(own, saved, self._limits())
        has_diverged = np.repeat(self.diverged >= 0, self._shape.n_pairs)
        for name in own.keys() & {"q", "average"}:
            # Q may be -inf where nothing is known, and anything in a replication that has diverged.
            least = -math.inf if self._shape.reward_range is None else -LARGEST_FLOAT
            wrong = ~((own[name] >= least) & (own[name] <= LARGEST_FLOAT)) & ~has_diverged
            columns.refuse_where(wrong, "be finite", name, own[name])

    def _limits(self) -> Limits:
        """The range of each table that kernels index with or count on."""
        shape, replications = self._shape, len(self.diverged)
        return {
            "greedy": (np.tile(shape.state_ptr[:-1], replications), np.tile(shape.state_ptr[1:] - 1, replications)),
            "lowest": (-1, shape.n_states),
            "shared_error": (-LARGEST_FLOAT, LARGEST_FLOAT),
            "drawn": (0, MOST_SAMPLES),
            "diverged": (-1, MOST_SAMPLES),
            "extent": self._extent_limits(),
        }

    def _extent_limits(self) -> tuple[npt.ArrayLike, npt.ArrayLike]:
        """Of a fresh extent: rewards that are known in advance, or any that are finite."""
        if self._shape.reward_range is not None:
            return self.extent, self.extent
        return (-LARGEST_FLOAT, -math.inf), (math.inf, LARGEST_FLOAT)

    @cached_property
    def core_state(self) -> Any:
        """The tables by name, for the core."""
        known = {name: table for name, table in self.tables.items() if name != "drawn"}
        if self._shape.mixture is not None:
            known["mixture"] = self._shape.mixture
        extent = self.extent.reshape(-1)
        return _core.LearnerState(state_ptr=self._shape.state_ptr, extent=extent, diverged=self.diverged, **known)

    def core_settings(self, levels: FloatArray, **more: Any) -> Any:
        """What every compiled learner must know."""
        shape = self._shape
        return _core.LearnerSettings(
            levels=levels, discount=shape.discount, inside=self.inside, can_end=shape.can_end, **more
        )

    def __getstate__(self) -> dict[str, Any]:
        compiled = ("core_state", "update", "_refiner", "_betas")
        return {name: value for name, value in self.__dict__.items() if name not in compiled}
