"""What every source of transitions is: it fills arrays, and a learner absorbs them in order.

What a source draws depends on the seeds and on how many transitions came before, never on the size of the pieces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec
import numpy as np

from robustmdp import _checks
from robustmdp._arrays import FloatArray, IndexArray
from robustmdp.learning.behaviour import BehaviourPolicy
from robustmdp.models.space import StateActionSpace

Transition = tuple[int, int, float, int]  # state, pair, reward, successor


class Experience(NamedTuple):
    """Transitions of several replications, each array (length, replications); the end is `following` = n_states."""

    states: IndexArray
    pairs: IndexArray
    rewards: FloatArray
    following: IndexArray

    @property
    def length(self) -> int:
        """Transitions of each replication."""
        return len(self.pairs)

    @classmethod
    def empty(cls, replications: int, length: int) -> Experience:
        """Room for so many transitions."""
        shape = length, replications
        return cls(np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape), np.empty(shape, np.int32))


@dataclass(frozen=True)
class Shape(StateActionSpace):
    """What a learner must know of a world before it starts; rewards may be unknown, then they are learned as well.

    Where the value of a given policy is learned, the world has the policy's pairs only; if it mixes actions, `mixture`
    holds their probabilities, (n_pairs,), and the value of a state is the mean of its Q instead of the largest.
    """

    n_actions: int
    state_ptr: IndexArray
    actions: IndexArray | None
    discount: float
    reward_range: tuple[float, float] | None
    can_end: bool
    rewards_on_successors: bool
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None
    mixture: FloatArray | None = None

    def __post_init__(self) -> None:
        _check_size(self.n_pairs)

    @property
    def policy_size(self) -> int:
        """How many pairs a policy uses: one per state, or all of a policy that mixes actions."""
        return self.n_states if self.mixture is None else self.n_pairs

    def require_rewards(self, who: str) -> tuple[float, float]:
        """The range of rewards; refused where it is unknown."""
        if self.reward_range is None:
            advice = ": give reward_range=(smallest, largest)"
            _checks.fail(f"{who} must know the rewards", argument="rewards", advice=advice)
        return self.reward_range


def _check_size(n_pairs: int) -> None:
    """Before memory is taken: transitions hold pairs as numbers of 32 bits."""
    _checks.must(n_pairs < 2**31, f"a learner's world must have fewer than 2^31 pairs: got {n_pairs:,}")


def full_shape(
    n_states: int, n_actions: int, discount: float, reward_range: tuple[float, float] | None, world: Any = None
) -> Shape:
    """Every action is available everywhere; any transition may end and pay its own reward, since only a model tells."""
    _check_size(n_states * n_actions)
    state_ptr = np.arange(0, n_states * n_actions + 1, n_actions, dtype=np.int64)
    names = [getattr(world, name, None) for name in ("state_names", "action_names")]
    return Shape(n_actions, state_ptr, None, discount, reward_range, True, True, *names)


class OnlineLearner(Protocol):
    """A learner as a world sees it that acts and learns in turn."""

    update: Any  # compiled

    def build_chooser(self, policy: BehaviourPolicy) -> Callable[[int, int, int, float], int]:
        """(replication, step, state, u) -> pair, for a policy that follows Q."""


class Source:
    """Fills arrays with transitions; `first` is the number of the first one in its replication's life.

    Attributes
    ----------
    shape : sizes, names, rewards
    name : what users call it
    length : how many transitions there are, None for no end
    is_generative : can it be asked about any pair? Otherwise it answers only for the state it is in
    learns_online : does it act and learn in turn? It must where the policy follows Q
    is_fresh : does each transition come once and in its order? A shuffled log is not independent of what came before
    world : the core's world, where the core draws the transitions; otherwise None
    """

    shape: Shape
    name: str
    length: int | None = None
    is_generative = False
    learns_online = False
    is_fresh = True
    world: Any = None

    @property
    def fingerprint(self) -> str:
        """A hash that tells another world."""
        raise NotImplementedError

    def follow_policy(self, first: int, room: Experience) -> int:
        """Fill `room` with the next transitions of one trajectory per replication; returns how many there were."""
        raise NotImplementedError

    def learn_online(self, learner: OnlineLearner, first: int, count: int) -> None:
        """`count` transitions, each absorbed before the next is drawn."""
        raise NotImplementedError

    def sample_all_pairs(self, first: int, room: Experience) -> int:
        """Fill `room` with one draw of each pair in turn, round after round."""
        raise NotImplementedError

    def sample_in_turn(self, first: int, states: IndexArray, pairs: IndexArray, room: Experience) -> None:
        """The same for some pairs, with their states, which `room` numbers in their order."""
        for step in range(room.length):
            at = (first + step) % len(pairs)
            room.states[step], room.pairs[step] = states[at], at
            span = slice(step, step + 1)
            self.sample_pair(first + step, int(pairs[at]), room.rewards[span], room.following[span])

    def sample_pair(self, first: int, pair: int, rewards: FloatArray, following: IndexArray) -> None:
        """Fill (draws, replications) arrays with independent draws of one pair."""
        raise NotImplementedError

    def number(self, replication: int, position: int) -> float:
        """A uniform number of a replication's stream."""
        raise NotImplementedError

    def draws(self, replication: int, first: int, pair: int, count: int) -> tuple[FloatArray, IndexArray]:
        """Rewards and successors of `count` draws of one pair for one replication."""
        raise NotImplementedError

    def save(self) -> dict[str, Any]:
        """Where it is, for JSON."""
        raise NotImplementedError

    def load(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        raise NotImplementedError


class SteppedSource(Source):
    """A world of Python, which is stepped: one replication, transition by transition."""

    _policy: BehaviourPolicy

    def _act(self, choose: Callable[[int, int, float], int], first: int, count: int) -> Iterator[Transition]:
        """Transitions of one trajectory, whose actions `choose(step, state, u)` picks."""
        raise NotImplementedError

    def follow_policy(self, first: int, room: Experience) -> int:
        kinds = np.dtype([(name, column.dtype) for name, column in room._asdict().items()])
        # Three times as fast as lists of tuples, which the garbage collector would visit.
        seen = np.fromiter(self._act(self._policy.build_sampler(), first, room.length), kinds, room.length)
        for name, column in room._asdict().items():
            column[:, 0] = seen[name]
        return room.length

    def learn_online(self, learner: OnlineLearner, first: int, count: int) -> None:
        choose, absorb = partial(learner.build_chooser(self._policy), 0), learner.update.absorb_one
        for step, transition in enumerate(self._act(choose, first, count), start=first):
            absorb(step, *transition)


def hash_parts(*parts: Any) -> str:
    """A short hash of arrays and other values."""
    digest = hashlib.sha256()
    for part in parts:
        data = np.ascontiguousarray(part).tobytes() if isinstance(part, np.ndarray) else repr(part).encode()
        digest.update(data + b"\0")
    return digest.hexdigest()[:16]


def encode_generator(state: Any) -> Any:
    """A generator's state with its 128-bit numbers as text, which JSON keeps exactly."""
    if isinstance(state, dict):
        return {key: encode_generator(value) for key, value in state.items()}
    return f"#{state}" if isinstance(state, int) else state


def decode_generator(state: Any) -> Any:
    """The inverse of `encode_generator`."""
    if isinstance(state, dict):
        return {key: decode_generator(value) for key, value in state.items()}
    return int(state[1:]) if isinstance(state, str) and state.startswith("#") else state


Digits = Annotated[str, msgspec.Meta(pattern="^#[0-9]+$", max_length=40)]


class _Lcg(msgspec.Struct, forbid_unknown_fields=True):
    state: Digits
    inc: Annotated[str, msgspec.Meta(pattern="^#[0-9]*[13579]$", max_length=40)]  # an even one has a short period


class SavedGenerator(msgspec.Struct, forbid_unknown_fields=True):
    """The state of a PCG64 generator as `encode_generator` writes it."""

    bit_generator: Literal["PCG64"]
    state: _Lcg
    has_uint32: Literal["#0", "#1"]
    uinteger: Digits


def check_saved(saved: dict[str, Any], **expected: Any) -> None:
    """Refuse what a source cannot have saved; `expected` are the types of its entries, with their limits."""
    msgspec.convert(saved, msgspec.defstruct("Saved", list(expected.items()), forbid_unknown_fields=True))


def check_reward_range(given: Any) -> tuple[float, float]:
    """(smallest, largest), both finite."""
    try:
        low, high = (_checks.finite_number("reward_range", bound) for bound in given)
    except (TypeError, ValueError):
        raise TypeError(f"reward_range must be (smallest, largest): got {given!r}") from None
    _checks.must(low <= high, f"reward_range must be (smallest, largest): got {tuple(given)!r}")
    return low, high


def check_rewards(rewards: FloatArray, shape: Shape) -> None:
    """Refuse rewards that are not numbers, or outside a range that was given."""
    low, high = shape.reward_range or (-np.inf, np.inf)
    wrong = ~((rewards >= low) & (rewards <= high) & np.isfinite(rewards))
    if wrong.any():
        got = rewards[int(np.argmax(wrong))]
        if shape.reward_range is None:
            _checks.fail(f"reward must be finite: got {got}")
        _checks.fail(f"reward must lie in reward_range [{low:g}, {high:g}]: got {got:g}", argument="reward_range")
