"""Mistakes get one sentence, with the way out: typos, wrong files, places that cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

import robustmdp as rm
from app.commands.calls import refused, run, write_log

ROWS = [(0, 0, 1.0, 1), (1, 0, 0.0, 0), (0, 1, 1.0, 1), (1, 1, 0.0, 0)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one of each: log, model, nearly a log, nothing."""
    monkeypatch.chdir(tmp_path)
    write_log(Path("log.csv"), ROWS)
    write_log(Path("typo.csv"), ROWS, ("stat", "action", "reward", "next_state"))
    write_log(Path("done.csv"), [(*row, 0) for row in ROWS], ("state", "action", "reward", "next_state", "done"))
    rm.write(rm.problems.chain(), "model.csv")
    rm.write(rm.problems.chain(), "model.parquet")
    Path("bare.csv").write_text(Path("model.csv").read_text())
    Path("empty.csv").touch()
    Path("header.csv").write_text("state,action,reward,next_state\n")
    Path("bad.parquet").write_bytes(b"PAR1 no parquet")
    Path("folder.csv").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("suggest", "chian"), ("'chian'", "did you mean 'chain'?")),
        (("curve", "machine-replacment"), ("did you mean 'machine-replacement'?",)),
        (("curve", "chain", "--divergence", "chi3"), ("did you mean 'chi2'?",)),
        (("analyse", "chain", "--divergence", "hellnger"), ("did you mean 'hellinger'?",)),
        (("suggest", "chain", "--initial", "s12"), ("--initial must be one of s1, s2", "did you mean 's")),
        (("suggest", "chain", "--initial", "10"), ("initial must be a state in 0..9: got 10",)),
        (("match", "machine-replacement", "--weight", "1", "--initial", "brokn"), ("did you mean 'broken'?",)),
        (
            ("match", "gym:FrozenLake-v1", "--weight", "1", "--initial", "S"),
            ("--initial must be a number: this model has no names, got 'S'",),
        ),
        (("match", "chain"), ("give --weight to get its radius, or --radius to get its weight",)),
        (("estimate", "log.csv", "--smoothing", "haf"), ("did you mean 'half'?",)),
        (("estimate", "log.csv", "--method", "simulatd"), ("did you mean 'simulated'?",)),
        (("estimate", "log.csv", "--divergence", "tv", "--method", "simulated"), ("must be 'finite-sample'",)),
        (("estimate", "log.csv", "--confidence", "1"), ("confidence must lie between 0 and 1: got 1",)),
        (("convert", "chain", "x.dat", "--format", "parqet"), ("did you mean 'parquet'?",)),
        (("convert", "model.csv", "x.drn", "--from", "cvs"), ("did you mean 'csv'?",)),
        (("solve", "chain", "--policy", "log.csv"), ("log.csv",)),
        (("curve", "chain", "--weights", "1,x"), ("--weights must be numbers with commas between them: got '1,x'",)),
        (("curve", "chain", "--radii", ""), ("--radii must be numbers",)),
        (("curve", "chain", "--radii", "-1"), ("radii must be numbers in [0, inf]",)),
        (("curve", "chain", "--weights", "1", "--radii", "1"), ("give --weights or --radii, not both",)),
        (("stress", "chain", "--within", "-1"), ("radius must be at least 0: got -1",)),
        (("stress", "chain", "--worlds", "0"), ("must be at least 1: got 0",)),
        (("suggest", "chain", "--loss", "2"), ("loss must lie in [0, 1): got 2",)),
        (("suggest", "chain", "--vary", "stay=0.1,0.2"), ("--vary must come with a gym: world: got 'chain'",)),
        (("suggest", "gym:FrozenLake-v1", "--vary", "success_rat=0.5"), ("did you mean 'success_rate'?",)),
        (("suggest", "gym:FrozenLake-v1", "--vary", "is_slippery=1", "--vary", "is_slippery=0"), ("parameter once",)),
        (("suggest", "gym:FrozenLake-v1", "--vary", "success_rate"), ("NAME=A,B,... or NAME=A..B:COUNT",)),
        (("suggest", "gym:FrozenLake-v1", "--vary", "success_rate="), ("NAME=A,B,... or NAME=A..B:COUNT",)),
        (("suggest", "gym:FrozenLake-v1", "--vary", "success_rate=0.4..0.9"), ("NAME=A,B,... or NAME=A..B:COUNT",)),
        (("suggest", "gym:FrozenLake-v1", "--vary", "success_rate=a..b:3"), ("NAME=A,B,... or NAME=A..B:COUNT",)),
        (("suggest", "gym:FrozenLake-v1", "--vary", "success_rate=0.4..0.9:1"), ("must lie in 2..10000: got 1",)),
        (
            ("suggest", "gym:FrozenLake-v1", "--vary", "map_name=8x8,4x4"),
            ("map_name=8x8 has 64 and 4",),
        ),
        (("suggest", "gym:FrozenLake-v1", "--vary", "success_rate=0.4", "--held-out", "model.csv"), ("not both",)),
        (("solve", "garnet:1000000x1000x1000"), ("there is not enough memory",)),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("here")
def test_what_is_typed(words: tuple[str, ...], parts: tuple[str, ...]) -> None:
    refused(run(*words), *parts)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("analyze", "chain"), "did you mean 'analyse'?"),
        (("sugest", "chain"), "did you mean 'suggest'?"),
        (("suggest", "chain", "--divergnce", "kl"), "--divergence"),
        (("analyse", "chain", "--outt", "x.html"), "--out"),
        (("solve", "chain", "--rows", "-1"), "--rows"),
        (("completion", "tcsh"), "'fish'"),
        (("convert", "chain"), "TARGET"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_two(words: tuple[str, ...], hint: str) -> None:
    refused(run(*words), hint, code=2)


@pytest.mark.parametrize("command", ["analyse", "solve", "suggest", "curve", "stress"])
@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("nowhere.csv", "there is no"),
        ("nowhere.drn", "there is no"),
        ("folder.csv", "folder.csv is a folder"),
        (".", ". is a folder"),
        ("empty.csv", "empty"),
        ("header.csv", "header.csv must"),
        ("bad.parquet", "bad.parquet must be a Parquet file"),
        ("model.foo", "a model must end in .csv"),
    ],
)
@pytest.mark.usefixtures("here")
def test_problems_that_are_no_files(command: str, file: str, sentence: str) -> None:
    refused(run(command, file, "--discount", 0.9), sentence)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("solve", "log.csv"), "log.csv must be a model, not a log: make one of it with robustmdp estimate log.csv"),
        (("match", "log.csv", "--weight", "1"), "must be a model, not a log"),
        (("convert", "log.csv", "x.drn"), "must be a model, not a log"),
        (("suggest", "chain", "--held-out", "log.csv"), "log.csv must be a model, not a log: make one of it with"),
        (("estimate", "model.csv"), "model.csv must be a log, not a model: see robustmdp solve model.csv"),
        (("estimate", "model.parquet"), "must be a log, not a model"),
        (("learn", "--log", "model.csv"), "must be a log, not a model"),
        (("suggest", "log.csv", "--held-out", "model.csv"), "a log is its own evidence"),
        (("suggest", "chain", "--held-out", "nowhere.csv"), "there is no file nowhere.csv"),
        (("solve", "modle.csv"), "; did you mean 'model.csv'?"),
        (("solve", "model"), "; did you mean 'model.csv'?"),
        (("solve", "bare.csv"), "discount must be given: bare.csv holds none; give one as in --discount 0.95"),
        (("suggest", "river-swim", "--held-out", "model.csv"), "6 states and 2 actions: model.csv has 10 and 2"),
        (
            ("stress", "machine-replacement", "--held-out", "model.csv"),
            "and 3 actions: model.csv has 10 and 2",
        ),
        (("suggest", "chain", "--held-out", "model.csv"), "there must be two worlds or more"),
    ],
    ids=lambda thing: " ".join(thing) if isinstance(thing, tuple) else "",
)
@pytest.mark.usefixtures("here")
def test_models_and_logs_are_not_confused(words: tuple[str, ...], sentence: str) -> None:
    refused(run(*words), sentence)


@pytest.mark.usefixtures("here")
def test_a_log_with_the_probabilities_of_its_policy_is_no_model() -> None:
    """It was refused as a model, which has a column of this name as well."""
    rows = [(*row, 0.5, 0) for row in ROWS]
    write_log(Path("logged.csv"), rows, ("state", "action", "reward", "next_state", "probability", "terminated"))
    assert run("estimate", "logged.csv").exit_code == 0
    assert run("curve", "logged.csv", "--weights", "1").exit_code == 0
    refused(run("solve", "logged.csv"), "logged.csv must be a model, not a log")


# Logs with other names of columns.


@pytest.mark.parametrize("command", ["analyse", "suggest"])
@pytest.mark.usefixtures("here")
def test_columns_are_named_by_options_not_by_arguments(command: str) -> None:
    """The library's hint is a Python argument, which nobody can type in a shell."""
    refused(run(command, "typo.csv"), "must have a column 'state'", "is it --column state=stat?")
    refused(run(command, "done.csv"), "--column must say what 'done'", "terminated=done", "terminated= to leave it")


@pytest.mark.parametrize(
    "command", [("estimate",), ("curve", "--weights", "1"), ("learn", "--weight", "1", "--log")], ids=" ".join
)
@pytest.mark.usefixtures("here")
def test_columns_may_have_other_names(command: tuple[str, ...]) -> None:
    assert run(*command, "typo.csv", "--column", "state=stat").exit_code == 0
    for meaning in ("terminated=done", "terminated="):
        assert run(*command, "done.csv", "--column", meaning).exit_code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("log.csv", "--column", "state"), "--column must be NAME=OWN, as in terminated=done: got 'state'"),
        (("log.csv", "--column", "=done"), "--column must be NAME=OWN"),
        (("log.csv", "--column", "stat=done"), "a key of --column must be one of"),
        (("log.csv", "--column", "state=stae"), "did you mean 'state'?"),
        (("chain", "--column", "state=s"), "--column must come with a log: got 'chain'"),
    ],
)
@pytest.mark.usefixtures("here")
def test_columns_that_are_none(words: tuple[str, ...], sentence: str) -> None:
    refused(run("suggest", *words), sentence)


# Where results go.


COMMANDS = {
    "analyse": ("report.html", ("analyse", "garnet:2000x10x10")),
    "solve": ("policy.csv", ("solve", "garnet:2000x10x10", "--radius", "0.1")),
    "curve": ("curve.csv", ("curve", "garnet:2000x10x10")),
    "stress": ("values.csv", ("stress", "garnet:2000x10x10")),
    "estimate": ("model.csv", ("estimate", "log.csv")),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("here")
def test_what_cannot_be_written_is_said_before_anything_is_computed(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def computed(*arguments: object, **options: object) -> None:
        raise AssertionError("too late")

    monkeypatch.setattr(rm.problems, "garnet", computed)
    monkeypatch.setattr("robustmdp.io.logs.read_log", computed)
    name, words = COMMANDS[command]
    refused(run(*words, "--out", f"log.csv/{name}"), "--out must be a file that can be written", "log.csv")
    refused(run(*words, "--out", f"/proc/none/{name}"), "--out must be a file that can be written: /proc")
    refused(run(*words, "--out", "folder.csv"), "folder.csv is a folder")
    refused(run(*words, "--out", "x.txt"), "must end in", "x.txt")


@pytest.mark.usefixtures("here")
def test_convert_looks_at_its_target_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rm.problems, "chain", lambda: pytest.fail("too late"))
    refused(run("convert", "chain", "log.csv/x.drn"), "TARGET must be a file that can be written")
    refused(run("convert", "chain", "x.txt"), "a model must end in")


def test_the_nearest_names_are_told_of_a_thousand(tmp_path: Path) -> None:
    """All of them would fill the screen."""
    mdp = rm.problems.garnet(1000, 2, 3, 0.9, seed=0)
    named = rm.MDP.from_rows(
        *(list(column) for column in zip(*_rows(mdp), strict=True)),
        0.9,
        state_names=[f"bay {i:03}" for i in range(1000)],
    )
    file = rm.write(named, tmp_path / "named.parquet")
    outcome = run("suggest", file, "--initial", "bay 0031")
    refused(outcome, "did you mean 'bay 0")
    assert len(outcome.stderr) < 500


def _rows(mdp: rm.MDP) -> list[tuple[int, int, int, float, float]]:
    return [
        (int(mdp.states[pair]), int(mdp.actions[pair]), int(mdp.indices[k]), float(mdp.probabilities[k]), 0.0)
        for pair in range(mdp.n_pairs)
        for k in range(mdp.indptr[pair], mdp.indptr[pair + 1])
    ]


def test_a_folder_named_as_a_world_does_not_hide_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chain").mkdir()
    assert run("solve", "chain", "--rows", 1).exit_code == 0


def test_a_divergence_without_a_level() -> None:
    """It was left out without a word, and the model was taken as true."""
    sentence = "--divergence must come with --weight or --radius: without them the model is taken as true"
    refused(run("solve", "chain", "--divergence", "kl"), sentence)


@pytest.mark.parametrize("words", [("solve", "chain"), ("reach", "river-swim", "--goal", "5")], ids=lambda w: w[0])
def test_full_without_json(words: tuple[str, ...]) -> None:
    """It did nothing, without a word."""
    refused(run(*words, "--full"), "--full must come with --json: it adds Q")
