"""Figure "convergence": Algorithm 1 with a generative model, for every lambda, and the bound of Theorem 4.2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.paper import claims, curves
from robustmdp.paper.claims import Finding
from robustmdp.paper.figures import Curve, Key, Panel
from robustmdp.paper.params import InnerSteps, OnChain, Penalties, Replications, Rounds, changes
from robustmdp.paper.runs import build_learner, build_penalty, trace_errors
from robustmdp.paper.work import Drawing, Experiment, Item, Judgements, combine, seed_groups, timed
from robustmdp.table import Table

_PAIRS = 20  # of the chain
_DENSE = 50  # iterations of which each is kept
_SHARES = (0.5, 0.2, 0.1)  # of the first error, by which speed is measured


@dataclass(frozen=True, kw_only=True)
class Params(OnChain, Penalties, Replications):
    """max |Q - Q*| along Algorithm 1 as printed.

    Rows: stay, weight, inner_steps, seed, step, samples, error.
    """

    rounds: Rounds = 1000
    inner_steps: InnerSteps = 100
    quick = changes(seeds=10, rounds=300)


def tasks(params: Params) -> list[Item]:
    """One per world, weight and group of seeds."""
    return combine(
        **params.chain,
        **params.penalties,
        inner_steps=params.inner_steps,
        seeds=seed_groups(params.seeds),
        steps=params.rounds,
    )


@timed
def measure(item: Item) -> Table:
    """Some replications of Algorithm 1."""
    learner = build_learner("algorithm-1", build_penalty(item), item["inner_steps"])
    return trace_errors(item, learner, start=1.0 / (1.0 - item["discount"]), every=1, dense=_DENSE)


def judge(records: Table) -> Judgements:
    """Claims 5, 6 and 7."""
    setting = f"T' = {records['inner_steps'][0]}, T = {records['step'].max():,}"
    weights, errors = curves.by_seed(curves.last(records), "weight")
    final = claims.trend(errors, weights, -1, "final error", "λ")
    if final.why:
        final = final._replace(why=final.why + _bias_or_noise(errors, curves.labels(weights)))
    return [
        (5, setting, _compare_speed(records)),
        (6, setting, final),
        (7, setting, _judge_interval(errors, curves.labels(weights))),
    ]


def _compare_speed(records: Table) -> Finding:
    """Iterations after which the error stays below a share of the first one; the share is our choice."""
    groups = [(weight, *curves.by_seed(of, "step")) for (weight,), of in records.groups("weight")]
    parts = []
    for share in _SHARES:
        times = np.array([[curves.time_below(steps, each, share) for each in errors] for _, steps, errors in groups])
        what = f"number of iterations to {share:.0%} of the first error"
        weights = [weight for weight, *_ in groups]
        finding = claims.trend(times.T, weights, 1, what, "λ", parts=len(_SHARES))
        never = int(np.sum(times >= records["step"].max()))
        parts.append((f"to {share:.0%}", finding._replace(numbers=f"{finding.numbers}; never in {never} runs")))
    found = claims.together(parts)
    if len({finding.verdict for _, finding in parts}) == 1:
        return found
    return found._replace(verdict="within noise", why=f"It depends on what is called fast. {found.why}")


def _bias_or_noise(errors: FloatArray, labels: list[str]) -> str:
    """How much of the error all seeds share, at both ends."""
    shares = claims.spread(errors).mean(axis=0) / errors.mean(axis=0)
    return (
        f" Seeds deviate from the median error by {shares[0]:.1%} of the mean at λ {labels[0]} and by {shares[-1]:.1%} "
        f"at λ {labels[-1]}: what they share is bias, the rest is noise."
    )


def _judge_interval(errors: FloatArray, labels: list[str]) -> Finding:
    """Wider up to the last but one level, narrower at the last."""
    if len(labels) < 3:
        return Finding("within noise", "", "growth and a drop need three levels", "Too few levels to judge.")
    return claims.together(
        [
            (f"growth up to {labels[-2]}", claims.width_trend(errors[:, :-1], labels[:-1], 1, "λ", parts=2)),
            (f"drop at {labels[-1]}", claims.width_trend(errors[:, -2:], labels[-2:], -1, "λ", parts=2)),
        ]
    )


def draw(records: Table) -> Drawing:
    """The paper's left and middle panels, and the final error beside the bound."""
    axes = ("iterations", "max |Qₜ − Q*|")
    final = curves.points_by_weight(curves.last(records))
    panels = (
        Panel("With 95 % bands", *axes, curves.mean_curves(records, "weight", "step", "λ")),
        Panel("Without bands", *axes, curves.mean_curves(records, "weight", "step", "λ", bands=False), y_scale="log"),
        Panel("Final error", "λ", "max |Q_T − Q*|", final, x_scale="log"),
        _draw_bounds(records),
    )
    caption = (
        f"Deviation of Algorithm 1's Q against outer iterations with T' = {records['inner_steps'][0]}, with 95 % "
        "confidence bands and, on a logarithmic axis, without; the final deviation against λ; and the same beside the "
        "bound of Theorem 4.2."
    )
    return caption, _read(records), panels


def _draw_bounds(records: Table) -> Panel:
    weights, errors = curves.by_seed(curves.last(records), "weight")
    drawn = [Curve(Key("line", "measured"), weights, errors.mean(axis=0), style="line+points")]
    steps, inner, discount = int(records["step"].max()), int(records["inner_steps"][0]), float(records["discount"][0])
    for form, name in (("printed", "bound as printed"), ("true", "bound with true constants")):
        if records["divergence"][0] == "chi2":
            values = np.array([bound(steps, inner, discount, weight, form) for weight in weights])
            drawn.append(Curve(Key("line", name), weights, values, style="dashed"))
    return Panel("Beside Theorem 4.2", "λ", "max |Q_T − Q*|", tuple(drawn), "log", "log")


def bound(steps: int, inner_steps: int, discount: float, weight: float, form: str) -> float:
    """Theorem 4.2 with the paper's constants, or with the true ones and the factor that its proof gives."""
    from robustmdp import theory
    from robustmdp.divergences import ChiSquare

    values = (0.0, 1.0 / (1.0 - discount))
    theta = theory.dual_interval(ChiSquare(), weight, values, "section-4.1")
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


def _read(records: Table) -> str:
    weights, errors = curves.by_seed(curves.last(records), "weight")
    means = errors.mean(axis=0)
    best, worst = int(means.argmin()), int(means.argmax())
    inner = int(records["inner_steps"][0])
    reach = float(np.sum(1.0 / np.sqrt(np.arange(1, inner + 1))))
    largest = 1.0 / (1.0 - float(records["discount"][0]))
    return (
        f"At p = {records['stay'][0]:g} Algorithm 1 ends between {means[best]:.3g} (λ = {weights[best]:g}) and "
        f"{means[worst]:.3g} (λ = {weights[worst]:g}). Each inner loop starts at η = 0 and travels at most "
        f"{reach:.1f} λ in {inner} steps: for λ below {largest / reach:.2g} not as far as the largest value, "
        f"{largest:g}."
    )


EXPERIMENT = Experiment("convergence", "Convergence with a generative model", Params, tasks, measure, draw, judge)
