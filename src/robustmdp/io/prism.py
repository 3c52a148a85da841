"""PRISM's explicit files: transitions (.tra) with states (.sta), labels (.lab) and rewards (.srew, .trew) beside them.

Storm's dialect, which starts with the word mdp and has no counts, is read as well. Transitions may have intervals.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robustmdp import _checks
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.io.choices import (
    BATCH,
    Lines,
    by_label,
    count,
    labels_by_state,
    ranks,
    written_labels,
    written_state_labels,
)
from robustmdp.io.columns import NONE, Columns
from robustmdp.io.explicit import Explicit
from robustmdp.io.labelling import DEADLOCK, INIT, Labelling
from robustmdp.io.text import open_text, shown
from robustmdp.models.assembly import Block

COMPANIONS = (".sta", ".lab", ".srew", ".trew")
_COUNTED = ("states", "choices", "transitions")  # in the first line
_INDICES = ("state", "choice", "next state")
_BLANKS = re.compile(r"(?<=[\[,])\s+|\s+(?=[,\]])")  # blanks within an interval
_REWARD_NAME = re.compile(r'#\s*Reward structure "([^"]*)"')


class _Table(NamedTuple):
    """Lines with some indices, a number or an interval, and perhaps a label."""

    line: IntArray
    indices: tuple[IntArray, ...]
    number: FloatArray
    upper: FloatArray
    labels: list[str]


def read_prism(path: Path, *, numbered: bool, intervals: bool = False, reward: str | None = None) -> Columns:
    """The transitions; actions are the numbers of the choices if `numbered`, by their labels otherwise.

    `reward` names a reward structure, instead of the first.
    """
    tra = Lines(path)
    rows = _rows(tra)
    counts = _counts(tra, *next(rows, (1, [])))
    table = _table(tra, rows, _INDICES, "probability", labelled=True, intervals=intervals)
    _checks.must(len(table.line) > 0, f"{tra.name} must hold at least one transition: got none")
    state, choice, following = table.indices
    n_states = None if counts is None else counts[0]
    if counts is not None:
        found = {"choices": count(state, choice), "transitions": len(state)}
        for (what, came), wanted in zip(found.items(), counts[1:], strict=True):
            must = f"{tra.name} must hold the {wanted} {what} that its first line tells of: it has {came}"
            _checks.must(wanted == came, must)
    rewards = _rewards(path, table.indices, headed=counts is not None, name=reward)
    action, action_names = by_label(state, choice, [""] if numbered else table.labels)
    columns = Block(state, action, following, table.number, rewards, NONE)
    most_states = max(n_states or 0, int(max(state.max(), following.max())) + 1)
    labelling = _labelling(Lines(path.with_suffix(".lab")), most_states)
    names = None if numbered else _state_names(Lines(path.with_suffix(".sta")), n_states)
    return Columns(
        tra,
        columns,
        table.line,
        n_states,
        (names, action_names),
        labelling,
        upper=table.upper if intervals else None,
    )


def _rows(file: Lines) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of the lines that say something."""
    with open_text(file.path) as text:
        for number, line in enumerate(text, 1):
            fields = line.split()
            if "[" in line and any(text.startswith("[") != text.endswith("]") for text in fields):
                fields = _BLANKS.sub("", line).split()
            if fields and not fields[0].startswith("#"):
                yield number, fields


def _table(
    file: Lines,
    rows: Iterator[tuple[int, list[str]]],
    indices: Sequence[str],
    what: str,
    *,
    labelled: bool = False,
    intervals: bool = False,
) -> _Table:
    width = len(indices) + 1
    value, kinds = f"{what} (field {width})", [f"{name} (field {number})" for number, name in enumerate(indices, 1)]
    lines, lower, upper, columns = array("q"), array("d"), array("d"), [array("q") for _ in indices]
    labels: list[str] = []
    while batch := list(islice(rows, BATCH)):
        numbers = [line for line, _ in batch]
        for line, fields in batch:
            if len(fields) != width and not (labelled and len(fields) == width + 1):
                _checks.fail(f"a line must have {width} fields: got {len(fields)} at {file.place(line)}")
        for position, (kind, column) in enumerate(zip(kinds, columns, strict=True)):
            column += file.all_indices(kind, [fields[position] for _, fields in batch], numbers)
        texts = [fields[width - 1] for _, fields in batch]
        if labelled and not intervals:
            for text, line in zip(texts, numbers, strict=True):
                if text.startswith("["):
                    file.refuse_interval(line)
        for bounds, found in zip((lower, upper), file.all_bounds(value, texts, numbers), strict=True):
            bounds += found
        lines += array("q", numbers)
        labels += [fields[width] if len(fields) > width else "" for _, fields in batch] if labelled else []
    whole = tuple(np.array(column, np.int64) for column in columns)
    return _Table(np.array(lines, np.int64), whole, np.array(lower), np.array(upper), labels)


def _counts(tra: Lines, line: int, fields: list[str]) -> list[int] | None:
    """Of states, choices and transitions; None in Storm's dialect, which has none."""
    _checks.must(bool(fields), f"{tra.name} must start with its counts: got an empty file")
    if len(fields) == 1 and fields[0].isalpha():
        _checks.must(fields[0].lower() == "mdp", f"{tra.name} must hold an MDP: it says {shown(fields[0])}")
        return None
    _checks.must(
        len(fields) == 3,
        f"{tra.name} must start with the numbers of states, choices and transitions, as those of MDPs do: "
        f"got {shown(' '.join(fields))} at {tra.place(line)}",
    )
    return [tra.index(f"the number of {what}", text, line) for what, text in zip(_COUNTED, fields, strict=True)]


def _rewards(path: Path, transitions: tuple[IntArray, ...], *, headed: bool, name: str | None) -> FloatArray:
    """Those of transitions, and those of states added to every choice of the state."""
    reward = np.zeros(len(transitions[0]))
    trew, srew = _reward_files(path, name)
    if trew.path.is_file():
        reward = _matched(trew, _after_counts(trew, 3 if headed else 0), _INDICES, transitions)
    if srew.path.is_file():
        of_states = _matched(srew, _after_counts(srew, 2 if headed else 0), _INDICES[:1], transitions[:1])
        reward = reward + of_states if of_states.any() else reward
    return reward


def _reward_files(path: Path, name: str | None) -> tuple[Lines, Lines]:
    """Those of transitions and of states: of the first reward structure, or of the one with this name."""
    names, number = [], 0
    while True:  # PRISM numbers the files from 1 on where there are several reward structures
        stem = f"{path.stem}{number or ''}"
        trew, srew = (Lines(path.with_name(f"{stem}{kind}")) for kind in (".trew", ".srew"))
        present = [file for file in (trew, srew) if file.path.is_file()]
        if present and name in (None, *map(_reward_name, present)):
            return trew, srew
        if not present and number:
            break
        names += [found for found in map(_reward_name, present[:1]) if found]
        number += 1
    if name is not None:
        _checks.nearest("reward", name, names)
    return trew, srew


def _reward_name(file: Lines) -> str | None:
    """What PRISM says of it in the first line."""
    with open_text(file.path) as text:
        found = _REWARD_NAME.match(text.readline())
    return None if found is None else found[1]


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
    transitions: tuple[IntArray, ...],
) -> FloatArray:
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


def _labelling(lab: Lines, n_states: int) -> Labelling:
    """The states of each label."""
    if not lab.path.is_file():
        return {}
    with open_text(lab.path) as text:
        is_storms = text.readline().startswith("#DECLARATION")
    rows = _rows(lab)
    number, declared = next(rows, (1, []))
    names = {word: word for word in declared} if is_storms else _declared(lab, number, declared)
    states = {name: array("q") for name in names.values()}
    for number, (state, *labels) in rows:
        if not is_storms and not state.endswith(":"):
            _checks.fail(f"a line must be a state, a colon and labels: got {shown(state)} at {lab.place(number)}")
        index = lab.index("a state", state.removesuffix(":"), number)
        if index >= n_states:
            _checks.fail(f"a state must lie in 0..{n_states - 1}: got {index} at {lab.place(number)}")
        for label in labels:
            if label not in names:
                _checks.fail(f"a label must be one that is declared: got {shown(label)} at {lab.place(number)}")
            states[names[label]].append(index)
    return states


def _declared(lab: Lines, number: int, words: list[str]) -> dict[str, str]:
    """`0="init" 1="deadlock"`: the names behind the numbers, which lines such as `3: 0 1` have."""
    names: dict[str, str] = {}
    known = set()
    for word in words:
        index, _, name = word.partition("=")
        if len(name) < 3 or not name.startswith('"') or not name.endswith('"'):
            _checks.fail(f'labels must be declared as in 0="init": got {shown(word)} at {lab.place(number)}')
        label = str(lab.index("the number of a label", index, number))
        if label in names or name in known:
            _checks.fail(f"labels must be declared once: {shown(word)} comes again at {lab.place(number)}")
        names[label] = name[1:-1]
        known.add(name)
    return names


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
    _write_labels(model, lab)
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
                f"{key} {value}{name}\n"
                for key, value, name in zip(keys, model.written_values(piece, ","), names, strict=True)
            )
            which = np.flatnonzero(_is_paid(piece.reward)).tolist()
            rewards.writelines(f"{keys[i]} {r!r}\n" for i, r in zip(which, piece.reward[which].tolist(), strict=True))


def _write_labels(model: Explicit, lab: Path) -> None:
    names = [INIT, DEADLOCK]  # PRISM expects both
    names += [name for name in written_state_labels(model.mdp, model.ends) if name not in names]
    numbers = {name: str(number) for number, name in enumerate(names)}
    by_state = sorted(labels_by_state(model.mdp, model.ends).items())
    with lab.open("w", encoding="utf-8") as file:
        file.write(" ".join(f'{number}="{name}"' for name, number in numbers.items()) + "\n")
        file.writelines(f"{state}: {' '.join(numbers[name] for name in found)}\n" for state, found in by_state)


def _is_paid(reward: FloatArray) -> BoolArray:
    """Zeros are left out, but for negative ones, whose sign would be lost."""
    return np.asarray((reward != 0) | np.signbit(reward))
