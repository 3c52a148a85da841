"""PRISM's explicit files: transitions (.tra) with states (.sta), labels (.lab) and rewards (.srew, .trew) beside them.

Storm's dialect, which starts with the word mdp and has no counts, is read as well. Labels of states are checked and
left out: a model has no place for them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.io.choices import Lines, by_label, count, ranks, written_labels
from robustmdp.io.columns import NONE, Columns
from robustmdp.io.delimited import open_text
from robustmdp.io.explicit import Explicit
from robustmdp.io.words import shown
from robustmdp.models.assembly import Block

COMPANIONS = (".sta", ".lab", ".srew", ".trew")
_INDICES = ("state", "choice", "next state")


class _Counts(NamedTuple):
    """The first line of the transitions; all None in Storm's dialect."""

    states: int | None
    choices: int | None
    transitions: int | None


class _Table(NamedTuple):
    """Lines with some indices, a number and perhaps a label."""

    line: npt.NDArray[np.int64]
    indices: tuple[npt.NDArray[np.int64], ...]
    number: npt.NDArray[np.float64]
    labels: list[str]


def read_prism(path: Path, *, numbered: bool) -> Columns:
    """The transitions; actions are the numbers of the choices if `numbered`, by their labels otherwise."""
    tra = Lines(path)
    rows = _rows(tra)
    counts = _counts(tra, *next(rows, (1, [])))
    table = _table(tra, rows, _INDICES, "probability", labelled=True)
    _checks.must(len(table.line) > 0, f"{tra.name} must hold at least one transition: got none")
    state, choice, following = table.indices
    _check_counts(counts, state, choice, tra.name)
    reward = _rewards(path, table.indices, headed=counts.states is not None)
    labelled = by_label(state, choice, [""] if numbered else table.labels)
    columns = Block(state, labelled.action, following, table.number, reward, NONE)
    if counts.states is not None:
        _check_labels(Lines(path.with_suffix(".lab")))
    names = None if numbered else _state_names(Lines(path.with_suffix(".sta")), counts.states)
    return Columns(tra, columns, table.line, counts.states, (names, labelled.names))


def _rows(file: Lines) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of the lines that say something."""
    with open_text(file.path) as text:
        for number, line in enumerate(text, 1):
            fields = line.split()
            if fields and not fields[0].startswith("#"):
                yield number, fields


def _table(
    file: Lines, rows: Iterator[tuple[int, list[str]]], indices: Sequence[str], what: str, *, labelled: bool = False
) -> _Table:
    width = len(indices) + 1
    lines, numbers, columns = array("q"), array("d"), [array("q") for _ in indices]
    labels: list[str] = []
    for line, fields in rows:
        if len(fields) != width and not (labelled and len(fields) == width + 1):
            _checks.fail(f"a line must have {width} fields: got {len(fields)} at {file.place(line)}")
        for position, (name, column) in enumerate(zip(indices, columns, strict=True)):
            column.append(file.index(f"{name} (field {position + 1})", fields[position], line))
        numbers.append(file.number(f"{what} (field {width})", fields[width - 1], line))
        lines.append(line)
        if labelled:
            labels.append(fields[width] if len(fields) > width else "")
    whole = tuple(np.array(column, np.int64) for column in columns)
    return _Table(np.array(lines, np.int64), whole, np.array(numbers, np.float64), labels)


def _counts(tra: Lines, line: int, fields: list[str]) -> _Counts:
    _checks.must(bool(fields), f"{tra.name} must start with its counts: got an empty file")
    if len(fields) == 1 and fields[0].isalpha():
        _checks.must(fields[0].lower() == "mdp", f"{tra.name} must hold an MDP: it says {shown(fields[0])}")
        return _Counts(None, None, None)
    _checks.must(
        len(fields) == 3,
        f"{tra.name} must start with the numbers of states, choices and transitions, as those of MDPs do: "
        f"got {shown(' '.join(fields))} at {tra.place(line)}",
    )
    return _Counts(
        *(tra.index(f"the number of {what}", text, line) for what, text in zip(_Counts._fields, fields, strict=True))
    )


def _check_counts(counts: _Counts, state: npt.NDArray[np.int64], choice: npt.NDArray[np.int64], name: str) -> None:
    if counts.states is None:
        return
    for what, told, came in (
        ("transitions", counts.transitions, len(state)),
        ("choices", counts.choices, count(state, choice)),
    ):
        _checks.must(told == came, f"{name} must hold the {told} {what} that its first line tells of: it has {came}")


def _rewards(path: Path, transitions: tuple[npt.NDArray[np.int64], ...], *, headed: bool) -> npt.NDArray[np.float64]:
    """Those of transitions, and those of states added to every choice of the state."""
    reward = np.zeros(len(transitions[0]))
    for number in ("", "1"):  # PRISM numbers the files where there are several reward structures
        trew, srew = (Lines(path.with_name(f"{path.stem}{number}{kind}")) for kind in (".trew", ".srew"))
        if trew.path.is_file():
            reward = _matched(trew, _after_counts(trew, 3 if headed else 0), _INDICES, transitions)
        if srew.path.is_file():
            of_states = _matched(srew, _after_counts(srew, 2 if headed else 0), _INDICES[:1], transitions[:1])
            reward = reward + of_states if of_states.any() else reward
        if trew.path.is_file() or srew.path.is_file():
            break
    return reward


def _after_counts(file: Lines, width: int) -> Iterator[tuple[int, list[str]]]:
    """The lines after the counts; PRISM 4.8 does not count rewards as it writes them, so that they are not compared."""
    rows = _rows(file)
    if width:
        number, fields = next(rows, (1, []))
        if len(fields) != width:
            _checks.fail(f"{file.name} must start with {width} counts: got {len(fields)} at {file.place(number)}")
        for text in fields:
            file.index("a count", text, number)
    return rows


def _matched(
    file: Lines,
    rows: Iterator[tuple[int, list[str]]],
    names: Sequence[str],
    transitions: tuple[npt.NDArray[np.int64], ...],
) -> npt.NDArray[np.float64]:
    """The number that a file gives to each transition, by their indices; 0 where it gives none."""
    table = _table(file, rows, names, "reward")
    both = (np.concatenate(pair) for pair in zip(transitions, table.indices, strict=True))
    keys = ranks(*both)
    own, given = keys[: len(transitions[0])], keys[len(transitions[0]) :]
    known = np.isin(given, own)
    first = np.zeros(len(given), bool)
    first[np.unique(given, return_index=True)[1]] = True
    for right, must in ((known, "belong to what there is"), (first, "be given once")):
        if not right.all():
            line = int(table.line[right.argmin()])
            _checks.fail(f"a reward must {must}: that at {file.place(line)} does not")
    numbers = np.zeros(int(keys.max(initial=-1)) + 1)
    numbers[given] = table.number
    return numbers[own]


def _state_names(sta: Lines, n_states: int | None) -> list[str] | None:
    """`x=1,y=2`, or None where the only variable is the state's number."""
    if not sta.path.is_file() or n_states is None:
        return None
    with open_text(sta.path) as text:
        lines = [(number, line.strip()) for number, line in enumerate(text, 1)]
    filled = [(number, line) for number, line in lines if line and not line.startswith("#")]
    _checks.must(bool(filled), f"{sta.name} must start with the names of its variables: got an empty file")
    variables = _values(sta, *filled[0])
    names = []
    for expected, (number, line) in enumerate(filled[1:]):
        index, _, rest = line.partition(":")
        if index.strip() != str(expected):
            _checks.fail(f"state {expected} must come next: got {shown(line)} at {sta.place(number)}")
        values = _values(sta, number, rest.strip())
        if len(values) != len(variables):
            _checks.fail(f"a state must have {len(variables)} values: got {len(values)} at {sta.place(number)}")
        names.append(",".join(f"{variable}={value}" for variable, value in zip(variables, values, strict=True)))
    _checks.must(len(names) == n_states, f"{sta.name} must hold {n_states} states: it has {len(names)}")
    plain = len(variables) == 1 and all(name.endswith(f"={number}") for number, name in enumerate(names))
    return None if plain else names


def _check_labels(lab: Lines) -> None:
    """`0="init" 1="deadlock"`, then lines such as `3: 0 1`."""
    if not lab.path.is_file():
        return
    rows = _rows(lab)
    number, declared = next(rows, (1, []))
    known = set()
    for word in declared:
        index, _, name = word.partition("=")
        if len(name) < 2 or not name.startswith('"') or not name.endswith('"'):
            _checks.fail(f'labels must be declared as in 0="init": got {shown(word)} at {lab.place(number)}')
        known.add(lab.index("the number of a label", index, number))
    for number, (state, *labels) in rows:
        if not state.endswith(":"):
            _checks.fail(f"a line must be a state, a colon and labels: got {shown(state)} at {lab.place(number)}")
        lab.index("a state", state[:-1], number)
        for label in labels:
            if lab.index("a label", label, number) not in known:
                _checks.fail(f"a label must be one that is declared: got {shown(label)} at {lab.place(number)}")


def _values(sta: Lines, number: int, text: str) -> list[str]:
    if not (text.startswith("(") and text.endswith(")")):
        _checks.fail(f"values must stand in brackets: got {shown(text)} at {sta.place(number)}")
    return [value.strip() for value in text[1:-1].split(",")]


def write_prism(model: Explicit, tra: Path, sta: Path, lab: Path, srew: Path, trew: Path) -> None:
    """All five files, so that none of an earlier model is left beside them; rewards are those of choices."""
    n, m = model.n_states, model.n_choices
    labels = written_labels(model.mdp.action_names)
    paid = sum(int(np.count_nonzero(_is_paid(piece.reward))) for piece in model.pieces(by_choice=True))
    sta.write_text("(s)\n" + "".join(f"{s}:({s})\n" for s in range(n)))
    ends = "".join(f"{s}: 2\n" for s in range(model.mdp.n_states, n))
    lab.write_text('0="init" 1="deadlock" 2="end"\n0: 0\n' + ends)
    srew.write_text(f"{n} 0\n")
    with tra.open("w", encoding="utf-8") as moves, trew.open("w", encoding="utf-8") as rewards:
        moves.write(f"{n} {m} {model.nnz}\n")
        rewards.write(f"{n} {m} {paid}\n")
        for piece in model.pieces(by_choice=True):
            keys = [
                f"{s} {c} {t}"
                for s, c, t in zip(
                    *(column.tolist() for column in (piece.state, piece.choice, piece.next_state)), strict=True
                )
            ]
            names = [f" {labels[a]}" for a in piece.action.tolist()] if labels else [""] * len(keys)
            moves.writelines(
                f"{key} {p!r}{name}\n" for key, p, name in zip(keys, piece.probability.tolist(), names, strict=True)
            )
            which = np.flatnonzero(_is_paid(piece.reward)).tolist()
            rewards.writelines(f"{keys[i]} {r!r}\n" for i, r in zip(which, piece.reward[which].tolist(), strict=True))


def _is_paid(reward: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Zeros are left out, but for negative ones, whose sign would be lost."""
    return np.asarray((reward != 0) | np.signbit(reward))
