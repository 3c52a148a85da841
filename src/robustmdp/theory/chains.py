"""The Markov chain of (state, action) pairs under a behaviour policy (section 5): where it lives, how fast it forgets.

P((s', a') | (s, a)) = P*(s' | s, a) behaviour(a' | s'). An episode that ends goes on in the state `start`. The
behaviour policy is None (uniform over the available actions), (A,) or (S, A) probabilities.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.models import MDP

if TYPE_CHECKING:
    import scipy.sparse as sp

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_FACTORED_SIZE = 1000
_POWER_STEPS = 1000
_POWER_TOLERANCE = 1e-14
_MIXING_SIZE = 1000
_MIXING_DOUBLINGS = 30
_POINTS_PER_DOUBLING = 8
_FORGOTTEN = 1e-4


def stationary_distribution(mdp: MDP, behaviour: npt.ArrayLike | None = None, *, start: int = 0) -> FloatArray:
    """The d with d = d P, (S, A), summing to 1 (Assumption 5.1); 0 for unavailable pairs and those never visited.

    A periodic chain has one as well. Sparse: chains that mix fast are iterated, the others factored.

    >>> from robustmdp import problems
    >>> stationary_distribution(problems.chain(restart=0.5)).round(3)[:2]
    array([[0.05, 0.05],
           [0.05, 0.05]])
    """
    policy = _policy(mdp, behaviour)
    states = _stationary_states(*_recurrent(mdp, policy, start), mdp.n_states)
    return mdp.table(states[mdp.states] * policy, fill=0.0)


class Occupancy(NamedTuple):
    """How often the rarest and the commonest available pair occur: d_min and d_max."""

    smallest: float
    largest: float


def occupancy(mdp: MDP, behaviour: npt.ArrayLike | None = None, *, start: int = 0) -> Occupancy:
    """(d_min, d_max) of the stationary distribution over the available pairs; d_min = 0 if a pair is never visited.

    >>> from robustmdp import problems
    >>> [round(share, 3) for share in occupancy(problems.chain(restart=0.5), [0.9, 0.1])]
    [0.005, 0.095]
    """
    shares = mdp.pairs(stationary_distribution(mdp, behaviour, start=start))
    return Occupancy(float(shares.min()), float(shares.max()))


class Mixing(NamedTuple):
    """M and rho of Assumption 5.1: after t steps the chain is within M rho^t of its stationary distribution."""

    constant: float
    rate: float

    @property
    def time(self) -> float:
        """log(4 M)/log(1/rho), the mixing time as the paper has it."""
        return math.log(4.0 * self.constant) / -math.log(self.rate)


def mixing(mdp: MDP, behaviour: npt.ArrayLike | None = None, *, start: int = 0) -> Mixing:
    """(M, rho) with max over pairs of TV(P^t(. | pair), d) <= M rho^t for all t >= 0 (Assumption 5.1).

    For any t0, rho = c^(1/t0) and M = max over r < t0 of TV_r rho^-r do, where c is the contraction coefficient of P^t0
    (Dobrushin) and TV_r, which never grows, the distance after r steps. Of the t0 = 1, 2, 4, ... the one with the least
    M/(1 - rho) is taken, since that is how the bounds use it. Dense: for chains of up to 1000 pairs.

    >>> from robustmdp import MDP
    >>> two = MDP.from_arrays([[[0.9, 0.1]], [[0.3, 0.7]]], [0.0, 1.0], 0.9)   # eigenvalues 1 and 0.6, d = (3/4, 1/4)
    >>> mixed = mixing(two)
    >>> round(mixed.constant, 6), round(mixed.rate, 6)
    (0.75, 0.6)
    """
    _checks.must(
        mdp.n_pairs <= _MIXING_SIZE,
        f"mdp must have at most {_MIXING_SIZE} pairs for its mixing to be computed: got {mdp.n_pairs:,}",
    )
    policy = _policy(mdp, behaviour)
    chain, members = _recurrent(mdp, policy, start)
    period = _period(chain[members][:, members])
    _checks.must(period == 1, f"behaviour must give an aperiodic chain for it to mix: its period is {period}")
    states = _stationary_states(chain, members, mdp.n_states)
    laws, jump = _successors(mdp, start).toarray(), chain.toarray()
    times, distances = [0], [1.0 - float((states[mdp.states] * policy).min()) + _rounding(1)]
    time, stride = 1, 1
    found: list[Mixing] = []
    for _ in range(_MIXING_DOUBLINGS + 1):
        contraction = _spread(laws) + _rounding(time)
        if contraction < 1.0:
            found.append(_from_contraction(contraction, np.array([*times, time]), np.array(distances)))
        if contraction <= _FORGOTTEN:
            break
        while stride * _POINTS_PER_DOUBLING < time:
            stride, jump = 2 * stride, _renormalised(jump @ jump)
        for _ in range(time // stride):
            times.append(time)
            distances.append(0.5 * float(np.abs(laws - states).sum(axis=1).max()) + _rounding(time))
            laws, time = _renormalised(laws @ jump), time + stride
    _checks.must(
        bool(found), f"behaviour must let the chain mix: after {time // 2:,} steps it still knows where it began"
    )
    return min(found, key=lambda mixed: mixed.constant / (1.0 - mixed.rate))


def _from_contraction(contraction: float, times: IntArray, distances: FloatArray) -> Mixing:
    """M and rho from the contraction over t0 = times[-1] steps and the distances at the times before."""
    rate = contraction ** (1.0 / float(times[-1]))
    # Between two times the distance is at most what it was at the first.
    return Mixing(float((distances * rate ** (1.0 - times[1:])).max()), rate)


def _rounding(steps: int) -> float:
    """What a computed distance may be off after so many steps."""
    return 1e-12 + 1e-15 * steps


def _renormalised(laws: FloatArray) -> FloatArray:
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


def _spread(laws: FloatArray) -> float:
    """The largest total variation distance between two rows."""
    from scipy.spatial.distance import pdist

    return 0.5 * float(pdist(laws, "cityblock").max()) if len(laws) > 1 else 0.0


def _policy(mdp: MDP, behaviour: npt.ArrayLike | None) -> FloatArray:
    """behaviour(a | s) at the available pairs, (n_pairs,)."""
    if behaviour is None:
        return 1.0 / np.diff(mdp.state_ptr)[mdp.states]
    given = np.asarray(behaviour, dtype=np.float64)
    shape = (mdp.n_states, mdp.n_actions)
    _checks.must(
        given.shape in (shape, shape[1:]), f"behaviour must have shape {shape[1:]} or {shape}: got {given.shape}"
    )
    table = np.broadcast_to(given, shape)
    _checks.must(bool(np.all(table >= 0)), "behaviour must be at least 0 everywhere")
    policy = mdp.pairs(table)
    sums = np.add.reduceat(policy, mdp.state_ptr[:-1])
    stray = table.sum(axis=1) - sums
    off = np.flatnonzero((np.abs(sums - 1.0) > _checks.SUM_TOLERANCE) | (stray > _checks.SUM_TOLERANCE))
    if off.size:
        s = int(off[0])
        _checks.fail(
            "behaviour must sum to 1 over the available actions, 0 elsewhere: "
            f"got {sums[s]:.9g} and {stray[s]:.9g} in {mdp.state_name(s)}"
        )
    return np.asarray(policy / sums[mdp.states])


def _successors(mdp: MDP, start: int) -> sp.csr_array:
    """P*(s' | s, a) with the end led back to `start`, (n_pairs, S)."""
    import scipy.sparse as sp

    _checks.must(0 <= start < mdp.n_states, f"start must be a state in 0..{mdp.n_states - 1}: got {start}")
    indices = np.where(mdp.indices == mdp.n_states, start, mdp.indices)
    rows = sp.csr_array((mdp.probabilities, indices, mdp.indptr), shape=(mdp.n_pairs, mdp.n_states))
    rows.sum_duplicates()
    return rows


def _recurrent(mdp: MDP, policy: FloatArray, start: int) -> tuple[sp.csr_array, IntArray]:
    """The chain of states, (S, S), and the states of its one recurrent class."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components

    choices = sp.csr_array((policy, np.arange(mdp.n_pairs), mdp.state_ptr), shape=(mdp.n_states, mdp.n_pairs))
    chain = sp.csr_array(choices @ _successors(mdp, start))
    chain.eliminate_zeros()
    n_classes, label = connected_components(chain, directed=True, connection="strong")
    source = np.repeat(np.arange(mdp.n_states), np.diff(chain.indptr))
    left = label[source] != label[chain.indices]
    closed = np.setdiff1d(np.arange(n_classes), label[source[left]])
    if len(closed) > 1:
        one, other = (mdp.state_name(int(np.flatnonzero(label == each)[0])) for each in closed[:2])
        _checks.fail(
            f"behaviour must give the chain one recurrent class: got {len(closed)}, "
            f"of which one holds {one} and another {other}"
        )
    return chain, np.flatnonzero(label == closed[0])


def _stationary_states(chain: sp.csr_array, members: IntArray, n_states: int) -> FloatArray:
    """d(s), (S,), zero outside the recurrent class."""
    shares = np.zeros(n_states)
    shares[members] = _irreducible(chain[members][:, members])
    return shares


def _irreducible(chain: sp.csr_array) -> FloatArray:
    """d of an irreducible chain. What mixes fast fills in when factored, what mixes slowly is mostly planar."""
    size = chain.shape[0]
    transposed = chain.T.tocsr()
    share: FloatArray = np.full(size, 1.0 / size)
    for _ in range(_POWER_STEPS):
        following = 0.5 * (share + transposed @ share)  # lazy, so that a period does no harm
        following /= following.sum()
        change = float(np.abs(following - share).sum())
        share = following
        if change <= _POWER_TOLERANCE:
            break
    converged = change <= _POWER_TOLERANCE and size > _FACTORED_SIZE
    return share if converged else _factored(transposed, int(share.argmax()))


def _factored(transposed: sp.csr_array, common: int) -> FloatArray:
    """d from the linear system that is left when d of one common state is set to 1."""
    import scipy.sparse as sp
    from scipy.sparse.linalg import splu

    size = transposed.shape[0]
    others = np.flatnonzero(np.arange(size) != common)
    share: FloatArray = np.ones(size)
    if others.size:
        moves = sp.csc_array(transposed - sp.diags_array(transposed.diagonal()))
        # 1 - P(s|s) as the sum of what leaves loses no digits.
        leaving = sp.diags_array(np.asarray(moves.sum(axis=0))[others])
        system = sp.csc_array(leaving - moves[others][:, others])
        share[others] = splu(system).solve(moves[others][:, [common]].toarray().ravel())
    return np.asarray(share / share.sum())


def _period(chain: sp.csr_array) -> int:
    """The greatest common divisor of the lengths of all cycles of an irreducible chain."""
    from scipy.sparse.csgraph import breadth_first_order

    order, before = breadth_first_order(chain, 0, directed=True)
    level: npt.NDArray[Any] = np.zeros(chain.shape[0], dtype=np.int64)
    for state in order[1:]:
        level[state] = level[before[state]] + 1
    source = np.repeat(np.arange(chain.shape[0]), np.diff(chain.indptr))
    return int(np.gcd.reduce(level[source] + 1 - level[chain.indices]))
