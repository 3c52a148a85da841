"""The operator of a model whose rows are in shards; planning uses it like any other."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from robustmdp.ambiguity import Ambiguity, Nominal
from robustmdp.cluster.machine import Machine
from robustmdp.cluster.shard import NOMINAL, ROBUST
from robustmdp.cluster.values import Handle, Values
from robustmdp.models.part import Whole
from robustmdp.operators.bellman import FORGETS, Bracket
from robustmdp.planning.linear import MOST_SWEEPS, TRIAL_SWEEPS, bicgstab, lasts

FloatArray = npt.NDArray[np.float64]

_MOST_KRYLOV = 400


class Policy(Handle):
    """A policy that the shards chose."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, "policy")


class ShardedChain(Handle):
    """v = cost + discount * P v, as `Chain` is; its rows are with the shards."""

    def __init__(self, machine: Machine, discount: float) -> None:
        super().__init__(machine, "chain")
        self.discount = discount

    @property
    def cost(self) -> Values:
        """What a step costs, (S,)."""
        out = Values(self.machine)
        self.machine.do("cost", self.number, out.number)
        return out

    def product(self, x: Values) -> Values:
        """(I - discount P) x"""
        self.machine.do("share", x.number)
        self.machine.do("gather", x.number)
        out = Values(self.machine)
        self.machine.do("product", self.number, out.number)
        return out

    def dot(self, x: Values, y: Values) -> float:
        """Their sum of products: fixed blocks of states, in order, so that it has the same bits for any shards."""
        return self.machine.ask_dot(x.number, y.number)


class ShardedChains:
    """Solves chains: span-corrected sweeps where mixing is fast, otherwise BiCGSTAB."""

    def __init__(self, can_end: bool, *, by_graph: bool = False) -> None:
        del by_graph  # there is no order in which all shards could sweep
        self._can_end = can_end
        self._mixes_fast = True

    def solve(self, chain: ShardedChain, start: Values, accuracy: float) -> Values:
        """V with an error of at most `accuracy`, in the sup norm, or the best that was reached."""
        target = 2.0 * accuracy * (1.0 - chain.discount) / max(chain.discount, 1e-300)
        v, reached = self._sweep(chain, start, target) if self._mixes_fast else (start, False)
        if reached:
            return v
        self._mixes_fast = False  # the next chain will be much like this one
        return bicgstab(chain, v, target, self._can_end, lambda x: x, _MOST_KRYLOV)[0]

    def _sweep(self, chain: ShardedChain, v: Values, target: float) -> tuple[Values, bool]:
        """V <- cost + discount P v, if that will do."""
        cost, first = chain.cost, 0.0
        for done in range(1, 2 * MOST_SWEEPS):
            change = cost - chain.product(v)
            low, high = change.min(), change.max()
            if self._can_end:
                low, high = min(low, 0.0), max(high, 0.0)
            v, span = v + change, high - low
            if span <= target:
                shift = 0.0 if self._can_end else 0.5 * (low + high) * chain.discount / (1.0 - chain.discount)
                return v + shift, True
            first = first or span
            if done == TRIAL_SWEEPS and not lasts(done, first, span, target):
                break
        return v, False


class WithShards:
    """What is too large to come to the driver."""

    def __init__(self, what: str) -> None:
        self._what = what

    def _refuse(self, *arguments: Any, **settings: Any) -> NoReturn:
        del arguments, settings
        raise AttributeError(f"{self._what} stays with the shards: solution.write(path) writes it")

    __getattr__ = __getitem__ = __array__ = __len__ = __iter__ = _refuse

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WithShards) and self._what == other._what

    def __hash__(self) -> int:
        return hash(self._what)

    def __repr__(self) -> str:
        return f"<{self._what}, with the shards>"


class ShardedBellman:
    """`RobustBellman` for rows that are in shards: values go in and come out as `Values`.

    Parameters
    ----------
    machine : the shards
    mdp : what is known of the whole model
    ambiguity : a set
    adversary : what answers when the solution is asked for nature's choice
    """

    chain_solver = ShardedChains

    def __init__(self, machine: Machine, mdp: Whole, ambiguity: Ambiguity, adversary: Any = None) -> None:
        self.machine, self.mdp, self.ambiguity = machine, mdp, ambiguity
        self._adversary = adversary
        self._operator = NOMINAL if ambiguity.is_nominal else ROBUST
        self.rows = 0
        self.sweeps = 0

    @property
    def can_end(self) -> bool:
        """Is there anything with a fixed value?"""
        return self.mdp.can_end

    def nominal(self) -> ShardedBellman:
        """The same problem when the model is right."""
        return ShardedBellman(self.machine, self.mdp, Nominal())

    def place(self, v: FloatArray) -> Values:
        """Values where the shards are."""
        out = Values(self.machine)
        self.machine.do("put", out.number, v)
        return out

    def place_policy(self, policy: npt.NDArray[Any]) -> Policy:
        """A policy, as places of actions (S,) or probabilities (n_pairs,)."""
        out = Policy(self.machine)
        self.machine.do("put_policy", out.number, policy)
        return out

    def collect(self, v: Values) -> npt.NDArray[Any]:
        """Values as an array, (S,)."""
        return self.machine.collect(v.number)

    def constant(self, level: float) -> Values:
        """The same value everywhere."""
        out = Values(self.machine)
        self.machine.do("fill", out.number, float(level))
        return out

    def apply_to_constant(self, level: float) -> Values:
        """T at a constant."""
        out = Values(self.machine)
        self.machine.do("apply_to_constant", self._operator, out.number, float(level))
        return out

    def apply(self, v: Values) -> Values:
        """T v."""
        self._send(v, counts=True)
        out = Values(self.machine)
        self.machine.do("apply", self._operator, out.number)
        self.rows += self.mdp.n_pairs
        return out

    def apply_policy(self, policy: Policy, v: Values) -> Values:
        """T^pi v."""
        self._send(v, counts=True)
        out = Values(self.machine)
        self.machine.do("apply_policy", self._operator, policy.number, out.number)
        self.rows += self.mdp.n_states
        return out

    def chosen(self) -> Policy:
        """The policy of the last sweep."""
        out = Policy(self.machine)
        self.machine.do("chosen", self._operator, out.number)
        return out

    def chain(self, policy: Policy, v: Values) -> ShardedChain:
        """The chain of a policy when nature answers to v."""
        self._send(v)
        out = ShardedChain(self.machine, self.mdp.discount)
        self.machine.do("chain", self._operator, policy.number, out.number)
        self.rows += self.mdp.n_states
        return out

    def bracket(self, v: Values, policy: Policy | None = None) -> Bracket:
        """Bounds of T v, or of T^pi v; those of Q stay where they are."""
        low, high = self.mdp.reward_range
        scale = abs(v).max() * self.mdp.discount + max(-low, high)
        self._send(v)
        lower, upper, chosen = Values(self.machine), Values(self.machine), Values(self.machine)
        of = None if policy is None else policy.number
        self.machine.do("bracket", self._operator, of, scale, lower.number, upper.number, chosen.number)
        self.rows += self.mdp.n_pairs
        q: Any = WithShards("q")
        return Bracket(lower, upper, q, q, self.collect(chosen))  # type: ignore[arg-type]  # handles are like arrays

    def q_table(self, bracket: Bracket, shift: float) -> Any:
        """Q is too large for a driver."""
        del shift
        return bracket.q_lower

    def gauss_seidel(self, v: Values, sweeps: int) -> Values:
        """Plain sweeps: those in place would depend on where the model is cut."""
        for _ in range(sweeps):
            v = self.apply(v)
        return v

    def against(self, policy: Policy | None) -> Any:
        """Who answers a policy."""
        del policy
        return self._adversary

    def _send(self, v: Values, *, counts: bool = False) -> None:
        """Bring values to those who read them."""
        if counts:
            if self._operator == ROBUST and self.sweeps % FORGETS == 0:
                self.machine.may_save(self.sweeps)
            self.sweeps += 1
        self.machine.do("share", v.number)
        self.machine.do("gather", v.number)
