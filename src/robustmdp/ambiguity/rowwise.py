"""Kernels of rows in Python, with the methods of the compiled ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from robustmdp._arrays import BoolArray, FloatArray, IntArray

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


class RowwiseKernel(ABC):
    """Worst cases of many rows, from three methods that answer blocks of rows.

    `model` is a `_core.Model`; `levels` has one entry, or one per pair; `outcome` is discount * v with the end's 0
    last, (S + 1,); `pairs` lists pairs, None means all in order. Calls write the entries lo..hi of their outputs.
    `memory` holds `memory_per_row` numbers per pair, from which the next solve starts, NaN at first.
    """

    memory_per_row: int = 0

    @abstractmethod
    def solve_rows(self, rows: Rows, model: Any) -> tuple[FloatArray, FloatArray]:
        """Worst cases, rewards included, (count,); what to remember, (count, memory_per_row)."""

    @abstractmethod
    def bound_rows(self, rows: Rows, model: Any) -> tuple[FloatArray, FloatArray]:
        """Certified lower <= worst case <= upper, rewards included, up to the rounding of outcomes; (count,) each."""

    @abstractmethod
    def respond_rows(self, rows: Rows, model: Any) -> Responses:
        """Worst-case distributions; `model` is None for a row without one."""

    def values(
        self, model: Any, levels: FloatArray, outcome: FloatArray, pairs: IntArray | None, lo: int, hi: int,
        memory: FloatArray, q: FloatArray,
    ) -> None:  # fmt: skip
        """q[i] = r + worst case of pair i; renews the memory."""
        kept = memory.reshape(len(model.indptr) - 1, self.memory_per_row)
        for at, rows in self._blocks(model, levels, outcome, pairs, lo, hi, memory):
            values, kept[rows.pair] = self.solve_rows(rows, model)
            q[at] = model.sign * values

    def bracket(
        self, model: Any, levels: FloatArray, outcome: FloatArray, scale: float, lo: int, hi: int,
        memory: FloatArray, lower: FloatArray, upper: FloatArray,
    ) -> None:  # fmt: skip
        """lower <= r + worst case <= upper, certified; `scale` bounds |r| + |outcome|."""
        rounding = 8.0 * EPS * scale
        for at, rows in self._blocks(model, levels, outcome, None, lo, hi, memory):
            low, high = self.bound_rows(rows, model)
            low, high = (low, high) if model.sign > 0.0 else (-high, -low)
            lower[at], upper[at] = low - rounding, high + rounding

    def respond(
        self, model: Any, levels: FloatArray, outcome: FloatArray, pairs: IntArray | None, starts: IntArray, lo: int,
        hi: int, memory: FloatArray, data: FloatArray, penalty: FloatArray, eta: FloatArray,
    ) -> None:  # fmt: skip
        """data[starts[i]:starts[i+1]] = nature's row of pair i; what it pays, and its multiplier."""
        for at, rows in self._blocks(model, levels, outcome, pairs, lo, hi, memory):
            response = self.respond_rows(rows, model)
            filled = rows.is_filled
            places = starts[at] + np.arange(len(rows.p))[:, None]
            data[places[filled]] = response.distribution[filled]
            penalty[at], eta[at] = model.sign * response.penalty, model.sign * response.eta

    def worst_case(
        self, p: FloatArray, x: FloatArray, level: float, out: FloatArray
    ) -> tuple[float, float, float, float]:
        """Value, gap, eta and weight of one row; out = nature's distribution."""
        nothing, memory = np.zeros(1), np.full((1, self.memory_per_row), np.nan)
        length, pair = np.array([p.size]), np.zeros(1, dtype=np.int64)
        rows = Rows(p[:, None], x[:, None], nothing, length, np.array([level]), memory, pair)
        answer = self.respond_rows(rows, None)
        out[:] = answer.distribution[:, 0]
        return float(answer.value[0]), float(answer.gap[0]), float(answer.eta[0]), float(answer.weight[0])

    def _blocks(
        self, model: Any, levels: FloatArray, outcome: FloatArray, pairs: IntArray | None, lo: int, hi: int,
        memory: FloatArray,
    ) -> Iterator[tuple[IntArray, Rows]]:  # fmt: skip
        """The rows lo..hi in blocks of about BLOCK numbers, and where their results belong."""
        if lo == hi:
            return
        places = np.arange(lo, hi)
        chosen = places if pairs is None else pairs[lo:hi]
        indptr = model.indptr
        length = indptr[chosen + 1] - indptr[chosen]
        if length.min() < length.max():  # rows of similar length share a block: less padding
            order = np.argsort(length, kind="stable")
            places, chosen, length = places[order], chosen[order], length[order]
        kept = memory.reshape(len(indptr) - 1, self.memory_per_row)
        first = 0
        while first < len(chosen):
            last = min(len(chosen), first + max(1, BLOCK // int(length[first])))
            last = min(last, first + max(1, BLOCK // int(length[last - 1])))
            pair = chosen[first:last]
            level = np.broadcast_to(levels, pair.shape) if levels.size == 1 else levels[pair]
            yield places[first:last], gather(model, outcome, pair, length[first:last], level, kept[pair])
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
