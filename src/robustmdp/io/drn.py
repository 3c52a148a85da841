"""Storm's DRN files for MDPs: states, their choices and their successors as indented lines; the first reward model."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from robustmdp import _checks
from robustmdp.io.choices import Lines, by_label, written_labels
from robustmdp.io.columns import NONE, Columns
from robustmdp.io.delimited import open_text
from robustmdp.io.explicit import Explicit
from robustmdp.io.words import shown
from robustmdp.models.assembly import Block

_UNLABELLED = "__NOLABEL__"
_SECTIONS = ("@parameters", "@placeholders", "@reward_models", "@nr_states", "@nr_choices", "@model")
_EXACT_TYPES = ("double", "rational")


def read_drn(path: Path, *, numbered: bool) -> Columns:
    """The transitions; actions are the numbers of the choices if `numbered`, by their labels otherwise."""
    body = _Body(Lines(path))
    with open_text(path) as text:
        lines = ((number, line.strip()) for number, line in enumerate(text, 1))
        filled = ((number, line) for number, line in lines if not line.startswith("//"))
        counts = _header(body, filled)
        body.read(filled)
    body.check(counts)
    state, choice, following, line = (np.array(column, np.int64) for column in body.indices)
    labelled = by_label(state, choice, [""] if numbered else body.labels)
    columns = Block(state, labelled.action, following, np.array(body.probability), np.array(body.reward), NONE)
    return Columns(body.file, columns, line, counts["@nr_states"], (None, labelled.names))


def _header(body: _Body, lines: Iterator[tuple[int, str]]) -> dict[str, int]:
    """Up to the line `@model`: the counts; the values behind placeholders go to `body`."""
    file, section = body.file, ""
    counts: dict[str, int] = {}
    for number, line in lines:
        if not section and line and not line.startswith("@type:"):
            _checks.fail(f"{file.name} must start with @type: MDP: got {shown(line)} at {file.place(number)}")
        if line.startswith("@"):
            section = _section(file, line, number)
            if section == "@model":
                told = "@nr_states" in counts
                _checks.must(told, f"{file.name} must tell the number of states: it has no @nr_states")
                return counts
        elif section == "@parameters" and line:
            _checks.fail(f"{file.name} must have no parameters: got {shown(line)} at {file.place(number)}")
        elif section == "@placeholders" and line:
            name, _, value = line.partition(" : ")
            body.placeholders[name] = file.number(f"placeholder {shown(name)}", value.strip(), number)
        elif section in ("@nr_states", "@nr_choices") and section not in counts and line:
            counts[section] = file.index(section, line, number)
        elif line and section != "@reward_models":
            _checks.fail(f"a line @model must come first: got {shown(line)} at {file.place(number)}")
    _checks.fail(f"{file.name} must have a line @model: it ended before")


def _section(file: Lines, line: str, number: int) -> str:
    name, _, word = line.partition(":")
    word = word.strip()
    if name == "@type":
        _checks.must(
            word.upper() == "MDP", f"{file.name} must hold an MDP: it says {shown(word)} at {file.place(number)}"
        )
    elif name == "@value_type":
        _checks.must(
            word in _EXACT_TYPES, f"{file.name} must hold numbers: its values are {shown(word)} at {file.place(number)}"
        )
    elif line not in _SECTIONS:
        _checks.fail(f"{shown(line)} must be a section of a DRN file, such as @model: got it at {file.place(number)}")
    return name


class _Body:
    """What has been read of the states so far."""

    def __init__(self, file: Lines) -> None:
        self.file = file
        self.placeholders: dict[str, float] = {}
        self.indices = tuple(array("q") for _ in range(4))  # state, choice, successor, line
        self.probability, self.reward = array("d"), array("d")
        self.labels: list[str] = []
        self.state = self.choice = -1
        self.n_choices = 0
        self.label = ""
        self.state_reward = self.choice_reward = 0.0

    def read(self, lines: Iterator[tuple[int, str]]) -> None:
        """Line by line."""
        for number, line in lines:
            if line.startswith("state "):
                self._start_state(line, number)
            elif line.startswith("action ") and self.state >= 0:
                self._start_choice(line, number)
            elif line and self.choice >= 0:
                self._add(line, number)
            elif line:
                _checks.fail(f"a state and an action must come first: got {shown(line)} at {self.file.place(number)}")

    def check(self, counts: dict[str, int]) -> None:
        """Against what the head tells."""
        found = {"@nr_states": self.state + 1, "@nr_choices": self.n_choices}
        for name, told in counts.items():
            what = f"{told} {'states' if name == '@nr_states' else 'choices'}"
            _checks.must(
                told == found[name], f"{self.file.name} must hold the {what} that it tells of: it has {found[name]}"
            )
        _checks.must(len(self.labels) > 0, f"{self.file.name} must hold at least one transition: got none")

    def _start_state(self, line: str, number: int) -> None:
        words = line.split(maxsplit=2)
        state = self.file.index("state", words[1] if len(words) > 1 else "", number)
        if state != self.state + 1:
            _checks.fail(f"state {self.state + 1} must come next: got {state} at {self.file.place(number)}")
        self.state, self.choice = state, -1
        self.state_reward = self._first_reward(words[2] if len(words) > 2 else "", number)

    def _start_choice(self, line: str, number: int) -> None:
        words = line.split(maxsplit=2)
        self.choice += 1
        self.n_choices += 1
        plain = len(words) < 2 or words[1] in (_UNLABELLED, str(self.choice))
        self.label = "" if plain else words[1]
        self.choice_reward = self._first_reward(words[2] if len(words) > 2 else "", number)

    def _first_reward(self, rest: str, number: int) -> float:
        """Of [1, 2, 3]; 0 without brackets."""
        if not rest.startswith("["):
            return 0.0
        inside, bracket, _ = rest[1:].partition("]")
        _checks.must(bracket == "]", f"rewards must stand in brackets: got {shown(rest)} at {self.file.place(number)}")
        first = inside.partition(",")[0].strip()
        return self._number("reward", first, number) if first else 0.0

    def _add(self, line: str, number: int) -> None:
        successor, colon, value = line.partition(":")
        if colon != ":":
            _checks.fail(f"a transition must be written as 1 : 0.5: got {shown(line)} at {self.file.place(number)}")
        index = self.file.index("next state", successor.strip(), number)
        for column, entry in zip(self.indices, (self.state, self.choice, index, number), strict=True):
            column.append(entry)
        self.probability.append(self._number("probability", value.strip(), number))
        # A zero that nothing is added to keeps its sign.
        self.reward.append(self.choice_reward + self.state_reward if self.state_reward else self.choice_reward)
        self.labels.append(self.label)

    def _number(self, what: str, text: str, line: int) -> float:
        if text.startswith("$") and text in self.placeholders:
            return self.placeholders[text]
        return self.file.number(what, text, line)


def write_drn(model: Explicit, path: Path) -> None:
    """With the rewards of choices; numbers as Python prints them, which gives every bit back."""
    labels = written_labels(model.mdp.action_names)
    with path.open("w", encoding="utf-8") as file:
        file.write("// Exported by robustmdp\n@type: MDP\n@parameters\n\n@reward_models\nreward\n")
        file.write(f"@nr_states\n{model.n_states}\n@nr_choices\n{model.n_choices}\n@model\n")
        state, choice = -1, -1
        for piece in model.pieces(by_choice=True):
            for s, a, c, t, p, r in zip(*(column.tolist() for column in piece), strict=True):
                if s != state:
                    name = " init" if s == 0 else " end" if s >= model.mdp.n_states else ""
                    file.write(f"state {s}{name}\n")
                if s != state or c != choice:
                    file.write(f"\taction {labels[a] if labels else c} [{r!r}]\n")
                state, choice = s, c
                file.write(f"\t\t{t} : {p!r}\n")
