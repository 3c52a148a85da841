"""--set on the command line: the same sets as from Python, said in words, and mistakes that get one sentence."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import robustmdp as rm
from app.commands.calls import outcomes_of, record, refused, run
from robustmdp import io
from robustmdp.app.commands.options import SETS
from robustmdp.app.commands.sets import _KINDS

MACHINE = "machine-replacement"

SAME = [
    (("penalty", "--weight", 2), rm.Penalized(rm.ChiSquare(), 2.0)),
    (("ball", "--radius", 0.1, "--divergence", "kl"), rm.Constrained(rm.KL(), 0.1)),
    (("l1", "--radius", 0.1), rm.L1(0.1)),
    (("L1", "--level", 0.1), rm.L1(0.1)),
    (("l1", "--radius", 0.1, "--support", "all"), rm.L1(0.1, support="all")),
    (("l1", "--radius", 0.1, "--support", "1,age 3, broken"), rm.L1(0.1, support=[1, 3, 9])),
    (("l2", "--radius", 0.1, "--support", "model"), rm.L2(0.1)),
    (("linf", "--radius", 0.05), rm.LInf(0.05)),
    (("contamination", "--share", 0.1, "--support", "9"), rm.Contamination(0.1, support=[9])),
    (("cvar", "--level", 0.2), rm.CVaR(0.2)),
    (("cvar", "--level", 0.2, "--share", 0.5), rm.MeanRisk(0.5, rm.CVaR(0.2))),
    (("evar", "--level", 0.2, "--optimistic"), rm.Optimistic(rm.EVaR(0.2))),
    (("entropic", "--aversion", 0.5), rm.EntropicRisk(0.5)),
    (("l1", "--radius", 0.1, "--rectangular", "s"), rm.SRectangular(rm.L1(0.1))),
    (("l1", "--radius", 0.1, "--rectangular", "sa"), rm.L1(0.1)),
    (
        ("ball", "--radius", 0.1, "--divergence", "kl", "--rectangular", "s", "--optimistic"),
        rm.Optimistic(rm.SRectangular(rm.Constrained(rm.KL(), 0.1))),
    ),
]


@pytest.fixture
def interval_file(tmp_path: Path) -> Path:
    mdp, bounds = with_intervals()
    return io.write_interval(mdp, bounds, tmp_path / "bounds.drn")  # type: ignore[arg-type]


def with_intervals() -> tuple[rm.MDP, rm.Interval]:
    mdp = rm.problems.machine_replacement()
    p = mdp.probabilities
    return mdp, rm.Interval(0.8 * p, np.minimum(1.3 * p, 1.0))


def test_every_set_has_its_options() -> None:
    assert tuple(_KINDS) == SETS
    assert {words[0].lower() for words, _ in SAME} == set(SETS) - {"interval", "wasserstein"}


@pytest.mark.parametrize(("words", "ambiguity"), SAME, ids=lambda part: str(part))
def test_solve_finds_what_python_finds(words: tuple[Any, ...], ambiguity: Any) -> None:
    given, solution = record("solve", MACHINE, "--set", *words), rm.solve(rm.problems.machine_replacement(), ambiguity)
    assert given["ambiguity"] == repr(ambiguity)
    assert given["meaning"] == str(ambiguity)
    assert given["invents_transitions"] is ambiguity.invents
    assert (given["value"], given["policy"]) == (solution.value.tolist(), solution.policy.tolist())


def test_a_table_says_the_set_and_what_nature_may_invent() -> None:
    said = run("solve", MACHINE, "--set", "l1", "--radius", 0.1, "--support", "all").stdout
    assert str(rm.L1(0.1, support="all")) in said
    assert "Nature may use transitions that the model does not have" in said
    assert "worst-case value" in said
    plain = run("solve", MACHINE, "--set", "l1", "--radius", 0.1, "--optimistic").stdout
    assert "transitions that the model does not have" not in plain
    assert "best-case value" in plain


def test_a_policy_is_evaluated_against_a_set(tmp_path: Path) -> None:
    mdp = rm.problems.machine_replacement()
    solution = rm.solve(mdp, rm.Nominal())
    file = rm.write(solution, tmp_path / "policy.csv")
    given = record("solve", MACHINE, "--policy", file, "--set", "cvar", "--level", 0.3)
    assert given["value"] == rm.evaluate(mdp, solution.policy, rm.CVaR(0.3)).value.tolist()


# Intervals come with a file.


@pytest.mark.parametrize("words", [(), ("--set", "interval"), ("--set", "interval", "--level", 1)], ids=str)
def test_a_file_with_intervals_is_solved_with_them(interval_file: Path, words: tuple[Any, ...]) -> None:
    mdp, bounds = with_intervals()
    given = record("solve", interval_file, *words)
    assert given["value"] == pytest.approx(rm.solve(mdp, bounds).value, abs=1e-6)
    assert "intervals" in given["meaning"]


def test_another_set_or_a_share_of_the_intervals_may_be_asked_for(interval_file: Path) -> None:
    assert record("solve", interval_file, "--set", "l1", "--radius", 0.1)["ambiguity"] == "L1(0.1)"
    values = [
        record("solve", interval_file, "--set", "interval", "--level", share, *words)["value"][0]
        for share, words in ((0, ()), (0.5, ()), (1, ()), (1, ("--optimistic",)))
    ]
    nominal = rm.solve(rm.problems.machine_replacement(), rm.Nominal()).value[0]
    assert values[0] == pytest.approx(nominal, abs=1e-6)
    assert values[3] > values[0] > values[1] > values[2]


def test_intervals_in_curves_and_stress_tests(interval_file: Path) -> None:
    given = record("curve", interval_file, "--set", "interval", "--levels", "0.1,1")
    assert given["set"] == "interval"
    assert given["level"] == [0.1, 1.0]
    assert record("curve", interval_file)["set"] == "interval"
    table = record("stress", interval_file, "--set", "interval", "--level", 0.5, "--level", 1, "--worlds", 2)
    assert {"worst case, interval level 0.5", "worst case, interval level 1"} <= set(table["family"])


# Distances come with a file.


@pytest.fixture(params=[".csv", ".npy", ".npz", "sparse.npz"])
def distance_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    ages, file = np.arange(10.0), tmp_path / f"distance{request.param}"
    if request.param == ".csv":
        file.write_text("age\n" + "\n".join(map(str, ages)))
    elif request.param == ".npy":
        np.save(file, ages)
    elif request.param == ".npz":
        np.savez(file, np.abs(np.subtract.outer(ages, ages)))
    else:
        sparse.save_npz(file, sparse.coo_array(np.abs(np.subtract.outer(ages, ages))))
    return file


def worlds_in_which_it_pays(ambiguity: Any, folder: Path) -> tuple[str, Path]:
    """Options: 40 times the world that is worst for the nominal policy."""
    machine = rm.problems.machine_replacement()
    nominal = rm.solve(machine, rm.Nominal()).policy
    worst = rm.evaluate(machine, nominal, ambiguity).worst_case
    return "--held-out", outcomes_of([worst] * 40, folder / "others.csv")


def test_distances(distance_file: Path, tmp_path: Path) -> None:
    typed = ("wasserstein", "--distance", distance_file)
    mdp, distance = rm.problems.machine_replacement(), rm.read_distance(distance_file)
    given = record("solve", MACHINE, "--set", *typed, "--radius", 0.5)
    assert given["invents_transitions"]
    assert given["value"] == rm.solve(mdp, rm.Wasserstein(distance, 0.5)).value.tolist()
    inside = record("solve", MACHINE, "--set", *typed, "--radius", 0.5, "--support", "model", "--optimistic")
    friendly = rm.Optimistic(rm.Wasserstein(distance, 0.5, support="model"))
    assert (inside["ambiguity"], inside["value"]) == (repr(friendly), rm.solve(mdp, friendly).value.tolist())
    curve = record("curve", MACHINE, "--set", *typed)
    assert len(curve["worst"]) == 50
    assert curve["worst"][0] > curve["worst"][-1]
    others = worlds_in_which_it_pays(rm.Wasserstein(distance, 1.0), tmp_path)
    said = run("suggest", MACHINE, "--set", *typed, "--levels", "0.2,1", "--initial", "age 0", *others).stdout
    assert f"--distance {distance_file}" in said


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("0,1\n2\n", "line 2 of distance.csv must hold 2 numbers: got 1"),
        ("0,1\n2,x\n", "line 2 of distance.csv must hold numbers with commas between them: got 'x'"),
        ("age\n", "distance.csv must hold a line of numbers per state: got none"),
        ("0,1\n1,0\n", "distance must have one row of distances per state (10)"),
    ],
)
def test_damaged_distances(tmp_path: Path, text: str, part: str) -> None:
    file = tmp_path / "distance.csv"
    file.write_text(text)
    refused(run("solve", MACHINE, "--set", "wasserstein", "--radius", 1, "--distance", file), part)
    (tmp_path / "distance.npy").write_text(text)
    damaged = run("solve", MACHINE, "--set", "wasserstein", "--radius", 1, "--distance", tmp_path / "distance.npy")
    refused(damaged, "distance.npy must hold one array of numbers")


# Curves and stress tests.


@pytest.mark.parametrize(
    ("words", "function"),
    [
        (("l1", "--radii", "0.1,0.3"), rm.L1),
        (("l1", "--levels", "0.1,0.3", "--support", "all"), lambda level: rm.L1(level, support="all")),
        (("contamination", "--levels", "0.1,0.3"), rm.Contamination),
        (("cvar", "--levels", "0.1,0.3"), rm.CVaR),
        (("cvar", "--levels", "0.1,0.3", "--share", 0.5), lambda level: rm.MeanRisk(0.5, rm.CVaR(level))),
        (("entropic", "--levels", "0.1,0.3"), rm.EntropicRisk),
    ],
    ids=lambda given: " ".join(map(str, given)) if isinstance(given, tuple) else "",  # a function has an address
)
def test_curve(words: tuple[Any, ...], function: Any) -> None:
    given = record("curve", MACHINE, "--set", *words)
    table = rm.robustness_curve(rm.problems.machine_replacement(), function, levels=[0.1, 0.3])
    assert given["set"] == words[0]
    assert all(given[name] == column.tolist() for name, column in table.columns.items())


@pytest.mark.parametrize("name", [name for name in SETS if name not in ("interval", "wasserstein")])
def test_levels_of_a_curve_span_from_hardly_robust_to_the_minimum(name: str) -> None:
    given = record("curve", "river-swim", "--set", name)
    assert len(given["nominal"]) == 50
    lost = np.array(given["best"]) - np.array(given["worst"])
    assert lost[0] <= 0.1 * lost[-1]
    assert set(given["status"]) == {"converged"}


def test_curves_and_stress_tests_say_what_nature_may_invent() -> None:
    words = (MACHINE, "--set", "l1", "--support", "all")
    assert "transitions that the model does not have" in run("curve", *words, "--levels", 0.1).stdout
    assert "transitions that the model does not have" in run("stress", *words, "--level", 0.1, "--worlds", 1).stdout


def test_stress() -> None:
    words = ("--set", "l1", "--radius", 0.1, "--radius", 0.3, "--worlds", 3, "--divergence", "tv")
    given, mdp = record("stress", MACHINE, *words), rm.problems.machine_replacement()
    sets = {"l1 radius 0.1": rm.L1(0.1), "l1 radius 0.3": rm.L1(0.3)}
    ball = rm.TotalVariation()
    table = rm.stress(
        mdp,
        {"nominal": rm.Nominal(), **sets},
        [
            rm.worlds.RandomKernels(ball, 0.1, 3),
            rm.worlds.Adversary(rm.Constrained(ball, 0.1)),
            *(rm.worlds.Adversary(each, name) for name, each in sets.items()),
        ],
    )
    assert given.pop("sets") == {name: repr(each) for name, each in sets.items()}
    assert given == {"problem": MACHINE, **{name: column.tolist() for name, column in table.columns.items()}}


# Steps and sums.


def test_horizon(tmp_path: Path) -> None:
    out = tmp_path / "steps.csv"
    given = record("solve", MACHINE, "--set", "cvar", "--level", 0.2, "--horizon", 3, "--discount", 1, "--out", out)
    mdp = rm.problems.machine_replacement(discount=1.0)
    solution = rm.solve(mdp, rm.CVaR(0.2), criterion=rm.FiniteHorizon(3))
    assert (given["value"], given["policy"]) == (solution.value.tolist(), solution.policy.tolist())
    assert given["criterion"] == "step 0 of 3, discount 1"
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == [0] * 10 + [1] * 10 + [2] * 10
    assert [float(row["value"]) for row in rows] == solution.value[:3].ravel().tolist()
    said = run("solve", MACHINE, "--horizon", 3, "--rows", 2).stdout
    assert "step 0 of 3, discount 0.95" in said
    assert "first step" in said
    assert "8 more states" in said


def test_a_policy_that_mixes_actions_is_written_for_each_step(tmp_path: Path) -> None:
    mdp = rm.problems.two_state(0.5, 0.9)
    policy = np.full((mdp.n_states, mdp.n_actions), 1.0 / mdp.n_actions)
    solution = rm.evaluate(mdp, policy, rm.Nominal(), criterion=rm.FiniteHorizon(2))
    with rm.write(solution, tmp_path / "policy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * policy.size
    assert {float(row["probability"]) for row in rows} == {1.0 / mdp.n_actions}


def test_total(tmp_path: Path) -> None:
    mdp = rm.MDP.from_rows([0, 0], [0, 0], [0, 1], [0.75, 0.25], [1.0, 1.0], 1.0, n_states=1)
    file = rm.write(mdp, tmp_path / "walk.drn")
    given = record("solve", file, "--total")
    assert given["value"] == pytest.approx([4.0])
    assert given["criterion"] == "total reward"
    assert record("solve", file, "--total", "--set", "l1", "--radius", 0.2, "--optimistic")["value"][0] > 4.0
    (tmp_path / "stay.csv").write_text("state,action\n0,0\n")
    assert record("solve", file, "--total", "--policy", tmp_path / "stay.csv")["value"] == pytest.approx([4.0])


def test_average(tmp_path: Path) -> None:
    out = tmp_path / "gain.csv"
    given = record("solve", MACHINE, "--average", "--set", "cvar", "--level", 0.2, "--share", 0.5, "--out", out)
    doubt = rm.MeanRisk(0.5, rm.CVaR(0.2))
    solution = rm.solve(rm.problems.machine_replacement(), doubt, criterion=rm.AverageReward())
    assert given["criterion"] == "average reward"
    assert given["gain"] == solution.gain.tolist()
    assert (given["gain_lower"], given["gain_upper"]) == (solution.gain_lower.tolist(), solution.gain_upper.tolist())
    assert (given["value"], given["lower"]) == (solution.value.tolist(), [None] * 10)
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["state", "action", "gain", "gain_lower", "gain_upper", "bias"]
    assert [float(row["gain"]) for row in rows] == solution.gain.tolist()
    said = run("solve", MACHINE, "--average", "--policy", out, "--rows", 2).stdout
    assert "average reward" in said
    assert all(word in said for word in ("gain", "bias", "converged"))


# Mistakes.


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--set", "kl", "--radius", 0.1), ("kl is a divergence: give --divergence kl with --weight or --radius",)),
        (("--set", "cvr", "--level", 0.1), ("--set must be one of penalty, ball, l1", "did you mean 'cvar'?")),
        (("--set", "entropc", "--aversion", 1), ("did you mean 'entropic'?",)),
        (("--set", "l1"), ("--set l1 must come with --radius, as in --radius 0.1",)),
        (("--set", "cvar"), ("--set cvar must come with --level, as in --level 0.2",)),
        (("--set", "cvar", "--share", 0.5), ("--set cvar must come with --level",)),
        (("--set", "contamination"), ("--set contamination must come with --share",)),
        (("--set", "penalty", "--divergence", "kl"), ("--set penalty must come with --weight",)),
        (("--set", "l1", "--weight", 1), ("--set l1 takes --radius and --support: got --weight",)),
        (("--set", "l1", "--radius", 0.1, "--divergence", "kl"), ("--set l1 takes --radius and --support",)),
        (("--set", "penalty", "--radius", 1), ("--set penalty takes --weight and --divergence: got --radius",)),
        (("--set", "cvar", "--level", 0.1, "--support", "all"), ("--set cvar takes --level and --share",)),
        (("--set", "ball", "--radius", 1, "--support", "all"), ("got --support",)),
        (("--set", "l1", "--radius", 0.1, "--level", 0.1), ("give --radius or --level, not both",)),
        (("--set", "l1", "--radius", -1), ("radius must be at least 0: got -1",)),
        (("--set", "cvar", "--level", 0), ("level must lie in (0, 1]: got 0",)),
        (("--set", "contamination", "--share", 2), ("share must lie in [0, 1]: got 2",)),
        (("--set", "l1", "--radius", 0.1, "--support", "al"), ("did you mean 'all'?",)),
        (("--set", "l1", "--radius", 0.1, "--support", "brokn"), ("did you mean 'broken'?",)),
        (("--set", "l1", "--radius", 0.1, "--support", "1,10"), ("--support must hold states in 0..9: got 10",)),
        (("--set", "interval"), ("--set interval must come with a .drn or .tra file that has intervals",)),
        (("--level", 0.1), ("--level must come with --set cvar, evar or interval",)),
        (("--share", 0.1), ("--share must come with --set contamination, cvar, evar or entropic",)),
        (("--aversion", 0.1), ("--aversion must come with --set entropic",)),
        (("--support", "all"), ("--support must come with --set l1, l2, linf, contamination or wasserstein",)),
        (("--distance", "file.csv"), ("--distance must come with --set wasserstein",)),
        (("--set", "wasserstein", "--radius", 1), ("--set wasserstein must come with --distance, a file",)),
        (("--set", "wasserstein", "--radius", 1, "--distance", "x.txt"), ("must be in a .csv, .npy or .npz file",)),
        (("--set", "wasserstein", "--radius", 1, "--distance", "x.npy"), ("there is no file x.npy",)),
        (("--set", "l1", "--radius", 1, "--distance", "x.npy"), ("--set l1 takes --radius and --support",)),
        (("--optimistic",), ("--optimistic must come with a set",)),
        (("--weight", 1, "--radius", 1), ("give --weight or --radius, not both",)),
        (
            ("--discount", 1),
            ("below 1: got 1; give a lower --discount, or solve with --horizon STEPS, --total or --average",),
        ),
        (("--horizon", 0), ("--horizon must be at least 1: got 0",)),
        (("--horizon", 3, "--total"), ("give --horizon or --total, not both",)),
        (("--horizon", 3, "--solver", "policy-iteration"), ("--horizon must come without --solver",)),
        (("--total", "--discount", 0.9), ("leave --discount out",)),
        (("--average", "--discount", 0.9), ("--average averages rewards without a discount: leave --discount out",)),
        (("--average", "--total"), ("give --total or --average, not both",)),
        (
            ("--average", "--solver", "dual-ascent"),
            ("--total and --average must come with --solver auto, value-iteration or",),
        ),
        (("--total",), ("the total reward must be finite everywhere",)),
        (
            ("--total", "--solver", "dual-ascent"),
            ("--total and --average must come with --solver auto, value-iteration or",),
        ),
    ],
    ids=str,
)
def test_what_is_typed_wrongly(words: tuple[Any, ...], parts: tuple[str, ...]) -> None:
    refused(run("solve", MACHINE, *words), *parts)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("curve", MACHINE, "--set", "l1", "--weights", "1"), "--set l1 takes --radii and --support: got --weights"),
        (("curve", MACHINE, "--levels", "1"), "--levels must come with --set cvar, evar or interval"),
        (("curve", MACHINE, "--set", "l11", "--levels", "1"), "did you mean 'l1'?"),
        (("curve", MACHINE, "--set", "cvar", "--levels", "2"), "level must lie in (0, 1]: got 2"),
        (("stress", MACHINE, "--set", "cvar"), "--set cvar must come with --level"),
        (("stress", MACHINE, "--level", 0.1), "--level must come with --set"),
        (("stress", MACHINE, "--set", "l1", "--weight", 0.1), "got --weight"),
        (("match", MACHINE, "--set", "cvar", "--weight", 1), "match knows --set penalty and --set ball"),
        (("match", MACHINE, "--set", "ball", "--weight", 1), "--set ball takes --radius and --divergence"),
    ],
    ids=str,
)
def test_what_other_commands_refuse(words: tuple[Any, ...], part: str) -> None:
    refused(run(*words), part)


@pytest.mark.parametrize(
    ("words", "function", "levels", "level"),
    [
        (
            ("l1", "--support", "all", "--levels", "0.3,0.8"),
            lambda r: rm.L1(r, support="all"),
            [0.3, 0.8],
            0.8,
        ),
        (("cvar", "--share", 0.5, "--levels", "0.5,0.3"), lambda a: rm.MeanRisk(0.5, rm.CVaR(a)), [0.5, 0.3], 0.5),
    ],
    ids=["l1", "cvar"],
)
def test_suggest_is_that_of_python(
    words: tuple[Any, ...], function: Any, levels: list[float], level: float, tmp_path: Path
) -> None:
    words = (*words, *worlds_in_which_it_pays(function(levels[-1]), tmp_path))
    worlds = rm.read_outcomes(words[-1], 0.95)
    found = record("suggest", MACHINE, "--set", *words, "--initial", "age 0")
    advice = rm.suggest(rm.problems.machine_replacement(), function, levels=levels, held_out=worlds, initial=0)
    assert found["ambiguity"] == repr(advice.ambiguity)
    assert found["policy"] == advice.solution.policy.tolist()
    assert advice.level == level
    said = run("suggest", MACHINE, "--set", *words, "--initial", "age 0").stdout
    assert ("Nature may use transitions that the model does not have" in said) == advice.ambiguity.invents
    # What it says to type next is the same set.
    typed = said.split("try ")[1].split("robustmdp solve ")[1].split("\n")[0].split()
    assert record("solve", *typed)["ambiguity"] == repr(advice.ambiguity)


def test_analyse_writes_a_page_about_any_set(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    said = run("analyse", MACHINE, "--set", "entropic", "--levels", "0.1,0.3,1", "--out", page, "--initial", "age 0")
    assert said.exit_code == 0, said.output
    text = page.read_text()
    assert "Aversion: how far nature may go" in text
    assert "set_at = lambda level: rm.EntropicRisk(level)" in text


@pytest.mark.parametrize("command", ["suggest", "analyse"])
def test_advice_refuses_levels_that_mean_nothing(command: str) -> None:
    refused(run(command, MACHINE, "--levels", "0.1"), "--levels must come with --set")
    refused(
        run(command, MACHINE, "--set", "penalty", "--levels", "1"), "--levels must come with another set than penalty"
    )
    refused(run(command, MACHINE, "--set", "l1", "--levels", "0.1,x"), "--levels")


def test_advice_on_the_intervals_of_a_file(interval_file: Path) -> None:
    found = record("suggest", interval_file, "--discount", 0.95, "--levels", "0.5,1", "--set", "interval")
    assert found["ambiguity"].startswith(("Interval", "Nominal"))


def test_match_knows_the_names() -> None:
    assert record("match", "chain", "--set", "ball", "--radius", 0.1) == record("match", "chain", "--radius", 0.1)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--rectangular", "s"], "must come with --set penalty, --set ball, --set l1 or --set l2: got no set"),
        (["--set", "cvar", "--level", "0.2", "--rectangular", "s"], "got --set cvar"),
        (["--set", "l1", "--radius", "0.2", "--rectangular", "t"], "--rectangular must be one of sa, s: got 't'"),
    ],
)
def test_which_sets_actions_can_share(words: list[str], sentence: str) -> None:
    refused(run("solve", MACHINE, *words), sentence)


def test_random_policies_in_curves_and_tables() -> None:
    curve = record("curve", MACHINE, "--set", "ball", "--rectangular", "s", "--radii", "0.01,0.1")
    sets = [rm.SRectangular(rm.Constrained(rm.KL(), radius)) for radius in (0.01, 0.1)]
    worst = [rm.solve(rm.problems.machine_replacement(), each).value.mean() for each in sets]
    assert curve["level"] == [0.01, 0.1]
    assert curve["worst"] == pytest.approx(worst, rel=1e-5)
    shown = run("solve", MACHINE, "--set", "l1", "--radius", 0.5, "--rectangular", "s").output
    assert "repair 0.97" in shown
    assert "The policy is random" in shown
