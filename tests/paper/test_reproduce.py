"""A whole reproduction: what stands in its folder, what is used again, and what survives kill -9 and Ctrl-C."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import shutil
import signal
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from app.page.browser import chromium, opened
from engine.groups import started, wait_for
from paper import tiny
from paper.tiny import stable
from robustmdp.engine import Serial
from robustmdp.io.tables import read_table, write_table
from robustmdp.paper import NAMES
from robustmdp.paper.claims import STATEMENTS
from robustmdp.paper.folder import Folder
from robustmdp.paper.reproduce import Progress, plan, reproduce
from robustmdp.table import Table

FAST = ("chain-diagrams", "dmin")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All eleven experiments; one of pytest's processes makes it, for it takes a while, and the others wait."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    out, done = root / "whole", root / "whole.done"
    try:
        (root / "whole.begun").touch(exist_ok=False)
    except FileExistsError:
        wait_for(done.exists, 400.0)
    else:
        try:
            reproduce(tiny.plan(*NAMES), out, Serial(), as_csv=True)
        finally:
            done.touch()
    return out


def records_in(folder: Path, name: str) -> Table:
    return read_table(folder / "records" / f"{name}.parquet")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "once"
    reproduce(tiny.plan("dmin"), out, Serial())
    return out


@pytest.fixture
def with_dmin(made_once: Path, tmp_path: Path) -> Path:
    """A folder of its own with the records of dmin."""
    return shutil.copytree(made_once, tmp_path / "out")


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes every task refuse."""

    def refuse(item: Any) -> Any:
        raise AssertionError("this was to be used again, not computed")

    def now() -> None:
        for experiment in tiny.EXPERIMENTS.values():
            monkeypatch.setitem(vars(experiment), "measure", refuse)

    return now


# All eleven.


def test_the_folder_holds_page_claims_records_and_pictures(folder: Path) -> None:
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    expected = {f"records/{name}.{end}" for name in NAMES for end in ("parquet", "csv")}
    expected |= {f"figures/{name}.{end}" for name in NAMES for end in ("png", "svg")}
    assert names >= expected | {"report.html", "claims.csv", "robustmdp.json"}
    assert {name.split("/")[0] for name in names} == {
        "records",
        "figures",
        "report.html",
        "claims.csv",
        "robustmdp.json",
    }
    assert 1e5 < (folder / "report.html").stat().st_size < 3e6
    for name in NAMES:
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in (folder / "figures" / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_records_stand_there_with_their_origin(name: str, folder: Path) -> None:
    import msgspec

    table = records_in(folder, name)
    assert table.notes["version"] == rm.__version__
    assert table.notes["parameters"] == msgspec.json.decode(msgspec.json.encode(tiny.params(name)))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", table.notes["started"])
    assert table.notes["wall_seconds"] >= 0
    with (folder / "records" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    assert (header, len(rows)) == (list(table.columns), len(table))


@pytest.mark.parametrize("name", tiny.OTHERS)
def test_records_are_those_of_the_experiment_alone(name: str, folder: Path) -> None:
    # Experiments share tasks (convergence and inner-steps, markovian and behaviour) without a trace.
    assert stable(records_in(folder, name)) == stable(tiny.records(name))


def test_memory_per_pair_grows_for_the_model_based_way_only(folder: Path) -> None:
    table = records_in(folder, "memory")
    assert len(table) == 10
    for (method,), of in table.groups("method"):
        few, many = of["peak_bytes"] / (of["states"] * of["actions"])
        if method == "plug-in":
            # Each further transition of a pair takes an index, a probability and a reward; what does not grow cancels.
            assert many - few >= 20.0 * 0.95 * np.diff(of["states"])[0]
        else:
            assert many <= 1.01 * few


def test_all_claims_are_judged(folder: Path) -> None:
    with (folder / "claims.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["claim", "statement", "stay", "setting", "verdict", "numbers", "test", "explanation"]
    assert sorted({int(row["claim"]) for row in rows}) == list(STATEMENTS)
    assert {row["verdict"] for row in rows} <= {"holds", "does not hold", "within noise"}
    for row in rows:
        assert row["numbers"]
        assert bool(row["explanation"]) == (row["verdict"] != "holds")
    page = unescape((folder / "report.html").read_text(encoding="utf-8"))
    assert all(row["statement"] in page for row in rows)
    assert all(row["explanation"] in page for row in rows)


def test_the_page_in_a_browser(folder: Path) -> None:
    with chromium() as browser, opened(browser, folder / "report.html") as it:
        it.assert_sound()
        figures = it.page.locator("figure").evaluate_all("all => all.map(figure => figure.id)")
        assert {f"figure-{name}" for name in NAMES} <= set(figures)
        widths = it.page.locator("figure img").evaluate_all("all => all.map(image => image.naturalWidth)")
        assert len(widths) == len(NAMES)
        assert min(widths) > 300
        assert it.overflow() <= 0
        it.assert_sound()


# Again.


def test_a_second_call_computes_nothing_and_draws_the_same(tmp_path: Path, refusing: Callable[[], None]) -> None:
    first = reproduce(tiny.plan(*FAST), tmp_path, Serial())
    before = contents(tmp_path)
    shutil.rmtree(tmp_path / "figures")
    (tmp_path / "claims.csv").unlink()
    (tmp_path / "report.html").unlink()
    refusing()
    second = reproduce(tiny.plan(*FAST), tmp_path, Serial())
    assert contents(tmp_path) == before
    assert second.records == first.records
    assert second.claims == first.claims


def test_without_resume_everything_runs_again(with_dmin: Path) -> None:
    seen: list[Progress] = []
    again = reproduce(tiny.plan("dmin"), with_dmin, Serial(), resume=False, progress=seen.append)
    assert [progress.done for progress in seen] == [1, 2, 2]
    assert seen[-1].experiment == "drawing"
    assert stable(again.records["dmin"]) == stable(tiny.records("dmin"))


def test_without_resume_tasks_are_computed(with_dmin: Path, refusing: Callable[[], None]) -> None:
    from robustmdp.engine import TaskFailed

    before = contents(with_dmin)
    refusing()
    with pytest.raises(TaskFailed, match="to be used again"):
        reproduce(tiny.plan("dmin"), with_dmin, Serial(), resume=False)
    assert contents(with_dmin) == before  # the old records stay until there are new ones


def test_experiments_are_added_to_a_folder(with_dmin: Path) -> None:
    made = reproduce(tiny.plan("connection"), with_dmin, Serial())
    assert list(made.records) == ["connection", "dmin"]
    assert sorted(set(made.claims["claim"].tolist())) == [1, 12]
    page = made.report.read_text(encoding="utf-8")
    assert "figure-dmin" in page
    assert "figure-connection" in page


def test_progress_is_by_tasks_and_ends_at_one(tmp_path: Path) -> None:
    seen: list[Progress] = []
    reproduce(tiny.plan("convergence", "dmin"), tmp_path, Serial(), progress=seen.append)
    assert [progress.done for progress in seen] == [*range(1, 6), 5]  # then it draws
    assert {progress.tasks for progress in seen} == {5}
    shares = [progress.share for progress in seen]
    assert shares == [0.2, 0.4, 0.6, 0.8, 1.0, 1.0]


class Stopped(Exception):
    pass


def stop_after(count: int) -> Callable[[Progress], None]:
    def watch(progress: Progress) -> None:
        if progress.done == count:
            raise Stopped

    return watch


def test_what_was_finished_is_found_again(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        reproduce(tiny.plan("convergence"), tmp_path, Serial(), progress=stop_after(2))
    kept = kept_in(tmp_path)
    assert len(kept) == 2
    made = reproduce(tiny.plan("convergence"), tmp_path, Serial())
    assert stable(made.records["convergence"]) == stable(tiny.records("convergence"))
    assert_kept(kept, made.records["convergence"])
    assert not (tmp_path / "unfinished").exists()


def test_tasks_of_a_stopped_call_are_removed_when_all_is_complete(tmp_path: Path) -> None:
    names = ("dmin", "limits")
    with pytest.raises(Stopped):
        reproduce(tiny.plan(*names), tmp_path, Serial(), progress=stop_after(4))
    assert (tmp_path / "records" / "dmin.parquet").exists()
    assert len(finished_in(tmp_path)) == 4
    reproduce(tiny.plan(*names), tmp_path, Serial())
    assert not (tmp_path / "unfinished").exists()


def test_another_experiment_does_not_lose_what_a_stopped_one_had_finished(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        reproduce(tiny.plan("convergence"), tmp_path, Serial(), progress=stop_after(2))
    kept = kept_in(tmp_path)
    reproduce(tiny.plan("dmin"), tmp_path, Serial())
    assert kept_in(tmp_path) == kept


def test_tasks_of_two_experiments_are_run_once(tmp_path: Path) -> None:
    shared = {**tiny.TINY["inner-steps"], "weights": (10.0,), "inner_levels": (2, 5)}
    one = {**tiny.TINY["convergence"], "weights": (10.0,)}
    planned = plan(["convergence"], **one) | plan(["inner-steps"], **shared)
    made = reproduce(planned, tmp_path, Serial())
    again = made.records["inner-steps"].where(inner_steps=5)
    # Even the seconds are those of the first time.
    assert again["seconds"].tolist() == made.records["convergence"]["seconds"].tolist()
    assert stable(made.records["inner-steps"]) == stable(
        tiny.EXPERIMENTS["inner-steps"].run(planned["inner-steps"], Serial())
    )
    assert not (tmp_path / "unfinished").exists()


def test_a_folder_of_others_with_our_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "thesis.txt").write_text("years")
    with contextlib.suppress(ValueError):  # to refuse is as good
        reproduce(tiny.plan("chain-diagrams"), tmp_path, Serial())
    assert (tmp_path / "unfinished" / "thesis.txt").read_text() == "years"


def test_one_call_at_a_time(tmp_path: Path) -> None:
    with Folder.opened(tmp_path), pytest.raises(ValueError, match="another call is writing to") as caught:
        reproduce(tiny.plan("chain-diagrams"), tmp_path, Serial())
    assert "\n" not in str(caught.value)
    assert reproduce(tiny.plan("chain-diagrams"), tmp_path, Serial()).report.exists()


@pytest.mark.parametrize("planned", [("inner-steps",), ("convergence", "inner-steps")])
def test_shared_tasks_leave_the_order_of_columns(planned: tuple[str, ...], tmp_path: Path) -> None:
    # inner-steps begins with the T' of convergence here, so that its first task is found done.
    changed = {"convergence": {"inner_steps": 2}, "inner-steps": {"weights": tiny.WEIGHTS}}
    made = reproduce({name: tiny.params(name, **changed[name]) for name in planned}, tmp_path, Serial())
    alone = tiny.EXPERIMENTS["inner-steps"].run(tiny.params("inner-steps", weights=tiny.WEIGHTS), Serial())
    assert stable(made.records["inner-steps"]) == stable(alone)


# Other hands.


def other_version(path: Path) -> None:
    write_table(read_table(path).with_notes(version="0.0.9"), path)


@pytest.mark.parametrize("planned", ["dmin", "chain-diagrams"])
def test_records_of_another_version_are_refused_before_anything_runs(
    planned: str, with_dmin: Path, refusing: Callable[[], None]
) -> None:
    other_version(with_dmin / "records" / "dmin.parquet")
    before = contents(with_dmin)
    refusing()
    with pytest.raises(ValueError, match=r"dmin\.parquet holds records of robustmdp 0\.0\.9"):
        reproduce(tiny.plan(planned), with_dmin, Serial())
    assert contents(with_dmin) == before


def test_records_of_other_parameters_are_refused(with_dmin: Path, refusing: Callable[[], None]) -> None:
    before = contents(with_dmin)
    refusing()
    with pytest.raises(ValueError, match=r"dmin\.parquet was made with other parameters \(restart\)"):
        reproduce({"dmin": tiny.params("dmin", restart=0.25)}, with_dmin, Serial())
    assert contents(with_dmin) == before


def test_damaged_records_are_refused_in_one_sentence(with_dmin: Path) -> None:
    path = with_dmin / "records" / "dmin.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    before = contents(with_dmin)
    with pytest.raises(ValueError, match=r"dmin\.parquet must be a Parquet file") as caught:
        reproduce(tiny.plan("dmin"), with_dmin, Serial())
    assert "\n" not in str(caught.value)
    assert contents(with_dmin) == before


@pytest.mark.parametrize("change", ["a value", "a column less", "a note", "no checksum", "a folder", "a pipe"])
def test_altered_records_are_refused_in_one_sentence(with_dmin: Path, change: str) -> None:
    """A missing column was a KeyError, and a pipe was waited for without end."""
    path = with_dmin / "records" / "dmin.parquet"
    table = read_table(path)
    altered = {
        "a value": lambda: Table({**table.columns, "stay": table["stay"] * 1.5}, table.notes),
        "a column less": lambda: table.without("stay"),
        "a note": lambda: table.with_notes(task_seconds=0),
        "no checksum": lambda: Table(table.columns, {n: v for n, v in table.notes.items() if n != "checksum"}),
    }
    if change in altered:
        write_table(altered[change](), path)
    else:
        path.unlink()
        path.mkdir() if change == "a folder" else os.mkfifo(path)
    with pytest.raises(ValueError, match=r"dmin\.parquet (were altered, their checksum|is none$)") as caught:
        reproduce(tiny.plan("dmin"), with_dmin, Serial())
    assert "\n" not in str(caught.value)


def test_an_altered_task_is_computed_again(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(progress: Any) -> None:
        if progress.done == 2:
            raise Stop

    with pytest.raises(Stop):
        reproduce(tiny.plan("dmin"), tmp_path / "out", Serial(), progress=stop)
    tasks = sorted((tmp_path / "out" / "unfinished").iterdir())
    assert tasks
    for path in tasks:
        table = read_table(path)
        write_table(Table({**table.columns, "stay": table["stay"] * 1.5}, table.notes), path)
    made = reproduce(tiny.plan("dmin"), tmp_path / "out", Serial())
    assert stable(made.records["dmin"]) == stable(tiny.records("dmin"))


def test_a_plan_gives_each_what_it_has() -> None:
    planned = plan(["dmin", "convergence"], stay=(0.6,), seeds=5)
    assert list(planned) == ["convergence", "dmin"]  # in the order of the paper
    assert planned["convergence"].seeds == 5
    assert planned["convergence"].stay == planned["dmin"].stay == (0.6,)
    assert planned["dmin"].behaviours == tiny.EXPERIMENTS["dmin"].parameters().behaviours
    assert list(plan()) == list(NAMES)


def test_a_quick_plan_is_smaller_and_can_still_be_changed() -> None:
    quick, full = plan(quick=True), plan()
    assert quick["convergence"].seeds < full["convergence"].seeds == 100
    assert plan(["convergence"], quick=True, seeds=50)["convergence"].seeds == 50
    for name in NAMES:
        tasks = tiny.EXPERIMENTS[name].tasks
        assert len(tasks(quick[name])) <= len(tasks(full[name]))
        for field in quick[name].quick:
            few, many = (np.sum(getattr(planned[name], field)) for planned in (quick, full))
            assert few < many, (name, field)


def test_the_paper_is_the_default() -> None:
    full = plan()
    weights = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
    for name in ("connection", "statistical", "convergence", "inner-steps", "markovian"):
        assert full[name].weights == weights
        assert full[name].divergence == "chi2"
    assert {full[name].discount for name in NAMES} == {0.9}
    assert (full["connection"].sweeps, full["connection"].ascent_steps) == (10_000, 1000)
    assert (full["statistical"].samples_per_pair, full["statistical"].sweeps) == (1000, 100)
    assert (full["convergence"].rounds, full["convergence"].inner_steps, full["convergence"].seeds) == (1000, 100, 100)
    assert full["inner-steps"].inner_levels == (10, 50, 100)
    assert full["behaviour"].behaviours == (0.001, 0.005, 0.05, 0.1, 0.2, 0.5)
    assert full["markovian"].transitions == full["behaviour"].transitions == 4_000_000


# The power goes.

SCRIPT = "from robustmdp.app.commands import main; main()"
SLOW_ENOUGH = {"weights": (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0), "seeds": 20, "rounds": 600, "inner_steps": 100}
WORDS = ("reproduce", "convergence", "--weights", "0.5,1,2,3,4,5,10", "--seeds", "20", "--inner-steps", "100")
LONG = ("--rounds", "3000")  # seconds, where the interrupt comes at once
MOMENTS = {"serial": (2, 4), "processes": (3,)}  # finished tasks, of seven
ENGINES = {"serial": ("--engine", "serial"), "processes": ("--engine", "processes", "--workers", "2")}


def finished_in(folder: Path) -> list[Path]:
    """The files of finished tasks."""
    return list((folder / "unfinished").glob("[!.]*.parquet"))


def kept_in(folder: Path) -> dict[str, Table]:
    """The finished tasks."""
    return {path.name: read_table(path) for path in finished_in(folder)}


def assert_kept(kept: dict[str, Table], records: Table) -> None:
    """Tasks that were done are not done again: even their seconds are those of the first time."""
    for table in kept.values():
        weight = table.values("weight")
        rows = records.where(weight=weight[0])
        rows = rows.take(np.isin(rows["seed"], table.values("seed")))
        assert rows == table


@pytest.mark.parametrize("engine", ENGINES)
def test_a_call_that_was_killed_goes_on_where_it_was(engine: str, tmp_path: Path) -> None:
    words = (*WORDS, "--rounds", str(SLOW_ENOUGH["rounds"]), *ENGINES[engine], "--out", tmp_path)
    kept: dict[str, Table] = {}
    for moment in MOMENTS[engine]:
        with started(SCRIPT, *words) as process:
            wait_for(lambda: len(finished_in(tmp_path)) >= moment)  # noqa: B023
            process.kill()
        found = kept_in(tmp_path)
        assert kept.items() <= found.items()
        assert not (tmp_path / "records").exists()
        kept = found
    with started(SCRIPT, *words) as process:
        said, complaints = process.communicate(timeout=200)
    assert (process.returncode, complaints) == (0, "")
    assert "report.html" in said
    records = read_table(tmp_path / "records" / "convergence.parquet")
    assert_kept(kept, records)
    experiment = tiny.EXPERIMENTS["convergence"]
    assert stable(records) == stable(experiment.run(experiment.parameters(**SLOW_ENOUGH), Serial()))
    assert not (tmp_path / "unfinished").exists()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupt_says_how_to_go_on(engine: str, tmp_path: Path) -> None:
    with started(SCRIPT, *WORDS, *LONG, *ENGINES[engine], "--out", tmp_path) as process:
        wait_for(lambda: len(finished_in(tmp_path)) >= 2)
        os.killpg(process.pid, signal.SIGINT)
        said, complaints = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == ""
    assert complaints == f"Interrupted: what is finished is kept in {tmp_path}; the same command goes on from there.\n"
    assert len(kept_in(tmp_path)) >= 2
    assert not (tmp_path / "records").exists()
