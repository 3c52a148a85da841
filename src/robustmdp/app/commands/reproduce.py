"""The command `reproduce`: from words to a plan, and from its outcome to a table of verdicts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustmdp.app.commands import options as given
from robustmdp.app.commands import show
from robustmdp.app.commands.options import INTERRUPTED
from robustmdp.app.commands.progress import LEARNING, Bar

if TYPE_CHECKING:
    from robustmdp.paper.params import Option
    from robustmdp.table import Table

_COLOURS = {"holds": "green", "does not hold": "red", "within noise": "yellow"}


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


def _options() -> list[click.Option]:
    found = []
    for field, options in _fields().items():
        docs = " / ".join(dict.fromkeys(option.doc for option in options))
        shown = {int: "INTEGER", float: "NUMBER", str: "NAME"}[options[0].of] + (",..." if options[0].several else "")
        found.append(click.Option([f"--{field.replace('_', '-')}"], metavar=shown, help=f"{docs}.", hidden=True))
    return found


def _list_parameters(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """All options of the experiments: too many for one screen of help."""
    del parameter
    if not wanted:
        return
    formatter = context.make_formatter()
    rows = [(f"{option.opts[0]} {option.metavar}", option.help or "") for option in _options()]
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
    from robustmdp import engine
    from robustmdp.paper.reproduce import plan
    from robustmdp.paper.reproduce import reproduce as run

    out, resume, as_csv = Path(options.pop("out")), options.pop("resume"), options.pop("as_csv")
    where = [options.pop(name) for name in ("engine", "workers", "address")]
    quick, fields = options.pop("quick"), _fields()
    given_values = {name: _parse(fields[name][0], word) for name, word in options.items() if word is not None}
    planned = plan(experiments, quick=quick, **given_values)
    chosen = engine.engine_of(*where)
    try:
        with Bar(quiet, LEARNING) as bar:

            def report(progress: Any) -> None:
                text = f"{progress.experiment}: {progress.done:,} of {progress.tasks:,} tasks"
                bar.show(text, progress.share)

            reproduction = run(planned, out, chosen, resume=resume, as_csv=as_csv, progress=report)
    except KeyboardInterrupt:
        click.echo(f"Interrupted: what is finished is kept in {out}; the same command goes on from there.", err=True)
        sys.exit(INTERRUPTED)
    if as_json:
        show.print_json({"report": str(reproduction.report), "claims": list(reproduction.claims)})
    else:
        _print_claims(reproduction.claims)
        console = show.console()
        paths = {"records": out / "records", "claims": out / "claims.csv", "report": reproduction.report}
        for label, path in paths.items():
            console.print(f"{label:<8} {path}", highlight=False, soft_wrap=True, markup=False)


def _parse(option: Option, word: str) -> Any:
    """What was written, as numbers and names."""
    from robustmdp import _checks

    values, flag = [], f"--{option.name.replace('_', '-')}"
    for part in word.split(","):
        try:
            number = option.of(part.strip()) if option.of is not int else float(part)
            if option.of is int:
                _checks.must(number == int(number), "whole")
                number = int(number)
            values.append(number)
        except (ValueError, OverflowError):
            kind = {int: "a whole number", float: "a number"}[option.of]
            _checks.fail(f"{flag} must be {kind}: got {part.strip()!r}")
    _checks.must(option.several or len(values) == 1, f"{flag} takes one value: got {word!r}")
    return tuple(values) if option.several else values[0]


def _print_claims(claims: Table) -> None:
    """The verdict of each claim in each world, and why claims do not hold, where that fits on a screen."""
    from rich.console import Console
    from rich.table import Table as Grid

    from robustmdp.paper.claims import dependence

    if not len(claims):
        return
    console, stays = Console(), claims.values("stay")
    grid = Grid(title="The paper's claims", title_justify="left")
    grid.add_column("claim", justify="right")
    grid.add_column("the paper says", ratio=1)
    for stay in stays:
        grid.add_column(f"p = {stay:g}", no_wrap=True)
    for (number,), of in claims.groups("claim"):
        verdicts = dict(zip(of["stay"].tolist(), of["verdict"].tolist(), strict=True))
        cells = [verdicts.get(stay, "") for stay in stays]
        grid.add_row(str(number), of["statement"][0], *(f"[{_COLOURS.get(c, 'default')}]{c}[/]" for c in cells))
    console.print(grid)
    failed = claims.where(verdict="does not hold")
    why = [f"Claim {row['claim']}: {row['explanation']}" for row in failed]
    if len(failed.values("stay")) > 1:
        why = ["Every verdict is explained in the report and in claims.csv."]
    for sentence in (*dependence(claims), *why):
        console.print(sentence, highlight=False, markup=False)
