"""The operator of a model whose rows are in shards; planning uses it like any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy.typing as npt

from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity, Nominal
from robustmdp.cluster.driver import Driver
from robustmdp.cluster.shard import NOMINAL, ROBUST, Response
from robustmdp.cluster.values import Handle, Values
from robustmdp.models.part import Outline
from robustmdp.operators.bellman import FORGETS, Bracket
from robustmdp.planning.linear import MOST_SWEEPS, TRIAL_SWEEPS, bicgstab, lasts

_MOST_KRYLOV = 400
IN_SHARDS = "{name} of a model in shards is not kept in memory: solution.write(path) writes it to a file"


class Policy(Handle):
    """A policy that the shards keep."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver, "policy")


class ShardedChain(Handle):
    """v = cost + discount * P v, a `Chain` whose rows the shards keep."""

    def __init__(self, driver: Driver, discount: float) -> None:
        super().__init__(driver, "chain")
        self.discount = discount

    @property
    def cost(self) -> Values:
        """What a step costs, (S,)."""
        out = Values(self.driver)
        self.driver.add("cost", self.number, out.number)
        return out

    def product(self, x: Values) -> Values:
        """(I - discount P) x"""
        self.driver.add("share", x.number)
        self.driver.add("gather", x.number)
        out = Values(self.driver)
        self.driver.add("product", self.number, out.number)
        return out

    def dot(self, x: Values, y: Values) -> float:
        """Their sum of products, over fixed blocks of states in order, so that the shards do not change its bits."""
        return self.driver.dot(x.number, y.number)


class ShardedChains:
    """Solves chains: span-corrected sweeps where mixing is fast, otherwise BiCGSTAB."""

    loosest = 0.03  # of the bound: each product with a chain costs an exchange

    def __init__(self, can_end: bool, *, by_graph: bool = False) -> None:
        del by_graph  # the shards sweep at once, in no order
        self._can_end = can_end
        self._mixes_fast = True

    def solve(self, chain: ShardedChain, start: Values, accuracy: float) -> Values:
        """V with an error of at most `accuracy`, in the sup norm, or the best that was reached."""
        target = 2.0 * accuracy * (1.0 - chain.discount) / max(chain.discount, 1e-300)
        v, reached = self._sweep(chain, start, target) if self._mixes_fast else (start, False)
        if reached:
            return v
        self._mixes_fast = False  # the next chain will be much like this one
        krylov: Any = bicgstab  # of any vectors with arithmetic
        solution: Values = krylov(chain, v, target, self._can_end, lambda x: x, _MOST_KRYLOV)[0]
        return solution

    def _sweep(self, chain: ShardedChain, v: Values, target: float) -> tuple[Values, bool]:
        """V <- cost + discount P v, and whether that reaches the target."""
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


@dataclass(frozen=True)
class RemoteTable:
    """A table that is too large for the driver; any use of it says where it is."""

    name: str

    def _refuse(self, *arguments: Any, **settings: Any) -> NoReturn:
        del arguments, settings
        raise AttributeError(IN_SHARDS.format(name=self.name))

    __getattr__ = __getitem__ = __array__ = __len__ = __iter__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteTable, (self.name,)

    def __repr__(self) -> str:
        return f"<{self.name} of a model in shards>"


class ShardedBellman:
    """`RobustBellman` of a model in shards, which takes and returns `Values`.

    Parameters
    ----------
    driver : of the shards
    mdp : the model without its rows
    ambiguity : a set
    adversary : what the solution asks for nature's choice
    """

    chain_solver = ShardedChains

    def __init__(
        self, driver: Driver, mdp: Outline, ambiguity: Ambiguity, adversary: Any = None, operator: int = ROBUST
    ) -> None:
        self.driver, self.mdp, self.ambiguity = driver, mdp, ambiguity
        self._adversary = adversary
        self._operator = operator
        self.rows = 0
        self.sweeps = 0

    @property
    def can_end(self) -> bool:
        """Is there anything with a fixed value?"""
        return bool(self.mdp.can_end)

    def nominal(self) -> ShardedBellman:
        """The same problem when the model is right."""
        return ShardedBellman(self.driver, self.mdp, Nominal(), operator=NOMINAL)

    def place(self, v: FloatArray) -> Values:
        """Values where the shards are."""
        out = Values(self.driver)
        self.driver.add("put", out.number, v)
        return out

    def collect(self, v: Values) -> npt.NDArray[Any]:
        """Values as an array, (S,)."""
        return self.driver.collect(v.number)

    def constant(self, level: float) -> Values:
        """The same value everywhere."""
        out = Values(self.driver)
        self.driver.add("fill", out.number, float(level))
        return out

    def apply_to_constant(self, level: float) -> Values:
        """T at a constant."""
        out = Values(self.driver)
        self.driver.add("apply_to_constant", self._operator, out.number, float(level))
        return out

    def apply(self, v: Values) -> Values:
        """T v."""
        self._exchange(v, counts=True)
        out = Values(self.driver)
        self.driver.add("apply", self._operator, out.number)
        self.rows += self.mdp.n_pairs
        return out

    def apply_policy(self, policy: Policy, v: Values) -> Values:
        """T^pi v."""
        self._exchange(v, counts=True)
        out = Values(self.driver)
        self.driver.add("apply_policy", self._operator, policy.number, out.number)
        self.rows += self.mdp.n_states
        return out

    def chosen(self) -> Policy:
        """The policy of the last sweep."""
        out = Policy(self.driver)
        self.driver.add("chosen", self._operator, out.number)
        return out

    def chain(self, policy: Policy, v: Values) -> ShardedChain:
        """The chain of a policy when nature answers to v."""
        self._exchange(v)
        out = ShardedChain(self.driver, self.mdp.discount)
        self.driver.add("chain", self._operator, policy.number, out.number)
        self.rows += self.mdp.n_states
        return out

    def bracket(self, v: Values, policy: Policy | None = None) -> Bracket:
        """Bounds of T v, or of T^pi v; those of Q stay with the shards."""
        scale = self.scale_at(v)
        self._exchange(v)
        lower, upper, chosen = Values(self.driver), Values(self.driver), Values(self.driver)
        given = None if policy is None else policy.number
        self.driver.add("bracket", self._operator, given, scale, lower.number, upper.number, chosen.number)
        self.rows += self.mdp.n_pairs
        q: Any = RemoteTable("q")
        return Bracket(lower, upper, q, q, self.collect(chosen))  # type: ignore[arg-type]  # Values are like arrays

    def scale_at(self, v: Values) -> float:
        """A bound of |r| + |discount v| in the whole model."""
        low, high = self.mdp.reward_range
        return float(abs(v).max() * self.mdp.discount + max(-low, high))

    def respond(self, v: Values) -> Iterator[Response]:
        """Nature's answer to v, range by range of states."""
        scale = self.scale_at(v)
        self._exchange(v)
        for shard in range(self.driver.exchange.count):
            for low, high in self.driver.ask_shard(shard, "response_ranges"):
                yield self.driver.ask_shard(shard, "respond", scale, low, high)

    def q_table(self, bracket: Bracket, shift: float) -> Any:
        """Q, which stays with the shards."""
        del shift
        return bracket.q_lower

    def gauss_seidel(self, v: Values, sweeps: int) -> Values:
        """Plain sweeps: those in place would depend on where the model is cut."""
        for _ in range(sweeps):
            v = self.apply(v)
        return v

    def against(self, policy: Policy | None) -> Any:
        """What the solution asks for nature's choice."""
        del policy
        return self._adversary

    def _exchange(self, v: Values, *, counts: bool = False) -> None:
        """Have the shards exchange values."""
        if counts:
            if self._operator == ROBUST and self.sweeps % FORGETS == 0:
                self.driver.save_if_due(self.sweeps)
            self.sweeps += 1
        self.driver.add("share", v.number)
        self.driver.add("gather", v.number)
