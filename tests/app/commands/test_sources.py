"""What can be studied: each kind of source becomes a page, and the program at its end repeats it as it stands."""

from __future__ import annotations

import contextlib
import html
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from app.commands.calls import record, run, transitions, write_log, write_parquet_log
from robustmdp.app.commands.sources import Source, parse_source

SECTIONS = [
    "The decision",
    "Where robustness changes the decision",
    "Cost and benefit of robustness",
    "When the world is not the model",
    "The problem",
    "The level",
    "What is certain, and what is not",
    "The same from Python",
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def program_of(page: str) -> str:
    found = re.search(r"<code>(.*?)</code>", page, re.DOTALL)
    assert found
    return html.unescape(found[1])


def executed(program: str) -> dict[str, Any]:
    """What the program leaves behind, run as it stands."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(program, "program", "exec"), names)
    for part in ("Solution", "Table", *(["Suggestion"] if "rm.suggest" in program else [])):
        assert part in printed.getvalue()
    return names


def analysed(*words: object) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """What `analyse` answers, the page it writes, and what its program leaves behind."""
    given = record("analyse", *words, "--out", "report.html")
    page = Path("report.html").read_text()
    assert re.findall(r"<h2>(.*?)</h2>", page) == ["Contents", *map(html.escape, SECTIONS)]
    return given, page, executed(program_of(page))


def assert_repeated(given: dict[str, Any], names: dict[str, Any]) -> None:
    """The program comes to the same advice, or to the same curve where nothing advises, by the same numbers."""
    if given["verdict"] == "no worlds":
        for name in ("nominal", "worst", "nominal_worst"):  # each is proved to within the tolerance of the solves
            column = names["curve"][name]
            error = 4e-6 * max(1.0, float(np.abs(column).max()))
            assert given["candidates"][name] == pytest.approx(column.tolist(), rel=1e-5, abs=error)
        assert "advice" not in names
        return
    assert given["reasons"] == list(names["advice"].reasons)
    assert given["ambiguity"] == repr(names["advice"].ambiguity)
    assert given["value"] == names["advice"].solution.value.tolist()


def test_a_ready_made_world() -> None:
    given, page, names = analysed("machine-replacement", "--divergence", "cr:3", "--initial", "age 2")
    assert_repeated(given, names)
    assert "machine-replacement: how robust should the decision be?" in page
    assert "<dt>start</dt><dd>age 2</dd>" in page
    assert names["mdp"] == rm.problems.machine_replacement()


@pytest.mark.parametrize("word", ["garnet:12x3x4", "chain", "inventory"])
def test_every_other_ready_made_world(word: str) -> None:
    given, _, names = analysed(word, "--discount", 0.8)
    assert_repeated(given, names)
    assert names["mdp"].discount == 0.8


@pytest.mark.parametrize(("word", "shape"), [("river-swim", (1, 6)), ("grid:8", (8, 8))])
def test_worlds_that_are_places(word: str, shape: tuple[int, int]) -> None:
    given, page, names = analysed(word)
    assert_repeated(given, names)
    rows, columns = shape
    assert f'style="--columns: {columns}"' in page
    (world,) = re.findall(r'<div class="cells".*?</div>', page.split("</section>")[1], re.DOTALL)[:1]
    assert world.count("<i ") == rows * columns


@pytest.mark.parametrize("extension", ["csv", "drn", "safetensors"])
def test_a_file(extension: str) -> None:
    file = rm.write(rm.problems.machine_replacement(), f"model.{extension}")
    given, page, names = analysed(file)
    assert_repeated(given, names)
    assert names["mdp"] == rm.problems.machine_replacement()
    assert f"<dt>from</dt><dd>model.{extension}</dd>" in page


def test_a_log_with_names_of_its_own() -> None:
    rows = transitions(rm.problems.machine_replacement(), 600)
    write_log(Path("visits.csv"), rows, ("s_t", "action", "reward", "next_state"))
    words = ("--discount", 0.8, "--confidence", 0.7, "--method", "asymptotic", "--column", "state=s_t")
    given, page, names = analysed("visits.csv", *words)
    assert_repeated(given, names)
    assert "confidence=0.7, method='asymptotic'" in program_of(page)
    simulated, _, _ = analysed("visits.csv", *words[:4], *words[6:])
    assert simulated["reasons"] != given["reasons"]  # other radii, other figures
    assert "<dd>visits.csv: 600 transitions, " in page
    assert "never seen" in page


def test_states_that_were_never_left_are_told_of() -> None:
    write_log(Path("log.csv"), [(0, 0, -3.0, 1), (0, 1, 1.0, 0), (0, 1, 1.0, 1), (0, 1, 1.0, 0)])
    source = parsed("log.csv")
    assert ("never left", "1 state: it is taken to stay and to earn the least reward, -3") in source.facts
    assert source.mdp.rewards.min() == -3.0


def test_parquet_is_read_as_csv_is() -> None:
    rows = transitions(rm.problems.machine_replacement(), 500)
    write_log(Path("visits.csv"), rows)
    write_parquet_log(Path("visits.parquet"), rows)
    sources = [parsed(name) for name in ("visits.csv", "visits.parquet")]
    assert sources[0].mdp == sources[1].mdp
    assert all(source.counts is not None for source in sources)
    assert sources[1].title == "visits.parquet"


@pytest.mark.parametrize("upper", ["VISITS.CSV", "Visits.Csv"])
def test_extensions_may_be_shouted(upper: str) -> None:
    write_log(Path(upper), transitions(rm.problems.machine_replacement(), 100))
    assert parsed(upper).counts is not None


def test_an_environment_with_other_parameters() -> None:
    given, page, names = analysed("gym:FrozenLake-v1", "--discount", 0.9, "--vary", "success_rate=0.3..0.9:4")
    assert_repeated(given, names)
    program = program_of(page)
    assert program.startswith("import numpy as np\nimport robustmdp as rm\n")
    assert "np.linspace(0.3, 0.9, 4)" in program
    assert names["held_out"].labels == ["success_rate=0.3", "success_rate=0.5", "success_rate=0.7", "success_rate=0.9"]
    assert "<dd>row 1, column 1 (S)</dd>" in page
    assert "4 worlds: FrozenLake-v1 with another success_rate" in page


def test_an_environment_that_leaves_nothing_to_chance() -> None:
    given, page, names = analysed("gym:CliffWalking-v1")
    assert_repeated(given, names)
    assert "The model leaves nothing to chance" in page
    assert "<dd>row 4, column 1 (S)</dd>" in page


def test_an_environment_with_many_first_states() -> None:
    given, page, names = analysed("gym:Taxi-v4", "--discount", 0.9)
    assert_repeated(given, names)
    assert "<dd>one of 300 states, equally likely</dd>" in page
    assert "initial = gymnasium.make('Taxi-v4').unwrapped.initial_state_distrib" in html.unescape(page)
    assert names["initial"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["csv", "drn"])
def test_held_out_files(kind: str) -> None:
    files = [
        rm.write(rm.problems.machine_replacement(repair_success=success), f"{number}.{kind}")
        for number, success in enumerate((0.05, 0.1, 0.15, 0.2))
    ]
    words = [word for file in files for word in ("--held-out", file)]
    given, page, names = analysed("machine-replacement", *words)
    assert_repeated(given, names)
    assert names["held_out"].size == 4
    assert "4 worlds: held out" in page


def test_outcomes_of_one_file_are_as_many_worlds() -> None:
    lines = ["idstatefrom,idaction,idoutcome,idstateto,probability,reward"]
    for number, chance in enumerate((0.9, 0.6, 0.3)):
        lines += [f"0,0,{number},0,{chance},1", f"0,0,{number},1,{1 - chance},1", f"0,1,{number},0,1,0.7"]
        lines += [f"1,{action},{number},{0 if action else 1},1,0" for action in (0, 1)]
    Path("all.csv").write_text("\n".join(lines) + "\n")
    rm.write(rm.read_outcomes("all.csv", 0.9)[0], "model.csv")
    given, page, names = analysed("model.csv", "--held-out", "all.csv")
    assert_repeated(given, names)
    assert names["held_out"].size == 3
    assert "rm.read_outcomes('all.csv', 0.9)" in html.unescape(page)


def test_policies_join_the_stress_test() -> None:
    rm.write(rm.solve(rm.problems.machine_replacement(), rm.Constrained(rm.KL(), 1.0)), "mine.csv")
    record("analyse", "machine-replacement", "--policy", "mine.csv", "--out", "report.html")
    assert '<th scope="row">mine.csv</th>' in Path("report.html").read_text()


def test_the_answer_in_words() -> None:
    outcome = run("analyse", "machine-replacement", "--out", "sub/folder/report.html")
    assert outcome.exit_code == 0
    lines = outcome.stdout.splitlines()
    assert lines[0] == "machine-replacement, discount 0.95"
    assert lines[1].startswith("No advice without data. A robust policy can raise the worst case by ")
    assert lines[-1] == "report   sub/folder/report.html"
    assert Path("sub/folder/report.html").exists()


# The grammar of --vary, and what becomes of words.


def parsed(word: str, **options: Any) -> Source:
    return parse_source(word, **{"discount": None, "initial": None, **options})


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        (("success_rate=0.4,0.8",), ["success_rate=0.4", "success_rate=0.8"]),
        (("success_rate=0.8..0.4:3",), ["success_rate=0.8", "success_rate=0.6", "success_rate=0.4"]),
        (("is_slippery=true,false",), ["is_slippery=True", "is_slippery=False"]),
        (("map_name=4x4",), ["map_name=4x4"]),
        (
            ("success_rate=0.5,1", "is_slippery=true"),
            ["success_rate=0.5, is_slippery=True", "success_rate=1, is_slippery=True"],
        ),
    ],
)
def test_vary(written: tuple[str, ...], labels: list[str]) -> None:
    source = parsed("gym:FrozenLake-v1", vary=written)
    assert source.held_out is not None
    assert source.held_out.labels == labels


def test_the_parameters_reach_the_environment() -> None:
    source = parsed("gym:FrozenLake-v1", vary=("success_rate=0.4,0.9",), discount=0.9)
    assert source.held_out is not None
    for model, rate in zip(source.held_out.models, (0.4, 0.9), strict=True):
        row = model.pair(0, 2)  # right
        chances = dict(zip(model.indices[model.indptr[row] : model.indptr[row + 1]].tolist(),
                           model.probabilities[model.indptr[row] : model.indptr[row + 1]], strict=True))  # fmt: skip
        assert chances[1] == pytest.approx(rate)


@pytest.mark.parametrize(("word", "state"), [("age 3", 3), ("3", 3), ("broken", 9)])
def test_states_by_name_or_number(word: str, state: int) -> None:
    assert parsed("machine-replacement", initial=word).initial == state


def test_a_name_that_is_a_number_comes_first() -> None:
    mdp = rm.MDP.from_rows([0, 1], [0, 0], [1, 0], [1, 1], [1, 0], 0.5, state_names=["1", "0"])
    file = rm.write(mdp, "swapped.csv")
    assert parsed(str(file), initial="1").initial == 0


def test_json_is_the_same_for_any_number_of_threads() -> None:
    words = ("analyse", "gym:FrozenLake-v1", "--out", "report.html", "--json", "--threads")
    pages = []
    answers = []
    for threads in (1, 2):
        answers.append(json.loads(run(*words, threads).stdout))
        pages.append(Path("report.html").read_bytes())
    assert answers[0] == answers[1]
    assert pages[0] == pages[1]
    assert np.isfinite(answers[0]["value"]).all()
