"""Figure "convergence": Algorithm 1 with a generative model, for every lambda, and the bound of Theorem 4.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.paper import claims, curves
from robustmdp.paper.claims import Claim, Finding
from robustmdp.paper.figures import Curve, Figure, Key, Panel
from robustmdp.paper.params import OnChain, Penalties, Replications
from robustmdp.paper.work import Experiment, Item, build_penalty, product, seed_groups, timed, trace_errors
from robustmdp.table import Table

TITLE = "Convergence with a generative model"
_PAIRS = 20  # of the chain
_DENSE = 50  # iterations of which each is kept
_SHARES = (0.5, 0.2, 0.1)  # of the first error, by which speed is measured


@dataclass(frozen=True, kw_only=True)
class Params(OnChain, Penalties, Replications):
    """max |Q - Q*| along Algorithm 1 as printed.

    Rows: stay, weight, inner_steps, seed, step, samples, error.
    """

    rounds: Annotated[int, "Outer iterations T of Algorithm 1"] = 1000
    inner_steps: Annotated[int, "Inner iterations T' of Algorithm 1"] = 100
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 10, "rounds": 300}


def tasks(params: Params) -> list[Item]:
    """One per world, weight and group of seeds."""
    shared = {"restart": 0.0, "divergence": params.divergence, "discount": params.discount}
    budget = {"steps": params.rounds, "inner_steps": params.inner_steps}
    each = product(stay=params.stay, weight=params.weights, seeds=seed_groups(params.seeds))
    return [{**item, **shared, **budget} for item in each]


@timed
def measure(item: Item) -> Table:
    """Some replications of Algorithm 1."""
    from robustmdp.learning import GenerativeQLearning

    learner = GenerativeQLearning.paper(build_penalty(item), item["inner_steps"])
    return trace_errors(item, learner, start=1.0 / (1.0 - item["discount"]), every=1, dense=_DENSE)


def check(records: Table) -> list[Claim]:
    """Claims 5, 6 and 7."""
    found = []
    for (stay, inner), of in records.groups("stay", "inner_steps"):
        setting = f"T' = {inner}, T = {of['step'].max():,}"
        weights, errors = curves.by_seed(curves.last(of), "weight")
        labels = [f"{weight:g}" for weight in weights]
        found += [
            Claim(5, setting, stay, _speed(of)),
            Claim(6, setting, stay, _final(errors, labels)),
            Claim(7, setting, stay, _interval(errors, labels)),
        ]
    return found


def _speed(records: Table) -> Finding:
    """Iterations after which the error stays below a share of the first one; the share is our choice."""
    parts = []
    for share in _SHARES:
        labels, times = [], []
        for (weight,), of in records.groups("weight"):
            steps, errors = curves.by_seed(of, "step")
            labels.append(f"{weight:g}")
            times.append([curves.time_below(steps, each, share) for each in errors])
        what = f"number of iterations to {share:.0%} of the first error"
        finding = claims.trend(np.array(times).T, labels, 1, what, "λ", parts=len(_SHARES))
        never = int(np.sum(np.array(times) >= records["step"].max()))
        parts.append((f"to {share:.0%}", finding._replace(numbers=f"{finding.numbers}; never in {never} runs")))
    found = claims.together(parts)
    verdicts = {finding.verdict for _, finding in parts}
    if len(verdicts) == 1:
        return found
    return found._replace(verdict="within noise", why=f"It depends on what is called fast. {found.why}")


def _final(errors: FloatArray, labels: list[str]) -> Finding:
    finding = claims.trend(errors, labels, -1, "final error", "λ")
    return finding._replace(why=finding.why + _bias_or_noise(errors, labels)) if finding.why else finding


def _bias_or_noise(errors: FloatArray, labels: list[str]) -> str:
    """How much of the error all seeds share, at both ends."""
    shares = claims.spread(errors).mean(axis=0) / errors.mean(axis=0)
    return (
        f" Seeds deviate from the median error by {shares[0]:.1%} of the mean at λ {labels[0]} and by {shares[-1]:.1%} "
        f"at λ {labels[-1]}: what they share is bias, the rest is noise."
    )


def _interval(errors: FloatArray, labels: list[str]) -> Finding:
    """Wider up to the last but one level, narrower at the last."""
    if len(labels) < 3:
        return Finding("within noise", "", "growth and a drop need three levels", "Too few levels to judge.")
    return claims.together(
        [
            (f"growth up to {labels[-2]}", claims.width_trend(errors[:, :-1], labels[:-1], 1, "λ", parts=2)),
            (f"drop at {labels[-1]}", claims.width_trend(errors[:, -2:], labels[-2:], -1, "λ", parts=2)),
        ]
    )


def figure(records: Table) -> Figure:
    """The paper's left and middle panels, and the final error beside the bound."""
    stay = curves.shown(records)
    here = records.where(stay=stay)
    groups = [(curves.weight_key(weight), of) for (weight,), of in here.groups("weight")]
    labels = ("iterations", "max |Qₜ − Q*|")
    banded = tuple(curves.mean_curve(of, "step", key) for key, of in groups)
    plain = tuple(curves.mean_curve(of, "step", key, bands=False) for key, of in groups)
    panels = (
        Panel("With 95 % bands", *labels, banded),
        Panel("Without bands", *labels, plain, y_scale="log"),
        Panel("Final error", "λ", "max |Q_T − Q*|", curves.points_by_weight(curves.last(here)), x_scale="log"),
        _beside_the_bound(here),
    )
    caption = (
        f"Deviation of Algorithm 1's Q against outer iterations with T' = {here['inner_steps'][0]}, with 95 % "
        "confidence bands and, on a logarithmic axis, without; the final deviation against λ; and the same beside the "
        "bound of Theorem 4.2."
    )
    return Figure("convergence", f"{TITLE} (p = {stay:g})", caption, _reading(stay, here), panels)


def _beside_the_bound(records: Table) -> Panel:
    weights, errors = curves.by_seed(curves.last(records), "weight")
    drawn = [Curve(Key("line", "measured"), weights, errors.mean(axis=0), style="line+points")]
    if records["divergence"][0] == "chi2":
        for form, name in (("printed", "bound as printed"), ("true", "bound with true constants")):
            steps, inner = int(records["step"].max()), int(records["inner_steps"][0])
            discount = float(records["discount"][0])
            values = np.array([bound(steps, inner, discount, weight, form) for weight in weights])
            drawn.append(Curve(Key("line", name), weights, values, style="dashed"))
    return Panel("Beside Theorem 4.2", "λ", "max |Q_T − Q*|", tuple(drawn), "log", "log")


def bound(steps: int, inner_steps: int, discount: float, weight: float, form: str) -> float:
    """Theorem 4.2 with the paper's constants, or with the true ones and the factor that its proof gives."""
    from robustmdp import theory
    from robustmdp.divergences import ChiSquare

    values = (0.0, 1.0 / (1.0 - discount))
    theta = (-2.0 * weight, 2.0 / (1.0 - discount) + 2.0 * weight)
    world = (ChiSquare(), weight, values, theta)
    return theory.generative_bound(
        steps,
        inner_steps,
        n_pairs=_PAIRS,
        discount=discount,
        diameter=theta[1] - theta[0],
        gradient_bound=theory.gradient_bound(*world, form=form),  # type: ignore[arg-type]
        outcome_bound=theory.outcome_bound(*world, form=form),  # type: ignore[arg-type]
        form="printed" if form == "printed" else "proved",
    )


def _reading(stay: float, records: Table) -> str:
    weights, errors = curves.by_seed(curves.last(records), "weight")
    means = errors.mean(axis=0)
    best, worst = int(means.argmin()), int(means.argmax())
    inner = int(records["inner_steps"][0])
    reach = float(np.sum(1.0 / np.sqrt(np.arange(1, inner + 1))))
    largest = 1.0 / (1.0 - float(records["discount"][0]))
    return (
        f"At p = {stay:g} Algorithm 1 ends between {means[best]:.3g} (λ = {weights[best]:g}) and {means[worst]:.3g} "
        f"(λ = {weights[worst]:g}). Each inner loop starts at η = 0 and travels at most {reach:.1f} λ in {inner} "
        f"steps: for λ below {largest / reach:.2g} not as far as the largest value, {largest:g}."
    )


EXPERIMENT = Experiment("convergence", TITLE, Params, tasks, measure, figure, check)
