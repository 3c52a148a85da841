"""Values of small worlds between two bounds that prove themselves, for every set: criteria without a discount.

A game is always "the player makes the sum large"; who makes it small plays it with the opposite rewards and pins.
Finite horizons are swept backwards with bounds of each row. For sums until the end, a guess v from anywhere and a
direction w > 0 are tried as l = v - e w and u = v + e w, with T evaluated between bounds in many digits:

- `T l > l` wherever l is not known to be below the value proves l, and `T u < u` proves u: summed along a run, every
  step that does not end gains something, so a run without an end is worth more than l, less than u.
- With payoffs of at least 0, any u >= 0 with `T u <= u` is proved, and 0 is below the value. At most 0: mirrored.

A poor guess makes the bounds wide or no bounds at all, never wrong ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from mpmath import mp, mpf

import robustmdp as rm
from oracles import sets

DIGITS = 40
_SIZES = [mpf(10) ** power for power in range(-14, -8)]  # of e, relative to the values
_ROUNDS = 30

FloatArray = npt.NDArray[np.float64]


class Game(NamedTuple):
    """Rewards as the player wants them large, the set of a full row of each pair, and states whose value is given.

    `sign` says that all payoffs are >= 0 (1), <= 0 (-1) or neither (0); `can_wait`, whether a row with one successor
    has no other whatever nature does.
    """

    mdp: rm.MDP
    set_of: sets.SetOf
    pins: Mapping[int, float]
    sign: int
    can_wait: bool = True


class _Swept(NamedTuple):
    lower: mpf
    upper: mpf
    pair: int


class Bounds(NamedTuple):
    """lower <= value <= upper per state, and the pairs that were best, where one was chosen."""

    lower: list[mpf]
    upper: list[mpf]
    pairs: tuple[int, ...] = ()


def run_horizon(game: Game, terminal: FloatArray, steps: int, policies: Sequence[FloatArray] | None) -> list[Bounds]:
    """Bounds of v_0 .. v_T: of the best policy, or of one given by probabilities of the pairs, (T, n_pairs)."""
    with mp.workdps(DIGITS):
        last = [mpf(float(game.pins.get(s, x))) for s, x in enumerate(terminal)]
        stages = [Bounds(last, last)]
        for step in range(steps - 1, -1, -1):
            policy = None if policies is None else policies[step]
            after = stages[0]
            middle = [(a + b) / 2 for a, b in zip(after.lower, after.upper, strict=True)]
            error = max((b - a) / 2 for a, b in zip(after.lower, after.upper, strict=True))
            error *= mpf(game.mdp.discount)  # T expands nothing by more than that
            swept = _sweep(game, middle, policy)
            lower, upper = [best.lower - error for best in swept], [best.upper + error for best in swept]
            stages.insert(0, Bounds(lower, upper, tuple(best.pair for best in swept)))
        return stages


def run_until_end(game: Game, guess: FloatArray, chain: rm.MDP, policy: FloatArray | None) -> Bounds | None:
    """Bounds near the guess, or None where nothing is proved there; `chain` is what nature does there, also a guess."""
    known = {**dict.fromkeys(_idle(game, policy), 0.0), **game.pins}
    direction = _longest_path(chain, set(known), policy)
    if direction is None or not np.isfinite(guess).all():
        return None
    with mp.workdps(DIGITS):
        exact = {s: mpf(float(x)) for s, x in known.items()}
        scale = mpf(max(1.0, float(np.abs(guess).max())))
        v = [exact.get(s, mpf(float(x))) for s, x in enumerate(guess)]
        v = _step(game, v, chain, exact, policy)
        lower = upper = None
        for size in _SIZES:
            lower = lower or _prove(game, policy, exact, v, direction, -size * scale)
            upper = upper or _prove(game, policy, exact, v, direction, size * scale)
            if lower and upper:
                return Bounds(lower, upper)
        return None


def run_for_ever(game: Game, bias: FloatArray, policy: FloatArray | None) -> tuple[mpf, mpf]:
    """Bounds of the gain of all states: min(T v - v) and max(T v - v), the end's 0 included where it can be reached."""
    with mp.workdps(DIGITS):
        v = [mpf(float(x)) for x in bias]
        swept = _sweep(game, v, policy)
        end = [mpf(0)] if game.mdp.can_end else []
        low = min(end + [best.lower - x for best, x in zip(swept, v, strict=True)])
        return low, max(end + [best.upper - x for best, x in zip(swept, v, strict=True)])


def _step(game: Game, v: list[mpf], chain: rm.MDP, exact: dict[int, mpf], policy: FloatArray | None) -> list[mpf]:
    """Newton's step for T v = v, with the derivative in floats."""
    p, swept = _matrix(chain), _sweep(game, v, policy)
    moving = [s for s in range(chain.n_states) if s not in exact]
    rows = [p[best.pair] if policy is None else _mixed(p, chain, s, policy) for s, best in enumerate(swept)]
    residual = [float((best.lower + best.upper) / 2 - x) for best, x in zip(swept, v, strict=True)]
    own = np.array(rows)[np.ix_(moving, moving)]
    try:
        change = np.linalg.solve(np.eye(len(moving)) - own, np.array(residual)[moving])
    except np.linalg.LinAlgError:
        return v
    v = list(v)
    for s, x in zip(moving, change.tolist(), strict=True):
        v[s] += mpf(x)
    return v


def _matrix(chain: rm.MDP) -> FloatArray:
    """(n_pairs, n_states + 1)"""
    p = np.zeros((chain.n_pairs, chain.n_states + 1))
    for pair in range(chain.n_pairs):
        row = slice(int(chain.indptr[pair]), int(chain.indptr[pair + 1]))
        np.add.at(p[pair], chain.indices[row], chain.probabilities[row])
    return p


def _mixed(p: FloatArray, chain: rm.MDP, state: int, policy: FloatArray) -> FloatArray:
    row: FloatArray = sum((policy[q] * p[q] for q in sets.pairs_of(chain, state)), np.zeros(p.shape[1]))
    return row


def _longest_path(chain: rm.MDP, still: set[int], policy: FloatArray | None) -> FloatArray | None:
    """w = 1 + max over actions of P w, 0 at `still`, by policy iteration in floats; None where it is infinite."""
    n, p = chain.n_states, _matrix(chain)
    usable = [[q for q in sets.pairs_of(chain, s) if p[q, s] < 1.0 and (policy is None or policy[q])] for s in range(n)]
    moving = [s for s in range(n) if s not in still]
    if any(not usable[s] for s in moving):
        return None
    rows, direction = [usable[s][0] for s in moving], np.zeros(n)
    for _ in range(_ROUNDS):
        own = p[rows] if policy is None else np.array([_mixed(p, chain, s, policy) for s in moving]).reshape(-1, n + 1)
        try:
            found = np.linalg.solve(np.eye(len(moving)) - own[:, moving], np.ones(len(moving)))
        except np.linalg.LinAlgError:
            return None
        if not (found >= 1.0 - 1e-9).all() or not found.max(initial=1.0) < 1e6:
            return None
        direction[moving] = found
        following = p[:, :n] @ direction
        best = [max(usable[s], key=lambda q: following[q]) for s in moving]
        better = [b if following[b] > following[r] + 1e-9 else r for b, r in zip(best, rows, strict=True)]
        if policy is not None or better == rows:
            return direction
        rows = better
    return None


def _waits(game: Game, state: int, pair: int) -> bool:
    """Whether the pair stays for sure and pays nothing."""
    mdp = game.mdp
    first, last = int(mdp.indptr[pair]), int(mdp.indptr[pair + 1])
    reward = mdp.rewards[first if mdp.rewards_on_successors else pair]
    return game.can_wait and last == first + 1 and int(mdp.indices[first]) == state and reward == 0


def _idle(game: Game, policy: FloatArray | None) -> set[int]:
    """States worth 0 with payoffs of one sign: the player cannot but wait, or he can where nothing is to be gained."""
    if game.sign == 0:
        return set()
    found = set()
    for s in range(game.mdp.n_states):
        waits = [_waits(game, s, pair) for pair in sets.pairs_of(game.mdp, s) if policy is None or policy[pair]]
        if s not in game.pins and (all(waits) or (any(waits) and policy is None and game.sign < 0)):
            found.add(s)
    return found


def _prove(
    game: Game, policy: FloatArray | None, exact: dict[int, mpf], guess: list[mpf], direction: FloatArray, size: mpf
) -> list[mpf] | None:
    """guess + size * direction, if it is proved to be a lower bound (size < 0) or an upper one."""
    v = [x if s in exact else x + size * mpf(float(direction[s])) for s, x in enumerate(guess)]
    is_lower = size < 0
    is_monotone = game.sign == (-1 if is_lower else 1)  # then equality is enough, on the right side of 0
    if is_monotone:
        v = [min(x, mpf(0)) if is_lower else max(x, mpf(0)) for x in v]
    for s, (low, high, _) in enumerate(_sweep(game, v, policy)):
        gain = low - v[s] if is_lower else v[s] - high
        if not (s in exact or gain > 0 or (gain == 0 and is_monotone)):
            return None
    return v


def _sweep(game: Game, v: list[mpf], policy: FloatArray | None) -> list[_Swept]:
    """Bounds of T v, or of T of a policy, and the best pair of each state."""
    swept = []
    for s in range(game.mdp.n_states):
        pairs = [pair for pair in sets.pairs_of(game.mdp, s) if policy is None or policy[pair]]
        if s in game.pins:
            swept.append(_Swept(mpf(float(game.pins[s])), mpf(float(game.pins[s])), pairs[0]))
            continue
        bounds = []
        for pair in pairs:
            waits = game.mdp.discount == 1.0 and _waits(game, s, pair)
            bounds.append((v[s], v[s]) if waits else sets.pair_bounds(game.mdp, game.set_of, s, pair, v))
        low, high = zip(*bounds, strict=True)
        if policy is None:
            swept.append(_Swept(max(low), max(high), pairs[low.index(max(low))]))
        else:
            weights = [mpf(float(policy[pair])) for pair in pairs]
            swept.append(_Swept(mp.fdot(weights, low), mp.fdot(weights, high), pairs[0]))
    return swept
