"""The Markov chain of (state, action) pairs under a behaviour policy (section 5): where it lives, how fast it forgets.

P((s', a') | (s, a)) = P*(s' | s, a) behaviour(a' | s'). The first episode begins in the state `start`, and an episode
that ends goes on there, as in a learner's `run(..., start=)`. The behaviour policy is None (uniform over the available
actions), (A,) or (S, A) probabilities.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.models import MDP

if TYPE_CHECKING:
    import scipy.sparse as sp


_FACTORED_SIZE = 1000
_POWER_STEPS = 1000
_POWER_TOLERANCE = 1e-14
_MIXING_SIZE = 1000
_MIXING_DOUBLINGS = 30
_POINTS_PER_DOUBLING = 8
_FORGOTTEN = 1e-4


def stationary_distribution(mdp: MDP, behaviour: npt.ArrayLike | None = None, *, start: int = 0) -> FloatArray:
    """The d with d = d P, (S, A), summing to 1 (Assumption 5.1); 0 for unavailable pairs and those never visited.

    `start` is the state in which episodes begin: d is that of the recurrent class which the chain enters from there.
    A periodic chain has one as well. Sparse: chains that mix fast are iterated, the others factored.

    >>> from robustmdp import problems
    >>> stationary_distribution(problems.chain(restart=0.5)).round(3)[:2]
    array([[0.05, 0.05],
           [0.05, 0.05]])
    """
    _types.check_arguments(stationary_distribution, locals())
    policy = _policy(mdp, behaviour)
    states = _stationary_states(_chain(mdp, policy, start))
    return mdp.table(states[mdp.states] * policy, fill=0.0)


class Occupancy(NamedTuple):
    """How often the rarest and the commonest available pair occur: d_min and d_max."""

    smallest: float
    largest: float


def occupancy(mdp: MDP, behaviour: npt.ArrayLike | None = None, *, start: int = 0) -> Occupancy:
    """(d_min, d_max) of the stationary distribution over the available pairs; d_min = 0 if a pair is never visited.

    `start` is the state in which episodes begin, as in `stationary_distribution`.

    >>> from robustmdp import problems
    >>> [round(share, 3) for share in occupancy(problems.chain(restart=0.5), [0.9, 0.1])]
    [0.005, 0.095]
    """
    _types.check_arguments(occupancy, locals())
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

    The pairs are those that the chain can visit when episodes begin in the state `start`.
    For any t0, rho = c^(1/t0) and M = max over r < t0 of TV_r rho^-r do, where c is the contraction coefficient of P^t0
    (Dobrushin) and TV_r, which never grows, the distance after r steps. Of the t0 = 1, 2, 4, ... the one with the least
    M/(1 - rho) is taken, since that is how the bounds use it. Dense: for chains of up to 1000 pairs.

    >>> from robustmdp import MDP
    >>> two = MDP.from_arrays([[[0.9, 0.1]], [[0.3, 0.7]]], [0.0, 1.0], 0.9)   # eigenvalues 1 and 0.6, d = (3/4, 1/4)
    >>> mixed = mixing(two)
    >>> round(mixed.constant, 6), round(mixed.rate, 6)
    (0.75, 0.6)
    """
    _types.check_arguments(mixing, locals())
    _checks.must(
        mdp.n_pairs <= _MIXING_SIZE,
        f"mdp must have at most {_MIXING_SIZE} pairs for its mixing to be computed: got {mdp.n_pairs:,}",
    )
    policy = _policy(mdp, behaviour)
    chain = _chain(mdp, policy, start)
    period = _period(chain.matrix[chain.recurrent][:, chain.recurrent])
    _checks.must(period == 1, f"behaviour must give an aperiodic chain for it to mix: its period is {period}")
    states = _stationary_states(chain)
    visited = chain.is_reachable[mdp.states] & (policy > 0.0)
    laws, jump = _successors(mdp, start).toarray()[visited], chain.matrix.toarray()
    times, distances = [0], [1.0 - float((states[mdp.states] * policy)[visited].min()) + _rounding(1)]
    time, stride = 1, 1
    found: list[Mixing] = []
    for _ in range(_MIXING_DOUBLINGS + 1):
        contraction = _spread(laws) + _rounding(time)
        if contraction < 1.0:
            rate = contraction ** (1.0 / time)
            # Between two times the distance is at most what it was at the first.
            worst = np.array(distances) * rate ** (1.0 - np.array([*times[1:], time]))
            found.append(Mixing(float(worst.max()), rate))
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
    given = _checks.numbers("behaviour", behaviour)
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
    """P*(s' | s, a) with the end led back to `start`, (n_pairs, S); a row may repeat a successor, in any order."""
    import scipy.sparse as sp

    if isinstance(start, bool) or not isinstance(start, int | np.integer):
        raise TypeError(f"start must be a whole number: got {start!r}")
    _checks.must(0 <= start < mdp.n_states, f"start must be a state in 0..{mdp.n_states - 1}: got {start}")
    indices = np.where(mdp.indices == mdp.n_states, start, mdp.indices)
    # The probabilities are the model's own, which are read-only: neither sort nor sum them in place. Products and
    # `toarray` add repeated entries themselves.
    return sp.csr_array((mdp.probabilities, indices, mdp.indptr), shape=(mdp.n_pairs, mdp.n_states))


class _Chain(NamedTuple):
    """The chain of states, (S, S), which states it can reach from the start, and those of its one recurrent class."""

    matrix: sp.csr_array
    is_reachable: BoolArray
    recurrent: IntArray


def _chain(mdp: MDP, policy: FloatArray, start: int) -> _Chain:
    """The chain of states under a policy, with the end led back to `start`."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    choices = sp.csr_array((policy, np.arange(mdp.n_pairs), mdp.state_ptr), shape=(mdp.n_states, mdp.n_pairs))
    matrix = sp.csr_array(choices @ _successors(mdp, start))
    matrix.eliminate_zeros()
    is_reachable = np.zeros(mdp.n_states, dtype=np.bool_)
    is_reachable[breadth_first_order(matrix, start, directed=True, return_predecessors=False)] = True
    _, label = connected_components(matrix, directed=True, connection="strong")
    source = np.repeat(np.arange(mdp.n_states), np.diff(matrix.indptr))
    left = label[source] != label[matrix.indices]
    # A class that cannot be reached from the start has no part in the trajectory.
    closed = np.setdiff1d(label[is_reachable], label[source[left]])
    if len(closed) > 1:
        one, other = (mdp.state_name(int(np.flatnonzero(label == each)[0])) for each in closed[:2])
        _checks.fail(
            f"behaviour must lead from {mdp.state_name(start)} into one recurrent class: got {len(closed)}, "
            f"of which one holds {one} and another {other}"
        )
    return _Chain(matrix, is_reachable, np.flatnonzero(label == closed[0]))


def _stationary_states(chain: _Chain) -> FloatArray:
    """d(s), (S,), zero outside the recurrent class."""
    shares = np.zeros(chain.matrix.shape[0])
    shares[chain.recurrent] = _irreducible(chain.matrix[chain.recurrent][:, chain.recurrent])
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
