"""The command `reproduce`: from words to a plan, and from its outcome to a table of verdicts."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustmdp.app.commands import options as given
from robustmdp.app.commands.options import INTERRUPTED
from robustmdp.app.commands.progress import LEARNING, Bar

if TYPE_CHECKING:
    from robustmdp.paper.params import Option
    from robustmdp.paper.reproduce import Reproduction


class Parameters(click.Command):
    """A command whose options are the fields of the experiments' records, read when they are needed."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*self.params, *_options(), *super().get_params(ctx)[len(self.params) :]]


def _fields() -> dict[str, list[Option]]:
    """Every parameter of every experiment, with what each says of it."""
    from robustmdp.paper.params import options_of
    from robustmdp.paper.reproduce import chosen_records

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
    return click.Option([f"--{field.replace('_', '-')}"], metavar=shown, help=f"{docs}.", hidden=True)


def _list_parameters(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """All options of the experiments: too many for one screen of help."""
    del parameter
    if not wanted:
        return
    formatter = context.make_formatter()
    rows = []
    for option in _options():
        assert isinstance(option, click.Option)
        rows.append((f"{option.opts[0]} {option.metavar}", option.help or ""))
    with formatter.section("Parameters of the experiments"):
        formatter.write_dl(rows)
    click.echo(formatter.getvalue(), nl=False)
    context.exit()


@click.command(cls=Parameters, short_help="The paper's experiments and claims, run again.")
@click.argument("experiments", nargs=-1)
@click.option("--quick", is_flag=True, help="Fewer seeds and steps: everything within a minute.")
@click.option("--out", type=click.Path(), default="reproduction", show_default=True, help="Folder for all results.")
@click.option("--engine", default="processes", show_default=True, help="serial, processes or ray.")
@click.option("--workers", type=int, help="How many at once; all cores if not given.")
@click.option("--address", help="Of a Ray cluster; a local one if not given.")
@click.option("--resume/--no-resume", default=True, show_default=True, help="Use what an earlier call finished.")
@click.option("--csv", "as_csv", is_flag=True, help="Write the records as CSV, too.")
@click.option(
    "--parameters",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_parameters,
    help="List the options of the experiments, such as --stay and --seeds.",
)
@given.output_options
def reproduce(experiments: tuple[str, ...], as_json: bool, quiet: bool, **options: Any) -> None:
    """Run the paper's experiments and check its claims.

    EXPERIMENTS are any of chain-diagrams, connection, statistical, convergence, inner-steps, dmin, markovian,
    behaviour, rates, step-sizes, limits, equivalence, sample-efficiency, exploration, memory; all if none is named.
    The folder --out then holds report.html, claims.csv, records/ and figures/. A call that was stopped goes on where
    it was.

    \b
    Examples:
      robustmdp reproduce --quick --out look
      robustmdp reproduce markovian behaviour --stay 0.6,0.8 --seeds 20
    """
    out = Path(options.pop("out"))
    reproduction = carry_out(experiments, out, quiet=quiet, **options)
    if reproduction is None:
        click.echo(f"Interrupted: what is finished is kept in {out}; the same command goes on from there.", err=True)
        sys.exit(INTERRUPTED)
    if as_json:
        print_json(reproduction)
    else:
        show(reproduction, out)


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
    quiet: bool,
    **written: str | None,
) -> Reproduction | None:
    """Run it with live progress; None if Ctrl-C came."""
    from robustmdp.engine import engine_of
    from robustmdp.paper.reproduce import plan, reproduce

    planned = plan(experiments, quick=quick, **given_by(written))
    where = engine_of(engine, workers, address)
    try:
        with Bar(quiet, LEARNING) as bar:
            return reproduce(planned, out, where, resume=resume, as_csv=as_csv, progress=_Meter(bar))
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


def show(reproduction: Reproduction, out: Path) -> None:
    """The table of verdicts, and where everything is."""
    from rich.console import Console
    from rich.table import Table

    from robustmdp.paper.claims import dependence

    console, claims = Console(), reproduction.claims
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
    for label, path in (("records", out / "records"), ("claims", out / "claims.csv"), ("report", reproduction.report)):
        console.print(f"{label:<8} {path}", highlight=False, soft_wrap=True, markup=False)


def _explained(claims: Any) -> list[str]:
    """Why claims do not hold, where that fits on a screen; the page and claims.csv say it of every world."""
    failed = claims.where(verdict="does not hold")
    if len(failed.values("stay")) > 1:
        return ["Every verdict is explained in the report and in claims.csv."]
    return [f"Claim {number}: {why}" for number, why in zip(failed["claim"], failed["explanation"], strict=True)]


def print_json(reproduction: Reproduction) -> None:
    """One object: where the report is, and every verdict with its numbers."""
    from robustmdp.app.commands import show as words

    columns = words.columns_of(reproduction.claims)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    words.print_json({"report": str(reproduction.report), "claims": rows})


class _Meter:
    """Progress over all tasks, on the bar."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar

    def __call__(self, progress: Any) -> None:
        text = f"{progress.experiment}: {progress.done:,} of {progress.tasks:,} tasks"
        self._bar.show(text, progress.share)
