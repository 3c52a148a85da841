"""How often each transition was seen, and the model that such counts suggest."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display, _types
from robustmdp._arrays import BoolArray, FloatArray, IndexArray
from robustmdp.models.columns import Words
from robustmdp.models.frames import is_frame
from robustmdp.models.mdp import MDP
from robustmdp.models.naming import Numbering
from robustmdp.models.trajectory import Trajectory
from robustmdp.models.transitions import Transitions

SMOOTHING = {"none": 0.0, "half": 0.5, "laplace": 1.0}
_ROOM = 1 << 28  # entries of a table over states and actions: 2 GB


@dataclass(frozen=True, eq=False, repr=False)
class Counts(_display.Described):
    """Rows of counts, one per (state, action) pair that was seen or is known, sorted by state, then action.

    A listed successor may have a count of zero: then it is known to be possible, but was never seen.

    Attributes
    ----------
    state, action : (n_pairs,)
    indptr : (n_pairs + 1,) row starts
    next_state, ended : (nnz,) the successor, and whether the episode ended there
    count : (nnz,) how often
    reward : (nnz,) the mean reward; where nothing was seen, the known model's

    >>> log = Trajectory([0, 0, 0, 1], [0, 0, 0, 0], [1.0, 1.0, 0.0, 0.0], [0, 0, 1, 1])
    >>> counts = Counts.of(log)
    >>> counts.total.tolist(), counts.probabilities("half").tolist()[:2]
    ([3.0, 1.0], [0.625, 0.375])
    """

    state: IndexArray
    action: IndexArray
    indptr: IndexArray
    next_state: IndexArray
    ended: BoolArray
    count: FloatArray
    reward: FloatArray
    n_states: int
    n_actions: int
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, log: Trajectory) -> Counts:
        """One pass over a log; memory for the different transitions alone."""
        _checks.must(not log.replayed, "a log must be counted as it is: got one that is replayed, which is no new data")
        _checks.must(
            log.n_states * log.n_actions <= _ROOM,
            f"states and actions must be numbered from 0 on: the log has states up to {log.n_states - 1} and actions "
            f"up to {log.n_actions - 1}, too many for a table of {_ROOM:,} pairs",
        )
        tally = Tally(log.n_states, log.n_actions)
        for piece in log.chunks():
            tally.add(piece)
        return replace(tally.to_counts(), state_names=log.state_names, action_names=log.action_names)

    @property
    def total(self) -> FloatArray:
        """How often each pair was seen, (n_pairs,)."""
        return np.add.reduceat(self.count, self.indptr[:-1])

    @property
    def visits(self) -> FloatArray:
        """The same as an (S, A) table, zero where a pair is not listed."""
        return self.table(self.total, 0.0)

    @property
    def unseen(self) -> IndexArray:
        """The (state, action) of each pair that was never seen, listed or not, (n, 2)."""
        return np.argwhere(self.visits == 0)

    def table(self, pair_values: npt.ArrayLike, fill: float) -> FloatArray:
        """Values of the listed pairs as an (S, A) array."""
        out = np.full((self.n_states, self.n_actions), fill)
        out[self.state, self.action] = pair_values
        return out

    def with_successors(self, known: MDP) -> Counts:
        """The same counts, with every transition of a model listed as possible; it may have more states and actions."""
        _checks.must(
            known.n_states >= self.n_states and known.n_actions >= self.n_actions,
            f"the known model must have all states and actions of the log ({self.n_states}, {self.n_actions}): "
            f"got ({known.n_states}, {known.n_actions})",
        )
        counts = self._renumbered(known)
        known = known.without_noise()  # counts are of successors
        lengths = np.diff(known.indptr)
        rewards = known.rewards if known.rewards_on_successors else np.repeat(known.rewards, lengths)
        ends = known.indices == known.n_states
        tally = Tally(known.n_states, known.n_actions)
        pairs = counts._pairs
        key = tally.key(counts.state[pairs], counts.action[pairs], counts.next_state, counts.ended)
        tally.merge(key, counts.count, counts.reward)
        places = np.where(ends, 0, known.indices)
        key = tally.key(np.repeat(known.states, lengths), np.repeat(known.actions, lengths), places, False)
        fresh = ~ends & ~np.isin(key, tally.keys)
        tally.merge(key[fresh], np.zeros(int(fresh.sum())), rewards[fresh])
        tally.list_endings(key[ends] // tally.width, rewards[ends])
        return replace(
            tally.to_counts(),
            state_names=known.state_names or _matching(self.state_names, known.n_states),
            action_names=known.action_names or _matching(self.action_names, known.n_actions),
        )

    def _renumbered(self, known: MDP) -> Counts:
        """With the numbers that the names have in another model; rows keep their order."""
        states = _numbers_in("state", self.state_names, known.state_names, self.n_states)
        actions = _numbers_in("action", self.action_names, known.action_names, self.n_actions)
        return replace(self, state=states[self.state], action=actions[self.action], next_state=states[self.next_state])

    def probabilities(self, smoothing: str = "half") -> FloatArray:
        """(n_i + c)/(n + c k) over the k listed successors of each pair, (nnz,), with c = 0, 1/2 or 1.

        NaN where a pair was never seen and nothing is added.
        """
        if smoothing not in SMOOTHING:
            _checks.nearest("smoothing", smoothing, SMOOTHING)
        added = SMOOTHING[smoothing]
        weights = self.total + added * np.diff(self.indptr)
        with np.errstate(invalid="ignore"):
            return (self.count + added) / weights[self._pairs]

    def model(self, discount: float, smoothing: str = "half", *, least_reward: float | None = None) -> MDP:
        """The model with these probabilities and the mean rewards.

        Pairs of which nothing is known are unavailable. A state without any is taken to stay where it is and to earn
        `least_reward`, by default the least that was seen.
        """
        return self._model(self.probabilities(smoothing), discount, least_reward)

    def draw(self, discount: float, rng: np.random.Generator) -> MDP:
        """A model that the counts leave possible: each row from Jeffreys' posterior, Dirichlet(n_i + 1/2)."""
        mass = np.maximum(rng.standard_gamma(self.count + 0.5), np.finfo(float).tiny)
        return self._model(mass / np.add.reduceat(mass, self.indptr[:-1])[self._pairs], discount)

    def _model(self, probability: FloatArray, discount: float, least_reward: float | None = None) -> MDP:
        known = ~np.isnan(probability)
        pairs = self._pairs[known]
        state, action = self.state[pairs], self.action[pairs]
        idle = np.setdiff1d(np.arange(self.n_states), state)
        none = np.zeros(len(idle), np.int64)
        return MDP.from_rows(
            np.concatenate([state, idle]),
            np.concatenate([action, none]),
            np.concatenate([self.next_state[known], idle]),
            np.concatenate([probability[known], none + 1.0]),
            np.concatenate([self.reward[known], none + (self.reward.min() if least_reward is None else least_reward)]),
            discount,
            terminated=np.concatenate([self.ended[known], none.astype(bool)]),
            n_states=self.n_states,
            state_names=self.state_names,
            action_names=self.action_names[: int(action.max()) + 1] if self.action_names else None,
        )

    @property
    def _pairs(self) -> IndexArray:
        """The place of each transition's pair, (nnz,)."""
        return np.repeat(np.arange(len(self.state)), np.diff(self.indptr))

    def _fields(self) -> _display.Fields:
        return [
            ("transitions", f"{self.count.sum():,.0f}, {len(self.count):,} different"),
            ("pairs", f"{len(self.state):,} of {self.n_states:,} x {self.n_actions:,}"),
            ("never seen", f"{len(self.unseen):,} pairs"),
        ]


class Estimate(NamedTuple):
    """A model from a log, the counts behind it, and the (state, action) pairs that it says nothing about, (n, 2)."""

    model: MDP
    counts: Counts
    unseen: IndexArray


def estimate(log: Any, discount: float | None = None, *, smoothing: str = "half", known: MDP | None = None) -> Estimate:
    """Count the transitions of a log and make a model of them.

    Parameters
    ----------
    log : Trajectory, or a table that `Trajectory.from_frame` takes
    discount : that of the log by default
    smoothing : "none", n_i/n; "half", (n_i + 1/2)/(n + k/2), around which `radius_from_counts` has its radii;
        "laplace", (n_i + 1)/(n + k). The k successors are those that were seen or that `known` lists.
    known : a model whose transitions are listed as possible, optional; with at least the log's states and actions.
        Where both have names, these say which state is which.

    >>> log = Trajectory([0, 0, 0, 1], [0, 0, 0, 0], [1.0, 1.0, 1.0, 0.0], [0, 0, 1, 1], n_actions=2)
    >>> found = estimate(log, 0.9, smoothing="laplace")
    >>> found.model.probabilities.tolist(), found.unseen.tolist()
    ([0.6, 0.4, 1.0], [[0, 1], [1, 1]])
    """
    _types.check_arguments(estimate, {"smoothing": smoothing, "known": known})
    if not isinstance(log, Trajectory):
        if not is_frame(log):
            raise TypeError(
                "log must be a Trajectory, such as rm.read_log(path), or a table of pandas, polars or Arrow: "
                f"got {type(log).__name__}"
            )
        log = Trajectory.from_frame(log)
    chosen = log.discount if discount is None else discount
    _checks.must(chosen is not None, "discount must be given: the log has none")
    counts = Counts.of(log) if known is None else Counts.of(log).with_successors(known)
    return Estimate(counts.model(_checks.model_discount(chosen), smoothing), counts, counts.unseen)


def _numbers_in(kind: str, names: tuple[str, ...] | None, others: tuple[str, ...] | None, count: int) -> IndexArray:
    """The numbers that names have elsewhere; the same numbers where either side has none."""
    if names is None or others is None or names == others:
        return np.arange(count)
    missing = sorted(set(names).difference(others))
    _checks.must(
        not missing, f"the known model must have all {kind}s of the log: it lacks {_display.shortlist(missing)}"
    )
    return Numbering(others).encode(kind, Words.of(names))


def _matching(names: tuple[str, ...] | None, count: int) -> tuple[str, ...] | None:
    """Names, if they are as many as there are things to name."""
    return names if names is not None and len(names) == count else None


class Tally:
    """Sorted keys (pair, successor, end flag) with counts, and sums and limits of rewards; in any pieces to one bit."""

    def __init__(self, n_states: int, n_actions: int) -> None:
        self.n_states, self.n_actions = n_states, n_actions
        self.width = 2 * n_states
        _checks.must(
            n_states * n_actions * self.width < 2**63,
            f"transitions must be few enough to number them: got {n_states} states and {n_actions} actions",
        )
        self.keys: IndexArray = np.empty(0, np.int64)
        self.counts, self.sums, self.lowest, self.highest = (np.empty(0) for _ in range(4))

    @property
    def rewards(self) -> FloatArray:
        """The mean reward of each key; of a transition that never came, as it was listed."""
        # Equal rewards stay equal to the bit, or a reward by pair would seem to depend on the successor.
        differing = (self.lowest != self.highest) & (self.counts > 0)
        return np.divide(self.sums, self.counts, out=self.lowest.copy(), where=differing)

    @property
    def visits(self) -> FloatArray:
        """How often each pair was seen, (S, A)."""
        shape = self.n_states, self.n_actions
        return np.bincount(self.keys // self.width, self.counts, math.prod(shape)).reshape(shape).astype(np.float64)

    def key(self, state: Any, action: Any, next_state: Any, ended: Any) -> IndexArray:
        """One number per transition."""
        pair = np.asarray(state, np.int64) * self.n_actions + action
        key: IndexArray = pair * self.width + np.asarray(ended, np.int64) * self.n_states + next_state
        return key

    def list_endings(self, pairs: IndexArray, rewards: FloatArray) -> None:
        """List a model's endings, sorted by pair.

        A model does not keep where an episode ended: an ending that was seen is taken for the one with the nearest
        reward; those left over are listed where no other ending of the pair is, first at its own state.
        """
        new: list[tuple[int, float]] = []
        means = self.rewards
        for pair, offered in _grouped(pairs, rewards):
            first, state = pair * self.width + self.n_states, pair // self.n_actions
            seen = slice(*np.searchsorted(self.keys, (first, first + self.n_states)).tolist())
            for reward in means[seen].tolist()[: len(offered)]:
                offered.remove(min(offered, key=lambda other: abs(other - reward)))
            taken = set((self.keys[seen] - first).tolist())
            around = ((state + j) % self.n_states for j in range(self.n_states))
            free = (first + place for place in around if place not in taken)
            new += zip(free, offered, strict=False)
        keys = np.array([key for key, _ in new], np.int64)
        self.merge(keys, np.zeros(len(new)), np.array([reward for _, reward in new]))

    def add(self, piece: Transitions) -> None:
        """One of each."""
        key = self.key(piece.state, piece.action, piece.next_state, piece.terminated)
        self.merge(key, np.ones(len(key)), piece.reward)

    def merge(self, key: IndexArray, counts: FloatArray, rewards: FloatArray) -> None:
        """Add transitions that came `counts` times with these mean rewards."""
        keys, place = np.unique(np.concatenate([self.keys, key]), return_inverse=True)
        known, added = place[: len(self.keys)], place[len(self.keys) :]
        lowest, highest = np.full(len(keys), math.inf), np.full(len(keys), -math.inf)
        lowest[known], highest[known] = self.lowest, self.highest
        np.minimum.at(lowest, added, rewards)
        np.maximum.at(highest, added, rewards)
        self.counts = np.bincount(place, np.concatenate([self.counts, counts]), len(keys)).astype(np.float64)
        self.sums = np.bincount(place, np.concatenate([self.sums, counts * rewards]), len(keys)).astype(np.float64)
        self.keys, self.lowest, self.highest = keys, lowest, highest

    def to_counts(self) -> Counts:
        """The rows so far."""
        row, outcome = np.divmod(self.keys, self.width)
        pairs, starts = np.unique(row, return_index=True)
        ended = outcome >= self.n_states
        return Counts(
            state=pairs // self.n_actions,
            action=pairs % self.n_actions,
            indptr=np.append(starts, len(row)),
            next_state=np.where(ended, outcome - self.n_states, outcome),
            ended=ended,
            count=self.counts,
            reward=self.rewards,
            n_states=self.n_states,
            n_actions=self.n_actions,
        )


def _grouped(pairs: IndexArray, rewards: FloatArray) -> Iterator[tuple[int, list[float]]]:
    """The rewards of each pair, which are sorted."""
    together = zip(pairs.tolist(), rewards.tolist(), strict=True)
    for pair, entries in groupby(together, key=itemgetter(0)):
        yield pair, [reward for _, reward in entries]
