"""What states and actions are called in a report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray
from robustmdp._display import choice_text
from robustmdp.app.study.layout import Layout
from robustmdp.app.study.nature import Row
from robustmdp.app.study.numbers import alike
from robustmdp.models import MDP
from robustmdp.operators.policy import likeliest, probability_of_likeliest

Outcome = tuple[str, float, float, float | None]  # name, nominal and worst-case probability, value

_SMALL = 0.1  # below, four digits are too many for a narrow column
_MOST = 12  # successors of a pair that are listed


@dataclass(frozen=True, eq=False)
class Names:
    """By the layout where there is one, otherwise by the model's own names."""

    mdp: MDP
    layout: Layout | None

    def state(self, state: int) -> str:
        """Of a state."""
        return self.layout.name(state) if self.layout and not self.mdp.state_names else self.mdp.state_name(state)

    def action(self, action: int) -> str:
        """Of an action."""
        if self.layout and not self.mdp.action_names and action < len(self.layout.arrows):
            return self.layout.arrows[action]
        return self.mdp.action_name(action)

    def choice(self, policy: npt.NDArray[Any], state: int) -> str:
        """The likeliest action of a policy, with its probability where it is random."""
        name = self.action(int(likeliest(policy[[state]])[0]))
        return choice_text(name, float(probability_of_likeliest(policy[[state]])[0]))

    def pair(self, row: Row) -> str:
        """Of a pair."""
        return f"{self.state(row.state)}: {self.action(row.action)}"

    def outcomes(self, row: Row) -> list[Outcome]:
        """Successors with their probabilities and values; of many, the likeliest and the sum of the rest."""
        names = self._successors(row)
        worst = row.worst.clip(0.0, 1.0).tolist()
        small = float(np.abs(row.values).max()) < _SMALL
        values = alike(row.values, 2 if small else 4)
        found: list[Outcome] = list(zip(names, row.nominal.tolist(), worst, values, strict=True))
        if len(found) <= _MOST:
            return found
        ranked = sorted(range(len(found)), key=lambda i: -max(found[i][1], found[i][2]))
        kept, others = sorted(ranked[: _MOST - 1]), [found[i] for i in ranked[_MOST - 1 :]]
        nominal, bent = math.fsum(each[1] for each in others), math.fsum(each[2] for each in others)
        return [*(found[i] for i in kept), (f"{len(others)} more", nominal, bent, None)]

    def pull(self, row: Row) -> str:
        """Where nature takes most of the chance that it moves, and where it puts most of it."""
        shift = row.worst - row.nominal
        if row.moved < 5e-4:
            return "hardly any"
        names = self._successors(row)
        return f"{100 * row.moved:.2g} % from {names[int(shift.argmin())]} to {names[int(shift.argmax())]}"

    def _successors(self, row: Row) -> list[str]:
        return [name if name == "the end" else self.state(int(name)) for name in row.successors]

    def start(self, chances: FloatArray) -> str:
        """Where it begins."""
        first = np.flatnonzero(chances)
        if len(first) == 1:
            return self.state(int(first[0]))
        equal = len(set(chances[first].tolist())) == 1
        which = "any state" if len(first) == self.mdp.n_states else f"one of {len(first):,} states"
        return f"{which}, equally likely" if equal else which
