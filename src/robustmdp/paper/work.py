"""What the experiments share: an item of work is a plain dict, its outcome a table of rows that repeat its settings."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from robustmdp import __version__
from robustmdp.engine import Engine
from robustmdp.paper.claims import Claim, Finding
from robustmdp.paper.figures import Diagram, Figure, Panel
from robustmdp.table import Table

Item = dict[str, Any]
Drawing = tuple[str, str, Sequence[Panel | Diagram]]  # caption, reading, panels
Judgements = list[tuple[int, str, Finding]]  # the number of a statement, the setting, what the records say
VOLATILE = ("seconds", "peak_bytes")  # columns that the clock and the machine write: no two runs agree on them
_SEEDS_AT_ONCE = 25  # replications that share compiled calls, and the work that a kill can lose
_USUAL_STAY = 0.8


@dataclass(frozen=True)
class Experiment:
    """One figure and its claims.

    Attributes
    ----------
    name : on the command line
    parameters : their record, whose fields are the command's options
    tasks : (parameters) -> settings of each task, plain dicts
    measure : (task) -> rows; tasks of two experiments with the same `measure` and settings are run once
    draw : (records) -> caption, reading and panels of the figure
    judge : (records of one world) -> what they say of each statement
    draws_all_worlds : does the figure show every world? Else the usual one, or the first.
    """

    name: str
    title: str
    parameters: type[Any]
    tasks: Callable[[Any], list[Item]]
    measure: Callable[[Item], Table]
    draw: Callable[[Table], Drawing]
    judge: Callable[[Table], Judgements] | None = None
    draws_all_worlds: bool = False

    def run(self, params: Any, engine: Engine) -> Table:
        """The records: all rows in the order of the tasks, with notes on where they come from."""
        began = time.time()
        tables = engine.map(self.measure, self.tasks(params))
        return Table.concat(tables).with_notes(
            version=__version__,
            parameters=dataclasses.asdict(params),
            started=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(began)),
            wall_seconds=round(time.time() - began, 2),  # of this call; tasks found done took theirs before
            task_seconds=round(sum(float(table["seconds"][0]) for table in tables), 2),
            python=platform.python_version(),
            numpy=version("numpy"),
            machine=f"{platform.system()} {platform.machine()}",
        )

    def check(self, records: Table) -> list[Claim]:
        """The claims, world by world."""
        if self.judge is None:
            return []
        worlds = records.groups("stay")
        return [
            Claim(number, setting, stay, of) for (stay,), rows in worlds for number, setting, of in self.judge(rows)
        ]

    def figure(self, records: Table) -> Figure:
        """What is drawn, from the records alone."""
        title = self.title
        if not self.draws_all_worlds:
            stays = records.values("stay")
            stay = _USUAL_STAY if _USUAL_STAY in stays else stays[0]
            records, title = records.where(stay=stay), f"{title} (p = {stay:g})"
        caption, reading, panels = self.draw(records)
        return Figure(self.name, title, caption, reading, tuple(panels))


def timed(task: Callable[[Item], Table]) -> Callable[[Item], Table]:
    """The task, with the seconds that it took in a column of their own."""

    @functools.wraps(task)
    def with_seconds(item: Item) -> Table:
        began = time.perf_counter()
        table = task(item)
        return Table({**table.columns, "seconds": np.full(len(table), round(time.perf_counter() - began, 4))})

    return with_seconds


def rows(item: Item, **columns: Any) -> Table:
    """Columns, and the settings of the item beside them, in an order that experiments that share a task agree on."""
    settings = {name: value for name, value in sorted(item.items()) if not isinstance(value, list)}
    return Table.of(**settings, **columns)


def combine(**settings: Any) -> list[Item]:
    """Every combination of settings: collections vary, the first slowest, single values are the same in all.

    >>> combine(weight=(1.0, 2.0), divergence="kl", seeds=[[0, 1]])
    [{'weight': 1.0, 'divergence': 'kl', 'seeds': [0, 1]}, {'weight': 2.0, 'divergence': 'kl', 'seeds': [0, 1]}]
    """
    levels = [
        each if isinstance(each, Iterable) and not isinstance(each, str) else (each,) for each in settings.values()
    ]
    return [dict(zip(settings, values, strict=True)) for values in itertools.product(*levels)]


def seed_groups(seeds: int) -> Iterator[list[int]]:
    """0..seeds-1 in groups of a size that does not depend on the machine."""
    for first in range(0, seeds, _SEEDS_AT_ONCE):
        yield list(range(first, min(first + _SEEDS_AT_ONCE, seeds)))
