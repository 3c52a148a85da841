"""Whether arrays are those of a model: checked from end to end, in pieces, so that a large one needs no memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import BoolArray, FloatArray, IntArray
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


def convert_arrays(given: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
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
    of = f" of {name}" if name else ""
    n_states, n_pairs, nnz = check_lengths({kind: len(array) for kind, array in arrays.items()}, name)

    def place(kind: str, entry: int) -> str:
        return f"pair {entry}{of}" if kind == "pair" else f"{kind}[{entry}]{of}"

    check_pointers("state_ptr", arrays["state_ptr"], (0, n_pairs), place)
    check_pointers("indptr", arrays["indptr"], (0, nnz), place)
    return checked_rows(arrays, n_states, n_actions, place, noise)


def check_lengths(lengths: Mapping[str, int], name: str | None = None) -> tuple[int, int, int]:
    """The numbers of states, pairs and transitions, on which the lengths of the arrays must agree."""
    within = f" in {name}" if name else ""
    n_states, n_pairs, nnz = lengths["state_ptr"] - 1, lengths["actions"], lengths["indices"]
    for kind, wanted in (("indptr", n_pairs + 1), ("probabilities", nnz)):
        came = lengths[kind]
        _checks.must(came == wanted, f"the length of {kind}{within} must be {wanted}: got {came}")
    rewards = lengths["rewards"]
    _checks.must(
        rewards in (n_pairs, nnz),
        f"rewards{within} must have one entry per pair ({n_pairs}) or transition ({nnz}): got {rewards}",
    )
    _checks.must(
        1 <= n_states <= columns.LARGEST + 1,
        f"the number of states{within} must lie in 1..{columns.LARGEST + 1}: got {n_states}",
    )
    return n_states, n_pairs, nnz


def checked_rows(
    arrays: Arrays, n_states: int, n_actions: int, place: columns.Place, noise: Noise | None = None
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a model or of some of its states, behind checked pointers; `place` also knows the kind "pair"."""
    _check_rewards(arrays["rewards"], place)
    _check_actions(arrays, n_actions, place)
    _check_entries(arrays, n_states, place, rises=noise is None)
    probabilities = row_sums.normalise(
        arrays["indptr"],
        arrays["probabilities"],
        lambda pair, total: f"probabilities must sum to 1: got {total:.9g} at {place('pair', pair)}",
    )
    if noise is not None:
        _check_noise(arrays["indptr"], probabilities, noise, place)
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


def _refuse(wrong: BoolArray, kind: str, array: npt.NDArray[Any], start: int, must: str, place: columns.Place) -> None:
    if wrong.any():
        columns.refuse(start + int(wrong.argmax()), must, kind, array, place)


def check_pointers(kind: str, pointers: IntArray, ends: tuple[int | None, int | None], place: columns.Place) -> None:
    """From one end to the other, where they are known, rising: every state has an action, every action a successor."""
    first, last = ends
    if first is not None:
        _checks.must(pointers[0] == first, f"{kind} must start at {first}: got {pointers[0]} at {place(kind, 0)}")
    for start, stop in _pieces(len(pointers) - 1):
        part = pointers[start : stop + 1]
        _refuse(part[1:] <= part[:-1], kind, pointers, start + 1, "rise", place)
    if last is not None:
        _checks.must(pointers[-1] == last, f"{kind} must end at {last}: got {pointers[-1]} at {place(kind, -1)}")


def _check_rewards(rewards: FloatArray, place: columns.Place) -> None:
    for start, stop in _pieces(len(rewards)):
        _refuse(~np.isfinite(rewards[start:stop]), "rewards", rewards, start, "be finite", place)


def _check_actions(arrays: Arrays, n_actions: int, place: columns.Place) -> None:
    actions, state_ptr = arrays["actions"], arrays["state_ptr"]
    for start, stop in _pieces(len(actions)):
        part = actions[start:stop]
        _refuse((part < 0) | (part >= n_actions), "actions", actions, start, f"lie in 0..{n_actions - 1}", place)
        before = max(start - 1, 0)
        is_first = np.zeros(stop - before, bool)  # of its state
        low, high = np.searchsorted(state_ptr, (before, stop))
        is_first[state_ptr[low:high] - before] = True
        falling = (actions[before + 1 : stop] <= actions[before : stop - 1]) & ~is_first[1:]
        _refuse(falling, "actions", actions, before + 1, "rise within a state", place)


def _check_entries(arrays: Arrays, n_states: int, place: columns.Place, *, rises: bool) -> None:
    """Positive probabilities at successors; with `rises` these do, but for the end, which may come several times."""
    indptr, indices, probabilities = arrays["indptr"], arrays["indices"], arrays["probabilities"]
    for first, last in row_sums.pieces(indptr, _PIECE):
        start, stop = int(indptr[first]), int(indptr[last])
        part = indices[start:stop]
        _refuse((part < 0) | (part > n_states), "indices", indices, start, f"lie in 0..{n_states}", place)
        if rises:
            falling = (part[1:] < part[:-1]) | ((part[1:] == part[:-1]) & (part[1:] != n_states))
            falling[indptr[first + 1 : last] - start - 1] = False
            _refuse(falling, "indices", indices, start + 1, "rise within a row", place)
        weights = probabilities[start:stop]
        _refuse(~((weights > 0) & (weights < np.inf)), "probabilities", probabilities, start, "be positive", place)


def _check_noise(indptr: npt.NDArray[Any], probabilities: FloatArray, noise: Noise, place: columns.Place) -> None:
    """Each row is the distribution of the noise."""
    size, n_pairs = len(noise), len(indptr) - 1
    for first, last in _pieces(n_pairs):
        wrong = np.diff(indptr[first : last + 1]) != size
        if not wrong.any():
            wrong = (probabilities[first * size : last * size].reshape(-1, size) != noise.probabilities).any(axis=1)
        if wrong.any():
            where = place("pair", first + int(wrong.argmax()))
            _checks.fail(f"every row must hold the {size} probabilities of the noise: that of {where} does not")
