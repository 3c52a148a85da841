"""Files of every format, worlds that are hard to keep, and a hundred ways to damage them."""

from __future__ import annotations

import dataclasses
import functools
import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import robustmdp as rm
from robustmdp.io import read, read_interval, read_log, read_outcomes, read_policy, write, write_interval

Files = dict[str, bytes]

NASTY = (
    *(b"nan", b"inf", b"-inf", b"1e400", b"-1", b"-0.0", b"0", b"0.5", b"2", b"1e15", b"999999999999", b"1e-320"),
    *(b"1" + b"0" * 30, b"9" * 5000, b"", b" ", b'"', b"\xef\xbc\x91", b"\xd9\xa3", b"1_000", b"0x10", b"1/0", b"1/3"),
    *(
        b"$0",
        b"p",
        b"[0, 1]",
        b"true",
        b"null",
        b"{}",
        b"[[[[",
        b"../../etc/passwd",
        b"/dev/zero",
        b"\x00",
        b"\xff\xfe",
    ),
    *(b"1.5", b"2147483647", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615", b"1e999999999"),
)
ODD = (
    ",",
    '"',
    "'",
    "\n",
    "\r\n",
    " ",
    "",
    "λ",
    "日本",
    "\u202e",
    "\x00",
    "\\",
    "%s",
    "1e5",
    "nan",
    "#",
    "//",
    ":",
    "\U0001f9ee",
)
SPACES = b' ,:\n\t[]{}()"='


class Case(NamedTuple):
    """A set of files and what is done with the first of them."""

    kind: str
    files: Files
    load: Callable[[Path], Any]


def worlds() -> list[rm.MDP]:
    """One with everything (names, labels, endings, gaps between actions, rewards on successors), and a plain one."""
    rows = [
        (0, 1, 0, 0.25, 1.0, False),
        (0, 1, 1, 0.5, -2.5, True),
        (0, 1, 2, 0.25, 0.0, True),
        (0, 3, 1, 1.0, 0.1, False),
        (1, 0, 2, 1 / 3, 0.0, False),
        (1, 0, 0, 2 / 3, 7.0, False),
        (2, 1, 2, 1.0, 0.0, False),
    ]
    state, action, following, probability, reward, terminated = zip(*rows, strict=True)
    names = {"state_names": ["a,b", 'quo"te', "λ\n"], "action_names": ["left", "right", "up", "down"]}
    everything = rm.MDP.from_rows(
        state, action, following, probability, reward, 0.1 + 0.2, terminated=terminated, n_states=3, **names
    )
    everything = everything.with_labels({"goal": [False, True, True], "odd name": [True, False, False]})
    everything = everything.with_initial([0.25, 0.75, 0.0])
    return [everything, rm.problems.garnet(12, 2, 3, 0.9, seed=0)]


def random_world(seed: int) -> rm.MDP:
    """Random actions in each state, rewards of pairs or transitions, endings in several ways, names that are odd."""
    rng = np.random.default_rng([seed, 77])
    n_states, n_actions = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    rows = []
    for state in range(n_states):
        for action in rng.choice(n_actions, size=int(rng.integers(1, n_actions + 1)), replace=False).tolist():
            successors = rng.choice(n_states, size=int(rng.integers(1, n_states + 1)), replace=False)
            ending = rng.random(len(successors)) < (0.4 if seed % 2 else 0.0)
            weights = rng.dirichlet(np.full(len(successors), 0.1 + rng.random())) + 5e-324
            rewards = rng.normal(size=len(successors)) * 10.0 ** rng.integers(-300, 300)
            rewards = rewards if seed % 3 else np.full(len(successors), rewards[0] * rng.integers(-1, 2))
            columns = (successors.tolist(), weights.tolist(), rewards.tolist(), ending.tolist())
            rows += [(state, action, *entry) for entry in zip(*columns, strict=True)]
    state, action, following, probability, reward, terminated = zip(*rows, strict=True)
    mdp = rm.MDP.from_rows(
        state, action, following, probability, reward, float(rng.random()), terminated=terminated, n_states=n_states
    )
    spare = int(rng.integers(3))  # actions that are available nowhere
    names = [f"{i}{ODD[(seed + i) % len(ODD)]}" for i in range(n_states + n_actions + spare)] if seed % 5 else None
    return dataclasses.replace(
        mdp,
        n_actions=mdp.n_actions + spare,
        state_names=tuple(names[:n_states]) if names and seed % 4 else None,
        action_names=tuple(names[-mdp.n_actions - spare :]) if names and seed % 7 else None,
    )


def read_all_of(path: Path) -> Any:
    log = read_log(path)
    return sum(len(piece.state) for piece in log.chunks()), log.n_states, log.n_actions


@functools.cache
def cases() -> list[Case]:
    """Files as they should be."""
    out = []
    everything, plain = worlds()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for world in (everything, plain):
            for extension in (".csv", ".parquet", ".tra", ".drn", ".safetensors", ".safetensors.zst"):
                out.append(Case(extension, _written(world, folder / f"model{extension}"), read))
        for extension in (".csv", ".parquet", ".tra", ".drn"):
            bare = {
                file: data for file, data in _written(plain, folder / f"model{extension}").items() if "meta" not in file
            }
            out.append(Case(extension, bare, functools.partial(read, discount=0.9)))
        bounds = rm.Interval(0.9 * plain.probabilities, np.minimum(1.5 * plain.probabilities, 1.0))
        for extension in (".tra", ".drn"):
            path = folder / f"interval{extension}"
            _clear(folder)
            write_interval(plain.with_initial(0).with_labels({"goal": np.arange(12) > 9}), bounds, path)
            out.append(Case("intervals", _files(path), read_interval))
        header = b"idstatefrom,idaction,idoutcome,idstateto,probability,reward\n"
        lines = b"".join(b"%d,0,%d,%d,1,%d\n" % (s, o, 1 - s, s + o) for s in (0, 1) for o in (0, 1, 2))
        out.append(Case("outcomes", {"model.csv": header + lines}, functools.partial(read_outcomes, discount=0.9)))
        solved = rm.evaluate(
            everything, np.where(everything.table(np.ones(4), 0.0) > 0, 1.0, 0.0) / [[2], [1], [1]], rm.Nominal()
        )
        for extension in (".csv", ".parquet", ".json"):
            files = _written(solved, folder / f"policy{extension}")
            out.append(Case("policy", files, functools.partial(read_policy, mdp=everything)))
        log = {
            "state": [0, 1, 2, 0],
            "action": [1, 0, 1, 0],
            "reward": [0.5, 1.0, -1.0, 0.1],
            "next_state": [1, 2, 0, 1],
        }
        rows = "".join(f"{','.join(map(str, row))},{i % 2}\n" for i, row in enumerate(zip(*log.values(), strict=True)))
        out.append(Case("log", {"log.csv": (",".join(log) + ",terminated\n" + rows * 5).encode()}, read_all_of))
        pq.write_table(pa.table({**log, "terminated": [False, True, False, False]}), folder / "log.parquet")
        out.append(Case("log", {"log.parquet": (folder / "log.parquet").read_bytes()}, read_all_of))
    return out


def _written(thing: Any, path: Path) -> Files:
    """All files that were written, the main one first."""
    _clear(path.parent)
    return _files(write(thing, path))


def _clear(folder: Path) -> None:
    for old in folder.iterdir():
        old.unlink()


def _files(main: Path) -> Files:
    return {main.name: main.read_bytes()} | {file.name: file.read_bytes() for file in main.parent.iterdir()}


def damaged(index: int, seed: int = 0) -> tuple[Case, str]:
    """The case of this number, and what was done to it: the same each time."""
    rng = np.random.default_rng([seed, index])
    case = cases()[index % len(cases())]
    files = dict(case.files)
    done = []
    for _ in range(1 + int(rng.integers(3) == 0)):
        name = list(files)[int(rng.integers(len(files)))] if rng.random() < 0.5 else next(iter(files))
        way = WAYS[int(rng.integers(len(WAYS)))]
        files[name] = way(rng, files[name], name)
        done.append(f"{way.__name__} {name}")
    if rng.random() < 0.02 and len(files) > 1:
        gone = list(files)[int(rng.integers(1, len(files)))]
        del files[gone]
        done.append(f"lost {gone}")
    return case._replace(files=files), ", ".join(done)


def flip(rng: np.random.Generator, data: bytes, name: str) -> bytes:
    out = np.frombuffer(data, np.uint8).copy()
    for _ in range(int(rng.integers(1, 9)) if len(out) else 0):
        out[rng.integers(len(out))] ^= 1 << int(rng.integers(8))
    return out.tobytes()


def truncate(rng: np.random.Generator, data: bytes, name: str) -> bytes:
    return data[: int(rng.integers(len(data) + 1))] if rng.random() < 0.7 else data[int(rng.integers(len(data) + 1)) :]


def shuffle_lines(rng: np.random.Generator, data: bytes, name: str) -> bytes:
    """Cut, double or swap."""
    lines = data.split(b"\n")
    i, j = (int(k) for k in rng.integers(len(lines), size=2))
    way = rng.integers(3)
    if way == 0:
        del lines[min(i, j) : min(i, j) + int(rng.integers(1, 4))]
    elif way == 1:
        lines.insert(j, lines[i])
    else:
        lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _tokens(data: bytes) -> Iterator[bytes]:
    start = 0
    for i, byte in enumerate(data):
        if byte in SPACES:
            yield data[start:i]
            yield data[i : i + 1]
            start = i + 1
    yield data[start:]


def replace_words(rng: np.random.Generator, data: bytes, name: str) -> bytes:
    """By something nasty, or by another word of the file."""
    words = list(_tokens(data))
    for _ in range(int(rng.integers(1, 4))):
        i = int(rng.integers(len(words)))
        words[i] = NASTY[int(rng.integers(len(NASTY)))] if rng.random() < 0.8 else words[int(rng.integers(len(words)))]
    return b"".join(words)


def swap_columns(rng: np.random.Generator, data: bytes, name: str) -> bytes:
    """In one line or in all of them."""
    lines = data.split(b"\n")
    separator = b"," if b"," in lines[0] else b" "
    i, j = (int(k) for k in rng.integers(7, size=2))
    which = range(len(lines)) if rng.random() < 0.5 else [int(rng.integers(len(lines)))]
    for k in which:
        fields = lines[k].split(separator)
        if max(i, j) < len(fields):
            fields[i], fields[j] = fields[j], fields[i]
            lines[k] = separator.join(fields)
    return b"\n".join(lines)


def insert(rng: np.random.Generator, data: bytes, name: str) -> bytes:
    piece = NASTY[int(rng.integers(len(NASTY)))] if rng.random() < 0.5 else rng.bytes(int(rng.integers(1, 64)))
    place = int(rng.integers(len(data) + 1))
    return data[:place] + piece + data[place:]


def append(rng: np.random.Generator, data: bytes, name: str) -> bytes:
    """Itself, or a file of another case."""
    other = cases()[int(rng.integers(len(cases())))].files
    return data + (data if rng.random() < 0.5 else list(other.values())[int(rng.integers(len(other)))])


def become(rng: np.random.Generator, data: bytes, name: str) -> bytes:
    """Nothing, noise, or a file of another case."""
    other = cases()[int(rng.integers(len(cases())))].files
    return (b"", rng.bytes(int(rng.integers(1, 4096))), list(other.values())[int(rng.integers(len(other)))])[
        int(rng.integers(3))
    ]


def overwrite_number(rng: np.random.Generator, data: bytes, name: str) -> bytes:
    """A length, a count, an index or a probability of a binary file."""
    values = (0, 1, -1, 2**31, 2**40, 2**62, -(2**63))
    number = np.int64(values[int(rng.integers(len(values)))])
    floats = np.array([np.nan, np.inf, -0.0, 1e308, 5e-324])
    piece = number.tobytes() if rng.random() < 0.6 else floats[rng.integers(5) :][:1].tobytes()
    piece = piece[: 8 if rng.random() < 0.7 else 4]
    place = 8 * int(rng.integers(len(data) // 8 + 1)) if rng.random() < 0.7 else 0
    return data[:place] + piece + data[place + len(piece) :]


def inside(rng: np.random.Generator, data: bytes, name: str) -> bytes:
    """Damage below the compression: of a zstd stream, or of the table in a Parquet file."""
    try:
        if name.endswith(".zst"):
            plain = pa.input_stream(io.BytesIO(data), compression="zstd").read()
            way = (flip, truncate, replace_words, insert, overwrite_number, append, bomb)[int(rng.integers(7))]
            packed = pa.BufferOutputStream()
            with pa.CompressedOutputStream(packed, "zstd") as stream:
                stream.write(way(rng, plain, name))
            return packed.getvalue().to_pybytes()
        if name.endswith(".parquet"):
            return _table_damage(rng, pq.read_table(io.BytesIO(data)))
    except (pa.ArrowException, OSError, ValueError, KeyError):
        pass
    return replace_words(rng, data, name)


def bomb(rng: np.random.Generator, data: bytes, name: str) -> bytes:
    return data + bytes(1 << 26)


def _table_damage(rng: np.random.Generator, table: pa.Table) -> bytes:
    names = table.column_names
    column = names[int(rng.integers(len(names)))]
    place = names.index(column)
    values = table.column(column).to_pylist()
    row = int(rng.integers(len(values)))
    strange = (None, -1, 10**15, 2**31 - 1, 2**62, float("nan"), float("inf"), 0.5, 1e300, "x", True, b"\x00", [1], 0)
    way = int(rng.integers(6))
    if way == 0:
        values[row] = strange[int(rng.integers(len(strange)))]
    elif way == 1:
        values = [strange[int(rng.integers(len(strange)))]] * len(values)
    elif way == 2:
        table = table.take(rng.integers(table.num_rows, size=int(rng.integers(0, 2 * table.num_rows))))
        values = table.column(column).to_pylist()
    elif way == 3:
        values = [str(value) for value in values]
    new = pa.array(values)
    if way == 4:
        table = table.append_column(column, new)
    elif way == 5:
        table = pa.concat_tables([table.slice(row, 1)] * 200_000).combine_chunks()  # a small file with many rows
    else:
        table = table.set_column(place, column, new)
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


WAYS = (flip, truncate, shuffle_lines, replace_words, replace_words, swap_columns, insert, append, become)
WAYS += (overwrite_number, inside, inside)


def flaw_of(mdp: rm.MDP) -> str:
    """What keeps a model from being one, found row by row."""
    if not 0 <= mdp.discount <= 1:
        return f"discount {mdp.discount}"
    for name, mask in mdp.labels.items():
        if not name or mask.dtype != bool or mask.shape != (mdp.n_states,) or not set(mask.view("u1")) <= {0, 1}:
            return f"label {name!r}"
    if mdp.initial is not None and not (mdp.initial.min() >= 0 and abs(mdp.initial.sum() - 1) <= 1e-12):
        return f"initial {mdp.initial}"
    for names, count in ((mdp.state_names, mdp.n_states), (mdp.action_names, mdp.n_actions)):
        if names is not None and not len(set(names)) == len(names) == count:
            return "names"
    if len(mdp.rewards) not in (mdp.n_pairs, mdp.nnz) or not np.isfinite(mdp.rewards).all():
        return "rewards"
    for state in range(mdp.n_states):
        pairs = range(int(mdp.state_ptr[state]), int(mdp.state_ptr[state + 1]))
        actions = mdp.actions[pairs.start : pairs.stop].tolist()
        if not pairs or sorted(set(actions)) != actions or not 0 <= actions[0] <= actions[-1] < mdp.n_actions:
            return f"actions {actions} of state {state}"
        for pair in pairs:
            row = slice(int(mdp.indptr[pair]), int(mdp.indptr[pair + 1]))
            successors, weights = mdp.indices[row].tolist(), mdp.probabilities[row]
            inner = [t for t in successors if t < mdp.n_states]
            if (
                sorted(set(inner)) != inner
                or sorted(successors) != successors
                or not set(successors) <= set(range(mdp.n_states + 1))
            ):
                return f"successors {successors} of pair {pair}"
            if not (weights > 0).all() or not abs(weights.sum() - 1) <= len(weights) * 2.0**-51:
                return f"probabilities {weights} of pair {pair}"
    return ""
