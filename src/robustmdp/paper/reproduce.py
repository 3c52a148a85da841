"""All of it: run what is not there yet, check the claims, draw, and write the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from robustmdp import _checks
from robustmdp.app.page import write_page
from robustmdp.engine import Engine, Kept
from robustmdp.engine.kept import key_of
from robustmdp.io.tables import write_table
from robustmdp.paper import NAMES, experiment_named
from robustmdp.paper.claims import as_table
from robustmdp.paper.drawing import draw, palette_of
from robustmdp.paper.folder import TASK, Folder
from robustmdp.paper.page import LEAD, TITLE, body
from robustmdp.paper.params import options_of
from robustmdp.paper.work import Item
from robustmdp.table import Table


class Progress(NamedTuple):
    """How far everything is."""

    experiment: str
    done: int
    tasks: int

    @property
    def share(self) -> float:
        """Of all tasks."""
        return self.done / self.tasks if self.tasks else 1.0


@dataclass(frozen=True)
class Reproduction:
    """What was made, and where."""

    records: dict[str, Table]
    claims: Table
    report: Path


def chosen_records(names: Iterable[str] = ()) -> dict[str, type[Any]]:
    """The records of parameters of the chosen experiments, of all if none is named."""
    chosen = {name: experiment_named(name).parameters for name in list(names) or NAMES}
    return {name: chosen[name] for name in NAMES if name in chosen}


def plan(names: Iterable[str] = (), *, quick: bool = False, **given: Any) -> dict[str, Any]:
    """Parameters of each chosen experiment; what is given applies to all that have such a parameter.

    >>> plan(["dmin"], stay=(0.6,))["dmin"].stay
    (0.6,)
    """
    records = chosen_records(names)
    for field in given:
        known = any(field in options_of(record) for record in records.values())
        _checks.must(known, f"{field} must be a parameter of a chosen experiment: chosen were {', '.join(records)}")
    planned = {}
    for name, record in records.items():
        own = {field: value for field, value in given.items() if field in options_of(record)}
        planned[name] = record(**{**(record.quick if quick else {}), **own})
    return planned


def reproduce(
    planned: Mapping[str, Any],
    out: str | Path,
    engine: Engine,
    *,
    resume: bool = True,
    as_csv: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """Run the planned experiments into a folder and make the page of all that is in it.

    Complete records and finished tasks that are found there are used again, unless `resume` is False.
    """
    done = 0
    with Folder.opened(out) as folder:
        folder.complete(planned)  # what cannot stay is said before anything is computed
        waiting = {name: params for name, params in planned.items() if not resume or folder.found(name) is None}
        total = sum(len(experiment_named(name).tasks(params)) for name, params in waiting.items())
        tasks = list(_tasks(planned))  # also those of experiments that an earlier, stopped call completed
        if not resume:
            folder.forget(tasks)

        def report(name: str) -> None:
            if progress is not None:
                progress(Progress(name, done, total))

        def advance(name: str, item: Item, fresh: bool) -> None:
            """One task more is done, or was found done."""
            nonlocal done
            del item, fresh
            done += 1
            report(name)

        for name, params in waiting.items():
            kept = Kept(engine, folder.work, Folder.write_task, Folder.read_task, TASK, partial(advance, name))
            folder.keep(name, experiment_named(name).run(params, kept))
        folder.forget(tasks)
        report("drawing")
        reproduction = draw_all(folder, engine)
        if as_csv:
            for name, table in reproduction.records.items():
                folder.keep_csv(name, table)
    return reproduction


def _tasks(planned: Mapping[str, Any]) -> Iterator[str]:
    for name, params in planned.items():
        experiment = experiment_named(name)
        yield from (key_of(experiment.measure, item) for item in experiment.tasks(params))


def draw_all(folder: Folder, engine: Engine) -> Reproduction:
    """Claims, pictures and page, from the records alone."""
    records = folder.complete()
    verdicts = as_table([claim for name, table in records.items() for claim in experiment_named(name).check(table)])
    write_table(verdicts, folder.path / "claims.csv")
    figures = {name: experiment_named(name).figure(table) for name, table in records.items()}
    palette = palette_of(figures.values())
    engine.map(partial(draw, folder=folder.figures, palette=palette), list(figures.values()))
    report = write_page(folder.path / "report.html", TITLE, LEAD, body(records, verdicts, figures, folder.figures))
    return Reproduction(records, verdicts, report)
