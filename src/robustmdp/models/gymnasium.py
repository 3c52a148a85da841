"""From Gymnasium environments that publish their transition table to models, and from models to environments."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp.models import building
from robustmdp.models.assembly import Parts
from robustmdp.result import Solution

if TYPE_CHECKING:
    from robustmdp.models import MDP
    from robustmdp.models.environment import ModelEnvironment


def from_gymnasium(env_or_id: Any, discount: float, parameters: Mapping[str, Any]) -> Parts:
    """See MDP.from_gymnasium."""
    by_id = isinstance(env_or_id, str)
    name = env_or_id if by_id else _name_of(env_or_id)
    _checks.must(
        by_id or not parameters,
        f"keyword arguments must come with the id of an environment: got {_written(parameters)} for {name}, which is "
        "made already",
    )
    env = make_environment(env_or_id, parameters) if by_id else env_or_id
    table = getattr(getattr(env, "unwrapped", env), "P", None)
    if table is None:
        _checks.fail(
            f"the environment must publish its transitions as env.unwrapped.P: {name} has none",
            argument="environment",
            advice="; MarkovianQLearning learns without them where states and actions are discrete",
        )
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


def to_gymnasium(
    solution_or_mdp: Solution | MDP, *, start: npt.ArrayLike | None = None, max_steps: int | None = None
) -> ModelEnvironment:
    """A gymnasium.Env that plays the worst case of a solution, or a model.

    An agent of any kind can be trained or tested against nature's worst answer to `solution.policy`. States and actions
    are `Discrete`, rewards those of the model. `terminated` is True when the episode ends, with the last state as
    observation; `truncated` after `max_steps` steps. An unavailable action is refused; `info["action_mask"]` has a 1
    for each available one.

    The discounted return of the policy has `value` as its mean where nature has a radius. Where it pays for a
    divergence, discount * weight * D is part of the value and not of the reward: the step's part is
    `info["penalty"]`, and the mean of the discounted sum of reward + penalty is `value`.

    Parameters
    ----------
    solution_or_mdp : Solution with a worst case, or MDP
    start : a state by number or name, or (S,) probabilities of the first one; by default the model's `initial`, or
        state 0
    max_steps : int, optional
        Steps after which an episode is truncated; None for no limit.

    >>> from robustmdp import Constrained, KL, problems, solve
    >>> solution = solve(problems.machine_replacement(), Constrained(KL(), 0.2))
    >>> env = to_gymnasium(solution, max_steps=100)
    >>> state, info = env.reset(seed=0)
    >>> state, reward, terminated, truncated, info = env.step(solution.policy[state])
    >>> info["state_name"], terminated, truncated
    ('age 1', False, False)
    """
    _types.check_arguments(to_gymnasium, locals())
    _import_gymnasium()
    from robustmdp.models.environment import ModelEnvironment

    if isinstance(solution_or_mdp, Solution):
        return ModelEnvironment(solution_or_mdp.worst_case, solution_or_mdp.penalty, start, max_steps)
    return ModelEnvironment(solution_or_mdp, None, start, max_steps)


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


def make_environment(identifier: str, parameters: Mapping[str, Any]) -> Any:
    """`gymnasium.make(identifier, **parameters)`, with one sentence for whatever goes wrong."""
    gymnasium = _import_gymnasium()
    try:
        return gymnasium.make(identifier, **parameters)
    except ImportError:
        raise  # its message names the package that is missing
    except gymnasium.error.Error as problem:
        raise ValueError(f"Gymnasium must know the environment: {problem}") from None
    except Exception as problem:
        # An environment may refuse a value with any exception: FrozenLake has a KeyError for an unknown map_name.
        cause = problem
    if parameters and isinstance(cause, TypeError):
        _refuse_unknown_name(identifier, parameters)
    given = f" with {_written(parameters)}" if parameters else ""
    # Gymnasium appends the id and all keyword arguments, which the sentence has already.
    reason = " ".join(str(cause).split()).partition(" was raised from the environment creator")[0]
    raise ValueError(f"Gymnasium must be able to make {identifier}{given}: {type(cause).__name__}: {reason}") from cause


def parameter_names(identifier: str, parameters: Mapping[str, Any]) -> list[str]:
    """The keyword arguments of an environment that can be made with `parameters`; none where it takes any name."""
    env = make_environment(identifier, parameters).unwrapped
    found = inspect.signature(type(env).__init__).parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in found.values())
    return [] if takes_any else [name for name in found if name not in ("self", "render_mode")]


def _refuse_unknown_name(identifier: str, parameters: Mapping[str, Any]) -> None:
    """Refuse a parameter that the environment does not have, with the nearest one that it has."""
    try:
        known = parameter_names(identifier, {})
    except ValueError:
        return  # it cannot be made without parameters either
    of_make = inspect.signature(_import_gymnasium().make).parameters
    for name in parameters:
        if known and name not in known and name not in of_make:
            _checks.nearest(f"a parameter of {identifier}", name, known)


def _written(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items())


def _import_gymnasium() -> Any:
    try:
        import gymnasium
    except ImportError:
        raise ImportError(
            "Gymnasium must be installed to read its environments: pip install 'robustmdp[gymnasium]'"
        ) from None
    return gymnasium


def _name_of(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return spec.id if spec is not None else type(env).__name__
