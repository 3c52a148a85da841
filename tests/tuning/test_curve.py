"""Robustness curves: each row against cold solves, what theory says of each column, knees, Ctrl-C."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.operators import RobustBellman
from robustmdp.planning import continuation
from robustmdp.tuning import curve
from robustmdp.tuning.curve import knee

TOL = 1e-6
DIVERGENCES = (rm.ChiSquare(), rm.KL(), rm.TotalVariation(), rm.Burg(), rm.JensenShannon())
WORLDS = {
    "machine": rm.problems.machine_replacement(),
    "inventory": rm.problems.inventory(6),
    "lake": rm.MDP.from_gymnasium("FrozenLake-v1", 0.95),
    "garnet": rm.problems.garnet(40, 3, 4, 0.9, seed=5),
}
FORMS = {"weight": rm.Penalized, "radius": rm.Constrained}
each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
each_world = pytest.mark.parametrize("name", WORLDS)
each_form = pytest.mark.parametrize("form", FORMS)


def curve_of(mdp: rm.MDP, divergence: Any, form: str, levels: Any, **more: Any) -> Any:
    return rm.robustness_curve(mdp, divergence, **{f"{form}s" if form == "weight" else "radii": levels}, **more)


def slack(table: Any) -> float:
    """Values are certified to TOL of the largest of them; two of them are compared."""
    return 4 * TOL * max(1.0, float(np.abs(table["nominal"]).max()), float(np.abs(table["worst"]).max()))


@each_divergence
@each_form
@each_world
def test_each_row_is_what_cold_solves_say(name: str, form: str, divergence: Any) -> None:
    mdp = WORLDS[name]
    start = np.random.default_rng(0).dirichlet(np.ones(mdp.n_states))
    levels = rm.levels_for(mdp, divergence, count=5, form=FORMS[form])
    table = curve_of(mdp, divergence, form, levels, initial=start, tol=TOL)
    assert table[form].tolist() == levels.tolist()
    nominal = rm.solve(mdp, rm.Nominal(), tol=TOL)
    assert abs(table.notes["best"] - start @ nominal.value) <= 2 * nominal.error_bound
    assert table.notes["interrupted"] is False
    assert table.notes["divergence"] == divergence.name
    for number, level in enumerate(levels.tolist()):
        row = {column: table[column][number] for column in table.columns}
        cold = rm.solve(mdp, FORMS[form](divergence, level), tol=TOL)
        doubted = rm.evaluate(mdp, nominal.policy, FORMS[form](divergence, level), tol=TOL)
        assert row["status"] == "converged"
        assert row["error_bound"] <= TOL * max(1.0, np.abs(cold.value).max()) * (1 + TOL)
        assert abs(row["worst"] - start @ cold.value) <= row["error_bound"] + cold.error_bound
        assert abs(row["nominal_worst"] - start @ doubted.value) <= 2 * TOL * max(1.0, np.abs(doubted.value).max())
        # Nothing that is optimal in the worst case does better under the model than it or the nominal one can.
        assert start @ cold.lower <= row["nominal"] + slack(table)
        certainly = cold.q[np.arange(mdp.n_states), nominal.policy] < cold.q.max(axis=1) - 4 * cold.error_bound
        assert certainly.sum() <= row["changed"] <= mdp.n_states


@each_divergence
@each_form
@each_world
def test_columns_go_where_theory_says(name: str, form: str, divergence: Any) -> None:
    mdp = WORLDS[name]
    table = curve_of(mdp, divergence, form, rm.levels_for(mdp, divergence, count=12, form=FORMS[form]), tol=TOL)
    near = slack(table)
    assert np.all(np.diff(table["worst"]) <= near)  # nature has ever more room
    assert np.all(np.diff(table["nominal_worst"]) <= near)
    assert np.all(table["nominal_worst"] <= table["worst"] + near)  # the robust policy has the best worst case
    assert np.all(table["worst"] <= table["nominal"] + near)  # the model is one of nature's choices
    assert np.all(table["nominal"] <= table.notes["best"] + near)
    at = table.notes["knee"]
    if at >= 0:
        assert 0 < at < len(table) - 1
        assert table["worst"][at] - table["nominal_worst"][at] > max(0.0, table.notes["best"] - table["nominal"][at])


def test_a_users_own_divergence() -> None:
    own = rm.Divergence("my KL", lambda s: math.exp(s - 1), lambda s: math.exp(s - 1))
    for name, form in (("machine", "weight"), ("lake", "radius")):
        levels = rm.levels_for(WORLDS[name], rm.KL(), count=6, form=FORMS[form])
        # f''(1) is known to 1e-8 of itself.
        np.testing.assert_allclose(rm.levels_for(WORLDS[name], own, count=6, form=FORMS[form]), levels, rtol=1e-7)
        mine, theirs = (curve_of(WORLDS[name], divergence, form, levels) for divergence in (own, rm.KL()))
        for column in ("nominal", "worst", "nominal_worst"):
            np.testing.assert_allclose(mine[column], theirs[column], atol=slack(theirs))
        assert mine.notes["divergence"] == "my KL"


@each_form
@pytest.mark.parametrize("divergence", DIVERGENCES[:4], ids=repr)
def test_the_boundary_levels(divergence: Any, form: str) -> None:
    mdp = WORLDS["machine"]
    table = curve_of(mdp, divergence, form, [0.0, 0.3, math.inf], tol=TOL)
    trusted, doubted = (0, -1)
    assert table[form][trusted] == (math.inf if form == "weight" else 0.0)
    assert table[form][doubted] == (0.0 if form == "weight" else math.inf)
    near = slack(table)
    for column in ("nominal", "worst", "nominal_worst"):
        assert table[column][trusted] == pytest.approx(table.notes["best"], abs=near)
    assert table["changed"][trusted] == 0
    lowest = rm.solve(mdp, rm.Penalized(rm.KL(), 0.0), tol=TOL).value.mean()
    assert table["worst"][doubted] == pytest.approx(lowest, abs=near)


@each_divergence
@each_form
def test_a_function_from_a_level_to_a_set(form: str, divergence: Any) -> None:
    """The same rows, whatever the function calls its levels and whichever way they go."""
    mdp = WORLDS["machine"]
    levels = rm.levels_for(mdp, divergence, count=6, form=FORMS[form])
    expected = curve_of(mdp, divergence, form, levels, tol=TOL)
    functions = {
        "level": (lambda level: FORMS[form](divergence, level), levels),
        "inverse": (lambda share: FORMS[form](divergence, 1.0 / share), 1.0 / levels),
        "negative": (lambda log: FORMS[form](divergence, math.exp(-log)), -np.log(levels)),
    }
    for function, given in functions.values():
        table = rm.robustness_curve(mdp, function, levels=given[[3, 1, 0, 2, 4, 5, 3]], tol=TOL)
        assert list(table.columns) == ["level", *list(expected.columns)[1:]]
        assert "divergence" not in table.notes
        np.testing.assert_allclose(table["level"], given, rtol=1e-12)  # from the least to the most robust
        for column in ("nominal", "worst", "nominal_worst"):
            np.testing.assert_allclose(table[column], expected[column], atol=slack(expected))
        assert table["changed"].tolist() == expected["changed"].tolist()
        assert table.notes["knee"] == expected.notes["knee"]


def test_a_function_may_mix_sets() -> None:
    """A share of radii per pair, nothing at share 0; and a class is a function of its level."""
    mdp, radii = WORLDS["machine"], np.random.default_rng(3).uniform(0.01, 1.0, (10, 3))

    def share_of(share: float) -> Any:
        return rm.Constrained(rm.KL(), share * radii) if share > 0.0 else rm.Nominal()

    table = rm.robustness_curve(mdp, share_of, levels=[0.0, 0.1, 1.0], initial=0, tol=TOL)
    assert table["level"].tolist() == [0.0, 0.1, 1.0]
    for level, worst, bound in zip(table["level"], table["worst"], table["error_bound"], strict=True):
        cold = rm.solve(mdp, share_of(level), tol=1e-10)
        assert abs(worst - cold.value[0]) <= bound + cold.error_bound
    same = rm.robustness_curve(mdp, lambda level: rm.Nominal(), levels=[2.0, -1.0, 0.0, math.inf])
    assert same["level"].tolist() == [-1.0, 0.0, 2.0, math.inf]
    assert same.notes["knee"] == -1


@pytest.mark.parametrize(
    ("function", "solved"),
    [
        (lambda s: rm.Constrained(rm.KL(), 0.5 / s), [8.0, 4.0]),
        (lambda s: rm.L1(1.0 / s) if s > 1.0 else rm.LInf(1.0), [2.0, 1.0]),  # two kinds: nobody knew the direction
    ],
)
def test_ctrl_c_in_a_curve_of_a_function(function: curve.SetAt, solved: list[float]) -> None:
    def stop(done: int, total: int) -> None:
        if (done, total) == (2, 4):
            raise KeyboardInterrupt

    mdp, shares = WORLDS["machine"], [1.0, 2.0, 4.0, 8.0]
    table = rm.robustness_curve(mdp, function, levels=shares, progress=stop)
    assert table.notes["interrupted"] is True
    assert table["level"].tolist() == solved
    assert table["worst"][0] > table["worst"][1]


def test_levels_in_any_order_and_more_than_once() -> None:
    mdp = WORLDS["machine"]
    table = rm.robustness_curve(mdp, rm.KL(), [1.0, 10.0, 1.0, 0.1])
    assert table["weight"].tolist() == [10.0, 1.0, 0.1]  # from the least to the most robust
    assert rm.robustness_curve(mdp, rm.KL(), radii=[0.5, 0.1, 0.5])["radius"].tolist() == [0.1, 0.5]
    single = rm.robustness_curve(mdp, rm.KL(), 1.0)
    assert len(single) == 1
    assert single["worst"][0] == pytest.approx(table["worst"][1], abs=slack(table))
    alike = rm.robustness_curve(mdp, rm.KL(), [1.0], initial=np.full(10, 0.1))
    assert alike == single  # all states alike is what no initial means


@pytest.mark.parametrize(
    ("function", "from_least_to_most"),
    [
        (lambda share: rm.MeanRisk(share, rm.CVaR(0.2)), [0.1, 0.5, 0.9]),
        (lambda level: rm.MeanRisk(0.5, rm.CVaR(level)), [0.9, 0.5, 0.1]),
        (lambda aversion: rm.MeanRisk(0.5, rm.EntropicRisk(aversion)), [0.1, 0.5, 0.9]),
        (lambda weight: rm.MeanRisk(0.5, rm.Penalized(rm.KL(), weight)), [0.9, 0.5, 0.1]),
        (lambda budget: rm.Constrained(rm.KL(), 1.0 - budget), [0.9, 0.5, 0.1]),
        (rm.EVaR, [0.9, 0.5, 0.1]),
        (lambda level: rm.L1(level) if level < 0.2 else rm.LInf(level), [0.1, 0.5, 0.9]),  # two kinds: as the first
    ],
)
def test_a_function_goes_from_the_least_to_the_most_robust_level(
    function: curve.SetAt, from_least_to_most: list[float]
) -> None:
    """Where sets had a risk inside, its direction was taken for theirs, and advice for the least robust level."""
    family = curve.function_family(function, [0.5, 0.1, 0.9])
    assert family.levels.tolist() == from_least_to_most
    values = [rm.solve(WORLDS["machine"], family.set_at(level)).value.mean() for level in family.levels]
    assert values[0] >= values[-1]


def test_fifty_levels_by_default() -> None:
    seen: list[tuple[int, int]] = []
    table = rm.robustness_curve(WORLDS["machine"], rm.KL(), initial=0, progress=lambda *step: seen.append(step))
    assert len(table) == 50
    assert seen == [(done, 50) for done in range(1, 51)]
    assert np.array_equal(table["weight"], rm.levels_for(WORLDS["machine"], rm.KL()))
    assert table["worst"][0] == pytest.approx(table.notes["best"], rel=0.02)  # hardly robust
    assert table.notes["knee"] >= 0
    assert len(table.to_frame()) == 50


@each_form
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_levels_span_the_problem_whatever_its_unit(form: str, scale: float) -> None:
    """The first is all but nominal, the last all but the minimum; weights scale with rewards, radii do not."""
    mdp = WORLDS["garnet"].with_rewards(scale * WORLDS["garnet"].rewards)
    for divergence in (rm.KL(), rm.ChiSquare(), rm.TotalVariation()):
        levels = rm.levels_for(mdp, divergence, count=7, form=FORMS[form])
        assert np.allclose(np.diff(np.log(levels), 2), 0.0)
        table = curve_of(mdp, divergence, form, levels, tol=1e-8)
        lowest = rm.solve(mdp, rm.Penalized(rm.KL(), 0.0)).value.mean()
        way = (table.notes["best"] - table["worst"]) / (table.notes["best"] - lowest)
        assert way[0] <= 0.1
        assert way[-1] >= 0.6


def test_the_knee_of_curves_made_by_hand() -> None:
    price = np.array([0.0, -0.1, -0.2, -1.0])
    assert knee(price, np.array([0.0, 0.5, 0.9, 1.0])) == 2
    assert knee(price, np.array([0.0, 0.9, 0.95, 1.0])) == 1
    assert knee(np.zeros(4), np.array([0.0, 1.0, 2.0, 2.0])) == 2  # nothing to pay
    assert knee(np.zeros(3), np.array([0.0, 1.0, 2.0])) == -1  # the last level is best: the next may be better
    assert knee(price, np.array([1.0, 1.0, 1.0, 1.0])) == -1  # and so may one before the first
    assert knee(price, np.zeros(4)) == -1  # nothing to buy
    assert knee(price, np.full(4, 1e-9), 1e-6) == -1  # nothing beyond errors
    assert knee(price, np.array([0.4, 0.0, 0.6, 0.7]), 0.5) == 2  # only where there is a gain
    assert knee(10.0 * price, np.array([0.0, 0.5, 0.9, 1.0])) == -1  # everywhere the cost is larger
    assert knee(price, np.array([0.0, 0.5, 0.9, 1.0]), best=0.75) == -1  # as it is beside the best value
    assert knee(np.empty(0), np.empty(0)) == -1
    # Units do not matter.
    assert knee(1e6 * price, 1e6 * np.array([0.0, 0.5, 0.9, 1.0])) == 2


def test_ctrl_c_keeps_the_levels_that_are_done() -> None:
    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    weights = [8.0, 4.0, 2.0, 1.0, 0.5]
    whole = rm.robustness_curve(WORLDS["machine"], rm.KL(), weights)
    table = rm.robustness_curve(WORLDS["machine"], rm.KL(), weights, progress=stop)
    assert table.notes["interrupted"] is True
    assert table == whole.take(np.arange(3))


@pytest.mark.parametrize("method", ["sweep", "bracket", "chain"])
def test_ctrl_c_at_any_moment(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes back are whole rows, right to their bounds, or nothing."""
    mdp, weights = WORLDS["machine"], [8.0, 2.0, 0.5, 0.1]
    undisturbed = rm.robustness_curve(mdp, rm.KL(), weights)
    original = getattr(RobustBellman, method)
    lengths = []
    for moment in range(1, 200):
        left = [moment]

        def counted(self: Any, *given: Any, left: list[int] = left) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return original(self, *given)

        monkeypatch.setattr(RobustBellman, method, counted)
        try:
            table = rm.robustness_curve(mdp, rm.KL(), weights)
        except KeyboardInterrupt:  # nothing was done yet
            continue
        if left[0] > 0:  # it ended before the moment came
            break
        # A solve that had its answer when Ctrl-C came has it; the rows after that one start elsewhere.
        for column in ("nominal", "worst", "nominal_worst"):
            np.testing.assert_allclose(table[column], undisturbed[column][: len(table)], atol=slack(undisturbed))
        assert set(table["status"].tolist()) <= {"converged"}
        assert table.notes["interrupted"] is (len(table) < len(weights))
        lengths.append(len(table))
    assert left[0] > 0
    assert len(set(lengths)) >= 2


def test_an_interrupted_start_is_not_taken_for_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*given: Any, **more: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(RobustBellman, "sweep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        rm.robustness_curve(WORLDS["machine"], rm.KL(), [1.0])


def test_half_a_value_under_the_model_makes_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the long way to that value was cut short."""

    def stopped(*given: Any) -> Any:
        raise KeyboardInterrupt

    whole = rm.robustness_curve(WORLDS["machine"], rm.KL(), [100.0, 1.0, 0.1])
    assert whole["changed"].tolist()[0] == 0 < whole["changed"][1]
    monkeypatch.setattr(curve, "follow", stopped)
    table = rm.robustness_curve(WORLDS["machine"], rm.KL(), [100.0, 1.0, 0.1])
    assert table["weight"].tolist() == [100.0]
    assert table.notes["interrupted"] is True


def test_large_worlds_give_the_same_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the pairs that cannot matter."""
    mdp = WORLDS["garnet"]
    for divergence in DIVERGENCES[:3]:
        whole = rm.robustness_curve(mdp, divergence)
        with monkeypatch.context() as patch:
            patch.setattr(continuation, "_LARGE", 0)
            few = rm.robustness_curve(mdp, divergence)
        for column in ("nominal", "worst", "nominal_worst"):
            np.testing.assert_allclose(few[column], whole[column], atol=slack(whole))


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"weights": [1.0], "radii": [1.0]}, ValueError, "^give weights or radii, not both$"),
        ({"weights": []}, ValueError, r"^weights must be a list of numbers: got shape \(0,\)$"),
        ({"radii": [[1.0]]}, ValueError, r"^radii must be a list of numbers: got shape \(1, 1\)$"),
        ({"radii": [0.1, -1.0]}, ValueError, r"^radii must be numbers in \[0, inf\]: got \[-1.\]$"),
        ({"weights": [math.nan]}, ValueError, r"^weights must be numbers in \[0, inf\]: got \[nan\]$"),
        ({"divergence": "kl"}, TypeError, r"^divergence must be one, such as rm.KL\(\): got 'kl'$"),
        ({"divergence": rm.KL}, TypeError, r"^divergence must be one, such as rm.KL\(\); a function .* needs levels="),
        ({"levels": [1.0]}, TypeError, r"^levels must come with a function from a level to a set: got KL\(\)$"),
        (
            {"divergence": lambda level: rm.Nominal(), "levels": [1.0], "radii": [1.0]},
            ValueError,
            "^give weights or radii with a divergence, or levels with a function: got both$",
        ),
        ({"divergence": lambda level: rm.Nominal(), "levels": []}, ValueError, r"^levels must be a list of numbers"),
        ({"divergence": lambda level: rm.Nominal(), "levels": [math.nan]}, ValueError, "^levels must be numbers"),
        ({"divergence": lambda level: level, "levels": [1.0]}, TypeError, "^ambiguity must be .*: got 1.0$"),
        ({"initial": 10}, ValueError, r"^initial must be a state in 0..9: got 10$"),
        ({"initial": 1.5}, ValueError, r"^initial must be a state in 0..9: got 1.5$"),
        ({"initial": "brokn"}, ValueError, r"^initial must be one of age 0, .*: got 'brokn'; did you mean 'broken'\?$"),
    ],
)
def test_what_cannot_be(given: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        rm.robustness_curve(WORLDS["machine"], **{"divergence": rm.KL(), **given})


def test_levels_know_of_the_end() -> None:
    """One state that may end: its value differs from the end's 0, and levels were those of a world without spread."""
    rows = ([0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0.9, 0.1, 0.7, 0.3], [1.0, 1.0, 1.0, 1.0])
    mdp = rm.MDP.from_rows(*rows, 0.9, terminated=[False, True, False, True])
    value = float(rm.solve(mdp, rm.Nominal()).value[0])
    assert curve.levels_for(mdp, rm.KL()).max() == pytest.approx(100 * 0.9 * value / 0.5, rel=1e-3)


def test_both_worst_cases_are_within_the_bound() -> None:
    mdp = rm.problems.machine_replacement()
    curve = rm.robustness_curve(mdp, rm.KL(), [1.0, 3.0], initial=0)
    nominal = rm.solve(mdp, rm.Nominal(), tol=1e-10).policy
    for level, found, bound in zip(curve["weight"], curve["nominal_worst"], curve["error_bound"], strict=True):
        exact = rm.evaluate(mdp, nominal, rm.Penalized(rm.KL(), level), tol=1e-12).value[0]
        assert abs(found - exact) <= bound


def test_the_nominal_column_is_the_value_of_the_robust_policy() -> None:
    mdp, levels = rm.problems.machine_replacement(), np.array([10.0, 1.0, 0.3])
    curve = rm.robustness_curve(mdp, rm.KL(), levels, initial=0)
    for level, found in zip(curve["weight"], curve["nominal"], strict=True):
        policy = rm.solve(mdp, rm.Penalized(rm.KL(), level), tol=1e-9).policy
        assert found == pytest.approx(rm.evaluate(mdp, policy, rm.Nominal(), tol=1e-10).value[0], rel=1e-5)
    assert len(np.unique(curve["nominal"].round(3))) > 1
