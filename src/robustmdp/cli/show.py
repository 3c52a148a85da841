"""From objects to words: progress, tables, JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robustmdp.ambiguity import Ambiguity
    from robustmdp.models import MDP
    from robustmdp.result import Solution


def solve_with_progress(mdp: MDP, ambiguity: Ambiguity, **options: Any) -> Solution:
    """`solve` with a line on the terminal that says how far it is; silent where there is no terminal."""
    from rich.console import Console

    from robustmdp.planning import solve

    console = Console(stderr=True)
    with console.status("Preparing the kernels (the first run on a machine compiles them)") as status:

        def report(step: Any) -> None:
            status.update(f"Step {step.step}: certified error about {step.error_bound:.3g}")

        return solve(mdp, ambiguity, callback=report, **options)


def print_table(problem: str, mdp: MDP, ambiguity: Ambiguity, solution: Solution, rows: int) -> None:
    """The first states with action, value and bounds, and how the run ended."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    digits = 4 if solution.error_bound == 0 else max(4, min(12, 1 + _decimals(solution.error_bound)))
    table = Table(title=f"{problem}, discount {mdp.discount:g}\n{ambiguity}", title_justify="left")
    table.add_column("state")
    table.add_column("action")
    for name in ("worst-case value", "lower bound", "upper bound"):
        table.add_column(name, justify="right")
    columns = solution.columns()
    for state, action, *numbers in list(zip(*columns.values(), strict=True))[:rows]:
        table.add_row(str(state), str(action), *(f"{number:.{digits}f}" for number in numbers))
    console.print(table)
    if mdp.n_states > rows:
        console.print(f"{mdp.n_states - rows:,} more states: use --rows {mdp.n_states} or --json to see all.")
    console.print(str(solution.status), highlight=False, soft_wrap=True)


def _decimals(bound: float) -> int:
    import math

    return max(0, -math.floor(math.log10(bound)))


def print_json(problem: str, mdp: MDP, ambiguity: Ambiguity, solution: Solution) -> None:
    """One object on one line; numbers at full precision, null where an action is unavailable."""
    import msgspec
    import numpy as np

    record = {
        "problem": problem,
        "ambiguity": repr(ambiguity),
        "discount": mdp.discount,
        "status": solution.status.code,
        "message": solution.status.sentence,
        "steps": solution.steps,
        "error_bound": solution.error_bound,
        "states": list(mdp.state_names) if mdp.state_names else None,
        "actions": list(mdp.action_names) if mdp.action_names else None,
        "policy": solution.policy.tolist(),
        "value": solution.value.tolist(),
        "lower": solution.lower.tolist(),
        "upper": solution.upper.tolist(),
        "q": np.where(np.isfinite(solution.q), solution.q, np.nan).tolist(),
    }
    sys.stdout.buffer.write(msgspec.json.encode(record) + b"\n")
    sys.stdout.flush()
