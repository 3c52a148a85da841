"""Exponents in the number of samples: as printed, averaged, and ours, beside Theorems 4.2 and 5.1."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from robustmdp.paper import claims, convergence, curves
from robustmdp.paper.claims import Claim, Finding
from robustmdp.paper.figures import Curve, Figure, Key, Panel
from robustmdp.paper.params import OnLoop, Replications
from robustmdp.paper.work import (
    Experiment,
    Item,
    build_chain,
    build_penalty,
    measure_final_errors,
    product,
    seed_groups,
    timed,
)
from robustmdp.table import Table

TITLE = "Rates"
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

    seeds: Annotated[int, "Replications of each setting"] = 50
    weights: Annotated[tuple[float, ...], "Penalties lambda"] = (1.0, 10.0)
    budgets: Annotated[tuple[int, ...], "Samples"] = (100_000, 316_228, 1_000_000, 3_162_278)
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 8, "budgets": (10_000, 31_623, 100_000)}


def tasks(params: Params) -> list[Item]:
    """One per method, world, weight, budget and group of seeds."""
    shared = {"restart": params.restart, "discount": params.discount, "divergence": "chi2"}
    levels = {"method": NAMES, "stay": params.stay, "weight": params.weights, "budget": params.budgets}
    return [{**item, **shared} for item in product(**levels, seeds=seed_groups(params.seeds))]


def _learner(item: Item) -> Any:
    from robustmdp.learning import GenerativeQLearning, MarkovianQLearning
    from robustmdp.learning.schedules import Polynomial
    from robustmdp.theory import curvature

    ambiguity, rounds = build_penalty(item), item["budget"] / _PAIRS
    equal = max(1, math.isqrt(int(rounds)))  # T' = T
    fewer = max(1, round(rounds ** (1.0 / 3.0)))  # T' = sqrt(T)
    kappa = curvature(item["weight"], item["discount"])
    averaged: dict[str, Any] = {"averaging": True, "burn_in": _AVERAGED}
    makers: dict[str, Callable[[], Any]] = {
        "algorithm-2": lambda: MarkovianQLearning.paper(ambiguity),
        "algorithm-2-averaged": lambda: MarkovianQLearning.paper(ambiguity, **averaged),
        "markovian": lambda: MarkovianQLearning(ambiguity),
        "algorithm-1": lambda: GenerativeQLearning.paper(ambiguity, equal),
        "algorithm-1-averaged": lambda: GenerativeQLearning.paper(ambiguity, equal, **averaged),
        "algorithm-1-concave": lambda: replace(
            GenerativeQLearning.paper(ambiguity, fewer), eta_steps=Polynomial(1.0 / kappa, 1.0)
        ),
        "generative": lambda: GenerativeQLearning(ambiguity),
    }
    return makers[item["method"]]()


@timed
def measure(item: Item) -> Table:
    """The final errors of some replications."""
    return measure_final_errors(item, build_chain(item), _learner(item))


def check(records: Table) -> list[Claim]:
    """Claims 13 to 17, at every lambda."""
    found = []
    for (stay, restart), of in records.groups("stay", "restart"):
        setting = f"{min(of.values('budget')):,} to {max(of.values('budget')):,} samples, chi-square, q = {restart:g}"
        for number, finding in (
            (13, _rate(of, ["algorithm-2"], -1 / 3)),
            (
                14,
                claims.together([("rate", _rate(of, ["algorithm-2-averaged"], -0.5, -1 / 3)), ("error", _closer(of))]),
            ),
            (15, _rate(of, ["algorithm-1"], _rate_of_theorem_42(of))),
            (16, _rate(of, ["algorithm-1-concave"], -1 / 3, -1 / 4)),
            (17, _rate(of, ["generative", "markovian"], -0.5, -1 / 3)),
        ):
            found.append(Claim(number, setting, stay, finding))
    return found


def _rate_of_theorem_42(records: Table) -> float:
    """The exponent of the bound itself over the same numbers of samples, logarithms included; the slowest lambda."""
    found = []
    for (weight,), of in records.where(method="algorithm-1").groups("weight"):
        x, _ = curves.samples_and_errors(of)
        rounds = [math.isqrt(int(samples / _PAIRS)) for samples in x]
        bounds = [convergence.bound(t, t, float(of["discount"][0]), weight, "printed") for t in rounds]
        found.append(curves.exponent(x, np.array(bounds))[0])
    return max(found)


def _rate(records: Table, methods: list[str], rate: float, slower: float | None = None) -> Finding:
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
        verdict = claims.reaches(fitted, rate, slower)
        why = "" if verdict == "holds" else f"The exponent is {fitted}, wanted {rate:.3g}{beyond}."
        numbers = f"exponent {fitted}, error {errors[:, -1].mean():.3g} at the end"
        parts.append((f"{NAMES[name]}, λ = {weight:g}", Finding(verdict, numbers, test, why)))
    return claims.together(parts)


def _closer(records: Table) -> Finding:
    """Is the error with averaging smaller than without, after the most samples?"""
    last = records.take(records["budget"] == records["budget"].max())
    weights, without = curves.by_seed(last.where(method="algorithm-2"), "weight")
    _, averaged = curves.by_seed(last.where(method="algorithm-2-averaged"), "weight")
    steps = [
        claims.compare(without[:, i], averaged[:, i], f"λ = {weight:g}", len(weights))
        for i, weight in enumerate(weights)
    ]
    numbers = ", ".join(
        f"λ = {weight:g}: {without[:, i].mean():.3g} and {averaged[:, i].mean():.3g}"
        for i, weight in enumerate(weights)
    )
    text = f"errors without and with averaging at the end: {numbers}"
    test = f"t intervals at every λ, {claims.LEVEL:.0%} for all together, {len(without)} seeds"
    against = ", ".join(str(step) for step in steps if step.sign() > 0)
    if against:
        return Finding("does not hold", text, test, f"The average is further away at {against}.")
    unclear = ", ".join(step.label for step in steps if step.sign() == 0)
    if unclear:
        return Finding("within noise", text, test, f"No significant difference at {unclear}.")
    return Finding("holds", text, test)


def figure(records: Table) -> Figure:
    """One log-log panel per lambda."""
    stay = curves.shown(records)
    here = records.where(stay=stay)
    panels = []
    for (weight,), of in here.groups("weight"):
        drawn = []
        for method, name in NAMES.items():
            x, errors = curves.samples_and_errors(of.where(method=method))
            drawn.append(Curve(Key("algorithm", name), x, *curves.band(errors), "line+points"))
        panels.append(Panel(f"λ = {weight:g}", "samples", "max |Q − Q*|", tuple(drawn), "log", "log"))
    caption = (
        f"Error of Q against samples in the chain that returns (q = {here['restart'][0]:g}), each point the end of "
        f"runs of that length, means of {len(here.values('seed'))} seeds with 95 % bands. Averages leave out the first "
        f"{_AVERAGED:.0%} of a run."
    )
    return Figure("rates", f"{TITLE} (p = {stay:g})", caption, _reading(stay, here), tuple(panels))


def _reading(stay: float, records: Table) -> str:
    parts = []
    for method, name in NAMES.items():
        fits = []
        for _, of in records.where(method=method).groups("weight"):
            x, errors = curves.samples_and_errors(of)
            fits.append(f"{curves.exponent(x, errors.mean(axis=0))[0]:.2f}" if len(x) > 1 else "one length")
        parts.append(f"{name} {' and '.join(fits)}")
    weights = " and ".join(f"{weight:g}" for weight in records.values("weight"))
    return f"Exponents at p = {stay:g} and λ = {weights}: {'; '.join(parts)}."


EXPERIMENT = Experiment("rates", TITLE, Params, tasks, measure, figure, check)
