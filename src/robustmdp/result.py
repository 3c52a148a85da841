"""One result for every solver: what it found, how sure it is, and how it ended."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display, _views
from robustmdp._arrays import FloatArray
from robustmdp.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


_SENTENCES = {
    "converged": "The error bound {bound:.3g} is within the tolerance {target:.3g}.",
    "step_limit": "The step limit came before the tolerance: the error bound is {bound:.3g}, asked was {target:.3g}; "
    "allow more steps or a larger tol.",
    "stalled": "Rounding hides further progress: the error bound is {bound:.3g}, asked was {target:.3g}; "
    "choose a tol above it, or scale the rewards.",
    "diverged": "An iterate was no longer finite at step {steps}; check the rewards' size, or use another solver.",
    "interrupted": "Stopped from outside after {steps} steps with an error bound of {bound:.3g}; "
    "the values and bounds are those of the last step.",
}


@dataclass(frozen=True)
class Status:
    """How a run ended: a code that programs can test and a sentence for people, with the remedy.

    Codes: converged, step_limit, stalled, diverged, interrupted.

    >>> Status.of("converged", bound=1e-9, target=1e-8, steps=3).code
    'converged'
    """

    code: str
    sentence: str

    @classmethod
    def of(cls, code: str, *, bound: float, target: float, steps: int) -> Status:
        """The status of a code, with its numbers filled in."""
        return cls(code, _SENTENCES[code].format(bound=bound, target=target, steps=steps))

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence}"


class Adversary(Protocol):
    """Nature's answer to a value function: (model, penalty, eta), and the noise of one pair where there is some."""

    @property
    def mdp(self) -> Any: ...

    def worst_case(self, v: FloatArray) -> Any: ...

    def worst_noise(self, v: FloatArray, pair: int) -> FloatArray: ...


def error_bound(value: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    """max(upper - value, value - lower) over all states; where both bounds are the same infinity, there is no error."""
    known = lower == upper
    if known.any():
        value, lower, upper = (np.where(known, 0.0, bound) for bound in (value, lower, upper))
    return float(max(np.max(upper - value), np.max(value - lower)))


_ARRAYS = ("value", "q", "policy", "lower", "upper", "base", "gain", "gain_lower", "gain_upper")


def _is_same(a: npt.NDArray[Any] | None, b: npt.NDArray[Any] | None) -> bool:
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return a == b
    return np.array_equal(a, b, equal_nan=True)


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A policy, its value and what is certain about it.

    Attributes
    ----------
    value : (S,) the middle of the bounds; a learner's is max Q, moved into the range of possible returns
        (with FiniteHorizon one row per step: value, lower, upper (T+1, S), policy (T, S), q, penalty, eta (T, S, A);
        with AverageReward the bias, and lower and upper are NaN)
    q : (S, A), -inf where an action is unavailable
    policy : (S,) actions, or as it was given to `evaluate`
    lower, upper : (S,) certified: lower <= v of the policy <= best v <= upper
    status : how the run ended
    steps : int
    trace : dict of equally long arrays, one entry per step: "residual", "error_bound", "rows" (row problems so far)
        (those of learners: "steps", "samples" and "error" or "residual")
    base : (S,) the iterate at which nature answered last
    samples : transitions that were drawn; 0 for a planner
    visits : (S, A) how often each pair was drawn; None for a planner
    dual : the eta that was learned, made when asked for; None for a planner
    confidence : the probability with which the bounds of a learner hold; None where they are certain, or infinite
    gain, gain_lower, gain_upper : (S,) with AverageReward the reward per step in the long run from each state,
        certified: gain_lower <= gain of the policy <= best gain <= gain_upper; None otherwise
    quantity : what `value` is, for pictures and prints: "value", in units of reward, or "probability"
    """

    value: FloatArray
    q: FloatArray
    policy: npt.NDArray[Any]
    lower: FloatArray
    upper: FloatArray
    status: Status
    steps: int
    trace: dict[str, npt.NDArray[Any]]
    base: FloatArray
    adversary: Adversary = field(repr=False)
    samples: int = 0
    visits: npt.NDArray[Any] | None = None
    dual: Callable[[], FloatArray] | None = None
    confidence: float | None = None
    gain: FloatArray | None = None
    gain_lower: FloatArray | None = None
    gain_upper: FloatArray | None = None
    quantity: str = "value"

    @property
    def error_bound(self) -> float:
        """max(upper - value, value - lower): how far `value` can be from the truth anywhere; inf where unknown.

        With AverageReward the same of the gain.
        """
        return error_bound(*self.gain_or_value)

    @property
    def gain_or_value(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What has bounds, and those: the gain with AverageReward, the value otherwise."""
        if self.gain is None or self.gain_lower is None or self.gain_upper is None:
            return self.value, self.lower, self.upper
        return self.gain, self.gain_lower, self.gain_upper

    @property
    def certainty(self) -> str:
        """The certified error in words."""
        bound = self.error_bound
        if not math.isfinite(bound):
            return "not certified"
        sure = "" if self.confidence is None else f" with {100 * self.confidence:g} % confidence"
        return f"certified to {bound:.2g}{sure}"

    @property
    def converged(self) -> bool:
        """Was the tolerance reached?"""
        return self.status.code == "converged"

    @cached_property
    def _response(self) -> Any:
        return self.adversary.worst_case(self.base)

    @property
    def worst_case(self) -> Any:
        """The world that nature makes of it, an MDP with the rewards of the original one; one per step if finite."""
        return self._response.model

    def worst_noise(self, state: int | str, action: int | str, *, step: int | None = None) -> Table:
        """Nature's distribution of the noise at one pair, for a model made by `MDP.from_noise`.

        Parameters
        ----------
        state, action : numbers or names
        step : with FiniteHorizon only, which of its steps

        Returns
        -------
        Table with columns noise, nominal and worst_case: a value of the noise and its two probabilities.

        >>> import robustmdp as rm
        >>> store = rm.MDP.from_noise(lambda s, a, noise: (0, 1.0 * noise), 1, 1, [0.5, 0.5], 0.9)
        >>> rm.solve(store, rm.Constrained(rm.TotalVariation(), 0.25)).worst_noise(0, 0)
        Table, 2 rows
          noise  nominal  worst_case
              0      0.5        0.75
              1      0.5        0.25
        """
        world = self.adversary.mdp
        if getattr(world, "noise", None) is None:
            _checks.fail("worst_noise needs a model made by MDP.from_noise: this one lists successors, not noise")
        is_stepwise = self.value.ndim == 2
        _checks.must(
            (step is not None) == is_stepwise,
            f"step must be given with FiniteHorizon and left out otherwise: got {step}",
        )
        pair = world.pair(world.state_number(state), world.action_number(action))
        value, noise = self.base, world.noise
        if step is not None:
            last = len(self.base) - 2
            _checks.must(0 <= step <= last, f"step must lie in 0..{last}: got {step}")
            value = np.asarray(self.base[step + 1])
        worst = self.adversary.worst_noise(value, pair)
        return Table.of(noise=noise.column, nominal=noise.probabilities, worst_case=worst)

    @property
    def penalty(self) -> FloatArray:
        """(S, A): discount * weight * D, what nature paid; zero where it pays nothing.

        Added to the rewards of `worst_case`, the nominal problem has `value` as its solution, optimal at `policy`.
        """
        penalty: FloatArray = self._response.penalty
        return penalty

    @property
    def eta(self) -> FloatArray:
        """(S, A): the paper's dual variable, NaN where an action is unavailable.

        Where rewards depend on the successor, that of the outcomes r/discount + v.
        """
        eta: FloatArray = self._response.eta if self.dual is None else self.dual()
        return eta

    def to_frame(self) -> pd.DataFrame:
        """One row per state, with names; needs pandas."""
        frame = _checks.package("pandas", "for to_frame()").DataFrame(self.columns())
        return frame.set_index("state" if self.value.ndim == 1 else ["step", "state"])

    def columns(self) -> dict[str, list[Any]]:
        """The table of states: state, action, value, lower, upper; with FiniteHorizon for each step, after "step".

        With AverageReward: state, action, gain, gain_lower, gain_upper, bias.
        Where the policy is random, its likeliest action, and after it "probability".
        """
        if self.value.ndim == 1:
            only = self._stage_columns()
            if self.gain is None:
                return only
            names = {"value": "gain", "lower": "gain_lower", "upper": "gain_upper"}
            return {**{names.get(name, name): column for name, column in only.items()}, "bias": self.value.tolist()}
        table: dict[str, list[Any]] = {"step": []}
        for step in range(len(self.value) - 1):
            stage = self._stage_columns(step)
            table["step"] += [step] * len(stage["state"])
            for name, column in stage.items():
                table.setdefault(name, []).extend(column)
        return table

    def policy_at(self, step: int) -> npt.NDArray[Any]:
        """With FiniteHorizon, (S,) or (S, A) of a step; a policy that `evaluate` was given may serve all steps."""
        n_steps, n_states = len(self.value) - 1, self.value.shape[1]
        per_step = self.policy.ndim == 3 or (
            self.policy.shape == (n_steps, n_states) and np.issubdtype(self.policy.dtype, np.integer)
        )
        return self.policy[step] if per_step else self.policy

    def _stage_columns(self, step: int | None = None) -> dict[str, list[Any]]:
        values, policy = self.gain_or_value, self.policy
        if step is not None:
            values, policy = tuple(bound[step] for bound in values), self.policy_at(step)
        value, lower, upper = (array.tolist() for array in values)
        world = self.adversary.mdp
        actions = policy if policy.ndim == 1 else policy.argmax(axis=1)
        return {
            "state": [world.state_name(s) if world.state_names else s for s in range(len(value))],
            "action": [world.action_name(int(a)) if world.action_names else int(a) for a in actions],
            **({} if policy.ndim == 1 else {"probability": policy.max(axis=1).tolist()}),
            "value": value,
            "lower": lower,
            "upper": upper,
        }

    def summary(self) -> Table:
        """The table of states, as text and as HTML, and what nature does there; long ones are shown shortened.

        After the columns of `columns`, where the model is known: "likelier", the successor whose probability under the
        policy nature raises most, and "rise", by how much.

        >>> import robustmdp as rm
        >>> doubt = rm.Constrained(rm.TotalVariation(), 0.1)
        >>> table = rm.solve(rm.problems.two_state(stay=0.5, discount=0.9), doubt).summary()
        >>> table["value"].round(4).tolist(), table["likelier"].tolist(), table["rise"].round(4).tolist()
        ([1.5625, 0.0], ['s1', '-'], [0.1, 0.0])
        """
        return _views.summarise(self)

    def plot(self, ax: Any = None) -> Figure:
        """Value and bounds state by state, below it the policy and, of a learner, its error by samples.

        With FiniteHorizon the values of the first step, and the actions of all steps; with AverageReward the gain.
        Needs matplotlib.

        Parameters
        ----------
        ax : a matplotlib axes for the values alone, or a list of axes for values, policy and error; None for a new
            figure
        """
        return _views.draw(self, ax)

    def _fields(self) -> _display.Fields:
        table = self.columns() if self.value.ndim == 1 else self._stage_columns(0)
        word, values, each = (self.quantity, self.value, "value") if self.gain is None else ("gain", self.gain, "bias")
        first = (table[name][:6] for name in ("state", "action", each))
        shares = table.get("probability", [1.0] * len(table["state"]))[:6]
        shown = [
            f"{state}: {_display.choice_text(str(action), share)} ({value:.6g})"
            for state, action, value, share in zip(*first, shares, strict=True)
        ]
        n_states = self.value.shape[-1]
        more = f", ... ({n_states:,} states)" if n_states > len(shown) else ""
        return [
            ("status", str(self.status)),
            ("steps", f"{self.steps}"),
            (word, f"{values.min():.6g} to {values.max():.6g}, {self.certainty}"),
            ("policy" if self.value.ndim == 1 else "first step", ", ".join(shown) + more),
        ]

    def __repr__(self) -> str:
        return _display.as_text("Solution", self._fields())

    def _repr_html_(self) -> str:
        return _display.as_html("Solution", self._fields())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Solution):
            return NotImplemented
        return (
            self.status == other.status
            and self.steps == other.steps
            and all(_is_same(getattr(self, name), getattr(other, name)) for name in _ARRAYS)
        )

    def __hash__(self) -> int:
        return hash((self.status, self.steps, self.value.tobytes()))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_response"}
