"""The arrays of a stranger's model, checked from end to end, in pieces, so that a large one needs no memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.io.meta import Meta
from robustmdp.models import MDP

_PIECE = 1 << 18  # entries or pairs at a time

Arrays = Mapping[str, npt.NDArray[Any]]


def checked_model(arrays: Arrays, meta: Meta, name: str) -> MDP:
    """An MDP of exactly these arrays."""
    n_states, n_pairs, nnz = len(arrays["state_ptr"]) - 1, len(arrays["actions"]), len(arrays["indices"])
    _same("n_states", meta.n_states, n_states, name)
    _same("the length of indptr", n_pairs + 1, len(arrays["indptr"]), name)
    _same("the length of probabilities", nnz, len(arrays["probabilities"]), name)
    rewards = len(arrays["rewards"])
    _checks.must(
        rewards in (n_pairs, nnz),
        f"rewards in {name} must have one entry per pair ({n_pairs}) or transition ({nnz}): got {rewards}",
    )
    _check_pointers("state_ptr", arrays["state_ptr"], n_pairs, name)
    _check_pointers("indptr", arrays["indptr"], nnz, name)
    _check_rewards(arrays["rewards"], name)
    _check_actions(arrays, meta.n_actions, name)
    _check_rows(arrays, n_states, name)
    return MDP(
        **arrays,
        n_actions=meta.n_actions,
        discount=meta.discount,
        state_names=_checks.names("state", meta.state_names, n_states),
        action_names=_checks.names("action", meta.action_names, meta.n_actions),
    )


def _same(what: str, told: int, came: int, name: str) -> None:
    _checks.must(told == came, f"{what} in {name} must be {told}: got {came}")


def _pieces(count: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + _PIECE, count)) for start in range(0, count, _PIECE))


def _refuse(wrong: npt.NDArray[np.bool_], kind: str, array: npt.NDArray[Any], start: int, must: str, name: str) -> None:
    if wrong.any():
        place = start + int(wrong.argmax())
        _checks.fail(f"{kind} must {must}: got {array[place].item()!r} at {kind}[{place}] of {name}")


def _check_pointers(kind: str, pointers: npt.NDArray[np.int64], end: int, name: str) -> None:
    """From 0 to `end`, rising: every state has an action, every action a successor."""
    _checks.must(pointers[0] == 0, f"{kind} must start at 0: got {pointers[0]} at {kind}[0] of {name}")
    for start, stop in _pieces(len(pointers) - 1):
        part = pointers[start : stop + 1]
        _refuse(part[1:] <= part[:-1], kind, pointers, start + 1, "rise", name)
    _checks.must(pointers[-1] == end, f"{kind} must end at {end}: got {pointers[-1]} at {kind}[-1] of {name}")


def _check_rewards(rewards: npt.NDArray[np.float64], name: str) -> None:
    for start, stop in _pieces(len(rewards)):
        _refuse(~np.isfinite(rewards[start:stop]), "rewards", rewards, start, "be finite", name)


def _check_actions(arrays: Arrays, n_actions: int, name: str) -> None:
    actions, state_ptr = arrays["actions"], arrays["state_ptr"]
    for start, stop in _pieces(len(actions)):
        part = actions[start:stop]
        _refuse((part < 0) | (part >= n_actions), "actions", actions, start, f"lie in 0..{n_actions - 1}", name)
        before = max(start - 1, 0)
        fresh = np.zeros(stop - before, bool)
        first, last = np.searchsorted(state_ptr, (before, stop))
        fresh[state_ptr[first:last] - before] = True
        falling = (actions[before + 1 : stop] <= actions[before : stop - 1]) & ~fresh[1:]
        _refuse(falling, "actions", actions, before + 1, "rise within a state", name)


def _check_rows(arrays: Arrays, n_states: int, name: str) -> None:
    """Positive probabilities that sum to 1, at successors that rise; the end may come several times."""
    indptr, indices, probabilities = arrays["indptr"], arrays["indices"], arrays["probabilities"]
    pair, n_pairs = 0, len(indptr) - 1
    while pair < n_pairs:
        stop = max(pair + 1, int(np.searchsorted(indptr, indptr[pair] + _PIECE, side="right")) - 1)
        start, end = int(indptr[pair]), int(indptr[stop])
        part, starts = indices[start:end], indptr[pair:stop] - start
        _refuse((part < 0) | (part > n_states), "indices", indices, start, f"lie in 0..{n_states}", name)
        falling = (part[1:] < part[:-1]) | ((part[1:] == part[:-1]) & (part[1:] != n_states))
        falling[starts[1:] - 1] = False
        _refuse(falling, "indices", indices, start + 1, "rise within a row", name)
        weights = probabilities[start:end]
        _refuse(~((weights > 0) & (weights < np.inf)), "probabilities", probabilities, start, "be positive", name)
        sums = np.add.reduceat(weights, starts)
        wrong = ~(np.abs(sums - 1) <= _checks.SUM_TOLERANCE)
        if wrong.any():
            row = int(wrong.argmax())
            _checks.fail(f"probabilities must sum to 1: got {sums[row]:.9g} at pair {pair + row} of {name}")
        pair = stop
