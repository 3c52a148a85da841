"""A solution of a model in shards as a file: the worst-case model and all tables, range by range of its states."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from robustmdp.cluster.operator import ShardedBellman
from robustmdp.cluster.shard import Response
from robustmdp.io.meta import VERSION, Meta
from robustmdp.io.tensors import TensorStream, tensor_stream
from robustmdp.models.part import Outline
from robustmdp.planning.run import bounds
from robustmdp.result import Solution


def write_solution(solution: Solution, bellman: ShardedBellman, path: Path) -> None:
    """The answer of nature to `solution.base`, from shards that were loaded anew."""
    outline, base = bellman.mdp, bellman.place(solution.base)
    _, _, shift = bounds(bellman.bracket(base), base, outline)  # type: ignore[arg-type]  # Values are like arrays
    with tensor_stream(path) as (stream, part):
        for kind in ("value", "lower", "upper"):
            stream.append(kind, getattr(solution, kind))
        if solution.policy.ndim == 1:
            stream.append("policy", solution.policy)
        first = 0
        for response in bellman.respond(base):
            last = first + len(response.rows.state_ptr) - 1
            _append(stream, response, shift, outline)
            if solution.policy.ndim == 2:
                states = np.repeat(np.arange(first, last), np.diff(response.rows.state_ptr))
                stream.append("policy_probabilities", solution.policy[states, response.rows.actions])
            first = last
        stream.join(_notes(outline), part)


def _append(stream: TensorStream, response: Response, shift: float, outline: Outline) -> None:
    rows = response.rows
    if (outline.rewards_on_successors or outline.noise is not None) and len(rows.rewards) != len(rows.indices):
        rows = rows._replace(rewards=np.repeat(rows.rewards, np.diff(rows.indptr)))
    stream.append_rows(rows)
    stream.append("q", 0.5 * (response.q_lower + response.q_upper) + shift)
    stream.append("penalty", response.penalty)
    stream.append("eta", response.eta)


def _notes(outline: Outline) -> Meta:
    return Meta(
        version=VERSION,
        discount=outline.discount,
        n_states=outline.n_states,
        n_actions=outline.n_actions,
        rewards_on_successors=outline.rewards_on_successors or outline.noise is not None,
        state_names=outline.state_names,
        action_names=outline.action_names,
    )
