"""From objects to words: tables and JSON."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import robustmdp as rm
from robustmdp._display import choice_text, printable

if TYPE_CHECKING:
    from rich.console import Console

    from robustmdp.ambiguity import Ambiguity
    from robustmdp.table import Table

_UNBOUNDED = 10_000  # characters: no terminal, no edge to keep to


def print_json(record: Mapping[str, Any]) -> None:
    """One object on one line; numbers at full precision, null where there is none."""
    import msgspec

    sys.stdout.buffer.write(msgspec.json.encode(record, enc_hook=_plain) + b"\n")
    sys.stdout.flush()


def _plain(thing: Any) -> Any:
    """NumPy's arrays and numbers as JSON has them; infinite ones become null, as NaN does."""
    import numpy as np

    array = np.asarray(thing)
    if array.dtype.kind == "f":
        array = np.where(np.isfinite(array), array, np.nan)
    return array.tolist()


def columns_of(table: Table) -> dict[str, list[Any]]:
    """A table for JSON."""
    return {name: column.tolist() for name, column in table.columns.items()}


def console() -> Console:
    """As wide as the terminal; in a pipe or a file nothing is cut or wrapped."""
    from rich.console import Console

    found = Console()
    return found if found.is_terminal else Console(width=_UNBOUNDED)


def print_rows(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    limit: int | None = None,
    total: int | None = None,
    things: str = "",
    numbers: Sequence[bool] | None = None,
) -> None:
    """A table; numbers to the right, by their type or as told. Where the window is too narrow, a paragraph per row.

    `total` is the number of rows where those beyond the limit are not given.
    """
    where, cells = console(), [[shown(cell) for cell in row] for row in rows[:limit]]
    first = rows[0] if rows else header
    right = numbers or [isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in first]
    broken = [name.replace(" ", "\n") if number else name for name, number in zip(header, right, strict=True)]
    tall, flat = (_grid(names, right, cells) for names in (broken, header))
    where.print(printable(title, keep="\n"), style="italic", markup=False, highlight=False)
    if _width(tall, where).minimum > where.width:
        _print_paragraphs(where, header, cells)
    else:
        where.print(flat if _width(flat, where).maximum <= where.width else tall)
    count = len(rows) if total is None else total
    if limit is not None and count > limit:
        say(f"{count - limit:,} more{things}: use --rows {count} or --json to see all.")


def _grid(header: Sequence[str], numbers: Sequence[bool], rows: Sequence[Sequence[str]]) -> Any:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid()
    for name, number in zip(header, numbers, strict=True):
        # Rich takes the longest word of a header for its least width, even where it must not be wrapped.
        least = max(map(len, name.split("\n"))) if number else None
        justify: Any = "right" if number else "left"
        grid.add_column(Text(name), justify=justify, no_wrap=number, min_width=least, vertical="bottom")
    for row in rows:
        grid.add_row(*map(Text, row))
    return grid


def _width(grid: Any, where: Console) -> Any:
    """With words wrapped (minimum) and without (maximum); numbers are whole in both."""
    from rich.measure import Measurement

    return Measurement.get(where, where.options.update(width=_UNBOUNDED), grid)


def _print_paragraphs(where: Console, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = max(map(len, header))
    for row in rows:
        where.print(f"{header[0]}: {row[0]}", markup=False, highlight=False)
        for name, cell in zip(header[1:], row[1:], strict=True):
            where.print(f"  {name:<{width}} {cell}", markup=False, highlight=False)


def shown(cell: Any) -> str:
    """A cell of a table: numbers with four digits."""
    if isinstance(cell, bool):
        return "yes" if cell else ""
    return f"{cell:.4g}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else printable(str(cell))


def say(sentence: str, *, soft_wrap: bool = False) -> None:
    """Plain text, wrapped between words; `soft_wrap` keeps a path in one piece."""
    console().print(printable(sentence, keep="\n"), highlight=False, soft_wrap=soft_wrap, markup=False)


def print_solution(
    title: str, ambiguity: Ambiguity, solution: rm.Solution, rows: int, last: Sequence[str] = (), *, word: str = "value"
) -> None:
    """The first states with action, value and bounds where there are any, and how the run ended."""
    certified = math.isfinite(solution.error_bound)
    digits = 4
    if certified and solution.error_bound > 0:
        digits = max(4, min(12, 1 - math.floor(math.log10(solution.error_bound))))
    kind = "" if ambiguity.is_nominal else "worst-case " if ambiguity.sign > 0 else "best-case "
    header = ("state", "action", f"{kind}{word}", *(("lower bound", "upper bound") if certified else ()))
    header += ("bias",) if certified and solution.gain is not None else ()
    columns, n_states = _first_states(solution, rows).columns(), solution.value.shape[-1]
    columns.pop("step", None)  # with several steps, the first of them is shown
    shares = columns.pop("probability", None)
    if shares is not None:
        columns["action"] = [choice_text(str(a), p) for a, p in zip(columns["action"], shares, strict=True)]
    listed = list(columns.values())[: len(header)]

    def cells_of(state: int) -> list[str]:
        name, action, *numbers = (column[state] for column in listed)
        return [str(name), str(action), *(_fixed(number, digits) for number in numbers)]

    cells = [cells_of(state) for state in range(min(rows, n_states))]
    right = [place > 1 for place in range(len(header))]
    print_rows(f"{title}\n{ambiguity}", header, cells, limit=rows, total=n_states, things=" states", numbers=right)
    if certified and solution.confidence is not None and solution.visits is not None:
        state, _, middle, low, high = cells_of(int(solution.visits.sum(axis=1).argmax()))
        chance = f"{100 * solution.confidence:g} % confidence; the bounds of all states hold at once"
        say(f"value at state {state}: {middle}, between {low} and {high} with {chance}")
    is_random = shares is not None and bool(solution.policy.max(axis=-1).min() < 1.0)
    random = ["The policy is random: a number beside an action is its probability; --out has all of them."] * is_random
    steps = ["The table is about the first step; --out and --json have all steps."] if solution.value.ndim > 1 else []
    for sentence in (*last, *steps, *random, *notes_on(ambiguity), str(solution.status)):
        say(sentence)


def _first_states(solution: rm.Solution, count: int) -> rm.Solution:
    """A solution without its other states, of which there may be millions; all of them where one is picked later on."""
    if solution.value.ndim > 1 or solution.confidence is not None:
        return solution
    names = ("value", "lower", "upper", "policy", "gain", "gain_lower", "gain_upper")
    found = {name: getattr(solution, name) for name in names}
    return replace(solution, **{name: array[:count] for name, array in found.items() if array is not None})


def notes_on(*sets: Ambiguity) -> list[str]:
    """What a reader of the result must know of the sets behind it."""
    inventive = any(each.invents for each in sets)
    return ["Nature may use transitions that the model does not have, at the mean reward of the pair."] * inventive


def _fixed(number: float, digits: int) -> str:
    """Without the sign of a rounded zero."""
    text = f"{number:.{digits}f}"
    return text.lstrip("-") if float(text) == 0.0 else text


def solution_record(problem: str, mdp: rm.MDP, ambiguity: Ambiguity, solution: rm.Solution) -> dict[str, Any]:
    """What `solve` found, without Q, which is as large as the rest times the actions."""
    gains = {name: getattr(solution, name) for name in ("gain", "gain_lower", "gain_upper")}
    return {
        "problem": problem,
        "ambiguity": repr(ambiguity),
        "meaning": str(ambiguity),
        "invents_transitions": ambiguity.invents,
        "discount": mdp.discount,
        "status": solution.status.code,
        "message": solution.status.sentence,
        "steps": solution.steps,
        "error_bound": solution.error_bound,
        "states": list(mdp.state_names) if mdp.state_names else None,
        "actions": list(mdp.action_names) if mdp.action_names else None,
        "policy": solution.policy,
        "value": solution.value,
        "lower": solution.lower,
        "upper": solution.upper,
        **(gains if solution.gain is not None else {}),
    }
