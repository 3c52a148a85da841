"""Figure "Markovian": Algorithm 2 on one trajectory, as printed and as users get it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from robustmdp.experiments import claims, convergence, curves
from robustmdp.experiments.claims import Claim, Finding, Verdict
from robustmdp.experiments.params import OnLoop, Penalties, Replications
from robustmdp.experiments.work import Item, Maps, chain_of, gather, learned, penalty_of, product, seed_groups, timed
from robustmdp.report import Figure, Panel
from robustmdp.table import Table

TITLE = "Convergence on one trajectory"
LITERAL, PAPER, DEFAULT, ALGORITHM_1 = "algorithm-2-literal", "algorithm-2", "default", "algorithm-1"
NAMES = {
    LITERAL: "Algorithm 2, to the letter",
    PAPER: "Algorithm 2 with V projected, β ≤ 1",
    DEFAULT: "our default",
    ALGORITHM_1: "Algorithm 1",
}
_POINTS = 100
_SAMPLES_OF_THE_CLAIM = 1_000_000
_CONVERGED = 0.05  # of the first error


@dataclass(frozen=True, kw_only=True)
class Params(OnLoop, Penalties, Replications):
    """max |Q - Q*| along a trajectory, and along Algorithm 1 in the same world."""

    steps: Annotated[int, "Transitions T of Algorithm 2"] = 4_000_000
    behaviour: Annotated[float, "Probability pi of action 1"] = 0.5
    outer_steps: Annotated[int, "Outer iterations T of Algorithm 1, to compare"] = 1000
    inner_steps: Annotated[int, "Inner iterations T' of Algorithm 1"] = 100
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 8, "steps": 200_000, "outer_steps": 100}


def items(params: Params) -> list[Item]:
    """One per algorithm, world, weight and group of seeds."""
    algorithms = [PAPER, DEFAULT, ALGORITHM_1]
    if params.divergence == "chi2":  # to the letter, nothing keeps the others inside their domain
        algorithms.insert(0, LITERAL)
    shared = {
        "restart": params.restart,
        "discount": params.discount,
        "divergence": params.divergence,
        "behaviour": params.behaviour,
    }
    listed = []
    for item in product(algorithm=algorithms, stay=params.stay, weight=params.weights, seeds=seed_groups(params.seeds)):
        first = item["algorithm"] == ALGORITHM_1
        steps, inner = (params.outer_steps, params.inner_steps) if first else (params.steps, 0)
        listed.append({**item, **shared, "steps": steps, "inner_steps": inner})
    return listed


def cost(item: Item) -> float:
    """Seconds on one core."""
    if item["algorithm"] == ALGORITHM_1:
        return convergence.cost(item)
    per_step = {LITERAL: 2e-8, PAPER: 4.5e-8, DEFAULT: 6e-8}[item["algorithm"]]
    return float(0.02 + len(item["seeds"]) * item["steps"] * per_step)


def learner_of(item: Item, ambiguity: Any) -> Any:
    """The algorithm of an item."""
    from robustmdp.learning import GenerativeQLearning, MarkovianQLearning

    if item["algorithm"] == ALGORITHM_1:
        return GenerativeQLearning.paper(ambiguity, item["inner_steps"])
    chances = np.array([item["behaviour"], 1.0 - item["behaviour"]])
    if item["algorithm"] == DEFAULT:
        return MarkovianQLearning(ambiguity, chances)
    return MarkovianQLearning.paper(ambiguity, chances, literal=item["algorithm"] == LITERAL)


@timed
def task(item: Item) -> Table:
    """Some replications of one algorithm."""
    mdp, ambiguity = chain_of(item), penalty_of(item)
    every = max(1, item["steps"] // (10 * _POINTS))
    return learned(item, learner_of(item, ambiguity), mdp, ambiguity, item["steps"], every, Kept(every, item["steps"]))


class Kept:
    """The first points, where errors fall fast, then one in ten, and the last."""

    def __init__(self, every: int, steps: int) -> None:
        self._every, self._steps = every, steps

    def __call__(self, step: int) -> bool:
        return step <= 10 * self._every or step % (10 * self._every) == 0 or step == self._steps


def run(params: Params, engine: Maps) -> Table:
    """Rows: algorithm, stay, restart, weight, behaviour, seed, step, samples, error, status."""
    return gather(task, items(params), params, engine)


def check(records: Table) -> list[Claim]:
    """Claims 9 and 10, about Algorithm 2 with V projected; to the letter it leaves the numbers."""
    found = []
    for (stay, restart), of in records.groups("stay", "restart"):
        world = f"q = {restart:g}, pi = {of['behaviour'][0]:g}"
        found.append(Claim(9, world, stay, _bad_then_good(of)))
        if (finding := _against_algorithm_1(of)) is not None:
            found.append(Claim(10, f"{world}, both algorithms in that world", stay, finding))
    return found


def _bad_then_good(records: Table) -> Finding:
    """The smallest lambda does worse than every other one, and the two largest end below 5 % of their first error."""
    paper = records.where(algorithm=PAPER)
    weights, errors = curves.by_seed(curves.last(paper), "weight")
    _, first = curves.by_seed(paper.where(step=0), "weight")
    labels = [f"{weight:g}" for weight in weights]
    means = ", ".join(f"{label}: {errors[:, i].mean():.3g}" for i, label in enumerate(labels))
    numbers = f"final error by λ: {means}; {_diverged(records)}"
    test = (
        f"paired t intervals (Bonferroni, {claims.LEVEL:.0%}) of the smallest λ against the others, {len(errors)} "
        f"seeds; the two largest below {_CONVERGED:.0%} of their first error"
    )
    if len(labels) < 2:
        return Finding("within noise", numbers, test, "One level is neither small nor large.")
    steps = [
        claims.compare(errors[:, 0], errors[:, i], f"λ {labels[0]} to {label}", len(labels) - 1)
        for i, label in enumerate(labels[1:], 1)
    ]
    shares = (errors.mean(axis=0) / first.mean(axis=0))[1:][-2:]
    far = [
        f"at λ = {label} the error ends at {share:.0%} of the first one"
        for label, share in zip(labels[1:][-2:], shares, strict=True)
        if share > _CONVERGED
    ]
    verdict, why = _joined(steps, far)
    return Finding(verdict, numbers, test, why)


def _joined(steps: list[claims.Comparison], far: list[str]) -> tuple[Verdict, str]:
    """Every step must be down, and nothing may end far away."""
    against = [f"the error does not fall from {step}" for step in steps if step.sign() > 0] + far
    if against:
        return "does not hold", f"Against it: {'; '.join(against)}."
    unclear = [str(step) for step in steps if step.sign() == 0]
    return ("within noise", f"No significant difference from {', '.join(unclear)}.") if unclear else ("holds", "")


def _diverged(records: Table) -> str:
    literal = records.where(algorithm=LITERAL)
    if not len(literal):
        return "to the letter only chi-square can run"
    shares = []
    for (weight,), of in literal.groups("weight"):
        seeds = len(of.values("seed"))
        gone = len(of.where(status="diverged").values("seed"))
        shares.append(f"{weight:g}: {gone}/{seeds}")
    return f"runs that diverge to the letter {', '.join(shares)}"


def _against_algorithm_1(records: Table) -> Finding | None:
    """Errors at the last record up to 1e6 samples (or the most that both have)."""
    one, two = records.where(algorithm=ALGORITHM_1), records.where(algorithm=PAPER)
    if not len(one):
        return None
    budget = min(_SAMPLES_OF_THE_CLAIM, int(one["samples"].max()), int(two["samples"].max()))
    weights, first = curves.by_seed(_at(one, budget), "weight")
    _, second = curves.by_seed(_at(two, budget), "weight")
    steps = [
        claims.compare(first[:, i], second[:, i], f"λ = {weight:g}", len(weights)) for i, weight in enumerate(weights)
    ]
    numbers = ", ".join(
        f"λ = {weight:g}: {first[:, i].mean():.3g} and {second[:, i].mean():.3g}" for i, weight in enumerate(weights)
    )
    test = f"paired t intervals (Bonferroni, {claims.LEVEL:.0%}) at every λ, {len(first)} seeds"
    against = [step for step in steps if step.sign() > 0]
    text = f"Algorithm 1 and 2 at {budget:,} samples: {numbers}"
    if against:
        worse = "; ".join(map(str, against))
        return Finding("does not hold", text, test, f"Algorithm 2's error is larger at {worse}.")
    if all(step.sign() < 0 for step in steps):
        return Finding("holds", text, test)
    unclear = ", ".join(step.label for step in steps if step.sign() == 0)
    return Finding("within noise", text, test, f"No significant difference at {unclear}.")


def _at(records: Table, samples: int) -> Table:
    """The last record of every run within a number of samples."""
    within = records.take(records["samples"] <= samples)
    return curves.last(within)


def figure(records: Table) -> Figure:
    """One panel per algorithm on the trajectory; the paper's, with bands and without, first."""
    stay = curves.shown(records)
    here = records.where(stay=stay)
    panels = []
    for algorithm in (PAPER, DEFAULT, LITERAL):
        of = here.where(algorithm=algorithm)
        groups = list(of.take(np.isfinite(of["error"])).groups("weight")) if len(of) else []
        for bands in (True, False) if algorithm == PAPER else (True,):
            drawn = tuple(
                curves.mean_curve(_complete(run), "step", curves.weight_key(weight), bands=bands)
                for (weight,), run in groups
                if len(_complete(run))
            )
            title = NAMES[algorithm] + ("" if bands else ", without bands")
            if not drawn:
                continue
            panels.append(Panel(title, "transitions", "max |Qₜ − Q*|", drawn, y_scale="log"))
    caption = (
        f"Deviation of Q against transitions of one trajectory with π = {here['behaviour'][0]:g}, q = "
        f"{here['restart'][0]:g}; shaded: 95 % confidence interval. To the letter, Algorithm 2 leaves the numbers in "
        "most runs: its panel shows the mean of those that do not."
    )
    return Figure("markovian", f"{TITLE} (p = {stay:g})", caption, _reading(stay, here), tuple(panels))


def _complete(records: Table) -> Table:
    """The runs that reached the last step."""
    done = records["seed"][records["step"] == records["step"].max()]
    return records.take(np.isin(records["seed"], done) & (records["status"] != "diverged"))


def _reading(stay: float, records: Table) -> str:
    weights, paper = curves.by_seed(curves.last(records.where(algorithm=PAPER)), "weight")
    _, default = curves.by_seed(curves.last(records.where(algorithm=DEFAULT)), "weight")
    ratios = paper.mean(axis=0) / default.mean(axis=0)
    ends = f"{paper[:, 0].mean():.3g} at λ = {weights[0]:g} and {paper[:, -1].mean():.3g} at λ = {weights[-1]:g}"
    return (
        f"At p = {stay:g} Algorithm 2 (with V projected) ends at {ends}. To the letter: {_diverged(records)}. Our "
        f"default ends {ratios.min():.2g} to {ratios.max():.2g} times closer to Q* after the same transitions."
    )
