"""Gymnasium environments on the command line: their parameters, and the way out where no model is published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from app.commands.calls import record, refused, run, write_log
from app.commands.test_sources import analysed, assert_repeated, parsed, program_of
from robustmdp.app.commands.environments import parse_environment, parse_value

LAKE = "gym:FrozenLake-v1?is_slippery=false&map_name=8x8"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lake(**parameters: Any) -> rm.MDP:
    return rm.MDP.from_gymnasium("FrozenLake-v1", 0.95, **parameters)


# The grammar.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0.5", -0.5),
        ("1e+2", 100.0),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("null", None),
        ('"1"', "1"),
        ("8x8", "8x8"),
        ("a=b", "a=b"),
        ("", ""),
        ('["SF","FG"]', ["SF", "FG"]),
        ("[1, 0", "[1, 0"),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=lambda text: str(text)[:12],
)
def test_values(text: str, value: Any) -> None:
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)
    assert parse_environment(f"gym:X-v0?a={text}&b=2").parameters == {"a": value, "b": 2}


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("gym:?a=1", "gym: must be followed by an environment's id"),
        ("gym:X-v0?", "the parameters of X-v0 must be NAME=VALUE with & between them, as in 'gym:FrozenLake-v1?"),
        ("gym:X-v0?a", "got 'a'"),
        ("gym:X-v0?a=1&", "got ''"),
        ("gym:X-v0?=1", "got '=1'"),
        ("gym:X-v0?a b=1", "got 'a b=1'"),
        ("gym:X-v0?a=1&a=2", "must name each parameter once: a came twice"),
        ("gym:X-v0?discount=0.9", "the discount must be given as --discount: got 'gym:X-v0?discount=0.9'"),
    ],
)
def test_refusals(word: str, sentence: str) -> None:
    refused(run("solve", word), sentence)


def test_help_and_problems_show_it() -> None:
    assert "'gym:FrozenLake-v1?is_slippery=false&map_name=8x8'" in run("solve", "--help").stdout
    assert "gym:FrozenLake-v1?" in record("problems")["problems"]["gym:ID?NAME=VALUE"]


# Each command that takes an environment.


def test_solve() -> None:
    answer, model = record("solve", LAKE), lake(is_slippery=False, map_name="8x8")
    assert answer["problem"] == LAKE
    assert answer["value"] == rm.solve(model, rm.Nominal()).value.tolist()
    assert f"{LAKE}, discount 0.95" in run("solve", LAKE).stdout


def test_learn() -> None:
    answer = record("learn", LAKE, "--weight", 1, "--steps", 20)
    learned = rm.GenerativeQLearning(rm.Penalized(rm.ChiSquare(), 1.0)).run(lake(is_slippery=False, map_name="8x8"), 20)
    assert answer["problem"] == LAKE
    assert answer["q"] == learned.q.tolist()


@pytest.mark.filterwarnings("always:the behaviour policy must visit every pair")
def test_learn_without_a_published_model() -> None:
    import gymnasium

    word = "gym:Blackjack-v1?natural=true"
    answer = record("learn", word, "--algorithm", "markovian", "--weight", 1, "--steps", 3000, "--quiet")
    learner = rm.MarkovianQLearning(rm.Penalized(rm.ChiSquare(), 1.0))
    with pytest.warns(RuntimeWarning, match="must visit every pair"):
        learned = learner.run(gymnasium.make("Blackjack-v1", natural=True), 3000)
    assert answer["visits"] == learned.visits.tolist()
    assert answer["value"] == learned.value.tolist()


@pytest.mark.filterwarnings("always:the behaviour policy must visit every pair")
def test_a_run_goes_on_with_the_same_parameters() -> None:
    words = ("--algorithm", "markovian", "--weight", 1, "--steps", 500, "--checkpoint", "run.ckpt", "--quiet")
    whole = record("learn", "gym:Blackjack-v1?natural=true", *words)
    again = record("learn", "gym:Blackjack-v1?natural=true", "--resume", "run.ckpt", "--quiet")
    assert again["q"] == whole["q"]
    refused(run("learn", "gym:Blackjack-v1", "--resume", "run.ckpt", "--quiet"), "world")


def test_convert_and_match() -> None:
    record("convert", LAKE, "lake.safetensors")
    model = lake(is_slippery=False, map_name="8x8")
    assert rm.read("lake.safetensors") == model
    slippery = "gym:FrozenLake-v1?success_rate=0.5"
    radius = rm.matching_radius(lake(success_rate=0.5), rm.Penalized(rm.ChiSquare(), 1.0), 0)
    assert record("match", slippery, "--weight", 1)["radius"] == radius


def test_analyse() -> None:
    given, page, names = analysed("gym:FrozenLake-v1?success_rate=0.5&map_name=4x4")
    assert_repeated(given, names)
    assert given["problem"] == "gym:FrozenLake-v1?success_rate=0.5&map_name=4x4"
    assert "FrozenLake-v1?success_rate=0.5&amp;map_name=4x4: how robust should the decision be?" in page
    assert "rm.MDP.from_gymnasium('FrozenLake-v1', 0.95, success_rate=0.5, map_name='4x4')" in program_of(page)
    assert names["mdp"] == lake(success_rate=0.5)


def test_first_states_are_those_of_the_same_environment() -> None:
    code = parsed("gym:Taxi-v4?is_rainy=true").code
    assert "initial = gymnasium.make('Taxi-v4', is_rainy=True).unwrapped.initial_state_distrib" in code


# Together with --vary.


def test_other_parameters_stay_when_one_is_varied() -> None:
    """A list that stays is not taken for values to vary."""
    word = 'gym:FrozenLake-v1?desc=["SFF","FHF","FFG"]&reward_schedule=[2,-1,0]'
    given, page, names = analysed(word, "--vary", "success_rate=0.3..0.9:4")
    assert_repeated(given, names)
    fixed = {"desc": ["SFF", "FHF", "FFG"], "reward_schedule": [2, -1, 0]}
    for model, rate in zip(names["held_out"].models, np.linspace(0.3, 0.9, 4), strict=True):
        assert model == lake(success_rate=rate, **fixed)
    assert names["held_out"].labels[0] == "success_rate=0.3"
    assert "4 worlds: FrozenLake-v1?desc=" in page


def test_a_varied_parameter_replaces_the_one_of_the_model() -> None:
    source = parsed("gym:FrozenLake-v1?success_rate=0.5&map_name=8x8", vary=("success_rate=0.4,0.9",))
    assert source.mdp == lake(success_rate=0.5, map_name="8x8")
    assert source.held_out is not None
    assert source.held_out.models == [lake(success_rate=rate, map_name="8x8") for rate in (0.4, 0.9)]
    assert source.held_out.name == "FrozenLake-v1?success_rate=0.5&map_name=8x8 with another success_rate"


@pytest.mark.parametrize("command", ["solve", "analyse", "suggest", "curve", "stress", "learn"])
def test_parameters_that_do_not_exist(command: str) -> None:
    outcome = run(command, "gym:FrozenLake-v1?slippery=false")
    refused(outcome, "a parameter of FrozenLake-v1 must be one of desc, ", "did you mean 'is_slippery'?")


def test_values_that_an_environment_refuses() -> None:
    outcome = run("solve", "gym:FrozenLake-v1?map_name=9x9")
    refused(outcome, "Gymnasium must be able to make FrozenLake-v1 with map_name='9x9': KeyError: '9x9'")
    outcome = run("suggest", "gym:FrozenLake-v1", "--vary", "map_name=4x4,9x9")
    refused(outcome, "Gymnasium must be able to make FrozenLake-v1 with map_name='9x9': KeyError: '9x9'")


# Environments and logs that can only be followed: the sentence names options, not classes.


@pytest.mark.parametrize("command", ["solve", "analyse", "suggest", "curve", "stress", "match", "convert"])
def test_no_model_is_published(command: str) -> None:
    more = {"match": ("--weight", 1), "convert": ("x.csv",)}.get(command, ())
    outcome = run(command, "gym:Blackjack-v1", *more)
    refused(outcome, "Blackjack-v1 has none; `robustmdp learn --algorithm markovian` learns without them")
    assert "QLearning" not in outcome.output


@pytest.mark.parametrize("world", ["environment", "log"])
@pytest.mark.parametrize(
    "words",
    [
        ("--weight", 1),
        ("--weight", 1, "--algorithm", "generative"),
        ("--weight", 1, "--algorithm", "generative", "--paper"),
        ("--weight", 1, "--algorithm", "plugin"),
        ("--divergence", "kl", "--radius", 0.1, "--algorithm", "mlmc"),
    ],
)
def test_algorithms_that_ask_about_any_pair(world: str, words: tuple[object, ...]) -> None:
    write_log(Path("log.csv"), [(0, 0, 1.0, 1), (1, 0, 0.0, 0)])
    name, where = {
        "environment": ("Blackjack-v1", ("gym:Blackjack-v1", "--samples", 100_000)),
        "log": ("a log", ("--log", "log.csv")),
    }[world]
    outcome = run("learn", *where, *words)
    if world == "log" and ("plugin" in words or "--algorithm" not in words):
        assert outcome.exit_code == 0
        return
    refused(outcome, f"any pair, but {name} only goes its way: use --algorithm markovian")
    assert "QLearning" not in outcome.output
    assert "MDP" not in outcome.output


def test_algorithms_that_do_not_fit_the_options() -> None:
    words = ("learn", "gym:Blackjack-v1", "--samples", 1000, "--weight", 1, "--algorithm")
    refused(run(*words, "mlmc"), "--algorithm mlmc is for a Kullback-Leibler ball: give --divergence kl and --radius")
    refused(run(*words, "markovian", "--paper"), "the printed algorithms must know the rewards: give --reward-range")
