"""The numbers behind a report, against the library's own and against loops that anyone can check."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.ambiguity.distance import distance
from robustmdp.app.study.headline import headline
from robustmdp.app.study.nature import rows_of, taken_by_nature
from robustmdp.app.study.study import Study, sweep
from robustmdp.planning.solving import solve_or_raise
from robustmdp.tuning.curve import SetFamily, points_along

TOL = 1e-6  # of the solves, relative to max(1, max |v|)


def studied(**settings: Any) -> Study:
    return rm.analyse(**settings).study


@pytest.fixture(scope="module")
def at_the_knee() -> Study:
    return studied(mdp=rm.problems.machine_replacement(), initial=0)


@pytest.fixture(scope="module")
def held_out() -> Study:
    """A recommendation that is a radius: the lake is less slippery than its model, or more."""
    worlds = rm.worlds.environments("FrozenLake8x8-v1", 0.99, success_rate=np.linspace(0.35, 0.9, 41))
    return studied(mdp=rm.MDP.from_gymnasium("FrozenLake8x8-v1", 0.99), held_out=worlds, initial=0)


@pytest.fixture(scope="module", params=["knee", "radius"])
def study(request: pytest.FixtureRequest) -> Study:
    found: Study = request.getfixturevalue("at_the_knee" if request.param == "knee" else "held_out")
    return found


def test_both_kinds_of_recommendation_are_tried(at_the_knee: Study, held_out: Study) -> None:
    assert at_the_knee.suggestion.verdict == "no worlds"
    assert isinstance(at_the_knee.doubt, rm.Penalized)
    assert isinstance(held_out.suggestion.ambiguity, rm.Constrained)
    assert isinstance(held_out.suggestion.ambiguity.level, float)


# The curve.


def test_the_curve_is_that_of_the_library(study: Study) -> None:
    name = next(iter(study.sweep.curve.columns))
    form = {"weight": "weights", "radius": "radii"}[name]
    again = rm.robustness_curve(study.mdp, study.divergence, **{form: study.sweep.curve[name]}, initial=study.start)
    for column in ("nominal", "worst", "nominal_worst", "changed"):
        assert np.abs(study.sweep.curve[column] - again[column]).max() <= 2 * TOL * max(
            1.0, np.abs(again[column]).max()
        )
    assert study.sweep.curve.notes["best"] == pytest.approx(again.notes["best"], abs=TOL)


def test_its_form_is_that_of_the_recommendation(at_the_knee: Study, held_out: Study) -> None:
    for study, name in ((at_the_knee, "weight"), (held_out, "radius")):
        assert study.sweep.curve[name][study.sweep.shown] == study.doubt.level
        assert len(study.sweep.points) == len(study.sweep.curve[name]) == len(np.unique(study.sweep.curve[name])) == 30


def test_weights_are_swept_whatever_is_recommended(at_the_knee: Study, held_out: Study) -> None:
    """Beside a radius, too."""
    assert [sweep.name for sweep in at_the_knee.sweeps] == ["weight"]
    assert [sweep.name for sweep in held_out.sweeps] == ["radius", "weight"]
    weights = held_out.sweeps[1]
    assert weights.place is None
    assert weights.shown == weights.knee


def test_a_matching_weight_is_among_the_weights() -> None:
    """Theorem 3.1: its worst case is that of the radius, from the start."""
    worn = rm.problems.machine_replacement()
    start = np.eye(worn.n_states)[0]
    radius = 0.05
    weight = rm.matching_weight(worn, rm.Constrained(rm.KL(), radius), start)
    nominal = rm.solve(worn, rm.Nominal())
    radii, weights = (
        sweep(
            worn,
            SetFamily(partial(form, rm.KL()), rm.levels_for(worn, rm.KL(), count=30, form=form), form.level_name, {}),
            nominal,
            start,
            selected=level,
            threads=None,
            progress=lambda done, total: None,
        )
        for form, level in ((rm.Constrained, radius), (rm.Penalized, weight))
    )
    assert radii.curve["radius"][radii.place] == radius
    assert weights.curve["weight"][weights.place] == weight
    one, other = (each.curve["worst"][each.place] for each in (radii, weights))
    error = 2 * TOL * max(1.0, abs(one))
    assert one == pytest.approx(other, abs=error)


def test_without_worlds_nothing_is_recommended(at_the_knee: Study) -> None:
    """The knee says how much robustness is cheap here, not how far the truth is."""
    assert at_the_knee.sweep.place is None
    assert not at_the_knee.recommended
    gain, price = at_the_knee.sweep.gain_and_price(at_the_knee.sweep.knee)
    text = headline(at_the_knee)
    assert text.startswith("No advice without data.")
    assert f"by {gain:.4g}, at a price of {price:.4g}" in text


def test_the_curve_and_the_nominal_model_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import robustmdp.app.study.study as module
    from robustmdp.tuning import curve

    solved: list[Any] = []
    drawn: list[Any] = []

    def solve(mdp: rm.MDP, ambiguity: Any, policy: Any = None, **options: Any) -> rm.Solution:
        solved.extend([ambiguity] if policy is None else [])
        return solve_or_raise(mdp, ambiguity, policy=policy, **options)

    def points(mdp: rm.MDP, set_at: Any, levels: Any, *rest: Any, **options: Any) -> Any:
        drawn.extend(levels)
        return points_along(mdp, set_at, levels, *rest, **options)

    monkeypatch.setattr(module, "solve_or_raise", solve)
    monkeypatch.setattr(curve, "solve_or_raise", solve)
    monkeypatch.setattr(curve, "points_along", points)
    studied(mdp=rm.problems.machine_replacement())
    assert solved == [rm.Nominal()]
    assert len(drawn) == 30


def test_the_price_is_that_of_the_robust_policy_under_the_model(study: Study) -> None:
    value = rm.evaluate(study.mdp, study.robust.policy, rm.Nominal()).value
    assert study.under_model == pytest.approx(value, abs=2 * TOL * np.abs(value).max())


def test_each_level_is_between_its_neighbours(study: Study) -> None:
    """More room for nature, less value; and no policy beats the nominal one under the model."""
    error = 2 * float(study.sweep.curve["error_bound"].max())
    assert (np.diff(study.sweep.curve["worst"]) <= error).all()
    assert (study.sweep.curve["nominal"] <= study.sweep.curve.notes["best"] + error).all()
    assert (study.sweep.curve["nominal_worst"] <= study.sweep.curve["worst"] + error).all()


def test_changed_states_are_those_that_would_lose(study: Study) -> None:
    for point in (study.sweep.points[0], study.sweep.points[15], study.sweep.points[-1]):
        exact = rm.solve(study.mdp, point.ambiguity, tol=1e-10)
        lost = exact.value - exact.q[np.arange(study.mdp.n_states), study.nominal.policy]
        sure = 2.0 * point.robust.error_bound
        assert set(np.flatnonzero(lost > 2 * sure)) <= set(point.changed.tolist()) <= set(np.flatnonzero(lost > 0))


def test_states_that_differ_from_the_recommended_policy(study: Study) -> None:
    assert len(study.worse(study.sweep.points[study.sweep.shown].robust.policy)) == 0
    robust = study.robust
    for place in (0, 29):
        policy = study.sweep.points[place].robust.policy
        lost = [robust.q[s, robust.policy[s]] - robust.q[s, policy[s]] for s in range(study.mdp.n_states)]
        assert len(study.worse(policy)) == sum(loss > 2 * robust.error_bound for loss in lost)


# The two forms of a level (Theorem 3.1).


def test_matching_levels_have_one_value(study: Study) -> None:
    weight, radius = study.matching["weight"], study.matching["radius"]
    assert study.doubt.level in (weight, radius)
    ambiguities = (rm.Penalized(study.divergence, weight), rm.Constrained(study.divergence, radius))
    one, other = (study.start @ rm.solve(study.mdp, ambiguity, tol=1e-9).value for ambiguity in ambiguities)
    assert one == pytest.approx(other, abs=1e-7 * max(1.0, abs(one)))


# What nature does.


def test_worst_rows_are_distributions_within_the_radius(held_out: Study) -> None:
    level = held_out.doubt.level
    for row in rows_of(held_out.mdp, held_out.doubt, held_out.robust.value, range(64), held_out.robust.policy):
        assert row.worst.sum() == pytest.approx(1.0, abs=1e-9)
        assert row.worst.min() >= 0.0
        assert row.worst @ row.values <= row.nominal @ row.values + 1e-12
        if len(row.worst) > 1:
            assert distance(rm.KL(), row.worst[None], row.nominal[None])[0] <= level * (1 + 1e-6)
        assert row.moved == pytest.approx(np.maximum(row.worst - row.nominal, 0.0).sum(), abs=1e-9)


def naive_rows(mdp: rm.MDP, ambiguity: Any, value: Any, policy: Any) -> list[tuple[Any, Any, Any, Any]]:
    """(successors, model, nature, outcomes) of each state, one row at a time, by `worst_case`."""
    found = []
    values = np.append(value, 0.0)
    for state in range(mdp.n_states):
        pair = mdp.pair(state, int(policy[state]))
        entries = range(mdp.indptr[pair], mdp.indptr[pair + 1])
        where = np.array([mdp.indices[k] for k in entries])
        p = np.array([mdp.probabilities[k] for k in entries])
        rewards = np.array([mdp.rewards[k] if mdp.rewards_on_successors else 0.0 for k in entries])
        outcomes = rewards + mdp.discount * values[where]
        scaled = ambiguity
        if isinstance(ambiguity, rm.Penalized):
            scaled = rm.Penalized(ambiguity.divergence, mdp.discount * ambiguity.level)
        found.append((where, p, rm.worst_case(scaled, p, outcomes).distribution, outcomes))
    return found


def test_rows_are_nature_s_answers(study: Study) -> None:
    robust, doubt = study.robust, study.doubt
    rows = rows_of(study.mdp, doubt, robust.value, range(study.mdp.n_states), robust.policy)
    for row, (_, p, worst, outcomes) in zip(
        rows, naive_rows(study.mdp, doubt, robust.value, robust.policy), strict=True
    ):
        assert np.array_equal(row.nominal, p)
        assert np.allclose(row.values, outcomes)
        assert row.worst @ outcomes == pytest.approx(worst @ outcomes, abs=1e-9 * max(1.0, np.abs(outcomes).max()))


def rewards_on_successors() -> Study:
    rng = np.random.default_rng(1)
    mdp = rm.MDP.from_arrays(rng.dirichlet(np.ones(5), size=(5, 3)), rng.normal(size=(5, 3, 5)), 0.8)
    return studied(mdp=mdp, divergence=rm.ChiSquare())


@pytest.mark.parametrize("which", ["knee", "radius", "rewards on successors"])
def test_what_nature_takes(which: str, at_the_knee: Study, held_out: Study) -> None:
    """By a dense linear system: visits d = start + discount Q' d, times how much lower each row's mean is."""
    study = {"knee": at_the_knee, "radius": held_out}.get(which) or rewards_on_successors()
    mdp, robust = study.mdp, study.robust
    chain, lower = np.zeros((mdp.n_states, mdp.n_states + 1)), np.zeros(mdp.n_states)
    for state, (where, p, worst, outcomes) in enumerate(naive_rows(mdp, study.doubt, robust.value, robust.policy)):
        np.add.at(chain[state], where, worst)
        lower[state] = (p - worst) @ outcomes
    visits = np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * chain[:, :-1].T, study.start)
    taken = taken_by_nature(mdp, study.doubt, robust, study.start)
    assert np.allclose(taken, lower * visits, atol=1e-5 * max(1.0, np.abs(lower * visits).max()))
    assert taken.sum() > 0


# The rest of it.


def test_the_stress_test_has_the_policies_and_the_worlds(study: Study) -> None:
    policies = list(dict.fromkeys(study.stress["policy"].tolist()))
    assert policies == ["nominal", "robust"]
    families = list(dict.fromkeys(study.stress["family"].tolist()))
    radius = study.radius
    assert isinstance(radius, float)
    assert f"random, up to {radius:.3g} on average (Kullback-Leibler)" in families
    for factor in (0.5, 1.0, 2.0):
        assert f"worst case, Kullback-Leibler radius {factor * radius:.3g}" in families


def test_the_value_against_nature_is_the_worst_case(study: Study) -> None:
    """The recommended policy at the recommended radius: evaluated in its own worst world, its certified value."""
    assert isinstance(study.radius, float)
    doubt = rm.Constrained(study.divergence, study.radius)
    value = rm.evaluate(study.mdp, study.robust.policy, doubt).value
    row = study.stress.where(policy="robust", family=f"worst case, Kullback-Leibler radius {study.radius:.3g}")
    assert row["mean"][0] == pytest.approx(float(study.start @ value), abs=2e-5 * max(1.0, abs(study.start @ value)))


def test_policies_of_the_user_are_tried() -> None:
    chain = rm.problems.chain()
    mixed = np.full((10, 2), 0.5)
    study = studied(mdp=chain, policies={"mixed": mixed})
    value = study.stress.where(policy="mixed", family=f"worst case, Kullback-Leibler radius {study.radius:.3g}")["mean"]
    worst = rm.evaluate(chain, mixed, rm.Constrained(rm.KL(), study.radius)).value
    assert value[0] == pytest.approx(worst.mean(), abs=1e-4)
    with pytest.raises(ValueError, match=r"policies must have names of their own: \['nominal'\]"):
        rm.analyse(chain, policies={"nominal": mixed})


def test_progress_rises_from_nothing_to_nearly_all() -> None:
    heard: list[tuple[str, float]] = []
    rm.analyse(rm.problems.river_swim(), progress=lambda part, share: heard.append((part, share)))
    parts = list(dict.fromkeys(part for part, _ in heard))
    assert parts == ["solving the model", "robustness curve", "stress test"]
    shares = [share for _, share in heard]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, pytest.approx(0.95))


def test_it_describes_itself() -> None:
    analysis = rm.analyse(rm.problems.machine_replacement(), title="Machines")
    assert repr(analysis).splitlines()[0] == "Analysis"
    assert "Machines" in repr(analysis)
    assert "because" in repr(analysis)
    assert "<table>" in analysis._repr_html_()


@pytest.mark.parametrize("at", ["solving the model", "robustness curve", "stress test"])
def test_an_interrupt_ends_it(at: str) -> None:
    """Ctrl-C anywhere passes through: what is there by then is nothing to report on."""

    def interrupted(part: str, share: float) -> None:
        if part == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rm.analyse(rm.problems.river_swim(), progress=interrupted)


# Any set.


@pytest.fixture(scope="module")
def of_function() -> Study:
    """Levels that fall, and a set that invents transitions."""
    return studied(
        mdp=rm.problems.machine_replacement(),
        divergence=lambda level: rm.Contamination(1.0 - level, support="all"),
        levels=[0.95, 0.99, 0.9, 0.8],
        initial=0,
    )


def test_the_curve_of_a_function_runs_from_nominal_to_robust(of_function: Study) -> None:
    assert of_function.sweep.name == "level"
    assert of_function.sweep.curve["level"].tolist() == [0.99, 0.95, 0.9, 0.8]
    assert not of_function.sweep.grows
    worst = of_function.sweep.curve["worst"]
    assert (np.diff(worst) < 0.0).all()
    again = rm.solve(of_function.mdp, rm.Contamination(0.05, support="all"))
    assert worst[1] == pytest.approx(again.value[0], abs=2 * TOL * np.abs(again.value).max())


def test_the_stress_test_has_the_worst_cases_of_the_function(of_function: Study) -> None:
    families = set(of_function.stress["family"].tolist())
    assert any("Contamination share 0.2" in name for name in families)


def test_invented_successors_are_shown(of_function: Study) -> None:
    """The mass that nature puts where the model does not lead, and what it takes there."""
    mdp, doubt = of_function.mdp, rm.Contamination(0.2, support="all")
    solution = rm.solve(mdp, doubt)
    rows = rows_of(mdp, doubt, solution.value, np.arange(mdp.n_states), solution.policy)
    worst = solution.worst_case
    for row in rows:
        assert row.worst.sum() == pytest.approx(1.0, abs=1e-12)
        assert row.nominal.sum() == pytest.approx(1.0, abs=1e-12)
        pair = worst.pair(row.state, row.action)
        at = slice(worst.indptr[pair], worst.indptr[pair + 1])
        shown = {int(s): p for s, p in zip(row.successors, row.worst.tolist(), strict=True) if p > 0.0}
        assert shown == pytest.approx(dict(zip(worst.indices[at].tolist(), worst.probabilities[at], strict=True)))
    assert any((row.nominal == 0.0).any() for row in rows)
    size = mdp.n_states
    chain, lost = np.zeros((size, size)), np.zeros(size)
    for row in rows:
        chain[row.state, [int(s) for s in row.successors]] = row.worst
        lost[row.state] = (row.nominal - row.worst) @ row.values
    visits = np.linalg.solve(np.eye(size) - mdp.discount * chain.T, np.eye(size)[0])
    taken = taken_by_nature(mdp, doubt, solution, np.eye(size)[0])
    assert taken == pytest.approx(visits * lost, rel=1e-4, abs=1e-4)  # visits are counted until 1e-6 of them are left


def test_a_function_without_levels_is_refused() -> None:
    with pytest.raises(TypeError, match="a function from a level to a set needs levels="):
        rm.analyse(rm.problems.machine_replacement(), rm.CVaR)
    with pytest.raises(ValueError, match="levels must hold a number above 0"):
        rm.analyse(rm.problems.machine_replacement(), lambda level: rm.L1(level + 1.0), levels=[-0.5, 0.0])


def test_random_policies(tmp_path: Path) -> None:
    """The likeliest action with its probability, and the states in which the nominal action alone is worse."""
    machine = rm.problems.machine_replacement()
    analysis = rm.analyse(machine, lambda level: rm.SRectangular(rm.L1(level)), levels=[0.1, 0.5, 1.0])
    page = analysis.write(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "the policy is random" in page
    assert "repair 0.9" in page
    curve = rm.robustness_curve(machine, lambda level: rm.SRectangular(rm.L1(level)), levels=[0.0, 0.5])
    assert curve["changed"].tolist()[0] == 0 < curve["changed"].tolist()[1]
    assert (curve["worst"] >= curve["nominal_worst"] - curve["error_bound"]).all()
