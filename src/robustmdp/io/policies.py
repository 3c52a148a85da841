"""Solutions to files, and policies back from them or from a user's own."""

from __future__ import annotations

import csv
import difflib
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp._arrays import IntArray
from robustmdp._files import replace_file
from robustmdp.io.arrow import check_chunks, check_rows, parquet_file, whole_batches
from robustmdp.io.tables import WRITERS, format_of
from robustmdp.io.text import is_number, listed, quote_error, shown
from robustmdp.models import MDP
from robustmdp.result import Solution
from robustmdp.table import Table

_MOST_NAMES = 10_000  # that a wrong one is compared with
_COLUMNS = ("step", "state", "action", "probability")  # of a policy; all others are left alone


def write_solution(solution: Solution, path: Path, format: str | None = None) -> Path:
    """A row per state and step, or per action that a stochastic policy takes; see `robustmdp.io.write`.

    JSON is one object: how it ended, and the columns; null stands for a bound that is not finite.
    """
    kind = format_of(path, format, "a solution")
    columns = _columns(solution)
    with replace_file(path) as part:
        if kind == "json":
            record = {
                "status": solution.status.code,
                "message": solution.status.sentence,
                "steps": solution.steps,
                "samples": solution.samples,
                "error_bound": solution.error_bound,
                "confidence": solution.confidence,
            }
            part.write_bytes(msgspec.json.encode(record | columns) + b"\n")
        else:
            # Names are objects, since an array of strings would cut off their last zeros.
            kinds = {name: object if isinstance(column[0], str) else None for name, column in columns.items()}
            WRITERS[kind](Table({name: np.array(column, kinds[name]) for name, column in columns.items()}), part)
    return path


def _columns(solution: Solution) -> dict[str, list[Any]]:
    """Those of `Solution.columns`; with the step, or the probability of an action, where there are several."""
    columns = solution.columns()
    if solution.status.code == "interrupted":  # a table has no other place for it
        columns["status"] = [solution.status.code] * len(columns["state"])
    if solution.policy.dtype.kind != "f":
        return columns
    world = solution.adversary.mdp
    n_actions = solution.policy.shape[-1]
    # A policy that serves all steps is written for each of them.
    steps = len(solution.value) - 1 if solution.value.ndim == 2 else 1
    policy = np.broadcast_to(solution.policy, (steps, world.n_states, n_actions)).reshape(-1, n_actions)
    rows, actions = (index.tolist() for index in np.nonzero(policy))
    out = {name: [column[row] for row in rows] for name, column in columns.items()}
    out["action"] = [world.action_name(a) for a in actions] if world.action_names else actions
    out["probability"] = policy[rows, actions].tolist()
    first = ("step", *_COLUMNS)
    return {name: out[name] for name in (*first, *columns) if name in out}


def read_policy(path: str | os.PathLike[str], mdp: MDP, *, format: str | None = None) -> npt.NDArray[Any]:
    """The policy of a solution that `write` left in a file, or of a user's own table, for this model.

    Parameters
    ----------
    path : .csv, .parquet or .json with columns state and action, by name or number, and perhaps probability and step
        Each state must come once, or with a probability once for each of its actions; with steps, which count from 0,
        at each step. Other columns do not matter.
    mdp : the model that it is for

    Returns
    -------
    (S,) int64 actions, or (S, A) float64 probabilities; with steps (T, S) or (T, S, A)

    >>> import pathlib, tempfile
    >>> import robustmdp as rm
    >>> machine = rm.problems.machine_replacement()
    >>> solution = rm.solve(machine, rm.Nominal(), criterion=rm.FiniteHorizon(3))
    >>> file = write_solution(solution, pathlib.Path(tempfile.mkdtemp(), "policy.csv"))
    >>> bool((read_policy(file, machine) == solution.policy).all()), solution.policy.shape
    (True, (3, 10))
    """
    _types.check_arguments(read_policy, locals())
    file = Path(os.fspath(path))
    kind = format_of(file, format, "a policy")
    _checks.file_there(file)
    table = {"csv": _read_csv, "parquet": _read_parquet, "json": _read_json}[kind](file)
    for name in ("state", "action"):
        if name not in table:
            _checks.fail(f"{file.name} must have a column {name!r}: it has {listed(list(table)) or 'none'}")
    _checks.must(len(table["state"]) > 0, f"{file.name} must hold at least one state: got none")
    states = _indices("state", table["state"], mdp.state_names, mdp.n_states, file.name)
    actions = _indices("action", table["action"], mdp.action_names, mdp.n_actions, file.name)
    _check_available(mdp, states, actions, file.name)
    steps = None
    if "step" in table:
        steps = _indices("step", table["step"], None, len(states), file.name)  # as many steps as rows at the most
        gap = _first_gap(steps, int(steps.max()) + 1)
        _checks.must(gap is None, f"steps must count from 0 without a gap: step {gap} is missing in {file.name}")
    return _policy(mdp, steps, states, actions, table.get("probability"), file.name)


def _check_available(mdp: MDP, states: IntArray, actions: IntArray, file: str) -> None:
    available = np.zeros((mdp.n_states, mdp.n_actions), bool)
    available[mdp.states, mdp.actions] = True
    wrong = np.flatnonzero(~available[states, actions])
    if wrong.size:
        row = int(wrong[0])
        action, state = mdp.action_name(int(actions[row])), mdp.state_name(int(states[row]))
        _checks.fail(f"action must be available: {action!r} is not in {state!r} at row {row} of {file}")


def _policy(
    mdp: MDP, steps: IntArray | None, states: IntArray, actions: IntArray, given: Sequence[Any] | None, file: str
) -> npt.NDArray[Any]:
    """From the rows of a table, whose probabilities are `given` where there are some."""
    shape = (mdp.n_states,) if steps is None else (int(steps.max()) + 1, mdp.n_states)
    decisions = states if steps is None else steps * mdp.n_states + states

    def name(decision: int) -> str:
        step, state = divmod(decision, mdp.n_states)
        return repr(mdp.state_name(state)) + ("" if steps is None else f" at step {step}")

    keys = decisions if given is None else decisions * mdp.n_actions + actions
    shares = np.array([_number(entry) for entry in given or ()])
    if wrong := np.flatnonzero(~((shares >= 0.0) & (shares <= 1.0))).tolist():  # NaN compares false
        _checks.fail(f"probability must lie in 0..1: got {shown((given or ())[wrong[0]])} at row {wrong[0]} of {file}")
    again = np.setdiff1d(np.arange(len(keys)), np.unique(keys, return_index=True)[1])
    if again.size:
        row = int(again[0])
        must, who = "a state must come once, or with a probability", name(int(decisions[row]))
        if given is not None:
            must = "a state and an action must come together once"
            who += f" and {mdp.action_name(int(actions[row]))!r}"
        _checks.fail(f"{must}: {who} came again at row {row} of {file}")
    missing = _first_gap(decisions, math.prod(shape))
    if missing is not None:
        _checks.fail(f"every state must have an action: {name(missing)} has none in {file}")
    if given is None:
        return actions[np.argsort(decisions)].reshape(shape)
    policy = np.zeros((math.prod(shape), mdp.n_actions))
    policy[decisions, actions] = shares
    sums = policy.sum(axis=1)
    if (wrong_sums := _checks.wrong_sums(sums)).size:
        decision = int(wrong_sums[0])
        _checks.fail(f"the probabilities of {name(decision)} in {file} must sum to 1: got {sums[decision]:.9g}")
    return policy.reshape(*shape, mdp.n_actions)


def _first_gap(numbers: IntArray, count: int) -> int | None:
    """The first of 0..count-1 that is not among these, without memory for all of them."""
    present = np.unique(numbers)
    gaps = np.flatnonzero(present != np.arange(len(present)))
    if gaps.size:
        return int(gaps[0])
    return len(present) if len(present) < count else None


def _indices(kind: str, column: Sequence[Any], names: Sequence[str] | None, size: int, file: str) -> IntArray:
    """Numbers of states or actions, given by their names or, if not all of them are names, by their numbers."""
    known = {name: number for number, name in enumerate(names or ())}
    if known and all(isinstance(entry, str) and entry in known for entry in column):
        return np.array([known[entry] for entry in column], np.int64)
    numbers = np.array([_number(entry) for entry in column])
    whole = numbers == np.floor(numbers)  # NaN compares false
    if not whole.all():
        strange = (row for row in np.flatnonzero(~whole).tolist() if str(column[row]) not in known)
        row = next(strange, -1)
        _checks.must(row >= 0, f"the {kind}s in {file} must all be names, or all be numbers: got both")
        wanted = "a name or a number of the model's" if known else "a whole number"
        close = difflib.get_close_matches(str(column[row]), list(known)[:_MOST_NAMES], n=1, cutoff=0.4)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        _checks.fail(f"{kind} must be {wanted}: got {shown(column[row])} at row {row} of {file}{hint}")
    outside = (numbers < 0) | (numbers >= size)
    if outside.any():
        row = int(outside.argmax())
        _checks.fail(f"{kind} must lie in 0..{size - 1}: got {shown(column[row])} at row {row} of {file}")
    return numbers.astype(np.int64)


def _number(entry: Any) -> float:
    """NaN where it is none."""
    if isinstance(entry, str):
        return float(entry) if is_number(entry) else np.nan
    if isinstance(entry, bool) or not isinstance(entry, (int, float)):
        return np.nan
    try:
        return float(entry)
    except OverflowError:  # a whole number of hundreds of digits
        return np.nan


def _read_csv(path: Path) -> dict[str, list[Any]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = list(csv.reader(file)) or [[]]
    except (csv.Error, UnicodeDecodeError) as error:
        _checks.fail(f"{path.name} must be a CSV file: {quote_error(error)}")
    header = [name.strip() for name in header]
    _checks.must(any(header), f"{path.name} must start with the names of its columns: got an empty line")
    rows = [row for row in rows if row]
    for number, row in enumerate(rows):
        if len(row) != len(header):
            _checks.fail(f"each row must have {len(header)} fields: got {len(row)} at row {number} of {path.name}")
    wanted = {name: header.index(name) for name in _found(header, path.name)}
    return {name: [row[position] for row in rows] for name, position in wanted.items()}


def _found(header: Sequence[str], name: str) -> list[str]:
    """The columns of a policy that are there."""
    for column in _COLUMNS:
        _checks.must(list(header).count(column) <= 1, f"the columns of {name} must all differ: {column!r} came twice")
    return [column for column in _COLUMNS if column in header]


def _read_parquet(path: Path) -> dict[str, list[Any]]:
    table: dict[str, list[Any]] = {}
    with parquet_file(path) as file:
        wanted = _found(file.schema_arrow.names, path.name)
        check_rows(file, path)
        check_chunks(file, path, wanted)
        for batch in whole_batches(file.iter_batches(columns=wanted), path.name):
            for name in wanted:
                table.setdefault(name, []).extend(batch.column(name).to_pylist())
    return table


def _read_json(path: Path) -> dict[str, list[Any]]:
    try:
        record = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _checks.fail(f"{path.name} must be a JSON object: {quote_error(error)}")
    table: dict[str, list[Any]] = {name: record[name] for name in _COLUMNS if name in record}
    for name, column in table.items():
        _checks.must(
            isinstance(column, list) and len(column) == len(next(iter(table.values()))),
            f"{name} in {path.name} must be a list with an entry per row",
        )
    return table
