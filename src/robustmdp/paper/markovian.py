"""Figure "Markovian": Algorithm 2 on one trajectory, as printed and as users get it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from robustmdp.paper import claims, curves
from robustmdp.paper.claims import Finding
from robustmdp.paper.figures import Curve, Key, Panel
from robustmdp.paper.params import InnerSteps, OnLoop, Penalties, Replications, Rounds, Transitions, changes
from robustmdp.paper.runs import build_learner, build_penalty, trace_errors
from robustmdp.paper.work import Drawing, Experiment, Item, Judgements, combine, seed_groups, timed
from robustmdp.table import Table

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

    transitions: Transitions = 4_000_000
    behaviour: Annotated[float, "Probability pi of action 1"] = 0.5
    rounds: Rounds = 1000
    inner_steps: InnerSteps = 100
    quick = changes(seeds=8, transitions=200_000, rounds=100)


def tasks(params: Params) -> list[Item]:
    """One per algorithm, world, weight and group of seeds."""
    listed = []
    for algorithm in NAMES:
        if algorithm == LITERAL and params.divergence != "chi2":
            continue  # to the letter, nothing keeps the others inside their domain
        is_first = algorithm == ALGORITHM_1
        listed += combine(
            algorithm=algorithm,
            **params.chain,
            **params.penalties,
            seeds=seed_groups(params.seeds),
            behaviour=params.behaviour,
            steps=params.rounds if is_first else params.transitions,
            inner_steps=params.inner_steps if is_first else 0,
        )
    return listed


@timed
def measure(item: Item) -> Table:
    """Some replications of one algorithm; ours starts at 0, the paper's at the largest value."""
    penalty, start = build_penalty(item), 1.0 / (1.0 - item["discount"])
    behaviour = np.array([item["behaviour"], 1.0 - item["behaviour"]])
    if item["algorithm"] == ALGORITHM_1:
        learner = build_learner("algorithm-1", penalty, item["inner_steps"])
    elif item["algorithm"] == DEFAULT:
        learner, start = build_learner("markovian", penalty, behaviour=behaviour), 0.0
    else:
        is_literal = item["algorithm"] == LITERAL
        learner = build_learner("algorithm-2", penalty, behaviour=behaviour, literal=is_literal)
    return trace_errors(item, learner, start=start, every=max(1, item["steps"] // (10 * _POINTS)), dense=10)


def judge(records: Table) -> Judgements:
    """Claims 9, 10 and 22, about Algorithm 2 with V projected; to the letter it leaves the numbers."""
    world = f"q = {records['restart'][0]:g}, π = {records['behaviour'][0]:g}"
    steps = int(records.where(algorithm=PAPER)["step"].max())
    found = [(9, f"{NAMES[PAPER]}, T = {steps:,}, {world}", _bad_then_good(records))]
    setting = f"{NAMES[PAPER]}, and Algorithm 1 in the same world, {world}"
    for number, of in ((10, records), (22, records.take(records["weight"] >= _NOT_EXEMPT))):
        if len(of.where(algorithm=ALGORITHM_1)):
            found.append((number, setting, _against_algorithm_1(of)))
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
    shares = errors / curves.by_seed(paper.where(step=0), "weight")[1]
    names = curves.labels(weights)
    endings = [_Ending(*each) for each in zip(names, shares.mean(axis=0), curves.half_width(shares), strict=True)]
    numbers = f"final error by λ as a share of the first: {', '.join(map(str, endings))}; {_count_diverged(records)}"
    test = (
        f"95 % intervals below {_CONVERGED:.0%} for the two largest λ and above it for the smallest, and t intervals "
        f"({claims.LEVEL:.0%} for all together) of the smallest against the others, {len(errors)} seeds"
    )
    if len(names) < 2:
        return Finding("within noise", numbers, test, "One level is neither small nor large.")
    others = [f"λ {names[0]} to {name}" for name in names[1:]]
    steps = claims.compare_each(np.repeat(errors[:, :1], len(others), axis=1), errors[:, 1:], others)
    small, large = endings[0], endings[1:][-2:]
    against = [f"the error does not fall from {step}" for step in steps if step.sign() > 0]
    if small.share + small.margin < _CONVERGED:
        against.append(f"the smallest λ comes down to a small share of its first error, too ({small})")
    against += [f"the error ends far away at λ = {each}" for each in large if each.share - each.margin > _CONVERGED]
    unclear = [f"from {step}" for step in steps if step.sign() >= 0]
    # Of one seed nothing can be told.
    near = [each for each in (small, *large) if not abs(each.share - _CONVERGED) > each.margin]
    unclear += [f"from {_CONVERGED:.0%} at λ {each}" for each in near]
    return claims.conclude(
        numbers,
        test,
        f"Against it: {'; '.join(against)}." if against else "",
        f"No significant difference {', '.join(unclear)}." if unclear else "",
    )


def _count_diverged(records: Table) -> str:
    literal = records.where(algorithm=LITERAL)
    if not len(literal):
        return "to the letter only chi-square can run"
    shares = []
    for (weight,), of in literal.groups("weight"):
        diverged = of.where(status="diverged").values("seed")
        shares.append(f"{weight:g}: {len(diverged)}/{len(of.values('seed'))}")
    return f"runs that diverge to the letter {', '.join(shares)}"


def _against_algorithm_1(records: Table) -> Finding:
    """Errors at the last record up to 1e6 samples (or the most that both have)."""
    runs = [records.where(algorithm=algorithm) for algorithm in (ALGORITHM_1, PAPER)]
    budget = min(_SAMPLES_OF_THE_CLAIM, *(int(of["samples"].max()) for of in runs))
    one, two = (curves.last(of.take(of["samples"] <= budget)) for of in runs)
    weights, first = curves.by_seed(one, "weight")
    _, second = curves.by_seed(two, "weight")
    what = f"of Algorithms 1 and 2 at {one['samples'][0]:,} and {two['samples'][0]:,} samples"
    complaint = "Algorithm 2's error is larger"
    found, steps = claims.smaller_at_every_weight(weights, first, second, what, complaint)
    ratios = first.mean(axis=0) / second.mean(axis=0)
    better = [f"{ratio:.2g} at {step.label}" for step, ratio in zip(steps, ratios, strict=True) if step.sign() < 0]
    if found.verdict == "does not hold" and better:
        return found._replace(why=f"{found.why} Elsewhere it is smaller, by factors of {', '.join(better)}.")
    return found


def draw(records: Table) -> Drawing:
    """One panel per algorithm on the trajectory; the paper's, with bands and without, first."""
    panels = []
    for algorithm, bands in ((PAPER, True), (PAPER, False), (DEFAULT, True), (LITERAL, True)):
        of = records.where(algorithm=algorithm)
        runs = [(weight, _take_complete(run)) for (weight,), run in of.take(np.isfinite(of["error"])).groups("weight")]
        drawn = tuple(
            _draw_median(run, weight)
            if algorithm == LITERAL
            else curves.mean_curve(run, "step", Key("λ", weight), bands=bands)
            for weight, run in runs
            if len(run)
        )
        if drawn:
            title = NAMES[algorithm] + ("" if bands else ", without bands")
            panels.append(Panel(title, "transitions", "max |Qₜ − Q*|", drawn, y_scale="log"))
    caption = (
        f"Deviation of Q against transitions of one trajectory with π = {records['behaviour'][0]:g}, "
        f"q = {records['restart'][0]:g}; shaded: 95 % confidence interval. To the letter, Algorithm 2 leaves the "
        "numbers in some runs: its panel shows the median of those that reach the end."
    )
    return caption, _read(records), panels


def _draw_median(records: Table, weight: float) -> Curve:
    """What is typical of runs of which some are astronomically far away."""
    x, values = curves.by_seed(records, "step")
    return Curve(Key("λ", weight), x, np.median(values, axis=0), name="median")


def _take_complete(records: Table) -> Table:
    """The runs that reached the last step."""
    done = curves.last(records)["seed"]
    return records.take(np.isin(records["seed"], done) & (records["status"] != "diverged"))


def _read(records: Table) -> str:
    weights, paper = curves.by_seed(curves.last(records.where(algorithm=PAPER)), "weight")
    _, default = curves.by_seed(curves.last(records.where(algorithm=DEFAULT)), "weight")
    ratios = paper.mean(axis=0) / default.mean(axis=0)
    ends = f"{paper[:, 0].mean():.3g} at λ = {weights[0]:g} and {paper[:, -1].mean():.3g} at λ = {weights[-1]:g}"
    return (
        f"At p = {records['stay'][0]:g} Algorithm 2 (with V projected) ends at {ends}; {_count_diverged(records)}. The "
        f"error of our default after the same transitions is smaller by factors of {ratios.min():.2g} to "
        f"{ratios.max():.2g}."
    )


EXPERIMENT = Experiment("markovian", "Convergence on one trajectory", Params, tasks, measure, draw, judge)
