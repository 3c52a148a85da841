"""Exponents in the number of samples: as printed, averaged, and ours, beside Theorems 4.2 and 5.1."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robustmdp.paper import claims, convergence, curves
from robustmdp.paper.claims import Finding
from robustmdp.paper.figures import Key, Panel
from robustmdp.paper.params import Budgets, OnLoop, Replications, Seeds, Weights, changes
from robustmdp.paper.runs import build_chain, build_learner, build_penalty, measure_final_errors
from robustmdp.paper.work import Drawing, Experiment, Item, Judgements, combine, seed_groups, timed
from robustmdp.table import Table

NAMES = {
    "algorithm-2": "Algorithm 2",
    "algorithm-2-averaged": "Algorithm 2, averaged",
    "markovian": "our default, trajectory",
    "algorithm-1": "Algorithm 1, T' = T",
    "algorithm-1-averaged": "Algorithm 1, T' = T, averaged",
    "algorithm-1-concave": "Algorithm 1, T' = √T, steps 1/(κt)",
    "generative": "our default, generative",
}
_AVERAGED, _PAIRS = 0.5, 20  # the burn-in of averages; pairs of the chain


@dataclass(frozen=True, kw_only=True)
class Params(OnLoop, Replications):
    """max |Q - Q*| at the end of runs of several lengths, all in the chain that returns, chi-square.

    Rows: method, stay, restart, weight, budget, seed, samples, error.
    """

    seeds: Seeds = 50
    weights: Weights = (1.0, 10.0)
    budgets: Budgets = (100_000, 316_228, 1_000_000, 3_162_278)
    quick = changes(seeds=8, budgets=(10_000, 31_623, 100_000))


def tasks(params: Params) -> list[Item]:
    """One per method, world, weight, budget and group of seeds."""
    return combine(
        method=NAMES,
        **params.chain,
        weight=params.weights,
        budget=params.budgets,
        seeds=seed_groups(params.seeds),
        divergence="chi2",
    )


def _build_learner(item: Item) -> Any:
    from robustmdp.learning.schedules import Polynomial
    from robustmdp.theory import curvature

    penalty, method, rounds = build_penalty(item), item["method"], item["budget"] / _PAIRS
    if method == "algorithm-1-concave":
        learner = build_learner("algorithm-1", penalty, max(1, round(rounds ** (1.0 / 3.0))))  # T' = sqrt(T)
        return replace(learner, eta_steps=Polynomial(1.0 / curvature(item["weight"], item["discount"]), 1.0))
    averaged = {"averaging": True, "burn_in": _AVERAGED} if method.endswith("-averaged") else {}
    inner_steps = max(1, math.isqrt(int(rounds)))  # T' = T
    return build_learner(method.removesuffix("-averaged"), penalty, inner_steps, **averaged)


@timed
def measure(item: Item) -> Table:
    """The final errors of some replications."""
    return measure_final_errors(item, build_chain(item), _build_learner(item))


def judge(records: Table) -> Judgements:
    """Claims 13 to 17, at every lambda."""
    budgets = records.values("budget")
    setting = f"{budgets[0]:,} to {budgets[-1]:,} samples, chi-square, q = {records['restart'][0]:g}"
    averaged = [("rate", _judge_rate(records, ["algorithm-2-averaged"], -0.5, -1 / 3)), ("error", _is_closer(records))]
    return [
        (13, setting, _judge_rate(records, ["algorithm-2"], -1 / 3)),
        (14, setting, claims.together(averaged)),
        (15, setting, _judge_rate(records, ["algorithm-1"], _rate_of_theorem_42(records))),
        (16, setting, _judge_rate(records, ["algorithm-1-concave"], -1 / 3, -1 / 4)),
        (17, setting, _judge_rate(records, ["generative", "markovian"], -0.5, -1 / 3)),
    ]


def _rate_of_theorem_42(records: Table) -> float:
    """The exponent of the bound itself over the same numbers of samples, logarithms included; the slowest lambda."""
    found = []
    for (weight,), of in records.where(method="algorithm-1").groups("weight"):
        x, _ = curves.samples_and_errors(of)
        rounds = [math.isqrt(int(samples / _PAIRS)) for samples in x]
        bounds = [convergence.bound(t, t, float(of["discount"][0]), weight, "printed") for t in rounds]
        found.append(curves.exponent(x, np.array(bounds))[0])
    return max(found)


def _judge_rate(records: Table, methods: list[str], rate: float, slower: float | None = None) -> Finding:
    """One part per method and lambda, which share the level."""
    groups = [(name, weight, of) for name in methods for (weight,), of in records.where(method=name).groups("weight")]
    beyond = "" if slower is None else f" and is faster than {slower:.3g}"
    test = (
        f"exponent of the mean error in samples, least squares on logarithms; bootstrap over "
        f"{len(records.values('seed'))} seeds, {claims.LEVEL:.0%} for all together, reaches {rate:.3g}{beyond}"
    )
    parts = []
    for name, weight, of in groups:
        x, errors = curves.samples_and_errors(of)
        fitted = claims.fit_exponent(x, errors, claims.LEVEL / len(groups))
        numbers = f"exponent {fitted}, error {errors[:, -1].mean():.3g} at the end"
        why = f"The exponent is {fitted}, wanted {rate:.3g}{beyond}."
        found = claims.explain(claims.reaches(fitted, rate, slower), numbers, test, why)
        parts.append((f"{NAMES[name]}, λ = {weight:g}", found))
    return claims.together(parts)


def _is_closer(records: Table) -> Finding:
    """Is the error with averaging smaller than without, after the most samples?"""
    last = curves.last(records, "budget")
    weights, without = curves.by_seed(last.where(method="algorithm-2"), "weight")
    _, averaged = curves.by_seed(last.where(method="algorithm-2-averaged"), "weight")
    what, complaint = "without and with averaging at the end", "The average is further away"
    return claims.smaller_at_every_weight(weights, without, averaged, what, complaint)[0]


def draw(records: Table) -> Drawing:
    """One log-log panel per lambda."""
    panels = []
    for (weight,), of in records.groups("weight"):
        drawn = tuple(
            curves.mean_curve(run, "samples", Key("algorithm", NAMES[method]), style="line+points")
            for method, run in curves.named(of, "method", NAMES)
        )
        panels.append(Panel(f"λ = {weight:g}", "samples", "max |Q − Q*|", drawn, "log", "log"))
    caption = (
        f"Error of Q against samples in the chain that returns (q = {records['restart'][0]:g}), each point the end of "
        f"runs of that length, means of {len(records.values('seed'))} seeds with 95 % bands. Averages leave out the "
        f"first {_AVERAGED:.0%} of a run."
    )
    return caption, _read(records), panels


def _read(records: Table) -> str:
    parts = []
    for method, run in curves.named(records, "method", NAMES):
        fits = []
        for _, of in run.groups("weight"):
            x, errors = curves.samples_and_errors(of)
            fits.append(f"{curves.exponent(x, errors.mean(axis=0))[0]:.2f}" if len(x) > 1 else "one length")
        parts.append(f"{NAMES[method]} {' and '.join(fits)}")
    weights = " and ".join(curves.labels(records.values("weight")))
    return f"Exponents at p = {records['stay'][0]:g} and λ = {weights}: {'; '.join(parts)}."


EXPERIMENT = Experiment("rates", "Rates", Params, tasks, measure, draw, judge)
