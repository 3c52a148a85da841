"""`robustmdp learn`, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from safetensors.numpy import save_file

import robustmdp as rm
from robustmdp.app.commands import main

CHAIN = ("chain", "--weight", "1", "--steps", "10")
BLACKJACK = ("gym:Blackjack-v1", "--algorithm", "markovian", "--weight", "1", "--steps", "100")


def call(*words: str) -> Result:
    return CliRunner().invoke(main, ["learn", *words])


@pytest.mark.parametrize(
    "words",
    [
        ("--algorithm", "generative", "--weight", "1"),
        ("--algorithm", "generative", "--weight", "1", "--paper", "--inner-steps", "5"),
        ("--algorithm", "plugin", "--divergence", "tv", "--radius", "0.1"),
        ("--algorithm", "mlmc", "--divergence", "kl", "--radius", "0.1"),
    ],
)
def test_algorithms_that_ask(words: tuple[str, ...]) -> None:
    result = call("chain", *words, "--steps", "20", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["status"] == "step_limit"
    assert answer["steps"] == 20
    assert np.sum(answer["visits"]) == answer["samples"] >= 400
    assert 0.0 < answer["error"] < 10.0


def test_the_numbers_are_those_of_the_library() -> None:
    words = ("garnet:5x2x3", "--algorithm", "markovian", "--weight", "2", "--steps", "3000", "--seed", "5", "--json")
    world = rm.problems.garnet(5, 2, 3, 0.95, seed=0)
    learned = rm.MarkovianQLearning(rm.Penalized(rm.ChiSquare(), 2.0)).run(world, 3000, seed=5)
    assert json.loads(call(*words).stdout)["q"] == learned.q.tolist()


def test_a_table_for_people() -> None:
    result = call("chain", "--weight", "1", "--samples", "4000", "--rows", "2")
    assert result.exit_code == 0
    for words in ("worst-case value", "lower bound", "s1", "8 more states", "4,000 samples", "error of Q against"):
        assert words in result.stdout


def test_a_run_is_saved_and_resumed_to_the_same_bits(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    whole = call("chain", "--weight", "1", "--steps", "50", "--checkpoint", str(path), "--json")
    again = call("--resume", str(path), "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["q"] == json.loads(whole.stdout)["q"]
    other = call("--resume", str(path), "--weight", "2")
    assert other.exit_code == 1
    assert "must be resumed with its own settings" in other.stderr
    assert "--seed" in call("--resume", str(path), "--seed", "9").stderr


def test_a_finished_run_is_extended(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    call("chain", "--weight", "1", "--steps", "50", "--checkpoint", str(path))
    longer = call("--resume", str(path), "--steps", "120", "--json")
    assert longer.exit_code == 0, longer.output
    assert json.loads(longer.stdout)["steps"] == 120
    assert json.loads(call("--resume", str(path), "--json").stdout) == json.loads(longer.stdout)
    shorter = call("--resume", str(path), "--steps", "60")
    assert shorter.exit_code == 1
    assert f"steps must be at least the 120 that {path} has done: got 60" in shorter.stderr


def test_a_hostile_checkpoint_gets_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    save_file({"x": np.zeros(1)}, path, {"robustmdp": "[" * 100_000})
    result = call("--resume", str(path))
    assert result.exit_code == 1
    assert f"a checkpoint's head must be readable: that of {path} is not" in result.stderr
    assert "Traceback" not in result.output


def test_a_log_is_learned_from(tmp_path: Path) -> None:
    result = call("--log", str(alternating_log(tmp_path)), "--weight", "1", "--discount", "0.5", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["samples"] == 1000
    assert answer["error"] is None  # no model, no exact solution
    # V0 = V1/2 and V1 = 1 + V0/2; 500 visits of steps like n^-0.8 leave less than a hundredth.
    assert answer["value"] == pytest.approx([2 / 3, 4 / 3], abs=0.02)


def test_bounds_with_a_confidence() -> None:
    words = ("chain", "--weight", "1", "--samples", "400000", "--seed", "3", "--confidence", "0.9")
    world, ambiguity = rm.problems.chain(), rm.Penalized(rm.ChiSquare(), 1.0)
    learned = rm.GenerativeQLearning(ambiguity).run(world, samples=400_000, seed=3, confidence=0.9)
    answer = json.loads(call(*words, "--json").stdout)
    assert answer["confidence"] == 0.9
    assert answer["lower"] == learned.lower.tolist()
    assert answer["upper"] == learned.upper.tolist()
    assert answer["error_bound"] == learned.error_bound
    value, low, high = learned.value[0], learned.lower[0], learned.upper[0]
    sentence = f"value at state s1: {value:.4f}, between {low:.4f} and {high:.4f} with 90 % confidence"
    assert sentence in call(*words, "--rows", "0").stdout


def test_without_a_confidence_bounds_are_certain_or_none(tmp_path: Path) -> None:
    assert json.loads(call("chain", "--weight", "1", "--steps", "50", "--json").stdout)["confidence"] is None
    path = alternating_log(tmp_path)
    answer = json.loads(call("--log", str(path), "--weight", "1", "--json").stdout)
    assert answer["confidence"] is None
    assert answer["lower"] == answer["upper"] == [None, None]  # JSON has no infinity
    assert "% confidence" not in call("--log", str(path), "--weight", "1").stdout


def test_more_samples_may_certify() -> None:
    words = ("chain", "--weight", "1", "--samples", "40000", "--confidence", "0.95", "--json")
    learned = rm.GenerativeQLearning(rm.Penalized(rm.ChiSquare(), 1.0)).run(
        rm.problems.chain(), samples=40_000, confidence=0.95, certify_share=0.8
    )
    answer = json.loads(call(*words, "--certify-share", "0.8").stdout)
    assert answer["lower"] == learned.lower.tolist()
    assert answer["lower"] != json.loads(call(*words).stdout)["lower"]


def test_a_certified_run_is_resumed_without_its_options(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    words = ("chain", "--weight", "1", "--steps", "50", "--confidence", "0.9", "--certify-share", "0.6")
    whole = json.loads(call(*words, "--checkpoint", str(path), "--json").stdout)
    again = json.loads(call("--resume", str(path), "--weight", "1", "--json").stdout)
    assert {**again, "problem": "chain"} == whole
    assert whole["confidence"] == 0.9
    assert "with 90 % confidence" in call("--resume", str(path)).stdout
    for option in ("--confidence", "--certify-share"):
        assert (
            f"a resumed run has its own {option}: leave the option out"
            in call("--resume", str(path), option, "0.5").stderr
        )
    other = call("--resume", str(path), "--weight", "2")
    assert other.exit_code == 1
    assert "must be resumed with its own settings" in other.stderr


def test_a_certificate_from_a_log(tmp_path: Path) -> None:
    words = ("--log", str(alternating_log(tmp_path)), "--weight", "1", "--discount", "0.5", "--confidence", "0.95")
    answer = json.loads(call(*words, "--reward-range", "0..1", "--json").stdout)
    # Each state has one successor, so that nature can do nothing: V0 = V1/2 and V1 = 1 + V0/2.
    for low, truth, high in zip(answer["lower"], (2 / 3, 4 / 3), answer["upper"], strict=True):
        assert 0.0 <= low <= truth <= high <= 2.0
    assert answer["confidence"] == 0.95


@pytest.mark.filterwarnings("ignore:the behaviour policy must visit every pair:RuntimeWarning")
def test_a_certificate_in_an_environment_without_a_table(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    words = (*BLACKJACK, "--discount", "0.5", "--confidence", "0.95", "--reward-range", "-1..1")
    whole = call(*words, "--checkpoint", str(path), "--json", "--quiet")
    assert whole.exit_code == 0, whole.output
    answer = json.loads(whole.stdout)
    assert answer["confidence"] == 0.95
    assert min(answer["lower"]) == -2.0  # a hundred steps leave most states unseen, where all is possible
    assert max(answer["upper"]) == 2.0
    again = call(BLACKJACK[0], "--resume", str(path), "--json", "--quiet")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["lower"] == answer["lower"]


def alternating_log(folder: Path) -> Path:
    path = folder / "log.csv"
    path.write_text("state,action,reward,next_state\n" + "0,0,0.0,1\n1,0,1.0,0\n" * 500)
    return path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "give a PROBLEM or --log FILE, one of them, or --resume FILE"),
        (("chain", "--weight", "1"), "give steps or samples, one of them"),
        (("chain", "--weight", "1", "--steps", "0"), "steps must be at least 1: got 0"),
        (("chain", "--algorithm", "genrative", "--steps", "1"), "did you mean 'generative'?"),
        (("chain", "--epsilon", "0.1", "--steps", "1"), "--epsilon is for --algorithm markovian"),
        (("--resume", "nowhere.ckpt"), "a checkpoint must be a file: there is none at nowhere.ckpt"),
        (("--log", "nowhere.csv", "--weight", "1"), "nowhere.csv"),
        ((*BLACKJACK, "--confidence", "0.95"), "a certificate must know the rewards: give --reward-range, as in 0..1"),
        ((*BLACKJACK, "--reward-range", "0..0.5"), "reward must lie in --reward-range [0, 0.5]: got"),
        ((*BLACKJACK, "--reward-range", "1..0"), "--reward-range must rise: got 1..0"),
        (
            (*BLACKJACK, "--reward-range", "1"),
            "--reward-range must be two numbers with dots between them, as in 0..1: got '1'",
        ),
        ((*CHAIN, "--reward-range", "0..0.5"), "--reward-range must hold the MDP's rewards, 0 to 1"),
        ((*CHAIN, "--confidence", "95"), "--confidence must lie between 0 and 1: got 95"),
        ((*CHAIN, "--confidence", "0.9", "--certify-share", "1"), "--certify-share must lie between 0 and 1: got 1"),
        ((*CHAIN, "--certify-share", "0.5"), "--certify-share is for --confidence"),
        (
            (*CHAIN, "--confidence", "0.9", "--algorithm", "plugin"),
            "--confidence must come with --algorithm generative or markovian",
        ),
        (("gym:CartPole-v1", "--algorithm", "markovian", "--weight", "1", "--steps", "1"), "must have discrete spaces"),
    ],
)
def test_mistakes_get_a_sentence(words: tuple[str, ...], sentence: str) -> None:
    result = call(*words)
    assert result.exit_code == 1
    assert sentence in result.stderr
    assert "Traceback" not in result.output
