"""What the columns of tables are called: logs of transitions, and models as craam writes them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from robustmdp import _checks
from robustmdp._display import listed

LOG_COLUMNS = {
    "state": ("state", "observation", "obs", "s"),
    "action": ("action", "act", "a"),
    "reward": ("reward", "rew", "r"),
    "next_state": ("next_state", "next_observation", "next_obs", "s_next"),
    "terminated": ("terminated", "terminal"),
}
MODEL_COLUMNS = {
    "state": "idstatefrom",
    "action": "idaction",
    "next_state": "idstateto",
    "probability": "probability",
    "reward": "reward",
}
OUTCOME = "idoutcome"
ENDINGS = (*LOG_COLUMNS["terminated"], "done")  # what a column that marks endings may be called
_TIMES = ("done", "truncated", "truncation", "timeout", "episode", "episode_id", "step", "timestep", "time", "t")
# No model has these: the other names of a log's columns, and those that tell when something happened.
_ONLY_IN_LOGS = {*_TIMES, *(name for names in LOG_COLUMNS.values() for name in names)} - set(MODEL_COLUMNS)


def kind_of_table(names: Iterable[str]) -> Literal["log", "model", "either", None]:
    """What a table holds, by the names of its columns; None where these are neither a log's nor a model's.

    The columns state, action, next_state, reward and probability are those of a model and of a log that tells how
    likely its actions were. With a column that only a log has, it is a log.

    >>> rows = ["state", "action", "reward", "next_state"]
    >>> kind_of_table(rows), kind_of_table([*rows, "probability"]), kind_of_table([*rows, "probability", "step"])
    ('log', 'either', 'log')
    """
    present = set(names)
    if MODEL_COLUMNS["state"] in present:
        return "model"
    if present.issuperset(MODEL_COLUMNS) and not present & _ONLY_IN_LOGS:
        return "either"
    return "log" if any(present.intersection(LOG_COLUMNS[name]) for name in ("state", "action", "next_state")) else None


def find_log_columns(given: Mapping[str, str | None], present: Sequence[str], file: str) -> dict[str, str]:
    """What the file calls each column."""
    for name, own in given.items():
        if name not in LOG_COLUMNS:
            _checks.nearest("a key of columns", name, LOG_COLUMNS, argument="columns")
        if own is not None and own not in present:
            _checks.nearest(f"the {name} column of {file}", own, present)
    known = dict(given)
    for name in LOG_COLUMNS:
        known.setdefault(name, next((own for own in LOG_COLUMNS[name] if own in present), None))
    for name in list(LOG_COLUMNS)[:4]:
        if known[name] is None:
            free = [own for own in present if own not in known.values()]
            close = difflib.get_close_matches(name, free, n=1)
            advice = f"; is it columns={{{name!r}: {close[0]!r}}}?" if close else ""
            _checks.fail(
                f"{file} must have a column {name!r}: it has {listed(present)}",
                argument="header" if close else "",
                advice=advice,
                name=name,
                own="".join(close),
            )
    found = {name: own for name, own in known.items() if own is not None}
    for own in found.values():
        _checks.must(list(present).count(own) == 1, f"the columns of {file} must all differ: {own!r} came twice")
    if "terminated" not in given and "terminated" not in found and "done" in present:
        _checks.fail(
            f"columns must say what 'done' in {file} means",
            advice=": {'terminated': 'done'} if it marks true endings only, {'terminated': None} to leave it out",
        )
    return found


def find_model_columns(present: Sequence[str], name: str) -> dict[str, str]:
    """What the columns of a file are, by craam's names or those of `MDP.from_rows`; with the outcome if it has one."""
    columns = {ours: ours if ours in present and own not in present else own for ours, own in MODEL_COLUMNS.items()}
    for own in columns.values():
        if own not in present:
            close = difflib.get_close_matches(own, present, n=1)
            is_log = kind_of_table(present) == "log"
            hint = f"; is it {close[0]!r}?" if close else "; rm.estimate makes a model of a log" if is_log else ""
            _checks.fail(f"{name} must have a column {own!r}: it has {listed(present)}{hint}")
    columns |= {"outcome": OUTCOME} if OUTCOME in present else {}
    for own in columns.values():
        _checks.must(present.count(own) == 1, f"the columns of {name} must all differ: {own!r} came twice")
    return columns
