"""A model as formats without an end see it: explicit states stand for the end, stay for ever and earn nothing."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robustmdp._arrays import FloatArray, IndexArray
from robustmdp.io.arrow import pyarrow
from robustmdp.models import MDP
from robustmdp.models.headers import MODEL_COLUMNS

PARQUET_NOTES = b"robustmdp"  # where they are in the metadata
_PIECE = 1 << 20  # transitions at a time


class Piece(NamedTuple):
    """Some transitions: equally long 1-D arrays; `choice` counts the actions of a state.

    Without intervals `lower` and `upper` are the probabilities themselves.
    """

    state: IndexArray
    action: IndexArray
    choice: IndexArray
    next_state: IndexArray
    probability: FloatArray
    reward: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True)
class Explicit:
    """A model with `ends` more states: the k-th way in which a pair ends leads to the k-th; sizes include them.

    `bounds` are the lower and upper ones of its transitions, (nnz,) each, where it is written with intervals.
    """

    mdp: MDP
    ends: int
    bounds: tuple[FloatArray, FloatArray] | None = None

    @staticmethod
    def of(mdp: MDP, bounds: tuple[FloatArray, FloatArray] | None = None) -> Explicit:
        """As many ends as the pair with most of them needs, so that no two of its outcomes become one."""
        ways = np.add.reduceat(mdp.indices == mdp.n_states, mdp.indptr[:-1], dtype=np.int64)
        return Explicit(mdp, int(ways.max()), bounds)

    @property
    def n_states(self) -> int:
        return self.mdp.n_states + self.ends

    @property
    def n_choices(self) -> int:
        return self.mdp.n_pairs + self.ends

    @property
    def nnz(self) -> int:
        return self.mdp.nnz + self.ends

    @property
    def actions_have_gaps(self) -> bool:
        """Is an action's number ever another than that of the choice?"""
        return not np.array_equal(self.mdp.actions, self._choices())

    def _choices(self) -> IndexArray:
        first = np.repeat(self.mdp.state_ptr[:-1], np.diff(self.mdp.state_ptr))
        return np.asarray(np.arange(self.mdp.n_pairs) - first)

    def pieces(self, *, by_choice: bool = False) -> Iterator[Piece]:
        """All transitions in order; `by_choice` gives those of a pair their mean reward."""
        mdp = self.mdp
        states, choices = mdp.states, self._choices()
        lower, upper = self.bounds or (mdp.probabilities, mdp.probabilities)
        first = 0
        while first < mdp.n_pairs:
            last = max(first + 1, int(np.searchsorted(mdp.indptr, mdp.indptr[first] + _PIECE, side="right")) - 1)
            pair = np.repeat(np.arange(first, last), np.diff(mdp.indptr[first : last + 1]))
            part = slice(int(mdp.indptr[first]), int(mdp.indptr[last]))
            yield Piece(
                state=states[pair],
                action=mdp.actions[pair],
                choice=choices[pair],
                next_state=self._successors(part, mdp.indptr[pair + 1]),
                probability=mdp.probabilities[part],
                reward=self._rewards(part, pair, mdp.indptr[first:last] - part.start, by_choice),
                lower=lower[part],
                upper=upper[part],
            )
            first = last
        if self.ends:
            last_states = np.arange(mdp.n_states, self.n_states)
            zeros = np.zeros(self.ends, np.int64)
            ones = np.ones(self.ends)
            yield Piece(last_states, zeros, zeros, last_states, ones, np.zeros(self.ends), ones, ones)

    def written_values(self, piece: Piece, comma: str = ", ") -> list[str]:
        """The probabilities or intervals as text, with all their bits."""
        if self.bounds is None:
            return [repr(probability) for probability in piece.probability.tolist()]
        both = zip(piece.lower.tolist(), piece.upper.tolist(), strict=True)
        return [f"[{lower!r}{comma}{upper!r}]" for lower, upper in both]

    def _successors(self, part: slice, stops: IndexArray) -> IndexArray:
        """The ends of a row are its last entries: count them off."""
        successors = self.mdp.indices[part].astype(np.int64)
        ending = successors == self.mdp.n_states
        if ending.any():
            new = ending & np.append(True, (~ending[:-1]) | (stops[1:] != stops[:-1]))
            starts = np.maximum.accumulate(np.where(new, np.arange(len(ending)), 0))
            successors[ending] += (np.arange(len(ending)) - starts)[ending]
        return successors

    def _rewards(self, part: slice, pair: IndexArray, starts: IndexArray, by_choice: bool) -> FloatArray:
        if not self.mdp.rewards_on_successors:
            return self.mdp.rewards[pair]
        rewards, weights = self.mdp.rewards[part], self.mdp.probabilities[part]
        if not by_choice:
            return rewards
        means = np.add.reduceat(weights * rewards, starts) / np.add.reduceat(weights, starts)
        low, high = np.minimum.reduceat(rewards, starts), np.maximum.reduceat(rewards, starts)
        return np.asarray(np.where(low == high, rewards[starts], means)[pair - pair[0]])


def write_csv(model: Explicit, path: Path) -> None:
    """Numbers as Python prints them, which gives every bit back."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(MODEL_COLUMNS.values())
        for piece in model.pieces():
            writer.writerows(zip(*(getattr(piece, name).tolist() for name in MODEL_COLUMNS), strict=True))


def write_parquet(model: Explicit, path: Path, *, notes: bytes | None) -> None:
    """One row group per piece, compressed, with checksums; notes go to the metadata."""
    pa = pyarrow()
    kinds = {own: pa.float64() if own in ("probability", "reward") else pa.int64() for own in MODEL_COLUMNS.values()}
    schema = pa.schema(kinds, None if notes is None else {PARQUET_NOTES: notes})
    with pa.parquet.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for piece in model.pieces():
            arrays = [pa.array(getattr(piece, name), kinds[own]) for name, own in MODEL_COLUMNS.items()]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
