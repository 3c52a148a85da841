"""Random numbers as a function of (seed, position), so that a run can stop, resume or be split anywhere.

SplitMix64: the i-th number of a stream is a bijective scramble of key + i * golden ratio.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from robustmdp.learning._jit import inlined

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53


def keys_of(seeds: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """One stream key per seed, far apart even for seeds 0, 1, 2, ..."""
    return np.array([np.random.SeedSequence(int(seed)).generate_state(1, np.uint64)[0] for seed in np.ravel(seeds)])


@inlined
def uniform(key, position):
    """The number at `position` of the stream `key`, in [0, 1) with 53 bits."""
    z = key + np.uint64(position) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    z = z ^ (z >> np.uint64(31))
    return np.float64(np.int64(z >> np.uint64(11))) * _UNIT
