"""Rows and small worlds made to break certified bounds: rare outcomes, levels at the edge of what floats can say."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm
from oracles import exact, own_divergences

FloatArray = npt.NDArray[np.float64]

NAMED = (rm.ChiSquare(), rm.KL(), rm.TotalVariation(), rm.Burg(), rm.Hellinger(), rm.JensenShannon())
POWERS = (0.0, 1.0, 2.0, 3.0, 0.5, -1.0, 20.0, 1000.0, -1000.0, 1e-9, -1e-9, 1 + 1e-9, 1 - 1e-9)
WORLD_POWERS = (0.0, 1.0, 2.0, 3.0, 0.5, -1.0, 20.0, 1 + 1e-9, -1e-9)
_LARGEST_K = 20.0  # what is held to an accuracy; beyond it only the bounds are
_RANDOM = 3  # powers drawn at random, for every round of the named ones


class HostileRow(NamedTuple):
    """One row as one state of a model: outcome i pays v[i], at once or one step later, and then all is over.

    `pays` is "transition" (the reward depends on the successor) or "successor" (the successor pays).
    """

    family: str
    ambiguity: Any
    p: FloatArray
    v: FloatArray
    discount: float
    pays: str
    tol: float

    @property
    def spread(self) -> float:
        return float(np.ptp(self.v))

    @property
    def is_moderate(self) -> bool:
        """Is `rm.worst_case` held to an accuracy, beside its bounds?

        All p >= 1e-12, a built-in divergence with |k| <= 20, a weight within 1e8 of the spread or a radius in
        [1e-10, 1e8], outcomes between 1e-12 and 1e12 in size.
        """
        ambiguity = self.ambiguity
        if self.p.min() < 1e-12 or isinstance(ambiguity.divergence, rm.Divergence):
            return False
        if isinstance(ambiguity.divergence, rm.CressieRead) and abs(ambiguity.divergence.k) > _LARGEST_K:
            return False
        if not 1e-12 <= np.abs(self.v).max() <= 1e12 or self.spread == 0:
            return False
        if isinstance(ambiguity, rm.Penalized):
            return 1e-8 <= ambiguity.level / self.spread <= 1e8
        return 1e-10 <= ambiguity.level <= 1e8

    def __str__(self) -> str:
        return (
            f"{self.family}: rm.{self.ambiguity!r}, discount {self.discount}, tol {self.tol}, "
            f"paid by the {self.pays}\np = {self.p.tolist()}\nv = {self.v.tolist()}"
        )


class HostileWorld(NamedTuple):
    """A small random model and how far the truth may be from it; `stop_after` is when a run shall stop."""

    mdp: rm.MDP
    ambiguity: Any
    stop_after: int
    tol: float

    def __str__(self) -> str:
        mdp = self.mdp
        level = "" if isinstance(self.ambiguity, rm.Nominal) else f", level {np.asarray(self.ambiguity.level).tolist()}"
        return (
            f"rm.{self.ambiguity!r}{level}, discount {mdp.discount}, stopped after {self.stop_after}, tol {self.tol}\n"
            + "\n".join(
                f"{name} = {getattr(mdp, name).tolist()}"
                for name in ("state_ptr", "actions", "indptr", "indices", "probabilities", "rewards")
            )
        )


def build_mdp(row: HostileRow) -> rm.MDP:
    """State 0 has the row; state i + 1 is where outcome i leads."""
    n = row.p.size
    at_once = row.pays == "transition"
    state = np.append(np.zeros(n, int), np.arange(1, n + 1))
    following = np.append(np.arange(1, n + 1), np.arange(1, n + 1))
    probability = np.append(row.p, np.ones(n))
    reward = np.append(row.v, np.zeros(n)) if at_once else np.append(np.zeros(n), row.v)
    ends = np.append(np.full(n, at_once), np.full(n, True))
    action = np.zeros(2 * n, int)
    return rm.MDP.from_rows(state, action, following, probability, reward, row.discount, terminated=ends)


def hostile_row(seed: int, index: int) -> HostileRow:
    """Row `index` of a stream that does not depend on how it is cut; the index walks through all families."""
    rng = np.random.default_rng([seed, index, 2])
    family = list(FAMILIES)[index % len(FAMILIES)]
    ambiguity, p, v = FAMILIES[family](rng, _divergence(rng, index // len(FAMILIES)))
    discount = float(rng.choice([0.5, 0.5, 0.5, 0.25, 0.9]))
    pays = str(rng.choice(["transition", "transition", "successor"]))
    if rng.random() < 0.5:
        order = rng.permutation(p.size)
        p, v = p[order], v[order]
    return HostileRow(family, ambiguity, p, v, discount, pays, float(rng.choice([1e-8, 1e-8, 1e-12])))


def _divergence(rng: np.random.Generator, index: int) -> Any:
    which = index % (len(NAMED) + len(POWERS) + _RANDOM)
    if which < len(NAMED):
        return NAMED[which]
    which -= len(NAMED)
    return rm.CressieRead(POWERS[which] if which < len(POWERS) else _random_power(rng))


def _random_power(rng: np.random.Generator) -> float:
    if rng.random() < 0.7:
        return float(rng.normal(0.5, 3.0))
    near = float(rng.choice([0.0, 1.0, 2.0])) if rng.random() < 0.5 else 0.0
    return near + float(rng.choice([-1, 1]) * 10 ** rng.uniform(-12, 2))


@cache
def own_divergence(name: str) -> rm.Divergence | None:
    """One object per name, so that what is compiled for it is compiled once; None where the package refuses it."""
    try:
        return own_divergences.build(name)
    except ValueError:
        return None


def _length(rng: np.random.Generator) -> int:
    return int(rng.choice([2, 2, 2, 3, 3, 4, 5, 6]))


def _masses(rng: np.random.Generator, n: int) -> FloatArray:
    p = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 1.0, 10.0])))
    p = np.maximum(p, 1e-9)
    return p / p.sum()


def _rare(rng: np.random.Generator, n: int, rarest: float) -> FloatArray:
    """The first outcome is rare; where it is too rare to count, the others sum to 1 without it."""
    rest = _masses(rng, n - 1) if n > 2 else np.ones(1)
    first = 10 ** rng.uniform(rarest, -3)
    return np.append(first, rest * (1 - first))


def _outcomes(rng: np.random.Generator, n: int) -> FloatArray:
    """Distinct outcomes; the lowest comes first in two of three rows, where a rare one matters most."""
    scale = float(rng.choice([1.0, 1.0, 10 ** rng.uniform(-6, 6)]))
    v = rng.choice([rng.uniform(size=n), rng.normal(size=n), np.arange(n) * 1.0])
    order = np.argsort(v)
    if rng.random() < 0.33:
        order = rng.permutation(n)
    elif rng.random() < 0.3:
        order = order[::-1]
    return scale * v[order]


def _set(rng: np.random.Generator, divergence: Any, p: FloatArray, v: FloatArray) -> Any:
    """A level where something happens: near what moves the rarest or the commonest outcome, or anywhere."""
    spread = max(float(np.ptp(v)), 1e-12)
    if rng.random() < 0.5:
        base = spread * rng.choice([p[0], p.min(), p.max(), 1.0])
        weight = base * 10 ** rng.uniform(-1, 1.5) if rng.random() < 0.7 else spread * 10 ** rng.uniform(-6, 6)
        return rm.Penalized(divergence, max(weight, 1e-320))
    draw = rng.random()
    if draw < 0.4:
        vertex = _vertex(divergence, p, v)
        if vertex < 1e300:
            return rm.Constrained(divergence, vertex * 10 ** rng.uniform(-6, 0.1))
    return rm.Constrained(divergence, 10 ** (rng.uniform(-3, 1) if draw < 0.7 else rng.uniform(-8, 8)))


def _vertex(divergence: Any, p: FloatArray, v: FloatArray) -> float:
    return float(exact.vertex_radius(divergence, p.tolist(), v.tolist()))


Drawn = tuple[Any, FloatArray, FloatArray]


def _rare_first(rng: np.random.Generator, divergence: Any) -> Drawn:
    n = _length(rng)
    p, v = _rare(rng, n, float(rng.choice([-16.0, -16.0, -80.0, -300.0]))), _outcomes(rng, n)
    return _set(rng, divergence, p, v), p, v


def _near_vertex(rng: np.random.Generator, divergence: Any) -> Drawn:
    n = _length(rng)
    p = _rare(rng, n, float(rng.choice([-8.0, -14.0, -14.0, -100.0]))) if rng.random() < 0.7 else _masses(rng, n)
    v = np.sort(_outcomes(rng, n))
    vertex = _vertex(divergence, p, v)
    if vertex > 1e300:
        return rm.Constrained(divergence, 10 ** rng.uniform(0, 15)), p, v
    return rm.Constrained(divergence, vertex * (1 - 10.0 ** -rng.uniform(0.5, 16))), p, v


def _beyond_vertex(rng: np.random.Generator, divergence: Any) -> Drawn:
    ambiguity, p, v = _near_vertex(rng, divergence)
    vertex = _vertex(divergence, p, v)
    if vertex > 1e300:
        return ambiguity, p, v
    beyond = vertex * (1 + 10.0 ** -rng.uniform(0.5, 16)) if rng.random() < 0.7 else math.nextafter(vertex, math.inf)
    return rm.Constrained(divergence, beyond), p, v


def _subnormal(rng: np.random.Generator, divergence: Any) -> Drawn:
    n = _length(rng)
    p, v = _masses(rng, n), _outcomes(rng, n)
    for i in range(1 if n == 2 or rng.random() < 0.7 else 2):
        p[i] = float(rng.integers(1, 2**52)) * 5e-324 if rng.random() < 0.5 else 10 ** rng.uniform(-323, -290)
    return _set(rng, divergence, _close(p), v), _close(p), v


def _close(p: FloatArray) -> FloatArray:
    """Rescaled without losing what is subnormal."""
    large = p > 1e-200
    return np.where(large, p / p[large].sum(), p)


def _tiny_weight(rng: np.random.Generator, divergence: Any) -> Drawn:
    n = _length(rng)
    p, v = _rare(rng, n, -12.0) if rng.random() < 0.5 else _masses(rng, n), _outcomes(rng, n)
    lowest = float(rng.choice([-20.0, -20.0, -100.0, -300.0]))
    return rm.Penalized(divergence, max(float(np.ptp(v)) * 10 ** rng.uniform(lowest, -3), 1e-320)), p, v


def _huge_weight(rng: np.random.Generator, divergence: Any) -> Drawn:
    n = _length(rng)
    p, v = _rare(rng, n, -12.0) if rng.random() < 0.5 else _masses(rng, n), _outcomes(rng, n)
    return rm.Penalized(divergence, float(np.ptp(v)) * 10 ** rng.uniform(3, rng.choice([16, 16, 30, 290]))), p, v


def _ties(rng: np.random.Generator, divergence: Any) -> Drawn:
    n = int(rng.integers(3, 7))
    p = _rare(rng, n, -14.0) if rng.random() < 0.5 else _masses(rng, n)
    v = _outcomes(rng, 2)[rng.integers(0, 2, n)]
    return _set(rng, divergence, p, v), p, v


def _last_bits(rng: np.random.Generator, divergence: Any) -> Drawn:
    """Outcomes that differ by a few units in the last place, all of them or those at the bottom."""
    n = _length(rng)
    p = _rare(rng, n, -14.0) if rng.random() < 0.5 else _masses(rng, n)
    base = float(rng.choice([1.0, 0.0, -3.0, 10 ** rng.uniform(-6, 6)])) or 2.0**-30
    v = base + np.spacing(abs(base)) * rng.integers(0, 6, n)
    if n > 2 and rng.random() < 0.5:
        v[rng.integers(n)] = base + abs(base) * rng.uniform(0.1, 10)
    return _set(rng, divergence, p, v), p, v


def _offset(rng: np.random.Generator, divergence: Any) -> Drawn:
    n = _length(rng)
    p = _rare(rng, n, -14.0) if rng.random() < 0.5 else _masses(rng, n)
    v = rng.choice([-1, 1]) * 10 ** rng.uniform(3, 15) + _outcomes(rng, n)
    return _set(rng, divergence, p, v), p, v


def _any_radius(rng: np.random.Generator, divergence: Any) -> Drawn:
    n = _length(rng)
    p = _rare(rng, n, float(rng.choice([-14.0, -100.0]))) if rng.random() < 0.5 else _masses(rng, n)
    return rm.Constrained(divergence, 10 ** rng.uniform(-12, 15)), p, _outcomes(rng, n)


def _any_size(rng: np.random.Generator, divergence: Any) -> Drawn:
    """Outcomes far from 1 in size, the weight along with them."""
    n = _length(rng)
    p = _rare(rng, n, -14.0) if rng.random() < 0.5 else _masses(rng, n)
    unit = 10 ** rng.uniform(-100, 90)
    v = _outcomes(rng, n)
    ambiguity = _set(rng, divergence, p, v)
    if isinstance(ambiguity, rm.Penalized):
        ambiguity = rm.Penalized(divergence, ambiguity.level * unit)
    return ambiguity, p, v * unit


def _wrong_sums(rng: np.random.Generator, divergence: Any) -> Drawn:
    """Rows that sum to 1 only nearly: below 1e-12 they may be stored as they are, below 1e-6 they are accepted."""
    n = _length(rng)
    p = _rare(rng, n, -14.0) if rng.random() < 0.3 else _masses(rng, n)
    p = p * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-15, -12 if rng.random() < 0.7 else -6.1))
    v = _outcomes(rng, n) + float(rng.choice([0.0, 1e4]))
    return _set(rng, divergence, p, v), p, v


def _own(rng: np.random.Generator, divergence: Any) -> Drawn:
    """A user's own divergence, mostly in balls of small radius."""
    del divergence
    names = [name for name in own_divergences.OWN if own_divergence(name) is not None]
    mine = own_divergence(str(rng.choice(names)))
    n = _length(rng)
    p, v = _rare(rng, n, -6.0) if rng.random() < 0.3 else _masses(rng, n), _outcomes(rng, n)
    if rng.random() < 0.3:
        return rm.Penalized(mine, float(np.ptp(v)) * 10 ** rng.uniform(-3, 6)), p, v
    return rm.Constrained(mine, 10 ** (rng.uniform(-12, 0) if rng.random() < 0.8 else rng.uniform(-1, 4))), p, v


FAMILIES: dict[str, Callable[[np.random.Generator, Any], Drawn]] = {
    "rare first outcome": _rare_first,
    "near the vertex": _near_vertex,
    "beyond the vertex": _beyond_vertex,
    "subnormal probability": _subnormal,
    "tiny weight": _tiny_weight,
    "huge weight": _huge_weight,
    "tied outcomes": _ties,
    "last bits": _last_bits,
    "large offset": _offset,
    "any radius": _any_radius,
    "any size": _any_size,
    "sums other than 1": _wrong_sums,
    "own divergence": _own,
}


def hostile_world(seed: int, index: int) -> HostileWorld:
    """World `index` of a stream: 2 to 5 states, 1 to 3 actions, endings or not, rewards on pairs or successors."""
    rng = np.random.default_rng([seed, index, 3])
    n, most = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    discount = float(rng.choice([0.0, 0.3, 0.6, 0.9, 0.9, 0.99, 0.999]))
    on_successors, can_end = rng.random() < 0.5, rng.random() < 0.5
    scale, offset = (
        (10 ** rng.uniform(-3, 3), 0.0) if rng.random() < 0.3 else (1.0, float(rng.choice([0.0, 0.0, 100.0])))
    )
    columns: list[tuple[int, int, int, float, float, bool]] = []
    for s in range(n):
        for a in range(int(rng.integers(1, most + 1))):
            reached = rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False)
            p = _world_masses(rng, reached.size)
            reward = offset + scale * rng.uniform(-1, 2)
            for following, mass in zip(reached, p, strict=True):
                paid = offset + scale * rng.uniform(-1, 2) if on_successors else reward
                columns.append((s, a, int(following), float(mass), float(paid), bool(can_end and rng.random() < 0.3)))
    s, a, following, p, r, ends = (np.array(column) for column in zip(*columns, strict=True))
    mdp = rm.MDP.from_rows(s, a, following, p, r, discount, terminated=ends, n_states=n)
    ambiguity = _world_set(rng, mdp, scale / (1 - discount))
    return HostileWorld(mdp, ambiguity, int(rng.integers(1, 7)), float(rng.choice([1e-8, 1e-8, 1e-13])))


def _world_masses(rng: np.random.Generator, n: int) -> FloatArray:
    p = _rare(rng, n, -14.0) if n > 1 and rng.random() < 0.25 else _masses(rng, n)
    return p * (1 + 10 ** rng.uniform(-15, -12)) if rng.random() < 0.1 else p


def _world_set(rng: np.random.Generator, mdp: rm.MDP, size: float) -> Any:
    if rng.random() < 0.03:
        return rm.Nominal()
    which = int(rng.integers(0, len(NAMED) + len(WORLD_POWERS) + _RANDOM))
    if which < len(NAMED):
        divergence: Any = NAMED[which]
    elif which < len(NAMED) + len(WORLD_POWERS):
        divergence = rm.CressieRead(WORLD_POWERS[which - len(NAMED)])
    else:
        divergence = rm.CressieRead(float(rng.uniform(-3, 5)))
    if rng.random() < 0.04:
        divergence = own_divergence(str(rng.choice(["t log t", "(sqrt t - 1)^2", "|t-1| + (t-1)^2"])))
    shape = (mdp.n_states, mdp.n_actions) if rng.random() < 0.25 else ()
    if rng.random() < 0.5:
        return rm.Penalized(divergence, size * 10 ** rng.uniform(-3, 2, shape) if rng.random() > 0.03 else 0.0)
    return rm.Constrained(divergence, 10 ** rng.uniform(-4, 1, shape) if rng.random() > 0.03 else math.inf)
