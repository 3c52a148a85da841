"""Small and large penalties: does the value forget P*, and what is the Bellman gap of section 6.3?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.paper import curves
from robustmdp.paper.claims import Finding, conclude
from robustmdp.paper.figures import Curve, Key, Panel
from robustmdp.paper.params import OnChain, Replications, Weights, changes
from robustmdp.paper.runs import build_chain, build_penalty, solve_exactly
from robustmdp.paper.work import Drawing, Experiment, Item, Judgements, combine, rows, timed
from robustmdp.table import Table

if TYPE_CHECKING:
    from robustmdp.models import MDP

_VALUE, _GAP = "value", "gap"
_NEARLY_ALL = 0.95  # of the seeds
_NEAR = 0.05  # relative, of a gap from its formula
_FORGOTTEN = 0.01  # of the largest value, by which models may still differ


@dataclass(frozen=True, kw_only=True)
class Params(OnChain, Replications):
    """Values of chains with other probabilities or other successors; gaps |TV1 - TV2| of random V; chi-square.

    Rows: part, stay, weight, seed, and the deviations or the gaps and their formulas.
    """

    weights: Weights = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 1e4)
    others: Annotated[tuple[float, ...], "Other probabilities p to compare values with"] = (0.2, 0.5, 0.95)
    leak: Annotated[float, "Probability of a jump to the last state, which changes the successors"] = 0.001
    quick = changes(seeds=20)


def tasks(params: Params) -> list[Item]:
    """One per part, world and weight."""
    return combine(
        part=(_VALUE, _GAP),
        **params.chain,
        weight=params.weights,
        divergence="chi2",
        leak=params.leak,
        others=[list(params.others)],
        seeds=[list(range(params.seeds))],
    )


@timed
def measure(item: Item) -> Table:
    """Deviations of values, or gaps beside their formulas; what a part does not measure is NaN."""
    found = _measure_deviations(item) if item["part"] == _VALUE else _measure_gaps(item)
    names = ("same_support", "other_support", "largest", "gap", "least", "least_of_support", "mean", "q_gap")
    count = len(next(iter(found.values())))
    columns = {name: found.get(name, np.full(count, np.nan)) for name in names}
    return rows(item, seed=np.arange(count), samples=0, **columns)


def _measure_deviations(item: Item) -> dict[str, FloatArray]:
    """Largest difference of V* from that of chains with the same successors, and with one more."""
    ambiguity, mdp = build_penalty(item), build_chain(item)
    others = [*(build_chain({**item, "stay": stay}) for stay in item["others"]), _add_leak(mdp, item["leak"])]
    value = solve_exactly(mdp, ambiguity).value
    *same, leaking = (float(np.abs(solve_exactly(other, ambiguity).value - value).max()) for other in others)
    return {
        "same_support": np.array([max(same)]),
        "other_support": np.array([leaking]),
        "largest": np.array([float(value.max())]),
    }


def _add_leak(mdp: MDP, leak: float) -> MDP:
    """The same chain, where every pair may also lead to the last state."""
    from robustmdp.models import MDP

    every = np.arange(mdp.n_pairs)
    pairs = np.concatenate([np.repeat(every, np.diff(mdp.indptr)), every])
    return MDP.from_rows(
        mdp.states[pairs],
        mdp.actions[pairs],
        np.concatenate([mdp.indices, np.full(mdp.n_pairs, mdp.n_states - 1)]),
        np.concatenate([(1.0 - leak) * mdp.probabilities, np.full(mdp.n_pairs, leak)]),
        mdp.rewards[pairs],
        mdp.discount,
        n_states=mdp.n_states,
    )


def _measure_gaps(item: Item) -> dict[str, FloatArray]:
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


def judge(records: Table) -> Judgements:
    """Claims 23, 24 and 25."""
    values, gaps = records.where(part=_VALUE), records.where(part=_GAP)
    low, high = gaps["weight"].min(), gaps["weight"].max()
    small, large = gaps.where(weight=low), gaps.where(weight=high)
    random = f"{len(small)} pairs of random V"
    return [
        (23, f"exact solutions, λ = {low:g}, chi-square", _is_forgotten(values.where(weight=low))),
        (24, f"λ = {low:g}, {random}, chi-square", _judge_small(small)),
        (25, f"λ = {high:g}, {random}, chi-square", _judge_large(small, large)),
    ]


def _is_forgotten(least: Table) -> Finding:
    same, other, scale = (float(least[name][0]) for name in ("same_support", "other_support", "largest"))
    against = ""
    if same > _FORGOTTEN * scale:
        against = f"Probabilities still matter: V* differs by {same:.3g}."
    elif other > _FORGOTTEN * scale:
        against = "The probabilities are forgotten, their support is not: V* tends to that of the worst successor."
    numbers = (
        f"largest difference of V* from that of other P*: {same:.3g} with the same successors, {other:.3g} where every "
        f"pair may also lead to the last state with probability {least['leak'][0]:g}"
    )
    return conclude(
        numbers, f"differences of exact values below {_FORGOTTEN:.0%} of the largest value, {scale:.3g}", against
    )


def _compare_with_formula(gap: FloatArray, formula: FloatArray) -> tuple[str, float]:
    """Quantiles of gap/formula in words, and the share of seeds in which they agree."""
    ratio = gap / formula
    low, middle, high = np.quantile(ratio, [0.05, 0.5, 0.95])
    return f"{middle:.3g} [{low:.3g}, {high:.3g}]", float(np.mean(np.abs(ratio - 1.0) <= _NEAR))


def _judge_small(small: Table) -> Finding:
    text, share = _compare_with_formula(small["gap"], small["least"])
    support, share_of_support = _compare_with_formula(small["gap"], small["least_of_support"])
    numbers = (
        f"median and 90 % range of the gap over its formula: {text}; over the same with the minimum over "
        f"the successors, for the better action of the state where it is largest: {support}"
    )
    test = f"within {_NEAR:.0%} of the formula in {_NEARLY_ALL:.0%} of the pairs"
    rest = " It does with the minimum over the successors." if share_of_support >= _NEARLY_ALL else ""
    against = f"The formula agrees in {share:.0%} of the pairs.{rest}"
    return conclude(numbers, test, against if share < _NEARLY_ALL else "")


def _judge_large(small: Table, large: Table) -> Finding:
    text, share = _compare_with_formula(large["gap"], large["mean"])
    by_pair, _ = _compare_with_formula(large["q_gap"], large["mean"])
    larger = float(np.mean(large["gap"] > small["gap"]))
    numbers = (
        f"median and 90 % range of the gap over its formula: {text}, of the same for Q, before the maximum over "
        f"actions: {by_pair}; larger than for small λ in {larger:.0%} of the pairs"
    )
    test = f"within {_NEAR:.0%} of the formula in {_NEARLY_ALL:.0%} of the pairs, and larger in more than half of them"
    against = []
    if share < _NEARLY_ALL:
        against.append(f"the formula agrees in {share:.0%} of the pairs")
    if larger <= 0.5:
        against.append(f"the gap is larger than for small λ in only {larger:.0%} of the pairs")
    return conclude(numbers, test, f"Against it: {'; '.join(against)}." if against else "")


def draw(records: Table) -> Drawing:
    """How fast P* is forgotten, and the gap over its two formulas."""
    values, gaps = records.where(part=_VALUE), records.where(part=_GAP)
    lines = tuple(
        curves.sorted_curve(values, "weight", column, Key("line", name), style="line+points")
        for column, name in (("same_support", "other probabilities"), ("other_support", "another successor"))
    )
    weights = np.array(gaps.values("weight"))
    formulas = []
    for column, name in (("least", "formula for small λ"), ("mean", "formula for large λ")):
        medians = np.array([np.median(of["gap"] / of[column]) for _, of in gaps.groups("weight")])
        formulas.append(Curve(Key("line", name), weights, medians, style="line+points"))
    panels = (
        Panel("Values under another P*", "λ", "max |V* − V*other|", lines, "log", "log"),
        Panel("Bellman gap over its formulas", "λ", "median ratio", tuple(formulas), "log", "log"),
    )
    caption = (
        "Left: how much the robust value changes with P*, for other probabilities of the same successors and for one "
        "more successor. Right: the gap |TV1 − TV2| of random V1 and V2 over the formulas of section 6.3 for small and "
        "large λ."
    )
    same, other = (line.y[0] for line in lines)
    reading = (
        f"At p = {records['stay'][0]:g} and λ = {weights[0]:g}, other probabilities change the value by {same:.2g}, "
        f"another successor by {other:.2g}; the median gap is {formulas[0].y[0]:.2g} times its formula."
    )
    return caption, reading, panels


EXPERIMENT = Experiment("limits", "Small and large penalties", Params, tasks, measure, draw, judge)
