"""What a set of nature's choices offers, and what sets with a level have in common."""

from __future__ import annotations

from abc import ABC
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.divergences import FDivergence

Level = float | FloatArray
Support = str | tuple[int, ...]


class Ambiguity(ABC):
    """What nature may do to the distribution of one (s, a) pair.

    Subclasses are records of their settings, immutable and equal by value; `settings` has the constructor's arguments.

    Kernels solve many rows, or states, at a time. They are compiled in `_core`, or written in Python with the same
    methods: `RowwiseKernel` and `SharedRows`.
    """

    is_nominal: ClassVar[bool] = False
    """Whether nature has no choice at all."""
    has_weight: ClassVar[bool] = False
    """Whether nature pays `level` per unit of `divergence`."""
    has_radius: ClassVar[bool] = False
    """Whether nature stays within `level` of the model in `divergence`."""
    is_statewise: ClassVar[bool] = False
    """Whether nature answers the actions of a state together, so that random policies can be better."""
    level_name: ClassVar[str] = "level"
    grows: ClassVar[bool] = True
    """Whether a larger level gives nature more room."""
    divergence: FDivergence
    """What `level` is measured in; a set with neither weight nor radius has none, but for the nominal one."""

    sign: ClassVar[float] = 1.0
    """-1 where nature helps the player: outcomes are negated before its rows are solved, and values after that."""
    kernel: Any
    """What solves its rows, where it is the same for all models."""
    level: Level
    """One number, or an (S, A) array."""
    settings: dict[str, Any]

    def __init__(self, **settings: Any) -> None:
        vars(self).update(settings, settings=settings)

    def kernel_for(self, model: Any) -> Any:
        """What solves the rows of a model with `indptr`, `indices`, `probabilities`, `states` and `actions`."""
        return self.kernel

    def kernel_for_row(self, p: FloatArray) -> tuple[Any, BoolArray]:
        """What solves one row, (n,), and the successors that can have mass."""
        return self.kernel, p > 0.0

    def state_kernel_for(self, model: Any) -> Any:
        """What solves the states of a model, where nature answers their actions together."""
        raise NotImplementedError

    def shared_kernel_for(self, model: Any) -> Any:
        """The same where the actions of a state share this set's level."""
        _checks.fail(f"set must be Constrained, Penalized, L1 or L2, whose level actions can share: got {self}")

    @property
    def invents(self) -> bool:
        """Whether nature may lead to states to which the model does not."""
        return False

    def candidates(self, n_states: int) -> IntArray:
        """The states to which nature may lead from anywhere, rising."""
        return np.empty(0, dtype=np.int64)

    def added_successors(
        self, outcome: FloatArray, longest_row: int, *, highest: float, rewards_differ: bool
    ) -> npt.NDArray[np.int32]:
        """States, besides the model's successors, that nature would use at these outcomes, (S,); the less the better.

        `longest_row` is the largest number of successors of a pair, and `highest` bounds what any of them is worth
        above the reward of an added one; `rewards_differ` says whether the reward of a pair depends on its successor.
        """
        return np.empty(0, dtype=np.int32)

    def check_parts(self) -> None:
        """Refuse to be cut into parts by `on_part`, where no rows need be read to tell."""
        _checks.must(
            isinstance(self.level, float),
            f"the {self.level_name} of a set must be one number where a model is cut into shards: got {self}",
        )

    def on_part(self, model: Any, states: slice, transitions: slice | IntArray) -> Ambiguity:
        """The same set for some states and transitions of a model; with all states, for what is left of its rows."""
        return self

    def on_transitions(self, model: Any) -> Ambiguity:
        """The same set of this model, with numbers of transitions in the model's order."""
        return self

    @property
    def names_states(self) -> bool:
        """Whether it has numbers for states as such, or leads to states of its own."""
        return self.invents

    @property
    def keeps_support(self) -> bool:
        """Whether nature must pay for taking all mass from a successor, or cannot; False where it is not known."""
        return self.is_nominal

    def kernel_level(self, discount: float) -> Level:
        """The level in the kernel's unit, for outcomes that are already discounted."""
        return self.level

    @property
    def eta_shift(self) -> Level:
        """What the paper's eta adds to that of the kernel, per unit of undiscounted outcomes."""
        return 0.0

    def paper_multipliers(self, eta: float, weight: float) -> tuple[float, float]:
        """(eta, weight) of the kernel in the paper's convention."""
        return eta, weight

    def is_like(self, other: Ambiguity) -> bool:
        """Whether the two differ in their level alone."""
        return type(self) is type(other)

    def contains(self, other: Ambiguity) -> bool:
        """Whether nature can do at least what the other allows, everywhere, as far as the records tell."""
        return other.is_nominal or self == other

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: make a new one to change {name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ambiguity) and self._has_settings_of(other)

    def _has_settings_of(self, other: Ambiguity, *, but: str = "") -> bool:
        same = (_is_same(mine, other.settings[name]) for name, mine in self.settings.items() if name != but)
        return type(self) is type(other) and all(same)

    def __hash__(self) -> int:
        return hash((type(self), *map(_hashable, self.settings.values())))

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), **self.settings), ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.settings.values()))})"

    def _level_code(self) -> str:
        return f"{self.level!r}" if isinstance(self.level, float) else f"<{self._level_text()}>"

    def _level_text(self) -> str:
        if isinstance(self.level, float):
            return f"{self.level:g}"
        known = self.level[~np.isnan(self.level)]
        of_each = "state" if self.level.ndim == 1 else "state and action"
        return f"{known.min(initial=np.inf):g} to {known.max(initial=-np.inf):g}, one per {of_each}"

    @property
    def label(self) -> str:
        """A few words for tables."""
        return str(self)

    def _repr_html_(self) -> str:
        return _display.as_html(type(self).__name__, [("meaning", str(self))])


class Levelled(Ambiguity):
    """A level, one number or an (S, A) array, and settings that give the set its kind; equal by value, immutable."""

    lowest: ClassVar[float] = 0.0
    highest: ClassVar[float] = np.inf
    meaning: ClassVar[str]  # a sentence, with {} where the level stands

    def __init__(self, level: npt.ArrayLike, **settings: Any) -> None:
        checked = _checks.level(self.level_name, level, self.lowest, self.highest)
        if isinstance(checked, np.ndarray):
            checked = checked.copy()
            checked.flags.writeable = False
        super().__init__(**{self.level_name: checked, **settings})
        vars(self).update(level=checked)

    def __str__(self) -> str:
        return self.meaning.format(self._level_text())

    @property
    def label(self) -> str:
        return f"{type(self).__name__} {self._level_label()}"

    def _level_label(self) -> str:
        return f"{self.level_name} {'per pair' if isinstance(self.level, np.ndarray) else f'{self.level:.3g}'}"

    def is_like(self, other: Ambiguity) -> bool:
        return self._has_settings_of(other, but=self.level_name)

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

    def on_part(self, model: Any, states: slice, transitions: slice | IntArray) -> Ambiguity:
        if isinstance(self.level, float):
            return self
        return type(self)(**{**self.settings, self.level_name: self.level[states]})

    def __repr__(self) -> str:
        others = [(name, value) for name, value in self.settings.items() if name != self.level_name]
        given = [f"{name}={_describe(value)}" for name, value in others if value is not None]
        return f"{type(self).__name__}({', '.join([self._level_code(), *given])})"


class Supported(Levelled):
    """A set whose `support` says to which states mass may move."""

    support: Support

    def __init__(self, level: npt.ArrayLike, *, support: Any = "model", **settings: Any) -> None:
        checked = _check_support(support)
        super().__init__(level, **settings, support=checked)

    def kernel_for_row(self, p: FloatArray) -> tuple[Any, BoolArray]:
        return self.kernel, self.kept(p)

    @property
    def invents(self) -> bool:
        return self.support != "model"

    def candidates(self, n_states: int) -> IntArray:
        if isinstance(self.support, str):
            return np.arange(n_states if self.invents else 0)
        _checks.must(
            self.support[-1] < n_states, f"support must hold states in 0..{n_states - 1}: got {self.support[-1]}"
        )
        return np.array(self.support)

    def lowest_candidates(self, outcome: FloatArray, count: int) -> npt.NDArray[np.int32]:
        """The `count` candidates with the lowest outcomes, from the lowest on; the first of those that are equal."""
        states = self.candidates(len(outcome))
        if count < len(states):  # sorting all of them would take longer than many a sweep
            values = outcome[states]
            states = states[values <= np.partition(values, count - 1)[count - 1]]
        return states[np.argsort(outcome[states], kind="stable")[:count]].astype(np.int32)

    def kept(self, p: FloatArray) -> BoolArray:
        """The entries of one row that can have mass."""
        kept = p > 0.0
        kept[self.candidates(len(p))] = True
        return kept

    @property
    def label(self) -> str:
        return super().label + ("" if self.support == "model" else ", new successors")

    def __repr__(self) -> str:
        return super().__repr__().replace(", support='model'", "")

    def __str__(self) -> str:
        meaning = super().__str__()
        if self.support == "model":
            return meaning
        if self.support == "all":
            return f"{meaning}; mass may move to any state, also where the model does not lead"
        return f"{meaning}; mass may also move to {len(self.support)} states that the model need not lead to"


def discounted(price: Level, factor: float) -> Level:
    """factor * price; an infinite price stays infinite even at factor 0."""
    is_infinite = np.isinf(price)
    scaled = np.where(is_infinite, price, factor * np.where(is_infinite, 0.0, price))
    return float(scaled) if isinstance(price, float) else scaled


def arrays_of(value: Any) -> tuple[np.ndarray, ...] | None:
    """What an array, a sparse matrix, or several of them consist of; None for anything else."""
    if isinstance(value, np.ndarray):
        return (value,)
    if isinstance(value, tuple):
        parts = [arrays_of(each) for each in value]
        return None if None in parts else tuple(array for part in parts for array in part or ())
    return (np.array(value.shape), value.indptr, value.indices, value.data) if hasattr(value, "indptr") else None


def _is_same(mine: Any, other: Any) -> bool:
    parts, others = arrays_of(mine), arrays_of(other)
    if mine is other or parts is None or others is None:
        return mine is other or (parts is others and bool(mine == other))
    same = (np.array_equal(a, b, equal_nan=True) for a, b in zip(parts, others, strict=False))
    return len(parts) == len(others) and all(same)


def _describe(value: Any) -> str:
    return repr(value) if arrays_of(value) is None else f"<{value.size} numbers>"


def _hashable(value: Any) -> Any:
    parts = arrays_of(value)
    return value if parts is None else tuple(part.tobytes() for part in parts)


def _check_support(given: Any) -> Support:
    """The words "model" and "all" as they are, states as a tuple."""
    if isinstance(given, str):
        if given not in ("model", "all"):
            _checks.nearest("support", given, ("model", "all"))
        return given
    try:
        states = np.asarray(given)
    except ValueError:
        states = np.empty(0)
    is_list = states.ndim == 1 and states.size > 0 and states.dtype.kind in "iu" and bool((states >= 0).all())
    _checks.must(is_list, f'support must be "model", "all" or a list of states: got {_checks.show(given)}')
    return tuple(sorted(set(states.tolist())))
