"""Figure "statistical errors": Algorithm 3 on models estimated from data, and Theorem 3.2's bounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.paper import claims, curves
from robustmdp.paper.claims import Finding
from robustmdp.paper.figures import Curve, Key, Panel
from robustmdp.paper.params import AscentSteps, OnChain, Penalties, Replications, Sweeps, changes
from robustmdp.paper.runs import algorithm_3, build_chain, build_penalty, solve_exactly
from robustmdp.paper.work import Drawing, Experiment, Item, Judgements, combine, rows, seed_groups, timed
from robustmdp.table import Table

if TYPE_CHECKING:
    from robustmdp.models import MDP

_FIRST_STAGE = 10.0  # the first stage lasts while the error is this many times its last value
_STRAIGHT = 0.99  # R^2 of log error against iterations, above which a fall counts as linear
_FLAT = 0.05  # relative change over the last tenth of the iterations
_NEARLY_ALL = 0.95  # of the seeds
_ON_A_CURVE, _BY_SIZE, _BY_WEIGHT = "algorithm-3", "exact", "exact-by-weight"
_LEAST_DISCOUNT = 0.75  # that the proof of the lower bound is for
_NEAR = 0.1  # of an exponent in lambda from the bound's
_Sizes = Annotated[tuple[int, ...], "Transitions per pair for the exponent in n"]
_LowWeights = Annotated[tuple[float, ...], "Smaller penalties, where the lower bound grows"]


@dataclass(frozen=True, kw_only=True)
class Params(OnChain, Penalties, Replications):
    """max |V - V*| where V is the solution of an estimated model.

    Rows: method, stay, weight, size, seed, step, error, worst_state.
    The methods are algorithm-3 along its steps, exact by size, and exact-by-weight.
    """

    samples_per_pair: Annotated[int, "Transitions per pair from which the model is estimated"] = 1000
    sweeps: Sweeps = 100
    ascent_steps: AscentSteps = 100
    sizes: _Sizes = (100, 316, 1_000, 3_162, 10_000, 31_623, 100_000)
    low_weights: _LowWeights = (0.01, 0.02, 0.05, 0.1, 0.2)
    quick = changes(seeds=10, sizes=(100, 1_000, 10_000, 100_000))


def tasks(params: Params) -> list[Item]:
    """Curves at one size, and exact solutions at every size and, at that size, for small weights as well."""
    every = sorted({*params.low_weights, *params.weights})
    listed = []
    for method, weights, sizes, steps, inner_steps in (
        (_ON_A_CURVE, params.weights, params.samples_per_pair, params.sweeps, params.ascent_steps),
        (_BY_SIZE, params.weights, params.sizes, 0, 0),
        (_BY_WEIGHT, every, params.samples_per_pair, 0, 0),
    ):
        listed += combine(
            method=method,
            **params.chain,
            weight=weights,
            seeds=seed_groups(params.seeds),
            size=sizes,
            divergence=params.divergence,
            steps=steps,
            inner_steps=inner_steps,
        )
    return listed


@timed
def measure(item: Item) -> Table:
    """Errors of some replications."""
    mdp, ambiguity = build_chain(item), build_penalty(item)
    truth = solve_exactly(mdp, ambiguity).value
    tables = []
    for seed in item["seeds"]:
        guess = estimate_model(mdp, item["size"], seed)
        if item["method"] == _ON_A_CURVE:
            values = np.array(list(algorithm_3(guess, ambiguity, item["steps"], item["inner_steps"])))
        else:
            values = solve_exactly(guess, ambiguity).value[None]
        errors = np.abs(values - truth)
        columns = {"error": errors.max(axis=1), "worst_state": errors.argmax(axis=1) + 1}
        samples = item["size"] * mdp.n_pairs
        tables.append(rows(item, seed=seed, samples=samples, step=np.arange(len(errors)), **columns))
    return Table.concat(tables)


def estimate_model(mdp: MDP, samples_per_pair: int, seed: int) -> MDP:
    """The model of relative frequencies; the same for every weight, so that weights can be compared seed by seed."""
    from robustmdp.models import MDP

    rng = np.random.default_rng([seed, samples_per_pair])
    counts = np.zeros(mdp.nnz)
    for start, stop in zip(mdp.indptr[:-1], mdp.indptr[1:], strict=True):
        counts[start:stop] = rng.multinomial(samples_per_pair, mdp.probabilities[start:stop])
    seen = counts > 0
    pairs = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.indptr))[seen]
    return MDP.from_rows(
        mdp.states[pairs],
        mdp.actions[pairs],
        mdp.indices[seen],
        counts[seen] / samples_per_pair,
        mdp.rewards[pairs],
        mdp.discount,
        n_states=mdp.n_states,
    )


def judge(records: Table) -> Judgements:
    """Claims 2, 3, 4 and 26."""
    found: Judgements = []
    setting = "n = {:,} transitions per pair".format
    along, by_weight = records.where(method=_ON_A_CURVE), records.where(method=_BY_WEIGHT)
    if len(by_weight) and by_weight["discount"][0] > _LEAST_DISCOUNT:
        size = by_weight["size"][0]
        found.append((26, f"exact solutions, {setting(size)}", _judge_beside_lower_bound(by_weight)))
    if len(along):
        size = along["size"][0]
        found += [
            (2, setting(size), _judge_stages(along)),
            (3, setting(size), _judge_growth(along)),
            (4, setting(size), _judge_first_stage(along)),
        ]
    return found


def _judge_stages(records: Table) -> Finding:
    """In nearly every run, at every lambda."""
    test = (
        f"at every λ, in {_NEARLY_ALL:.0%} of the seeds: R² ≥ {_STRAIGHT:g} of log error while its mean is over "
        f"{_FIRST_STAGE:g} times its last value, and a change under {_FLAT:.0%} over the last tenth"
    )
    parts, complaints = [], []
    for (weight,), of in records.groups("weight"):
        steps, errors = curves.by_seed(of, "step")
        length = _first_stage(errors)
        if length < 3:
            return Finding("within noise", "", test, f"The first stage is too short to judge at λ = {weight:g}.")
        straight = np.array([_straightness(steps[:length], each[:length]) for each in errors])
        changes = np.abs(errors[:, -1] - errors[:, -1 - max(1, len(steps) // 10)]) / errors[:, -1]
        for passed, name in ((straight >= _STRAIGHT, "straight at first"), (changes <= _FLAT, "flat at the end")):
            if passed.mean() < _NEARLY_ALL:
                complaints.append(f"at λ = {weight:g} only {passed.mean():.0%} of the curves are {name}")
        parts.append(f"{weight:g}: {np.median(straight):.4f} and {np.median(changes):.1%}")
    against = f"Against it: {'; '.join(complaints)}." if complaints else ""
    return claims.conclude(f"median R² and last change by λ: {', '.join(parts)}", test, against)


def _first_stage(errors: FloatArray) -> int:
    """How many iterations the mean error takes to come near its last value."""
    mean = errors.mean(axis=0)
    return int(np.flatnonzero(mean <= _FIRST_STAGE * mean[-1])[0])


def _straightness(steps: FloatArray, error: FloatArray) -> float:
    """R^2 of a straight line through log error."""
    slope, intercept = np.polyfit(steps, np.log(error), 1)
    rest = np.log(error) - slope * steps - intercept
    return 1.0 - float(rest @ rest) / float(np.sum((np.log(error) - np.log(error).mean()) ** 2))


def _judge_growth(records: Table) -> Finding:
    weights, errors = curves.by_seed(curves.last(records), "weight")
    error = claims.trend(errors, weights, 1, "final error", "λ", parts=2)
    interval = claims.width_trend(errors, weights, 1, "λ", parts=2)
    return claims.together([("error", error), ("interval", interval)])


def _judge_beside_lower_bound(records: Table) -> Finding:
    """Exponents in lambda of error and bound, where the bound grows and where it is flat."""
    discount = float(records["discount"][0])
    flat = (2.0 * discount - 1.0) / (16.0 * discount * (1.0 - discount))
    weights, errors = curves.by_seed(records, "weight")
    bounds = _lower_bound(records, weights)
    test = (
        f"exponent in λ within {_NEAR:g} of the bound's, bootstrap over {len(errors)} seeds, "
        f"{claims.LEVEL:.0%} for both halves together"
    )
    parts = []
    for name, chosen in ((f"λ < {flat:.3g}", weights < flat), (f"λ ≥ {flat:.3g}, where it is flat", weights >= flat)):
        if chosen.sum() < 2:
            parts.append((name, Finding("within noise", "one level", test, "One level shows no exponent.")))
            continue
        fitted = claims.fit_exponent(weights[chosen], errors[:, chosen], claims.LEVEL / 2)
        wanted = curves.exponent(weights[chosen], bounds[chosen])[0]
        ratios = errors.mean(axis=0)[chosen] / bounds[chosen]
        numbers = (
            f"exponents of error and bound {fitted} and {wanted:.2f}; "
            f"error over bound {ratios.min():.2g} to {ratios.max():.2g}"
        )
        why = f"The exponent of the error is {fitted}, that of the bound {wanted:.2f}."
        parts.append((name, claims.explain(claims.comes_near(fitted, wanted, _NEAR), numbers, test, why)))
    return claims.together(parts)


def _lower_bound(records: Table, weights: FloatArray) -> FloatArray:
    """The error of order sqrt(samples(1)/n): an error of 1 needs samples(1), and samples go like 1/error^2."""
    from robustmdp import theory

    samples, world = int(records["samples"][0]), _world_of(records)
    needed = [theory.statistical_lower_bound(1.0, weight=float(weight), **world) for weight in weights]
    return np.sqrt(np.array(needed) / samples)


def _world_of(records: Table) -> dict[str, Any]:
    pairs = int(records["samples"][0]) // int(records["size"][0])
    return {"n_pairs": pairs, "discount": float(records["discount"][0])}


def _judge_first_stage(records: Table) -> Finding:
    """The factor per iteration over the first stage, seed by seed; the same iterations for every lambda."""
    groups = [(weight, *curves.by_seed(of, "step")) for (weight,), of in records.groups("weight")]
    length = min(_first_stage(errors) for _, _, errors in groups)
    if length < 3:
        return Finding("within noise", "", "log slope of the first stage", "The first stage is too short to judge.")
    slopes = [np.polyfit(steps[:length], np.log(errors[:, :length]).T, 1)[0] for _, steps, errors in groups]
    rates = np.exp(np.array(slopes).T)
    means = rates.mean(axis=0)
    finding = claims.trend(rates, [weight for weight, *_ in groups], 1, "factor per iteration", "λ")
    numbers = (
        f"{finding.numbers}; over iterations 0 to {length - 1}, mean factors differ by at most "
        f"{means.max() - means.min():.2g}"
    )
    if finding.verdict == "holds":
        return finding._replace(numbers=numbers)
    discount = float(records["discount"][0])
    why = f" Every mean factor is within {np.abs(means - discount).max():.1g} of the discount, {discount:g}."
    worst = records.take(records["step"] < length).values("worst_state")
    if len(worst) == 1:
        why += f" All the while the largest error is that of state s{worst[0]}."
    return finding._replace(numbers=numbers, why=finding.why + why)


def draw(records: Table) -> Drawing:
    """Learning curves with the zoomed inset, final error against lambda with the bounds, and the exponent in n."""
    along, sizes = records.where(method=_ON_A_CURVE), records.where(method=_BY_SIZE)
    end = float(along["step"].max())
    learning = curves.mean_curves(along, "weight", "step", "λ")
    last = curves.points_by_weight(curves.last(along))
    by_size = curves.mean_curves(sizes, "weight", "size", "λ", style="line+points")
    error = "max |V_T − V*|"
    panels = (
        Panel("Learning curves", "iterations", "max |Vₜ − V*|", learning, inset=(0.6 * end, end)),
        Panel("Final deviation", "λ", error, last),
        Panel("Beside Theorem 3.2", "λ", error, _draw_bounds(along), "log", "log"),
        Panel("Error against data", "transitions per pair n", "max |V − V*|", by_size, "log", "log"),
    )
    caption = (
        "Left: deviation of Algorithm 3's value on the estimated model, against iterations; shaded: 95 % confidence "
        "interval; top right: the last iterations enlarged. Then: the last deviation with its 95 % interval against λ, "
        "the same beside Theorem 3.2's bounds (the lower one in order only), and the error of the exact solution "
        "against the number n of transitions per pair."
    )
    return caption, _read(along, by_size), panels


def _draw_bounds(along: Table) -> tuple[Curve, ...]:
    from robustmdp import theory

    weights, errors = curves.by_seed(curves.last(along), "weight")
    drawn = [Curve(Key("line", "measured"), weights, errors.mean(axis=0), style="line+points")]
    if along["divergence"][0] != "chi2":
        return tuple(drawn)
    upper = partial(theory.statistical_upper_bound, int(along["size"][0]), **_world_of(along))
    forms: dict[str, Literal["sharp", "printed"]] = {
        "upper bound, sharpened": "sharp",
        "upper bound as printed": "printed",
    }
    for name, form in forms.items():
        values = np.array([upper(weight=float(weight), form=form) for weight in weights])
        drawn.append(Curve(Key("line", name), weights, values, style="dashed"))
    if along["discount"][0] > _LEAST_DISCOUNT:
        lower = _lower_bound(along, weights)
        drawn.append(Curve(Key("line", "lower bound, in order"), weights, lower, style="dotted"))
    return tuple(drawn)


def _read(along: Table, by_size: tuple[Curve, ...]) -> str:
    weights, errors = curves.by_seed(curves.last(along), "weight")
    means = errors.mean(axis=0)
    slopes = [curves.exponent(curve.x, curve.y)[0] for curve in by_size if len(curve.x) > 1]
    fitted = f" The error falls like n^{min(slopes):.2f} to n^{max(slopes):.2f} (theory: n^-0.5)." if slopes else ""
    return (
        f"At p = {along['stay'][0]:g} the error that stays is {means[0]:.3g} at λ = {weights[0]:g} and "
        f"{means[-1]:.3g} at λ = {weights[-1]:g}; it is largest at λ = {weights[means.argmax()]:g} "
        f"({means.max():.3g}).{fitted}"
    )


EXPERIMENT = Experiment("statistical", "Statistical errors", Params, tasks, measure, draw, judge)
