"""Doubt about the noise of a state instead of about the rows of its actions."""

from __future__ import annotations

from typing import Any

from robustmdp import _checks, _core
from robustmdp.ambiguity.base import Ambiguity, StateKernel
from robustmdp.ambiguity.wrapper import Wrapper


class SharedNoise(Wrapper):
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

    def __init__(self, set: Ambiguity) -> None:
        super().__init__(set)
        inner = self.set
        _checks.must(inner.sign > 0.0, f"set must not be optimistic: take Optimistic(SharedNoise(...)), got {inner!r}")
        _checks.must(not inner.is_statewise, f"set must be a set of rows: got {inner!r}")
        _checks.must(
            not inner.invents, f"support must be 'model', because the noise has no other values: got {inner!r}"
        )

    @property
    def is_statewise(self) -> bool:
        return True

    def state_kernel_for(self, model: Any) -> StateKernel:
        noise = model.noise
        _checks.must(
            noise is not None, f"{self!r} needs a model made by MDP.from_noise: this one lists successors, not noise"
        )
        rows, _ = self.set.kernel_for_row(noise.probabilities)
        kernel: StateKernel
        try:
            kernel = _core.shared_noise(rows)
        except TypeError:  # rows that are solved in Python
            _checks.fail(f"set must be one of the package's, with its divergence, but for MeanRisk: got {self.set!r}")
        return kernel

    @property
    def label(self) -> str:
        return f"shared noise {self.set.label}"

    def __str__(self) -> str:
        return f"one distribution of the noise for all actions of a state: {self.set}"
