"""Rows from a function of state, action and noise: called once with arrays, or for each combination by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import BoolArray, FloatArray, IndexArray
from robustmdp.models import columns, consistency
from robustmdp.models.assembly import Parts, Rows, parts_of
from robustmdp.models.noise import Noise

Step = Callable[[Any, Any, Any], Any]
Answers = tuple[npt.NDArray[Any], ...]  # next states, rewards, ends, (n,) each; a negative state is no action

_COMPARED = 16  # combinations for which a vectorised step is called once more, by themselves
_ANSWERED = ("next_state", "reward", "terminated")
_NO_STATE = -1  # next state of an action that is unavailable


class _Combinations(NamedTuple):
    """States, actions and places in the noise, (n,) each."""

    state: IndexArray
    action: IndexArray
    place: IndexArray
    noise: Noise

    @staticmethod
    def of(n_states: int, n_actions: int, noise: Noise) -> _Combinations:
        """All of them; the noise varies fastest."""
        state, action, place = (axis.ravel() for axis in np.indices((n_states, n_actions, len(noise))))
        return _Combinations(state, action, place, noise)

    def take(self, which: npt.NDArray[Any]) -> _Combinations:
        return _Combinations(self.state[which], self.action[which], self.place[which], self.noise)

    def describe(self, name: str, entry: int) -> str:
        """Where an entry stands, in messages."""
        del name
        value = self.noise.column[self.place[entry]]
        return f"state {self.state[entry]}, action {self.action[entry]} and noise {value!s}"


def from_noise(
    step: Step, n_states: int, n_actions: int, noise: Noise, discount: float, names: tuple[Any, Any]
) -> Parts:
    """See MDP.from_noise."""
    for name, size in (("n_states", n_states), ("n_actions", n_actions)):
        columns.check_size(name, size)
    discount = _checks.model_discount(discount)
    combinations = _Combinations.of(n_states, n_actions, noise)
    answers = _call_with_arrays(step, combinations)
    if answers is None:
        answers = _call_one_by_one(step, combinations)
    else:
        _compare_some(step, combinations, answers)
    following, reward, ended = _check_answers(answers, combinations, n_states)
    pairs = _find_available(following, combinations)
    states, actions = np.nonzero(pairs.reshape(n_states, n_actions))
    kept = np.repeat(pairs, len(noise))
    consistency.check_room(n_states, n_actions, int(kept.sum()))
    rows = Rows(
        indptr=len(noise) * np.arange(len(states) + 1),
        indices=np.where(ended, n_states, following)[kept].astype(np.int32),
        probabilities=np.tile(noise.probabilities, len(states)),
        rewards=reward[kept],
        states=states,
        actions=actions.astype(np.int32),
    )
    return {**parts_of(rows, n_states, discount, n_actions=n_actions, names=names), "noise": noise}


def _call_with_arrays(step: Step, combinations: _Combinations) -> Answers | None:
    """None where the step is no function of arrays: where it raises, or does not return one next state for each."""
    values, count = combinations.noise.values, len(combinations.state)
    if values.dtype.kind not in columns.NUMBERS:
        return None
    # The last axis is that of the combinations, so that value[0] is a component here, too.
    arguments = (combinations.state, combinations.action, np.moveaxis(values[combinations.place], 0, -1))
    for argument in arguments:
        argument.flags.writeable = False
    try:
        answer = step(*arguments)
        if not isinstance(answer, tuple) or len(answer) not in (2, 3):
            return None
        following = np.asarray(answer[0])
        if following.shape != (count,) or following.dtype.kind not in columns.NUMBERS:
            return None
        return (following, *(np.broadcast_to(column, (count,)) for column in (*answer[1:], False)[:2]))
    except Exception:  # written for numbers; if it is simply wrong, it raises again when it is called with these
        return None


def _call_one_by_one(step: Step, combinations: _Combinations) -> Answers:
    """One call for each combination, with Python's own numbers."""
    given = combinations.noise.values
    values = list(given) if given.ndim == 2 else given.tolist()
    answers = []
    arguments = zip(*(column.tolist() for column in combinations[:3]), strict=True)
    for entry, (state, action, place) in enumerate(arguments):
        answer = step(state, action, values[place])
        if answer is None:
            answer = (_NO_STATE, 0.0)
        if not isinstance(answer, tuple) or len(answer) not in (2, 3) or any(np.ndim(part) for part in answer):
            _checks.fail(
                "step must return next_state, reward and perhaps terminated, or None where an action is unavailable: "
                f"got {str(answer)[:80]} at {combinations.describe('', entry)}"
            )
        answers.append((*answer, False)[:3])
    return tuple(
        columns.array_of(name, list(column)) for name, column in zip(_ANSWERED, zip(*answers, strict=True), strict=True)
    )


def _compare_some(step: Step, combinations: _Combinations, answers: Answers) -> None:
    """Refuse a step that answers arrays otherwise than numbers: an entry must depend on its own arguments alone."""
    count = len(combinations.state)
    drawn = np.random.default_rng(0).integers(count, size=_COMPARED)
    for entry in np.unique([0, *drawn, count - 1]):
        one = combinations.take(np.array([entry]))
        try:
            alone: Answers | None = _call_one_by_one(step, one)
        except Exception:  # written for arrays alone
            alone = _call_with_arrays(step, one)
        mine = [part[entry] for part in answers]
        theirs = None if alone is None else [part[0] for part in alone]
        if theirs is None or not _is_same(mine, theirs):
            got = "none" if theirs is None else ", ".join(map(str, theirs))
            _checks.fail(
                "step must answer arrays as it answers their entries: got "
                f"{', '.join(map(str, mine))} and {got} at {combinations.describe('', int(entry))}"
            )


def _is_same(one: list[Any], other: list[Any]) -> bool:
    """Equal, but for rounding of rewards; of unavailable actions nothing else counts."""
    if one[0] < 0 or other[0] < 0:
        return bool(one[0] < 0 and other[0] < 0)
    same_reward = np.isclose(one[1], other[1], rtol=1e-9, atol=1e-12, equal_nan=True)
    return bool(one[0] == other[0] and one[2] == other[2] and same_reward)


def _check_answers(
    answers: Answers, combinations: _Combinations, n_states: int
) -> tuple[IndexArray, FloatArray, BoolArray]:
    """Next states, rewards and ends with their types; next state -1 where an action is unavailable."""
    place = combinations.describe
    raw, rewards, ends = answers
    if raw.dtype.kind not in columns.NUMBERS:
        columns.refuse(0, "be a whole number", "next_state", raw, place)
    missing = raw < 0
    following = columns.whole_numbers("next_state", np.where(missing, 0, raw), place=place)
    must = f"lie in 0..{n_states} ({n_states} is the end)"
    columns.refuse_where(following > n_states, must, "next_state", following, place)
    reward = columns.real_numbers("reward", rewards, place)
    columns.refuse_where(~(np.isfinite(reward) | missing), "be finite", "reward", reward, place)
    ended = columns.flags("terminated", ends, place) & ~missing
    return np.where(missing, _NO_STATE, following), reward, ended


def _find_available(following: IndexArray, combinations: _Combinations) -> BoolArray:
    """(S * A,) bool: an action is there for all noise, or for none."""
    missing = (following < 0).reshape(-1, len(combinations.noise))
    torn = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if torn.size:
        entry = int(torn[0]) * len(combinations.noise) + int(missing[torn[0]].argmax())
        _checks.fail(
            "step must return None or a negative next_state for all values of the noise or for none: it does so for "
            f"some only, as at {combinations.describe('', entry)}"
        )
    return ~missing[:, 0]
