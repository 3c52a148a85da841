"""Row kernels in Python: a subclass answers blocks of rows, everything else that planning asks is here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity.base import Call, RowKernel

BLOCK = 1 << 15  # numbers per array: a few of them fit into the cache
EPS = float(np.finfo(np.float64).eps)


def sum_rows(entries: FloatArray) -> FloatArray:
    """The sums of columns, (count,), in the order of their entries, so that a row has the same bits in every block."""
    # NumPy adds up a single column in another order.
    total = entries.sum(axis=0) if entries.shape[1] > 1 else np.cumsum(entries, axis=0)[-1]
    return np.asarray(total)


class Rows(NamedTuple):
    """Several rows, one per column; shorter rows are padded with probability 0 and their own first outcome."""

    p: FloatArray  # (longest, count)
    x: FloatArray  # (longest, count), the outcomes: discount * v, and the reward where it depends on the successor
    reward: FloatArray  # (count,), the rest of the reward
    length: IntArray  # (count,)
    level: FloatArray  # (count,), in the kernel's unit
    memory: FloatArray  # (count, memory_per_row)
    pair: IntArray  # (count,)

    @property
    def is_filled(self) -> BoolArray:
        """Where an entry belongs to its row, (longest, count)."""
        return np.arange(len(self.p))[:, None] < self.length


class Values(NamedTuple):
    """Worst cases, rewards included, (count,); what to remember, (count, memory_per_row)."""

    value: FloatArray
    memory: FloatArray


class Bounds(NamedTuple):
    """Certified lower <= worst case <= upper, rewards included, up to the rounding of outcomes; (count,) each."""

    lower: FloatArray
    upper: FloatArray


class Responses(NamedTuple):
    """Nature's answers: distributions, (longest, count), and per row what they are worth.

    `gap` is the primal minus the dual value, `penalty` what nature pays, `eta` and `weight` the multipliers.
    """

    distribution: FloatArray
    value: FloatArray
    gap: FloatArray
    penalty: FloatArray
    eta: FloatArray
    weight: FloatArray


class RowwiseKernel(RowKernel):
    """A `RowKernel` from three methods that answer blocks of rows."""

    @abstractmethod
    def solve_rows(self, rows: Rows, model: Any) -> Values:
        """Worst cases."""

    @abstractmethod
    def bound_rows(self, rows: Rows, model: Any) -> Bounds:
        """Certified bounds of the worst cases."""

    @abstractmethod
    def respond_rows(self, rows: Rows, model: Any) -> Responses:
        """Worst-case distributions; `model` is None for a row without one."""

    def write_values(self, call: Call, q: FloatArray) -> None:
        kept = call.memory.reshape(-1, self.memory_per_row) if self.memory_per_row else None
        for at, rows in self._blocks(call):
            values, renewed = self.solve_rows(rows, call.model)
            q[at] = call.model.sign * values
            if kept is not None:
                kept[rows.pair] = renewed

    def write_bounds(self, call: Call, scale: float, lower: FloatArray, upper: FloatArray) -> None:
        rounding = 8.0 * EPS * scale
        for at, rows in self._blocks(call):
            bounds = self.bound_rows(rows, call.model)
            low, high = bounds if call.model.sign > 0.0 else (-bounds.upper, -bounds.lower)
            lower[at], upper[at] = low - rounding, high + rounding

    def write_responses(
        self, call: Call, starts: IntArray, data: FloatArray, penalty: FloatArray, eta: FloatArray
    ) -> None:
        for at, rows in self._blocks(call):
            response = self.respond_rows(rows, call.model)
            filled = rows.is_filled
            places = starts[at] + np.arange(len(rows.p))[:, None]
            data[places[filled]] = response.distribution[filled]
            penalty[at], eta[at] = call.model.sign * response.penalty, call.model.sign * response.eta

    def worst_case(
        self, p: FloatArray, x: FloatArray, level: float, out: FloatArray
    ) -> tuple[float, float, float, float]:
        rows = Rows(
            p[:, None],
            x[:, None],
            np.zeros(1),
            np.array([p.size]),
            np.array([level]),
            np.full((1, self.memory_per_row), np.nan),
            np.zeros(1, dtype=np.int64),
        )
        answer = self.respond_rows(rows, None)
        out[:] = answer.distribution[:, 0]
        return float(answer.value[0]), float(answer.gap[0]), float(answer.eta[0]), float(answer.weight[0])

    def _blocks(self, call: Call) -> Iterator[tuple[IntArray, Rows]]:
        """The rows lo..hi in blocks of about BLOCK numbers, and where their results belong."""
        model, levels, outcome, pairs, lo, hi, memory = call
        if lo == hi:
            return
        places = np.arange(lo, hi)
        chosen = places if pairs is None else pairs[lo:hi]
        indptr = model.indptr
        length = indptr[chosen + 1] - indptr[chosen]
        if length.min() < length.max():  # rows of similar length share a block: less padding
            order = np.argsort(length, kind="stable")
            places, chosen, length = places[order], chosen[order], length[order]
        kept = memory.reshape(-1, self.memory_per_row) if self.memory_per_row else np.empty((0, 0))
        first = 0
        while first < len(chosen):
            last = min(len(chosen), first + max(1, BLOCK // int(length[first])))
            last = min(last, first + max(1, BLOCK // int(length[last - 1])))
            pair = chosen[first:last]
            level = np.broadcast_to(levels, pair.shape) if levels.size == 1 else levels[pair]
            remembered = kept[pair] if self.memory_per_row else np.empty((len(pair), 0))
            yield places[first:last], gather(model, outcome, pair, length[first:last], level, remembered)
            first = last


def gather(
    model: Any, outcome: FloatArray, pair: IntArray, length: IntArray, level: FloatArray, memory: FloatArray
) -> Rows:
    """The rows of these pairs."""
    entry = np.arange(int(length.max()))[:, None]
    filled = entry < length
    at = model.indptr[pair] + np.where(filled, entry, 0)
    p = np.where(filled, model.probabilities[at], 0.0)
    x = outcome[model.indices[at]]
    if model.rewards_on_successors:
        return Rows(p, x + model.sign * model.rewards[at], np.zeros(len(pair)), length, level, memory, pair)
    return Rows(p, x, model.sign * model.rewards[pair], length, level, memory, pair)
