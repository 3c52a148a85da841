"""What each command answers: the library's own numbers to the bit as JSON, tables for people, files."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from app.commands.calls import outcomes_of, record, refused, run, transitions, write_log

MACHINE = "machine-replacement"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "visits.csv"
    return write_log(path, transitions(rm.problems.machine_replacement(), 2000))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Machines that are repaired less often."""
    folder = tmp_path_factory.mktemp("others")
    return [
        rm.write(rm.problems.machine_replacement(repair_success=success), folder / f"{success}.csv")
        for success in (0.1, 0.2, 0.3, 0.4)
    ]


def plain(array: Any) -> Any:
    """As JSON has it."""
    return json.loads(json.dumps(np.where(np.isfinite(array), array, np.nan).tolist()).replace("NaN", "null"))


# The numbers.


@pytest.mark.parametrize("form", ["weights", "radii"])
def test_curve(form: str, tmp_path: Path) -> None:
    out = tmp_path / "curve.csv"
    words = (MACHINE, "--divergence", "chi2", f"--{form}", "0.1,3,1", "--initial", "broken", "--out", out)
    given, mdp = record("curve", *words), rm.problems.machine_replacement()
    table = rm.robustness_curve(mdp, rm.ChiSquare(), **{form: [0.1, 3, 1]}, initial=mdp.state_names.index("broken"))
    for name, column in table.columns.items():
        assert given[name] == column.tolist()
    assert (given["knee"], given["best"], given["interrupted"]) == (table.notes["knee"], table.notes["best"], False)
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["worst"]) for row in rows] == table["worst"].tolist()


def test_curve_without_levels_takes_fifty() -> None:
    given = record("curve", "river-swim")
    assert given["weight"] == rm.robustness_curve(rm.problems.river_swim(), rm.KL())["weight"].tolist()
    assert len(given["weight"]) == 50


def test_suggest_without_data() -> None:
    given, advice = record("suggest", MACHINE), rm.suggest(rm.problems.machine_replacement())
    assert given["ambiguity"] == repr(advice.ambiguity)
    assert given["level"] is None  # infinity, in JSON
    assert given["reasons"] == list(advice.reasons)
    assert (given["value"], given["policy"]) == (advice.solution.value.tolist(), advice.solution.policy.tolist())
    assert given["candidates"]["weight"] == advice.candidates["weight"].tolist()
    assert given["pays"] is False
    assert (given["verdict"], given["worlds_needed"], given["comparison"]) == ("no worlds", None, None)


def test_suggest_by_a_log(log: Path) -> None:
    words = ("--discount", 0.9, "--confidence", 0.8, "--seed", 3, "--divergence", "js", "--loss", 0.1)
    words = (*words, "--method", "asymptotic")
    given = record("suggest", log, *words)
    model, counts, _ = rm.estimate(rm.read_log(log), 0.9)
    advice = rm.suggest(model, rm.JensenShannon(), counts=counts, confidence=0.8, method="asymptotic", seed=3, loss=0.1)
    assert given["reasons"] == list(advice.reasons)
    assert given["candidates"] == {name: column.tolist() for name, column in advice.candidates.columns.items()}
    assert advice.comparison is not None
    assert given["comparison"] == {name: column.tolist() for name, column in advice.comparison.columns.items()}
    assert (given["verdict"], given["worlds_needed"]) == (advice.verdict, advice.worlds_needed)


@pytest.mark.parametrize("one_file", [False, True])
def test_suggest_by_held_out_models(others: list[Path], one_file: bool, tmp_path: Path) -> None:
    """Several files of one model each, or one file of several by craam's idoutcome."""
    models = [rm.read(path) for path in others]
    files: list[Path] = [outcomes_of(models, tmp_path / "all.csv")] if one_file else others
    words = [word for file in files for word in ("--held-out", file)]
    given = record("suggest", MACHINE, *words, "--initial", "age 0")
    advice = rm.suggest(rm.problems.machine_replacement(), held_out=models, initial=0)
    assert given["candidates"] == {name: column.tolist() for name, column in advice.candidates.columns.items()}
    assert "Tried in 4 worlds (held out)" in given["reasons"][0]


def test_stress(tmp_path: Path) -> None:
    out = tmp_path / "values.csv"
    words = ("--radius", 0.1, "--weight", 2, "--within", 0.2, "--worlds", 5, "--seed", 7, "--out", out)
    given, mdp = record("stress", MACHINE, *words), rm.problems.machine_replacement()
    kl = rm.KL()
    table = rm.stress(
        mdp,
        {"nominal": rm.Nominal(), "weight 2": rm.Penalized(kl, 2.0), "radius 0.1": rm.Constrained(kl, 0.1)},
        [rm.worlds.RandomKernels(kl, 0.2, 5, seed=7), rm.worlds.Adversary(rm.Constrained(kl, 0.2))],
    )
    assert given.pop("sets") == {
        "weight 2": "Penalized(KL(), weight=2.0)",
        "radius 0.1": "Constrained(KL(), radius=0.1)",
    }
    assert given == {"problem": MACHINE, **{name: column.tolist() for name, column in table.columns.items()}}
    with out.open() as file:
        assert [float(row["value"]) for row in csv.DictReader(file)] == table.outcomes["value"].tolist()


def test_stress_in_variants_of_an_environment() -> None:
    given = record("stress", "gym:FrozenLake-v1", "--vary", "success_rate=0.4..0.8:3", "--worlds", 2)
    worlds = rm.worlds.environments("FrozenLake-v1", 0.95, success_rate=np.linspace(0.4, 0.8, 3))
    mdp = rm.MDP.from_gymnasium("FrozenLake-v1", 0.95)
    table = rm.stress(mdp, {"nominal": rm.Nominal()}, [worlds], initial=0)
    assert given["family"][0] == "FrozenLake-v1 with another success_rate"
    assert given["mean"][0] == table["mean"][0]


def test_policies_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    """Two files named alike in two folders were one policy."""
    mdp = rm.problems.machine_replacement()
    solutions = [rm.solve(mdp, ambiguity) for ambiguity in (rm.Nominal(), rm.Constrained(rm.KL(), 1.0))]
    files = [rm.write(solution, tmp_path / name / "mine.csv") for name, solution in zip("ab", solutions, strict=True)]
    other = rm.write(solutions[0], tmp_path / "other.csv")
    words = [word for file in [*files, other] for word in ("--policy", file)]
    given = record("stress", MACHINE, *words, "--worlds", 2)
    assert given["policy"][:4] == ["nominal", str(files[0]), str(files[1]), "other.csv"]
    assert given["mean"][1] == given["mean"][0] == given["mean"][3] != given["mean"][2]


@pytest.mark.parametrize(("option", "found"), [("weight", "radius"), ("radius", "weight")])
def test_match(option: str, found: str) -> None:
    mdp, tv = rm.problems.chain(), rm.TotalVariation()
    given = record("match", "chain", "--divergence", "tv", f"--{option}", 0.3, "--initial", "s2")
    ambiguity = rm.Penalized(tv, 0.3) if option == "weight" else rm.Constrained(tv, 0.3)
    matching: Any = rm.matching_radius if option == "weight" else rm.matching_weight
    start = np.eye(10)[1]
    assert given == {"problem": "chain", "ambiguity": repr(ambiguity), found: matching(mdp, ambiguity, start)}


def test_estimate(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.parquet"
    words = ("--discount", 0.9, "--smoothing", "laplace", "--divergence", "chi2", "--confidence", 0.9, "--out", out)
    given = record("estimate", log, *words)
    model, counts, unseen = rm.estimate(rm.read_log(log), 0.9, smoothing="laplace")
    assert rm.read(out) == model
    assert given["visits"] == counts.visits.tolist()
    assert given["never_seen"] == unseen.tolist()
    assert given["radii"] == plain(rm.radius_from_counts(counts, rm.ChiSquare(), 0.9))
    assert (given["transitions"], given["states"], given["model"]) == (2000, counts.n_states, str(out))


def test_estimate_with_a_known_model(log: Path, tmp_path: Path) -> None:
    known = rm.write(rm.problems.machine_replacement(), tmp_path / "known.csv")
    given = record("estimate", log, "--known", known, "--method", "finite-sample")
    counts = rm.Counts.of(rm.read_log(log)).with_successors(rm.problems.machine_replacement())
    assert given["radii"] == plain(rm.radius_from_counts(counts, rm.KL(), 0.95, method="finite-sample"))


def test_analyse(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    given = record("analyse", MACHINE, "--divergence", "chi2", "--initial", "age 3", "--out", out)
    advice = rm.analyse(rm.problems.machine_replacement(), rm.ChiSquare(), initial=3).study.suggestion
    assert given["report"] == str(out)
    assert given["reasons"] == list(advice.reasons)
    assert given["value"] == advice.solution.value.tolist()
    assert "</html>" in out.read_text()


def test_problems_and_doctor_are_for_programs_too() -> None:
    worlds = record("problems")
    assert worlds["formats"] == {name: list(extensions) for name, extensions in rm.io.formats().items()}
    assert set(worlds["problems"]) >= {"chain", "river-swim", "gym:ID"}
    about = record("doctor")
    assert about["robustmdp"] == rm.__version__
    assert about["core"]["numpy"] == np.__version__


FORMATS = {"csv": ".csv", "parquet": ".parquet", "prism": ".tra", "drn": ".drn", "safetensors": ".safetensors",
           "safetensors.zst": ".safetensors.zst"}  # fmt: skip


def test_every_format_is_tried_below() -> None:
    assert set(FORMATS) == set(rm.io.formats())


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
def test_convert_between_all_formats(source: str, target: str, tmp_path: Path) -> None:
    mdp = rm.problems.machine_replacement()
    first, second = tmp_path / f"one{FORMATS[source]}", tmp_path / f"other{FORMATS[target]}"
    rm.write(mdp, first)
    given = record("convert", first, second)
    assert rm.read(second) == mdp
    assert given == {"source": str(first), "target": str(second), "states": mdp.n_states, "pairs": mdp.n_pairs,
                     "transitions": mdp.nnz, "discount": mdp.discount}  # fmt: skip


def test_convert_by_the_names_of_formats(tmp_path: Path) -> None:
    mdp, odd = rm.problems.chain(), tmp_path / "model.dat"
    assert record("convert", "chain", odd, "--format", "drn")["target"] == str(odd)
    record("convert", odd, tmp_path / "again.csv", "--from", "drn")
    assert rm.read(tmp_path / "again.csv") == mdp


# The tables.


def test_the_curve_as_a_table() -> None:
    outcome = run("curve", MACHINE, "--weights", "1,2,5,20", "--rows", 2)
    for part in (
        f"{MACHINE}, discount 0.95",
        "weight",
        "error bound",
        "2 more: use --rows 4",
        "Knee: weight 5 improves",
    ):
        assert part in outcome.stdout
    assert "│     20 │" in outcome.stdout
    assert "│      1 │" in outcome.stdout
    assert "│      5 │" not in outcome.stdout


def test_a_curve_on_which_robustness_buys_nothing() -> None:
    assert "At none of these levels does a robust policy improve" in run("curve", "chain", "--weights", "1,2").stdout


def test_the_stress_test_as_tables() -> None:
    lines = run("stress", MACHINE, "--radius", 0.1, "--worlds", 3).stdout.splitlines()
    assert lines[0] == "3 worlds: random, up to 0.1 on average (Kullback-Leibler)"
    assert "worst tenth" in lines[2]
    last = lines.index("worst case, Kullback-Leibler radius 0.1")
    assert lines[last + 2].split("┃")[1:3] == [" policy     ", "  value "]  # of one world there is nothing else to say
    assert max(map(len, lines)) <= 80


def test_the_recommendation_ends_with_what_to_type_next() -> None:
    lakes = ("gym:FrozenLake-v1?map_name=8x8", "--discount", 0.99)
    words = (*lakes, "--vary", "success_rate=0.4..0.9:41", "--initial", 0)
    level = record("suggest", *words)["level"]
    *_, last = run("suggest", *words).stdout.splitlines()
    assert last.startswith(f"try      robustmdp solve '{lakes[0]}' --discount 0.99 --divergence kl --radius ")
    assert float(last.split()[-1]) == pytest.approx(level, rel=1e-5)
    again = run(*shlex.split(last)[2:])
    assert again.exit_code == 0


def test_without_data_no_level_is_recommended() -> None:
    lines = run("suggest", "river-swim").stdout.splitlines()
    assert any("no level is recommended" in line for line in lines)
    assert not any(line.startswith("Recommended") for line in lines)
    assert lines[-1] == "try      robustmdp solve river-swim --discount 0.95"


def test_estimate_tells_of_what_was_never_seen(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", [(0, 0, 1.0, 1), (0, 0, 1.0, 0), (1, 0, 0.0, 2)])
    outcome = run("estimate", log, "--out", tmp_path / "m.drn")
    for part in ("3 transitions, 3 different, from 2 of 3 x 1 pairs", "never seen: (2, 0)", "m.drn, discount 0.95"):
        assert part in outcome.stdout


def test_a_policy_is_evaluated(tmp_path: Path) -> None:
    mdp = rm.problems.machine_replacement()
    file = rm.write(rm.solve(mdp, rm.Nominal()), tmp_path / "policy.csv")
    given = record("solve", MACHINE, "--policy", file, "--divergence", "kl", "--radius", 0.2)
    policy = rm.solve(mdp, rm.Nominal()).policy
    assert given["value"] == rm.evaluate(mdp, policy, rm.Constrained(rm.KL(), 0.2)).value.tolist()


@pytest.mark.parametrize("extension", ["csv", "parquet", "json"])
def test_a_policy_of_each_step_is_written_and_evaluated(extension: str, tmp_path: Path) -> None:
    file = tmp_path / f"policy.{extension}"
    words = ("solve", MACHINE, "--discount", 1, "--horizon", 12, "--set", "l1", "--radius", 0.1)
    solved = record(*words, "--out", file)
    given = record(*words, "--policy", file)
    assert given["policy"] == solved["policy"]
    assert len({tuple(step) for step in solved["policy"]}) > 1  # it does depend on the step
    assert np.max(np.abs(np.subtract(given["value"], solved["value"]))) <= given["error_bound"] + solved["error_bound"]


def test_a_policy_of_each_step_needs_as_many_steps(tmp_path: Path) -> None:
    mdp = rm.problems.machine_replacement()
    file = rm.write(rm.solve(mdp, rm.Nominal(), criterion=rm.FiniteHorizon(3)), tmp_path / "policy.csv")
    sentence = "a policy for each of 3 steps must come with"
    refused(run("solve", MACHINE, "--policy", file), f"{sentence} robustmdp solve --horizon 3: got policy.csv")
    refused(run("solve", MACHINE, "--policy", file, "--horizon", 4), f"{sentence} --horizon 3, not 4: got policy.csv")
    refused(run("solve", MACHINE, "--policy", file, "--total"), f"{sentence} robustmdp solve --horizon 3")
    refused(run("stress", MACHINE, "--policy", file), f"{sentence} robustmdp solve --horizon 3: got policy.csv")
    file.write_text("".join(line for line in file.read_text().splitlines(True) if not line.startswith("1,")))
    refused(run("solve", MACHINE, "--policy", file, "--horizon", 3), "step 1 is missing in policy.csv")
    stationary = rm.write(rm.solve(mdp, rm.Nominal()), tmp_path / "same.csv")
    assert len(record("solve", MACHINE, "--policy", stationary, "--horizon", 4)["value"]) == 5


@pytest.mark.parametrize("extension", ["csv", "parquet", "json"])
def test_a_solution_is_written(extension: str, tmp_path: Path) -> None:
    out = tmp_path / f"policy.{extension}"
    assert run("solve", MACHINE, "--weight", 1, "--out", out).exit_code == 0
    mdp = rm.problems.machine_replacement()
    solution = rm.solve(mdp, rm.Penalized(rm.ChiSquare(), 1.0))
    assert rm.read_policy(out, mdp).tolist() == solution.policy.tolist()


def test_the_value_of_a_trusted_model_is_no_worst_case() -> None:
    assert "worst-case" not in run("solve", "chain").stdout
    assert "worst-case value" in run("solve", "chain", "--weight", 1).stdout


def test_zero_has_no_sign() -> None:
    assert "-0.0000" not in run("solve", "chain").stdout


def test_the_recommended_policy_is_written(tmp_path: Path) -> None:
    given = record("suggest", MACHINE, "--initial", 0, "--out", tmp_path / "policy.csv")
    policy = rm.io.read_policy(tmp_path / "policy.csv", rm.problems.machine_replacement())
    assert policy.tolist() == given["policy"]


def test_a_learned_policy_is_written(tmp_path: Path) -> None:
    given = record("learn", "chain", "--weight", 1, "--steps", 20, "--out", tmp_path / "policy.json")
    assert rm.io.read_policy(tmp_path / "policy.json", rm.problems.chain()).tolist() == given["policy"]


def test_worlds_within_several_radii() -> None:
    found = record("stress", MACHINE, "--within", 0.1, "--within", 0.3, "--worlds", 2)["family"]
    assert len(set(found)) == 4
    assert sum("0.3" in family for family in set(found)) == 2


def test_a_match_begins_where_the_environment_does() -> None:
    lake = rm.MDP.from_gymnasium("FrozenLake-v1", 0.95)
    found = record("match", "gym:FrozenLake-v1", "--divergence", "kl", "--weight", 1)["radius"]
    assert found == rm.matching_radius(lake, rm.Penalized(rm.KL(), 1.0), 0)


def test_a_table_with_our_own_names_is_a_model(tmp_path: Path) -> None:
    """It was taken for a log, and its probabilities for nothing."""
    path = tmp_path / "model.csv"
    path.write_text("state,action,next_state,probability,reward\n0,0,0,0.9,1\n0,0,1,0.1,1\n1,0,0,1.0,0\n")
    given = record("solve", path, "--discount", 0.9)
    wanted = rm.solve(rm.MDP.from_arrays([[[0.9, 0.1]], [[1.0, 0.0]]], [1.0, 0.0], 0.9), rm.Nominal())
    assert given["value"] == wanted.value.tolist()
    refused(run("estimate", path), "must be a log, not a model")


def test_a_log_may_tell_how_likely_its_actions_were(tmp_path: Path) -> None:
    """The same columns are a model's: what is not clear is said, and a column that only a log has makes it clear."""
    path = tmp_path / "log.csv"
    rows = ["0,0,1.0,1,0.5", "1,0,0.0,0,0.5"]
    path.write_text("\n".join(["state,action,reward,next_state,probability", *rows]))
    refused(run("estimate", path), "a log, not a model, and its columns are those of both", "--column state=state")
    refused(run("solve", path, "--discount", 0.9), "must sum to 1: got 0.5", "if it is a log, estimate a model")
    assert record("estimate", path, "--column", "state=state")["transitions"] == 2


@pytest.mark.parametrize("column", ["episode", "step", "t", "truncated", "done", "terminated", "Terminal"])
def test_a_column_of_logs_alone_makes_a_log(column: str, tmp_path: Path) -> None:
    """A log with a column `probability` was taken for a model unless it said where episodes end."""
    path = tmp_path / "log.csv"
    path.write_text(f"state,action,reward,next_state,probability,{column}\n0,0,1.0,1,0.5,0\n1,0,0.0,0,0.5,0\n")
    refused(run("solve", path), "must be a model, not a log")
    columns = ["--column", f"terminated={column}"] if column in ("done", "Terminal") else []
    assert record("estimate", path, *columns)["transitions"] == 2
