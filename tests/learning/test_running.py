"""The one loop of all learners: what it counts, records and reports, how it stops, and the Solution it leaves."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import robustmdp as rm
from robustmdp.learning import runs

# Short runs miss some pairs, which is not the point here; test_messages tests the warning.
pytestmark = pytest.mark.filterwarnings("ignore:the behaviour policy must visit every pair")

DOUBT = rm.Penalized(rm.ChiSquare(), 1.0)
CHAIN = rm.problems.chain(restart=0.5)
# Two states; the second has one action only.
LAME = rm.MDP.from_rows([0, 0, 0, 1], [0, 1, 1, 0], [1, 0, 1, 0], [1.0, 0.5, 0.5, 1.0], [1.0, 0.0, 2.0, -1.0], 0.9)


def draw(state: int, action: int, rng: np.random.Generator) -> tuple[float, int, bool]:
    return float(state == 0), int(rng.integers(3)), bool(rng.random() < 0.1)


SIMULATOR = rm.Simulator(draw, 3, 2, 0.9, (0.0, 1.0), state_names=("a", "b", "c"), action_names=("go", "stay"))
LEARNERS = {
    "generative": rm.GenerativeQLearning(DOUBT),
    "generative paper": rm.GenerativeQLearning.paper(DOUBT, inner_steps=4),
    "markovian": rm.MarkovianQLearning(DOUBT),
    "markovian paper": rm.MarkovianQLearning.paper(DOUBT),
    "epsilon greedy": rm.MarkovianQLearning(DOUBT, rm.EpsilonGreedy(0.3)),
    "multilevel": rm.MultilevelQLearning(rm.Constrained(rm.KL(), 0.1)),
    "plug-in": rm.PlugIn(DOUBT),
}


def same(a: rm.Solution, b: rm.Solution) -> bool:
    """Equal to the bit in all that was learned and recorded."""
    tables = all(np.array_equal(getattr(a, x), getattr(b, x), equal_nan=True) for x in ("q", "visits", "eta", "value"))
    return tables and same_trace(a, b) and (a.status, a.steps, a.samples) == (b.status, b.steps, b.samples)


def same_trace(a: rm.Solution, b: rm.Solution) -> bool:
    return a.trace.keys() == b.trace.keys() and all(
        np.array_equal(a.trace[name], b.trace[name], equal_nan=True) for name in a.trace
    )


# Steps and samples.


@pytest.mark.parametrize(
    ("name", "per_step"), [("generative", 20), ("generative paper", 100), ("markovian", 1), ("plug-in", 20)]
)
def test_steps_and_samples_are_two_words_for_the_same(name: str, per_step: int) -> None:
    by_steps = LEARNERS[name].run(CHAIN, 300)
    by_samples = LEARNERS[name].run(CHAIN, samples=300 * per_step + per_step // 2)  # what does not fill a step is left
    assert same(by_steps, by_samples)
    assert by_steps.steps == 300
    assert by_steps.samples == by_steps.visits.sum() == 300 * per_step


def test_multilevel_counts_the_samples_that_chance_made_it_draw() -> None:
    learned = LEARNERS["multilevel"].run(CHAIN, 50)
    assert learned.samples == learned.visits.sum() == learned.trace["samples"][-1]
    expected = 50 * 20 * 2 * 0.625 / (2 * 0.625 - 1)
    assert 0.5 * expected < learned.samples < 2 * expected


@pytest.mark.parametrize("name", LEARNERS)
def test_the_trace_of_a_model_has_the_residual_or_the_error(name: str) -> None:
    reference = np.arange(20.0).reshape(10, 2)
    plain, compared = (LEARNERS[name].run(CHAIN, 100, record_every=30, reference=q) for q in (None, reference))
    assert list(plain.trace) == ["steps", "samples", "residual"]
    assert list(compared.trace) == ["steps", "samples", "error"]
    for trace in (plain.trace, compared.trace):
        assert trace["steps"].tolist() == [30, 60, 90, 100]
        assert trace["steps"].dtype == trace["samples"].dtype == np.int64
        assert {len(column) for column in trace.values()} == {4}
        assert trace["samples"][-1] == plain.samples
    assert np.array_equal(plain.q, compared.q)
    if name == "plug-in" and not np.isfinite(compared.q).all():
        pytest.fail("every pair was sampled")
    assert compared.trace["error"][-1] == np.abs(compared.q - reference).max()
    bellman = rm.RobustBellman(CHAIN, LEARNERS[name].ambiguity)
    # The sweep for the trace and this one are the same to rounding of values of about 10.
    assert plain.trace["residual"][-1] == pytest.approx(np.abs(bellman.apply_q(plain.q) - plain.q).max(), abs=1e-12)


def test_the_residual_without_a_model_is_small_in_the_end() -> None:
    learner, told = rm.MarkovianQLearning(DOUBT), {"steps": 40_000, "record_every": 4000}
    trace = learner.run(SIMULATOR, **told).trace
    assert list(trace) == ["steps", "samples", "residual"]
    assert np.isnan(trace["residual"][0])  # a change needs two looks
    assert np.all(trace["residual"][1:] >= 0)
    # It is an average over some hundred visits a pair, whose noise is what is left of it.
    assert trace["residual"][-1] < 0.1


@pytest.mark.parametrize("steps", [1, 7, 100, 12_345])
def test_the_trace_is_short_and_ends_at_the_last_step(steps: int) -> None:
    trace = rm.MarkovianQLearning(DOUBT).run(LAME, steps, reference=np.zeros((2, 2))).trace
    assert trace["steps"][-1] == steps
    assert 1 <= len(trace["steps"]) <= 100
    assert np.all(np.diff(trace["steps"]) > 0)


# What must not matter.


@pytest.mark.parametrize("world", [CHAIN, SIMULATOR], ids=["MDP", "Simulator"])
@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_learned_does_not_depend_on_who_watches(
    name: str, world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 40 if name == "multilevel" else 400
    learner = LEARNERS[name]
    if name == "markovian paper" and world is SIMULATOR:
        learner = rm.MarkovianQLearning.paper(DOUBT, d_min=0.1, d_max=0.3)
    plain = learner.run(world, steps, record_every=100)
    assert same(plain, learner.run(world, steps, record_every=100, progress=lambda seen: None))
    monkeypatch.setattr(runs, "_SECONDS_PER_PIECE", 0.0)  # piece by piece, one step each
    assert same(plain, learner.run(world, steps, record_every=100))
    dense = learner.run(world, steps, record_every=7)
    assert np.array_equal(plain.q, dense.q)
    assert np.array_equal(plain.eta, dense.eta, equal_nan=True)
    assert np.array_equal(plain.visits, dense.visits)
    if name != "plug-in":  # see test_checkpoints
        saved = learner.run(world, steps, record_every=100, checkpoint=tmp_path / "run", checkpoint_every=33)
        assert same(plain, saved)


def test_a_diverged_run_does_not_depend_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    # It stops when the loop looks, and how often it looks is a matter of time.
    learner = rm.MarkovianQLearning.paper(rm.Penalized(rm.ChiSquare(), 0.5), literal=True)
    found = []
    for seconds in (0.0, 1000.0):
        monkeypatch.setattr(runs, "_SECONDS_PER_PIECE", seconds)
        found.append(learner.run(CHAIN, 100_000, record_every=350))  # it overflows at step 314
    assert found[0].status.code == "diverged"
    assert same(*found)
    assert found[0].steps == found[0].samples == found[0].visits.sum()


# Many at once.


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", LEARNERS)
def test_many_runs_are_single_runs(name: str, threads: int) -> None:
    steps, seeds = 60, [3, 1, 4, 1, 5]
    many = LEARNERS[name].run_many(CHAIN, steps, seeds=seeds, record_every=20, threads=threads)
    assert len(many) == 5
    for seed, solution in zip(seeds, many, strict=True):
        assert same(solution, LEARNERS[name].run(CHAIN, steps, seed=seed, record_every=20))
    assert same(many[1], many[3])
    assert not np.array_equal(many[0].q, many[1].q)


def test_a_diverged_run_among_many_is_the_single_run() -> None:
    learner = rm.MarkovianQLearning.paper(rm.Penalized(rm.ChiSquare(), 0.5), literal=True)
    many = learner.run_many(CHAIN, 2000, seeds=4, threads=1, record_every=50)
    assert all(same(solution, learner.run(CHAIN, 2000, seed=s, record_every=50)) for s, solution in enumerate(many))


@pytest.mark.parametrize("seeds", [3, np.int64(3), [0, 1, 2], (0, 1, 2), np.arange(3)], ids=repr)
def test_seeds_are_a_number_or_a_list(seeds: Any) -> None:
    many = rm.GenerativeQLearning(DOUBT).run_many(CHAIN, 5, seeds=seeds)
    assert [rm.GenerativeQLearning(DOUBT).run(CHAIN, 5, seed=s).q.tolist() for s in range(3)] == [
        solution.q.tolist() for solution in many
    ]


def test_an_engine_is_given_the_groups() -> None:
    class Engine:
        seen = 0

        def map(self, task: Any, items: Any) -> Any:
            for item in items:
                self.seen += len(item[1])  # (learner, seeds)
                yield task(item)

    engine = Engine()
    many = rm.GenerativeQLearning(DOUBT).run_many(CHAIN, 5, seeds=5, engine=engine)
    assert engine.seen == len(many) == 5
    assert same(many[2], rm.GenerativeQLearning(DOUBT).run(CHAIN, 5, seed=2))


def test_an_interrupt_ends_a_loop_over_runs_and_is_the_result_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs.Run, "_record", interrupted)
    learner = rm.GenerativeQLearning(DOUBT)
    assert learner.run(CHAIN, 5).status.code == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        learner.run_many(CHAIN, 5, seeds=2, engine=rm.engine.Serial())


# Progress and stopping.


def test_progress_is_told_how_far_a_run_is() -> None:
    seen: list[Any] = []
    rm.GenerativeQLearning(DOUBT).run(CHAIN, 500, progress=seen.append, reference=np.zeros((10, 2)), record_every=100)
    assert [report.step for report in seen] == sorted({report.step for report in seen})
    last = seen[-1]
    assert (last.step, last.steps, last.samples) == (500, 500, 10_000)
    assert last.rate > 0
    assert last.seconds_left == 0
    assert last.error > 0
    assert np.isnan(seen[0].error)  # nothing was compared yet


@pytest.mark.parametrize("world", [CHAIN, SIMULATOR], ids=["MDP", "Simulator"])
def test_progress_can_stop_a_run(world: Any) -> None:
    learner = rm.MarkovianQLearning(DOUBT)
    stopped = learner.run(world, 10_000, progress=lambda seen: seen.step >= 1000)
    assert stopped.status.code == "interrupted"
    assert 1000 <= stopped.steps < 10_000
    assert stopped.samples == stopped.visits.sum() == stopped.steps
    assert f"after {stopped.steps} of 10000 steps" in stopped.status.sentence
    # What is left is what the first steps teach: the burn-in of the long run is 500 steps.
    share = 0.05 * 10_000 / stopped.steps
    again = rm.MarkovianQLearning(DOUBT, burn_in=share).run(world, stopped.steps)
    assert np.array_equal(stopped.q, again.q)


@pytest.mark.parametrize("answer", [None, False, 1, "yes"])
def test_only_true_stops_a_run(answer: Any) -> None:
    assert rm.MarkovianQLearning(DOUBT).run(CHAIN, 100, progress=lambda seen: answer).steps == 100


def test_control_c_while_reporting_leaves_what_is_done() -> None:
    def interrupt(seen: Any) -> None:
        if seen.step > 100:
            signal.raise_signal(signal.SIGINT)

    stopped = rm.MarkovianQLearning(DOUBT).run(CHAIN, 10_000, progress=interrupt)
    assert stopped.status.code == "interrupted"
    assert stopped.samples == stopped.visits.sum() == stopped.steps
    assert 100 < stopped.steps < 10_000


@pytest.mark.parametrize("kind", ["markovian", "epsilon greedy", "generative", "generative paper"])
@pytest.mark.parametrize("at", [1, 2, 777, 40_000])
def test_control_c_inside_a_world_leaves_what_is_done(at: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_SECONDS_PER_PIECE", 1000.0)  # so that 40,000 comes within a piece of several blocks
    calls = 0

    def interrupted(state: int, action: int, rng: np.random.Generator) -> tuple[float, int, bool]:
        nonlocal calls
        calls += 1
        if calls == at:
            signal.raise_signal(signal.SIGINT)
        return draw(state, action, rng)

    world = rm.Simulator(interrupted, 3, 2, 0.9, (0.0, 1.0))
    stopped = LEARNERS[kind].run(world, 70_000, record_every=10**6)
    assert stopped.status.code == "interrupted"
    assert stopped.samples == stopped.visits.sum()  # the piece was finished, so that world and tables agree
    assert stopped.steps < 70_000
    assert stopped.q.shape == (3, 2)


@pytest.mark.parametrize("many", [False, True])
def test_a_real_control_c_ends_a_run_soon(many: bool) -> None:
    call = "run_many(world, 10**12, seeds=2, threads=2)" if many else "run(world, 10**12)"
    code = f"""
import robustmdp as rm
world = rm.problems.chain(restart=0.5)
learner = rm.MarkovianQLearning(rm.Penalized(rm.ChiSquare(), 1.0))
learner.run(world, 1000)
print("ready", flush=True)
try:
    out = learner.{call}
    out = out if isinstance(out, list) else [out]
    print(*[x.status.code for x in out], *[int(x.visits.sum()) == x.samples for x in out])
except KeyboardInterrupt:
    print("KeyboardInterrupt")
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.7)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=5)
        finally:
            process.kill()
    expected = ["interrupted interrupted True True", "KeyboardInterrupt"] if many else ["interrupted True"]
    assert out.strip() in expected


def test_an_error_in_a_world_is_not_swallowed() -> None:
    def broken(state: int, action: int, rng: Any) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        rm.MarkovianQLearning(DOUBT).run(rm.Simulator(broken, 3, 2, 0.9, (0.0, 1.0)), 10)


# The Solution.


VALUES_OF_LAME = np.array(LAME.reward_range) / (1.0 - LAME.discount)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_solution_of_a_model_has_every_field(name: str) -> None:
    learner = LEARNERS[name]
    learned = learner.run(LAME, 200)
    assert learned.q.shape == (2, 2)
    assert learned.q.dtype == np.float64
    assert np.array_equal(learned.q == -np.inf, [[False, False], [False, True]])
    assert learned.policy.dtype == np.int64
    assert np.array_equal(learned.policy, learned.q.argmax(axis=1))
    assert learned.visits.shape == (2, 2)
    assert learned.visits[1, 1] == 0
    assert learned.eta.shape == (2, 2)
    assert np.isnan(learned.eta[1, 1])
    # The paper's steps are long at first: after 200 of them Q may still be no possible return.
    assert learned.status.code == "step_limit" or name == "markovian paper"
    exact = rm.solve(LAME, learner.ambiguity, tol=1e-12)
    # Certified bounds must hold whatever was learned.
    assert np.all(learned.lower <= exact.value + 1e-9)
    assert np.all(exact.value <= learned.upper + 1e-9)
    kept = rm.evaluate(LAME, learned.policy, learner.ambiguity, tol=1e-12)
    assert np.all(learned.lower <= kept.value + 1e-9)
    assert np.array_equal(learned.value, np.clip(learned.q.max(axis=1), *VALUES_OF_LAME))
    assert learned.error_bound == max((learned.upper - learned.value).max(), (learned.value - learned.lower).max())
    assert learned.worst_case.n_pairs == LAME.n_pairs


def test_learned_eta_comes_near_the_exact_one() -> None:
    for ambiguity in (DOUBT, rm.Penalized(rm.KL(), 1.0), rm.Penalized(rm.Hellinger(), 2.0)):
        learned = rm.GenerativeQLearning(ambiguity).run(CHAIN, 20_000)
        # eta learns from the same samples as Q, so that its error is of the order of Q's.
        exact = rm.solve(CHAIN, ambiguity)
        assert np.abs(learned.eta - exact.eta).max() <= 5 * max(0.02, np.abs(learned.q - exact.q).max())


def env() -> Any:
    return gymnasium.make("FrozenLake-v1")


LOG = rm.Trajectory([0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1], [1.0, 0.0, 2.0] * 2, [1, 2, 0] * 2)


@pytest.mark.parametrize("world", [SIMULATOR, LOG], ids=["Simulator", "Trajectory"])
def test_a_solution_without_a_model_bounds_nothing(world: Any) -> None:
    learned = rm.MarkovianQLearning(DOUBT).run(world, 5000 if world is SIMULATOR else None)
    assert np.array_equal(learned.lower, np.full(3, -np.inf))
    assert np.array_equal(learned.upper, np.full(3, np.inf))
    assert learned.error_bound == np.inf
    assert not learned.converged
    assert np.array_equal(learned.value, learned.q.max(axis=1))
    assert "no model is known" in learned.status.sentence
    for name in ("worst_case", "penalty"):
        with pytest.raises(ValueError, match=r"^worst_case needs a model, and this was learned without one"):
            getattr(learned, name)
    assert learned.eta.shape == (3, 2)
    assert np.isfinite(learned.eta).all()


@pytest.mark.parametrize("world", [CHAIN, SIMULATOR, LOG], ids=["MDP", "Simulator", "Trajectory"])
def test_solutions_show_themselves(world: Any) -> None:
    learned = rm.MarkovianQLearning(DOUBT).run(world, None if world is LOG else 500)
    text, page = repr(learned), learned._repr_html_()
    for part in (str(learned.steps), "step_limit", "certified to" if world is CHAIN else "not certified"):
        assert part in text
        assert part in page
    frame = learned.to_frame()
    assert list(frame.columns) == ["action", "value", "lower", "upper"]
    assert frame["value"].tolist() == learned.value.tolist()
    if world is SIMULATOR:
        assert frame.index.tolist() == ["a", "b", "c"]
        assert set(frame["action"]) <= {"go", "stay"}


@pytest.mark.parametrize("world", [CHAIN, SIMULATOR, LOG], ids=["MDP", "Simulator", "Trajectory"])
@pytest.mark.parametrize("name", ["markovian", "epsilon greedy", "generative", "generative paper", "multilevel"])
def test_solutions_are_pickled_whole(name: str, world: Any) -> None:
    if world is LOG and name != "markovian":
        pytest.skip("a log is not asked")
    learned = LEARNERS[name].run(world, None if world is LOG else 50)
    copy = pickle.loads(pickle.dumps(learned))
    assert copy == learned
    assert same(copy, learned)
    assert np.array_equal(copy.lower, learned.lower)


def test_a_pickled_replication_does_not_carry_the_others() -> None:
    world = rm.problems.garnet(100, 4, 5, 0.9, seed=0)
    learner = rm.GenerativeQLearning(DOUBT)
    one = len(pickle.dumps(learner.run(world, 5)))
    among = len(pickle.dumps(learner.run_many(world, 5, seeds=16, threads=1)[0]))
    assert among < 1.5 * one


def test_solutions_are_not_changed_by_later_runs() -> None:
    learner = rm.GenerativeQLearning(DOUBT)
    first = learner.run(CHAIN, 10)
    kept = first.q.copy(), first.eta.copy(), first.visits.copy()
    learner.run(CHAIN, 20, seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(kept, (first.q, first.eta, first.visits), strict=True))


def test_the_discount_of_worlds_without_one() -> None:
    learner = rm.MarkovianQLearning(rm.Nominal())
    forever = rm.Trajectory([0] * 50_000, [0] * 50_000, [1.0] * 50_000, [0] * 50_000)
    assert learner.run(forever).q[0, 0] == pytest.approx(1 / (1 - 0.95), rel=1e-3)
    assert learner.run(forever, discount=0.5).q[0, 0] == pytest.approx(2.0, rel=1e-6)
    told = rm.Trajectory([0] * 50_000, [0] * 50_000, [1.0] * 50_000, [0] * 50_000, discount=0.8)
    assert learner.run(told).q[0, 0] == pytest.approx(5.0, rel=1e-3)
    assert learner.run(told, discount=0.5).q[0, 0] == pytest.approx(2.0, rel=1e-6)  # what is said last holds


def test_a_models_discount_can_be_replaced() -> None:
    other = CHAIN.with_discount(0.5)
    learner = rm.GenerativeQLearning(DOUBT)
    assert same(learner.run(CHAIN, 20, discount=0.5), learner.run(other, 20))


@pytest.mark.parametrize("world", [CHAIN, rm.Simulator(lambda s, a, rng: (1.0, s, False), 10, 2, 0.9, (0.0, 1.0))])
def test_episodes_begin_where_they_are_told_to(world: Any) -> None:
    with pytest.warns(RuntimeWarning, match="must visit every pair"):
        learned = rm.MarkovianQLearning(DOUBT).run(world, 1, start=7)
    assert np.flatnonzero(learned.visits.any(axis=1)).tolist() == [7]


def test_a_reference_of_an_unfinished_log_is_compared_where_something_is_known() -> None:
    # FrozenLake's holes are never acted in: that must not make every error infinite.
    world = env()
    exact = rm.solve(rm.MDP.from_gymnasium(world, 0.9), DOUBT).q
    trace = rm.MarkovianQLearning(DOUBT).run(world, 20_000, discount=0.9, reference=exact).trace
    assert np.isfinite(trace["error"][-1])


@pytest.mark.parametrize("threads", [1, 3])
def test_settings_and_seeds_together_equal_runs_one_by_one(threads: int) -> None:
    learners = [rm.GenerativeQLearning(DOUBT), rm.GenerativeQLearning.paper(rm.Penalized(rm.KL(), 2.0), 3)]
    references = [rm.solve(CHAIN, learner.ambiguity).q for learner in learners]
    together = rm.run_many(learners, CHAIN, 30, seeds=[4, 1, 9], references=references, threads=threads)
    for learner, reference, found in zip(learners, references, together, strict=True):
        for seed, solution in zip([4, 1, 9], found, strict=True):
            assert same(solution, learner.run(CHAIN, 30, seed=seed, reference=reference))


def test_settings_need_one_reference_each() -> None:
    with pytest.raises(ValueError, match="references must hold one Q per learner, 1 of them: got 2"):
        rm.run_many([rm.GenerativeQLearning(DOUBT)], CHAIN, 1, seeds=1, references=[0, 0])
    with pytest.raises(ValueError, match="learners must hold at least one learner"):
        rm.run_many([], CHAIN, 1, seeds=1)


def test_a_callback_sees_each_record_and_may_stop_the_run() -> None:
    learner, seen = rm.MarkovianQLearning(DOUBT), []

    def look(step: int, state: Any) -> bool:
        assert state.q.shape == state.iterate.shape == state.visits.shape == (10, 2)
        assert state.visits.sum() == step
        seen.append((step, state.q))
        return step == 600

    stopped = learner.run(CHAIN, 1000, record_every=200, callback=look)
    assert [step for step, _ in seen] == stopped.trace["steps"].tolist() == [200, 400, 600]
    assert stopped.status.code == "interrupted"
    assert np.array_equal(seen[-1][1], stopped.q)
    assert not np.array_equal(seen[0][1], stopped.q)
