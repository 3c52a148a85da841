"""The first state by its name: as good as its number, wherever one is taken."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm

pytestmark = pytest.mark.filterwarnings("ignore:the behaviour policy must visit every pair")  # runs are short

MACHINE = rm.problems.machine_replacement()
PRICE, BALL = rm.Penalized(rm.KL(), 100.0), rm.Constrained(rm.KL(), 0.1)
LEARNER, POLICY = rm.MarkovianQLearning(PRICE), np.zeros(MACHINE.n_states, np.int64)
TAKES: dict[str, Callable[[Any], Any]] = {
    "curve": lambda initial: rm.robustness_curve(MACHINE, rm.KL(), [1.0], initial=initial)["worst"],
    "stress": lambda initial: rm.stress(
        MACHINE, {"nominal": rm.Nominal()}, rm.worlds.Adversary(BALL), initial=initial
    ).outcomes["value"],
    "suggest": lambda initial: rm.suggest(MACHINE, rm.CVaR, levels=[1.0, 0.5], initial=initial).candidates["worst"],
    "matching_radius": lambda initial: rm.matching_radius(MACHINE, PRICE, initial),
    "matching_weight": lambda initial: rm.matching_weight(MACHINE, BALL, initial),
    "with_initial": lambda initial: MACHINE.with_initial(initial).initial,
    "run": lambda initial: LEARNER.run(MACHINE, 600, start=initial).visits,
    "run_many": lambda initial: LEARNER.run_many(MACHINE, 600, seeds=2, start=initial)[1].visits,
    "learn_value": lambda initial: rm.learn_value(MACHINE, POLICY, BALL, samples=500, start=initial).visits,
    "to_gymnasium": lambda initial: rm.to_gymnasium(MACHINE, start=initial).reset(seed=0)[0],
}


@pytest.mark.parametrize("name", TAKES)
def test_a_name_means_its_state(name: str) -> None:
    take = TAKES[name]
    np.testing.assert_array_equal(take("age 3"), take(3))
    if name != "learn_value":  # a model is asked about all pairs, wherever episodes begin
        assert not np.array_equal(take("age 3"), take(0))


@pytest.mark.parametrize("name", TAKES)
def test_an_unknown_name_is_refused_with_the_nearest(name: str) -> None:
    argument = "start" if name in ("run", "run_many", "learn_value", "to_gymnasium") else "initial"
    with pytest.raises(ValueError, match=rf"^{argument} must be one of age 0, .*: got 'age3'; did you mean 'age 3'\?$"):
        TAKES[name]("age3")


def test_a_run_with_a_named_start_is_resumed(tmp_path: Path) -> None:
    whole = LEARNER.run(MACHINE, 2000, start="age 3", record_every=500)
    path = tmp_path / "run.safetensors"
    stopped = LEARNER.run(
        MACHINE, 2000, start="age 3", record_every=500, checkpoint=path, checkpoint_every=500, callback=lambda *_: True
    )
    assert stopped.status.code == "interrupted"
    assert np.array_equal(rm.resume(path).q, whole.q)


def test_a_model_without_names_says_so() -> None:
    plain = rm.problems.garnet(5, 2, 2, 0.9, seed=0)
    with pytest.raises(ValueError, match=r"^initial must be a number: this model has no names, got 'age 3'$"):
        rm.robustness_curve(plain, rm.KL(), [1.0], initial="age 3")


def test_a_model_is_made_with_a_named_start() -> None:
    rows = [0, 1], [0, 0], [1, 0], [1.0, 1.0], [1.0, 0.0]
    assert rm.MDP.from_rows(*rows, 0.5, state_names=["up", "down"], initial="down").initial.tolist() == [0.0, 1.0]


def test_only_the_nearest_of_many_names_are_listed() -> None:
    count = 60_000
    names = [f"bay {state:05}" for state in range(count)]
    states = np.arange(count)
    large = rm.MDP.from_rows(states, 0 * states, states, np.ones(count), np.ones(count), 0.5, state_names=names)
    with pytest.raises(ValueError, match=r"^initial must be one of 60,000 names, such as bay 03120, ") as caught:
        large.with_initial("bay 003120")
    assert len(str(caught.value)) < 300
