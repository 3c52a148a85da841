"""What states and actions are called in a report."""

from __future__ import annotations

from dataclasses import dataclass

from robustmdp.analysis.layout import Layout
from robustmdp.analysis.study import Row
from robustmdp.models import MDP
from robustmdp.report.distribution import Outcome


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

    def pair(self, row: Row) -> str:
        """Of a pair."""
        return f"{self.state(row.state)}: {self.action(row.action)}"

    def outcomes(self, row: Row) -> tuple[Outcome, ...]:
        """The successors of a pair with their probabilities and what each is worth."""
        names = [successor if successor == "the end" else self.state(int(successor)) for successor in row.successors]
        columns = zip(names, row.nominal.tolist(), row.worst.clip(0.0, 1.0).tolist(), row.values.tolist(), strict=True)
        return tuple(columns)

    def pull(self, row: Row) -> str:
        """Where nature takes probability from, and where it puts it."""
        shift = row.worst - row.nominal
        if row.moved < 5e-4:
            return "hardly moved"
        names = [name for name, *_ in self.outcomes(row)]
        return f"{row.moved:.3f} from {names[int(shift.argmin())]} to {names[int(shift.argmax())]}"
