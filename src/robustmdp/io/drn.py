"""Storm's DRN files for MDPs: states, their choices and successors as indented lines, with numbers or intervals."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from robustmdp import _checks
from robustmdp.io.choices import BATCH, Lines, by_label, labels_by_state, written_labels
from robustmdp.io.columns import NONE, Columns
from robustmdp.io.explicit import Explicit
from robustmdp.io.text import open_text, shown
from robustmdp.models.assembly import Block

_COMMENT = "//"
_UNLABELLED = "__NOLABEL__"
_SECTIONS = ("@parameters", "@placeholders", "@reward_models", "@nr_states", "@nr_choices", "@model")
_NUMBERS = ("double", "rational")
_INTERVALS = ("double-interval", "rational-interval", "interval")
# Rewards in brackets, which may hold intervals; a label in quotation marks; a label.
_STATE_WORDS = re.compile(r'(\[(?:[^\[\]]+|\[[^\]]*\])*\]?)|"([^"]+)"|([^\s"]+)')
_REWARDS = re.compile(r"\[[^\]]*\]|[^,\[\]\s][^,\[\]]*")


def read_drn(path: Path, *, numbered: bool, intervals: bool = False, reward: str | None = None) -> Columns:
    """The transitions; actions are the numbers of the choices if `numbered`, by their labels otherwise.

    `reward` names a reward model, instead of the first.
    """
    body = _Body(Lines(path), intervals, reward)
    with open_text(path) as text:
        lines = ((number, line.strip()) for number, line in enumerate(text, 1))
        counts = _header(body, lines)
        body.read(lines)
    body.check(counts)
    return body.columns(counts["@nr_states"], numbered=numbered)


def _header(body: _Body, lines: Iterator[tuple[int, str]]) -> dict[str, int]:
    """Up to the line `@model`: the counts; the values behind placeholders go to `body`."""
    file, section = body.file, ""
    counts: dict[str, int] = {}
    for number, line in lines:
        if line.startswith(_COMMENT):
            continue
        if not section and line and not line.startswith("@type:"):
            _checks.fail(f"{file.name} must start with @type: MDP: got {shown(line)} at {file.place(number)}")
        if line.startswith("@"):
            section = _section(body, line, number)
            if section == "@model":
                has_count = "@nr_states" in counts
                _checks.must(has_count, f"{file.name} must tell the number of states: it has no @nr_states")
                if body.reward_model is not None:
                    if body.reward_model not in body.reward_models:
                        _checks.nearest("reward", body.reward_model, body.reward_models)
                    body.reward_position = body.reward_models.index(body.reward_model)
                return counts
        elif section == "@parameters" and line:
            _checks.fail(f"{file.name} must have no parameters: got {shown(line)} at {file.place(number)}")
        elif section == "@placeholders" and line:
            name, _, value = line.partition(" : ")
            _checks.must(
                name.startswith("$"), f"a placeholder must be named as in $0: got {shown(name)} at {file.place(number)}"
            )
            body.placeholders[name] = body.bounds(f"placeholder {shown(name)}", value.strip(), number)
        elif section == "@reward_models":
            body.reward_models += line.split()
        elif section in ("@nr_states", "@nr_choices") and section not in counts and line:
            counts[section] = file.index(section, line, number)
        elif line:
            _checks.fail(f"a line @model must come first: got {shown(line)} at {file.place(number)}")
    _checks.fail(f"{file.name} must have a line @model: it ended before")


def _section(body: _Body, line: str, number: int) -> str:
    file = body.file
    name, _, word = line.partition(":")
    word = word.strip()
    if name == "@type":
        _checks.must(
            word.upper() == "MDP", f"{file.name} must hold an MDP: it says {shown(word)} at {file.place(number)}"
        )
    elif name == "@value_type":
        if word.lower() in _INTERVALS and not body.intervals:
            file.refuse_interval(number)
        known = word.lower() in (_NUMBERS + _INTERVALS)
        _checks.must(known, f"{file.name} must hold numbers: its values are {shown(word)} at {file.place(number)}")
    elif line not in _SECTIONS:
        _checks.fail(f"{shown(line)} must be a section of a DRN file, such as @model: got it at {file.place(number)}")
    return name


class _Body:
    """What has been read of the states so far."""

    def __init__(self, file: Lines, intervals: bool, reward_model: str | None) -> None:
        self.file, self.intervals, self.reward_model = file, intervals, reward_model
        self.reward_models: list[str] = []
        self.reward_position = 0
        self.placeholders: dict[str, tuple[float, float]] = {}
        self.known_rewards: dict[str, float] = {}  # by their text
        # Transitions that are not parsed yet: their successors, values and lines.
        self.pending: tuple[list[str], list[str], list[int]] = ([], [], [])
        self.states, self.choices, self.starts = array("q"), array("q"), array("q")  # one entry for each choice
        self.rewards, self.labels = array("d"), list[str]()
        self.successors, self.lines, self.lower, self.upper = array("q"), array("q"), array("d"), array("d")
        self.labels_of_states: dict[str, array[int]] = {}
        self.state = self.choice = -1
        self.state_reward = 0.0

    def read(self, lines: Iterator[tuple[int, str]]) -> None:
        for number, line in lines:
            if line.startswith("action ") and self.state >= 0:
                self._start_choice(line, number)
            elif line.startswith("state "):
                self._start_state(line, number)
            elif line.startswith(_COMMENT):
                continue
            elif line and self.choice >= 0:
                self._add(line, number)
            elif line:
                _checks.fail(f"a state and an action must come first: got {shown(line)} at {self.file.place(number)}")
        self._parse_pending()

    def check(self, counts: dict[str, int]) -> None:
        """Against what the head tells."""
        found = {"@nr_states": self.state + 1, "@nr_choices": len(self.choices)}
        for name, stated in counts.items():
            what = f"{stated} {'states' if name == '@nr_states' else 'choices'}"
            _checks.must(
                stated == found[name], f"{self.file.name} must hold the {what} that it tells of: it has {found[name]}"
            )
        _checks.must(len(self.lines) > 0, f"{self.file.name} must hold at least one transition: got none")

    def _start_state(self, line: str, number: int) -> None:
        words = [*line.split(maxsplit=2), "", ""]
        state = self.file.index("state", words[1], number)
        if state != self.state + 1:
            _checks.fail(f"state {self.state + 1} must come next: got {state} at {self.file.place(number)}")
        self.state, self.choice, self.state_reward = state, -1, 0.0
        for rewards, quoted, word in _STATE_WORDS.findall(words[2]):
            if rewards:
                self.state_reward = self._reward(rewards, number)
            else:
                self.labels_of_states.setdefault(quoted or word, array("q")).append(state)

    def _start_choice(self, line: str, number: int) -> None:
        words = line.split(maxsplit=2)
        self.choice += 1
        is_plain = len(words) < 2 or words[1] in (_UNLABELLED, str(self.choice))
        reward = self._reward(words[2], number) if len(words) > 2 and words[2].startswith("[") else 0.0
        self.states.append(self.state)
        self.choices.append(self.choice)
        self.starts.append(len(self.lines) + len(self.pending[0]))
        self.labels.append("" if is_plain else words[1])
        # A zero that nothing is added to keeps its sign.
        self.rewards.append(reward + self.state_reward if self.state_reward else reward)

    def _reward(self, text: str, number: int) -> float:
        """Of [1, 2, 3] that of the reward model; an interval of a reward must be a point."""
        if text in self.known_rewards:
            return self.known_rewards[text]
        if text.count("[") != text.count("]"):
            _checks.fail(f"rewards must stand in brackets: got {shown(text)} at {self.file.place(number)}")
        inside = text[1 : text.rfind("]")]
        rewards = _REWARDS.findall(inside) if "[" in inside else inside.split(",")
        chosen = rewards[self.reward_position].strip() if self.reward_position < len(rewards) else ""
        lower, upper = self.bounds("reward", chosen or "0", number)
        if not (lower == upper or math.isnan(lower)):  # NaN is refused with all other rewards
            _checks.fail(f"a reward must be a number: got the interval {shown(chosen)} at {self.file.place(number)}")
        if len(self.known_rewards) < BATCH:
            self.known_rewards[text] = lower
        return lower

    def _add(self, line: str, number: int) -> None:
        successor, colon, value = line.partition(":")
        if not colon:
            _checks.fail(f"a transition must be written as 1 : 0.5: got {shown(line)} at {self.file.place(number)}")
        successors, values, lines = self.pending
        successors.append(successor.rstrip())
        values.append(value.lstrip())
        lines.append(number)
        if len(lines) == BATCH:
            self._parse_pending()

    def _parse_pending(self) -> None:
        successors, values, lines = self.pending
        self.pending = ([], [], [])
        if not lines:
            return
        is_plain = not any(value.startswith("$" if self.intervals else ("$", "[")) for value in values)
        if is_plain:
            lower, upper = self.file.all_bounds("probability", values, lines)
        else:
            both = [self.bounds("probability", value, line) for value, line in zip(values, lines, strict=True)]
            lower, upper = (array("d", bounds) for bounds in zip(*both, strict=True))
        self.successors += self.file.all_indices("next state", successors, lines)
        self.lower += lower
        self.upper += upper
        self.lines += array("q", lines)

    def bounds(self, what: str, text: str, line: int) -> tuple[float, float]:
        """The lower and the upper one; both are the same for a number."""
        if text in self.placeholders:
            return self.placeholders[text]
        if text.startswith("[") and not self.intervals:
            self.file.refuse_interval(line)
        return self.file.bounds(what, text, line)

    def columns(self, n_states: int, *, numbered: bool) -> Columns:
        """All that was read; choices without transitions are none."""
        sizes = np.diff(np.append(np.array(self.starts), len(self.lines)))
        used = sizes > 0
        state, choice = np.array(self.states)[used], np.array(self.choices)[used]
        labels = [label for label, size in zip(self.labels, sizes.tolist(), strict=True) if size]
        action, names = by_label(state, choice, [""] if numbered else labels)
        per_choice = (state, action, np.array(self.rewards)[used])
        states, actions, rewards = (np.repeat(column, sizes[used]) for column in per_choice)
        lower, upper = np.array(self.lower), np.array(self.upper)
        return Columns(
            self.file,
            Block(states, actions, np.array(self.successors), lower, rewards, NONE),
            np.array(self.lines),
            n_states,
            (None, names),
            self.labels_of_states,
            upper=upper if self.intervals else None,
        )


def write_drn(model: Explicit, path: Path) -> None:
    """With the rewards of choices; numbers as Python prints them, which gives every bit back."""
    labels, marks = written_labels(model.mdp.action_names), labels_by_state(model.mdp, model.ends)
    kind = "@value_type: double-interval\n" if model.bounds else ""
    with path.open("w", encoding="utf-8") as file:
        file.write(f"// Exported by robustmdp\n@type: MDP\n{kind}@parameters\n\n@reward_models\nreward\n")
        file.write(f"@nr_states\n{model.n_states}\n@nr_choices\n{model.n_choices}\n@model\n")
        state, choice = -1, -1
        for piece in model.pieces(by_choice=True):
            columns = (piece.state, piece.action, piece.choice, piece.next_state, piece.reward)
            values = model.written_values(piece)
            for s, a, c, t, r, value in zip(*(column.tolist() for column in columns), values, strict=True):
                if s != state:
                    file.write(f"state {' '.join([str(s), *marks.get(s, ())])}\n")
                if s != state or c != choice:
                    file.write(f"\taction {labels[a] if labels else c} [{r!r}]\n")
                state, choice = s, c
                file.write(f"\t\t{t} : {value}\n")
