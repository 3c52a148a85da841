"""Advice judged by worlds it has not seen: where robustness pays, where it does not, and what is said of it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.tuning.curve import knee
from robustmdp.tuning.trials import worst_tenth

MACHINE = rm.problems.machine_replacement()


def lakes(rng: np.random.Generator, count: int) -> rm.worlds.Models:
    """FrozenLake8x8 with slips drawn from [0.1, 0.6]."""
    return rm.worlds.environments("FrozenLake8x8-v1", 0.99, success_rate=(1.0 - rng.uniform(0.1, 0.6, count)).tolist())


@cache
def advised(success_rate: float | None) -> tuple[rm.MDP, rm.Suggestion]:
    """Advice for a lake, from 40 others; cached, as several tests look at it."""
    one = {} if success_rate is None else {"success_rate": [success_rate]}
    lake = (
        rm.worlds.environments("FrozenLake8x8-v1", 0.99, **one).models[0]
        if one
        else rm.MDP.from_gymnasium("FrozenLake8x8-v1", 0.99)
    )
    return lake, rm.suggest(lake, held_out=lakes(np.random.default_rng(0), 40), initial=0)


each_lake = pytest.mark.parametrize("success_rate", [None, 0.4, 0.65])


@each_lake
def test_advice_pays_on_lakes_that_nobody_has_seen(success_rate: float | None) -> None:
    """The bar: better in the worst tenth of fresh worlds, and at most 5 % worse on average."""
    lake, advice = advised(success_rate)
    assert advice.pays
    assert isinstance(advice.ambiguity, rm.Constrained)
    fresh = lakes(np.random.default_rng(2024), 60)
    table = rm.stress(lake, {"trusting": rm.Nominal(), "advice": advice.solution}, fresh, initial=0)
    trusting, robust = table["worst_tenth"]
    assert robust > trusting * 1.01
    assert table["mean"][1] >= 0.95 * table["mean"][0]


@each_lake
def test_what_was_tried_is_what_is_returned(success_rate: float | None) -> None:
    """On a lake many actions tie; the policy that is handed over must be the one whose values are shown."""
    _, advice = advised(success_rate)
    worlds = lakes(np.random.default_rng(0), 40)
    values = np.array([rm.evaluate(w, advice.solution.policy, rm.Nominal(), tol=1e-8).value[0] for w in worlds.models])
    row = advice.candidates.take(advice.candidates["chosen"])
    assert row["mean"][0] == pytest.approx(values[::2].mean(), abs=4e-6)
    assert row["worst_tenth"][0] == pytest.approx(worst_tenth(values[::2]), abs=4e-6)
    assert row["test_mean"][0] == pytest.approx(values[1::2].mean(), abs=4e-6)
    assert row["test_worst_tenth"][0] == pytest.approx(worst_tenth(values[1::2]), abs=4e-6)
    assert advice.solution.converged


@each_lake
def test_the_choice_is_the_least_robust_good_one(success_rate: float | None) -> None:
    _, advice = advised(success_rate)
    table = advice.candidates
    (chosen,) = np.flatnonzero(table["chosen"])
    assert table["level"][0] == 0.0
    assert table["level"][chosen] == advice.ambiguity.level
    lost = (table["mean"][0] - table["mean"]) / abs(table["mean"][0])
    gain = table["worst_tenth"] - table["worst_tenth"][0]
    assert lost[chosen] <= 0.05
    bearable = lost <= 0.05
    assert gain[chosen] >= 0.95 * gain[bearable].max()
    assert not np.any(gain[:chosen][bearable[:chosen]] >= 0.95 * gain[bearable].max())
    assert table.notes["pays"] is True


def test_reasons_have_the_numbers() -> None:
    _, advice = advised(None)
    first, second, third = advice.reasons
    assert first.startswith("Tried in 40 worlds (FrozenLake8x8-v1 with another success_rate): every other one chose")
    row = advice.candidates.take(advice.candidates["chosen"])
    trusting = advice.candidates.take(np.arange(1))
    assert f"The radius {row['level'][0]:.3g} is the smallest" in second
    assert f"({row['test_worst_tenth'][0]:.4g} against {trusting['test_worst_tenth'][0]:.4g})" in third
    assert f"({row['test_mean'][0]:.4g} against {trusting['test_mean'][0]:.4g})" in third
    assert "is better than" in third
    shown = repr(advice)
    assert all(word in shown for word in ("Suggestion", "level", "because", "Kullback-Leibler"))
    assert re.search("<t[dr]>", advice._repr_html_())


def machine_log(count: int, seed: int) -> rm.Trajectory:
    rng = np.random.default_rng(seed)
    pairs = [(int(s), int(a)) for s, a in zip(MACHINE.states, MACHINE.actions, strict=True) for _ in range(count)]
    rewards, after, _ = zip(*(MACHINE.sample(s, a, rng) for s, a in pairs), strict=True)
    states, actions = zip(*pairs, strict=True)
    return rm.Trajectory(states, actions, rewards, after)


@pytest.mark.parametrize("seed", range(4))
def test_an_estimated_machine_gets_honest_advice(seed: int) -> None:
    """Either it pays in fresh worlds that the counts leave possible, or it says that it does not."""
    model, counts, _ = rm.estimate(machine_log(8, seed), 0.95, known=MACHINE)
    advice = rm.suggest(model, counts=counts, initial=0, draws=60, seed=1)
    assert advice.radii is not None
    assert advice.radii.shape == (10, 3)
    np.testing.assert_array_equal(advice.radii, rm.radius_from_counts(counts, rm.KL(), 0.95, seed=1))
    assert "60 models drawn from what the counts leave possible" in advice.reasons[0]
    lost = (advice.candidates["mean"][0] - advice.candidates["mean"]) / abs(advice.candidates["mean"][0])
    assert lost[advice.candidates["chosen"]][0] <= 0.05
    if not advice.pays:
        assert isinstance(advice.ambiguity, rm.Nominal) or re.search("not better|loses", advice.reasons[-1])
        return
    fresh = rm.worlds.Plausible(counts, count=200, seed=77)
    table = rm.stress(model, {"trusting": rm.Nominal(), "advice": advice.solution}, fresh, initial=0)
    # Both tails are means of 20 worlds, of the same ones: what differs has a standard error of its own.
    values = [table.outcomes.where(policy=name)["value"] for name in ("trusting", "advice")]
    tail = np.argsort(values[0])[:20]
    noise = np.std(values[1][tail] - values[0][tail]) / np.sqrt(20)
    assert table["worst_tenth"][1] >= table["worst_tenth"][0] - 2 * noise
    assert table["mean"][1] >= table["mean"][0] - 0.06 * abs(table["mean"][0])


def test_shares_are_shares_of_the_radii() -> None:
    model, counts, _ = rm.estimate(machine_log(3, 0), 0.95, known=MACHINE)
    advice = rm.suggest(model, rm.ChiSquare(), counts=counts, confidence=0.8, method="asymptotic", initial=0, draws=20)
    share = float(advice.candidates["share"][advice.candidates["chosen"]][0])
    assert advice.radii is not None
    if share:
        assert isinstance(advice.ambiguity, rm.Constrained)
        np.testing.assert_array_equal(advice.ambiguity.radius, share * advice.radii)
    else:
        assert advice.ambiguity == rm.Nominal()
    assert advice.candidates["share"].tolist() == sorted(advice.candidates["share"].tolist())
    assert advice.candidates["share"][-1] == 1.0


def test_where_robustness_does_not_pay_the_model_is_trusted() -> None:
    """The held-out worlds are the model itself: nothing is better than trusting it."""
    advice = rm.suggest(MACHINE, held_out=[MACHINE] * 4, initial=0)
    assert advice.ambiguity == rm.Nominal()
    assert not advice.pays
    assert advice.reasons[1].startswith("No level was better than trusting the model in the worst tenth")
    value = rm.solve(MACHINE, rm.Nominal()).value[0]
    assert f"mean {value:.4g}, worst tenth {value:.4g}" in advice.reasons[2]


# KL between the chances 0.55 and 0.6: below it a bet at 0.6 is right in the worst case, too.
NEEDED = 0.55 * np.log(0.55 / 0.6) + 0.45 * np.log(0.45 / 0.4)


def bet(chance: float) -> rm.MDP:
    """Take 0.55 for sure, or 1 with a chance; then it is over."""
    columns = [0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 1], [1 - chance, chance, 1.0, 1.0], [0.0, 1.0, 0.55, 0.0]
    return rm.MDP.from_rows(*columns, 0.9, terminated=[True] * 4)


@pytest.mark.parametrize(("loss", "bets"), [(0.0, True), (0.3, True), (0.35, False), (0.9, False)])
def test_a_loss_that_is_not_bearable_is_not_chosen(loss: float, bets: bool) -> None:
    """Not to bet wins 0.25 in the worst world of ten and loses 0.29 of 0.84 on average: 34.5 %."""
    worlds = [world for world in [bet(0.3)] + [bet(0.9)] * 9 for _ in range(2)]
    advice = rm.suggest(bet(0.6), held_out=worlds, initial=0, loss=loss)
    assert bool(advice.solution.policy[0] == 0) is bets
    assert advice.pays is not bets
    assert advice.candidates["mean"][0] == pytest.approx(0.84, abs=1e-6)
    expected = np.where(advice.candidates["level"] > NEEDED, 0.55, 0.3)
    np.testing.assert_allclose(advice.candidates["worst_tenth"], expected, atol=1e-6)


def test_judges_that_disagree_are_heard() -> None:
    """In the worlds that choose it is better not to bet, in those that judge to bet: it is chosen, but does not pay."""
    advice = rm.suggest(bet(0.6), held_out=[bet(0.3), bet(0.9)] * 5, initial=0)
    assert isinstance(advice.ambiguity, rm.Constrained)
    assert advice.solution.policy[0] == 1
    assert not advice.pays
    assert "it is not better than trusting the model (0.55 against 0.9); on average it loses 39 %" in advice.reasons[2]
    agreed = rm.suggest(bet(0.6), held_out=[bet(0.3)] * 4, initial=0)
    assert agreed.pays
    assert "it is better than trusting the model (0.55 against 0.3); on average it gains 83 %" in agreed.reasons[2]
    tried = agreed.candidates["level"]
    assert agreed.ambiguity.level == tried[tried > NEEDED][0]


def test_without_data_the_knee() -> None:
    advice = rm.suggest(MACHINE, rm.ChiSquare(), initial=0)
    curve = rm.robustness_curve(MACHINE, rm.ChiSquare(), initial=0)
    assert advice.candidates == curve
    assert isinstance(advice.ambiguity, rm.Penalized)
    paid = curve.notes["best"] - curve["nominal"]
    bearable = curve.take(paid <= 0.05 * abs(curve.notes["best"]))
    at = knee(bearable["nominal"], bearable["worst"] - bearable["nominal_worst"])
    assert 0 <= at != curve.notes["knee"]  # which doubles the cost
    assert advice.ambiguity.weight == curve["weight"][at]
    assert advice.pays is False
    assert "nothing says how far the truth is" in advice.reasons[0]
    assert f"better by {curve['worst'][at] - curve['nominal_worst'][at]:.4g}" in advice.reasons[1]
    assert f"costs {curve.notes['best'] - curve['nominal'][at]:.4g}" in advice.reasons[1]
    alone = rm.suggest(rm.problems.two_state(0.5, 0.9))  # one action: nothing to choose
    assert alone.ambiguity == rm.Nominal()
    assert alone.reasons[1] == "At none of the 50 levels that were tried does a robust policy improve the worst case."


def test_the_same_seed_gives_the_same_advice() -> None:
    model, counts, _ = rm.estimate(machine_log(5, 3), 0.95, known=MACHINE)
    one, again, other = (rm.suggest(model, counts=counts, draws=20, seed=seed, initial=0) for seed in (0, 0, 1))
    assert one.candidates == again.candidates
    assert one.ambiguity == again.ambiguity
    assert one.reasons == again.reasons
    assert one.solution == again.solution
    assert one.candidates != other.candidates


def test_progress_counts_every_value() -> None:
    seen: list[tuple[int, int]] = []
    others = [rm.problems.machine_replacement(repair_success=p) for p in (0.4, 0.6)]
    rm.suggest(MACHINE, held_out=others, progress=lambda *step: seen.append(step))
    assert seen == [(done, 34) for done in range(1, 35)]


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"held_out": [MACHINE]}, ValueError, "^there must be two worlds or more, one to choose .*: got one$"),
        ({"held_out": []}, ValueError, "^held out must hold at least one world: got none$"),
        ({"held_out": [1, 2]}, TypeError, "^held out must hold MDPs: got int at number 0$"),
        ({"loss": 1.0}, ValueError, r"^loss must lie in \[0, 1\): got 1$"),
        ({"loss": -0.1}, ValueError, r"^loss must lie in \[0, 1\): got -0.1$"),
        ({"divergence": "kl"}, TypeError, r"^divergence must be one, such as rm.KL\(\): got 'kl'$"),
    ],
)  # fmt: skip
def test_what_cannot_be(given: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        rm.suggest(MACHINE, **{"held_out": [MACHINE, MACHINE], **given})


def test_counts_or_worlds() -> None:
    counts = rm.Counts.of(machine_log(1, 0))
    with pytest.raises(ValueError, match=r"^give counts or held_out, not both$"):
        rm.suggest(MACHINE, counts=counts, held_out=[MACHINE])
    with pytest.raises(ValueError, match=r"one to choose by and one to judge: got one$"):
        rm.suggest(counts.model(0.95), counts=counts, draws=1)


# Any set.


def test_sets_of_a_function_are_tried_in_worlds() -> None:
    """The table's own figures, from the policy that is handed over."""
    others = [rm.problems.machine_replacement(repair_success=p) for p in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)]
    advice = rm.suggest(MACHINE, rm.L1, levels=[0.4, 0.1, 0.2], held_out=others, initial=0)
    table = advice.candidates
    assert table["level"].tolist()[1:] == [0.1, 0.2, 0.4]
    assert np.isnan(table["level"][0])  # trusting the model
    place = int(np.flatnonzero(table["chosen"])[0])
    assert advice.ambiguity == (rm.Nominal() if place == 0 else rm.L1(float(table["level"][place])))
    assert np.array_equal(advice.level, table["level"][place], equal_nan=True)
    values = [rm.evaluate(world, advice.solution.policy, rm.Nominal()).value[0] for world in others]
    assert table["mean"][place] == pytest.approx(np.mean(values[::2]), abs=1e-4)


def test_sets_of_a_function_are_tried_in_what_counts_leave_possible() -> None:
    counts = rm.Counts.of(machine_log(1, 0))
    advice = rm.suggest(counts.model(0.95), rm.CVaR, levels=[0.9, 0.5], counts=counts, draws=4, initial=0)
    assert advice.radii is None
    assert advice.candidates["level"].tolist()[1:] == [0.9, 0.5]  # from the least to the most robust


def test_the_knee_of_a_function() -> None:
    advice = rm.suggest(MACHINE, rm.CVaR, levels=[0.9, 0.7, 0.5, 0.3], initial=0)
    curve = rm.robustness_curve(MACHINE, rm.CVaR, levels=[0.9, 0.7, 0.5, 0.3], initial=0)
    assert advice.ambiguity == rm.CVaR(advice.level)
    row = curve["level"].tolist().index(advice.level)
    assert row == advice.candidates.notes["chosen"]
    assert curve["worst"][row] == pytest.approx(advice.solution.value[0], abs=1e-4)


def test_a_divergence_has_its_own_levels() -> None:
    with pytest.raises(TypeError, match="levels must come with a function from a level to a set"):
        rm.suggest(MACHINE, rm.KL(), levels=[0.1])
    with pytest.raises(TypeError, match="needs levels="):
        rm.suggest(MACHINE, rm.CVaR)
