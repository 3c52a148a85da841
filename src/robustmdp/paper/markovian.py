"""Figure "Markovian": Algorithm 2 on one trajectory, as printed and as users get it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from robustmdp.paper import claims, curves
from robustmdp.paper.claims import Claim, Finding, Verdict
from robustmdp.paper.figures import Curve, Figure, Panel
from robustmdp.paper.params import OnLoop, Penalties, Replications
from robustmdp.paper.work import Experiment, Item, build_penalty, product, seed_groups, timed, trace_errors
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
_NOT_EXEMPT = 1.0  # the least lambda of which the text expects convergence
_CONVERGED = 0.05  # of the first error


@dataclass(frozen=True, kw_only=True)
class Params(OnLoop, Penalties, Replications):
    """max |Q - Q*| along a trajectory, and along Algorithm 1 in the same world.

    Rows: algorithm, stay, restart, weight, behaviour, seed, step, samples, error, status.
    """

    transitions: Annotated[int, "Transitions T of Algorithm 2"] = 4_000_000
    behaviour: Annotated[float, "Probability pi of action 1"] = 0.5
    rounds: Annotated[int, "Outer iterations T of Algorithm 1"] = 1000
    inner_steps: Annotated[int, "Inner iterations T' of Algorithm 1"] = 100
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 8, "transitions": 200_000, "rounds": 100}


def tasks(params: Params) -> list[Item]:
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
        steps, inner = (params.rounds, params.inner_steps) if first else (params.transitions, 0)
        listed.append({**item, **shared, "steps": steps, "inner_steps": inner})
    return listed


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
def measure(item: Item) -> Table:
    """Some replications of one algorithm; ours starts at 0, the paper's at the largest value."""
    learner = learner_of(item, build_penalty(item))
    start = 0.0 if item["algorithm"] == DEFAULT else 1.0 / (1.0 - item["discount"])
    return trace_errors(item, learner, start=start, every=max(1, item["steps"] // (10 * _POINTS)), dense=10)


def check(records: Table) -> list[Claim]:
    """Claims 9, 10 and 22, about Algorithm 2 with V projected; to the letter it leaves the numbers."""
    found = []
    for (stay, restart), of in records.groups("stay", "restart"):
        world = f"q = {restart:g}, π = {of['behaviour'][0]:g}"
        steps = int(of.where(algorithm=PAPER)["step"].max())
        found.append(Claim(9, f"{NAMES[PAPER]}, T = {steps:,}, {world}", stay, _bad_then_good(of)))
        setting = f"{NAMES[PAPER]}, and Algorithm 1 in the same world, {world}"
        for number, chosen in ((10, of), (22, of.take(of["weight"] >= _NOT_EXEMPT))):
            if (finding := _against_algorithm_1(chosen)) is not None:
                found.append(Claim(number, setting, stay, finding))
    return found


class _Ending(NamedTuple):
    """The final error as a share of the first one, with the half-width of its interval."""

    label: str
    share: float
    margin: float

    def __str__(self) -> str:
        return f"{self.label}: {self.share:.2%} ± {self.margin:.2%}"


def _bad_then_good(records: Table) -> Finding:
    """The smallest lambda ends above 5 % of its first error and worse than all others, the two largest below."""
    paper = records.where(algorithm=PAPER)
    weights, errors = curves.by_seed(curves.last(paper), "weight")
    _, first = curves.by_seed(paper.where(step=0), "weight")
    labels = [f"{weight:g}" for weight in weights]
    endings = [_Ending(label, *claims.mean_interval(errors[:, i] / first[:, i])) for i, label in enumerate(labels)]
    shares = ", ".join(map(str, endings))
    numbers = f"final error by λ as a share of the first: {shares}; {_diverged(records)}"
    test = (
        f"95 % intervals below {_CONVERGED:.0%} for the two largest λ and above it for the smallest, and t intervals "
        f"({claims.LEVEL:.0%} for all together) of the smallest against the others, {len(errors)} seeds"
    )
    if len(labels) < 2:
        return Finding("within noise", numbers, test, "One level is neither small nor large.")
    steps = [
        claims.compare(errors[:, 0], errors[:, i], f"λ {labels[0]} to {label}", len(labels) - 1)
        for i, label in enumerate(labels[1:], 1)
    ]
    verdict, why = _joined(steps, endings[0], endings[1:][-2:])
    return Finding(verdict, numbers, test, why)


def _joined(steps: list[claims.Comparison], small: _Ending, large: list[_Ending]) -> tuple[Verdict, str]:
    """Every step must be down, the smallest lambda end far away and the large ones near."""
    against = [f"the error does not fall from {step}" for step in steps if step.sign() > 0]
    if small.share + small.margin < _CONVERGED:
        against.append(f"the smallest λ comes down to a small share of its first error, too ({small})")
    against += [f"the error ends far away at λ = {each}" for each in large if each.share - each.margin > _CONVERGED]
    if against:
        return "does not hold", f"Against it: {'; '.join(against)}."
    unclear = [f"from {step}" for step in steps if step.sign() >= 0]
    unclear += [f"from {_CONVERGED:.0%} at λ {each}" for each in (small, *large) if _near(each)]
    return ("within noise", f"No significant difference {', '.join(unclear)}.") if unclear else ("holds", "")


def _near(ending: _Ending) -> bool:
    """Cannot be told from the share that counts as converged; of one seed nothing can."""
    return not abs(ending.share - _CONVERGED) > ending.margin


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
    ratios = first.mean(axis=0) / second.mean(axis=0)
    numbers = ", ".join(
        f"λ = {weight:g}: {first[:, i].mean():.3g} and {second[:, i].mean():.3g}" for i, weight in enumerate(weights)
    )
    taken = f"{_at(one, budget)['samples'][0]:,} and {_at(two, budget)['samples'][0]:,} samples"
    text = f"errors of Algorithms 1 and 2 at {taken}: {numbers}"
    test = f"t intervals at every λ, {claims.LEVEL:.0%} for all together, {len(first)} seeds"
    against = [step for step in steps if step.sign() > 0]
    if against:
        better = [f"{ratio:.2g} at {step.label}" for step, ratio in zip(steps, ratios, strict=True) if step.sign() < 0]
        rest = f" Elsewhere it is smaller, by factors of {', '.join(better)}." if better else ""
        return Finding(
            "does not hold", text, test, f"Algorithm 2's error is larger at {', '.join(map(str, against))}.{rest}"
        )
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
                _median(_complete(run), weight)
                if algorithm == LITERAL
                else curves.mean_curve(_complete(run), "step", curves.weight_key(weight), bands=bands)
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
        "some runs: its panel shows the median of those that reach the end."
    )
    return Figure("markovian", f"{TITLE} (p = {stay:g})", caption, _reading(stay, here), tuple(panels))


def _median(records: Table, weight: float) -> Curve:
    """What is typical of runs of which some are astronomically far away."""
    x, values = curves.by_seed(records, "step")
    return Curve(curves.weight_key(weight), x, np.median(values, axis=0), name="median")


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
        f"At p = {stay:g} Algorithm 2 (with V projected) ends at {ends}; {_diverged(records)}. The "
        f"error of our default after the same transitions is smaller by factors of {ratios.min():.2g} to "
        f"{ratios.max():.2g}."
    )


EXPERIMENT = Experiment("markovian", TITLE, Params, tasks, measure, figure, check)
