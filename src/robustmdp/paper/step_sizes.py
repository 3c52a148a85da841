"""What the step sizes do: alpha = t^-k in the inner loop alone, beta = t^-k in Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.paper import claims, curves
from robustmdp.paper.claims import Exponent, Finding, Verdict
from robustmdp.paper.figures import Key, Panel
from robustmdp.paper.params import InnerSteps, OnChain, Replications, Rounds, Weights, changes
from robustmdp.paper.runs import build_chain, build_learner, build_penalty, replicate, solve_exactly
from robustmdp.paper.work import Drawing, Experiment, Item, Judgements, combine, rows, seed_groups, timed
from robustmdp.table import Table

_INNER, _OUTER = "inner", "outer"
_OF_THE_PAPER = 0.0  # stands for the paper's own steps where others are t^-k
_Lengths = Annotated[tuple[int, ...], "Inner steps T' at which the error is fitted"]
_NEAR = 0.1  # of an exponent from the one that is claimed


@dataclass(frozen=True, kw_only=True)
class Params(OnChain, Replications):
    """sup J - J(eta_T') at V*, the largest of all pairs, and max |Q_T - Q*|; chi-square.

    Rows: loop, stay, weight, power (0: the paper's steps), seed, step, error.
    """

    weights: Weights = (1.0, 10.0)
    alpha_powers: Annotated[tuple[float, ...], "Powers k of the inner steps"] = (0.3, 0.5, 0.7, 0.9)
    beta_powers: Annotated[tuple[float, ...], "Powers k of the outer steps"] = (0.5, 0.7, 0.9)
    inner_lengths: _Lengths = (1_000, 3_162, 10_000, 31_623)
    rounds: Rounds = 3_000
    inner_steps: InnerSteps = 100
    quick = changes(seeds=8, inner_lengths=(300, 1_000, 3_000), rounds=300)


def tasks(params: Params) -> list[Item]:
    """One per loop, world, weight, power and group of seeds."""
    tenth, listed = params.rounds // 10, []
    for loop, powers, lengths, inner_steps in (
        (_INNER, params.alpha_powers, params.inner_lengths, 0),
        (_OUTER, params.beta_powers, (tenth, 3 * tenth, 10 * tenth), params.inner_steps),
    ):
        listed += combine(
            loop=loop,
            power=(_OF_THE_PAPER, *powers),
            **params.chain,
            weight=params.weights,
            seeds=seed_groups(params.seeds),
            divergence="chi2",
            lengths=[list(lengths)],
            inner_steps=inner_steps,
        )
    return listed


@timed
def measure(item: Item) -> Table:
    """Some replications of one loop."""
    found = _measure_inner(item) if item["loop"] == _INNER else _measure_outer(item)
    seeds, lengths = item["seeds"], item["lengths"]
    return rows(
        item, seed=np.repeat(seeds, len(lengths)), step=np.tile(lengths, len(seeds)), error=found.ravel(), samples=0
    )


def _measure_inner(item: Item) -> FloatArray:
    """(seeds, lengths): the largest sup J - J(eta) over pairs, eta after so many steps from 0 with V = V*."""
    from robustmdp.ambiguity import worst_case
    from robustmdp.learning import learn_worst_case
    from robustmdp.learning.schedules import Polynomial, Theorem41

    mdp, ambiguity = build_chain(item), build_penalty(item)
    largest, weight, power = 1.0 / (1.0 - item["discount"]), item["weight"], item["power"]
    v = np.clip(solve_exactly(mdp, ambiguity).value, 0.0, largest)
    steps = Theorem41() if power == _OF_THE_PAPER else Polynomial(weight, power)
    found = np.zeros((len(item["seeds"]), len(item["lengths"])))
    for row, seed in enumerate(item["seeds"]):
        rng = np.random.default_rng(seed)
        for first, last in zip(mdp.indptr[:-1], mdp.indptr[1:], strict=True):
            p, x = mdp.probabilities[first:last], v[mdp.indices[first:last]]
            outcomes, best = rng.choice(x, max(item["lengths"]), p=p), float(worst_case(ambiguity, p, x).value)
            for column, length in enumerate(item["lengths"]):
                eta = learn_worst_case(ambiguity, outcomes[:length], (0.0, largest), steps=steps).eta
                reached = eta - weight * float(p @ ambiguity.divergence.conjugate((eta - x) / weight))
                found[row, column] = max(found[row, column], best - reached)
    return found


def _measure_outer(item: Item) -> FloatArray:
    """(seeds, lengths): max |Q - Q*| of Algorithm 1 after so many outer iterations."""
    from robustmdp.learning.schedules import Polynomial

    mdp, ambiguity = build_chain(item), build_penalty(item)
    learner = build_learner("algorithm-1", ambiguity, item["inner_steps"])
    if item["power"] != _OF_THE_PAPER:
        learner = replace(learner, q_steps=Polynomial(1.0, item["power"]))
    first, *_, last = item["lengths"]
    exact = solve_exactly(mdp, ambiguity).q
    runs = replicate(learner, mdp, last, seeds=item["seeds"], reference=exact, record_every=first)
    places = np.array(item["lengths"]) // first - 1
    return np.array([run.trace["error"][places] for run in runs])


def judge(records: Table) -> Judgements:
    """Claims 18, 19 and 20, at every lambda."""
    inner, outer = records.where(loop=_INNER), records.where(loop=_OUTER)
    setting = f"V = V*, T' = {inner['step'].min():,} to {inner['step'].max():,}, chi-square"
    return [
        (18, f"the steps of Theorem 4.1, {setting}", _judge_theorem(inner)),
        (19, f"λ (t + 1)^-k, {setting}", _judge_powers(inner)),
        (20, f"T = {outer['step'].max():,}, T' = {outer['inner_steps'][0]}", _are_slower(outer)),
    ]


def _fit(inner: Table) -> tuple[str, list[tuple[float, float, Exponent]]]:
    """How it is tested, and (lambda, k, exponent of the inner error), the level shared by all."""
    groups = list(inner.groups("weight", "power"))
    level = claims.LEVEL / max(1, len(groups))
    fits = [(*key, claims.fit_exponent(*curves.by_seed(of, "step"), level)) for key, of in groups]
    test = f"exponent in T', bootstrap over {len(inner.values('seed'))} seeds, {claims.LEVEL:.0%} for all together"
    return test, fits


def _judge_theorem(inner: Table) -> Finding:
    from robustmdp.theory import inner_rate

    steps = np.array(inner.values("step"))
    bounds = np.array([inner_rate(int(t), diameter=1.0, gradient_bound=1.0) for t in steps])
    rate = curves.exponent(steps, bounds)[0]
    test, fits = _fit(inner.where(power=_OF_THE_PAPER))
    test += f"; at most that of (2 + log T')/sqrt(T') there, {rate:.2f}"
    parts = []
    for weight, _, fitted in fits:
        why = f"The exponent is {fitted}, that of the bound {rate:.2f}."
        found = claims.explain(claims.reaches(fitted, rate), f"exponent {fitted}", test, why)
        parts.append((f"λ = {weight:g}", found))
    return claims.together(parts)


def _judge_powers(inner: Table) -> Finding:
    test, fits = _fit(inner.take(inner["power"] != _OF_THE_PAPER))
    test += f"; within {_NEAR:g} of -min(k, 1 - k)"
    parts = []
    for weight, power, fitted in fits:
        claimed = -min(power, 1.0 - power)
        why = f"The exponent is {fitted}, claimed was {claimed:.2g}."
        found = claims.explain(claims.comes_near(fitted, claimed, _NEAR), f"exponent {fitted}", test, why)
        parts.append((f"λ = {weight:g}, k = {power:g}", found))
    return claims.together(parts)


def _are_slower(outer: Table) -> Finding:
    """Every power against the paper's steps, at the last iteration."""
    verdicts: dict[int, Verdict] = {1: "holds", 0: "within noise", -1: "does not hold"}
    parts, count = [], len(list(outer.groups("weight", "power"))) - len(outer.values("weight"))
    for (weight,), of in curves.last(outer).groups("weight"):
        powers, errors = curves.by_seed(of, "power")
        test = f"t intervals against the paper's, {claims.LEVEL:.0%} for all together, {len(errors)} seeds"
        for power, other in zip(powers[1:], errors.T[1:], strict=True):
            step = claims.compare(errors[:, 0], other, "", count)
            means = f"errors {errors[:, 0].mean():.3g} and {other.mean():.3g}"
            found = claims.explain(verdicts[step.sign()], means, test, f"The difference is{step}.")
            parts.append((f"λ = {weight:g}, k = {power:g}", found))
    return claims.together(parts)


def draw(records: Table) -> Drawing:
    """Two panels per lambda: the inner loop and Algorithm 1."""
    panels, fits = [], []
    for loop, x, y in ((_INNER, "inner steps T'", "sup J − J(η)"), (_OUTER, "iterations T", "max |Q − Q*|")):
        for (weight,), of in records.where(loop=loop).groups("weight"):
            drawn = []
            for (power,), run in of.groups("power"):
                name = "the paper's steps" if power == _OF_THE_PAPER else f"{power:g}"
                drawn.append(curves.mean_curve(run, "step", Key("k", name), style="line+points"))
                if loop == _INNER:
                    fits.append(f"{curves.exponent(drawn[-1].x, drawn[-1].y)[0]:.2f} ({name}, λ = {weight:g})")
            panels.append(Panel(f"λ = {weight:g}", x, y, tuple(drawn), "log", "log"))
    caption = (
        "The error of the inner loop alone against its steps, of sizes λ (t + 1)^-k and those of Theorem 4.1; and of "
        "Algorithm 1 against outer iterations with β = (t + 1)^-k and with the paper's; means with 95 % bands."
    )
    reading = f"Exponents of the inner loop at p = {records['stay'][0]:g}, by k: {', '.join(fits)}."
    return caption, reading, panels


EXPERIMENT = Experiment("step-sizes", "Step sizes", Params, tasks, measure, draw, judge)
