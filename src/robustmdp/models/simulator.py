"""A world that exists only as code."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robustmdp import _checks, _low_level, _types

if TYPE_CHECKING:
    from scipy import LowLevelCallable

SIGNATURE = "void (int64_t, int64_t, uint64_t, double *, int64_t *, int64_t *, void *)"


@dataclass(frozen=True)
class Simulator:
    """(state, action) -> (reward, next_state, terminated), drawn by the user's function; no model is ever stored.

    Parameters
    ----------
    sample : callable (state, action, rng) -> (reward, next_state, terminated), or a scipy.LowLevelCallable
        `rng` is a `numpy.random.Generator`. A function compiled with `numba.njit` is called from compiled code, and so
        is one in machine code, from C, Cython, cffi, ctypes or `numba.cfunc`, which needs no Numba and no GIL:

            void sample(int64_t state, int64_t action, uint64_t random,
                        double *reward, int64_t *next_state, int64_t *terminated, void *user_data)

        `random` are 64 random bits, new at each call, which depend on the seed and on the number of the transition
        alone: `(random >> 11) * 0x1p-53` is uniform in [0, 1), and more numbers come from a generator seeded with
        them. `terminated` is 0 before the call. The function must depend on nothing else but `user_data`, which is the
        LowLevelCallable's, and must not change it: several threads may call it at once.
    n_states, n_actions : int
        Every action is available everywhere.
    discount : float in [0, 1)
    reward_range : (float, float)
        The smallest and the largest reward that can come.
    start : int
        Where an episode begins.

    >>> coin = Simulator(lambda state, action, rng: (1.0, int(rng.random() < 0.5), False), 2, 1, 0.9, (1.0, 1.0))
    >>> coin.n_pairs
    2
    """

    sample: Callable[..., tuple[float, int, bool]] | LowLevelCallable
    n_states: int
    n_actions: int
    discount: float
    reward_range: tuple[float, float]
    start: int = 0
    state_names: Sequence[str] | None = None
    action_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.is_low_level:
            _low_level.machine_code(self.sample, SIGNATURE)
        elif not callable(self.sample):
            _checks.refuse_type("sample", "a function of (state, action, rng)", self.sample)
        _checks.positive_integer("n_states", self.n_states)
        _checks.positive_integer("n_actions", self.n_actions)
        _checks.discount(self.discount)
        _types.check_fields(self)
        low, high = (_checks.finite_number("reward_range", bound) for bound in self.reward_range)
        _checks.must(low <= high, f"reward_range must be (smallest, largest): got {tuple(self.reward_range)}")
        if not _checks.is_whole(self.start):
            _checks.refuse_type("start", "a whole number", self.start)
        _checks.must(0 <= self.start < self.n_states, f"start must lie in 0..{self.n_states - 1}: got {self.start}")
        object.__setattr__(self, "state_names", _checks.names("state", self.state_names, self.n_states))
        object.__setattr__(self, "action_names", _checks.names("action", self.action_names, self.n_actions))

    @property
    def n_pairs(self) -> int:
        """How many (state, action) pairs."""
        return self.n_states * self.n_actions

    @property
    def compiled(self) -> bool:
        """Is `sample` a Numba function?"""
        return hasattr(self.sample, "py_func")

    @property
    def is_low_level(self) -> bool:
        """Is `sample` a `scipy.LowLevelCallable`?"""
        return _low_level.is_low_level(self.sample)

    def __getstate__(self) -> dict[str, Any]:
        if self.is_low_level:
            raise TypeError(
                "a Simulator must have a function of Python to be pickled: a LowLevelCallable is an address, "
                "which means nothing in another process"
            )
        return self.__dict__

    def outcome(self, state: int, action: int, rng: Any) -> tuple[float, int, bool]:
        """One transition, checked."""
        where = f"from state {state}, action {action}"
        answer = self.sample(state, action, rng)
        try:
            reward, following, terminated = answer
            number, successor = float(reward), operator.index(following)
        except (TypeError, ValueError):
            _checks.fail(f"sample must return (reward, next_state, terminated): got {answer!r} {where}")
        _checks.must(
            0 <= successor < self.n_states, f"next_state must lie in 0..{self.n_states - 1}: got {successor} {where}"
        )
        low, high = self.reward_range
        _checks.must(
            low <= number <= high,
            f"reward must lie in reward_range [{low:g}, {high:g}]: got {number} {where}",
            argument="reward_range",
        )
        return number, successor, bool(terminated)
