"""The command `reproduce`: what it prints, what it refuses in one sentence, and what it never overwrites."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import robustmdp as rm
from robustmdp.app.commands import main
from robustmdp.paper import NAMES
from robustmdp.paper.params import options_of
from robustmdp.paper.reproduce import chosen_records

DMIN = ("dmin", "--behaviours", "0.001,0.5,0.999", "--engine", "serial")


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["reproduce", *map(str, words)])


def refused(outcome: Result, *parts: str) -> None:
    assert outcome.exit_code == 1, outcome.output
    assert outcome.stdout == ""
    (line,) = outcome.stderr.splitlines()
    assert line.startswith("Error: ")
    for part in parts:
        assert part in line


def contents(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "once"
    assert run(*DMIN, "--out", out).exit_code == 0
    return out


@pytest.fixture
def made(made_once: Path, tmp_path: Path) -> Path:
    """A folder of its own that the command made."""
    return shutil.copytree(made_once, tmp_path / "made")


# What it prints.


def test_the_table_of_verdicts_and_where_everything_is(tmp_path: Path) -> None:
    outcome = run(*DMIN, "--stay", "0.6,0.8", "--out", tmp_path)
    assert outcome.exit_code == 0, outcome.output
    for part in ("The paper's claims", "p = 0.6", "p = 0.8", "holds", "about uniform"):
        assert part in outcome.stdout
    for name in ("records", "claims.csv", "report.html"):
        assert str(tmp_path / name) in outcome.stdout
        assert (tmp_path / name).exists()
    assert outcome.stderr == ""


def test_paths_are_printed_as_they_are(tmp_path: Path) -> None:
    out = tmp_path / "a [b]bold[/b] name"
    outcome = run(*DMIN, "--out", out)
    assert str(out / "report.html") in outcome.stdout


def test_json_is_one_object(tmp_path: Path) -> None:
    outcome = run(*DMIN, "--stay", "0.6,0.8", "--out", tmp_path, "--json")
    assert outcome.exit_code == 0
    assert outcome.stdout.count("\n") == 1
    given = json.loads(outcome.stdout)
    assert given["report"] == str(tmp_path / "report.html")
    assert [(row["claim"], row["stay"], row["verdict"]) for row in given["claims"]] == [
        (12, 0.6, "holds"),
        (12, 0.8, "holds"),
    ]
    columns = {"claim", "statement", "stay", "setting", "verdict", "numbers", "test", "explanation"}
    assert all(row.keys() == columns for row in given["claims"])


def test_without_claims_json_is_an_object_too(tmp_path: Path) -> None:
    outcome = run("chain-diagrams", "--engine", "serial", "--out", tmp_path, "--json")
    assert json.loads(outcome.stdout) == {"report": str(tmp_path / "report.html"), "claims": []}


def test_csv_is_written_where_asked_for(made: Path, tmp_path: Path) -> None:
    assert not (made / "records" / "dmin.csv").exists()
    run(*DMIN, "--out", tmp_path / "other", "--csv")
    assert (tmp_path / "other" / "records" / "dmin.csv").exists()


def test_csv_is_written_of_records_that_are_there_too(made: Path) -> None:
    assert run(*DMIN, "--out", made, "--csv").exit_code == 0
    assert (made / "records" / "dmin.csv").exists()


def test_the_help_lists_every_experiment_and_every_parameter() -> None:
    outcome = run("--help")
    assert outcome.exit_code == 0
    words = " ".join(outcome.output.split())
    assert "robustmdp reproduce --quick" in words
    for name in NAMES:
        assert name in words
    words = " ".join(run("--parameters").output.split())
    for record in chosen_records().values():
        for field in options_of(record):
            assert f"--{field.replace('_', '-')} " in words


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'numba', 'numpy', 'scipy', 'plotly', 'matplotlib', 'pyarrow', 'rich', 'ray', 'joblib'}"
    code = (
        "import sys, robustmdp.app.commands as cli; cli.main(['--help'], standalone_mode=False); "
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.splitlines()[-1] == "[]"


# What it refuses.


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("convergnce",), ("experiment must be one of", "'convergnce'", "did you mean 'convergence'?")),
        (("dmin", "markovain"), ("did you mean 'markovian'?",)),
        (("connection", "--divergence", "chi3"), ("divergence", "'chi3'", "did you mean 'chi2'?")),
        (("connection", "--divergence", ""), ("divergence", "''")),
        (("equivalence", "--divergences", "kl,hellnger"), ("did you mean 'hellinger'?",)),
        (("dmin", "--stay", "1.5"), ("stay must lie in (0, 1): got 1.5",)),
        (("dmin", "--stay", "0.8,nan"), ("stay must lie in (0, 1): got nan",)),
        (("dmin", "--restart", "0"), ("restart must lie in (0, 1): got 0",)),
        (("dmin", "--discount", "1"), ("discount must lie in (0, 1): got 1",)),
        (("dmin", "--behaviours", "0,0.5"), ("behaviours must lie in (0, 1): got 0",)),
        (("convergence", "--seeds", "0"), ("seeds must be at least 1: got 0",)),
        (("convergence", "--seeds", "-3"), ("seeds must be at least 1: got -3",)),
        (("convergence", "--seeds", "two"), ("--seeds must be a whole number: got 'two'",)),
        (("convergence", "--seeds", "2.5"), ("--seeds must be a whole number: got '2.5'",)),
        (("convergence", "--seeds", "inf"), ("--seeds must be a whole number: got 'inf'",)),
        (("convergence", "--seeds", "1,2"), ("--seeds takes one value: got '1,2'",)),
        (("convergence", "--weights", ""), ("--weights", "''")),
        (("convergence", "--weights", "1,,2"), ("--weights", "''")),
        (("convergence", "--weights", "1,much"), ("--weights must be a number: got 'much'",)),
        (("convergence", "--weights", "0,1"), ("weights must lie in (0, inf): got 0",)),
        (("convergence", "--weights", "inf"), ("weights must lie in (0, inf): got inf",)),
        (("convergence", "--weights", "1,1", "--seeds", "1", "--rounds", "5"), ("weights",)),
        (("sample-efficiency", "--radius", "-1", "--seeds", "1", "--budgets", "2020,4040"), ("radius", "-1")),
        (("statistical", "--sizes", "0,100"), ("sizes must be at least 1: got 0",)),
        (("dmin", "--seeds", "3"), ("seeds", "dmin")),
        (("dmin", "chain-diagrams", "--inner-steps", "3"), ("inner", "dmin")),
        (("dmin", "--engine", "proceses"), ("did you mean 'processes'?",)),
        (("dmin", "--engine", "serial", "--workers", "2"), ("workers must be 1 for the engine 'serial': got 2",)),
        (("dmin", "--workers", "0"), ("workers must be at least 1: got 0",)),
        (("dmin", "--address", "here:1"), ("address must come with the engine 'ray'",)),
    ],
    ids=lambda thing: " ".join(thing) if isinstance(thing, tuple) else "",
)
def test_refusals(words: tuple[str, ...], parts: tuple[str, ...], tmp_path: Path) -> None:
    refused(run(*words, "--out", tmp_path / "new"), *parts)
    assert contents(tmp_path) == {}  # not even the folder


def test_an_unknown_option_is_wrong_usage(tmp_path: Path) -> None:
    outcome = run("dmin", "--sede", "3", "--out", tmp_path)
    assert outcome.exit_code == 2
    assert "--sede" in outcome.stderr


@pytest.mark.parametrize("below", ["", "sub", "sub/sub"])
def test_a_file_is_no_folder(below: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    refused(run(*DMIN, "--out", tmp_path / "file" / below), "output folder", str(tmp_path / "file"))
    assert contents(tmp_path) == {"file": b"mine"}


@pytest.mark.parametrize("name", ["report.html", "claims.csv", "records/dmin.parquet", "figures/dmin.png"])
def test_what_others_made_is_not_overwritten(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = contents(tmp_path)
    refused(run(*DMIN, "--out", tmp_path), str(tmp_path), name.split("/")[0])
    assert contents(tmp_path) == before


def test_files_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert run(*DMIN, "--out", tmp_path).exit_code == 0
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("mark", ['{"robustmdp": "0.0.9"}', "{}", "", "not json", '{"robustmdp": 3}'])
@pytest.mark.parametrize("more", [(), ("--no-resume",)])
def test_a_folder_of_another_version_is_refused(mark: str, more: tuple[str, ...], made: Path) -> None:
    (made / "robustmdp.json").write_text(mark)
    before = contents(made)
    version = ("0.0.9", rm.__version__) if "0.0.9" in mark else ()
    refused(run(*DMIN, *more, "--out", made), str(made), *version)
    assert contents(made) == before


def test_records_of_other_parameters_are_named(made: Path) -> None:
    before = contents(made)
    outcome = run(*DMIN, "--stay", "0.6", "--restart", "0.1", "--out", made)
    refused(outcome, "dmin.parquet", "other parameters", "stay", "restart", "--out")
    assert contents(made) == before


@pytest.mark.parametrize("engine", [("--engine", "serial"), ("--engine", "processes", "--workers", "1")])
def test_a_task_that_fails_names_its_parameters(engine: tuple[str, ...], tmp_path: Path) -> None:
    outcome = run("sample-efficiency", "--budgets", "50", "--seeds", "1", *engine, "--out", tmp_path)
    refused(outcome, "failed with", "method='algorithm-1'", "budget=50", "samples must suffice for one step")
    assert not (tmp_path / "report.html").exists()
    assert not (tmp_path / "records").exists()
