"""A Gymnasium environment that publishes its transition table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from robustmdp import _checks
from robustmdp.models import building
from robustmdp.models.mdp import MDP


def from_gymnasium(env_or_id: Any, discount: float) -> MDP:
    """See MDP.from_gymnasium."""
    env = made(env_or_id) if isinstance(env_or_id, str) else env_or_id
    table = getattr(getattr(env, "unwrapped", env), "P", None)
    name = env_or_id if isinstance(env_or_id, str) else _name_of(env)
    if table is None:
        _checks.fail(f"the environment must publish its transitions as env.unwrapped.P: {name} has none")
    rows = list(_transitions(table, name))
    _checks.must(len(rows) > 0, f"the environment must have at least one transition in its P: {name} has none")
    state, action, following, probability, reward, terminated = zip(*rows, strict=True)
    return building.from_rows(
        (state, action, following, probability, reward),
        discount,
        terminated=terminated,
        n_states=len(table),
        names=(None, None),
        place=lambda column, row: f"P[{state[row]}][{action[row]}] of {name}",
    )


def _transitions(table: Any, name: str) -> Iterator[tuple[Any, ...]]:
    for state, by_action in _items(table):
        for action, outcomes in _items(by_action):
            for outcome in outcomes:
                try:
                    probability, following, reward, terminated = outcome
                except (TypeError, ValueError):
                    _checks.fail(
                        "each outcome must be (probability, next_state, reward, terminated): "
                        f"got {outcome!r} at P[{state}][{action}] of {name}"
                    )
                yield state, action, following, probability, reward, terminated


def _items(table: Any) -> Any:
    return table.items() if hasattr(table, "items") else enumerate(table)


def made(identifier: str, **parameters: Any) -> Any:
    """The environment of an id, with parameters of its own."""
    try:
        import gymnasium
    except ImportError:
        raise ImportError(
            "Gymnasium must be installed to read its environments: pip install 'robustmdp[gymnasium]'"
        ) from None
    try:
        return gymnasium.make(identifier, **parameters)
    except (gymnasium.error.Error, TypeError) as problem:
        raise ValueError(f"Gymnasium must know the environment: {problem}") from None


def _name_of(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return spec.id if spec is not None else type(env).__name__
