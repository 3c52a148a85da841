"""In a terminal: progress on stderr alone, windows that are too narrow, Ctrl-C at any moment."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import robustmdp as rm
from app.commands.calls import run
from robustmdp.app.commands.progress import Bar, Steps
from robustmdp.planning.run import Step

PROGRAM = "from robustmdp.app.commands import main; main()"

# Sends Ctrl-C to itself, when a solver has taken a step for the nth time or when progress is told for the nth time.
STOPPED = """
import os, signal, sys
from robustmdp.app.commands import main, progress
from robustmdp.planning import run

where, at = sys.argv.pop(1).split(":")
calls = 0

def stop(name):
    global calls
    calls += name == where
    if name == where and calls == int(at):
        os.kill(os.getpid(), signal.SIGINT)

def loop(solver, iterates, *rest, original=run._loop):
    def steps():
        yield next(iterates)
        stop("step")
        yield from iterates
    return original(solver, steps(), *rest)

def show(self, text, share=None, original=progress.Bar.show):
    original(self, text, share)
    stop("told")

run._loop, progress.Bar.show = loop, show
main()
"""


def python(code: str, *words: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)  # type: ignore[call-overload]


# Progress.


def on_a_terminal(*words: object) -> tuple[int, str, str]:
    """Exit code, stdout, and what a terminal at stderr sees."""
    own, other = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=other, text=True) as process:
        os.close(other)
        seen = b""
        while True:
            try:
                piece = os.read(own, 4096)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            seen += piece
        assert process.stdout is not None
        stdout = process.stdout.read()
    os.close(own)
    return process.returncode, stdout, seen.decode()


def test_progress_is_for_terminals_and_on_stderr() -> None:
    words = ("curve", "machine-replacement", "--weights", "1,2,3", "--json")
    code, stdout, seen = on_a_terminal(*words)
    assert code == 0
    assert re.search("Levels: 3 of 3", seen)
    assert json.loads(stdout)["weight"] == [3.0, 2.0, 1.0]
    code, quiet, seen = on_a_terminal(*words, "--quiet")
    assert (code, seen, quiet) == (0, "", stdout)


def test_the_share_of_a_solve_is_that_of_the_decades_of_its_error() -> None:
    """It stood at 0 % to the end."""
    shares: list[float | None] = []

    class Kept(Bar):
        def show(self, text: str, share: float | None = None) -> None:
            shares.append(share)

    solve = Steps(Kept(), 1e-6, None, str)
    for number, error in enumerate((np.inf, 1e2, 1.0, 1e-1, 1.0, 1e-2, 1e-7), 1):
        solve(Step(number, error, error, 1))
    assert shares[0] is None
    np.testing.assert_allclose([share or 0.0 for share in shares[1:]], [0, 2 / 8, 3 / 8, 3 / 8, 4 / 8, 1], atol=1e-12)
    shares.clear()
    backwards = Steps(Kept(), 1e-6, 4, str)
    for number in (1, 2, 4):
        backwards(Step(number, 1.0, 1e-12, 1))
    assert shares == [0.25, 0.5, 1.0]


@pytest.mark.parametrize(("solver", "least"), [("auto", 2), ("value-iteration", 3)])
def test_a_solve_shows_its_share(solver: str, least: int) -> None:
    code, _, seen = on_a_terminal("solve", "grid:100", "--weight", "1", "--solver", solver, "--tol", "1e-10")
    assert code == 0
    shares = [int(share) for share in re.findall(r"(\d+)%", seen)]
    assert len(set(shares)) >= least
    assert max(shares) > 30


def test_there_is_no_progress_in_a_pipe() -> None:
    outcome = python(PROGRAM, "stress", "chain", "--worlds", 3, "--json")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert json.loads(outcome.stdout)["worlds"] == [3, 1]


@pytest.mark.filterwarnings("default")
def test_warnings_are_sentences_and_quiet_silences_them(tmp_path: Path) -> None:
    words = ("convert", "chain", tmp_path / "bare.csv", "--no-meta")
    outcome = run(*words)
    assert outcome.exit_code == 0
    lost = "the discount, the names of states and the names of actions"
    assert outcome.stderr == f"Warning: bare.csv will come back without {lost}\n"
    assert run(*words, "--quiet").stderr == ""


# Windows.

TERMINAL = {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm"}
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
TABLES = [
    ("stress", "machine-replacement", "--radius", "0.1", "--worlds", "3"),
    ("curve", "machine-replacement", "--weights", "1,2"),
    ("solve", "machine-replacement", "--weight", "1"),
    ("problems",),
    ("doctor",),
]


@pytest.mark.parametrize("words", TABLES, ids=lambda words: words[0])
@pytest.mark.parametrize("columns", [120, 80, 60, 44])
def test_nothing_is_cut_in_a_narrow_window(words: tuple[str, ...], columns: int) -> None:
    """Numbers became "-38.…"."""
    outcome = run(*words, COLUMNS=str(columns), **TERMINAL)
    assert outcome.exit_code == 0
    shown = ESCAPES.sub("", outcome.stdout)
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= columns
    numbers = re.findall(r"-?\d+\.\d+", run(*words).stdout) if words[0] not in ("problems", "doctor") else []
    assert set(numbers) <= set(re.findall(r"-?\d+\.\d+", shown))


def test_a_paragraph_per_row_where_a_table_has_no_room() -> None:
    outcome = run("curve", "chain", "--weights", "1", COLUMNS="30", **TERMINAL)
    lines = [ESCAPES.sub("", line).rstrip() for line in outcome.stdout.splitlines()]
    at = lines.index("weight: 1")
    assert lines[at + 1].split() == ["nominal", "7.234"]
    assert "┃" not in outcome.stdout


def test_pipes_have_no_width() -> None:
    """A table in a file was cut at 80 characters."""
    long = "a-very-long-name-" * 8
    folder = Path.cwd()
    outcome = run("solve", f"{folder}/{long}.csv")
    assert long in outcome.stderr
    wide = run("stress", "machine-replacement", "--worlds", 2, COLUMNS="40")
    assert "…" not in wide.stdout
    assert max(map(len, wide.stdout.splitlines())) > 60


def test_markup_in_names_is_text(tmp_path: Path) -> None:
    mdp = rm.MDP.from_rows([0, 1], [0, 0], [1, 0], [1, 1], [1, 0], 0.5, state_names=["[bold]x[/]", "[/no]"])
    outcome = run("solve", rm.write(mdp, tmp_path / "odd.csv"))
    assert outcome.exit_code == 0
    assert "[bold]x[/]" in outcome.stdout
    assert "[/no]" in outcome.stdout


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -c '{PROGRAM}' solve grid:20 --rows 400 | head -1"
    outcome = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300)
    assert outcome.stdout.startswith("grid:20")
    assert "Traceback" not in outcome.stderr


# Ctrl-C.

WORDS = {
    "stress": ("stress", "machine-replacement", "--worlds", "20"),
    "suggest": ("suggest", "gym:FrozenLake-v1", "--vary", "success_rate=0.4..0.8:5"),
    "analyse": ("analyse", "machine-replacement"),
}
OUT = {"stress": "values.csv", "analyse": "report.html"}


@pytest.mark.parametrize("moment", ["step:2", "told:2"])
@pytest.mark.parametrize("command", WORDS)
def test_nothing_is_left_of_a_study_that_was_stopped(command: str, moment: str, tmp_path: Path) -> None:
    """A solver answers Ctrl-C with what it has; a study went on with that, as if nothing had happened."""
    out = ("--out", OUT[command]) if command in OUT else ()
    outcome = python(STOPPED, moment, *WORDS[command], *out, "--json", cwd=tmp_path)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (130, "", "Interrupted.\n")
    assert list(tmp_path.iterdir()) == []


def test_a_curve_keeps_the_levels_that_are_solved(tmp_path: Path) -> None:
    words = ("curve", "machine-replacement", "--out", "curve.csv", "--json")
    outcome = python(STOPPED, "told:3", *words, cwd=tmp_path)
    assert outcome.returncode == 130
    assert outcome.stderr == "Interrupted: the 3 levels that were solved are kept.\n"
    given, whole = json.loads(outcome.stdout), rm.robustness_curve(rm.problems.machine_replacement(), rm.KL())
    assert given["interrupted"] is True
    assert given["worst"] == whole["worst"][:3].tolist()
    assert len((tmp_path / "curve.csv").read_text().splitlines()) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["curve.csv"]


def test_an_interrupted_solve_shows_its_bounds_and_writes_them_with_its_status(tmp_path: Path) -> None:
    words = ("solve", "grid:20", "--radius", "0.1", "--out", "policy.csv", "--json")
    outcome = python(STOPPED, "step:1", *words, cwd=tmp_path)
    assert outcome.returncode == 130
    assert "Interrupted" in outcome.stderr
    assert "also in policy.csv" in outcome.stderr
    given = json.loads(outcome.stdout)
    assert given["status"] == "interrupted"
    exact = rm.solve(rm.problems.grid_world(20), rm.Constrained(rm.ChiSquare(), 0.1))
    assert all(low <= high for low, high in zip(given["lower"], exact.upper, strict=True))
    rows = list(csv.DictReader((tmp_path / "policy.csv").read_text().splitlines()))
    assert {row["status"] for row in rows} == {"interrupted"}
    assert [float(row["lower"]) for row in rows] == given["lower"]
    assert np.array_equal(rm.read_policy(tmp_path / "policy.csv", rm.problems.grid_world(20)), given["policy"])


def test_an_interrupted_learner_writes_what_it_learned_with_its_status(tmp_path: Path) -> None:
    """It showed the result and wrote nothing."""
    words = ("learn", "garnet:500x10x10", "--weight", "1", "--steps", "100000", "--out", "policy.csv", "--json")
    outcome = python(STOPPED, "told:2", *words, cwd=tmp_path)
    assert outcome.returncode == 130, outcome.stderr
    assert outcome.stderr == "Interrupted: what was learned so far is shown and written to policy.csv.\n"
    given = json.loads(outcome.stdout)
    assert given["status"] == "interrupted"
    assert given["steps"] < 100_000
    rows = list(csv.DictReader((tmp_path / "policy.csv").read_text().splitlines()))
    assert {row["status"] for row in rows} == {"interrupted"}
    assert [float(row["value"]) for row in rows] == given["value"]


def test_the_handler_is_given_back() -> None:
    code = (
        "import signal; from robustmdp.app.commands.progress import Bar\n"
        "with Bar(): assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "with Bar(): assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN\n"
        "print('as it was')"
    )
    assert python(code).stdout == "as it was\n"
