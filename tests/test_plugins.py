"""Entry points: a package on the path adds a divergence, a set, a format and a problem; broken ones are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import robustmdp as rm
from app.commands.calls import record, refused, run
from robustmdp.divergences import divergence_named

SOURCE = '''
import json
from dataclasses import dataclass

import numpy as np
import robustmdp as rm

halved = rm.Divergence("half chi-square", lambda s: np.maximum(s + 1, 0) ** 2 / 2 - 0.5, lambda s: np.maximum(s + 1, 0))


@dataclass(frozen=True)
class Hedge:
    share: float

    @property
    def level(self):
        return self.share

    def worst_case(self, p, z, level):
        lowest = z == z.min()
        q = (1 - level) * p + level * np.where(lowest, p, 0) / p[lowest].sum()
        return q @ z, q, q @ z - 1e-15 * len(z) * abs(z).max()


def coin(discount=0.5):
    return rm.MDP.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [1.0, 0.0], discount)


class Lines:
    """One transition per line."""

    @staticmethod
    def read(path):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        discount = rows.pop(0)
        return rm.MDP.from_rows(*np.array(rows).T, discount)

    @staticmethod
    def write(mdp, path):
        owner = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.indptr))
        columns = mdp.states[owner], mdp.actions[owner], mdp.indices, mdp.probabilities, mdp.rewards[owner]
        rows = zip(*(column.tolist() for column in columns))
        path.write_text("\\n".join(map(json.dumps, [mdp.discount, *rows])))


def broken(level=None, discount=None):
    raise KeyError("nothing here")


number = 3
'''
POINTS = """
[robustmdp.divergences]
halved = plugged:halved
absent = plugged_elsewhere:thing
three = plugged:number

[robustmdp.sets]
hedge = plugged:Hedge
broken = plugged:broken
coin = plugged:coin

[robustmdp.problems]
coin = plugged:coin
broken = plugged:broken
halved = plugged:halved
chain = plugged:coin

[robustmdp.formats]
jsonl = plugged:Lines
three = plugged:number
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package without installation, found by its metadata."""
    add_package(tmp_path, "plugged-rows", POINTS)
    (tmp_path / "plugged.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "plugged", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def add_package(folder: Path, name: str, points: str) -> None:
    info = folder / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(points)


def test_a_divergence() -> None:
    divergence = divergence_named("halved")
    rm.testing.check_divergence(divergence, f=lambda t: 0.5 * (t - 1) ** 2)
    mine = record("solve", "inventory", "--divergence", "Halved", "--weight", "2")
    known = record("solve", "inventory", "--divergence", "cr:2", "--weight", "2")
    assert np.abs(np.subtract(mine["value"], known["value"])).max() <= mine["error_bound"] + known["error_bound"]


def test_a_set() -> None:
    mine = record("solve", "inventory", "--set", "hedge", "--level", "0.1")
    known = record("solve", "inventory", "--set", "contamination", "--share", "0.1")
    assert np.abs(np.subtract(mine["value"], known["value"])).max() <= mine["error_bound"] + known["error_bound"]
    refused(run("solve", "inventory", "--set", "hedge"), "--set hedge must come with --level, as in --level 0.1")
    refused(run("curve", "inventory", "--set", "hedge"), "--set hedge must come with --levels")
    assert record("curve", "inventory", "--set", "hedge", "--levels", "0.1,0.2")["level"] == [0.1, 0.2]


def test_a_problem() -> None:
    assert record("solve", "coin")["value"][0] == pytest.approx(4 / 3, abs=1e-7)
    assert record("solve", "coin", "--discount", "0.8")["value"][0] == pytest.approx(1 / 0.6, abs=1e-7)
    assert record("problems")["problems"]["coin"] == "of a package"
    assert run("solve", "chain").stdout == run("solve", "chain").stdout != run("solve", "coin").stdout


def test_a_format(package: Path) -> None:
    garnet = rm.problems.garnet(20, 3, 4, 0.9, seed=0)
    file = rm.write(garnet, package / "garnet.jsonl")
    assert rm.read(file) == garnet
    assert rm.read(file, 0.5).discount == 0.5
    assert rm.read(rm.write(garnet, package / "rows", format="jsonl"), format="jsonl") == garnet
    assert record("convert", file, package / "garnet.csv")["states"] == 20
    assert record("problems")["formats"]["jsonl"] == [".jsonl"]
    (package / "bad.jsonl").write_text("[1")
    message = "format 'jsonl' of the package plugged-rows 1.2 must read an MDP: got JSONDecodeError: "
    with pytest.raises(ValueError, match=message):
        rm.read(package / "bad.jsonl")
    assert not (package / "garnet.jsonl.meta.json").exists()


def test_a_report_s_program_imports_the_package(package: Path) -> None:
    pytest.importorskip("plotly")
    page = package / "report.html"
    for words in (("coin", "--set", "hedge", "--levels", "0.1,0.2"), ("coin", "--divergence", "halved")):
        outcome = run("analyse", *words, "--out", page, "--quiet")
        assert outcome.exit_code == 0, outcome.output
        text = page.read_text()
        assert "plugged.coin" in text
        assert ("plugged.Hedge" if "hedge" in words else "plugged.halved") in text
        assert "yours" not in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("solve", "chain", "--divergence", "absent", "--weight", "1"),
            "divergence 'absent' of the package plugged-rows 1.2 must be a divergence, rm.Divergence(...): "
            "got ModuleNotFoundError: No module named 'plugged_elsewhere'",
        ),
        (
            ("solve", "chain", "--divergence", "three", "--weight", "1"),
            "divergence 'three' of the package plugged-rows 1.2 must be a divergence, rm.Divergence(...): got int",
        ),
        (
            ("solve", "chain", "--set", "broken", "--level", "1"),
            "set 'broken' of the package plugged-rows 1.2 must return a set: got KeyError: 'nothing here'",
        ),
        (("solve", "chain", "--set", "coin", "--level", "0.5"), "must return a set: got "),
        (("solve", "broken"), "problem 'broken' of the package plugged-rows 1.2 must return an MDP: got KeyError"),
        (("solve", "halved"), "problem 'halved' of the package plugged-rows 1.2 must be a function, to return an MDP"),
        (("solve", "coyn"), "did you mean 'coin'?"),
        (("solve", "chain", "--set", "hegde", "--level", "1"), "did you mean 'hedge'?"),
        (("solve", "chain", "--divergence", "halvd", "--weight", "1"), "did you mean 'halved'?"),
        (
            ("convert", "model.csv", "model.three"),
            "format 'three' of the package plugged-rows 1.2 must have read(path)",
        ),
        (("convert", "model.csv", "model.four"), ".safetensors, .jsonl, .three, or say its format"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(words: tuple[str, ...], sentence: str, package: Path) -> None:
    rm.write(rm.problems.chain(), package / "model.csv")
    refused(run(*words), sentence)


def test_two_packages_must_not_add_the_same_name(package: Path) -> None:
    add_package(package, "other", "[robustmdp.problems]\ncoin = plugged:coin\n")
    refused(run("solve", "coin"), "problem 'coin' must come from one package: other 1.2 and plugged-rows 1.2 add it")


def test_nothing_is_loaded_before_it_is_asked_for(package: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(package)!r})\n"
        "import robustmdp as rm\n"
        "from robustmdp.divergences import divergence_named\n"
        "from robustmdp.io import formats\n"
        "divergence_named('kl'); rm.problems.chain(); assert 'jsonl' in formats()\n"
        "assert 'plugged' not in sys.modules\n"
        "divergence_named('halved')\n"
        "assert 'plugged' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
