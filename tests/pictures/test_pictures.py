"""Pictures show the numbers they are made of, with labels that fit, and need matplotlib only when drawn."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import robustmdp as rm
from robustmdp import pictures

MACHINE = rm.problems.machine_replacement()
DOUBT = rm.Constrained(rm.KL(), 0.1)


@pytest.fixture(scope="module")
def robust() -> rm.Solution:
    return rm.solve(MACHINE, DOUBT)


def draw(figure):
    """Rendering finds labels that cannot be set; warnings are errors."""
    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    return figure.axes


def texts(axis):
    return [label.get_text() for label in axis.get_ticklabels() if label.get_text()]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def line(axes, label):
    (found,) = (one for one in axes.lines if one.get_label() == label)
    return found.get_ydata()


def bars(axes):
    """The ends of error bars, (S, 2)."""
    (bars,) = axes.containers
    return np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])


def test_values_bounds_and_policy_state_by_state(robust):
    values, policy = draw(robust.plot())
    np.testing.assert_array_equal(line(values, "value"), robust.value)
    np.testing.assert_allclose(bars(values), np.column_stack([robust.lower, robust.upper]), atol=1e-12)
    assert legend(values) == ["value", "bounds"]
    assert values.get_title(loc="left").startswith("converged, certified to ")
    np.testing.assert_array_equal(
        policy.collections[0].get_offsets(), np.column_stack([np.arange(MACHINE.n_states), robust.policy])
    )
    assert texts(policy.xaxis) == list(MACHINE.state_names)
    assert texts(policy.yaxis) == list(MACHINE.action_names)
    assert values.get_ylabel() == "value\n(in units of reward)"


def test_areas_are_the_probabilities_of_a_random_policy():
    solution = rm.solve(MACHINE, rm.SRectangular(rm.L1(0.3)))
    state, action = np.nonzero(solution.policy)
    assert len(state) > MACHINE.n_states
    _, policy = draw(solution.plot())
    points = policy.collections[0]
    np.testing.assert_array_equal(points.get_offsets(), np.column_stack([state, action]))
    share = points.get_sizes() / points.get_sizes().max()
    np.testing.assert_allclose(share, solution.policy[state, action], rtol=1e-12)
    assert "area" in policy.get_ylabel()


@pytest.mark.parametrize("ambiguity", [DOUBT, rm.SRectangular(rm.L1(0.3))], ids=["deterministic", "random"])
def test_steps_of_a_finite_horizon(ambiguity):
    solution = rm.solve(MACHINE, ambiguity, criterion=rm.FiniteHorizon(7))
    values, policy, colours = draw(solution.plot())
    np.testing.assert_array_equal(line(values, "value of the first step"), solution.value[0])
    actions = solution.policy if solution.policy.ndim == 2 else solution.policy.argmax(axis=2)
    np.testing.assert_array_equal(policy.images[0].get_array(), actions)
    assert policy.get_ylabel() == "step"
    assert texts(colours.yaxis) == list(MACHINE.action_names)


@pytest.mark.parametrize("within", [None, 3])
def test_the_probability_of_a_goal_is_called_so(within):
    solution = rm.reach(MACHINE, DOUBT, [MACHINE.n_states - 1], within=within)
    values = draw(solution.plot())[0]
    assert values.get_ylabel() == "probability"
    np.testing.assert_array_equal(line(values, "probability"), np.atleast_2d(solution.value)[0])
    assert "\n  probability  " in repr(solution)
    collected = rm.reach(MACHINE, DOUBT, [MACHINE.n_states - 1], within=3, rewards=True)
    assert draw(collected.plot())[0].get_ylabel() == "value of the first step\n(in units of reward)"


def test_a_policy_that_serves_all_steps():
    criterion = rm.FiniteHorizon(4)
    policy = rm.solve(MACHINE, rm.Nominal()).policy
    _, drawn, _ = draw(rm.evaluate(MACHINE, policy, DOUBT, criterion=criterion).plot())
    np.testing.assert_array_equal(drawn.images[0].get_array(), [policy] * 4)


def test_the_average_reward_is_the_gain_and_errors_do_not_fill_the_axis():
    solution = rm.solve(MACHINE, DOUBT, criterion=rm.AverageReward())
    values, _ = draw(solution.plot())
    np.testing.assert_array_equal(line(values, "gain"), solution.gain)
    low, high = values.get_ylim()
    assert high - low >= 1e-3 * abs(solution.gain[0]) * 0.99
    assert values.get_ylabel() == "gain\n(reward per step)"


@pytest.mark.parametrize("named", [False, True])
def test_thousands_of_states_have_a_few_ticks(named):
    names = [f"depot {s:05d}, north of the river" for s in range(10_000)] if named else None
    garnet = rm.problems.garnet(10_000, 40, 2, 0.9, seed=0)
    mdp = rm.MDP.from_rows(
        np.repeat(garnet.states, np.diff(garnet.indptr)),
        np.repeat(garnet.actions, np.diff(garnet.indptr)),
        garnet.indices,
        garnet.probabilities,
        np.repeat(garnet.rewards, np.diff(garnet.indptr)),
        0.9,
        state_names=names,
    )
    solution = rm.solve(mdp, rm.Nominal(), tol=1e-2)
    values, policy = draw(solution.plot())
    assert len(line(values, "value")) == 10_000
    band = values.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (solution.lower.min(), solution.upper.max())
    shares = policy.images[0].get_array()
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    np.testing.assert_allclose(shares.mean(axis=1), np.bincount(solution.policy, minlength=40) / 10_000)
    assert len(policy.get_xticks()) < 12
    assert len(policy.get_yticks()) < 12
    if named:
        assert policy.get_xlabel() == "state (8 of 10,000 names)"
        assert texts(policy.xaxis)[0] == "depot 00000, nort…"
    else:
        assert policy.get_xlabel() == "state (number)"


def test_a_million_states():
    """Too many points and corners are more than matplotlib can fill."""
    n = 1_000_000
    value = np.sin(np.arange(n) / n)
    values = pictures.Values(value, value - 0.1, value + 0.1, None, "value\n(in units)", "bounds", "")
    choices = pictures.Choices(np.arange(n), np.repeat([0, 1], n // 2), np.ones(n), ("left", "right"), 2)
    above, below = draw(pictures.draw_solution(None, values, choices))
    bounds, middle = (one.get_paths()[0].vertices[:, 1] for one in above.collections)
    assert bounds.min() == pytest.approx(-0.1)
    assert bounds.max() == pytest.approx(np.sin(1.0) + 0.1, abs=1e-5)
    assert (middle.min(), middle.max()) == (value[0], value[-1])
    left, right = np.repeat([[1.0, 0.0], [0.0, 1.0]], 250, axis=1)
    np.testing.assert_array_equal(below.images[0].get_array(), [left, right])


def test_names_are_not_read_as_formulas():
    world = rm.MDP.from_rows([0, 1], [0, 0], [1, 0], [1.0, 1.0], [1.0, 0.0], 0.5, state_names=["$5", "$x_{"])
    _, policy = draw(rm.solve(world, rm.Nominal()).plot())
    assert texts(policy.xaxis) == [r"\$5", r"\$x_{"]


def test_infinite_bounds_are_not_drawn():
    world = rm.Simulator(lambda s, a, rng: (1.0, 1 - s, False), 2, 1, 0.5, reward_range=(0.0, 1.0))
    learned = rm.GenerativeQLearning(rm.Penalized(rm.KL(), 1.0)).run(world, samples=400)
    assert np.isinf(learned.lower).all()
    values, _, _ = draw(learned.plot())
    assert not values.containers
    assert values.get_title(loc="left") == "400 samples, not certified"


def test_a_learner_shows_its_confidence_and_its_error():
    exact = rm.solve(MACHINE, rm.Penalized(rm.ChiSquare(), 10.0))
    learner = rm.GenerativeQLearning(rm.Penalized(rm.ChiSquare(), 10.0))
    learned = learner.run(MACHINE, samples=20_000, confidence=0.9, reference=exact.q)
    values, _, error = draw(learned.plot())
    assert legend(values) == ["value", "bounds, 90 % confidence"]
    np.testing.assert_array_equal(error.lines[0].get_xdata(), learned.trace["samples"])
    np.testing.assert_array_equal(error.lines[0].get_ydata(), learned.trace["error"])
    assert error.get_ylabel() == "largest error of Q"
    assert error.get_xlabel() == "samples (transitions drawn)"


@pytest.mark.parametrize("weights", [[10.0, 3.0, 0.1], [np.inf, 10.0, 0.1]])
def test_a_curve(weights):
    curve = rm.robustness_curve(MACHINE, rm.KL(), weights, initial=0)
    values, changes = draw(curve.plot())
    for label, column in (
        ("robust policy, if the model is right", "nominal"),
        ("robust policy, worst case", "worst"),
    ):
        np.testing.assert_array_equal(line(values, label), curve[column])
    np.testing.assert_array_equal(changes.lines[-1].get_ydata(), curve["changed"])
    left, right = (values.transData.transform((x, 0))[0] for x in values.lines[-2].get_xdata()[[0, -1]])
    assert left < right  # the least robust level on the left
    assert changes.get_xlabel() == "price of a deviation (weight), more robust to the right"


def test_the_knee_of_a_curve_is_marked():
    curve = rm.robustness_curve(MACHINE, rm.KL(), [10.0, 3.0, 0.1], initial=0).with_notes(knee=1)
    values, changes = draw(curve.plot())
    assert legend(values)[0] == "knee: 3"
    assert values.lines[0].get_xdata() == changes.lines[0].get_xdata() == [3.0, 3.0]


def test_a_curve_without_a_knee_marks_none():
    chain = rm.problems.two_state(0.5, 0.9)
    curve = rm.robustness_curve(chain, rm.KL(), radii=[0.01, 0.02])
    assert curve.notes["knee"] == -1
    assert not any(text.startswith("knee") for text in legend(draw(curve.plot())[0]))


def test_a_curve_that_was_interrupted_at_once_is_empty():
    curve = rm.robustness_curve(MACHINE, rm.KL(), [10.0], initial=0)
    empty = rm.CurveTable(curve[:0].columns, {**curve.notes, "knee": -1})
    values, _ = draw(empty.plot())
    assert len(line(values, "robust policy, worst case")) == 0


def test_a_stress_test_has_a_point_per_world():
    worlds = {"repairs": [rm.problems.machine_replacement(repair_success=p) for p in (0.5, 0.6, 0.7)]}
    table = rm.stress(MACHINE, {"nominal": rm.Nominal(), "robust": DOUBT}, worlds, initial=0)
    (axes,) = draw(table.plot())
    assert texts(axes.yaxis) == ["nominal", "robust"]
    points = [one.get_xdata() for one in axes.lines[::3]]
    for policy, drawn in zip(("nominal", "robust"), points, strict=True):
        np.testing.assert_array_equal(drawn, table.outcomes.where(policy=policy)["value"])
    np.testing.assert_array_equal([one.get_xdata()[0] for one in axes.lines[1::3]], table["mean"])
    np.testing.assert_array_equal([one.get_xdata()[0] for one in axes.lines[2::3]], table["worst_tenth"])


def test_a_suggestion_shows_what_was_tried():
    others = [rm.problems.machine_replacement(repair_success=p) for p in (0.4, 0.5, 0.6, 0.7)]
    advice = rm.suggest(MACHINE, held_out=others, initial=0)
    levels, gains = draw(advice.plot())
    np.testing.assert_array_equal(line(levels, "mean, worlds that selected"), advice.candidates["mean"])
    assert len(texts(levels.xaxis)) == len(advice.candidates)
    assert levels.get_title(loc="left") == f"The worlds that tested say: {advice.verdict}"
    assert texts(gains.yaxis) == advice.comparison["policy"][1:].tolist()
    drawn = [bar.lines[0].get_xdata() for bar in gains.containers]
    np.testing.assert_array_equal(drawn, [advice.comparison["gain"][1:], advice.comparison["tail_gain"][1:]])


def test_a_suggestion_without_worlds_is_a_curve():
    advice = rm.suggest(MACHINE, initial=0)
    values, _ = draw(advice.plot())
    np.testing.assert_array_equal(line(values, "robust policy, worst case"), advice.candidates["worst"])


def test_drawn_into_axes(robust):
    figure = Figure()
    one, two = figure.subplots(1, 2)
    assert robust.plot(ax=one) is figure
    assert len(figure.axes) == 2
    assert one.get_xlabel() == "state"
    assert not two.lines
    assert robust.plot(ax=[one, two]) is figure
    assert two.collections


def test_axes_that_are_none_are_refused(robust):
    with pytest.raises(ValueError, match=r"^ax must be an axes or a list of at most 2: got 3$"):
        robust.plot(ax=Figure().subplots(1, 3))
    with pytest.raises(TypeError, match=r"^ax must be a matplotlib axes or a list of them: got int$"):
        robust.plot(ax=3)


def test_pyplot_gets_the_figure_where_it_can_open_a_window(robust, monkeypatch):
    import matplotlib.pyplot as plt

    robust.plot()
    assert plt.get_fignums() == []  # nothing is kept where pyplot cannot show it
    monkeypatch.setattr(plt, "get_backend", lambda: "TkAgg")
    figure = robust.plot()
    assert plt.figure(plt.get_fignums()[0]) is figure
    plt.close(figure)


WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None
import robustmdp as rm
solution = rm.solve(rm.problems.two_state(0.5, 0.9), rm.Nominal())
solution.summary()
solution.plot()
"""


def test_matplotlib_is_asked_for_when_something_is_drawn():
    run = subprocess.run([sys.executable, "-c", WITHOUT_MATPLOTLIB], capture_output=True, text=True, check=False)
    last = run.stderr.splitlines()[-1]
    assert last == "ImportError: matplotlib must be installed for plot(): pip install 'robustmdp[plot]'"
