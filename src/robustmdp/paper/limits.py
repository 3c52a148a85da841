"""Small and large penalties: does the value forget P*, and what is the Bellman gap of section 6.3?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.paper import curves
from robustmdp.paper.claims import Claim, Finding
from robustmdp.paper.figures import Curve, Figure, Key, Panel
from robustmdp.paper.params import OnChain, Replications
from robustmdp.paper.work import Experiment, Item, build_chain, build_penalty, product, rows, solve_exactly, timed
from robustmdp.table import Table

if TYPE_CHECKING:
    from robustmdp.models import MDP

TITLE = "Small and large penalties"
_VALUE, _GAP = "value", "gap"
_NEARLY_ALL = 0.95  # of the seeds
_NEAR = 0.05  # relative, of a gap from its formula
_FORGOTTEN = 0.01  # of the largest value, by which models may still differ


@dataclass(frozen=True, kw_only=True)
class Params(OnChain, Replications):
    """Values of chains with other probabilities or other successors; gaps |TV1 - TV2| of random V; chi-square.

    Rows: part, stay, weight, seed, and the deviations or the gaps and their formulas.
    """

    weights: Annotated[tuple[float, ...], "Penalties lambda"] = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 1e4)
    others: Annotated[tuple[float, ...], "Other probabilities p to compare values with"] = (0.2, 0.5, 0.95)
    leak: Annotated[float, "Probability of a jump to the last state, which changes the successors"] = 0.001
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 20}


def tasks(params: Params) -> list[Item]:
    """One per part, world and weight."""
    shared = {"restart": 0.0, "discount": params.discount, "divergence": "chi2", "leak": params.leak}
    lists = {"others": list(params.others), "seeds": list(range(params.seeds))}
    each = product(part=[_VALUE, _GAP], stay=params.stay, weight=params.weights)
    return [{**item, **shared, **lists} for item in each]


@timed
def measure(item: Item) -> Table:
    """Deviations of values, or gaps beside their formulas; what a part does not measure is NaN."""
    found = _deviations(item) if item["part"] == _VALUE else _gaps(item)
    names = ("same_support", "other_support", "largest", "gap", "least", "least_of_support", "mean", "q_gap")
    count = len(next(iter(found.values())))
    columns = {name: found.get(name, np.full(count, np.nan)) for name in names}
    return rows(item, seed=np.arange(count), samples=0, **columns)


def _deviations(item: Item) -> dict[str, FloatArray]:
    """Largest difference of V* from that of chains with the same successors, and with one more."""
    ambiguity, mdp = build_penalty(item), build_chain(item)
    value = solve_exactly(mdp, ambiguity).value
    same = [solve_exactly(build_chain({**item, "stay": stay}), ambiguity).value for stay in item["others"]]
    leaking = solve_exactly(_leaking(mdp, item["leak"]), ambiguity).value
    return {
        "same_support": np.array([max(float(np.abs(other - value).max()) for other in same)]),
        "other_support": np.array([float(np.abs(leaking - value).max())]),
        "largest": np.array([float(value.max())]),
    }


def _leaking(mdp: MDP, leak: float) -> MDP:
    """The same chain, where every pair may also lead to the last state."""
    from robustmdp.models import MDP

    pairs = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.indptr))
    every = np.arange(mdp.n_pairs)
    return MDP.from_rows(
        np.concatenate([mdp.states[pairs], mdp.states]),
        np.concatenate([mdp.actions[pairs], mdp.actions]),
        np.concatenate([mdp.indices, np.full(mdp.n_pairs, mdp.n_states - 1)]),
        np.concatenate([(1.0 - leak) * mdp.probabilities, np.full(mdp.n_pairs, leak)]),
        np.concatenate([mdp.rewards[pairs], mdp.rewards[every]]),
        mdp.discount,
        n_states=mdp.n_states,
    )


def _gaps(item: Item) -> dict[str, FloatArray]:
    """|TV1 - TV2| for V1 and V2 uniform in [0, 1/(1-discount)]^S, and what it is said to be."""
    from robustmdp.operators import RobustBellman

    mdp = build_chain(item)
    bellman, starts, discount = RobustBellman(mdp, build_penalty(item), threads=1), mdp.indptr[:-1], mdp.discount
    found = []
    for seed in item["seeds"]:
        one, two = np.random.default_rng(seed).uniform(0.0, 1.0 / (1.0 - discount), (2, mdp.n_states))
        least = [
            np.maximum.reduceat(np.minimum.reduceat(v[mdp.indices], starts), mdp.state_ptr[:-1]) for v in (one, two)
        ]
        means = np.add.reduceat(mdp.probabilities * (one - two)[mdp.indices], starts)
        pairs = [mdp.pairs(bellman.apply_q(np.repeat(v[:, None], mdp.n_actions, axis=1))) for v in (one, two)]
        found.append(
            (
                np.abs(bellman.apply(one) - bellman.apply(two)).max(),
                discount * abs(one.min() - two.min()),
                discount * np.abs(least[0] - least[1]).max(),
                discount * np.abs(means).max(),
                np.abs(pairs[0] - pairs[1]).max(),
            )
        )
    return dict(zip(("gap", "least", "least_of_support", "mean", "q_gap"), np.array(found).T, strict=True))


def check(records: Table) -> list[Claim]:
    """Claims 23, 24 and 25."""
    found = []
    for (stay,), of in records.groups("stay"):
        values, gaps = of.where(part=_VALUE), of.where(part=_GAP)
        small, large = (gaps.where(weight=bound) for bound in (gaps["weight"].min(), gaps["weight"].max()))
        random = f"{len(small)} pairs of random V"
        found += [
            Claim(23, f"exact solutions, λ = {values['weight'].min():g}, chi-square", stay, _forgets(values)),
            Claim(24, f"λ = {small['weight'][0]:g}, {random}, chi-square", stay, _small(small)),
            Claim(25, f"λ = {large['weight'][0]:g}, {random}, chi-square", stay, _large(small, large)),
        ]
    return found


def _forgets(values: Table) -> Finding:
    least = values.where(weight=values["weight"].min())
    same, other, scale = (float(least[name][0]) for name in ("same_support", "other_support", "largest"))
    numbers = (
        f"largest difference of V* from that of other P*: {same:.3g} with the same successors, {other:.3g} where every "
        f"pair may also lead to the last state with probability {least['leak'][0]:g}"
    )
    test = f"differences of exact values below {_FORGOTTEN:.0%} of the largest value, {scale:.3g}"
    if max(same, other) <= _FORGOTTEN * scale:
        return Finding("holds", numbers, test)
    if same <= _FORGOTTEN * scale:
        why = "The probabilities are forgotten, their support is not: V* tends to that of the worst successor."
        return Finding("does not hold", numbers, test, why)
    return Finding("does not hold", numbers, test, f"Probabilities still matter: V* differs by {same:.3g}.")


def _ratios(gap: FloatArray, formula: FloatArray) -> tuple[str, float]:
    """Quantiles of gap/formula in words, and the share of seeds in which they agree."""
    ratio = gap / formula
    low, middle, high = np.quantile(ratio, [0.05, 0.5, 0.95])
    return f"{middle:.3g} [{low:.3g}, {high:.3g}]", float(np.mean(np.abs(ratio - 1.0) <= _NEAR))


def _small(small: Table) -> Finding:
    words, share = _ratios(small["gap"], small["least"])
    support, share_of_support = _ratios(small["gap"], small["least_of_support"])
    numbers = (
        f"median and 90 % range of the gap over its formula: {words}; over the same with the minimum over "
        f"the successors, for the better action of the state where it is largest: {support}"
    )
    test = f"within {_NEAR:.0%} of the formula in {_NEARLY_ALL:.0%} of the pairs"
    if share >= _NEARLY_ALL:
        return Finding("holds", numbers, test)
    rest = " It does with the minimum over the successors." if share_of_support >= _NEARLY_ALL else ""
    return Finding("does not hold", numbers, test, f"The formula agrees in {share:.0%} of the pairs.{rest}")


def _large(small: Table, large: Table) -> Finding:
    words, share = _ratios(large["gap"], large["mean"])
    by_pair, _ = _ratios(large["q_gap"], large["mean"])
    larger = float(np.mean(large["gap"] > small["gap"]))
    numbers = (
        f"median and 90 % range of the gap over its formula: {words}, of the same for Q, before the maximum over "
        f"actions: {by_pair}; larger than for small λ in {larger:.0%} of the pairs"
    )
    test = f"within {_NEAR:.0%} of the formula in {_NEARLY_ALL:.0%} of the pairs, and larger in more than half of them"
    against = []
    if share < _NEARLY_ALL:
        against.append(f"the formula agrees in {share:.0%} of the pairs")
    if larger <= 0.5:
        against.append(f"the gap is larger than for small λ in only {larger:.0%} of the pairs")
    if against:
        return Finding("does not hold", numbers, test, f"Against it: {'; '.join(against)}.")
    return Finding("holds", numbers, test)


def figure(records: Table) -> Figure:
    """How fast P* is forgotten, and the gap over its two formulas."""
    stay = curves.shown(records)
    values, gaps = (records.where(stay=stay, part=part) for part in (_VALUE, _GAP))
    order = np.argsort(values["weight"])
    lines = tuple(
        Curve(Key("line", name), values["weight"][order], values[column][order], style="line+points")
        for column, name in (("same_support", "other probabilities"), ("other_support", "another successor"))
    )
    formulas = tuple(
        _median_ratio(gaps, column, name)
        for column, name in (("least", "formula for small λ"), ("mean", "formula for large λ"))
    )
    panels = (
        Panel("Values under another P*", "λ", "max |V* − V*other|", lines, "log", "log"),
        Panel("Bellman gap over its formulas", "λ", "median ratio", formulas, "log", "log"),
    )
    caption = (
        "Left: how much the robust value changes with P*, for other probabilities of the same successors and for one "
        "more successor. Right: the gap |TV1 − TV2| of random V1 and V2 over the formulas of section 6.3 for small and "
        "large λ."
    )
    return Figure("limits", f"{TITLE} (p = {stay:g})", caption, _reading(stay, values, gaps), panels)


def _median_ratio(gaps: Table, column: str, name: str) -> Curve:
    weights = np.array(sorted(gaps.values("weight")))
    medians = [float(np.median(of["gap"] / of[column])) for of in (gaps.where(weight=w) for w in weights)]
    return Curve(Key("line", name), weights, np.array(medians), style="line+points")


def _reading(stay: float, values: Table, gaps: Table) -> str:
    least = values["weight"].min()
    of = values.where(weight=least)
    ratio = float(np.median(gaps.where(weight=least)["gap"] / gaps.where(weight=least)["least"]))
    return (
        f"At p = {stay:g} and λ = {least:g}, other probabilities change the value by {of['same_support'][0]:.2g}, "
        f"another successor by {of['other_support'][0]:.2g}; the median gap is {ratio:.2g} times its formula."
    )


EXPERIMENT = Experiment("limits", TITLE, Params, tasks, measure, figure, check)
