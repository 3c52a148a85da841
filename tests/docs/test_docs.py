"""The pages say what is so: code and commands run, links lead somewhere, every public name is described."""

from __future__ import annotations

import doctest
import math
import re
import shlex
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import robustmdp as rm
from app.study.reading import headings, sections_html
from robustmdp.app.commands import main
from robustmdp.io.tables import write_table
from robustmdp.table import Table

from . import pages

each_page = pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)
COMMAND_PAGES = [page for page in sorted((pages.DOCS / "cli").glob("*.md")) if page.stem != "index"]
each_command_page = pytest.mark.parametrize("page", COMMAND_PAGES, ids=pages.name_of)

# Commands that begin like this are parsed and not run.
SLOW = {
    "robustmdp reproduce": "a minute at least; tests/paper and tests/app/commands run it small",
    "robustmdp doctor --address": "of a cluster; tests/app/commands ask one",
    "robustmdp solve model.safetensors --engine ray": "on a cluster; tests/app/commands use one",
}

COMMANDS = [
    pytest.param(page, found, id=f"{pages.name_of(page)}: {found[0].words}")
    for page in pages.PAGES
    for _, text in pages.blocks(page)
    if (found := pages.commands(text))
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that pages speak of: a log, which is a walk along the paper's chain, models and a policy."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("files")
    log = walk(rm.problems.chain(restart=0.5), 5000)
    for name in ("visits.csv", "visits.parquet"):
        write_table(log, folder / name)
    machine = rm.problems.machine_replacement()
    for name in ("model.csv", "model.parquet"):
        rm.write(machine, folder / name)
    for number, success in enumerate((0.5, 0.6, 0.7, 0.8), 1):
        rm.write(rm.problems.machine_replacement(repair_success=success), folder / f"plant{number}.csv")
    rm.write(rm.problems.chain(restart=0.5), folder / "chain.csv")
    rm.write(rm.solve(machine, rm.Nominal()), folder / "policy.csv")
    return folder


def walk(world: rm.MDP, steps: int) -> Table:
    """A log of random actions."""
    rng, state, rows = np.random.default_rng(0), 0, []
    for _ in range(steps):
        action = int(rng.integers(world.n_actions))
        reward, following, _ = world.sample(state, action, rng)
        rows.append((state, action, reward, following))
        state = following
    columns = map(np.array, zip(*rows, strict=True))
    return Table(dict(zip(("state", "action", "reward", "next_state"), columns, strict=True)))


@each_page
def test_python_is_executed(page: Path) -> None:
    """A block of Python that is no doctest would be believed and never run."""
    for language, text in pages.blocks(page):
        if language in ("python", "pycon", "py"):
            assert text.startswith(">>> "), f"no doctest: {text.splitlines()[0]}"
            assert text.endswith("\n\n"), f"an empty line must end the output before the fence: {text.splitlines()[-1]}"
        else:
            assert not re.search(r"^(>>> |import |from \w+ import )", text, re.MULTILINE), f"not marked pycon: {text}"


@pytest.mark.filterwarnings("ignore:.*will come back without:UserWarning")  # --no-meta says what it loses
@pytest.mark.parametrize(("page", "found"), COMMANDS)
def test_commands_run(
    page: Path, found: list[pages.Command], files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of one block, one after the other, in a folder with the files that the page's Python writes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for file in files.iterdir():
        shutil.copy(file, tmp_path / file.name)  # a link would be written through
    if any(language == "pycon" and "open(" in text for language, text in pages.blocks(page)):
        run_python(page)
    for command in found:
        name, *words = shlex.split(command.words)[1:]
        if command.words.startswith(tuple(SLOW)):
            main.commands[name].make_context(name, words)
            continue
        outcome = CliRunner().invoke(main, [name, *words])
        assert outcome.exit_code == 0, outcome.output
        if command.output:
            assert_same(command.output, outcome.output)


def run_python(page: Path) -> None:
    """All examples of a page; that they print what it says is checked as doctests."""
    names: dict[str, object] = {}
    for example in doctest.DocTestParser().get_examples(page.read_text()):
        exec(compile(example.source, str(page), "single"), names)


def assert_same(said: str, printed: str) -> None:
    """Word by word; numbers to three digits, since the last ones and the smallest errors are a machine's own."""
    wanted, got = said.split(), printed.split()
    assert len(wanted) == len(got), printed
    for one, other in zip(wanted, got, strict=True):
        assert one == other or math.isclose(number(one), number(other), rel_tol=1e-3, abs_tol=1e-5), (one, other)


def number(word: str) -> float:
    try:
        return float(word.replace(",", "").rstrip(".;"))
    except ValueError:
        return math.nan


def test_slow_commands_are_checked_for_their_options() -> None:
    with pytest.raises(click.NoSuchOption):
        main.commands["reproduce"].make_context("reproduce", ["--nothing"])


def test_every_command_has_a_page() -> None:
    assert {page.stem for page in COMMAND_PAGES} == set(main.commands)


@each_command_page
def test_a_command_s_page_names_its_options(page: Path) -> None:
    rows = [line.split("|")[1] for line in page.read_text().splitlines() if line.startswith("| `--")]
    named = [option for cell in rows for option in re.findall(r"--[a-z-]+", cell)]
    assert len(named) == len(set(named))
    assert set(named) == set(options(main.commands[page.stem]))


def options(command: click.Command) -> Iterator[str]:
    for parameter in command.get_params(click.Context(command)):
        if isinstance(parameter, click.Option) and "--help" not in parameter.opts:
            yield from (*parameter.opts, *parameter.secondary_opts)


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in pages.links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), link
        if page.is_relative_to(pages.DOCS):
            assert target.is_relative_to(pages.DOCS), f"the site has no {link}"
        if anchor:
            assert anchor in pages.anchors(target), link


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"^ +- .+: (\S+\.md)$", (pages.ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(page.relative_to(pages.DOCS).as_posix() for page in pages.DOCS.rglob("*.md"))


def test_every_example_is_described() -> None:
    named = re.findall(r"^\| `(\w+\.py)` \|", (pages.DOCS / "examples.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(path.name for path in (pages.ROOT / "examples").glob("*.py"))


def test_every_section_of_a_report_is_explained() -> None:
    shown = headings(sections_html(rm.analyse(rm.problems.two_state(0.5, 0.9))))
    assert shown == re.findall(r"^## (.+)$", (pages.DOCS / "analyse.md").read_text(), re.MULTILINE)


def test_every_public_name_is_in_the_reference() -> None:
    index = (pages.DOCS / "api" / "index.md").read_text()
    assert sorted(re.findall(r"\[`rm\.(\w+)`\]", index)) == sorted(rm.__all__)


@pytest.mark.parametrize(
    ("room", "page"),
    [
        ("engine", "engine"),
        ("problems", "problems"),
        ("testing", "testing"),
        ("theory", "theory"),
        ("tuning.worlds", "tuning"),
    ],
)
def test_every_name_of_a_public_room_is_in_the_reference(room: str, page: str) -> None:
    module = import_module(f"robustmdp.{room}")
    names = {
        name for name, thing in vars(module).items() if getattr(thing, "__module__", "").startswith(module.__name__)
    }
    found = pages.references(pages.DOCS / "api" / f"{page}.md")
    shown = {name.rpartition(".")[2] for name in found if name.startswith(f"{module.__name__}.")}
    assert shown == {name for name in names if not name.startswith("_")}


def test_what_the_reference_shows_exists() -> None:
    shown = [name for page in pages.DOCS.glob("api/*.md") for name in pages.references(page)]
    assert len(shown) == len(set(shown))
    for name in shown:
        home, _, last = name.rpartition(".")
        assert getattr(import_module(home), last).__doc__, name


def test_the_citation_is_of_this_version() -> None:
    for path in (pages.ROOT / "CITATION.cff", pages.DOCS / "citation.md"):
        assert re.search(rf"version\s*[:=]\s*{{?{re.escape(rm.__version__)}\b", path.read_text())
