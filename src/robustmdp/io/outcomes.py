"""Tables with several outcomes for a pair: a model for each."""

from __future__ import annotations

import numpy as np

from robustmdp import _checks
from robustmdp.io.columns import Columns, Source, in_memory
from robustmdp.io.meta import Meta
from robustmdp.io.rows import Read, model_of, name_of


def models_of(source: Source, meta: Meta | None, discount: float) -> list[Read]:
    """One per outcome number, in their order; each must be given at every pair."""
    columns = in_memory(source)
    if not len(columns.columns.outcome):
        return [model_of(columns, meta, discount)]
    largest = int(max(columns.columns.state.max(), columns.columns.next_state.max()))
    columns = columns.take(columns.columns.probability != 0)  # as in `model_of`
    outcome = columns.columns.outcome
    numbers = np.unique(outcome)
    _checks.must(numbers.size > 0, f"{source.name} must hold at least one transition: got none")
    _check_complete(columns, len(numbers))
    return [model_of(columns.take(outcome == number).of_size(largest + 1), meta, discount) for number in numbers]


def _check_complete(columns: Columns, count: int) -> None:
    state, action, _, _, _, outcome = columns.columns
    order = np.lexsort((outcome, action, state))
    new_pair = np.append(True, (np.diff(state[order]) != 0) | (np.diff(action[order]) != 0))
    new = new_pair | np.append(True, np.diff(outcome[order]) != 0)
    starts = np.flatnonzero(new_pair)
    lacking = np.flatnonzero(np.add.reduceat(new, starts, dtype=np.int64) != count)
    if lacking.size:
        row = order[starts[lacking[0]]]
        present = set(outcome[(state == state[row]) & (action == action[row])].tolist())
        missing = next(number for number in np.unique(outcome).tolist() if number not in present)
        _checks.fail(
            f"every outcome must be given at every pair: outcome {missing} is missing at state "
            f"{name_of(columns, 0, state[row])} and action {name_of(columns, 1, action[row])} of {columns.name} "
            f"({columns.place(int(row))})"
        )
