"""The command line: what it prints, what it refuses, how it exits, and what it does not import."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import robustmdp as rm
from robustmdp.app.commands import main


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def record(*words: str) -> dict[str, Any]:
    outcome = run(*words, "--json")
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


PROBLEMS = {
    "chain": rm.problems.chain,
    "river-swim": rm.problems.river_swim,
    "machine-replacement": rm.problems.machine_replacement,
    "inventory": rm.problems.inventory,
    "garnet:50x3x4": lambda: rm.problems.garnet(50, 3, 4, 0.95, seed=0),
    "grid:6": lambda: rm.problems.grid_world(6),
    "gym:FrozenLake-v1": lambda: rm.MDP.from_gymnasium("FrozenLake-v1", 0.95),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_json_has_full_precision(problem: str) -> None:
    mdp, given = PROBLEMS[problem](), record("solve", problem, "--weight", "1", "--full")
    solution = rm.solve(mdp, rm.Penalized(rm.ChiSquare(), 1.0))
    for name in ("value", "lower", "upper"):
        assert np.array_equal(given[name], getattr(solution, name))
    assert given["policy"] == solution.policy.tolist()
    assert given["error_bound"] == solution.error_bound
    assert (given["status"], given["problem"], given["discount"]) == ("converged", problem, mdp.discount)
    assert given["states"] == (list(mdp.state_names) if mdp.state_names else None)
    q = np.array([[-np.inf if x is None else x for x in row] for row in given["q"]])
    assert np.array_equal(q, solution.q)
    del given["q"]  # as large as the rest times the actions, and left out if not asked for
    assert record("solve", problem, "--weight", "1") == given


@pytest.mark.parametrize(
    ("word", "divergence"),
    [
        ("chi2", rm.ChiSquare()),
        ("kl", rm.KL()),
        ("TV", rm.TotalVariation()),
        ("burg", rm.Burg()),
        ("hellinger", rm.Hellinger()),
        ("js", rm.JensenShannon()),
        ("cr:3", rm.CressieRead(3.0)),
        ("cr:-1", rm.CressieRead(-1.0)),
    ],
)
@pytest.mark.parametrize(("option", "form"), [("--weight", rm.Penalized), ("--radius", rm.Constrained)])
def test_divergences_and_forms(word: str, divergence: Any, option: str, form: Any) -> None:
    given = record("solve", "chain", "--divergence", word, option, "0.3")
    assert given["ambiguity"] == repr(form(divergence, 0.3))
    assert np.array_equal(given["value"], rm.solve(rm.problems.chain(), form(divergence, 0.3)).value)


@pytest.mark.parametrize("solver", ["auto", "value-iteration", "policy-iteration"])
def test_solvers_and_discount(solver: str) -> None:
    given = record("solve", "chain", "--solver", solver, "--discount", "0.5", "--tol", "1e-6", "--threads", "1")
    exact = rm.solve(rm.problems.chain(discount=0.5), rm.Nominal(), tol=1e-11)
    assert np.abs(given["value"] - exact.value).max() <= given["error_bound"] + exact.error_bound
    assert given["discount"] == 0.5
    assert given["ambiguity"] == "Nominal()"


def test_dual_ascent_says_whether_it_converged() -> None:
    outcome = run("solve", "chain", "--weight", "1", "--solver", "dual-ascent", "--json")
    assert outcome.exit_code == {"converged": 0}.get(json.loads(outcome.stdout)["status"], 3)


def test_the_table() -> None:
    outcome = run("solve", "chain", "--weight", "1", "--rows", "3")
    assert outcome.exit_code == 0
    for part in ("s1", "s3", "worst-case value", "lower bound", "7 more states: use --rows 10 or --json", "converged:"):
        assert part in outcome.stdout
    assert "s4" not in outcome.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("solve", "chains", "--weight", "1"), 1, "did you mean 'chain'?"),
        (("solve", "garnt:5x2x2"), 1, "did you mean 'garnet:SxAxK'?"),
        (("solve", "garnet:5x2"), 1, "write the sizes as in garnet:1000x5x10"),
        (("solve", "garnet:5x2x9"), 1, "n_successors must be at most n_states (5): got 9"),
        (("solve", "chain:4"), 1, "problem chain takes no sizes"),
        (("solve", "gym:"), 1, "must be followed by an environment's id"),
        (("solve", "gym:CartPole-v1"), 1, "must publish its transitions"),
        (("solve", "gym:Nothing-v1"), 1, "Gymnasium must know the environment"),
        (("solve", "chain", "--divergence", "hellnger", "--weight", "1"), 1, "did you mean 'hellinger'?"),
        (("solve", "chain", "--divergence", "cr:x", "--weight", "1"), 1, "the k of cr:K must be a number: got 'x'"),
        (("solve", "chain", "--solver", "value-iterations"), 1, "did you mean 'value-iteration'?"),
        (("solve", "chain", "--weight", "1", "--radius", "1"), 1, "give --weight or --radius, not both"),
        (("solve", "chain", "--weight", "-1"), 1, "weight must be at least 0: got -1"),
        (("solve", "chain", "--radius", "nan"), 1, "radius must be a number in [0, inf]: got nan"),
        (("solve", "chain", "--discount", "1"), 1, "a discounted problem must have a discount below 1: got 1"),
        (("solve", "chain", "--tol", "0"), 1, "tol must be a positive number"),
        (("solve", "chain", "--threads", "0"), 1, "threads must be at least 1"),
        (("solve", "chain", "--weight", "1", "--divergence", "tv", "--solver", "dual-ascent"), 1, "DualAscent needs"),
        (("solve",), 2, "Missing argument 'PROBLEM'"),
        (("solve", "chain", "--wieght", "1"), 2, "--weight"),
        (("solve", "chain", "--weight", "much"), 2, "'much' is not a valid float"),
        (("slove", "chain"), 2, "did you mean 'solve'?"),
    ],
    ids=lambda thing: " ".join(thing) if isinstance(thing, tuple) else "",
)
def test_refusals(words: tuple[str, ...], code: int, message: str) -> None:
    outcome = run(*words)
    assert outcome.exit_code == code
    assert message in " ".join(outcome.output.split())
    assert "Traceback" not in outcome.output


def test_not_converged_is_exit_code_three() -> None:
    outcome = run("solve", "garnet:50x3x4", "--weight", "1", "--tol", "1e-18")
    assert outcome.exit_code == 3
    assert "choose a tol above it" in outcome.stdout
    outcome = run("solve", "garnet:50x3x4", "--weight", "1", "--tol", "1e-18", "--json")
    assert outcome.exit_code == 3
    assert json.loads(outcome.stdout)["status"] == "stalled"


@pytest.mark.parametrize("words", [("--help",), ("-h",), ("solve", "--help")])
def test_help(words: tuple[str, ...]) -> None:
    outcome = run(*words)
    assert outcome.exit_code == 0
    assert "Example" in outcome.output


def test_version() -> None:
    assert rm.__version__ in run("--version").output


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


SLOW = "print(sorted({'numba', 'scipy', 'pandas', 'rich', 'gymnasium'} & set(sys.modules)))"


def test_importing_the_package_is_light() -> None:
    assert python(f"import sys, robustmdp; {SLOW}") == "[]\n"
    assert python(f"import sys, robustmdp; robustmdp.MDP, robustmdp.KL, robustmdp.Penalized; {SLOW}") == "[]\n"


def test_help_is_light() -> None:
    code = f"import sys, robustmdp.app.commands as cli; cli.main(['--help'], standalone_mode=False); {SLOW}"
    assert python(code).endswith("[]\n")


def test_the_program_is_installed() -> None:
    outcome = subprocess.run(
        [
            sys.executable,
            "-c",
            "from robustmdp.app.commands import main; main()",
            "solve",
            "chain",
            "--weight",
            "1",
            "--json",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert json.loads(outcome.stdout)["status"] == "converged"
    assert outcome.stderr == ""


@pytest.mark.parametrize("command", [["--help"], ["solve", "--help"]])
def test_examples_in_the_help_stand_on_lines_of_their_own(command: list[str]) -> None:
    from click.testing import CliRunner

    from robustmdp.app.commands import main

    lines = CliRunner().invoke(main, command).output.splitlines()
    assert any(line.strip().startswith("robustmdp solve") for line in lines)
    assert not any("\\b" in line for line in lines)
