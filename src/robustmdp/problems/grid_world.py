"""A hilly room in which far places have little to do with each other."""

from __future__ import annotations

import numpy as np

from robustmdp import _checks
from robustmdp.models import MDP

_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
_NAMES = ("up", "right", "down", "left")


def grid_world(size: int, slip: float = 0.2, discount: float = 0.99) -> MDP:
    """A size x size room: a step goes as meant, or with probability `slip` to one of the four sides; walls hold.

    The reward is the height of a landscape in [0, 1] with a few large hills and many small ones. The best policy climbs
    a hill nearby and stays there: its chain falls apart into regions that hardly meet, which is as slowly mixing as a
    world can be, so that sweeps contract no faster than the discount.

    >>> grid_world(3).n_states
    9
    """
    n = _checks.positive_integer("size", size)
    slip = _checks.finite_number("slip", slip)
    _checks.must(0.0 <= slip <= 1.0, f"slip must lie in [0, 1]: got {slip:g}")
    row, column = np.divmod(np.arange(n * n), n)
    targets = np.stack([np.clip(row + dr, 0, n - 1) * n + np.clip(column + dc, 0, n - 1) for dr, dc in _MOVES], axis=1)
    states = np.arange(n * n)
    parts = []
    for meant in range(4):
        for side in range(4):
            chance = slip / 4 + (1.0 - slip) * (side == meant)
            parts.append((states, np.full(n * n, meant), targets[:, side], np.full(n * n, chance)))
    state, action, following, probability = (np.concatenate(part) for part in zip(*parts, strict=True))
    large = np.sin(6.0 * np.pi * row / n) * np.cos(4.0 * np.pi * column / n)
    small = np.sin(0.7 * row) * np.cos(0.9 * column)
    rewards = 0.5 + 0.25 * large + 0.25 * small
    return MDP.from_rows(
        state, action, following, probability, rewards[state], discount, n_states=n * n, action_names=_NAMES
    )
