"""The command `robustmdp`: its parts, and errors in its own words: arguments become options, advice what to type."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import Any

import click

from robustmdp import __version__
from robustmdp._display import printable
from robustmdp.app.commands.advising import analyse, suggest
from robustmdp.app.commands.data import convert, estimate, problems
from robustmdp.app.commands.doctor import completion, doctor
from robustmdp.app.commands.learning import learn
from robustmdp.app.commands.options import INTERRUPTED
from robustmdp.app.commands.planning import match, reach, solve
from robustmdp.app.commands.reproduce import reproduce
from robustmdp.app.commands.tuning import curve, stress

# What to do about an error, by its argument, where the library's advice speaks to programs.
_ADVICE = {
    "columns": ": terminated=done if it marks true endings only, terminated= to leave it out",
    "criterion": "; give a lower --discount, or solve with --horizon STEPS, --total or --average",
    "discount": "; give one as in --discount 0.95",
    "environment": "; `robustmdp learn --algorithm markovian` learns without them",
    "header": "; is it --column {name}={own}?",
    "intervals": "; see robustmdp solve --help",
    "learner": ": use --algorithm markovian",
    "rewards": ": give --reward-range, as in 0..1",
}
_SINGULAR = {"columns": "column"}  # options that may be repeated


def explain(problem: BaseException, options: Collection[str] = ()) -> str:
    """An error, with the option of the command instead of the argument, and advice for the command line.

    >>> from robustmdp import read
    >>> try:
    ...     read("gym:FrozenLake-v1")
    ... except ValueError as problem:
    ...     explain(problem, ["discount"])
    '--discount must be given: an environment has none; give one as in --discount 0.95'
    """
    if isinstance(problem, OSError) and problem.strerror and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror.lower()}"
    text = str(problem)
    if isinstance(problem, MemoryError):
        return f"there is not enough memory for this{': ' if text else ''}{text}"
    argument, advice = getattr(problem, "argument", ""), getattr(problem, "advice", "")
    if advice and argument in _ADVICE:
        text = text.removesuffix(advice) + _ADVICE[argument].format(**vars(problem)["values"])
    option = _SINGULAR.get(argument, argument)
    if option in options:
        text = text.replace(argument, f"--{option.replace('_', '-')}", 1)
    return text


class _Group(click.Group):
    """Turns the package's one-sentence errors into messages, and suggests commands."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None:
            from robustmdp import _checks

            try:
                _checks.nearest("command", args[0], self.list_commands(ctx))
            except ValueError as problem:
                raise click.UsageError(str(problem)) from None
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)  # in the order of use, not of the alphabet

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say  # type: ignore[assignment]
                return super().invoke(ctx)
        except (ValueError, TypeError, ImportError, OSError, MemoryError) as problem:
            raise click.ClickException(printable(explain(problem, self._options(ctx)))) from None
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)
        except RuntimeError as problem:
            from robustmdp.engine import TaskFailed

            if not isinstance(problem, TaskFailed):
                raise
            raise click.ClickException(str(problem)) from None

    def _options(self, ctx: click.Context) -> list[str]:
        """The names of the parameters of the command that was called."""
        command = self.commands.get(ctx.invoked_subcommand or "")
        parameters = [] if command is None else command.params
        return [param.name or "" for param in parameters if isinstance(param, click.Option)]


def _say(message: Warning | str, *place: Any) -> None:
    """A warning as a sentence, without the line of code that it came from."""
    del place
    context = click.get_current_context(silent=True)
    if context is None or not context.params.get("quiet"):
        click.echo(f"Warning: {printable(str(message))}", err=True)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def main() -> None:
    """Decisions that hold up when the model is wrong.

    \b
    Examples:
      robustmdp analyse gym:FrozenLake-v1 --out report.html
      robustmdp solve model.csv --discount 0.95 --divergence kl --radius 0.1
      robustmdp COMMAND --help

    Exit codes: 0 done, 1 bad input, 2 wrong usage, 3 not converged, 130 interrupted.
    """


# In the order of use.
_ABOUT_DECISIONS = (analyse, solve, reach, suggest, curve, stress, match)
_ABOUT_THE_REST = (estimate, learn, convert, problems, reproduce, doctor, completion)
for _command in (*_ABOUT_DECISIONS, *_ABOUT_THE_REST):
    main.add_command(_command)
