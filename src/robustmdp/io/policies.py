"""Solutions to files, and policies back from them or from a user's own."""

from __future__ import annotations

import csv
import difflib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp._arrays import FloatArray, IntArray
from robustmdp._files import replace_file
from robustmdp.io.arrow import check_chunks, check_rows, parquet_file, whole_batches
from robustmdp.io.tables import format_of, write_csv, write_parquet
from robustmdp.io.text import is_number, listed, quote_error, shown
from robustmdp.models import MDP
from robustmdp.result import Solution
from robustmdp.table import Table

_MOST_NAMES = 10_000  # that a wrong one is compared with
_COLUMNS = ("step", "state", "action", "probability")  # of a policy; all others are left alone


def write_solution(solution: Solution, path: Path, format: str | None = None) -> Path:
    """A row per state and step, or per action that a stochastic policy takes; see `robustmdp.io.write`."""
    kind = format_of(path, format, "a solution")
    columns = _columns(solution)
    with replace_file(path) as part:
        if kind == "json":
            part.write_bytes(msgspec.json.encode(_record(solution, columns)) + b"\n")
        else:
            _write_columns(columns, part, kind)
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


def _record(solution: Solution, columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    """One JSON object: how it ended, and the columns; null stands for a bound that is not finite."""
    return {
        "status": solution.status.code,
        "message": solution.status.sentence,
        "steps": solution.steps,
        "samples": solution.samples,
        "error_bound": solution.error_bound,
        "confidence": solution.confidence,
        **columns,
    }


def _write_columns(columns: Mapping[str, list[Any]], part: Path, kind: str) -> None:
    # Names are objects, since an array of strings would cut off their last zeros.
    arrays = {
        name: np.array(column, object) if isinstance(column[0], str) else np.array(column)
        for name, column in columns.items()
    }
    write = {"csv": write_csv, "parquet": write_parquet}[kind]
    write(Table(arrays), part)


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
    _checks.must(not file.is_dir(), f"path must be a file: {path} is a folder")
    _checks.file_there(file)
    table = {"csv": _read_csv, "parquet": _read_parquet, "json": _read_json}[kind](file)
    for name in ("state", "action"):
        if name not in table:
            _checks.fail(f"{file.name} must have a column {name!r}: it has {listed(list(table)) or 'none'}")
    _checks.must(len(table["state"]) > 0, f"{file.name} must hold at least one state: got none")
    states = _indices("state", table["state"], mdp.state_names, mdp.n_states, file.name)
    actions = _indices("action", table["action"], mdp.action_names, mdp.n_actions, file.name)
    available = np.zeros((mdp.n_states, mdp.n_actions), bool)
    available[mdp.states, mdp.actions] = True
    wrong = np.flatnonzero(~available[states, actions])
    if wrong.size:
        row = int(wrong[0])
        action, state = mdp.action_name(int(actions[row])), mdp.state_name(int(states[row]))
        _checks.fail(f"action must be available: {action!r} is not in {state!r} at row {row} of {file.name}")
    decisions = _decisions(table, states, mdp, file.name)
    if "probability" not in table:
        return _deterministic(decisions, actions)
    return _stochastic(decisions, actions, table["probability"])


@dataclass(frozen=True)
class _Decisions:
    """What a file decides on: number n_states * step + state of each row, without steps the state."""

    rows: IntArray
    n_steps: int | None
    mdp: MDP
    file: str

    @property
    def shape(self) -> tuple[int, ...]:
        """(S,) or (T, S)"""
        return (self.mdp.n_states,) if self.n_steps is None else (self.n_steps, self.mdp.n_states)

    def counts(self) -> IntArray:
        """How many rows each of them has."""
        return np.bincount(self.rows, minlength=math.prod(self.shape))

    def name(self, decision: int) -> str:
        """The state, and the step where there are several."""
        step, state = divmod(decision, self.mdp.n_states)
        return repr(self.mdp.state_name(state)) + ("" if self.n_steps is None else f" at step {step}")

    def check_complete(self) -> None:
        """Each of them needs a row."""
        missing = np.flatnonzero(self.counts() == 0)
        if missing.size:
            _checks.fail(f"every state must have an action: {self.name(int(missing[0]))} has none in {self.file}")


def _decisions(table: Mapping[str, list[Any]], states: IntArray, mdp: MDP, file: str) -> _Decisions:
    if "step" not in table:
        return _Decisions(states, None, mdp, file)
    steps = _indices("step", table["step"], None, len(states), file)  # as many steps as rows at the most
    present = np.unique(steps)
    gaps = np.flatnonzero(present != np.arange(len(present)))
    if gaps.size:
        _checks.fail(f"steps must count from 0 without a gap: step {gaps[0]} is missing in {file}")
    return _Decisions(steps * mdp.n_states + states, len(present), mdp, file)


def _deterministic(decisions: _Decisions, actions: IntArray) -> IntArray:
    twice = np.flatnonzero(decisions.counts() > 1)
    if twice.size:
        _checks.fail(
            f"a state must come once, or with a probability: {decisions.name(int(twice[0]))} came again "
            f"at row {np.flatnonzero(decisions.rows == twice[0])[1]} of {decisions.file}"
        )
    decisions.check_complete()
    policy = np.empty(decisions.shape, np.int64)
    policy.ravel()[decisions.rows] = actions
    return policy


def _stochastic(decisions: _Decisions, actions: IntArray, given: Sequence[Any]) -> FloatArray:
    mdp, name = decisions.mdp, decisions.file
    policy = np.full((math.prod(decisions.shape), mdp.n_actions), np.nan)
    for row, (decision, action, entry) in enumerate(zip(decisions.rows.tolist(), actions.tolist(), given, strict=True)):
        probability = _number(entry)
        if not 0.0 <= probability <= 1.0:
            _checks.fail(f"probability must lie in 0..1: got {shown(entry)} at row {row} of {name}")
        if not np.isnan(policy[decision, action]):
            _checks.fail(
                f"a state and an action must come together once: {decisions.name(decision)} and "
                f"{mdp.action_name(action)!r} came again at row {row} of {name}"
            )
        policy[decision, action] = probability
    decisions.check_complete()
    policy[np.isnan(policy)] = 0.0
    sums = policy.sum(axis=1)
    if (wrong := _checks.wrong_sums(sums)).size:
        decision = int(wrong[0])
        _checks.fail(
            f"the probabilities of {decisions.name(decision)} in {name} must sum to 1: got {sums[decision]:.9g}"
        )
    return policy.reshape(*decisions.shape, mdp.n_actions)


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
