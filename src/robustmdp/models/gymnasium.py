"""A Gymnasium environment that publishes its transition table."""

from __future__ import annotations

from typing import Any

from robustmdp import _checks
from robustmdp.models.mdp import MDP


def from_gymnasium(env_or_id: Any, discount: float) -> MDP:
    """See MDP.from_gymnasium."""
    env = made(env_or_id) if isinstance(env_or_id, str) else env_or_id
    table = getattr(getattr(env, "unwrapped", env), "P", None)
    name = env_or_id if isinstance(env_or_id, str) else _name_of(env)
    if table is None:
        _checks.fail(f"the environment must publish its transitions as env.unwrapped.P: {name} has none")
    rows = [
        (state, action, following, probability, reward, bool(terminated))
        for state, by_action in _items(table)
        for action, outcomes in _items(by_action)
        for probability, following, reward, terminated in outcomes
    ]
    state, action, following, probability, reward, terminated = zip(*rows, strict=True)
    return MDP.from_rows(
        state, action, following, probability, reward, discount, terminated=terminated, n_states=len(table)
    )


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
