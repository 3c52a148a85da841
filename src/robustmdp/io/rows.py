"""The one place where what a file says becomes a model: columns and notes in, an MDP out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.io.columns import Columns, Source, in_memory, in_order
from robustmdp.io.labelling import DEADLOCK, END, INIT, Labelling, from_pairs, label_states, to_masks, uniform
from robustmdp.io.meta import Meta
from robustmdp.io.text import shown
from robustmdp.models import MDP, row_sums
from robustmdp.models.assembly import Rows, assemble, parts_of
from robustmdp.models.consistency import check_room
from robustmdp.models.labels import Labels
from robustmdp.models.mdp import from_checked

_ROUNDING = 1e-9  # of the largest reward: what a mean may lose


class Read(NamedTuple):
    """A model, and the number of states that were given an action that stays."""

    mdp: MDP
    stays: int


def model_of(source: Source, meta: Meta | None, discount: float) -> Read:
    """The model of a file and what is noted beside it."""
    rows = assemble(source.blocks(), source.length, source)
    if rows is None:
        source = in_order(source)
        rows = assemble(source.blocks(), source.length, source)
    if rows is None or not len(rows.states):
        _checks.fail(f"{source.name} must hold at least one transition: got none")
    n_states = _n_states(rows, source)
    _normalise(rows, source)
    rows, stays = _with_stays(rows, n_states, source)
    if meta is None:
        n_actions = None if source.names[1] is None else len(source.names[1])
        parts = parts_of(rows, n_states, discount, n_actions=n_actions, names=source.names)
        mdp = label_states(from_checked(MDP, **parts), source.labelling, source.name)
    else:
        _refuse_names(source)
        mdp = _noted(rows, n_states, meta, discount, source.name)
        mdp = _noted_labels(mdp, source.labelling, meta, source.name)
    check_room(mdp.n_states, mdp.n_actions, mdp.nnz, source.name)
    return Read(mdp, stays)


def _refuse_names(source: Source) -> None:
    """What was written with notes has numbers."""
    names = next((names for names in source.names if names is not None), None)
    if names is not None:
        _checks.fail(
            f"{source.name} must have numbers of states and actions, whose names are in {source.name}.meta.json: "
            f"got {shown(names[0])}; delete the notes if the file was changed"
        )


def _n_states(rows: Rows, source: Source) -> int:
    """As promised, or the largest state + 1, before any memory is taken for them."""
    promised = source.n_states
    if promised is not None and rows.largest_state >= promised:
        _checks.fail(
            f"the states of {source.name} must lie in 0..{promised - 1}, as it says itself: "
            f"got {rows.largest_state} at {source.place(rows.largest_state_row)}"
        )
    n_states = rows.largest_state + 1 if promised is None else promised
    if n_states > 2 * len(rows.indices) + 1:
        _checks.fail(
            f"every state must have an action or be reached: {source.name} has states up to {n_states - 1} "
            f"and {len(rows.indices)} transitions (the largest state is at {source.place(rows.largest_state_row)})"
        )
    return n_states


def _normalise(rows: Rows, source: Source) -> None:
    def describe(pair: int, total: float) -> str:
        state, action = int(rows.states[pair]), int(rows.actions[pair])
        return (
            f"the probabilities of state {name_of(source, 0, state)} and action {name_of(source, 1, action)} "
            f"must sum to 1: got {total:.9g} "
            f"at {source.place(_first_row(source, state, action))}"
            + ("; if it is a log, estimate a model as in rm.estimate(rm.read_log(path))" if source.may_be_log else "")
        )

    row_sums.normalise(rows.indptr, rows.probabilities, describe, in_place=True)


def name_of(source: Source, kind: int, number: int) -> str:
    """Of a state (0) or an action (1), in messages."""
    names = source.names[kind]
    return str(number) if names is None else shown(names[number])


def _first_row(source: Source, state: int, action: int) -> int:
    seen = 0
    for block in source.blocks():
        found = np.flatnonzero((block.state == state) & (block.action == action))
        if found.size:
            return seen + int(found[0])
        seen += len(block.state)
    return 0


def _with_stays(rows: Rows, n_states: int, source: Source) -> tuple[Rows, int]:
    """States that are only reached get one action, which stays and earns nothing."""
    lacking = np.bincount(rows.states, minlength=n_states) == 0
    if not lacking.any():
        return rows, 0
    reached = np.zeros(n_states, bool)
    reached[rows.indices] = True
    never = np.flatnonzero(lacking & ~reached)
    if never.size:
        state = name_of(source, 0, int(never[0]))
        _checks.fail(f"every state must have an action or be reached: state {state} of {source.name} does neither")
    states = np.flatnonzero(lacking)
    pairs = np.searchsorted(rows.states, states)
    entries = rows.indptr[pairs]
    sizes = np.insert(np.diff(rows.indptr), pairs, 1)
    complete = rows._replace(
        indptr=np.concatenate([[0], np.cumsum(sizes)]),
        indices=np.insert(rows.indices, entries, states),
        probabilities=np.insert(rows.probabilities, entries, 1.0),
        rewards=np.insert(rows.rewards, entries, 0.0),
        states=np.insert(rows.states, pairs, states),
        actions=np.insert(rows.actions, pairs, 0),
    )
    return complete, len(states)


def _noted(rows: Rows, n_states: int, meta: Meta, discount: float, name: str) -> MDP:
    """The model that was written: without explicit ends, with its own actions, rewards and names."""
    _same("states", meta.n_states + meta.ends, n_states, name)
    rows = _without_ends(rows, meta, name)
    if meta.actions is not None:
        _same("pairs", len(meta.actions), len(rows.states), name)
        rows = rows._replace(actions=np.array(meta.actions, np.int32))
        rising = (np.diff(rows.actions) > 0) | (np.diff(rows.states) > 0)
        _checks.must(bool(rising.all()), f"the actions of a state must rise in {name}.meta.json")
    if meta.rewards is not None:
        _same("transitions", len(meta.rewards), len(rows.indices), name)
        noted = np.array(meta.rewards)
        _check_means(rows, noted, name)
        rows = rows._replace(rewards=noted, rewards_on_successors=True)
    _same("actions", meta.n_actions, max(meta.n_actions, int(rows.actions.max()) + 1), name)
    names, by_pair = (meta.state_names, meta.action_names), not meta.rewards_on_successors
    parts = parts_of(rows, meta.n_states, discount, n_actions=meta.n_actions, by_pair=by_pair, names=names)
    return from_checked(MDP, **parts)


def _noted_labels(mdp: MDP, labelling: Labelling, meta: Meta, name: str) -> MDP:
    """What the file says of the states and, where it had no place for it, what is noted; the file may have changed."""
    n_states, notes = mdp.n_states, f"{name}.meta.json"
    ends = np.arange(n_states, n_states + meta.ends)
    in_file = {label: np.array(states, np.int64) for label, states in labelling.items()}
    first = in_file.pop(INIT, np.empty(0, np.int64))
    own = {
        label: states[states < n_states]
        for label, states in in_file.items()
        # These are ours: PRISM expects the one, and the other says which states are the ends.
        if not (label == DEADLOCK and not len(states)) and not (label == END and np.array_equal(states, ends))
    }
    labels = to_masks(own, mdp, name) | to_masks(meta.labels or {}, mdp, notes)
    initial = uniform(first[first < n_states], n_states)
    if meta.initial is not None:
        given, implied = from_pairs(meta.initial, n_states, notes), initial
        _checks.must(
            implied is None or np.array_equal(np.sign(implied), np.sign(given)),
            f"the initial states in {notes} must be those of {name}; delete the notes if the file was changed",
        )
        initial = given
    elif not meta.has_initial and np.array_equal(first, [0]):
        initial = None  # the file must have one, the model has none
    return mdp._replace(labels=Labels(sorted(labels.items())), initial=initial)


def _same(what: str, stated: int, came: int, name: str) -> None:
    _checks.must(
        stated == came, f"{name}.meta.json must belong to {name}: it tells of {stated} {what}, but there are {came}"
    )


def _without_ends(rows: Rows, meta: Meta, name: str) -> Rows:
    """The last states of the file, which stand for the end, become the one hidden state `n_states`."""
    if not meta.ends:
        return rows
    kept = int(np.searchsorted(rows.states, meta.n_states))
    ending = slice(int(rows.indptr[kept]), None)
    stays = (
        len(rows.states) - kept == meta.ends == len(rows.indices[ending])
        and np.array_equal(rows.indices[ending], rows.states[kept:])
        and not rows.rewards[ending].any()
    )
    _checks.must(
        stays, f"the last {meta.ends} states of {name} must stay and earn nothing: its meta file calls them ends"
    )
    return rows._replace(
        indptr=rows.indptr[: kept + 1].copy(),
        indices=np.minimum(rows.indices[: ending.start], meta.n_states),
        probabilities=rows.probabilities[: ending.start].copy(),
        rewards=rows.rewards[: ending.start].copy(),
        states=rows.states[:kept].copy(),
        actions=rows.actions[:kept].copy(),
    )


def _check_means(rows: Rows, noted: FloatArray, name: str) -> None:
    """Refuse rewards by successor that are not those of the file, which has their means: it was changed since."""
    starts = rows.indptr[:-1]
    means = np.add.reduceat(rows.probabilities * noted, starts) / np.add.reduceat(rows.probabilities, starts)
    off = np.abs(means - rows.rewards[starts]) > _ROUNDING * max(1.0, float(np.abs(noted).max()))
    if off.any():
        pair = int(off.argmax())
        _checks.fail(
            f"the rewards in {name}.meta.json must have the means that {name} has: {means[pair]:g} is not "
            f"{rows.rewards[starts[pair]]:g} at state {rows.states[pair]}; delete the notes if the file was changed"
        )


def models_of(source: Source, meta: Meta | None, discount: float) -> list[Read]:
    """One per outcome number, in their order; each must be given at every pair."""
    columns = in_memory(source)
    if not len(columns.columns.outcome):
        return [model_of(columns, meta, discount)]
    largest = int(max(columns.columns.state.max(), columns.columns.next_state.max()))
    columns = columns.take(columns.columns.probability != 0)  # as in `model_of`
    outcome = columns.columns.outcome
    numbers = np.unique(outcome)
    _checks.must(numbers.size > 0, f"{source.name} must hold at least one transition: got none")
    _check_complete(columns, len(numbers))
    return [model_of(columns.take(outcome == number).of_size(largest + 1), meta, discount) for number in numbers]


def _check_complete(columns: Columns, count: int) -> None:
    state, action, _, _, _, outcome = columns.columns
    order = np.lexsort((outcome, action, state))
    new_pair = np.append(True, (np.diff(state[order]) != 0) | (np.diff(action[order]) != 0))
    new = new_pair | np.append(True, np.diff(outcome[order]) != 0)
    starts = np.flatnonzero(new_pair)
    lacking = np.flatnonzero(np.add.reduceat(new, starts, dtype=np.int64) != count)
    if lacking.size:
        row = order[starts[lacking[0]]]
        present = set(outcome[(state == state[row]) & (action == action[row])].tolist())
        missing = next(number for number in np.unique(outcome).tolist() if number not in present)
        _checks.fail(
            f"every outcome must be given at every pair: outcome {missing} is missing at state "
            f"{name_of(columns, 0, state[row])} and action {name_of(columns, 1, action[row])} of {columns.name} "
            f"({columns.place(int(row))})"
        )
