"""Sets that change what another set means: shared by the actions of a state, or with nature on the player's side."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

from robustmdp import _checks, _core
from robustmdp._arrays import IntArray
from robustmdp.ambiguity.base import Ambiguity, Level
from robustmdp.ambiguity.own import check_ambiguity


def _inner(name: str) -> Any:
    return property(attrgetter(f"set.{name}"))


class _Wrapper(Ambiguity):
    """A set made of another one, whose level and rows it takes over."""

    kind: ClassVar[str]  # of label
    meaning: ClassVar[str]
    set: Ambiguity
    level = _inner("level")
    kernel = _inner("kernel")
    kernel_for = _inner("kernel_for")
    kernel_for_row = _inner("kernel_for_row")
    kernel_level = _inner("kernel_level")
    paper_multipliers = _inner("paper_multipliers")
    eta_shift = _inner("eta_shift")
    invents = _inner("invents")
    candidates = _inner("candidates")
    added_successors = _inner("added_successors")
    check_parts = _inner("check_parts")
    names_states = _inner("names_states")
    keeps_support = _inner("keeps_support")

    def __init__(self, set: Ambiguity) -> None:
        inner = check_ambiguity(set)
        super().__init__(set=inner)
        vars(self).update(is_nominal=inner.is_nominal, level_name=inner.level_name, grows=inner.grows)

    def on_part(self, model: Any, states: slice, transitions: slice | IntArray) -> Ambiguity:
        return type(self)(self.set.on_part(model, states, transitions))

    def on_transitions(self, model: Any) -> Ambiguity:
        return type(self)(self.set.on_transitions(model))

    @property
    def label(self) -> str:
        return f"{self.kind} {self.set.label}"

    def __str__(self) -> str:
        return f"{self.meaning}: {self.set}"

    def is_like(self, other: Ambiguity) -> bool:
        return type(self) is type(other) and isinstance(other, _Wrapper) and self.set.is_like(other.set)

    def contains(self, other: Ambiguity) -> bool:
        if isinstance(other, _Wrapper) and type(self) is type(other) and not other.is_nominal:
            return self.set.contains(other.set)
        return other.is_nominal


class _Statewise(_Wrapper):
    """Nature answers the actions of a state together."""

    is_statewise = True
    eta_shift = 0.0  # states have no eta

    def __init__(self, set: Ambiguity) -> None:
        super().__init__(set)
        inner, name = self.set, type(self).__name__
        _checks.must(inner.sign > 0.0, f"set must not be optimistic: take Optimistic({name}(...)), got {inner!r}")
        _checks.must(not inner.is_statewise, f"set must be a set of rows: got {inner!r}")


class SRectangular(_Statewise):
    """max over pi(. | s) of inf over sum_a D(P_a, p_a) <= level of sum_a pi(a | s) E_{P_a} v.

    The actions of a state share one budget (Wiesemann, Kuhn and Rustem, 2013), or one price: the best policy may be
    random, because nature must spread what it has over all actions in use. Less is lost than where each action has a
    budget of its own; with one action the two are the same. The `policy` of a solution is (S, A), and `penalty` is what
    nature pays in the whole state, repeated over its actions.

    Parameters
    ----------
    set : Constrained, Penalized, L1 or L2
        Of any divergence, a user's own as well; its level is a number or (S,) numbers.

    >>> from robustmdp import MDP, L1, solve
    >>> bets = MDP.from_arrays([[[0.5, 0.5], [0.5, 0.5]]] * 2, [[[0.0, 1.0]] * 2] * 2, 0.0)  # two actions, the same
    >>> [round(float(solve(bets, each).value[0]), 6) for each in (L1(0.5), SRectangular(L1(0.5)))]  # less 1/4, 1/8
    [0.25, 0.375]
    """

    kind = "s-rectangular"
    meaning = "s-rectangular, shared by the actions of a state"

    def state_kernel_for(self, model: Any) -> Any:
        return self.set.shared_kernel_for(model)


class SharedNoise(_Statewise):
    """max over pi(. | s) of inf over P in the set of sum_a pi(a | s) E_{k ~ P}[r_k + discount v(s'_k)].

    For models made by `MDP.from_noise`: nature picks one distribution of the noise for each state, before an action is
    drawn, so that the best policy may be random. The value is at least that of the set alone, in which nature picks one
    for each action, and the two are the same with one action. A single distribution for all states is not rectangular:
    its value is higher still, so that what is found here is a lower bound of it. `penalty` is what nature pays in the
    state, repeated over its actions.

    Parameters
    ----------
    set : a set of distributions of the noise, such as Constrained, Penalized, L1, L2, LInf or CVaR
        Its level is a number or (S,) numbers; weights and bounds have one number per value of the noise.

    >>> from robustmdp import L1, MDP, solve
    >>> def bet(state, side, coin):
    ...     return 0, 1.0 * (side == coin), True
    >>> coin = MDP.from_noise(bet, n_states=1, n_actions=2, noise=[0.5, 0.5], discount=0.0)
    >>> solve(coin, L1(0.5)).value[0], solve(coin, SharedNoise(L1(0.5))).value[0].round(6)  # a random bet earns 1/2
    (np.float64(0.25), np.float64(0.5))
    """

    kind = "shared noise"
    meaning = "one distribution of the noise for all actions of a state"

    def __init__(self, set: Ambiguity) -> None:
        super().__init__(set)
        _checks.must(
            not self.set.invents, f"support must be 'model', because the noise has no other values: got {self.set!r}"
        )

    def state_kernel_for(self, model: Any) -> Any:
        noise = model.noise
        _checks.must(
            noise is not None, f"{self!r} needs a model made by MDP.from_noise: this one lists successors, not noise"
        )
        rows, _ = self.set.kernel_for_row(noise.probabilities)
        try:
            return _core.shared_noise(rows)
        except TypeError:  # rows that are solved in Python
            _checks.fail(f"set must be one of the package's, with its divergence, but for MeanRisk: got {self.set!r}")


class Optimistic(_Wrapper):
    """sup instead of inf over the same set: nature helps the player, and pays where it has a price.

    Parameters
    ----------
    set : any set, but for an optimistic one

    >>> from robustmdp import L1, worst_case
    >>> best = worst_case(Optimistic(L1(0.5)), [0.5, 0.5], [0.0, 2.0])
    >>> best.value, best.distribution
    (1.5, array([0.25, 0.75]))
    """

    kind = "optimistic"
    meaning = "nature helps"
    sign = -1.0
    is_statewise = _inner("is_statewise")
    state_kernel_for = _inner("state_kernel_for")

    def __init__(self, set: Ambiguity) -> None:
        super().__init__(set)
        _checks.must(self.set.sign > 0.0, f"set must not be optimistic already: got {self.set!r}")

    @property
    def eta_shift(self) -> Level:
        return -self.set.eta_shift

    def paper_multipliers(self, eta: float, weight: float) -> tuple[float, float]:
        eta, weight = self.set.paper_multipliers(-eta, weight)
        return -eta, weight

    def contains(self, other: Ambiguity) -> bool:
        """Whether the two are equal: more room raises values here."""
        return self == other
