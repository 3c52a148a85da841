"""What commands write never replaces an input, a device or a file of another program, and what they print is text."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

import robustmdp as rm
from app.commands.calls import refused, run, write_log
from robustmdp.app.commands import doctor

ROWS = [(0, 0, 1.0, 1), (1, 0, 0.0, 0)] * 5
ESCAPE = "\x1b[31mred\x1b[2J\x07\u202e\x9b1m\n"


@pytest.fixture(name="here")
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model as table and as PRISM's files, a log, links to these, and a pipe."""
    monkeypatch.chdir(tmp_path)
    chain = rm.problems.chain()
    write_log(Path("log.csv"), ROWS)
    rm.write(chain, "model.csv")
    rm.write(chain, "chain.tra")
    rm.write(rm.solve(chain, rm.Nominal()), "policy.csv")
    Path("link.csv").symlink_to("log.csv")
    Path("null.csv").symlink_to("/dev/null")
    os.mkfifo("pipe.csv")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file() and not file.is_fifo()}


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("solve", "model.csv", "--out", "model.csv"), ("--out must be another file than the input: got model.csv",)),
        (("solve", "./model.csv", "--out", "model.csv"), ("--out must be another file", "got ./model.csv")),
        (("solve", "chain", "--policy", "policy.csv", "--out", "policy.csv"), ("--out", "input: got policy.csv")),
        (("estimate", "log.csv", "--out", "link.csv"), ("--out must be another file than the input: got log.csv",)),
        (("suggest", "log.csv", "--out", "log.csv"), ("--out must be another file than the input: got log.csv",)),
        (("stress", "chain", "--held-out", "model.csv", "--out", "model.csv"), ("--out must be another file",)),
        (("convert", "model.csv", "model.csv"), ("TARGET must be another file than the input: got model.csv",)),
        (("convert", "chain.tra", "chain.tra"), ("TARGET must be another file than the input: got chain.tra",)),
        (("convert", "./chain", "chain.tra"), ("TARGET must be another file than the input: got ./chain",)),
        (("learn", "--log", "log.csv", "--weight", "1", "--checkpoint", "log.csv"), ("--checkpoint must be another",)),
        (("solve", "chain", "--out", "null.csv"), ("--out must be a file: null.csv is a device",)),
        (("solve", "chain", "--out", "pipe.csv"), ("--out must be a file: pipe.csv is a pipe",)),
        (("convert", "chain", "/dev/null", "--format", "csv"), ("TARGET must be a file: /dev/null is a device",)),
        (("curve", "chain", "--out", "pipe.csv"), ("--out must be a file: pipe.csv is a pipe",)),
    ],
)
def test_inputs_pipes_and_devices_are_never_replaced(
    here: Path, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    before = contents(here)
    refused(run(*words), *parts)
    assert contents(here) == before


def test_companions_of_another_program_are_said_before_anything_is_read(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rm.problems, "chain", lambda: pytest.fail("too late"))
    (here / "new.lab").write_text("mine\n")
    refused(run("convert", "chain", "new.tra"), "new.lab must not be replaced: it is not as new.tra was written")
    assert (here / "new.lab").read_text() == "mine\n"


def test_an_earlier_output_is_replaced(here: Path) -> None:
    for _ in range(2):
        assert run("convert", "model.csv", "again.tra").exit_code == 0
        assert run("solve", "model.csv", "--out", "policy.csv").exit_code == 0
    assert rm.read(here / "again.tra") == rm.problems.chain()


@pytest.mark.parametrize("words", [("curve", "chain", "--weights", "1"), ("stress", "chain", "--worlds", "2")])
@pytest.mark.parametrize("end", ["csv", "parquet", "pq", "json"])
def test_tables_are_written_in_every_format_that_the_help_names(here: Path, words: tuple[str, ...], end: str) -> None:
    """JSON was promised and refused."""
    assert run(*words, "--out", f"table.{end}").exit_code == 0
    assert (here / f"table.{end}").stat().st_size > 100


@pytest.mark.parametrize(
    ("words", "package", "sentence"),
    [
        (("solve", "chain", "--out", "x.parquet"), "pyarrow", "must be installed to write x.parquet: pip install"),
        (("convert", "chain", "x.safetensors.zst"), "pyarrow", "must be installed to write x.safetensors.zst"),
        (("analyse", "chain", "--out", "x.html"), "plotly", "must be installed to write x.html: pip install"),
        (("analyse", "chain", "--out", "x.html"), "jinja2", "must be installed to write x.html: pip install"),
    ],
)
def test_what_must_be_installed_is_said_before_anything_is_computed(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], package: str, sentence: str
) -> None:
    monkeypatch.setattr(rm.problems, "chain", lambda: pytest.fail("too late"))
    monkeypatch.setitem(sys.modules, package, None)
    refused(run(*words), f"{package} {sentence}", "robustmdp[")


def test_doctor_names_the_smallest_extra_that_has_a_part() -> None:
    """By the package's own list: whoever misses one part should not install them all."""
    project = Path(__file__).parents[3] / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    for name in ("test", "docs", "lint", "bench"):
        del extras[name]
    for part in doctor._OPTIONAL:
        sizes = {name: len(parts) for name, parts in extras.items() if any(one.startswith(part) for one in parts)}
        wanted = f"'robustmdp[{min(sizes, key=sizes.__getitem__)}]'" if sizes else part
        assert doctor._package(part) == wanted


def named(names: list[str]) -> rm.MDP:
    return rm.problems.two_state(0.5, 0.9)._replace(state_names=tuple(names))


def test_names_cannot_command_the_terminal(tmp_path: Path) -> None:
    path = rm.write(named([ESCAPE, "calm"]), tmp_path / "model.safetensors")
    shown = r"\x1b[31mred\x1b[2J\x07\u202e\x9b1m\n"
    outcome = run("solve", path)
    assert outcome.exit_code == 0
    assert shown in outcome.stdout
    refusal = run("solve", path, "--policy", tmp_path / f"no{ESCAPE.strip()}.csv")
    assert refusal.exit_code == 1
    for text in (outcome.output, refusal.output, repr(rm.read(path)), str(rm.solve(rm.read(path), rm.Nominal()))):
        assert not set(text) & set(ESCAPE) - set("31mred[2J\n")


def test_names_in_tables_of_python_cannot_either() -> None:
    from robustmdp.table import Table

    assert r"\x1b[31mred\x1b[2J\x07\u202e\x9b1m\n" in str(Table.of(state=[ESCAPE, "calm"]))
