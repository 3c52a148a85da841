"""What a learner refuses, in one sentence: what must hold, what came, where."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gymnasium import spaces

import robustmdp as rm

# Short runs miss some pairs; where that is the point, the warning is asked for.
pytestmark = pytest.mark.filterwarnings("ignore:the behaviour policy must visit every pair")

DOUBT = rm.Penalized(rm.ChiSquare(), 1.0)
CHAIN = rm.problems.chain(restart=0.5)
LAME = rm.MDP.from_rows([0, 0, 1], [0, 1, 0], [1, 0, 0], [1.0, 1.0, 1.0], [1.0, 0.0, 1.0], 0.9)
FOLLOW, ASK = rm.MarkovianQLearning(DOUBT), rm.GenerativeQLearning(DOUBT)
LOG = rm.Trajectory([0, 1], [0, 1], [1.0, 0.0], [1, 0])


def refused(kind: type[Exception], sentence: str, call: Callable[[], Any]) -> None:
    """The whole message, to the letter."""
    with pytest.raises(kind, match=f"^{re.escape(sentence)}$"):
        call()


# How long and how often.


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"steps": 0}, ValueError, "steps must be at least 1: got 0"),
        ({"steps": -3}, ValueError, "steps must be at least 1: got -3"),
        ({"steps": 1.5}, TypeError, "steps must be a whole number: got 1.5"),
        ({"steps": True}, TypeError, "steps must be a whole number: got True"),
        ({"samples": 0}, ValueError, "samples must be at least 1: got 0"),
        ({"samples": "9"}, TypeError, "samples must be a whole number: got '9'"),
        ({}, ValueError, "give steps or samples, one of them"),
        ({"steps": 1, "samples": 1}, ValueError, "give steps or samples, one of them"),
        ({"steps": 1, "record_every": 0}, ValueError, "record_every must be at least 1: got 0"),
        ({"steps": 1, "checkpoint_every": 0}, ValueError, "checkpoint_every must be at least 1: got 0"),
        ({"steps": 1, "discount": 1.0}, ValueError, "discount must lie in [0, 1): got 1"),
        ({"steps": 1, "seed": -1}, ValueError, "a seed must be at least 0: got -1"),
        ({"steps": 1, "seed": 1.5}, TypeError, "a seed must be a whole number: got 1.5"),
        ({"steps": 1, "seed": None}, TypeError, "a seed must be a whole number: got None"),
        ({"steps": 1, "seed": True}, TypeError, "a seed must be a whole number: got True"),
        ({"steps": 1, "start": 10}, ValueError, "start must lie in 0..9: got 10"),
        ({"steps": 1, "start": -1}, ValueError, "start must lie in 0..9: got -1"),
        ({"steps": 1, "start": 1.5}, TypeError, "start must be a whole number: got 1.5"),
        (
            {"steps": 1, "reference": np.zeros((2, 10))},
            ValueError,
            "reference must have shape (S, A) = (10, 2): got (2, 10)",
        ),
        (
            {"steps": 1, "reference": np.zeros(10)},
            ValueError,
            "reference must have shape (S, A) = (10, 2): got (10,)",
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("learner", [FOLLOW, ASK], ids=["markovian", "generative"])
def test_numbers(learner: Any, options: dict[str, Any], kind: type[Exception], sentence: str) -> None:
    refused(kind, sentence, lambda: learner.run(CHAIN, **options))


@pytest.mark.parametrize("learner", [ASK, rm.PlugIn(DOUBT)], ids=["generative", "plug-in"])
def test_too_few_samples_for_a_round(learner: Any) -> None:
    sentence = "samples must suffice for one step, which takes 20: got 19"
    refused(ValueError, sentence, lambda: learner.run(CHAIN, samples=19))


@pytest.mark.parametrize("reward_range", [(1.0, 0.0), (math.nan, 1.0), (0.0, math.inf), (0.0,), 3.0], ids=str)
@pytest.mark.parametrize("world", [CHAIN, LOG], ids=["MDP", "Trajectory"])
def test_a_reward_range_that_is_none(world: Any, reward_range: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^reward_range must be"):
        FOLLOW.run(world, 2, reward_range=reward_range)


@pytest.mark.parametrize("world", [CHAIN, LOG], ids=["MDP", "Trajectory"])
def test_a_reward_outside_the_given_range(world: Any) -> None:
    # A Simulator refuses it; elsewhere values would be cut off in silence.
    sentence = r"must lie in reward_range \[0, 0.5\]: got 1|must hold the MDP's rewards, 0 to 1: got \(0.0, 0.5\)"
    with pytest.raises(ValueError, match=sentence):
        FOLLOW.run(world, 2, reward_range=(0.0, 0.5), **({"start": 9} if world is CHAIN else {}))


@pytest.mark.parametrize(
    ("seeds", "kind", "sentence"),
    [
        ([], ValueError, "seeds must hold at least one seed: got none"),
        (0, ValueError, "seeds must hold at least one seed: got none"),
        ([1, -1], ValueError, "a seed must be at least 0: got -1"),
        ([0.5], TypeError, "a seed must be a whole number: got 0.5"),
        (2.5, TypeError, "seeds must be a number or a list of seeds: got 2.5"),
    ],
    ids=str,
)
def test_seeds(seeds: Any, kind: type[Exception], sentence: str) -> None:
    refused(kind, sentence, lambda: FOLLOW.run_many(CHAIN, 5, seeds=seeds))


# Who chooses.


@pytest.mark.parametrize(
    ("behaviour", "kind", "sentence"),
    [
        ([1.0], ValueError, "behaviour must have shape (A,) = (2,) or (S, A) = (10, 2): got (1,)"),
        (np.full((9, 2), 0.5), ValueError, "behaviour must have shape (A,) = (2,) or (S, A) = (10, 2): got (9, 2)"),
        ([-0.5, 1.5], ValueError, "behaviour must hold probabilities: got a negative or NaN"),
        ([math.nan, 1.0], ValueError, "behaviour must hold probabilities: got a negative or NaN"),
        ([0.5, 0.6], ValueError, "behaviour must sum to 1 in each state: got 1.1 in state 0"),
        (
            [[0.5, 0.5]] * 3 + [[0.5, 0.4]] * 7,
            ValueError,
            "behaviour must sum to 1 in each state: got 0.9 in state 3",
        ),
        ("greedy", TypeError, "behaviour must be None, probabilities, EpsilonGreedy(...) or a function: got 'greedy'"),
    ],
    ids=str,
)
def test_behaviours(behaviour: Any, kind: type[Exception], sentence: str) -> None:
    refused(kind, sentence, lambda: rm.MarkovianQLearning(DOUBT, behaviour).run(CHAIN, 5))


@pytest.mark.parametrize(
    ("behaviour", "lost"), [([[0.5, 0.5], [0.75, 0.25]], "0.25"), ([0.5, 0.5], "0.5"), ([0.0, 1.0], "1")], ids=str
)
def test_behaviours_on_actions_that_are_not_there(behaviour: Any, lost: str) -> None:
    sentence = f"behaviour must choose available actions: {lost} of state 1's mass is on others"
    refused(ValueError, sentence, lambda: rm.MarkovianQLearning(DOUBT, behaviour).run(LAME, 5))


@pytest.mark.parametrize(
    ("epsilon", "kind", "sentence"),
    [
        (0.0, ValueError, "epsilon must lie in (0, 1]: got 0"),
        (1.5, ValueError, "epsilon must lie in (0, 1]: got 1.5"),
        (math.nan, ValueError, "epsilon must be finite: got nan"),
        ("some", TypeError, "epsilon must be a number: got 'some'"),
    ],
)
def test_epsilons(epsilon: Any, kind: type[Exception], sentence: str) -> None:
    refused(kind, sentence, lambda: rm.EpsilonGreedy(epsilon))


@pytest.mark.parametrize(
    ("learner", "world", "told", "sentence"),
    [
        (
            rm.MarkovianQLearning(DOUBT, [1.0, 0.0]),
            rm.Simulator(lambda s, a, rng: (0.0, 1 - s, False), 2, 2, 0.9, (0.0, 1.0)),
            {"steps": 9},
            "state 0 and action 1 (and 1 more) never came",
        ),
        (
            FOLLOW,
            rm.Trajectory([0, 1, 0], [0, 1, 1], [0.0] * 3, [1, 0, 0], state_names="AB", action_names=("l", "r")),
            {},
            "B and l never came",
        ),
        (rm.PlugIn(DOUBT, trajectory=True), LOG, {}, "state 0 and action 1 (and 1 more) never came"),
    ],
    ids=["behaviour", "log", "counts"],
)
def test_pairs_that_never_come_are_named(learner: Any, world: Any, told: dict[str, int], sentence: str) -> None:
    whole = f"the behaviour policy must visit every pair: {sentence}, so Q there is only a placeholder"
    with pytest.warns(RuntimeWarning, match=f"^{re.escape(whole)}$") as caught:
        learner.run(world, **told)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # it points at the user's line


def test_pairs_that_never_come_are_named_once_for_many_runs() -> None:
    with pytest.warns(RuntimeWarning, match="must visit every pair") as caught:
        rm.MarkovianQLearning(DOUBT, [1.0, 0.0]).run_many(CHAIN, 500, seeds=3, threads=1)
    assert len(caught) == 1
    assert caught[0].filename == __file__


# Learners.


@pytest.mark.parametrize("make", [rm.GenerativeQLearning, rm.MarkovianQLearning, rm.PlugIn])
@pytest.mark.parametrize("thing", [rm.KL(), 1.0, None], ids=repr)
def test_ambiguities(make: Any, thing: Any) -> None:
    sentence = f"ambiguity must be a set such as Nominal(), Penalized(...) or Constrained(...): got {thing!r}"
    refused(TypeError, sentence, lambda: make(thing))


def test_what_the_paper_does_not_cover() -> None:
    kl, ball = rm.Penalized(rm.KL(), 1.0), rm.Constrained(rm.ChiSquare(), 1.0)
    refused(
        ValueError,
        f"literal is Algorithm 2 as printed, which is for a chi-square penalty: got {kl!r}",
        lambda: rm.MarkovianQLearning.paper(kl, literal=True),
    )
    for learner in (rm.MarkovianQLearning.paper(ball), rm.GenerativeQLearning.paper(ball)):
        refused(
            ValueError,
            f"the paper's algorithms are for a penalty: got {ball!r}; the default learner takes a radius",
            lambda learner=learner: learner.run(CHAIN, 5),
        )
    refused(
        ValueError,
        f"multilevel Q-learning is for a Kullback-Leibler ball: got {DOUBT!r}",
        lambda: rm.MultilevelQLearning(DOUBT),
    )


def test_a_level_of_another_shape() -> None:
    doubt = rm.Penalized(rm.KL(), np.ones((3, 2)))
    sentence = "weight must have shape (S, A) = (10, 2): got (3, 2)"
    refused(ValueError, sentence, lambda: rm.GenerativeQLearning(doubt).run(CHAIN, 5))


def test_an_own_divergence_cannot_be_saved(tmp_path: Path) -> None:
    def conjugate(y: float) -> float:
        return y + y * y / 4 if y > -2 else -1.0

    def derivative(y: float) -> float:
        return 1 + y / 2 if y > -2 else 0.0

    own = rm.Divergence("mine", conjugate, derivative)
    sentence = f"a checkpoint can hold built-in divergences only: got {own!r}"
    learner = rm.GenerativeQLearning(rm.Penalized(own, 1.0))
    refused(ValueError, sentence, lambda: learner.run(CHAIN, 5, checkpoint=tmp_path / "run"))
    assert not list(tmp_path.iterdir())


# Worlds.


@pytest.mark.parametrize(("world", "name"), [("FrozenLake-v1", "str"), (None, "NoneType"), (DOUBT, "Penalized")])
def test_things_that_are_no_world(world: Any, name: str) -> None:
    sentence = f"world must be an MDP, a Simulator, a Trajectory or a Gymnasium environment: got {name}"
    refused(TypeError, sentence, lambda: FOLLOW.run(world, 5))


def env(observations: Any = None, actions: Any = None) -> Any:
    made = gymnasium.make("FrozenLake-v1")
    if observations is not None:
        made.observation_space = observations
    if actions is not None:
        made.action_space = actions
    return made


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_environments_with_continuous_observations(name: str) -> None:
    world = gymnasium.make(name)
    sentence = f"the environment must have discrete spaces: observation_space of {name} is {world.observation_space}"
    refused(ValueError, sentence, lambda: FOLLOW.run(world, 5))


@pytest.mark.parametrize(
    "space", [spaces.Box(0, 1, (2,)), spaces.MultiDiscrete([2, 2]), spaces.MultiBinary(2)], ids=str
)
def test_environments_with_other_actions(space: Any) -> None:
    sentence = f"the environment must have discrete spaces: action_space of FrozenLake-v1 is {space}"
    refused(ValueError, sentence, lambda: FOLLOW.run(env(actions=space), 5))


def test_an_environment_that_leaves_its_space() -> None:
    # Compiled code trusts the index: one that is too large would write outside the tables.
    class Leaver(gymnasium.Env[Any, Any]):
        observation_space, action_space = spaces.Discrete(3), spaces.Discrete(1)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return 0, {}

        def step(self, action: Any) -> Any:
            return 3, 0.0, False, False, {}

    with pytest.raises(ValueError, match="got 3"):
        FOLLOW.run(Leaver(), 1)


class Reporter(gymnasium.Env[Any, Any]):
    """Reports the same observation at every reset, and another at every step."""

    action_space = spaces.Discrete(1)

    def __init__(self, space: Any, first: Any, later: Any) -> None:
        self.observation_space, self.first, self.later = space, first, later

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return self.first, {}

    def step(self, action: Any) -> Any:
        return self.later, 0.0, False, False, {}


PAIR = spaces.MultiDiscrete([2, 3])


@pytest.mark.parametrize("learner", [FOLLOW, rm.MarkovianQLearning(rm.Nominal(), rm.EpsilonGreedy(0.5))])
@pytest.mark.parametrize("at_reset", [True, False], ids=["reset", "step"])
@pytest.mark.parametrize(
    ("space", "good", "bad", "shown"),
    [
        (spaces.Discrete(3), 0, 1.5, "1.5"),
        (spaces.Discrete(3), np.int64(2), np.float32(0.5), "np.float32(0.5)"),
        (spaces.Discrete(3), 0, math.nan, "nan"),
        (spaces.Discrete(3), 0, -math.inf, "-inf"),
        (spaces.Discrete(3), 0, "1", "'1'"),
        (spaces.Discrete(3), 0, np.array([1]), "array([1])"),
        (PAIR, np.array([1, 2]), np.array([1.0, 0.5]), "np.float64(0.5)"),
        (spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3))), (1, 2), (1, None), "None"),
    ],
    ids=repr,
)
def test_observations_that_are_no_whole_numbers(
    learner: Any, at_reset: bool, space: Any, good: Any, bad: Any, shown: str
) -> None:
    world = Reporter(space, bad if at_reset else good, bad)
    refused(ValueError, f"observations of Reporter must be whole numbers: got {shown}", lambda: learner.run(world, 5))


@pytest.mark.parametrize("at_reset", [True, False], ids=["reset", "step"])
@pytest.mark.parametrize(
    ("space", "good", "bad"),
    [
        (spaces.Discrete(3), 0, -1),
        (spaces.Discrete(3, start=1), 1, 4.0),
        (PAIR, np.array([0, 0]), np.array([0, 3])),  # the place of (1, 0)
        (PAIR, np.array([0, 0]), np.array([1, -1])),  # the place of (0, 2)
        (PAIR, np.array([0, 0]), np.array([0, 0, 0])),
        (PAIR, np.array([0, 0]), np.array([0])),
    ],
    ids=repr,
)
def test_observations_outside_their_space(at_reset: bool, space: Any, good: Any, bad: Any) -> None:
    world = Reporter(space, bad if at_reset else good, bad)
    sentence = f"observations must lie in the space of Reporter: got {bad!r}"
    refused(ValueError, sentence, lambda: FOLLOW.run(world, 5))


def test_whole_numbers_of_any_type_are_observations() -> None:
    for one in (1, 1.0, True, np.True_, np.int8(1), np.uint64(1), np.float32(1.0), np.array(1), np.array(1.0)):
        learned = rm.MarkovianQLearning(rm.Nominal()).run(Reporter(spaces.Discrete(2), one, one), 3, discount=0.5)
        assert learned.visits.tolist() == [[0], [3]]


def test_an_environment_whose_reward_is_no_number() -> None:
    class Nan(gymnasium.Env[Any, Any]):
        observation_space, action_space = spaces.Discrete(1), spaces.Discrete(1)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return 0, {}

        def step(self, action: Any) -> Any:
            return 0, math.nan, False, False, {}

    with pytest.raises(ValueError, match="reward must be finite: got nan"):
        FOLLOW.run(Nan(), 10)


@pytest.mark.parametrize(
    "learner", [ASK, rm.GenerativeQLearning.paper(DOUBT), rm.PlugIn(DOUBT)], ids=["default", "paper", "plug-in"]
)
@pytest.mark.parametrize("name", ["FrozenLake-v1", "Trajectory"])
def test_asking_worlds_that_only_go_their_way(name: str, learner: Any) -> None:
    world = LOG if name == "Trajectory" else env()
    sentence = (
        f"a generative learner must be able to ask about any pair, but {name} only goes its way: use "
        "MarkovianQLearning, or MDP.from_gymnasium where an environment publishes its table"
    )
    refused(ValueError, sentence, lambda: learner.run(world, 5))


def test_a_start_for_worlds_that_begin_where_they_begin() -> None:
    sentence = "start must be given for an MDP or a Simulator: other worlds begin where they begin"
    for world in (LOG, env()):
        refused(ValueError, sentence, lambda world=world: FOLLOW.run(world, 5, start=1))


def test_what_the_printed_algorithms_must_be_told() -> None:
    sentence = "the printed algorithms must know the rewards: give reward_range=(smallest, largest)"
    refused(ValueError, sentence, lambda: rm.MarkovianQLearning.paper(DOUBT).run(env(), 5))
    wrong = rm.MarkovianQLearning.paper(DOUBT, d_min=0.0, d_max=0.2)
    sentence = "d_min must be positive, so the behaviour policy must visit every pair: got d_min 0"
    refused(ValueError, sentence, lambda: wrong.run(CHAIN, 5))


# Simulators.


def wrong_reward(state, action, rng):
    return (7.0 if rng.random() < 0.001 else 1.0), 0, False


def wrong_successor(state, action, rng):
    return 1.0, (-1 if rng.random() < 0.001 else 0), False


def one_too_far(state, action, rng):
    return 1.0, (3 if rng.random() < 0.001 else 0), False


def not_a_number(state, action, rng):
    return (math.nan if rng.random() < 0.001 else 1.0), 0, False


@pytest.mark.parametrize("compiled", [False, True], ids=["Python", "compiled"])
@pytest.mark.parametrize(
    "learner", [FOLLOW, ASK, rm.MarkovianQLearning(DOUBT, rm.EpsilonGreedy(0.5))], ids=["follow", "ask", "greedy"]
)
@pytest.mark.parametrize(
    ("sample", "sentence"),
    [
        (wrong_reward, r"reward must lie in reward_range \[0, 1\]: got 7.0 from state \d, action \d"),
        (wrong_successor, r"next_state must lie in 0..2: got -1 from state \d, action \d"),
        (one_too_far, r"next_state must lie in 0..2: got 3 from state \d, action \d"),
        (not_a_number, r"reward must lie in reward_range \[0, 1\]: got nan from state \d, action \d"),
    ],
    ids=["reward", "successor", "one too far", "nan"],
)
def test_simulators_that_lie(sample: Any, sentence: str, learner: Any, compiled: bool) -> None:
    # Rare lies must be found too: 20,000 draws at one in a thousand.
    world = rm.Simulator(numba.njit(sample) if compiled else sample, 3, 2, 0.9, (0.0, 1.0))
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        learner.run(world, samples=20_000)


@pytest.mark.parametrize("answer", [(1.0, 0), 1.0, (1.0, 0.5, False), ("a", 0, False), (1.0, None, False)], ids=repr)
def test_simulators_that_answer_something_else(answer: Any) -> None:
    world = rm.Simulator(lambda state, action, rng: answer, 3, 2, 0.9, (0.0, 1.0))
    with pytest.raises((ValueError, TypeError), match=r"from state 0, action \d"):
        FOLLOW.run(world, 5)


# Logs.


def csv(folder: Path, text: str) -> Path:
    path = folder / "log.csv"
    path.write_text(text)
    return path


def test_logs_that_cannot_be_learned_from(tmp_path: Path) -> None:
    header = "state,action,reward,next_state\n"
    cases = [
        ("", {}, "log.csv must start with the names of its columns: got an empty file"),
        (header, {}, "log.csv must hold at least one transition: got none"),
        (
            "state,reward,action\n0,0,1\n",
            {},
            "log.csv must have a column 'next_state': it has 'state', 'reward', 'action'",
        ),
        (header + "0,0,1,0\n5,0,1,0\n", {"n_states": 3}, "state must lie in 0..2: got 5 at line 3 of log.csv"),
        (header + "0,0,1,0\n0,0,nan,0\n", {}, "reward must be finite: got nan at line 3 of log.csv"),
        (header + "0,0,1,-1\n", {}, "next_state must be at least 0: got -1 at line 2 of log.csv"),
        (header + "0,9,1,0\n", {"n_actions": 2}, "action must lie in 0..1: got 9 at line 2 of log.csv"),
    ]
    for text, sizes, sentence in cases:
        path = csv(tmp_path, text)
        refused(ValueError, sentence, lambda path=path, sizes=sizes: FOLLOW.run(rm.read_log(path, **sizes)))


def test_parquet_logs_that_cannot_be_learned_from(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"state": [0, 1], "action": [0, 0], "reward": [0.0, math.nan], "next_state": [1, 0]}), path)
    refused(ValueError, "reward must be finite: got nan at row 1 of log.parquet", lambda: FOLLOW.run(rm.read_log(path)))
    sentence = "state must lie in 0..0: got 1 at row 1 of log.parquet"
    refused(ValueError, sentence, lambda: FOLLOW.run(rm.read_log(path, n_states=1)))


def test_arrays_that_cannot_be_learned_from() -> None:
    sentence = "state must lie in 0..2: got 3 at state[1]"
    refused(ValueError, sentence, lambda: rm.Trajectory([0, 3], [0, 0], [0, 0], [0, 0], n_states=3))


def test_a_log_is_not_asked_for_steps_but_a_round_is() -> None:
    with pytest.raises(ValueError, match="must be able to ask about any pair"):
        ASK.run(LOG)
    with pytest.warns(RuntimeWarning, match="must visit every pair"):
        assert FOLLOW.run(LOG).steps == 2


def test_worlds_that_are_too_large() -> None:
    sentence = "a learner's world must have fewer than 2^31 pairs: got 4,294,967,294"
    huge = rm.Simulator(lambda state, action, rng: (0.0, 0, False), 2**31 - 1, 2, 0.9, (0.0, 1.0))
    log = rm.Trajectory([0, 2**31 - 2], [0, 1], [0.0, 0.0], [0, 0])
    for world in (huge, log):
        refused(ValueError, sentence, lambda world=world: rm.MarkovianQLearning(DOUBT).run(world, 2))
