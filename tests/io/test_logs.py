"""Logs from CSV, Parquet and Minari: the same transitions as in memory, and refusals that name the place."""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import minari
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minari.data_collector import EpisodeBuffer

from robustmdp.io import logs, read_log, table_files
from robustmdp.models.trajectory import Trajectory
from robustmdp.models.transitions import Transitions

N, EPISODE = 60, 12
KINDS = ("arrays", "csv", "parquet", "minari")


def columns() -> dict[str, list[Any]]:
    """Five episodes of a walk over seven states; every other one is merely cut off."""
    rng = np.random.default_rng(0)
    walks = rng.integers(0, 7, (N // EPISODE, EPISODE + 1))
    walks[0, 0] = 6
    ends = np.zeros((N // EPISODE, EPISODE), dtype=bool)
    ends[::2, -1] = True
    return {
        "state": walks[:, :-1].ravel().tolist(),
        "action": [2, *rng.integers(0, 3, N - 1).tolist()],
        "reward": (np.arange(N) / 7).tolist(),
        "next_state": walks[:, 1:].ravel().tolist(),
        "terminated": ends.ravel().tolist(),
    }


def write_csv(path: Path, table: dict[str, list[Any]]) -> Path:
    lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_parquet(path: Path, table: dict[str, list[Any]], **how: Any) -> Path:
    pq.write_table(pa.table(table), path, **how)
    return path


def episodes(start: int = 0) -> list[EpisodeBuffer]:
    table = columns()
    parts = [slice(first, first + EPISODE) for first in range(0, N, EPISODE)]
    return [
        EpisodeBuffer(
            observations=[start + s for s in (*table["state"][part], table["next_state"][part][-1])],
            actions=table["action"][part],
            rewards=table["reward"][part],
            terminations=table["terminated"][part],
            truncations=[False] * (EPISODE - 1) + [not table["terminated"][part][-1]],
        )
        for part in parts
    ]


def write_minari(name: str, start: int = 0, data_format: str = "hdf5", **spaces: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about authors
        both = {
            "observation_space": gymnasium.spaces.Discrete(7, start=start),
            "action_space": gymnasium.spaces.Discrete(3),
        }
        return minari.create_dataset_from_buffers(name, episodes(start), data_format=data_format, **{**both, **spaces})


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("logs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(folder / "minari"))
        write_minari("walk-v0", start=3)
        yield {
            "arrays": Trajectory(**columns()),
            "csv": read_log(write_csv(folder / "log.csv", columns())),
            "parquet": read_log(write_parquet(folder / "log.parquet", columns(), row_group_size=7)),
            "minari": read_log("minari:walk-v0"),
        }


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "BLOCK", 8)  # full blocks of CSV files are parsed by pyarrow
    for source in (table_files.TableFile, logs._Minari):
        monkeypatch.setattr(source, "window", 25)


def everything(log: Trajectory, **how: Any) -> Transitions:
    pieces = list(log.chunks(**how))
    return Transitions(*map(np.concatenate, zip(*pieces, strict=True))) if pieces else Transitions(*[np.empty(0)] * 5)


def alike(one: Transitions, other: Transitions, start: int = 0) -> bool:
    return all(np.array_equal(a, b[start:]) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_all_sources_tell_the_same(sources: Any, kind: str) -> None:
    log = sources[kind]
    assert {name: column.tolist() for name, column in everything(log)._asdict().items()} == columns()
    assert (log.n_states, log.n_actions, log.expected_length) == (7, 3, N)
    assert log.length == (None if kind == "csv" else N)
    for piece in log.chunks(size=9):
        assert [column.dtype for column in piece] == [np.int64, np.int64, np.float64, np.int64, np.bool_]
        assert all(column.flags.c_contiguous and not column.flags.writeable for column in piece)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(size=st.integers(1, 70), start=st.integers(0, 2 * N + 5), passes=st.integers(0, 2))
def test_pieces_do_not_change_what_comes(sources: Any, kind: str, size: int, start: int, passes: int) -> None:
    log = sources[kind].replay(passes, seed=1) if passes else sources[kind]
    assert alike(everything(log, size=size, start=start), everything(log), start)


@pytest.mark.parametrize("kind", KINDS)
def test_replays(sources: Any, kind: str) -> None:
    log = sources[kind].replay(3, seed=5)
    assert log.length == (None if kind == "csv" else 3 * N)
    assert log.expected_length == 3 * N
    passes = [piece.reward for piece in log.chunks(size=N)]
    assert len(passes) == 3
    for one in passes:
        assert sorted(one) == columns()["reward"]
    assert not any(np.array_equal(passes[i], passes[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert alike(everything(sources[kind].replay(3, seed=5)), everything(log))
    assert not alike(everything(sources[kind].replay(3, seed=6)), everything(log))
    if kind != "arrays":  # no transition leaves its window
        assert max(np.abs(np.argsort(one) - np.arange(N)).max() for one in passes) < 25


@pytest.mark.parametrize("kind", KINDS)
def test_pickled(sources: Any, kind: str) -> None:
    again = pickle.loads(pickle.dumps(sources[kind].replay(2)))
    assert alike(everything(again), everything(sources[kind].replay(2)))
    assert again.fingerprint == sources[kind].replay(2).fingerprint


@pytest.mark.parametrize("kind", KINDS)
def test_shown(sources: Any, kind: str) -> None:
    name = {"arrays": "memory", "csv": "log.csv", "parquet": "log.parquet", "minari": "minari:walk-v0"}[kind]
    assert name in repr(sources[kind])
    assert "60" in sources[kind]._repr_html_()


def test_showing_a_log_does_not_read_it(tmp_path: Path) -> None:
    log = read_log(write_csv(tmp_path / "log.csv", columns()))
    assert repr(log).count("not counted yet") == 2
    assert "about 60" in repr(log)
    assert log.n_states == 7
    assert "not counted yet" not in repr(log)


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_fingerprints_follow_the_content(tmp_path: Path, write: Any) -> None:
    changed = columns()
    changed["reward"][30] += 1
    ending = ".csv" if write is write_csv else ".parquet"
    one, same, other = (
        write(tmp_path / (name + ending), table)
        for name, table in (("one", columns()), ("same", columns()), ("other", changed))
    )
    assert read_log(one).fingerprint == read_log(same).fingerprint != read_log(other).fingerprint
    assert read_log(one).fingerprint != read_log(one, columns={"terminated": None}).fingerprint


def test_columns_by_other_names(tmp_path: Path) -> None:
    table = columns()
    renamed = {"obs": "state", "a": "action", "gain": "reward", "next_obs": "next_state", "terminal": "terminated"}
    file = write_csv(tmp_path / "log.csv", {"note": ["x"] * N} | {own: table[name] for own, name in renamed.items()})
    assert alike(everything(read_log(file, columns={"reward": "gain"})), everything(Trajectory(**table)))


def test_done_is_not_taken_for_terminated(tmp_path: Path) -> None:
    table = columns()
    table["done"] = table.pop("terminated")
    file = write_csv(tmp_path / "log.csv", table)
    with pytest.raises(
        ValueError, match=r"^columns must say what 'done' in log.csv means: \{'terminated': 'done'\} if"
    ):
        read_log(file)
    assert everything(read_log(file, columns={"terminated": "done"})).terminated.tolist() == table["done"]
    assert not everything(read_log(file, columns={"terminated": None})).terminated.any()


def test_untidy_csv(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    header = "\ufeff state ,action,note,reward,next_state,terminated\r\n\r\n"
    text = header + '0.0, 1,"a, b",1e-1,1,TRUE\r\n  \n1,0,\xe9,2,"0", 0'
    file.write_bytes(text.encode())
    log = read_log(file, format="csv")
    assert [column.tolist() for column in everything(log)] == [[0, 1], [1, 0], [0.1, 2.0], [1, 0], [True, False]]
    assert log.expected_length == 2


@pytest.mark.parametrize("statistics", [True, False, ["action"]])
def test_parquet_sizes_with_and_without_statistics(tmp_path: Path, statistics: Any) -> None:
    file = write_parquet(tmp_path / "log.parquet", columns(), write_statistics=statistics, row_group_size=25)
    log = read_log(file)
    assert ("not counted yet" in repr(log)) == (statistics is not True)
    assert (log.n_states, log.n_actions) == (7, 3)


def test_parquet_types(tmp_path: Path) -> None:
    table = columns()
    arrays = {
        "state": pa.array(table["state"], pa.float32()),
        "action": pa.array(table["action"], pa.uint8()).dictionary_encode(),
        "reward": pa.array(table["reward"], pa.float64()),
        "next_state": pa.array(table["next_state"], pa.int16()),
        "terminated": pa.array(["true" if end else "False" for end in table["terminated"]]),
    }
    file = write_parquet(tmp_path / "log.pq", arrays)
    assert alike(everything(read_log(file)), everything(Trajectory(**table)))


@pytest.mark.parametrize("data_format", ["hdf5", "arrow", "parquet"])
def test_minari_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_format: str) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    dataset = write_minari("walk-v0", data_format=data_format)
    assert alike(everything(read_log(dataset)), everything(Trajectory(**columns())))
    ended = dataset.filter_episodes(lambda episode: bool(episode.terminations[-1]))
    log = read_log(ended, n_states=9, discount=0.5)
    assert (log.length, log.n_states, log.n_actions, log.discount) == (36, 9, 3, 0.5)
    assert everything(log).state[:13].tolist() == [*columns()["state"][:12], columns()["state"][24]]
    assert log.fingerprint != read_log(dataset).fingerprint


def test_minari_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    box = write_minari("box-v0", action_space=gymnasium.spaces.MultiBinary(1))
    with pytest.raises(ValueError, match=r"^minari:box-v0 must have a discrete action space: got MultiBinary\(1\)$"):
        read_log(box)
    with pytest.raises(ValueError, match=r"^path must exist: Minari has no dataset 'walk-v7' here"):
        read_log("minari:walk-v7")
    with pytest.raises(ValueError, match="columns must be left out, since Minari names its own"):
        read_log(box, columns={"state": "s"})
    dataset = write_minari("walk-v0")
    with pytest.raises(ValueError, match=r"^state must lie in 0..5: got 6 at row 0 of minari:walk-v0$"):
        everything(read_log(dataset, n_states=6))
    dataset._total_steps = N + 1
    with pytest.raises(ValueError, match="minari:walk-v0 must hold the 61 steps that it tells of: got 60"):
        everything(read_log(dataset))


class CountedDataset:
    """A Minari dataset that counts how often each episode is read."""

    id, total_steps = "counted-v0", N
    episode_indices = tuple(range(N // EPISODE))
    observation_space, action_space = gymnasium.spaces.Discrete(7), gymnasium.spaces.Discrete(3)

    def __init__(self) -> None:
        self.reads = [0] * len(self.episode_indices)

    def iterate_episodes(self, indices: list[int]) -> Iterator[Any]:
        for index in indices:
            self.reads[index] += 1
            buffer = episodes()[index]
            yield SimpleNamespace(
                id=index,
                observations=np.array(buffer.observations),
                actions=np.array(buffer.actions),
                rewards=np.array(buffer.rewards),
                terminations=np.array(buffer.terminations),
            )


@pytest.mark.parametrize(("kept_length", "reads"), [(N, 1), (N - 1, 4), (0, 4)])
def test_a_replay_of_minari_reads_each_episode_once(
    monkeypatch: pytest.MonkeyPatch, kept_length: int, reads: int
) -> None:
    monkeypatch.setattr(logs._Minari, "kept_length", kept_length)
    dataset = CountedDataset()
    log = read_log(dataset).replay(4, seed=2)
    found = everything(log)
    assert dataset.reads == [reads] * len(dataset.reads)
    assert [column.dtype for column in found] == [np.int64, np.int64, np.float64, np.int64, np.bool_]
    assert alike(everything(log, start=70), found, 70)
    assert dataset.reads == ([1] if reads == 1 else [4 + 3]) * len(dataset.reads)
    monkeypatch.setattr(logs._Minari, "kept_length", 0)
    assert alike(everything(read_log(CountedDataset()).replay(4, seed=2)), found)


def test_one_pass_of_minari_keeps_nothing() -> None:
    dataset = CountedDataset()
    for log in (read_log(dataset), read_log(dataset).replay(1)):
        everything(log)
        assert log._kept is None
    assert dataset.reads == [2] * len(dataset.reads)


def test_a_pass_that_was_broken_off_is_not_kept() -> None:
    dataset = CountedDataset()
    log = read_log(dataset).replay(2)
    next(log.chunks(size=1))
    everything(log)
    assert dataset.reads[0] == 2
    assert dataset.reads[-1] == 1


def test_copies_of_a_replay_read_for_themselves() -> None:
    log = read_log(CountedDataset()).replay(2)
    found = everything(log)
    copied = pickle.loads(pickle.dumps(log))
    assert log._kept is not None
    assert copied._kept is None
    assert alike(everything(copied), found)
    assert copied._source.dataset.reads == [2] * len(copied._source.dataset.reads)  # once there, once before


def test_a_replay_of_minari_with_too_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountedDataset, "total_steps", N - 5)
    with pytest.raises(ValueError, match="minari:counted-v0 must hold the 55 steps that it tells of: got 60"):
        everything(read_log(CountedDataset()).replay(2))


CSV = "state,action,reward,next_state,terminated\n"
ROWS = "0,0,0.5,1,0\n" * 19


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("12,0,0.5,1,0", "^state must lie in 0..9: got 12 at line 22 of log.csv$"),
        ("0,0,0.5,-1,0", "^next_state must lie in 0..9: got -1 at line 22 of log.csv$"),
        ("0,3,0.5,1,0", "^action must lie in 0..2: got 3 at line 22 of log.csv$"),
        ("0.5,0,0.5,1,0", "^state must be a whole number: got 0.5 at line 22 of log.csv$"),
        ("x,0,0.5,1,0", "^state must be a whole number: got 'x' at line 22 of log.csv$"),
        ("0,0,,1,0", "^reward must be a number: got '' at line 22 of log.csv$"),
        ("0,0,nan,1,0", "^reward must be finite: got nan at line 22 of log.csv$"),
        ("0,0,-inf,1,0", "^reward must be finite: got -inf at line 22 of log.csv$"),
        ("0,0,1,1,maybe", "^terminated must be 0, 1, true or false: got 'maybe' at line 22 of log.csv$"),
        ("0,0,1,1,2", "^terminated must be 0, 1, true or false: got '2' at line 22 of log.csv$"),
        ("0,0,0,5,1,0", "^each line must have 5 fields: got 6 at line 22 of log.csv$"),
        ("0,0", "^each line must have 5 fields: got 2 at line 22 of log.csv$"),
        ('0,0,1,1,"0\n",0,1,1,0', "^log.csv must hold one transition per line: a quoted field has more$"),
        ("0,0,1_0,1,0", "^reward must be a number: got '1_0' at line 22 of log.csv$"),
        ("0,0,\uff11,1,0", "^reward must be a number: got '\uff11' at line 22 of log.csv$"),
        ('"0,0",1,1,1', "^each line must have 5 fields: got 4 at line 22 of log.csv$"),
    ],
)
def test_csv_refusals_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "log.csv").write_text(CSV + "\n" + ROWS + text + "\n" + ROWS)
    log = read_log(tmp_path / "log.csv", n_states=10, n_actions=3)
    for start in (0, 3):
        with pytest.raises(ValueError, match=message):
            everything(log, start=start)


def test_csv_refusals_while_counting(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(CSV + ROWS + "0,-1,0,1,0\n")
    with pytest.raises(ValueError, match=r"^action must be at least 0: got -1 at line 21 of log.csv$"):
        _ = read_log(tmp_path / "log.csv").n_states


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": [12]}, "^state must lie in 0..9: got 12 at row 60 of log.parquet$"),
        ({"state": [None]}, "^state must be a whole number: got nan at row 60 of log.parquet$"),
        ({"next_state": [-1]}, "^next_state must lie in 0..9: got -1 at row 60 of log.parquet$"),
        ({"reward": [float("inf")]}, "^reward must be finite: got inf at row 60 of log.parquet$"),
        ({"terminated": [None]}, "^terminated must be 0, 1, true or false: got None at row 60 of log.parquet$"),
    ],
)
def test_parquet_refusals_name_the_row(tmp_path: Path, change: dict[str, list[Any]], message: str) -> None:
    last = {"state": [0], "action": [0], "reward": [0.0], "next_state": [0], "terminated": [False], **change}
    table = {name: column + last[name] for name, column in columns().items()}
    log = read_log(write_parquet(tmp_path / "log.parquet", table), n_states=10, n_actions=3)
    for start in (0, 33):
        with pytest.raises(ValueError, match=message):
            everything(log, start=start)


def test_parquet_refusals_while_counting(tmp_path: Path) -> None:
    table = columns() | {"state": [-1] * N}
    with pytest.raises(ValueError, match=r"^state must be at least 0: got -1 at row 0 of log.parquet$"):
        _ = read_log(write_parquet(tmp_path / "log.parquet", table)).n_states
    table = columns() | {"state": ["a"] * N}
    with pytest.raises(ValueError, match=r"^state must be a whole number: got 'a' at row 0 of log.parquet$"):
        _ = read_log(write_parquet(tmp_path / "log.parquet", table)).n_states


@pytest.mark.parametrize(
    ("name", "text", "arguments", "message"),
    [
        ("log.csv", "", {}, "^log.csv must start with the names of its columns: got an empty file$"),
        ("log.csv", CSV, {}, "^log.csv must hold at least one transition: got none$"),
        (
            "log.csv",
            "stat,action,reward,next_state\n",
            {},
            r"^log.csv must have a column 'state': it has 'stat', 'action', 'reward', 'next_state'; "
            r"is it columns=\{'state': 'stat'\}\?$",
        ),
        ("log.csv", "state,action,reward,z\n", {}, "must have a column 'next_state': it has 'state', 'action', .*'z'$"),
        ("log.csv", CSV, {"columns": {"state": None}}, "must have a column 'state'"),
        (
            "log.csv",
            CSV,
            {"columns": {"state": "stat"}},
            "the state column of log.csv must be one of .*did you mean 'state'",
        ),
        ("log.csv", CSV, {"columns": {"sate": "state"}}, "a key of columns must be one of .*did you mean 'state'"),
        ("log.csv", "state," + CSV, {}, "^the columns of log.csv must all differ: 'state' came twice$"),
        ("log.dat", CSV, {}, "^a log must end in .csv or .parquet, or say its format: got 'log.dat'$"),
        (
            "log.csv",
            CSV,
            {"format": "parket"},
            "^format must be one of csv, parquet: got 'parket'; did you mean 'parquet'",
        ),
        ("log.parquet", CSV, {}, "^log.parquet must be a Parquet file: "),
    ],
)
def test_files_that_cannot_be(tmp_path: Path, name: str, text: str, arguments: dict[str, Any], message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_log(tmp_path / name, **arguments)


def test_missing_files_and_rows(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^path must exist: there is no .*nowhere.csv$"):
        read_log(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match=r"^path must be a file: .* is a folder$"):
        read_log(tmp_path)
    empty = write_parquet(tmp_path / "log.parquet", {name: [] for name in columns()})
    with pytest.raises(ValueError, match=r"^log.parquet must hold at least one transition: got none$"):
        read_log(empty)


@pytest.mark.parametrize(("module", "extra"), [("pyarrow", "parquet"), ("minari", "minari")])
def test_missing_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, extra: str) -> None:
    file = write_parquet(tmp_path / "log.parquet", columns())
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        ImportError, match=rf"{module} must be installed to read .*: pip install 'robustmdp\[{extra}\]'"
    ):
        read_log("minari:walk-v0" if module == "minari" else file)


def test_a_nested_column_of_a_log_is_refused(tmp_path: Path) -> None:
    table = pa.table({"state": [[0]], "action": [0], "next_state": [0], "reward": [1.0]})
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=r"^column 'state' of log.parquet must hold numbers or words: it holds list<"):
        read_log(tmp_path / "log.parquet")
