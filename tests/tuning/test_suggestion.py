"""Advice judged by worlds it has not seen: where robustness pays, where it does not, and what is said of it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.tuning.trials import worst_tenth

MACHINE = rm.problems.machine_replacement()


def lakes(rng: np.random.Generator, count: int) -> rm.worlds.Models:
    """FrozenLake8x8 with slips drawn from [0.1, 0.6]."""
    return rm.worlds.environments("FrozenLake8x8-v1", 0.99, success_rate=(1.0 - rng.uniform(0.1, 0.6, count)).tolist())


@cache
def advised(success_rate: float | None) -> tuple[rm.MDP, rm.Suggestion]:
    """Advice for a lake, from 60 others; cached, as several tests look at it."""
    one = {} if success_rate is None else {"success_rate": [success_rate]}
    lake = (
        rm.worlds.environments("FrozenLake8x8-v1", 0.99, **one).models[0]
        if one
        else rm.MDP.from_gymnasium("FrozenLake8x8-v1", 0.99)
    )
    return lake, rm.suggest(lake, held_out=lakes(np.random.default_rng(0), 60), initial=0)


each_lake = pytest.mark.parametrize("success_rate", [None, 0.4, 0.65])


@each_lake
def test_advice_pays_on_lakes_that_nobody_has_seen(success_rate: float | None) -> None:
    """The bar: better in the worst tenth of fresh worlds, and at most 5 % worse on average."""
    lake, advice = advised(success_rate)
    assert advice.pays
    assert isinstance(advice.ambiguity, rm.Constrained)
    fresh = lakes(np.random.default_rng(2024), 60)
    table = rm.stress(lake, {"nominal": rm.Nominal(), "advice": advice.solution}, fresh, initial=0)
    nominal, robust = table["worst_tenth"]
    assert robust > nominal * 1.01
    assert table["mean"][1] >= 0.95 * table["mean"][0]


@each_lake
def test_what_was_tried_is_what_is_returned(success_rate: float | None) -> None:
    """On a lake many actions tie; the policy that is handed over must be the one whose values are shown."""
    _, advice = advised(success_rate)
    worlds = lakes(np.random.default_rng(0), 60)
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
    mean, tail = table["mean"] - table["mean"][0], table["worst_tenth"] - table["worst_tenth"][0]
    benefit = np.where((tail > 1e-5) & (mean + 0.5 * tail > 0.0), mean + 0.25 * tail, -np.inf)
    assert benefit[chosen] >= 0.95 * benefit.max() > 0.0
    assert not np.any(benefit[:chosen] >= 0.95 * benefit.max())
    assert advice.level == table["level"][chosen]


def test_reasons_have_the_numbers() -> None:
    _, advice = advised(None)
    first, second, third, baselines = advice.reasons
    halves = "30 of them selected the level, the other 30 tested it."
    assert first == f"Tried in 60 worlds (FrozenLake8x8-v1 with another success_rate): {halves}"
    assert advice.candidates.notes["selection_worlds"] == advice.candidates.notes["test_worlds"] == 30
    row = advice.candidates.take(advice.candidates["chosen"])
    nominal = advice.candidates.take(np.arange(1))
    assert f"The radius {row['level'][0]:.3g} is the smallest" in second
    assert f"{row['test_worst_tenth'][0]:.4g} against {nominal['test_worst_tenth'][0]:.4g}" in third
    assert f"{row['test_mean'][0]:.4g} against {nominal['test_mean'][0]:.4g}" in third
    assert "Over the 30 test worlds it is better than" in third
    assert advice.comparison is not None
    robust = advice.comparison.where(policy="robust")
    low, high = robust["tail_gain_low"][0], robust["tail_gain_high"][0]
    assert f"95 % interval {low:.3g} to {high:.3g}" in third
    for name in ("shorter horizon", "mean model"):
        assert f"gains {advice.comparison.where(policy=name)['tail_gain'][0]:.3g} there" in baselines
    shown = repr(advice)
    assert all(word in shown for word in ("Suggestion", "level", "because", "Kullback-Leibler"))
    assert f"pays     yes, {robust['tail_gain'][0]:.3g} in the worst tenth of 30 test worlds" in shown
    assert re.search("<t[dr]>", advice._repr_html_())


@each_lake
def test_all_policies_are_compared_over_the_same_worlds(success_rate: float | None) -> None:
    """Values, and paired gains, by hand."""
    lake, advice = advised(success_rate)
    table, tested = advice.comparison, lakes(np.random.default_rng(0), 60).models[1::2]
    assert table is not None
    assert table["policy"].tolist() == ["nominal", "robust", "shorter horizon", "mean model"]
    assert table["worlds"].tolist() == [30] * 4
    shorter = float(table["setting"][2].removeprefix("discount "))
    policies = (rm.solve(lake, rm.Nominal(), tol=1e-6), advice.solution)
    values = [[rm.evaluate(w, each.policy, rm.Nominal()).value[0] for w in tested] for each in policies]
    for row, found in enumerate(np.array(values)):
        assert table["mean"][row] == pytest.approx(found.mean(), abs=4e-6)
        assert table["worst_tenth"][row] == pytest.approx(worst_tenth(found), abs=4e-6)
        assert table["gain"][row] == pytest.approx(np.mean(found - values[0]), abs=8e-6)
        assert table["tail_gain"][row] == pytest.approx(worst_tenth(found) - worst_tenth(np.array(values[0])), abs=8e-6)
    assert 0.0 < shorter < 0.99
    # Neither the nominal policy nor one that is the same has anything to gain.
    assert table["gain_low"][0] == table["gain_high"][0] == table["tail_gain_low"][0] == 0.0


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
    if not advice.pays:
        assert advice.ambiguity == rm.Nominal()
        return
    fresh = rm.worlds.Plausible(counts, count=200, seed=77)
    table = rm.stress(model, {"nominal": rm.Nominal(), "advice": advice.solution}, fresh, initial=0)
    # Both tails are means of 20 worlds, of the same ones: what differs has a standard error of its own.
    values = [table.outcomes.where(policy=name)["value"] for name in ("nominal", "advice")]
    tail = np.argsort(values[0])[:20]
    noise = np.std(values[1][tail] - values[0][tail]) / np.sqrt(20)
    assert table["worst_tenth"][1] >= table["worst_tenth"][0] - 2 * noise
    assert table["mean"][1] >= table["mean"][0] - 0.06 * abs(table["mean"][0])


def test_shares_are_shares_of_the_radii() -> None:
    model, counts, _ = rm.estimate(machine_log(3, 0), 0.95, known=MACHINE)
    advice = rm.suggest(model, rm.ChiSquare(), counts=counts, confidence=0.8, method="asymptotic", initial=0, draws=40)
    share = float(advice.candidates["share"][advice.candidates["chosen"]][0])
    assert advice.radii is not None
    if advice.pays:
        assert isinstance(advice.ambiguity, rm.Constrained)
        np.testing.assert_array_equal(advice.ambiguity.radius, share * advice.radii)
    else:
        assert advice.ambiguity == rm.Nominal()
    assert advice.candidates["share"].tolist() == sorted(advice.candidates["share"].tolist())
    assert advice.candidates["share"][-1] == 1.0


def test_where_robustness_does_not_pay_the_nominal_policy_is_advised() -> None:
    """The held-out worlds are the model itself: nothing is better than the nominal policy."""
    advice = rm.suggest(MACHINE, held_out=[MACHINE] * 40, initial=0)
    assert advice.ambiguity == rm.Nominal()
    assert advice.verdict == "does not pay"
    assert np.isnan(advice.level)
    assert advice.reasons[1].startswith("No level was better than the nominal policy in the worst tenth")
    value = rm.solve(MACHINE, rm.Nominal()).value[0]
    assert f"mean {value:.4g}, worst tenth {value:.4g} over the 20 test worlds" in advice.reasons[2]


# KL between the chances 0.55 and 0.6: below it a bet at 0.6 is right in the worst case, too.
NEEDED = 0.55 * np.log(0.55 / 0.6) + 0.45 * np.log(0.45 / 0.4)


def bet(chance: float) -> rm.MDP:
    """Take 0.55 for sure, or 1 with a chance; then it is over."""
    columns = [0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 1], [1 - chance, chance, 1.0, 1.0], [0.0, 1.0, 0.55, 0.0]
    return rm.MDP.from_rows(*columns, 0.9, terminated=[True] * 4)


@pytest.mark.parametrize(("loss", "bets"), [(0.0, True), (0.5, True), (0.59, True), (0.61, False), (0.9, False)])
def test_a_loss_that_is_not_bearable_is_not_chosen(loss: float, bets: bool) -> None:
    """Not to bet gains 0.25 in the worst world of ten, and 0.15 of 0.7 is lost on average: 0.6 for each unit."""
    worlds = [world for world in [bet(0.3)] * 2 + [bet(0.7444444444444445)] * 18 for _ in range(2)]
    advice = rm.suggest(bet(0.6), held_out=worlds, initial=0, loss=loss)
    assert bool(advice.candidates["chosen"][0]) is bets
    assert advice.verdict == ("does not pay" if bets else "undecided")  # two worlds decide
    assert advice.candidates["mean"][0] == pytest.approx(0.7, abs=1e-6)
    expected = np.where(advice.candidates["level"] > NEEDED, 0.55, 0.3)
    np.testing.assert_allclose(advice.candidates["worst_tenth"], expected, atol=1e-6)


def test_worlds_that_test_may_disagree() -> None:
    """In the worlds that select it is better not to bet, in those that test to bet: it is chosen, but does not pay."""
    advice = rm.suggest(bet(0.6), held_out=[bet(0.3), bet(0.9)] * 20, initial=0)
    assert not advice.candidates["chosen"][0]
    assert advice.verdict == "does not pay"
    assert advice.ambiguity == rm.Nominal()
    assert advice.solution.policy[0] == 0
    assert "it is not better than the nominal policy in the worst tenth, 0.55 against 0.9" in advice.reasons[2]
    assert "on average it loses 0.35, 0.55 against 0.9 (benefit -0.525, 95 % interval" in advice.reasons[2]
    agreed = rm.suggest(bet(0.6), held_out=[bet(0.3)] * 40, initial=0)
    assert agreed.pays
    assert agreed.solution.policy[0] == 1
    assert "it is better than the nominal policy in the worst tenth, 0.55 against 0.3" in agreed.reasons[2]
    assert "on average it gains 0.25" in agreed.reasons[2]
    tried = agreed.candidates["level"]
    assert agreed.ambiguity.level == tried[tried > NEEDED][0]


def test_a_handful_of_worlds_is_no_verdict() -> None:
    """However clear they are: 19 worlds that test are too few, 20 are enough."""
    few = rm.suggest(bet(0.6), held_out=[bet(0.3)] * 39, initial=0)
    assert (few.verdict, few.worlds_needed, few.ambiguity) == ("too few worlds", 40, rm.Nominal())
    assert "it takes 40 worlds or more" in few.reasons[3]
    assert "pays     no: too few worlds, 0.25 in the worst tenth of 19 test worlds" in repr(few)
    assert few.comparison is not None
    assert np.isnan(few.comparison["tail_gain_low"]).all()
    assert rm.suggest(bet(0.6), held_out=[bet(0.3)] * 40, initial=0).verdict == "pays"


def test_an_interval_that_includes_0_is_no_verdict() -> None:
    """Two of the 20 worlds that test decide; in one of them the bet is better."""
    selecting = [bet(0.3)] * 20
    testing = [bet(0.3), bet(0.57)] + [bet(0.6)] * 18
    worlds = [world for pair in zip(selecting, testing, strict=True) for world in pair]
    advice = rm.suggest(bet(0.6), held_out=worlds, initial=0, loss=0.99)
    assert advice.comparison is not None
    robust = advice.comparison.where(policy="robust")
    assert robust["tail_gain"][0] == pytest.approx(0.55 - (0.3 + 0.57) / 2, abs=1e-6)
    assert robust["tail_gain_low"][0] < 0.0 < robust["tail_gain_high"][0]
    assert (advice.verdict, advice.ambiguity) == ("undecided", rm.Nominal())
    assert "it is not certainly better than the nominal policy in the worst tenth" in advice.reasons[2]
    assert advice.worlds_needed is not None
    assert advice.worlds_needed > 40
    assert f"about {advice.worlds_needed:,} worlds would tell" in advice.reasons[3]


def test_baselines_that_do_as_well_are_named() -> None:
    """Whoever plans for the mean of the worlds does not bet either."""
    advice = rm.suggest(bet(0.6), held_out=[bet(0.3)] * 40, initial=0)
    assert advice.baseline == "mean model"
    assert advice.reasons[3].startswith("The nominal policy of the mean of the worlds does as well:")


def test_without_data_no_level_is_recommended() -> None:
    advice = rm.suggest(MACHINE, rm.ChiSquare(), initial=0)
    curve = rm.robustness_curve(MACHINE, rm.ChiSquare(), initial=0)
    assert advice.candidates == curve
    assert advice.ambiguity == rm.Nominal()
    assert advice.verdict == "no worlds"
    assert advice.comparison is None
    assert advice.solution == rm.solve(MACHINE, rm.Nominal(), tol=1e-6)
    assert "only data can say" in advice.reasons[0]
    at = curve.notes["knee"]
    gained, paid = curve["worst"][at] - curve["nominal_worst"][at], curve.notes["best"] - curve["nominal"][at]
    assert gained > paid
    assert f"better by {gained:.4g}" in advice.reasons[1]
    assert f"costs {paid:.4g}" in advice.reasons[1]
    alone = rm.suggest(rm.problems.two_state(0.5, 0.9))  # one action: nothing to choose
    assert alone.ambiguity == rm.Nominal()
    assert alone.reasons[1] == "At none of the 50 levels that were tried does a robust policy improve the worst case."


# Neither a constant nor a unit matters.


def bad_plants() -> list[rm.MDP]:
    """Worlds that are worst for the nominal policy, within 40 radii."""
    policy = rm.solve(MACHINE, rm.Nominal()).policy
    radii = np.linspace(0.2, 1.0, 40).tolist()
    return [rm.evaluate(MACHINE, policy, rm.Constrained(rm.KL(), radius)).worst_case for radius in radii]


@pytest.mark.parametrize(("scale", "constant"), [(1e-10, 0.0), (1e6, 0.0), (1.0, 1e3), (1.0, -1e6), (1e-6, 1e4)])
def test_advice_does_not_depend_on_the_zero_and_unit_of_rewards(scale: float, constant: float) -> None:
    """The loss was relative to the mean: 1,000 more for every step made everything bearable."""

    def in_other_money(mdp: rm.MDP) -> rm.MDP:
        return mdp.with_rewards(scale * (mdp.rewards + constant))

    plain = rm.suggest(MACHINE, held_out=bad_plants(), initial=0)
    other = rm.suggest(in_other_money(MACHINE), held_out=[in_other_money(each) for each in bad_plants()], initial=0)
    assert plain.pays
    assert (other.verdict, other.baseline, other.ambiguity) == (plain.verdict, plain.baseline, plain.ambiguity)
    assert np.array_equal(other.candidates["chosen"], plain.candidates["chosen"])
    assert plain.comparison is not None
    assert other.comparison is not None
    for column in ("gain", "gain_low", "tail_gain", "tail_gain_low", "benefit", "benefit_high"):
        # Values are as large as 20 constants, and rounded to 2e-16 of themselves.
        near = 1e-6 + 1e-14 * abs(constant)
        np.testing.assert_allclose(other.comparison[column] / scale, plain.comparison[column], atol=near)


# Seeds of the worlds.


def other_worlds(kind: str, seed: int) -> tuple[rm.MDP, Any]:
    """A model and worlds of a seed."""
    if kind == "lakes":
        return rm.MDP.from_gymnasium("FrozenLake8x8-v1", 0.99), lakes(np.random.default_rng(seed), 60)
    model = rm.problems.inventory(20)
    if kind == "rows":
        family = rm.worlds.RandomKernels(rm.KL(), 0.1, 60, seed)
        return model, [world.mdp for world in family.worlds(model, None)]
    means = 5.0 * np.exp(0.3 * np.random.default_rng(seed).standard_normal(120))
    return model, [rm.problems.inventory(20, mean_demand=mean) for mean in means.tolist()]


@pytest.mark.parametrize(("kind", "pays"), [("demand", False), ("rows", False), ("lakes", True)])
def test_advice_is_the_same_for_other_seeds_of_the_worlds(kind: str, pays: bool) -> None:
    """At least 5 of 6 agree: inventory where the demand differs, where rows do, and lakes that are less slippery."""
    found = []
    for seed in range(6):
        model, worlds = other_worlds(kind, seed)
        advice = rm.suggest(model, held_out=worlds, initial=0)
        found.append((repr(advice.ambiguity), advice.pays))
    usual = max(found, key=found.count)
    assert found.count(usual) >= 5
    assert usual[1] is pays


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
    assert seen == [(done, len(seen)) for done in range(1, len(seen) + 1)]
    assert len(seen) % 2 == 0  # policies, those that are the same evaluated once, in two worlds


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"held_out": [MACHINE]}, ValueError, "^there must be two worlds or more, one to select .*: got one$"),
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
    with pytest.raises(ValueError, match=r"one to select by and one to test: got one$"):
        rm.suggest(counts.model(0.95), counts=counts, draws=1)


# Any set.


def test_sets_of_a_function_are_tried_in_worlds() -> None:
    """The table's own figures, from the policy that is handed over."""
    others = [rm.problems.machine_replacement(repair_success=p) for p in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)]
    advice = rm.suggest(MACHINE, rm.L1, levels=[0.4, 0.1, 0.2], held_out=others, initial=0)
    table = advice.candidates
    assert table["level"].tolist()[1:] == [0.1, 0.2, 0.4]
    assert np.isnan(table["level"][0])  # the nominal policy
    place = int(np.flatnonzero(table["chosen"])[0])
    assert advice.verdict == "too few worlds"
    policy = rm.solve(MACHINE, rm.Nominal() if place == 0 else rm.L1(float(table["level"][place])), tol=1e-6).policy
    values = [rm.evaluate(world, policy, rm.Nominal()).value[0] for world in others]
    assert table["mean"][place] == pytest.approx(np.mean(values[::2]), abs=1e-4)


def test_a_level_of_a_function_that_pays() -> None:
    advice = rm.suggest(bet(0.6), rm.L1, levels=[0.05, 0.2, 0.4], held_out=[bet(0.3)] * 40, initial=0)
    assert advice.ambiguity == rm.L1(0.2)  # 0.6 - 0.1 < 0.55
    assert advice.level == 0.2


def test_sets_of_a_function_are_tried_in_what_counts_leave_possible() -> None:
    counts = rm.Counts.of(machine_log(1, 0))
    advice = rm.suggest(counts.model(0.95), rm.CVaR, levels=[0.9, 0.5], counts=counts, draws=4, initial=0)
    assert advice.radii is None
    assert advice.candidates["level"].tolist()[1:] == [0.9, 0.5]  # from the least to the most robust


def test_the_trade_off_of_a_function() -> None:
    advice = rm.suggest(MACHINE, rm.CVaR, levels=[0.9, 0.7, 0.5, 0.3], initial=0)
    assert advice.candidates == rm.robustness_curve(MACHINE, rm.CVaR, levels=[0.9, 0.7, 0.5, 0.3], initial=0)
    assert advice.ambiguity == rm.Nominal()
    assert np.isnan(advice.level)


def test_a_divergence_has_its_own_levels() -> None:
    with pytest.raises(TypeError, match="levels must come with a function from a level to a set"):
        rm.suggest(MACHINE, rm.KL(), levels=[0.1])
    with pytest.raises(TypeError, match="needs levels="):
        rm.suggest(MACHINE, rm.CVaR)
