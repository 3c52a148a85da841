"""The world as data: one CSR matrix with a row per available (state, action) pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display, _types
from robustmdp._arrays import BoolArray, FloatArray, IndexArray
from robustmdp.models import building, columns, consistency, gymnasium, row_sums, stepping
from robustmdp.models.assembly import merge_rows
from robustmdp.models.labels import Labels, check_labels, checked_initial, same_labels
from robustmdp.models.noise import Noise
from robustmdp.models.rows import TransitionRows

if TYPE_CHECKING:
    import scipy.sparse as sp

Model = TypeVar("Model", bound="MDP")


@dataclass(frozen=True, eq=False, repr=False)
class MDP(TransitionRows, _display.Described):
    """A finite Markov decision process <S, A, P, R, discount>, immutable; make one with a `from_...` method.

    Pairs are sorted by state, then action; state s owns the pairs `state_ptr[s]:state_ptr[s+1]`. Ending is an outcome
    like any other: a hidden end state with index `n_states`, value 0, which nature can use as well.

    A model made by `from_noise` remembers the distribution of its noise: every row then has the K entries of that
    distribution in their order, and may repeat a successor. What changes probabilities makes an ordinary model of it.

    Attributes
    ----------
    indptr : (n_pairs + 1,) row starts
    indices : (nnz,) successors, rising within a row unless there is a noise; `n_states` is the end
    probabilities : (nnz,) all positive; rows sum to 1 within rounding
    rewards : (n_pairs,), or (nnz,) where a reward depends on the successor
    state_ptr : (n_states + 1,)
    actions : (n_pairs,)
    discount : float in [0, 1]
    state_names, action_names : tuples of names, or None
    labels : dict from names to the states that have the label, (S,) bool
    initial : (S,) probabilities of the first state, or None
    noise : what `from_noise` made it from, with `probabilities` (K,) and `values`, or None

    >>> world = MDP.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [1.0, 0.0], 0.9)
    >>> world.n_states, world.n_actions, world.nnz
    (2, 1, 3)
    """

    indptr: IndexArray
    indices: IndexArray
    probabilities: FloatArray
    rewards: FloatArray
    state_ptr: IndexArray
    actions: IndexArray
    n_actions: int
    discount: float
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None
    labels: dict[str, BoolArray] = field(default_factory=Labels)
    initial: FloatArray | None = None
    noise: Noise | None = None

    def __post_init__(self) -> None:
        # Kernels trust a model, so whatever was given or unpickled is checked once, here.
        n_actions = _checks.positive_integer("n_actions", self.n_actions)
        if not isinstance(self.noise, Noise | None):
            raise TypeError(f"noise must be a Noise or None: got {type(self.noise).__name__}")
        arrays = consistency.convert_arrays({name: getattr(self, name) for name in consistency.TYPES})
        values: dict[str, Any] = {
            **consistency.checked_arrays(arrays, n_actions, noise=self.noise),
            "n_actions": n_actions,
            "discount": _checks.model_discount(self.discount),
            "state_names": _checks.names("state", self.state_names, len(arrays["state_ptr"]) - 1),
            "action_names": _checks.names("action", self.action_names, n_actions),
            "labels": check_labels(self.labels, len(arrays["state_ptr"]) - 1),
            "initial": checked_initial(self.initial, len(arrays["state_ptr"]) - 1),
            "noise": self.noise,
        }
        self._set(values)

    def _set(self, values: dict[str, Any]) -> None:
        for name in consistency.TYPES:
            values[name].flags.writeable = False
        self.__dict__.update(values)

    def _replace(self, **changes: Any) -> MDP:
        """The same model with other parts that fit the rest, without the checks."""
        return from_checked(MDP, **{name: self.__dict__[name] for name in _FIELDS} | changes)

    @staticmethod
    def from_arrays(
        transitions: npt.ArrayLike | Sequence[sp.spmatrix],
        rewards: npt.ArrayLike | Sequence[sp.spmatrix],
        discount: float,
        *,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        labels: Mapping[str, npt.ArrayLike] | None = None,
        initial: npt.ArrayLike | None = None,
    ) -> MDP:
        """From dense arrays or one sparse matrix per action.

        Parameters
        ----------
        transitions : (S, A, S) array, or A scipy.sparse matrices (S, S)
            An all-zero row means that the action is unavailable there.
        rewards : (S,), (S, A), (S, A, S), or A scipy.sparse matrices (S, S)
        labels : dict from names to (S,) bool arrays
        initial : a state by number or name, or (S,) probabilities of the first one
        """
        _types.check_arguments(MDP.from_arrays, {"state_names": state_names, "action_names": action_names})
        parts = building.from_arrays(transitions, rewards, discount, (state_names, action_names))
        return from_checked(MDP, **parts)._described(labels, initial)

    @staticmethod
    def from_rows(
        state: npt.ArrayLike,
        action: npt.ArrayLike,
        next_state: npt.ArrayLike,
        probability: npt.ArrayLike,
        reward: npt.ArrayLike,
        discount: float,
        *,
        terminated: npt.ArrayLike | None = None,
        n_states: int | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        labels: Mapping[str, npt.ArrayLike] | None = None,
        initial: npt.ArrayLike | None = None,
    ) -> MDP:
        """From five equally long 1-D arrays, one entry per transition, in any order.

        States and actions are whole numbers, or names, which are numbered in the order of their letters or as in
        `state_names` and `action_names`.

        Entries with the same state, action, successor and end flag are merged: probabilities add, rewards take their
        conditional mean. An entry that is `terminated`, or whose successor is `n_states`, leads to the end.
        """
        _types.check_arguments(MDP.from_rows, {"state_names": state_names, "action_names": action_names})
        given = (state, action, next_state, probability, reward)
        names = (state_names, action_names)
        parts = building.from_rows(given, discount, terminated=terminated, n_states=n_states, names=names)
        return from_checked(MDP, **parts)._described(labels, initial)

    @staticmethod
    def from_frame(frame: Any, discount: float) -> MDP:
        """From a table of pandas, polars or Arrow, or a dict of columns; one row per transition, in any order.

        Its columns are state, action, next_state, probability and reward, or craam's names of these, and perhaps
        terminated; see `from_rows`.

        >>> frame = {"state": ["new", "worn"], "action": ["run", "fix"], "next_state": ["worn", "new"]}
        >>> world = MDP.from_frame({**frame, "probability": [1.0, 1.0], "reward": [5.0, -3.0]}, 0.9)
        >>> world.state_names, world.action_names, world.n_pairs
        (('new', 'worn'), ('fix', 'run'), 2)
        """
        return from_checked(MDP, **building.from_frame(frame, discount))

    @staticmethod
    def from_gymnasium(env_or_id: Any, discount: float, **parameters: Any) -> MDP:
        """From the table `env.unwrapped.P` of a Gymnasium environment.

        Parameters
        ----------
        env_or_id : an environment, or the id of one
        discount : float in [0, 1]
        parameters : keyword arguments of the environment, with an id only: `gymnasium.make(id, **parameters)`

        >>> lake = MDP.from_gymnasium("FrozenLake-v1", discount=0.99, is_slippery=False)
        >>> lake.n_states, lake.nnz
        (16, 64)
        """
        return from_checked(MDP, **gymnasium.from_gymnasium(env_or_id, discount, parameters))

    @staticmethod
    def from_noise(
        step: Callable[[Any, Any, Any], Any],
        n_states: int,
        n_actions: int,
        noise: npt.ArrayLike,
        discount: float,
        *,
        values: Any = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> MDP:
        """From `next_state, reward[, terminated] = step(state, action, values[k])` with probability `noise[k]`.

        Outcomes stay apart: a row has an entry for each value of the noise, in their order, also where two of them lead
        to the same state. Sets therefore speak of the distribution of the noise. Values of probability 0 are left out.

        Parameters
        ----------
        step : function
            It is called once, with integer arrays (n,) of all states and actions, and with values of shape (n,), or
            (d, n) where they are vectors. If it raises or does not return n next states, it is called for each
            combination with plain numbers instead. Both must agree on some combinations. An action is unavailable where
            it returns None or a negative next state for every value of the noise. `terminated`, or next state
            `n_states`, is the end.
        noise : (K,) probabilities, such as counts / counts.sum()
        discount : float in [0, 1]
        values : (K,) or (K, d) numbers, or a list of K objects; by default 0, 1, ..., K - 1

        >>> def sell(stock, order, demand):
        ...     have = np.minimum(stock + order, 2)
        ...     return np.maximum(have - demand, 0), 3.0 * np.minimum(have, demand) - order
        >>> store = MDP.from_noise(sell, n_states=3, n_actions=2, noise=[0.5, 0.3, 0.2], discount=0.9)
        >>> store.row(1, 0)
        Table, 3 rows
          noise  successor  probability  reward
              0          1          0.5       0
              1          0          0.3       3
              2          0          0.2       3
        """
        _types.check_arguments(MDP.from_noise, locals())
        names = (state_names, action_names)
        parts = stepping.from_noise(step, n_states, n_actions, Noise.of(noise, values), discount, names)
        return from_checked(MDP, **parts)

    def with_labels(self, labels: Mapping[str, npt.ArrayLike]) -> MDP:
        """The same world with these labels instead of its own: names to (S,) bool arrays.

        >>> from robustmdp import problems
        >>> world = problems.two_state(0.5, 0.9)
        >>> world.with_labels({"goal": [False, True]}).labels["goal"]
        array([False,  True])
        """
        return self._replace(labels=check_labels(labels, self.n_states))

    def with_initial(self, initial: npt.ArrayLike | None) -> MDP:
        """The same world with another first state: by number or name, (S,) probabilities, or None for none."""
        return self._replace(initial=checked_initial(initial, self.n_states, state_names=self.state_names))

    def _described(self, labels: Mapping[str, npt.ArrayLike] | None, initial: npt.ArrayLike | None) -> MDP:
        return self._replace(labels=check_labels(labels, self.n_states)).with_initial(initial)

    def with_discount(self, discount: float) -> MDP:
        """The same world with another discount."""
        return self._replace(discount=_checks.model_discount(discount))

    def with_probabilities(self, probabilities: npt.ArrayLike) -> MDP:
        """The same world with other probabilities of its transitions, (nnz,); those that become 0 are dropped.

        Each row must still sum to 1; where it is off by more than rounding, it is divided by its sum.
        """
        given = columns.real_numbers("probabilities", probabilities)
        _checks.must(
            given.shape == (self.nnz,),
            f"probabilities must have one entry per transition ({self.nnz}): got shape {given.shape}",
        )
        columns.refuse_where(~(given >= 0), "be at least 0", "probabilities", given, self._place)
        kept = given > 0
        if kept.all():
            return self._with_rows(self.indptr, self.indices, given.copy(), self.rewards)
        indptr = np.append(0, np.cumsum(kept))[self.indptr]
        lost = np.flatnonzero(np.diff(indptr) == 0)
        if lost.size:
            _checks.fail(f"the probabilities of {self.pair_name(lost[0])} must sum to 1: got 0")
        rewards = self.rewards[kept] if self.rewards_on_successors else self.rewards
        return self._with_rows(indptr, self.indices[kept], given[kept], rewards)

    def _place(self, name: str, entry: int) -> str:
        """Where one of the transitions stands, in messages."""
        return f"{name}[{entry}], {self.pair_name(int(np.searchsorted(self.indptr, entry, side='right')) - 1)}"

    def without_noise(self) -> MDP:
        """The same world as an ordinary model: outcomes with the same successor become one, with their mean reward.

        Sets then speak of successors. A model that has no noise comes back as it is.
        """
        if self.noise is None:
            return self
        return self._with_rows(self.indptr, self.indices, self.probabilities.copy(), self.rewards)

    def with_added(self, starts: npt.ArrayLike, successors: npt.ArrayLike, probabilities: npt.ArrayLike) -> MDP:
        """The same world in which pairs may lead to further states as well.

        Parameters
        ----------
        starts : (n_pairs + 1,)
            The row of pair k is starts[k]:starts[k + 1] of what follows: the model's successors and then other states,
            none of them twice.
        successors, probabilities : (n,)
            Zeros are dropped. A new successor is reached with the mean reward of the pair.
        """
        begins = columns.whole_numbers("starts", starts)
        successor = columns.whole_numbers("successors", successors, self.n_columns).astype(self.indices.dtype)
        given = columns.real_numbers("probabilities", probabilities)
        pair = np.repeat(np.arange(self.n_pairs), np.diff(begins))
        is_new = np.arange(len(given)) - begins[pair] >= np.diff(self.indptr)[pair]
        rewards = self.mean_rewards()[pair]
        if self.rewards_on_successors:
            rewards[~is_new] = self.rewards
        kept = np.flatnonzero(given > 0.0)
        kept = kept[np.lexsort((successor[kept], pair[kept]))]
        indptr = np.searchsorted(pair[kept], np.arange(self.n_pairs + 1))
        rewards = rewards[kept] if self.rewards_on_successors else self.rewards
        return self._with_rows(indptr, successor[kept], given[kept], rewards)

    def _with_rows(
        self, indptr: IndexArray, indices: IndexArray, probabilities: FloatArray, rewards: FloatArray
    ) -> MDP:
        """The same pairs with other rows, whose probabilities are this model's to change; without the noise."""
        if self.noise is not None:
            indptr, indices, probabilities, rewards = merge_rows(indptr, indices, probabilities, rewards)
        probabilities = row_sums.normalise(
            indptr,
            probabilities,
            lambda pair, total: f"the probabilities of {self.pair_name(pair)} must sum to 1: got {total:.9g}",
            in_place=True,
        )
        return self._replace(indptr=indptr, indices=indices, probabilities=probabilities, rewards=rewards, noise=None)

    def restricted(self, pairs: npt.ArrayLike) -> MDP:
        """The same world with some of its pairs only, by their rising numbers; every state must keep one."""
        chosen = columns.whole_numbers("pairs", pairs, self.n_pairs - 1)
        _checks.must(chosen.ndim == 1, f"pairs must be 1-D: got shape {chosen.shape}")
        columns.refuse_where(np.diff(chosen, prepend=-1) <= 0, "rise", "pairs", chosen)
        indptr = np.append(0, np.cumsum(np.diff(self.indptr)[chosen]))
        entries = self.transitions_of(chosen)
        state_ptr = np.searchsorted(chosen, self.state_ptr)
        _checks.must(bool((np.diff(state_ptr) > 0).all()), "every state must keep at least one of its actions")
        return self._replace(
            indptr=indptr,
            indices=self.indices[entries],
            probabilities=self.probabilities[entries],
            rewards=self.rewards[entries if self.rewards_on_successors else chosen],
            state_ptr=state_ptr,
            actions=self.actions[chosen],
        )

    def with_rewards(self, rewards: npt.ArrayLike) -> MDP:
        """The same world with other rewards, (n_pairs,) or (nnz,)."""
        given = columns.finite_numbers("rewards", rewards)
        _checks.must(
            given.shape in ((self.n_pairs,), (self.nnz,)),
            f"rewards must have one entry per pair ({self.n_pairs}) or transition ({self.nnz}): got {given.shape}",
        )
        return self._replace(rewards=given.copy())

    def with_extra_rewards(self, table: npt.ArrayLike) -> MDP:
        """The same world with an (S, A) table added to its rewards."""
        extra = self.pairs(table, "extra rewards")
        if self.rewards_on_successors:
            extra = np.repeat(extra, np.diff(self.indptr))
        with np.errstate(over="ignore", invalid="ignore"):
            rewards = self.rewards + extra
        columns.refuse_where(~np.isfinite(rewards), "be finite", "rewards with the extra ones", rewards)
        return self._replace(rewards=rewards)

    def _fields(self) -> _display.Fields:
        low, high = self.reward_range
        dependence = "state, action and successor" if self.rewards_on_successors else "state and action"
        labels = [f"{name} ({int(mask.sum()):,})" for name, mask in self.labels.items()]
        fields = [
            ("states", f"{self.n_states:,}"),
            ("actions", f"{self.n_actions:,} ({self.n_pairs:,} pairs available)"),
            ("transitions", f"{self.nnz:,}" + (", some end the episode" if self.can_end else "")),
            ("rewards", f"{low:g} to {high:g}, by {dependence}"),
            ("discount", f"{self.discount:g}"),
            ("noise", f"{len(self.noise):,} values, the same in every row" if self.noise is not None else ""),
            ("state names", _display.shortlist(self.state_names or ())),
            ("action names", _display.shortlist(self.action_names or ())),
            ("labels", _display.shortlist(labels)),
            ("initial", self._first_states()),
        ]
        return [(label, text) for label, text in fields if text]

    def _first_states(self) -> str:
        """In words: the one, or how many."""
        if self.initial is None:
            return ""
        states = np.flatnonzero(self.initial)
        return self.state_name(int(states[0])) if len(states) == 1 else f"{len(states):,} states"

    def _identity(self) -> tuple[Any, ...]:
        return self.n_actions, self.discount, self.state_names, self.action_names

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MDP):
            return NotImplemented
        arrays = (*consistency.TYPES, "initial")
        return (
            self._identity() == other._identity()
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)
            and same_labels(self.labels, other.labels)
            and self.noise == other.noise
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return MDP, tuple(getattr(self, name) for name in _FIELDS)  # a copy is checked and made read-only again

    def __hash__(self) -> int:
        return hash((*self._identity(), self.n_states, self.nnz))


_FIELDS = tuple(field.name for field in fields(MDP))


def from_checked(kind: type[Model], **parts: Any) -> Model:
    """A model of parts that are known to be consistent, named as there, unchecked; arrays become read-only."""
    model = object.__new__(kind)
    model._set(dict.fromkeys(_FIELDS) | {"labels": Labels()} | parts)
    return model
