"""Figure "statistical errors": Algorithm 3 on models estimated from data, and Theorem 3.2's bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.paper import claims, curves
from robustmdp.paper.claims import Claim, Finding, Verdict
from robustmdp.paper.figures import Curve, Figure, Key, Panel
from robustmdp.paper.params import OnChain, Penalties, Replications
from robustmdp.paper.work import (
    Experiment,
    Item,
    build_chain,
    build_penalty,
    product,
    rows,
    seed_groups,
    solve_exactly,
    timed,
)
from robustmdp.table import Table

if TYPE_CHECKING:
    from robustmdp.models import MDP


TITLE = "Statistical errors"
_FIRST_STAGE = 10.0  # the first stage lasts while the error is this many times its last value
_STRAIGHT = 0.99  # R^2 of log error against iterations, above which a fall counts as linear
_FLAT = 0.05  # relative change over the last tenth of the iterations
_NEARLY_ALL = 0.95  # of the seeds
_ON_A_CURVE, _BY_SIZE, _BY_WEIGHT = "algorithm-3", "exact", "exact-by-weight"
_LEAST_DISCOUNT = 0.75  # that the proof of the lower bound is for
_NEAR = 0.1  # of an exponent in lambda from the bound's


@dataclass(frozen=True, kw_only=True)
class Params(OnChain, Penalties, Replications):
    """max |V - V*| where V is the solution of an estimated model.

    Rows: method, stay, weight, size, seed, step, error, worst_state.
    The methods are algorithm-3 along its steps, exact by size, and exact-by-weight.
    """

    samples_per_pair: Annotated[int, "Transitions per pair from which the model is estimated"] = 1000
    sweeps: Annotated[int, "Outer iterations T of Algorithm 3"] = 100
    ascent_steps: Annotated[int, "Inner iterations T' of Algorithm 3"] = 100
    sizes: Annotated[tuple[int, ...], "Transitions per pair for the exponent in n"] = (
        100,
        316,
        1_000,
        3_162,
        10_000,
        31_623,
        100_000,
    )
    low_weights: Annotated[tuple[float, ...], "Smaller penalties, where the lower bound grows"] = (
        0.01,
        0.02,
        0.05,
        0.1,
        0.2,
    )
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 10, "sizes": (100, 1_000, 10_000, 100_000)}


def tasks(params: Params) -> list[Item]:
    """Curves at one size, and exact solutions at every size and, at that size, for small weights as well."""
    shared = {"restart": 0.0, "discount": params.discount, "divergence": params.divergence}
    budget = {"steps": params.sweeps, "inner_steps": params.ascent_steps}
    groups = list(seed_groups(params.seeds))
    along = product(method=[_ON_A_CURVE], stay=params.stay, weight=params.weights, seeds=groups)
    sizes = product(method=[_BY_SIZE], stay=params.stay, weight=params.weights, seeds=groups, size=params.sizes)
    every = sorted({*params.low_weights, *params.weights})
    weights = product(method=[_BY_WEIGHT], stay=params.stay, weight=every, seeds=groups, size=[params.samples_per_pair])
    return [{**each, "size": params.samples_per_pair, **shared, **budget} for each in along] + [
        {**each, **shared, "steps": 0, "inner_steps": 0} for each in (*sizes, *weights)
    ]


@timed
def measure(item: Item) -> Table:
    """Errors of some replications."""
    from robustmdp.paper.iterates import algorithm_3

    mdp, ambiguity = build_chain(item), build_penalty(item)
    truth = solve_exactly(mdp, ambiguity).value
    tables = []
    for seed in item["seeds"]:
        guess = estimate_model(mdp, item["size"], seed)
        if item["method"] != _ON_A_CURVE:
            values = solve_exactly(guess, ambiguity).value[None]
        else:
            values = np.array(list(algorithm_3(guess, ambiguity, item["steps"], item["inner_steps"])))
        errors = np.abs(values - truth)
        tables.append(
            rows(
                item,
                seed=seed,
                samples=item["size"] * mdp.n_pairs,
                step=np.arange(len(errors)),
                error=errors.max(axis=1),
                worst_state=errors.argmax(axis=1) + 1,
            )
        )
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


def check(records: Table) -> list[Claim]:
    """Claims 2, 3, 4 and 26."""
    found = [
        Claim(26, f"exact solutions, n = {size:,} transitions per pair", stay, _beside_the_lower_bound(of))
        for (stay, size, discount), of in records.where(method=_BY_WEIGHT).groups("stay", "size", "discount")
        if discount > _LEAST_DISCOUNT
    ]
    for (stay, size), of in records.where(method=_ON_A_CURVE).groups("stay", "size"):
        setting = f"n = {size:,} transitions per pair"
        found += [
            Claim(2, setting, stay, _two_stages(of)),
            Claim(3, setting, stay, _grows(of)),
            Claim(4, setting, stay, _faster_at_first(of)),
        ]
    return found


def _two_stages(records: Table) -> Finding:
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
    numbers = f"median R² and last change by λ: {', '.join(parts)}"
    if complaints:
        return Finding("does not hold", numbers, test, f"Against it: {'; '.join(complaints)}.")
    return Finding("holds", numbers, test)


def _first_stage(errors: FloatArray) -> int:
    """How many iterations the mean error takes to come near its last value."""
    mean = errors.mean(axis=0)
    return int(np.flatnonzero(mean <= _FIRST_STAGE * mean[-1])[0])


def _straightness(steps: FloatArray, error: FloatArray) -> float:
    """R^2 of a straight line through log error."""
    slope, intercept = np.polyfit(steps, np.log(error), 1)
    rest = np.log(error) - slope * steps - intercept
    return 1.0 - float(rest @ rest) / float(np.sum((np.log(error) - np.log(error).mean()) ** 2))


def _grows(records: Table) -> Finding:
    weights, errors = curves.by_seed(curves.last(records), "weight")
    labels = [f"{weight:g}" for weight in weights]
    error = claims.trend(errors, labels, 1, "final error", "λ", parts=2)
    interval = claims.width_trend(errors, labels, 1, "λ", parts=2)
    return claims.together([("error", error), ("interval", interval)])


def _beside_the_lower_bound(records: Table) -> Finding:
    """Exponents in lambda of error and bound, where the bound grows and where it is flat."""
    discount = float(records["discount"][0])
    flat = (2.0 * discount - 1.0) / (16.0 * discount * (1.0 - discount))
    weights, errors = curves.by_seed(records, "weight")
    bounds = _lower_bound(records, weights)
    parts = []
    for name, chosen in ((f"λ < {flat:.3g}", weights < flat), (f"λ ≥ {flat:.3g}, where it is flat", weights >= flat)):
        test = (
            f"exponent in λ within {_NEAR:g} of the bound's, bootstrap over {len(errors)} seeds, "
            f"{claims.LEVEL:.0%} for both halves together"
        )
        if chosen.sum() < 2:
            parts.append((name, Finding("within noise", "one level", test, "One level shows no exponent.")))
            continue
        found = claims.fit_exponent(weights[chosen], errors[:, chosen], claims.LEVEL / 2)
        wanted = curves.exponent(weights[chosen], bounds[chosen])[0]
        ratios = errors.mean(axis=0)[chosen] / bounds[chosen]
        numbers = f"{found} and {wanted:.2f}; error over bound {ratios.min():.2g} to {ratios.max():.2g}"
        verdict: Verdict = "within noise"
        if max(wanted - found.low, found.high - wanted) <= _NEAR:
            verdict = "holds"
        elif found.low > wanted + _NEAR or found.high < wanted - _NEAR:
            verdict = "does not hold"
        why = "" if verdict == "holds" else f"The exponent of the error is {found}, that of the bound {wanted:.2f}."
        parts.append((name, Finding(verdict, f"exponents of error and bound {numbers}", test, why)))
    return claims.together(parts)


def _lower_bound(records: Table, weights: FloatArray) -> FloatArray:
    """The error of order sqrt(samples(1)/n): an error of 1 needs samples(1), and samples go like 1/error^2."""
    from robustmdp import theory

    samples, size = int(records["samples"][0]), int(records["size"][0])
    bound = partial(
        theory.statistical_lower_bound, 1.0, n_pairs=samples // size, discount=float(records["discount"][0])
    )
    return np.sqrt(np.array([bound(weight=float(weight)) for weight in weights]) / samples)


def _faster_at_first(records: Table) -> Finding:
    """The factor per iteration over the first stage, seed by seed; the same iterations for every lambda."""
    groups = [(weight, *curves.by_seed(of, "step")) for (weight,), of in records.groups("weight")]
    length = min(_first_stage(errors) for _, _, errors in groups)
    labels = [f"{weight:g}" for weight, _, _ in groups]
    if length < 3:
        return Finding("within noise", "", "log slope of the first stage", "The first stage is too short to judge.")
    slopes = [np.polyfit(steps[:length], np.log(errors[:, :length]).T, 1)[0] for _, steps, errors in groups]
    rates = np.exp(np.array(slopes).T)
    finding = claims.trend(rates, labels, 1, "factor per iteration", "λ")
    apart = float(rates.mean(axis=0).max() - rates.mean(axis=0).min())
    numbers = f"{finding.numbers}; over iterations 0 to {length - 1}, mean factors differ by at most {apart:.2g}"
    if finding.verdict == "holds":
        return finding._replace(numbers=numbers)
    worst = records.take(records["step"] < length).values("worst_state")
    discount = float(records["discount"][0])
    near = (
        f" Every mean factor is within {np.abs(rates.mean(axis=0) - discount).max():.1g} of the discount, {discount:g}."
    )
    where = f" All the while the largest error is that of state s{worst[0]}." if len(worst) == 1 else ""
    return finding._replace(numbers=numbers, why=finding.why + near + where)


def figure(records: Table) -> Figure:
    """Learning curves with the zoomed inset, final error against lambda with the bounds, and the exponent in n."""
    shown = curves.shown(records)
    here = records.where(stay=shown)
    along = here.where(method=_ON_A_CURVE)
    by_weight = list(along.groups("weight"))
    last_step = float(along["step"].max())
    learning = Panel(
        "Learning curves",
        "iterations",
        "max |Vₜ − V*|",
        tuple(curves.mean_curve(of, "step", curves.weight_key(weight)) for (weight,), of in by_weight),
        inset=(0.6 * last_step, last_step),
    )
    sizes = here.where(method=_BY_SIZE)
    return Figure(
        "statistical",
        f"{TITLE} (p = {shown:g})",
        "Left: deviation of Algorithm 3's value on the estimated model, against iterations; shaded: 95 % confidence "
        "interval; top right: the last iterations enlarged. Then: the last deviation with its 95 % interval against λ, "
        "the same beside Theorem 3.2's bounds (the lower one in order only), and the error of the exact solution "
        "against the number n of transitions per pair.",
        _reading(shown, along, sizes),
        (learning, _final(along), _bounds(along), _exponents(sizes)),
    )


def _final(along: Table) -> Panel:
    found = curves.points_by_weight(curves.last(along))
    return Panel("Final deviation", "λ", "max |V_T − V*|", found)


def _bounds(along: Table) -> Panel:
    weights, errors = curves.by_seed(curves.last(along), "weight")
    panel = [Curve(Key("line", "measured"), weights, errors.mean(axis=0), style="line+points")]
    if along["divergence"][0] == "chi2":
        panel += _bound_curves(along, weights)
    return Panel("Beside Theorem 3.2", "λ", "max |V_T − V*|", tuple(panel), x_scale="log", y_scale="log")


def _bound_curves(along: Table, weights: FloatArray) -> list[Curve]:
    from robustmdp import theory

    size, discount = int(along["size"][0]), float(along["discount"][0])
    pairs = int(along["samples"][0]) // size

    def upper(form: Literal["sharp", "printed"]) -> FloatArray:
        bound = partial(theory.statistical_upper_bound, size, n_pairs=pairs, discount=discount, form=form)
        return np.array([bound(weight=float(weight)) for weight in weights])

    found = [
        Curve(Key("line", "upper bound, sharpened"), weights, upper("sharp"), style="dashed"),
        Curve(Key("line", "upper bound as printed"), weights, upper("printed"), style="dashed"),
    ]
    if discount > _LEAST_DISCOUNT:
        lower = _lower_bound(along, weights)
        found.append(Curve(Key("line", "lower bound, in order"), weights, lower, style="dotted"))
    return found


def _exponents(sizes: Table) -> Panel:
    drawn = []
    for (weight,), of in sizes.groups("weight"):
        drawn.append(curves.mean_curve(of, "size", curves.weight_key(weight), style="line+points"))
    return Panel("Error against data", "transitions per pair n", "max |V − V*|", tuple(drawn), "log", "log")


def _reading(stay: float, along: Table, sizes: Table) -> str:
    weights, errors = curves.by_seed(curves.last(along), "weight")
    means = errors.mean(axis=0)
    slopes = []
    for _, of in sizes.groups("weight"):
        n, values = curves.by_seed(of, "size")
        if len(n) > 1:
            slopes.append(curves.exponent(n, values.mean(axis=0))[0])
    fitted = f" The error falls like n^{min(slopes):.2f} to n^{max(slopes):.2f} (theory: n^-0.5)." if slopes else ""
    return (
        f"At p = {stay:g} the error that stays is {means[0]:.3g} at λ = {weights[0]:g} and {means[-1]:.3g} at "
        f"λ = {weights[-1]:g}; it is largest at λ = {weights[means.argmax()]:g} ({means.max():.3g}).{fitted}"
    )


EXPERIMENT = Experiment("statistical", TITLE, Params, tasks, measure, figure, check)
