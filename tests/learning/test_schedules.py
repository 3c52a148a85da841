"""Step sizes: their formulas, their ceilings, and what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.learning import schedules
from robustmdp.learning.schedules import Setting

GAMMA, WEIGHT, D_MIN, D_MAX = 0.9, 3.0, 0.02, 0.07
SETTING = Setting(GAMMA, WEIGHT, (0.0, 10.0), 2.0, D_MIN, D_MAX)
KAPPA = 1 / (6 * (WEIGHT + 1 / (1 - GAMMA)))
FORMULAS: dict[str, tuple[Any, Any]] = {
    "constant": (schedules.Constant(0.25), lambda n: 0.25),
    "polynomial": (schedules.Polynomial(2.0, 0.6, 3.0, cap=0.9), lambda n: min(0.9, 2 / (n + 3) ** 0.6)),
    "rescaled polynomial": (schedules.RescaledPolynomial(0.75), lambda n: (1 + (1 - GAMMA) * n) ** -0.75),
    "rescaled linear": (schedules.RescaledLinear(), lambda n: 1 / (1 + (1 - GAMMA) * n)),
    "Theorem 4.1": (
        schedules.Theorem41(),  # diam(Theta)/(C_g sqrt(n + 1)), C_g = (diam + 1/(1-gamma))/(weight sigma), sigma = 2
        lambda n: 32 / ((32 + 10) / (WEIGHT * 2)) / math.sqrt(n + 1),
    ),
    "Theorem 4.2": (schedules.Theorem42(), lambda n: 1 / (1 + (1 - GAMMA) * (n + 1))),
    "Theorem 5.1": (schedules.Theorem51(), lambda n: min(1, 1 / ((1 - GAMMA) * D_MIN * (n + 35)))),
    "Theorem 5.1 uncapped": (
        schedules.Theorem51(cap=math.inf), lambda n: 1 / ((1 - GAMMA) * D_MIN * (n + math.ceil(D_MAX / (0.1 * D_MIN))))
    ),
    "Theorem 5.1's eta": (
        schedules.Theorem51Dual(), lambda n: 1 / (KAPPA * D_MIN * (n + math.ceil((D_MAX / D_MIN) ** 1.5)) ** (2 / 3))
    ),
    "weight over root": (schedules.WeightOverRoot(), lambda n: WEIGHT / math.sqrt(n + 1)),
    "dual polynomial": (schedules.DualPolynomial(0.8, 0.5), lambda n: WEIGHT * 2.0 * min(1, 0.8 / (n + 1) ** 0.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name: str) -> None:
    schedule, formula = FORMULAS[name]
    numbers = schedule.resolve(SETTING)
    # Steps that scale with the weight are given per weight in normal form, f''(1) * weight.
    unit = numbers.per_weight * SETTING.unit * WEIGHT if numbers.per_weight else 1.0
    counts = np.array([0, 1, 2, 3, 10, 100, 10**6])
    assert unit * numbers.at(counts) == pytest.approx([formula(int(n)) for n in counts], rel=1e-13)
    assert unit * numbers.at(7) == pytest.approx(formula(7), rel=1e-13)
    assert schedule == type(schedule)(**schedule.__dict__)


@pytest.mark.parametrize("name", FORMULAS)
def test_compiled_code_takes_the_same_steps(name: str) -> None:
    # In a world without chance or future Q moves from the first reward, 0, to the second, 1, by beta_1 alone.
    schedule = FORMULAS[name][0]
    if schedule.resolve(SETTING).per_weight:
        pytest.skip("a schedule for eta")
    log = rm.Trajectory([0, 0], [0, 0], [0.0, 1.0], [0, 0], n_states=3)  # the level is extrapolated after 3 steps
    doubt = rm.Penalized(rm.ChiSquare(), math.inf)  # nominal, and a penalty that Theorem 4.1 takes
    learner = rm.MarkovianQLearning(doubt, q_steps=schedule, burn_in=0.99, d_min=D_MIN, d_max=D_MAX, count="steps")
    if name.startswith("Theorem 5.1"):
        learner = rm.MarkovianQLearning(
            rm.Nominal(), None, schedule, schedules.Theorem51Dual(), 0.0, "steps", True, d_min=D_MIN, d_max=D_MAX
        )
    # Discount 0 is refused nowhere; the schedules above depend on it, so they are resolved anew.
    beta = schedule.resolve(Setting(0.0, 1.0, (0.0, 1.0), 2.0, D_MIN, D_MAX)).at(np.arange(2))
    learned = learner.run(log, discount=0.0, reward_range=(0.0, 1.0))
    first = 1 - beta[0] if name.startswith("Theorem 5.1") else 0.0  # the default replaces its placeholder
    expected = (1 - beta[1]) * first + beta[1]
    if not name.startswith("Theorem 5.1"):
        expected = min(max(expected, 0.0), 1.0)
    assert learned.q[0, 0] == pytest.approx(expected, rel=1e-13, abs=1e-13)


def test_offsets_are_those_of_the_theory_room() -> None:
    for d_min, d_max, discount in ((0.05, 0.05, 0.9), (0.001, 0.3, 0.5), (0.02, 0.07, 0.99), (0.1, 0.1, 0.0)):
        setting = Setting(discount, 1.0, (0.0, 1.0), 2.0, d_min, d_max)
        offsets = rm.theory.step_offsets(d_min, d_max, discount)
        assert schedules.Theorem51().resolve(setting).offset == offsets.p_dagger
        assert schedules.Theorem51Dual().resolve(setting).offset == offsets.p_alpha


@pytest.mark.parametrize("ulps", [-4, -1, 0, 1, 4])
def test_rounding_does_not_raise_a_ceiling(ulps: int) -> None:
    d_max = 0.05 * (1 + max(ulps, 0) * 2.0**-52)
    d_min = 0.05 * (1 + min(ulps, 0) * 2.0**-52)
    setting = Setting(0.9, 1.0, (0.0, 10.0), 2.0, d_min, d_max)
    assert schedules.Theorem51Dual().resolve(setting).offset == 1.0
    assert schedules.Theorem51().resolve(setting).offset == 10.0
    assert schedules.Theorem51Dual().resolve(setting._replace(d_max=0.05 * (1 + 1e-6))).offset == 2.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: schedules.Constant(0.0), "size must be positive: got 0"),
        (lambda: schedules.Constant(math.nan), "size must be finite: got nan"),
        (lambda: schedules.Polynomial(-1.0), "scale must be positive"),
        (lambda: schedules.Polynomial(offset=0.0), "offset must be positive"),
        (lambda: schedules.Polynomial(cap=0.0), "cap must be positive"),
        (lambda: schedules.Polynomial(power=1.5), r"power must lie in \[0, 1\]: got 1.5"),
        (lambda: schedules.RescaledPolynomial(-0.1), r"power must lie in \[0, 1\]: got -0.1"),
        (lambda: schedules.DualPolynomial(0.0), "scale must be positive"),
        (lambda: schedules.DualPolynomial(power=2.0), "power must lie in"),
        (lambda: schedules.Theorem51().resolve(SETTING._replace(d_min=None)), "must know d_min and d_max"),
        (lambda: schedules.Theorem51Dual().resolve(SETTING._replace(d_min=0.0)), "must visit every pair: got d_min 0"),
    ],
)
def test_what_schedules_refuse(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


OWN = rm.Divergence("chi-square", lambda s: max(s / 2 + 1, 0.0) ** 2 - 1, lambda s: max(s / 2 + 1, 0.0))


@pytest.mark.parametrize(
    ("ambiguity", "got"),
    [
        (rm.Penalized(rm.KL(), 1.0), r"KL\(\)"),
        (rm.Penalized(OWN, 1.0), r"Divergence\('chi-square'\)"),  # the name alone is no proof of the constants
        (rm.Constrained(rm.ChiSquare(), 0.1), "no penalty"),
        (rm.Nominal(), "no penalty"),
    ],
)
def test_theorem_4_1_is_for_a_chi_square_penalty(ambiguity: Any, got: str) -> None:
    message = f"^the steps of Theorem 4.1 are for a chi-square penalty: got {got}$"
    learner = rm.GenerativeQLearning(ambiguity, eta_steps=schedules.Theorem41())
    with pytest.raises(ValueError, match=message):
        learner.run(rm.problems.chain(), 1)
    if ambiguity.has_weight:
        with pytest.raises(ValueError, match=message):
            rm.learn_worst_case(ambiguity, [0.0, 1.0], (0.0, 1.0), steps=schedules.Theorem41())


def test_theorem_4_1_serves_a_chi_square_penalty() -> None:
    doubt = rm.Penalized(rm.ChiSquare(), 1.0)
    learner = rm.GenerativeQLearning(doubt, eta_steps=schedules.Theorem41())
    assert learner.run(rm.problems.chain(), 1).status.code == "step_limit"
    outcomes = np.random.default_rng(0).integers(0, 2, 1000).astype(float)
    given = rm.learn_worst_case(doubt, outcomes, (0.0, 1.0), steps=schedules.Theorem41())
    assert given.eta == rm.learn_worst_case(doubt, outcomes, (0.0, 1.0)).eta


@pytest.mark.parametrize("make", [
    lambda: rm.GenerativeQLearning(rm.Nominal(), 0.5),
    lambda: rm.MarkovianQLearning(rm.Nominal(), eta_steps="fast"),
    lambda: rm.MultilevelQLearning(rm.Constrained(rm.KL(), 0.1), None),
    lambda: rm.learn_worst_case(rm.Penalized(rm.KL(), 1.0), [1.0], (0.0, 1.0), steps=0.1),
])  # fmt: skip
def test_a_number_is_no_schedule(make: Any) -> None:
    with pytest.raises(TypeError, match="steps must be a schedule, such as Polynomial"):
        make()
