"""Each claim can hold and can fail: records in which it does by construction, or does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from paper import tiny
from paper.tiny import edited
from robustmdp.paper import experiment_named
from robustmdp.paper.claims import STATEMENTS, Claim, Finding
from robustmdp.table import Table

SEEDS = 20
WEIGHTS = (0.5, 2.0, 5.0, 10.0)
EXPERIMENT = {
    1: "connection",
    2: "statistical",
    3: "statistical",
    4: "statistical",
    5: "convergence",
    6: "convergence",
    7: "convergence",
    8: "inner-steps",
    9: "markovian",
    10: "markovian",
    11: "behaviour",
    12: "dmin",
    **dict.fromkeys(range(13, 18), "rates"),
    **dict.fromkeys(range(18, 21), "step-sizes"),
    21: "behaviour",
    22: "markovian",
    **dict.fromkeys(range(23, 26), "limits"),
    26: "statistical",
}


def found(number: int, records: Table) -> Finding:
    claims: list[Claim] = experiment_named(EXPERIMENT[number]).check(records)
    (claim,) = [claim for claim in claims if claim.number == number]
    assert claim.statement == STATEMENTS[number]
    assert claim.stay == 0.8
    return claim.finding


def noise(seed: int, *key: float) -> float:
    """The same for equal keys, whatever else is drawn."""
    return float(np.random.default_rng([seed, *(round(1000 * part) for part in key)]).normal())


def rows(listed: list[dict[str, Any]]) -> Table:
    return Table({name: np.array([row[name] for row in listed]) for name in listed[0]})


# Records, from a function for what is measured.


def connection(deviation: Callable[[float], float], weights: tuple[float, ...] = WEIGHTS) -> Table:
    exact = [
        {"stay": 0.8, "weight": w, "method": "exact", "deviation": deviation(w), "certified": 1e-11} for w in weights
    ]
    return rows(exact + [{**row, "method": "algorithm-3", "certified": np.nan} for row in exact])


def statistical(error: Callable[[float, int, int], float], seeds: int = SEEDS) -> Table:
    """From the error of (weight, seed, step)."""
    shared = {"method": "algorithm-3", "stay": 0.8, "discount": 0.9, "size": 1000, "samples": 20_000, "worst_state": 1}
    return rows(
        [
            {**shared, "weight": w, "seed": seed, "step": step, "error": error(w, seed, step)}
            for w in WEIGHTS
            for seed in range(seeds)
            for step in range(101)
        ]
    )


def drop_then_flat(rate: float, floor: float, step: int) -> float:
    return max(10.0 * rate**step, floor)


def convergence(error: Callable[[float, int, int], float], seeds: int = SEEDS) -> Table:
    """From the error of (weight, seed, step)."""
    shared = {"stay": 0.8, "inner_steps": 100, "status": "steps"}
    return rows(
        [
            {**shared, "weight": w, "seed": seed, "step": step, "samples": 2020 * step, "error": error(w, seed, step)}
            for w in WEIGHTS
            for seed in range(seeds)
            for step in range(0, 201, 10)
        ]
    )


def final(value: Callable[[float, int], float]) -> Table:
    """Errors that all fall alike, to a last value of (weight, seed)."""
    return convergence(lambda w, seed, step: 10.0 * 0.9**step if step < 200 else value(w, seed))


def inner(value: Callable[[int, int], float]) -> Table:
    """From the last error of (T', seed) at lambda = 10; at the other lambda the opposite is true."""
    return rows(
        [
            {
                "stay": 0.8,
                "weight": w,
                "inner_steps": t,
                "seed": seed,
                "step": step,
                "samples": step,
                "error": 10.0 if step == 0 else value(t, seed) if w == 10.0 else 10.0 - value(t, seed),
            }
            for w in (0.5, 10.0)
            for t in (10, 50, 100)
            for seed in range(SEEDS)
            for step in (0, 1000)
        ]
    )


def markovian(
    two: Callable[[float, int], float],
    one: Callable[[float, int], float] = lambda w, seed: 3.0,
    weights: tuple[float, ...] = WEIGHTS,
) -> Table:
    """From the last errors of (weight, seed) under Algorithm 2 and under Algorithm 1."""
    shared = {"stay": 0.8, "restart": 0.5, "behaviour": 0.5}
    listed = []
    for w in weights:
        for seed in range(SEEDS):
            base = {**shared, "weight": w, "seed": seed}
            literal = {**base, "algorithm": "algorithm-2-literal", "status": "diverged", "error": np.inf}
            listed.append({**literal, "step": 40, "samples": 40})
            for name, value, per_step in (("algorithm-2", two, 1), ("default", two, 1), ("algorithm-1", one, 4000)):
                for share in (0, 1, 2):
                    samples = share * 500_000
                    error = 10.0 - (10.0 - value(w, seed)) * share / 2
                    whole = {**base, "algorithm": name, "status": "steps", "error": error}
                    listed.append({**whole, "step": samples // per_step, "samples": samples})
    return rows(listed)


def behaviour(value: Callable[[float, int], float], shares: tuple[float, ...] = (0.05, 0.2, 0.5)) -> Table:
    """From the last error of (pi, seed), at every weight."""
    return rows(
        [
            {
                "stay": 0.8,
                "restart": 0.5,
                "discount": 0.9,
                "weight": w,
                "behaviour": share,
                "seed": seed,
                "step": step,
                "error": 10.0 if step == 0 else value(share, seed),
            }
            for w in (1.0, 10.0)
            for share in shares
            for seed in range(SEEDS)
            for step in (0, 4000)
        ]
    )


def dmin(smallest: Callable[[float], float], largest: float = 0.05) -> Table:
    shares = (0.001, 0.25, 0.5, 0.75, 0.999)
    return rows(
        [
            {"stay": 0.8, "restart": 0.5, "behaviour": pi, "d_min": smallest(pi), "d_max": largest, "pairs": 20}
            for pi in shares
        ]
    )


METHODS = ("algorithm-2", "algorithm-2-averaged", "markovian", "algorithm-1", "algorithm-1-concave", "generative")


def rates(exponent: float, method: str, scale: float = 1.0) -> Table:
    """One method falls like scale N^exponent, the others like 1/sqrt(N)."""
    shared = {"stay": 0.8, "restart": 0.5, "discount": 0.9}
    return rows(
        [
            {
                **shared,
                "method": name,
                "weight": w,
                "budget": n,
                "seed": seed,
                "samples": n,
                "error": (scale * n**exponent if name == method else n**-0.5) * (1 + 0.03 * noise(seed, w, n, i)),
            }
            for i, name in enumerate(METHODS)
            for w in (1.0, 10.0)
            for n in (10_000, 100_000, 1_000_000)
            for seed in range(SEEDS)
        ]
    )


def step_sizes(inner: Callable[[float], float], outer: Callable[[float], float]) -> Table:
    """From the exponent of the inner error and the last outer error, of k; k = 0 stands for the paper's steps."""
    shared = {"stay": 0.8, "inner_steps": 10}
    listed = []
    for w in (1.0, 10.0):
        for k in (0.0, 0.3, 0.5, 0.7):
            for seed in range(SEEDS):
                base = {**shared, "weight": w, "power": k, "seed": seed}
                for t in (1000, 10_000):
                    factor = 1 + 0.02 * noise(seed, w, k, t)
                    listed.append({**base, "loop": "inner", "step": t, "error": t ** inner(k) * factor})
                    listed.append({**base, "loop": "outer", "step": t, "error": outer(k) * factor})
    return rows(listed)


def limits(
    same: float = 1e-4,
    other: float = 1e-4,
    small: Callable[[int], float] = lambda seed: 1.0,
    large: Callable[[int], float] = lambda seed: 1.0,
    mean: float = 5.0,
) -> Table:
    """From differences of values and the ratios of gaps to their formulas, 1 and `mean`, of each seed."""
    shared = {"stay": 0.8, "leak": 0.001}
    nothing = dict.fromkeys(("same_support", "other_support", "largest"), np.nan)
    gaps = dict.fromkeys(("gap", "least", "least_of_support", "mean", "q_gap"), np.nan)
    listed = []
    for w, ratio, formula in ((1e-4, small, 1.0), (1e4, large, mean)):
        known = {"same_support": same * (1 + w), "other_support": other * (1 + w), "largest": 6.0}
        listed.append({**shared, "part": "value", "weight": w, "seed": 0, **gaps, **known})
        for seed in range(SEEDS):
            found = {"gap": ratio(seed) * formula, "least": 1.0, "least_of_support": 1.0, "mean": mean, "q_gap": mean}
            listed.append({**shared, "part": "gap", "weight": w, "seed": seed, **nothing, **found})
    return rows(listed)


def by_weight(error: Callable[[float], float]) -> Table:
    """From the mean error at a weight."""
    shared = {"method": "exact-by-weight", "stay": 0.8, "discount": 0.9, "size": 1000, "samples": 20_000, "step": 0}
    return rows(
        [
            {**shared, "weight": w, "seed": seed, "error": error(w) * (1 + 0.05 * noise(seed, w)), "worst_state": 1}
            for w in (0.01, 0.1, 0.5, 1.0, 3.0, 10.0)
            for seed in range(SEEDS)
        ]
    )


def lower_bound(w: float) -> float:
    from robustmdp import theory

    return float(np.sqrt(theory.statistical_lower_bound(1.0, n_pairs=20, discount=0.9, weight=w) / 20_000))


def two_stages(rate: Callable[[float], float], floor: Callable[[float, int], float]) -> Table:
    return statistical(
        lambda w, seed, step: drop_then_flat(rate(w) + 1e-4 * noise(seed, w, 0.001 * step), floor(w, seed), step)
    )


TRUE: dict[int, Callable[[], Table]] = {
    1: lambda: connection(lambda w: 1.0 / w),
    2: lambda: two_stages(lambda w: 0.8, lambda w, seed: 0.1 + 0.01 * noise(seed, w)),
    3: lambda: two_stages(lambda w: 0.8, lambda w, seed: 0.1 * (1 + w) * (1 + 0.4 * np.tanh(noise(seed, w)))),
    4: lambda: two_stages(lambda w: 0.7 + 0.02 * w, lambda w, seed: 0.01 + 0.001 * abs(noise(seed, w))),
    5: lambda: convergence(lambda w, seed, step: 10.0 * np.exp(-step * (0.1 - 0.004 * w + 0.001 * noise(seed, w)))),
    6: lambda: final(lambda w, seed: 5.0 / w + 0.01 * noise(seed, w)),
    7: lambda: final(lambda w, seed: 5.0 + (w if w < 10 else 0.1) * noise(seed, w)),
    8: lambda: inner(lambda t, seed: 5.0 - 0.03 * t + 0.1 * noise(seed, t)),
    9: lambda: markovian(lambda w, seed: (9.0 if w < 1 else 0.3) + 0.01 * noise(seed, w)),
    10: lambda: markovian(lambda w, seed: 1.0 + 0.1 * noise(seed, w), lambda w, seed: 3.0 + 0.1 * noise(seed, w, 1)),
    11: lambda: behaviour(lambda pi, seed: 5.0 - 8.0 * pi + 0.1 * noise(seed, pi)),
    12: lambda: dmin(lambda pi: 0.05 * 2 * min(pi, 1 - pi)),
    13: lambda: rates(-0.5, "algorithm-2"),
    14: lambda: rates(-0.5, "algorithm-2-averaged", 0.5),
    15: lambda: rates(-0.4, "algorithm-1"),
    16: lambda: rates(-0.4, "algorithm-1-concave"),
    17: lambda: rates(-0.5, "generative"),
    18: lambda: step_sizes(lambda k: -0.5, lambda k: 1.0),
    19: lambda: step_sizes(lambda k: -min(k, 1 - k), lambda k: 1.0),
    20: lambda: step_sizes(lambda k: -0.5, lambda k: 1.0 + k),
    21: lambda: behaviour(lambda pi, seed: pi**-1.5 * (1 + 0.02 * noise(seed, pi))),
    22: lambda: markovian(lambda w, seed: (9.0 if w < 1 else 1.0) + 0.1 * noise(seed, w)),
    23: lambda: limits(),
    24: lambda: limits(),
    25: lambda: limits(),
    26: lambda: by_weight(lower_bound),
}
FALSE: dict[int, list[tuple[Callable[[], Table], str]]] = {
    1: [
        (lambda: connection(lambda w: w), "0.5 to 2"),
        (lambda: connection(lambda w: 1.0 / min(w, 5.0)), "5 to 10"),  # falls, then stays
    ],
    2: [
        (lambda: statistical(lambda w, seed, step: 10.0 / (1 + step) ** 2), "straight"),  # not linear
        (lambda: statistical(lambda w, seed, step: 10.0 * 0.9**step), "flat"),  # never flat
    ],
    3: [
        (
            lambda: two_stages(lambda w: 0.8, lambda w, seed: 1.0 / (1 + w) * (1 + 0.3 * np.tanh(noise(seed, w)))),
            "0.5 to 2",
        ),
        # The error grows, its interval does not.
        (lambda: two_stages(lambda w: 0.8, lambda w, seed: 0.1 * w + 0.05 / w * np.tanh(noise(seed, w))), "0.5 to 2"),
        (lambda: two_stages(lambda w: 0.8, lambda w, seed: 0.3), "same"),
    ],
    4: [
        (lambda: two_stages(lambda w: 0.9 - 0.02 * w, lambda w, seed: 0.01), "0.5 to 2"),
        (lambda: statistical(lambda w, seed, step: drop_then_flat(0.9, 0.01, step)), "same"),
    ],
    5: [
        (
            lambda: convergence(
                lambda w, seed, step: 10.0 * np.exp(-step * (0.01 + 0.004 * w + 1e-4 * noise(seed, w)))
            ),
            "0.5 to 2",
        ),
        (lambda: convergence(lambda w, seed, step: 10.0 * 0.95**step), "same"),
    ],
    6: [
        (lambda: final(lambda w, seed: 1.0 + w + 0.01 * noise(seed, w)), "0.5 to 2"),
        (lambda: final(lambda w, seed: abs(w - 5.0) + 0.01 * noise(seed, w)), "5 to 10"),
    ],
    7: [
        (lambda: final(lambda w, seed: 50.0 + w * noise(seed, w)), "drop at 10"),
        (lambda: final(lambda w, seed: 50.0 + 1.0 / w * noise(seed, w)), "growth up to 5"),
    ],
    8: [
        (lambda: inner(lambda t, seed: 1.0 + 0.03 * t + 0.1 * noise(seed, t)), r"10 to (T' = )?50"),
        (lambda: inner(lambda t, seed: 2.0), "same"),
    ],
    9: [
        (lambda: markovian(lambda w, seed: 0.1 + 0.01 * w + 0.001 * noise(seed, w)), "0.5"),
        (lambda: markovian(lambda w, seed: 9.0 - 0.5 * w + 0.01 * noise(seed, w)), "far away at λ = 10"),
    ],
    10: [
        (
            lambda: markovian(
                lambda w, seed: 3.0 + 0.1 * noise(seed, w), lambda w, seed: 1.0 + 0.1 * noise(seed, w, 1)
            ),
            "λ = 10",
        ),
        # Better at all but one.
        (lambda: markovian(lambda w, seed: (4.0 if w == 2.0 else 1.0) + 0.1 * noise(seed, w)), "λ = 2"),
    ],
    11: [
        (lambda: behaviour(lambda pi, seed: 1.0 + 8.0 * pi + 0.1 * noise(seed, pi)), r"0.05 to (π = )?0.2"),
        (lambda: behaviour(lambda pi, seed: 3.0), "λ = 10"),
    ],
    12: [
        (lambda: dmin(lambda pi: 0.02), "π|pi = 0.5"),
        (lambda: dmin(lambda pi: 0.05), "end of the range"),
    ],
    13: [(lambda: rates(-0.2, "algorithm-2"), r"λ = 10: The exponent is -0\.2")],
    14: [
        (lambda: rates(-0.4, "algorithm-2-averaged", 0.1), r"rate: .*The exponent is -0\.4"),
        (lambda: rates(-0.5, "algorithm-2-averaged", 2.0), "error: The average is further away at λ = 1 .* λ = 10"),
    ],
    15: [(lambda: rates(-0.1, "algorithm-1"), r"λ = 1: The exponent is -0\.1")],
    16: [(lambda: rates(-0.2, "algorithm-1-concave"), r"λ = 1: The exponent is -0\.2")],
    17: [
        (lambda: rates(-0.4, "generative"), "generative, λ = 1"),
        (lambda: rates(-0.4, "markovian"), "trajectory, λ = 10"),
    ],
    18: [(lambda: step_sizes(lambda k: -0.2, lambda k: 1.0), r"λ = 10: The exponent is -0\.2")],
    19: [(lambda: step_sizes(lambda k: -k, lambda k: 1.0), r"k = 0.7: The exponent is -0\.7")],
    20: [
        (lambda: step_sizes(lambda k: -0.5, lambda k: 1.0 - 0.5 * k), "λ = 10, k = 0.3"),
        (lambda: step_sizes(lambda k: -0.5, lambda k: 0.5 if k == 0.7 else 1.0 + k), "k = 0.7"),
    ],
    21: [(lambda: behaviour(lambda pi, seed: pi**-4.0 * (1 + 0.02 * noise(seed, pi))), r"faster than d_min\^-3 from")],
    22: [(lambda: markovian(lambda w, seed: (4.0 if w == 2.0 else 1.0) + 0.1 * noise(seed, w)), "λ = 2")],
    23: [
        (lambda: limits(other=3.0), "support is not"),
        (lambda: limits(same=1.0), "Probabilities still matter"),
    ],
    24: [(lambda: limits(small=lambda seed: 2.0), "agrees in 0%")],
    25: [
        (lambda: limits(large=lambda seed: 0.5 if seed % 2 else 1.0), "agrees in 50%"),
        (lambda: limits(mean=0.5), "larger than for small λ in only 0%"),
    ],
    26: [
        (lambda: by_weight(lambda w: 0.1), r"λ < 0.556: The exponent"),
        (lambda: by_weight(lambda w: lower_bound(w) * max(w, 0.5)), r"λ ≥ 0.556, where it is flat: The exponent"),
    ],
}


@pytest.mark.parametrize("number", STATEMENTS)
def test_the_claim_can_hold(number: int) -> None:
    finding = found(number, TRUE[number]())
    assert (finding.verdict, finding.why) == ("holds", "")
    assert finding.numbers
    assert finding.test


@pytest.mark.parametrize(("number", "case"), [(number, i) for number in FALSE for i in range(len(FALSE[number]))])
def test_the_claim_can_fail_and_says_where(number: int, case: int) -> None:
    make, where = FALSE[number][case]
    finding = found(number, make())
    assert finding.verdict == "does not hold"
    assert re.search(where, finding.why), finding.why
    assert finding.numbers
    assert finding.test


# What is open stays open.

SEVERAL = {
    3: lambda: two_stages(lambda w: 0.8, lambda w, seed: 0.3 + 0.01 * noise(seed, w)),
    5: lambda: convergence(lambda w, seed, step: 10.0 * np.exp(-step * (0.05 + 0.01 * noise(seed, w)))),
    6: lambda: final(lambda w, seed: 3.0 + 0.1 * noise(seed, w, 7)),
    7: lambda: final(lambda w, seed: 3.0 + 0.1 * noise(seed, w, 7)),
    8: lambda: inner(lambda t, seed: 3.0 + 0.1 * noise(seed, t)),
    9: lambda: markovian(lambda w, seed: 0.5 + 0.3 * noise(seed, w, 3)),
    10: lambda: markovian(lambda w, seed: 3.0 + 0.1 * noise(seed, w), lambda w, seed: 3.0 + 0.1 * noise(seed, w, 1)),
    11: lambda: behaviour(lambda pi, seed: 3.0 + 0.1 * noise(seed, pi)),
}


@pytest.mark.parametrize("number", SEVERAL)
def test_noise_decides_nothing(number: int) -> None:
    finding = found(number, SEVERAL[number]())
    assert finding.verdict == "within noise"
    assert finding.why


@pytest.mark.parametrize("number", [3, 4, 5, 6, 7, 8, 9, 10, 11])
def test_one_seed_decides_nothing(number: int) -> None:
    records = TRUE[number]()
    assert found(number, records.take(records["seed"] == 0)).verdict == "within noise"


@pytest.mark.parametrize("number", [3, 7])
def test_two_seeds_do_not_tell_how_wide_an_interval_is(number: int) -> None:
    records = TRUE[number]()
    assert found(number, records.take(records["seed"] < 2)).verdict == "within noise"


@pytest.mark.parametrize("number", [1, 3, 4, 5, 6, 7, 9])
def test_one_lambda_shows_no_dependence_on_lambda(number: int) -> None:
    assert found(number, TRUE[number]().where(weight=10.0)).verdict == "within noise"


def test_two_lambdas_of_which_the_small_one_does_badly() -> None:
    # "Does badly at lambda = 0.5 and converges for large lambda": that the small one stays away is the claim itself.
    both = markovian(lambda w, seed: (9.0 if w < 1 else 0.1) + 0.01 * noise(seed, w), weights=(0.5, 10.0))
    assert found(9, both).verdict == "holds"


def test_beyond_one_half_the_claim_is_about_the_other_side() -> None:
    shares = (0.5, 0.8, 0.95)
    nearer_is_better = behaviour(lambda pi, seed: 1.0 + 8.0 * abs(pi - 0.5) + 0.1 * noise(seed, pi), shares)
    assert found(11, nearer_is_better).verdict == "holds"
    nearer_is_worse = behaviour(lambda pi, seed: 5.0 - 8.0 * abs(pi - 0.5) + 0.1 * noise(seed, pi), shares)
    assert found(11, nearer_is_worse).verdict == "does not hold"


def test_a_middle_alone_says_nothing_about_the_ends() -> None:
    assert found(12, TRUE[12]().where(behaviour=0.5)).verdict != "holds"


def test_algorithm_3_does_not_vote_on_claim_1() -> None:
    records = TRUE[1]()
    wrong = edited(records, deviation=np.where(records["method"] == "exact", records["deviation"], records["weight"]))
    assert found(1, wrong).verdict == "holds"


def test_certified_intervals_that_overlap_prove_nothing() -> None:
    records = edited(TRUE[1](), certified=np.full(8, 10.0))
    assert found(1, records).verdict != "holds"


def test_the_explanation_of_claim_4_names_the_state_that_decides() -> None:
    (make, _), _ = FALSE[4]
    assert "s1" in found(4, make()).why


def test_runs_that_diverge_to_the_letter_are_counted() -> None:
    assert "0.5: 20/20" in found(9, TRUE[9]()).numbers


def test_algorithm_2_is_compared_at_the_samples_of_the_claim() -> None:
    # Twice the samples change its mind; the claim is about one million.
    records = TRUE[10]()
    later = records.where(algorithm="algorithm-2", samples=1_000_000)
    later = edited(later, samples=2 * later["samples"], step=2 * later["step"], error=9.0 + later["error"])
    assert found(10, Table.concat([records, later])).verdict == "holds"
    assert "1,000,000 samples" in found(10, records).numbers


@pytest.mark.parametrize("number", STATEMENTS)
def test_worlds_are_judged_one_by_one(number: int) -> None:
    elsewhere = FALSE[number][0][0]()
    both = Table.concat([TRUE[number](), edited(elsewhere, stay=np.full(len(elsewhere), 0.6))])
    claims = experiment_named(EXPERIMENT[number]).check(both)
    judged = {claim.stay: claim.finding.verdict for claim in claims if claim.number == number}
    assert judged == {0.8: "holds", 0.6: "does not hold"}


@pytest.mark.parametrize("name", tiny.OTHERS)
def test_real_records_are_judged(name: str) -> None:
    claims = experiment_named(name).check(tiny.records(name))
    judged = sorted({claim.number for claim in claims})
    assert judged == sorted(number for number, of in EXPERIMENT.items() if of == name)
    assert len(claims) == len(judged) * len(tiny.params(name).stay)
    for claim in claims:
        assert claim.finding.numbers
        assert claim.finding.test
        assert bool(claim.finding.why) == (claim.finding.verdict != "holds")
