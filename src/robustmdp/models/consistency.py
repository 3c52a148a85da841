"""Whether arrays are those of a model: checked from end to end, in pieces, so that a large one needs no memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.models import columns, row_sums
from robustmdp.models.noise import Noise

TYPES: dict[str, type] = {
    "indptr": np.int64,
    "indices": np.int32,
    "probabilities": np.float64,
    "rewards": np.float64,
    "state_ptr": np.int64,
    "actions": np.int32,
}
_PIECE = 1 << 18  # entries or pairs at a time
_ROOM = 1 << 20  # entries of a table over states and actions that nothing has to justify
_SPARSENESS = 1000  # how many entries of that table a transition may stand for

Arrays = Mapping[str, npt.NDArray[Any]]


def typed_arrays(given: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """The arrays as kernels take them: 1-D, contiguous, aligned, of the types above, not shared with a writer."""
    arrays = {}
    for name, value in given.items():
        array = columns.array_of(name, value)
        if array.dtype != TYPES[name]:
            most = np.iinfo(np.int64).max if TYPES[name] is np.int64 else columns.LARGEST + 1
            is_real = TYPES[name] is np.float64
            array = columns.real_numbers(name, array) if is_real else columns.whole_numbers(name, array, most)
        _checks.must(
            array.ndim == 1 and len(array) > 0, f"{name} must be 1-D and not empty: got shape {list(array.shape)}"
        )
        # Memory that nothing else can write to is taken as it is; that of unpickled arrays belongs to a bytes object.
        is_own = array.flags.owndata or not array.flags.writeable or isinstance(array.base, bytes)
        arrays[name] = np.require(array if is_own else array.copy(), TYPES[name], ["C", "A"])
    return arrays


def checked_arrays(
    arrays: Arrays, n_actions: int, name: str | None = None, noise: Noise | None = None
) -> dict[str, npt.NDArray[Any]]:
    """The typed arrays of a model, with rows that sum to 1; an error says where they are no model, in file `name`.

    With `noise` each row has its entries, in their order.
    """
    of, within = (f" of {name}", f" in {name}") if name else ("", "")
    n_states, n_pairs, nnz = len(arrays["state_ptr"]) - 1, len(arrays["actions"]), len(arrays["indices"])
    for kind, wanted in (("indptr", n_pairs + 1), ("probabilities", nnz)):
        came = len(arrays[kind])
        _checks.must(came == wanted, f"the length of {kind}{within} must be {wanted}: got {came}")
    rewards = len(arrays["rewards"])
    _checks.must(
        rewards in (n_pairs, nnz),
        f"rewards{within} must have one entry per pair ({n_pairs}) or transition ({nnz}): got {rewards}",
    )
    _checks.must(
        1 <= n_states <= columns.LARGEST + 1,
        f"the number of states{within} must lie in 1..{columns.LARGEST + 1}: got {n_states}",
    )
    _check_pointers("state_ptr", arrays["state_ptr"], n_pairs, of)
    _check_pointers("indptr", arrays["indptr"], nnz, of)
    _check_rewards(arrays["rewards"], of)
    _check_actions(arrays, n_actions, of)
    _check_entries(arrays, n_states, of, rises=noise is None)
    probabilities = row_sums.normalise(
        arrays["indptr"],
        arrays["probabilities"],
        lambda pair, total: f"probabilities must sum to 1: got {total:.9g} at pair {pair}{of}",
    )
    if noise is not None:
        _check_noise(arrays["indptr"], probabilities, noise, of)
    return {**arrays, "probabilities": probabilities}


def check_room(n_states: int, n_actions: int, nnz: int, name: str | None = None) -> None:
    """Refuse an action number that would make tables over states and actions absurdly large."""
    _checks.must(
        n_states * n_actions <= max(_ROOM, _SPARSENESS * nnz),
        f"actions must be numbered from 0 on: {f'{name} has' if name else 'there are'} {n_states} states, "
        f"{nnz} transitions and actions up to {n_actions - 1}",
    )


def check_label_room(n_states: int, n_labels: int, nnz: int, name: str) -> None:
    """Refuse so many labels that arrays over the states would be absurdly large."""
    _checks.must(
        n_states * n_labels <= max(_ROOM, _SPARSENESS * nnz),
        f"{name} must have fewer labels: {n_labels} for {n_states} states and {nnz} transitions came",
    )


def _pieces(count: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + _PIECE, count)) for start in range(0, count, _PIECE))


def _refuse(wrong: npt.NDArray[np.bool_], kind: str, array: npt.NDArray[Any], start: int, must: str, of: str) -> None:
    if wrong.any():
        columns.refuse(start + int(wrong.argmax()), must, kind, array, lambda name, entry: f"{name}[{entry}]{of}")


def _check_pointers(kind: str, pointers: npt.NDArray[np.int64], end: int, of: str) -> None:
    """From 0 to `end`, rising: every state has an action, every action a successor."""
    _checks.must(pointers[0] == 0, f"{kind} must start at 0: got {pointers[0]} at {kind}[0]{of}")
    for start, stop in _pieces(len(pointers) - 1):
        part = pointers[start : stop + 1]
        _refuse(part[1:] <= part[:-1], kind, pointers, start + 1, "rise", of)
    _checks.must(pointers[-1] == end, f"{kind} must end at {end}: got {pointers[-1]} at {kind}[-1]{of}")


def _check_rewards(rewards: npt.NDArray[np.float64], of: str) -> None:
    for start, stop in _pieces(len(rewards)):
        _refuse(~np.isfinite(rewards[start:stop]), "rewards", rewards, start, "be finite", of)


def _check_actions(arrays: Arrays, n_actions: int, of: str) -> None:
    actions, state_ptr = arrays["actions"], arrays["state_ptr"]
    for start, stop in _pieces(len(actions)):
        part = actions[start:stop]
        _refuse((part < 0) | (part >= n_actions), "actions", actions, start, f"lie in 0..{n_actions - 1}", of)
        before = max(start - 1, 0)
        is_first = np.zeros(stop - before, bool)  # of its state
        low, high = np.searchsorted(state_ptr, (before, stop))
        is_first[state_ptr[low:high] - before] = True
        falling = (actions[before + 1 : stop] <= actions[before : stop - 1]) & ~is_first[1:]
        _refuse(falling, "actions", actions, before + 1, "rise within a state", of)


def _check_entries(arrays: Arrays, n_states: int, of: str, *, rises: bool) -> None:
    """Positive probabilities at successors; with `rises` these do, but for the end, which may come several times."""
    indptr, indices, probabilities = arrays["indptr"], arrays["indices"], arrays["probabilities"]
    for first, last in row_sums.pieces(indptr, _PIECE):
        start, stop = int(indptr[first]), int(indptr[last])
        part = indices[start:stop]
        _refuse((part < 0) | (part > n_states), "indices", indices, start, f"lie in 0..{n_states}", of)
        if rises:
            falling = (part[1:] < part[:-1]) | ((part[1:] == part[:-1]) & (part[1:] != n_states))
            falling[indptr[first + 1 : last] - start - 1] = False
            _refuse(falling, "indices", indices, start + 1, "rise within a row", of)
        weights = probabilities[start:stop]
        _refuse(~((weights > 0) & (weights < np.inf)), "probabilities", probabilities, start, "be positive", of)


def _check_noise(indptr: npt.NDArray[Any], probabilities: npt.NDArray[np.float64], noise: Noise, of: str) -> None:
    """Each row is the distribution of the noise."""
    size, n_pairs = len(noise), len(indptr) - 1
    for first, last in _pieces(n_pairs):
        wrong = np.diff(indptr[first : last + 1]) != size
        if not wrong.any():
            wrong = (probabilities[first * size : last * size].reshape(-1, size) != noise.probabilities).any(axis=1)
        if wrong.any():
            _checks.fail(
                f"every row must hold the {size} probabilities of the noise: that of pair {first + int(wrong.argmax())}"
                f"{of} does not"
            )
