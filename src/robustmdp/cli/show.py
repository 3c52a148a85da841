"""From objects to words: tables and JSON."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robustmdp.ambiguity import Ambiguity
    from robustmdp.models import MDP
    from robustmdp.result import Solution
    from robustmdp.table import Table


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


def print_rows(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]], *, limit: int | None = None) -> None:
    """A table; numbers to the right, with four digits."""
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console()
    grid = Grid(title=title, title_justify="left")
    numeric = [
        bool(rows) and isinstance(cell, (int, float)) and not isinstance(cell, bool)
        for cell in (rows[0] if rows else header)
    ]
    for place, (name, number) in enumerate(zip(header, numeric, strict=True)):
        grid.add_column(name, justify="right" if number else "left", no_wrap=place == 0 or number)
    for row in rows[:limit]:
        grid.add_row(*(shown(cell) for cell in row))
    console.print(grid)
    if limit is not None and len(rows) > limit:
        say(f"{len(rows) - limit:,} more: use --rows {len(rows)} or --json to see all.")


def shown(cell: Any) -> str:
    """A cell of a table."""
    if isinstance(cell, bool):
        return "yes" if cell else ""
    return f"{cell:.4g}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)


def say(sentence: str) -> None:
    """A line of plain text."""
    from rich.console import Console

    Console().print(sentence, highlight=False, soft_wrap=True, markup=False)


def print_solution(title: str, ambiguity: Ambiguity, solution: Solution, rows: int, last: Sequence[str] = ()) -> None:
    """The first states with action, value and bounds where there are any, and how the run ended."""
    certified = math.isfinite(solution.error_bound)
    digits = 4 if not certified or solution.error_bound == 0 else max(4, min(12, 1 + _decimals(solution.error_bound)))
    header = ("state", "action", "worst-case value", *(("lower bound", "upper bound") if certified else ()))
    table = list(zip(*list(solution.columns().values())[: len(header)], strict=True))
    cells = [(str(s), str(a), *(f"{number:.{digits}f}" for number in numbers)) for s, a, *numbers in table]
    _print_states(f"{title}\n{ambiguity}", header, cells, rows)
    for sentence in (*last, str(solution.status)):
        say(sentence)


def _print_states(title: str, header: Sequence[str], cells: Sequence[Sequence[str]], limit: int) -> None:
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console()
    grid = Grid(title=title, title_justify="left")
    for place, name in enumerate(header):
        grid.add_column(name, justify="left" if place < 2 else "right")
    for row in cells[:limit]:
        grid.add_row(*row)
    console.print(grid)
    if len(cells) > limit:
        say(f"{len(cells) - limit:,} more states: use --rows {len(cells)} or --json to see all.")


def _decimals(bound: float) -> int:
    return max(0, -math.floor(math.log10(bound)))


def solution_record(problem: str, mdp: MDP, ambiguity: Ambiguity, solution: Solution) -> dict[str, Any]:
    """All that `solve` found."""
    return {
        "problem": problem,
        "ambiguity": repr(ambiguity),
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
        "q": solution.q,
    }
