"""What the step sizes do: alpha = t^-k in the inner loop alone, beta = t^-k in Algorithm 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.paper import claims, curves
from robustmdp.paper.claims import Claim, Exponent, Finding, Verdict
from robustmdp.paper.figures import Figure, Key, Panel
from robustmdp.paper.params import OnChain, Replications
from robustmdp.paper.work import (
    Experiment,
    Item,
    build_chain,
    build_penalty,
    product,
    replicate,
    rows,
    seed_groups,
    solve_exactly,
    timed,
)
from robustmdp.table import Table

TITLE = "Step sizes"
_INNER, _OUTER = "inner", "outer"
_OF_THE_PAPER = 0.0  # stands for the paper's own steps where others are t^-k
_NEAR = 0.1  # of an exponent from the one that is claimed


@dataclass(frozen=True, kw_only=True)
class Params(OnChain, Replications):
    """sup J - J(eta_T') at V*, the largest of all pairs, and max |Q_T - Q*|; chi-square.

    Rows: loop, stay, weight, power (0: the paper's steps), seed, step, error.
    """

    seeds: Annotated[int, "Replications of each setting"] = 100
    weights: Annotated[tuple[float, ...], "Penalties lambda"] = (1.0, 10.0)
    alpha_powers: Annotated[tuple[float, ...], "Powers k of the inner steps"] = (0.3, 0.5, 0.7, 0.9)
    beta_powers: Annotated[tuple[float, ...], "Powers k of the outer steps"] = (0.5, 0.7, 0.9)
    inner_lengths: Annotated[tuple[int, ...], "Inner steps T' at which the error is fitted"] = (
        1_000,
        3_162,
        10_000,
        31_623,
    )
    rounds: Annotated[int, "Outer iterations T of Algorithm 1"] = 3_000
    inner_steps: Annotated[int, "Inner iterations T' of Algorithm 1"] = 100
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 8, "inner_lengths": (300, 1_000, 3_000), "rounds": 300}


def tasks(params: Params) -> list[Item]:
    """One per loop, world, weight, power and group of seeds."""
    shared = {"restart": 0.0, "discount": params.discount, "divergence": "chi2"}
    levels = {"stay": params.stay, "weight": params.weights, "seeds": list(seed_groups(params.seeds))}
    inner = product(loop=[_INNER], power=(_OF_THE_PAPER, *params.alpha_powers), **levels)
    outer = product(loop=[_OUTER], power=(_OF_THE_PAPER, *params.beta_powers), **levels)
    lengths = [params.rounds // 10, 3 * (params.rounds // 10), 10 * (params.rounds // 10)]
    return [{**each, **shared, "lengths": list(params.inner_lengths), "inner_steps": 0} for each in inner] + [
        {**each, **shared, "lengths": lengths, "inner_steps": params.inner_steps} for each in outer
    ]


@timed
def measure(item: Item) -> Table:
    """Some replications of one loop."""
    found = _inner_errors(item) if item["loop"] == _INNER else _outer_errors(item)
    seeds, lengths = item["seeds"], item["lengths"]
    return rows(
        item, seed=np.repeat(seeds, len(lengths)), step=np.tile(lengths, len(seeds)), error=found.ravel(), samples=0
    )


def _inner_errors(item: Item) -> FloatArray:
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


def _outer_errors(item: Item) -> FloatArray:
    """(seeds, lengths): max |Q - Q*| of Algorithm 1 after so many outer iterations."""
    from robustmdp.learning import GenerativeQLearning
    from robustmdp.learning.schedules import Polynomial

    mdp, ambiguity = build_chain(item), build_penalty(item)
    learner = GenerativeQLearning.paper(ambiguity, item["inner_steps"])
    if item["power"] != _OF_THE_PAPER:
        learner = replace(learner, q_steps=Polynomial(1.0, item["power"]))
    first, *_, last = item["lengths"]
    exact = solve_exactly(mdp, ambiguity).q
    runs = replicate(learner, mdp, last, seeds=item["seeds"], reference=exact, record_every=first)
    places = np.array(item["lengths"]) // first - 1
    return np.array([run.trace["error"][places] for run in runs])


def check(records: Table) -> list[Claim]:
    """Claims 18, 19 and 20, at every lambda."""
    found = []
    for (stay,), of in records.groups("stay"):
        inner, outer = of.where(loop=_INNER), of.where(loop=_OUTER)
        setting = f"V = V*, T' = {inner['step'].min():,} to {inner['step'].max():,}, chi-square"
        found += [
            Claim(18, f"the steps of Theorem 4.1, {setting}", stay, _theorem(inner)),
            Claim(19, f"λ (t + 1)^-k, {setting}", stay, _best_power(inner)),
            Claim(20, f"T = {outer['step'].max():,}, T' = {outer['inner_steps'][0]}", stay, _slower(outer)),
        ]
    return found


def _fits(inner: Table, is_of_the_paper: bool) -> list[tuple[float, float, Exponent]]:
    """(lambda, k, exponent of the inner error), the level shared by all."""
    groups = [
        (weight, power, of)
        for (weight, power), of in inner.groups("weight", "power")
        if (power == _OF_THE_PAPER) == is_of_the_paper
    ]
    level = claims.LEVEL / max(1, len(groups))
    return [(weight, power, claims.fit_exponent(*curves.by_seed(of, "step"), level)) for weight, power, of in groups]


def _bootstrap(inner: Table) -> str:
    return f"exponent in T', bootstrap over {len(inner.values('seed'))} seeds, {claims.LEVEL:.0%} for all together"


def _theorem(inner: Table) -> Finding:
    from robustmdp.theory import inner_rate

    parts, steps = [], np.array(inner.values("step"))
    bounds = np.array([inner_rate(int(t), diameter=1.0, gradient_bound=1.0) for t in steps])
    rate = curves.exponent(steps, bounds)[0]
    test = f"{_bootstrap(inner)}; at most that of (2 + log T')/sqrt(T') there, {rate:.2f}"
    for weight, _, fitted in _fits(inner, is_of_the_paper=True):
        verdict = claims.reaches(fitted, rate)
        why = "" if verdict == "holds" else f"The exponent is {fitted}, that of the bound {rate:.2f}."
        parts.append((f"λ = {weight:g}", Finding(verdict, f"exponent {fitted}", test, why)))
    return claims.together(parts)


def _best_power(inner: Table) -> Finding:
    parts = []
    test = f"{_bootstrap(inner)}; within {_NEAR:g} of -min(k, 1 - k)"
    for weight, power, fitted in _fits(inner, is_of_the_paper=False):
        claimed = -min(power, 1.0 - power)
        verdict: Verdict = "within noise"
        if fitted.high < claimed - _NEAR or fitted.low > claimed + _NEAR:
            verdict = "does not hold"
        elif claimed - _NEAR <= fitted.low and fitted.high <= claimed + _NEAR:
            verdict = "holds"
        why = "" if verdict == "holds" else f"The exponent is {fitted}, claimed was {claimed:.2g}."
        parts.append((f"λ = {weight:g}, k = {power:g}", Finding(verdict, f"exponent {fitted}", test, why)))
    return claims.together(parts)


def _slower(outer: Table) -> Finding:
    """Every power against the paper's steps, at the last iteration."""
    parts, count = [], len(list(outer.groups("weight", "power"))) - len(outer.values("weight"))
    for (weight,), of in curves.last(outer).groups("weight"):
        powers, errors = curves.by_seed(of, "power")
        test = f"t intervals against the paper's, {claims.LEVEL:.0%} for all together, {len(errors)} seeds"
        for column in range(1, len(powers)):
            step = claims.compare(errors[:, 0], errors[:, column], "", max(1, count))
            verdict: Verdict = "within noise" if step.sign() == 0 else "holds" if step.sign() > 0 else "does not hold"
            means = f"errors {errors[:, 0].mean():.3g} and {errors[:, column].mean():.3g}"
            why = "" if verdict == "holds" else f"The difference is{step}."
            parts.append((f"λ = {weight:g}, k = {powers[column]:g}", Finding(verdict, means, test, why)))
    return claims.together(parts)


def figure(records: Table) -> Figure:
    """Two panels per lambda: the inner loop and Algorithm 1."""
    stay = curves.shown(records)
    here, panels = records.where(stay=stay), []
    for loop, x_label, y_label in (
        (_INNER, "inner steps T'", "sup J − J(η)"),
        (_OUTER, "iterations T", "max |Q − Q*|"),
    ):
        for (weight,), of in here.where(loop=loop).groups("weight"):
            drawn = tuple(
                curves.mean_curve(each, "step", Key("k", _name(power)), style="line+points")
                for (power,), each in of.groups("power")
            )
            panels.append(Panel(f"λ = {weight:g}", x_label, y_label, drawn, "log", "log"))
    caption = (
        "The error of the inner loop alone against its steps, of sizes λ (t + 1)^-k and those of Theorem 4.1; and of "
        "Algorithm 1 against outer iterations with β = (t + 1)^-k and with the paper's; means with 95 % bands."
    )
    return Figure("step-sizes", f"{TITLE} (p = {stay:g})", caption, _reading(stay, here), tuple(panels))


def _name(power: float) -> str:
    return "the paper's steps" if power == _OF_THE_PAPER else f"{power:g}"


def _reading(stay: float, records: Table) -> str:
    fits = []
    for (weight, power), of in records.where(loop=_INNER).groups("weight", "power"):
        x, errors = curves.by_seed(of, "step")
        fits.append(f"{curves.exponent(x, errors.mean(axis=0))[0]:.2f} ({_name(power)}, λ = {weight:g})")
    return f"Exponents of the inner loop at p = {stay:g}, by k: {', '.join(fits)}."


EXPERIMENT = Experiment("step-sizes", TITLE, Params, tasks, measure, figure, check)
