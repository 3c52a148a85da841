"""Rows of probabilities sum to 1: the one place where that is checked and mended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray

EPSILON = 2.0**-52
_PIECE = 1 << 18  # transitions at a time, so that a large model needs no memory for its check


def normalise(
    indptr: npt.NDArray[Any],
    probabilities: FloatArray,
    describe: Callable[[int, float], str],
    *,
    in_place: bool = False,
) -> FloatArray:
    """Divide each row whose sum is off by more than rounding by that sum.

    A row of n entries is left to the bit where its computed sum differs from 1 by at most n * 2**-52. Summation and
    division err by at most (2n - 1) * 2**-53 together, so that a divided row is left alone the next time: what this
    package wrote reads back equal.

    `describe` is the error message for a pair and its sum, where that is off by more than SUM_TOLERANCE. No row is
    empty. What comes back is the given array where nothing changes, and with `in_place` in any case.
    """
    out, is_own = probabilities, in_place
    for first, last in pieces(indptr, _PIECE):
        start, stop = int(indptr[first]), int(indptr[last])
        sums = np.add.reduceat(out[start:stop], indptr[first:last] - start)
        off = np.abs(sums - 1.0)
        if not off.max() <= _checks.SUM_TOLERANCE:  # NaN compares false
            pair = int(np.argmin(off <= _checks.SUM_TOLERANCE))
            _checks.fail(describe(first + pair, float(sums[pair])))
        lengths = indptr[first + 1 : last + 1] - indptr[first:last]
        rough = off > EPSILON * lengths
        if rough.any():
            out, is_own = out if is_own else out.copy(), True
            out[start:stop] /= np.repeat(np.where(rough, sums, 1.0), lengths)
    return out


def pieces(indptr: npt.NDArray[Any], size: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows of at most `size` entries, or of one row."""
    first, n_rows = 0, len(indptr) - 1
    if indptr[-1] <= size:
        yield 0, n_rows
        return
    while first < n_rows:
        last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + size, side="right")) - 1)
        yield first, last
        first = last
