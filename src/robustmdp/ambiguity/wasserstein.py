"""Balls in the Wasserstein distance: nature moves probability between states, and pays for how far."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core, _types
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity.base import Level, Supported, arrays_of

_MOST_MOVES = 1 << 24  # 4,096 states with all distances; 12 bytes each
_SMALLEST, _LARGEST = 1e-100, 1e100  # so that a ratio of outcomes and distances is a number
_BLOCK = 1 << 22  # distances at a time


Columns = tuple[npt.NDArray[Any], npt.NDArray[Any], FloatArray]  # rows, states and costs


@dataclass(frozen=True, eq=False)
class Moves:
    """From source i mass may move to states[indptr[i]:indptr[i + 1]], by rising costs."""

    indptr: IntArray
    states: npt.NDArray[np.int32]
    costs: FloatArray


_known: WeakValueDictionary[bytes, Moves] = WeakValueDictionary()
"""Moves between any two states, by a digest of the distances: sets of several radii share them."""


class Wasserstein(Supported):
    """inf over W(P, P0) <= radius of E_P v, where W is the least sum of mass times distance that turns P0 into P.

    W(P, P0) = inf over couplings pi of P0 and P of sum_ij pi_ij distance_ij. Nature may lead to any state that is near
    a successor of the model, unless `support` says otherwise. The mass of the end stays there and no other joins it.

    Parameters
    ----------
    distance : (S, S) array, sparse (S, S) matrix, or (S, d) coordinates, with (S,) for d = 1
        distance[i, j] is the cost of moving a mass of 1 from state i to j; inf, or no entry in a sparse matrix, forbids
        it. Staying costs nothing. For coordinates it is the Euclidean distance.
    radius : float or (S, A) array in [0, inf]
        The budget of each pair, in the unit of `distance`.
    support : "all", "model" or a list of states
        Where mass may move to, besides the model's successors. A state that is no successor of the model is reached
        with the mean reward of the pair.
    coordinates : bool, optional
        Whether `distance` holds coordinates. By default a square array with a zero diagonal is a matrix of distances,
        any other array holds coordinates.

    All moves between two states are kept, at most 2**24: beyond 4,096 states give a sparse matrix, as
    scipy.spatial.KDTree(x).sparse_distance_matrix(tree, cutoff) makes it. With support="model" only moves between the
    successors of a pair count.

    Reference: Yang (2017), A convex optimization approach to distributionally robust Markov decision processes with
    Wasserstein distance.

    >>> from robustmdp import worst_case
    >>> worst_case(Wasserstein([0.0, 1.0, 3.0], 0.5), [0.0, 0.5, 0.5], [0.0, 1.0, 5.0]).distribution  # 1/4 by 2
    array([0.  , 0.75, 0.25])
    """

    level_name = "radius"
    meaning = "Wasserstein ball: nature moves probabilities by {} in all, sum of mass times distance"
    radius: Level
    """The budget of each pair."""
    distance: Any
    coordinates: bool

    def __init__(
        self, distance: Any, radius: npt.ArrayLike, *, support: Any = "all", coordinates: bool | None = None
    ) -> None:
        _types.check_arguments(Wasserstein.__init__, locals())
        checked, found = _check_distance(distance, coordinates)
        super().__init__(radius, support=support, distance=checked, coordinates=found)

    @property
    def largest_distance(self) -> float:
        """Of two states, among the moves that are possible; a larger radius gives nature no more room."""
        if self.coordinates:
            return float(np.linalg.norm(np.ptp(self.distance, axis=0)))  # at least that
        costs = self.distance if isinstance(self.distance, np.ndarray) else self.distance.data
        return float(np.max(costs, where=costs < np.inf, initial=0.0))

    def check_parts(self) -> NoReturn:
        _checks.fail(f"a model that is cut into shards needs a set without moves between all states: got {self}")

    def kernel_for(self, model: Any) -> Any:
        n, lengths = model.n_states, np.diff(model.indptr)
        self._check_size(n, "state")
        receivers = self.candidates(n)
        receives = np.zeros(n, dtype=np.uint8)
        receives[receivers] = 1
        count = float((lengths * (lengths + len(receivers))).sum())
        fits = n * n <= _MOST_MOVES or not isinstance(self.distance, np.ndarray)
        by_transition = self.support != "all" and (count <= _MOST_MOVES or not fits)
        moves = self._moves_of_transitions(model, receivers) if by_transition else self._all_moves
        return _core.Wasserstein(moves.indptr, moves.states, moves.costs, receives, by_transition)

    def kernel_for_row(self, p: FloatArray) -> tuple[Any, BoolArray]:
        self._check_size(len(p), "successor")
        kept = self.kept(p)
        states = np.flatnonzero(kept)
        count = len(states)
        rows, columns = np.divmod(np.arange(count * count), count)
        moves = _sort_moves([self._possible(rows, states[rows], states[columns], columns)], count)
        kernel = _core.Wasserstein(moves.indptr, moves.states, moves.costs, np.ones(count, dtype=np.uint8), False)
        return kernel, kept

    def _check_size(self, count: int, of: str) -> None:
        what = "coordinates" if self.coordinates else "distances"
        _checks.must(
            self.distance.shape[0] == count,
            f"distance must have one row of {what} per {of} ({count}): got shape {self.distance.shape}",
        )

    def _possible(self, rows: IntArray, source: IntArray, target: IntArray, named: npt.NDArray[Any]) -> Columns:
        """What is possible of the moves from source[k] to target[k]: their rows, names of targets, and costs."""
        costs = self._costs(source, target)
        possible = (costs < np.inf) & (source != target)
        return rows[possible], named[possible], costs[possible]

    def _costs(self, source: IntArray, target: IntArray) -> FloatArray:
        if self.coordinates:
            return np.asarray(np.sqrt(np.square(self.distance[source] - self.distance[target]).sum(axis=1)))
        if isinstance(self.distance, np.ndarray):
            return np.asarray(self.distance[source, target])
        return _entries(self.distance, source, target)

    @cached_property
    def _all_moves(self) -> Moves:
        """Between any two states."""
        digest = blake2b(repr((self.distance.shape, self.coordinates)).encode())
        for part in arrays_of(self.distance) or ():
            digest.update(np.ascontiguousarray(part).data)
        return _known.get(digest.digest()) or _known.setdefault(digest.digest(), self._find_all_moves())

    def _find_all_moves(self) -> Moves:
        n = self.distance.shape[0]
        if not isinstance(self.distance, np.ndarray):
            matrix = self.distance
            rows, columns, costs = np.repeat(np.arange(n), np.diff(matrix.indptr)), matrix.indices, matrix.data
            _check_count(len(costs))
            possible = (costs < np.inf) & (rows != columns)
            return _sort_moves([(rows[possible], columns[possible], costs[possible])], n)
        _check_count(n * (n - 1) if self.coordinates else int((self.distance < np.inf).sum()) - n)
        parts = []
        for first in range(0, n * n, _BLOCK):
            rows, columns = np.divmod(np.arange(first, min(first + _BLOCK, n * n)), n)
            parts.append(self._possible(rows, rows, columns, columns.astype(np.int32)))
        return _sort_moves(parts, n)

    def _moves_of_transitions(self, model: Any, receivers: IntArray) -> Moves:
        """From the successor of each transition to those of the same pair, and to states that receive mass anyway."""
        n, nnz, lengths = model.n_states, len(model.indices), np.diff(model.indptr)
        own = np.repeat(lengths, lengths)  # of each transition: how many its pair has
        starts = np.concatenate([[0], np.cumsum(own + len(receivers))])
        _check_count(int(starts[-1]))
        first = np.repeat(model.indptr[:-1], lengths)
        parts = []
        step = max(1, nnz * _BLOCK // int(starts[-1]))
        for low in range(0, nnz, step):
            high = min(low + step, nnz)
            rows = np.repeat(np.arange(low, high), np.diff(starts[low : high + 1]))
            place = np.arange(starts[low], starts[high]) - starts[rows]
            is_own = place < own[rows]
            target = np.empty(len(rows), dtype=np.int64)
            target[is_own] = model.indices[(first[rows] + place)[is_own]]
            target[~is_own] = receivers[(place - own[rows])[~is_own]]
            source = model.indices[rows]
            inside = (source < n) & (target < n)  # the end stays where it is
            rows, source, target = rows[inside], source[inside], target[inside]
            parts.append(self._possible(rows, source, target, target.astype(np.int32)))
        return _sort_moves(parts, nnz)

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.distance.shape))
        support = "" if self.support == "all" else f", support={self.support!r}"
        kind = "coordinates" if self.coordinates else "distances"
        return f"Wasserstein(<{size} {kind}>, radius={self._level_code()}{support})"


def _check_distance(given: Any, coordinates: bool | None) -> tuple[Any, bool]:
    """A read-only array or CSR matrix, and whether it holds coordinates."""
    if hasattr(given, "tocsr"):
        _checks.must(not coordinates, "coordinates must be an array: got a sparse matrix")
        return _check_sparse(given), False
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"distance must be an array of numbers or a sparse matrix: got {type(given).__name__}"
        ) from None
    if array.ndim == 1 and coordinates is not False:
        array = array[:, None]
    _checks.must(
        array.ndim == 2 and array.size > 0, f"distance must have shape (S, S), (S, d) or (S,): got {array.shape}"
    )
    is_square = array.shape[0] == array.shape[1]
    if coordinates is None:
        coordinates = not (is_square and not np.diagonal(array).any())
    if coordinates:
        wrong = np.argwhere(~(np.abs(array) <= _LARGEST))
        if len(wrong):
            i, k = wrong[0]
            _checks.fail(f"coordinates must be at most {_LARGEST:g} in size: got {array[i, k]:g} at distance[{i}, {k}]")
    else:
        _checks.must(is_square, f"distance must have shape (S, S): got {array.shape}")
        rows, columns = np.divmod(np.arange(array.size), array.shape[1])
        _check_costs(rows, columns, array.ravel())
    array.flags.writeable = False
    return array, bool(coordinates)


def _check_sparse(given: Any) -> Any:
    from scipy import sparse

    matrix = sparse.csr_array(given, dtype=np.float64, copy=True)
    _checks.must(matrix.shape[0] == matrix.shape[1], f"distance must have shape (S, S): got {matrix.shape}")
    matrix.sum_duplicates()
    _check_costs(np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices, matrix.data)
    matrix.data.flags.writeable = False
    return matrix


def _check_costs(rows: Any, columns: Any, costs: FloatArray) -> None:
    known = (costs == 0.0) | (costs == np.inf) | ((costs >= _SMALLEST) & (costs <= _LARGEST))
    wrong = np.flatnonzero(~known | ((rows == columns) & (costs != 0.0)))
    if len(wrong):
        i, j, cost = rows[wrong[0]], columns[wrong[0]], costs[wrong[0]]
        allowed = "0 on the diagonal" if i == j else f"0, inf or in [{_SMALLEST:g}, {_LARGEST:g}]"
        _checks.fail(f"distance must be {allowed}: got {cost:g} at distance[{i}, {j}]")


def _check_count(moves: int) -> None:
    _checks.must(
        moves <= _MOST_MOVES,
        f"distance must allow at most {_MOST_MOVES:,} moves, which are all kept: got {moves:,}; "
        "give a sparse matrix of the short ones",
    )


def _entries(matrix: Any, rows: IntArray, columns: IntArray) -> FloatArray:
    """The stored entries of a CSR matrix, infinite where there is none."""
    n = matrix.shape[0]
    keys = np.repeat(np.arange(n), np.diff(matrix.indptr)) * n + matrix.indices
    wanted = rows.astype(np.int64) * n + columns
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    return np.where(keys[at] == wanted, matrix.data[at], np.inf) if len(keys) else np.full(len(wanted), np.inf)


def _sort_moves(parts: list[Columns], count: int) -> Moves:
    """Those of rows 0..count, which come by rising numbers."""
    rows, states, costs = (np.concatenate(column) for column in zip(*parts, strict=True))
    indptr = np.searchsorted(rows, np.arange(count + 1)).astype(np.int64)
    found = Moves(indptr, states.astype(np.int32), np.array(costs, dtype=np.float64))
    _core.sort_moves(found.indptr, found.states, found.costs)
    return found
