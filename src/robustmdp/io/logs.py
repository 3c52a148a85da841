"""Logs of what happened, read in blocks: CSV, Parquet, Minari."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp.io.arrow import are_text, check_chunks, parquet_file, whole_batches
from robustmdp.io.delimited import NUMBER, TEXT, WHOLE, CsvFile
from robustmdp.models.frames import from_arrow
from robustmdp.models.headers import find_log_columns
from robustmdp.models.naming import Named
from robustmdp.models.trajectory import Trajectory
from robustmdp.models.transitions import BLOCK, INDICES, WINDOW, RawColumns, Source, fingerprint

_FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_MEGABYTE = 1 << 20
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
    if not file.is_dir():
        _checks.file_there(file)
    _checks.must(file.is_file(), f"path must be a file: {path} is a folder")
    if format is None:
        format = _FORMATS.get(file.suffix.lower())
        _checks.must(format is not None, f"a log must end in .csv or .parquet, or say its format: got {file.name!r}")
    if format == "csv":
        return _Csv.open(file, columns or {})
    if format == "parquet":
        return _Parquet.open(file, columns or {})
    _checks.nearest("format", str(format), ("csv", "parquet"))


def _file_fingerprint(path: Path, columns: Mapping[str, str]) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(_MEGABYTE)
        file.seek(max(size - _MEGABYTE, 0))
        return fingerprint(size, str(sorted(columns.items())), first, file.read())


@dataclass(frozen=True)
class _Csv:
    """A CSV file, one transition per line after a line of names."""

    file: CsvFile
    columns: dict[str, str]
    named: Named
    window = WINDOW
    kept_length = 0
    # Counting the lines would mean to read them all; that a scan for n_states has done so must not change the answer.
    length = None

    @staticmethod
    def open(path: Path, columns: Mapping[str, str | None]) -> _Csv:
        file = CsvFile.open(path)
        found = find_log_columns(columns, file.header, path.name)
        return _Csv(file, found, file.named(found))

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def expected_length(self) -> int:
        """The filled lines after the header, counted without reading what they say."""
        with self.file.path.open("rb") as file:
            return max(1, sum(1 for line in file if not line.isspace()) - 1)

    @property
    def fingerprint(self) -> str:
        return _file_fingerprint(self.file.path, self.columns)

    def sizes(self) -> None:
        return None

    def place(self, name: str, row: int) -> str:
        return self.file.place(row)

    def blocks(self, start: int, names: Sequence[str]) -> Iterator[RawColumns]:
        states, actions = (TEXT if named else WHOLE for named in self.named)
        kinds = {"state": states, "action": actions, "next_state": states, "reward": NUMBER, "terminated": TEXT}
        return self.file.blocks({name: self.columns[name] for name in names if name in self.columns}, kinds, start)


@dataclass(frozen=True)
class _Parquet:
    """A Parquet file, one transition per row."""

    path: Path
    columns: dict[str, str]
    named: Named
    window = WINDOW
    kept_length = 0

    @staticmethod
    def open(path: Path, columns: Mapping[str, str | None]) -> _Parquet:
        with parquet_file(path) as file:
            found = find_log_columns(columns, file.schema_arrow.names, path.name)
            rows = file.metadata.num_rows
            named = are_text(file.schema_arrow, found)
            check_chunks(file, path, found.values())
        _checks.must(rows > 0, f"{path.name} must hold at least one transition: got none")
        return _Parquet(path, found, named)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def length(self) -> int:
        with parquet_file(self.path) as file:
            return int(file.metadata.num_rows)

    @property
    def expected_length(self) -> int:
        return self.length

    @property
    def fingerprint(self) -> str:
        return _file_fingerprint(self.path, self.columns)

    def sizes(self) -> tuple[int, int] | None:
        """From the statistics that most writers leave in the file."""
        with parquet_file(self.path) as file:
            groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        largest: dict[str, int] = {}
        for name in INDICES:
            for group in groups:
                try:
                    columns = {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}
                except UnicodeDecodeError:
                    return None
                statistics = getattr(columns.get(self.columns[name]), "statistics", None)
                top = statistics.max if statistics is not None and statistics.has_min_max else None
                if group.num_rows > 0 and not (isinstance(top, int) and top >= 0):
                    return None
                largest[name] = max(largest.get(name, 0), top or 0)
        return max(largest["state"], largest["next_state"]) + 1, largest["action"] + 1

    def place(self, name: str, row: int) -> str:
        return f"row {row} of {self.name}"

    def blocks(self, start: int, names: Sequence[str]) -> Iterator[RawColumns]:
        own = {name: self.columns[name] for name in names if name in self.columns}
        with parquet_file(self.path, own.values()) as file:
            group = 0
            while group < file.metadata.num_row_groups and start >= file.metadata.row_group(group).num_rows:
                start -= file.metadata.row_group(group).num_rows
                group += 1
            groups = range(group, file.metadata.num_row_groups)
            batches = file.iter_batches(BLOCK, groups, list(own.values()), use_threads=False) if groups else ()
            for batch in whole_batches(batches, self.name):
                kept = batch.slice(start)
                start = max(start - batch.num_rows, 0)
                if kept.num_rows:
                    yield {name: from_arrow(kept.column(column)) for name, column in own.items()}


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
