"""Logs of what happened, read in blocks: CSV, Parquet, Minari."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp.io.table_files import CsvTable, FindColumns, ParquetTable
from robustmdp.models.headers import find_log_columns
from robustmdp.models.trajectory import Trajectory
from robustmdp.models.transitions import WINDOW, RawColumns, Source, fingerprint

_FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_TABLES: dict[str, Callable[[Path, FindColumns], CsvTable | ParquetTable]]
_TABLES = {"csv": CsvTable.open, "parquet": ParquetTable.open}
_KEPT = 20_000_000  # transitions of a Minari dataset that a replay keeps, 420 MB: its episodes are read one by one


def read_log(
    path: Any,
    *,
    n_states: int | None = None,
    n_actions: int | None = None,
    discount: float | None = None,
    columns: Mapping[str, str | None] | None = None,
    format: str | None = None,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
) -> Trajectory:
    r"""A log of transitions, streamed: memory does not depend on its length.

    It is checked while it is read. Errors name the line of a CSV file, or the row of another log, counted from 0.

    States and actions are whole numbers from 0 on, or names: a CSV file has names of states where neither the state nor
    the next state of its first row is a number, names of actions where the action is none; a Parquet file where the
    columns hold text. Names are numbered in the order of their letters, which does not depend on the order of rows; the
    file is read once more to find them.

    Parameters
    ----------
    path : a .csv or .parquet file, "minari:ID" for a local Minari dataset, or a `minari.MinariDataset`
        A Minari dataset needs discrete observations and actions; they are counted from the start of their spaces.
        A replay of up to 20 million transitions reads it once and keeps them, at 21 bytes each.
    n_states, n_actions : the largest index + 1 by default
        Parquet files tell it in their statistics; any other file is read once more, for its indices alone.
    columns : what the file calls them, as in {"state": "s_t"}
        By default state (observation, obs, s), action (act, a), reward (rew, r), next_state (next_observation,
        next_obs, s_next) and terminated (terminal). Without the last no transition ends the episode. `done` is not
        taken for it, since it often marks time limits too: say {"terminated": "done"}, or {"terminated": None}.
    format : "csv" or "parquet", by default from the extension
    state_names, action_names : the names by number, as in `model.state_names`, instead of those of the file, sorted
        Others in the file are refused. For a log with numbers: what these are called.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "log.csv")
    >>> _ = file.write_text("state,action,reward,next_state\n0,1,0.5,1\n1,0,2,0\n")
    >>> log = read_log(file, discount=0.9)
    >>> log.n_states, log.n_actions, [piece.reward.tolist() for piece in log.chunks()]
    (2, 2, [[0.5, 2.0]])
    >>> _ = file.write_text("state,action,reward,next_state\nnew,run,0.5,worn\nworn,fix,2,new\n")
    >>> read_log(file).state_names
    ('new', 'worn')
    """
    _types.check_arguments(read_log, locals())
    return Trajectory.from_source(
        _source(path, columns, format),
        n_states=n_states,
        n_actions=n_actions,
        discount=discount,
        state_names=state_names,
        action_names=action_names,
    )


def _source(path: Any, columns: Mapping[str, str | None] | None, format: str | None) -> Source:
    if hasattr(path, "iterate_episodes") or str(path).startswith("minari:"):
        _checks.must(columns is None, f"columns must be left out, since Minari names its own: got {columns!r}")
        return _Minari(path if hasattr(path, "iterate_episodes") else _local_dataset(str(path)[len("minari:") :]))
    if not isinstance(path, str | os.PathLike):
        _checks.refuse_type("path", "a path or a Minari dataset", path)
    file = Path(os.fspath(path)).absolute()
    _checks.file_there(file)
    if format is None:
        format = _FORMATS.get(file.suffix.lower())
        _checks.must(format is not None, f"a log must end in .csv or .parquet, or say its format: got {file.name!r}")
    if format not in _TABLES:
        _checks.nearest("format", str(format), _TABLES)
    return _TABLES[format](file, partial(find_log_columns, columns or {}))


@dataclass(frozen=True, eq=False)
class _Minari:
    """A Minari dataset with discrete observations and actions."""

    dataset: Any
    named = (False, False)
    window = WINDOW
    kept_length = _KEPT

    def __post_init__(self) -> None:
        for kind in ("observation", "action"):
            space = getattr(self.dataset, f"{kind}_space")
            _checks.must(
                hasattr(space, "n") and hasattr(space, "start"),
                f"{self.name} must have a discrete {kind} space: got {space}",
            )
        _checks.must(self.length > 0, f"{self.name} must hold at least one transition: got none")

    @property
    def name(self) -> str:
        return f"minari:{self.dataset.id}"

    @property
    def length(self) -> int:
        return int(self.dataset.total_steps)

    @property
    def expected_length(self) -> int:
        return self.length

    @property
    def fingerprint(self) -> str:
        ends = (self.dataset[index] for index in (0, -1))
        parts = (np.ascontiguousarray(part) for end in ends for part in (end.observations, end.actions, end.rewards))
        return fingerprint(self.length, len(self.dataset), *parts)

    def sizes(self) -> tuple[int, int]:
        return int(self.dataset.observation_space.n), int(self.dataset.action_space.n)

    def place(self, name: str, row: int) -> str:
        return f"row {row} of {self.name}"

    def blocks(self, start: int, names: Sequence[str]) -> Iterator[RawColumns]:
        row = 0
        for index in self.dataset.episode_indices:
            # One by one, because some storages open all the episodes that they are asked for.
            (episode,) = self.dataset.iterate_episodes([index])
            columns = self._columns(episode)
            count = len(columns["action"])
            skipped = max(start - row, 0)
            if skipped < count:
                yield {name: columns[name][skipped:] for name in names}
            row += count
        _checks.must(row == self.length, f"{self.name} must hold the {self.length} steps that it tells of: got {row}")

    def _columns(self, episode: Any) -> dict[str, npt.NDArray[Any]]:
        states = np.asarray(episode.observations) - self.dataset.observation_space.start
        actions = np.asarray(episode.actions) - self.dataset.action_space.start
        _checks.must(
            len(states) == len(actions) + 1,
            f"episode {episode.id} of {self.name} must have one observation more than actions: "
            f"got {len(states)} and {len(actions)}",
        )
        return {
            "state": states[:-1],
            "action": actions,
            "reward": np.asarray(episode.rewards),
            "next_state": states[1:],
            "terminated": np.asarray(episode.terminations),
        }


def _local_dataset(name: str) -> Any:
    try:
        import minari

        return minari.load_dataset(name)
    except FileNotFoundError:
        _checks.fail(f"path must exist: Minari has no dataset {name!r} here (minari download {name})")
    except ImportError as error:
        raise ImportError(
            f"minari must be installed to read Minari datasets: pip install 'robustmdp[minari]' ({error})"
        ) from error
