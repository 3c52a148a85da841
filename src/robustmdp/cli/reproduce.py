"""The command `reproduce`: from words to a plan, and from its outcome to a table of verdicts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from robustmdp.experiments.params import Option
    from robustmdp.experiments.reproduce import Reproduction


class Parameters(click.Command):
    """A command whose options are the fields of the experiments' records, read when they are needed."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*self.params, *_options(), *super().get_params(ctx)[len(self.params) :]]


def _fields() -> dict[str, list[Option]]:
    """Every parameter of every experiment, with what each says of it."""
    from robustmdp.experiments.params import options_of
    from robustmdp.experiments.reproduce import chosen_records

    known: dict[str, list[Option]] = {}
    for record in chosen_records().values():
        for field, option in options_of(record).items():
            known.setdefault(field, []).append(option)
    return known


def _options() -> list[click.Parameter]:
    return [_option(field, options) for field, options in _fields().items()]


def _option(field: str, options: list[Option]) -> click.Parameter:
    docs = " / ".join(dict.fromkeys(option.doc for option in options))
    shown = {int: "INTEGER", float: "NUMBER", str: "NAME"}[options[0].of] + (",..." if options[0].several else "")
    return click.Option([f"--{field.replace('_', '-')}"], metavar=shown, help=f"{docs}.")


def given_by(words: Mapping[str, str | None]) -> dict[str, Any]:
    """What was written, as numbers and names."""
    fields = _fields()
    return {field: _value(fields[field][0], word) for field, word in words.items() if word is not None}


def carry_out(
    experiments: Sequence[str],
    out: Path,
    *,
    quick: bool,
    engine: str,
    workers: int | None,
    address: str | None,
    resume: bool,
    as_csv: bool,
    **written: str | None,
) -> Reproduction | None:
    """Run it with live progress; None if Ctrl-C came."""
    from robustmdp.engine import engine_of
    from robustmdp.experiments.reproduce import plan, reproduce

    planned = plan(experiments, quick=quick, **given_by(written))
    where = engine_of(engine, workers, address)
    try:
        with Bar() as progress:
            return reproduce(planned, out, where, resume=resume, as_csv=as_csv, progress=progress)
    except KeyboardInterrupt:
        return None


def _value(option: Option, word: str) -> Any:
    from robustmdp import _checks

    values = tuple(_one(option, part.strip()) for part in word.split(","))
    if option.several:
        return values
    _checks.must(len(values) == 1, f"--{option.name.replace('_', '-')} takes one value: got {word!r}")
    return values[0]


def _one(option: Option, word: str) -> Any:
    from robustmdp import _checks

    try:
        number = float(word) if option.of is int else option.of(word)
        if option.of is int:
            _checks.must(number == int(number), "whole")
            return int(number)
        return number
    except (ValueError, OverflowError):
        kind = {int: "a whole number", float: "a number"}[option.of]
        _checks.fail(f"--{option.name.replace('_', '-')} must be {kind}: got {word!r}")


def show(made: Reproduction, out: Path) -> None:
    """The table of verdicts, and where everything is."""
    from rich.console import Console
    from rich.table import Table

    from robustmdp.experiments.claims import dependence

    console, claims = Console(), made.claims
    if len(claims):
        stays = claims.values("stay")
        table = Table(title="The paper's claims", title_justify="left")
        table.add_column("claim", justify="right")
        table.add_column("the paper says", ratio=1)
        for stay in stays:
            table.add_column(f"p = {stay:g}", no_wrap=True)
        for (number,), of in claims.groups("claim"):
            verdicts = dict(zip(of["stay"].tolist(), of["verdict"].tolist(), strict=True))
            colours = {"holds": "green", "does not hold": "red", "within noise": "yellow"}
            cells = [verdicts.get(stay, "") for stay in stays]
            table.add_row(str(number), of["statement"][0], *(f"[{colours.get(c, 'default')}]{c}[/]" for c in cells))
        console.print(table)
        for sentence in [*dependence(claims), *_explained(claims)]:
            console.print(sentence, highlight=False, markup=False)
    for label, path in (("records", out / "records"), ("claims", out / "claims.csv"), ("report", made.report)):
        console.print(f"{label:<8} {path}", highlight=False, soft_wrap=True, markup=False)


def _explained(claims: Any) -> list[str]:
    """Why claims do not hold, where that fits on a screen; the page and claims.csv say it of every world."""
    failed = claims.where(verdict="does not hold")
    if len(failed.values("stay")) > 1:
        return ["Every verdict is explained in the report and in claims.csv."]
    return [f"Claim {number}: {why}" for number, why in zip(failed["claim"], failed["explanation"], strict=True)]


def print_json(made: Reproduction) -> None:
    """One object: where the report is, and every verdict with its numbers."""
    import msgspec

    columns = {name: column.tolist() for name, column in made.claims.columns.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    sys.stdout.buffer.write(msgspec.json.encode({"report": str(made.report), "claims": rows}) + b"\n")
    sys.stdout.flush()


class Bar:
    """How far and how long still, over all tasks; on stderr, and only where that is a terminal."""

    def __enter__(self) -> Callable[[Any], None]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
        self._task = self._bar.add_task("Preparing the kernels (the first run compiles them)", total=1.0)
        self._bar.start()
        return self._update

    def _update(self, progress: Any) -> None:
        text = f"{progress.experiment}: {progress.done:,} of {progress.tasks:,} tasks"
        self._bar.update(self._task, completed=progress.share, description=text)

    def __exit__(self, *problem: object) -> None:
        self._bar.stop()
