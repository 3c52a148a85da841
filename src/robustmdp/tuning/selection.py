"""Levels and baselines over the same worlds: one half of them selects the level, the other half tests it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Nominal
from robustmdp.models import MDP
from robustmdp.operators.policy import differ
from robustmdp.planning.continuation import solve_along
from robustmdp.planning.solving import solve_or_raise
from robustmdp.result import Solution
from robustmdp.table import Table
from robustmdp.tuning.curve import Progress, SetFamily
from robustmdp.tuning.gains import FEWEST, paired_gains
from robustmdp.tuning.trials import stress, worst_tenth
from robustmdp.tuning.units import Units
from robustmdp.tuning.worlds import Models, Plausible

NOMINAL, ROBUST, HORIZON, MEAN = "nominal", "robust", "shorter horizon", "mean model"
CONFIDENCE = 0.95  # of the intervals
_ENOUGH = 0.95  # of the largest benefit: beyond, more robustness hardly helps
_TOL = 1e-6
_HORIZON_SHARES = (0.7, 0.5, 0.35, 0.2, 0.1)


@dataclass(frozen=True, eq=False)
class Trial:
    """Values of policies, (n_policies, n_worlds) each, in the worlds that select and in those that test.

    Attributes
    ----------
    levels, solutions : what was tried, and what is optimal there; the first policies are theirs
    discounts : of the shorter horizons, whose policies come next; the last policy is that of the mean model
    loss : which average loss is bearable for each unit that the worst tenth gains: its weight in the benefit
    slack : by how much values must differ not to be the same
    """

    levels: SetFamily
    solutions: Sequence[Solution]
    discounts: Sequence[float]
    selecting: FloatArray
    testing: FloatArray
    loss: float
    slack: float

    @property
    def chosen(self) -> int:
        """The number of the level that is selected; 0, the nominal one, where none gains."""
        return self._least_robust(self.selecting[: len(self.solutions)])

    @property
    def horizon(self) -> int | None:
        """The number of the shorter horizon that is selected, in the order of the policies; None without any."""
        first, count = len(self.solutions), len(self.discounts)
        if count == 0:
            return None
        place = self._least_robust(self.selecting[[0, *range(first, first + count)]]) - 1
        tails = [worst_tenth(row) for row in self.selecting[first : first + count]]
        return first + (place if place >= 0 else int(np.argmax(tails)))

    def _least_robust(self, values: FloatArray) -> int:
        """The first row with nearly the largest benefit on row 0, mean + loss * worst tenth; 0 where none gains."""
        means, tails = values.mean(axis=1), np.array([worst_tenth(row) for row in values])
        benefit = means - means[0] + self.loss * (tails - tails[0])
        benefit[tails - tails[0] <= self.slack] = -np.inf
        return int(np.argmax(benefit >= _ENOUGH * benefit.max())) if benefit.max() > self.slack else 0

    @property
    def is_one_policy(self) -> bool:
        """Do all levels lead to the same decisions?"""
        return all(not differ(each.policy, self.solutions[0].policy).any() for each in self.solutions)

    def candidates(self) -> Table:
        """A row per level: mean and worst tenth in either half."""
        rows = len(self.solutions)
        halves = {"": self.selecting[:rows], "test_": self.testing[:rows]}
        figures = {
            f"{prefix}{name}": np.array([each(row) for row in values])
            for prefix, values in halves.items()
            for name, each in (("mean", np.mean), ("worst_tenth", worst_tenth))
        }
        return Table.of(
            **{self.levels.level_name: self.levels.levels}, **figures, chosen=np.arange(rows) == self.chosen
        ).with_notes(
            unit=self.levels.level_name,
            word=self.levels.word,
            loss=self.loss,
            selection_worlds=self.selecting.shape[1],
            test_worlds=self.testing.shape[1],
        )

    def compared(self) -> dict[str, tuple[str, int]]:
        """The policies to compare: names to settings in words, and which policies they are."""
        found = {NOMINAL: ("", 0)}
        if self.chosen > 0:
            found[ROBUST] = (f"{self.levels.word} {self.levels.levels[self.chosen]:.3g}", self.chosen)
        if self.horizon is not None:
            found[HORIZON] = (f"discount {self.discounts[self.horizon - len(self.solutions)]:.3g}", self.horizon)
        found[MEAN] = ("", len(self.testing) - 1)
        return found

    def comparison(self, seed: int) -> Table:
        """A row per policy to compare: values in the worlds that test, and gains on the nominal policy."""
        policies = self.compared()
        values = self.testing[[place for _, place in policies.values()]]
        gains = paired_gains(values, values[0], self.loss, CONFIDENCE, seed)
        named = {"gain": gains.mean, "tail_gain": gains.tail, "benefit": gains.benefit}
        return Table.of(
            policy=list(policies),
            setting=[setting for setting, _ in policies.values()],
            worlds=values.shape[1],
            mean=values.mean(axis=1),
            worst_tenth=[worst_tenth(row) for row in values],
            **{
                f"{name}{end}": column
                for name, interval in named.items()
                for end, column in zip(("", "_low", "_high"), interval, strict=True)
            },
        ).with_notes(confidence=CONFIDENCE, loss=self.loss)

    def baseline(self, pays: bool, seed: int) -> str | None:
        """The baseline with the largest benefit among those that do as well as what is advised.

        If the level pays, those than which it has not certainly the larger benefit; if not, those that certainly pay.
        """
        places = self.compared()
        nominal, found = self.testing[0], {}
        for name in sorted({HORIZON, MEAN}.intersection(places)):
            row = self.testing[places[name][1]]
            better, worse = (self.testing[self.chosen], row) if pays else (row, nominal)
            ahead = paired_gains(better[None], worse, self.loss, CONFIDENCE, seed)
            certain = ahead.benefit.low[0] > self.slack and (pays or ahead.tail.low[0] > self.slack)
            if len(row) >= FEWEST and pays != certain:
                found[name] = row.mean() + self.loss * worst_tenth(row)
        return max(found, key=found.__getitem__, default=None)

    def verdict(self, comparison: Table) -> tuple[str, int | None]:
        """Does the level that was selected pay, and if that is open, about how many worlds would tell?

        It pays if both the gain of the worst tenth and the benefit are certainly above 0.
        """
        worlds = int(comparison["worlds"][0])
        if worlds < FEWEST:
            return "too few worlds", 2 * FEWEST
        if self.chosen == 0:
            return "does not pay", None
        robust = comparison.where(policy=ROBUST)
        row = {name: float(robust[name][0]) for name in ("tail_gain", "tail_gain_low", "benefit", "benefit_low")}
        if min(row["tail_gain"], row["benefit"]) <= self.slack:
            return "does not pay", None
        if min(row["tail_gain_low"], row["benefit_low"]) > self.slack:
            return "pays", None
        # The width of an interval falls with the square root of the number of worlds.
        widths = [(row[name] - row[f"{name}_low"]) / row[name] for name in ("tail_gain", "benefit")]
        return "undecided", _round_up(2 * worlds * max(widths) ** 2)


def _round_up(number: float) -> int:
    """To two digits.

    >>> _round_up(1234.0)
    1300
    """
    digit = 10.0 ** max(0, math.floor(math.log10(number)) - 1)
    return int(math.ceil(number / digit) * digit)


def run_trial(
    mdp: MDP,
    levels: SetFamily,
    worlds: Models | Plausible,
    *,
    initial: npt.ArrayLike | None,
    loss: float,
    threads: int | None,
    progress: Progress | None,
) -> Trial:
    """Solve for every level and baseline, and evaluate each policy in every world; every other world selects."""
    _checks.must(worlds.size >= 2, "there must be two worlds or more, one to select by and one to test: got one")
    family = [(math.log(number) if number > 0 else -1e3, levels.set_at(number)) for number in levels.levels.tolist()]
    units = Units.of(mdp)
    tol = units.tolerance(_TOL)
    along = solve_along(mdp, family, tol=tol, threads=threads)
    # What is tried must be what is returned: where actions tie, another solve may choose others.
    solutions = [stage.solution(mdp, tol=tol, threads=threads) for stage in along]
    discounts = shorter_discounts(mdp.discount)
    simpler = [mdp.with_discount(each) for each in discounts]
    simpler.append(mean_model(mdp, (world.mdp for world in islice(worlds.worlds(mdp, None), 0, None, 2))))
    baselines = [solve_or_raise(each, Nominal(), tol=tol, threads=threads) for each in simpler]
    policies = [each.policy for each in (*solutions, *baselines)]
    values = _values(mdp, policies, worlds, initial, threads, progress)
    largest = float(np.abs(values - units.value(0.0, mdp.discount)).max())
    slack = 4.0 * _TOL * max(units.unit, largest)
    return Trial(levels, solutions, discounts, values[:, ::2], values[:, 1::2], loss, slack)


def _values(
    mdp: MDP,
    policies: Sequence[npt.NDArray[Any]],
    worlds: Models | Plausible,
    initial: npt.ArrayLike | None,
    threads: int | None,
    progress: Progress | None,
) -> FloatArray:
    """(n_policies, n_worlds), those that are the same evaluated once."""
    keys = [(policy.dtype.char, policy.tobytes()) for policy in policies]
    different = {f"{keys.index(key)}": policies[keys.index(key)] for key in dict.fromkeys(keys)}
    table = stress(mdp, different, worlds, initial=initial, threads=threads, progress=progress).outcomes
    return np.stack([table.where(policy=f"{keys.index(key)}")["value"] for key in keys])


def shorter_discounts(discount: float) -> list[float]:
    """Discounts whose horizons 1/(1 - discount) are shares of the model's, of at least one step.

    >>> [round(each, 3) for each in shorter_discounts(0.9)]
    [0.857, 0.8, 0.714, 0.5, 0.0]
    """
    found = {max(0.0, 1.0 - (1.0 - discount) / share) for share in _HORIZON_SHARES}
    return sorted((each for each in found if each < discount), reverse=True)


def mean_model(mdp: MDP, worlds: Iterable[MDP]) -> MDP:
    """The mean of probabilities and rewards over worlds, for the pairs of a model.

    >>> from robustmdp import problems
    >>> others = [problems.two_state(stay, 0.9) for stay in (0.4, 0.8)]
    >>> mean_model(problems.two_state(0.5, 0.9), others).probabilities.round(6).tolist()
    [0.6, 0.4, 1.0]
    """
    chances, earned = reduce(
        lambda sums, more: (sums[0] + more[0], sums[1] + more[1]), (_rows_of(mdp, world) for world in worlds)
    )
    mass, total = np.asarray(chances.sum(axis=1)), chances.tocoo()
    pair, successor = total.coords
    return MDP.from_rows(
        mdp.states[pair],
        mdp.actions[pair],
        successor,
        total.data / mass[pair],
        np.asarray(earned[pair, successor]) / total.data,
        mdp.discount,
        n_states=mdp.n_states,
    )


def _rows_of(mdp: MDP, world: MDP) -> tuple[Any, Any]:
    """Sparse (n_pairs, S + 1): a world's probabilities, and its rewards times those, at the pairs of a model."""
    from scipy.sparse import csr_array

    width = max(mdp.n_actions, world.n_actions)
    own, others = (each.states * width + each.actions for each in (mdp, world))
    shared = np.flatnonzero(np.isin(others, own))
    lift = csr_array(
        (np.ones(len(shared)), (np.searchsorted(own, others[shared]), shared)), shape=(mdp.n_pairs, world.n_pairs)
    )
    rewards = world.rewards if world.rewards_on_successors else np.repeat(world.rewards, np.diff(world.indptr))
    chances, earned = (
        lift @ csr_array((data, world.indices, world.indptr), shape=(world.n_pairs, mdp.n_states + 1))
        for data in (world.probabilities, world.probabilities * rewards)
    )
    return chances, earned
