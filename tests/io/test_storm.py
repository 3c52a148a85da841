"""Storm itself opens our files, and we open what it writes and what it comes with."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles.damaged_files import random_world, worlds
from oracles.notes import accept_change
from robustmdp.io import read, write


def put(folder: Path, extension: str, text: str) -> Path:
    path = folder / f"model.{extension}"
    path.write_text(text)
    return path


@pytest.fixture(name="stormpy")
def _stormpy() -> Any:
    return pytest.importorskip("stormpy")


MODELS: list[Callable[[], rm.MDP]] = [
    lambda: rm.problems.machine_replacement(),
    lambda: rm.problems.garnet(50, 4, 5, 0.95, seed=0),
    lambda: rm.problems.inventory(),
    lambda: worlds()[0],
    lambda: random_world(6),
]


def sizes(mdp: rm.MDP) -> tuple[int, int, int]:
    ends = int(np.add.reduceat(mdp.indices == mdp.n_states, mdp.indptr[:-1], dtype=int).max())
    return mdp.n_states + ends, mdp.n_pairs + ends, mdp.nnz + ends


def rewards_of(model: Any, name: str) -> list[float]:
    """Of each choice, whatever Storm keeps."""
    rewards, matrix = model.reward_models[name], model.transition_matrix
    moves = rewards.transition_rewards if rewards.has_transition_rewards else None
    out = []
    for state in range(model.nr_states):
        for row in range(matrix.get_row_group_start(state), matrix.get_row_group_end(state)):
            total = rewards.state_rewards[state] if rewards.has_state_rewards else 0.0
            total += rewards.state_action_rewards[row] if rewards.has_state_action_rewards else 0.0
            if moves is not None:
                chances = {entry.column: entry.value for entry in matrix.get_row(row)}
                total += sum(chances[e.column] * e.value for e in moves.get_row(row))
            out.append(total)
    return out


def transitions_of(model: Any) -> list[tuple[int, int, float]]:
    rows = range(model.nr_choices)
    return [(row, entry.column, entry.value) for row in rows for entry in model.transition_matrix.get_row(row)]


@pytest.mark.parametrize("make", MODELS)
def test_storm_opens_our_drn(tmp_path: Path, stormpy: Any, make: Callable[[], rm.MDP]) -> None:
    mdp = make()
    model = stormpy.build_model_from_drn(str(write(mdp, tmp_path / "model.drn")))
    assert (model.nr_states, model.nr_choices, model.nr_transitions) == sizes(mdp)
    _assert_same(model, mdp, "reward")


def _assert_same(model: Any, mdp: rm.MDP, name: str) -> None:
    wanted = np.append(mdp.mean_rewards(), np.zeros(model.nr_choices - mdp.n_pairs))
    np.testing.assert_allclose(rewards_of(model, name), wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())
    pairs = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.indptr)).tolist()
    found = transitions_of(model)[: mdp.nnz]
    assert [row for row, _, _ in found] == pairs
    assert [min(column, mdp.n_states) for _, column, _ in found] == mdp.indices.tolist()
    np.testing.assert_allclose([p for _, _, p in found], mdp.probabilities, rtol=1e-15)


@pytest.mark.parametrize("make", MODELS)
def test_storm_opens_our_explicit_files(tmp_path: Path, stormpy: Any, make: Callable[[], rm.MDP]) -> None:
    """Its dialect has the word mdp or nothing instead of counts, other files of labels, and none on choices."""
    mdp = make()
    mdp = mdp.with_rewards(np.abs(mdp.rewards))  # there it takes no others
    mdp = mdp.with_labels({}).with_initial(None)
    path = write(mdp, tmp_path / "model.tra")
    lines = [line.split() for line in path.read_text().splitlines()[1:]]
    path.write_text("mdp\n" + "".join(f"{' '.join(fields[:4])}\n" for fields in lines))
    path.with_suffix(".lab").write_text("#DECLARATION\ninit\n#END\n0 init\n")
    trew = path.with_suffix(".trew")
    trew.write_text("".join(f"{line}\n" for line in trew.read_text().splitlines()[1:]))
    path.with_suffix(".srew").unlink()
    model = stormpy.build_model_from_explicit(str(path), str(path.with_suffix(".lab")), transition_rewards=str(trew))
    assert (model.nr_states, model.nr_choices, model.nr_transitions) == sizes(mdp)
    _assert_same(model, mdp, "")
    accept_change(path)
    assert read(path) == mdp  # the notes still fit


EXPORTED = ["two_dice.nm", "tiny_rewards.nm", "die_selection.nm", "slipgrid.nm", "multiobjective1.nm", "coin2-2.nm"]


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("name", EXPORTED)
def test_what_storm_exports_opens_here(tmp_path: Path, stormpy: Any, name: str, labelled: bool) -> None:
    from stormpy.examples.files import testfile_dir
    from stormpy.io import export_to_drn

    program = stormpy.parse_prism_program(str(Path(testfile_dir) / "mdp" / name))
    options = stormpy.BuilderOptions(build_full=True) if labelled else None
    for kind in (float, stormpy.Rational):
        model = stormpy.build_model[kind](program, options=options)
        export_to_drn(model, str(tmp_path / "model.drn"))
        world = read(tmp_path / "model.drn", 0.9)
        assert (world.n_states, world.n_pairs, world.nnz) == (model.nr_states, model.nr_choices, model.nr_transitions)
    model = stormpy.build_model(program, options=options)
    if world.action_names is None:
        found = rewards_of(model, next(iter(model.reward_models)))
        np.testing.assert_allclose(world.mean_rewards(), found)
        assert np.array_equal(world.indices, [column for _, column, _ in transitions_of(model)])
    else:
        assert labelled
    assert (name == "slipgrid.nm" and labelled) <= (world.action_names == ("south", "west", "north", "east"))


def test_storms_own_files_open_here(tmp_path: Path, stormpy: Any) -> None:
    from stormpy.examples.files import testfile_dir

    folder = Path(testfile_dir)
    world = read(folder / "mdp" / "two_dice.tra", 0.9)
    assert (world.n_states, world.n_pairs, world.nnz) == (169, 254, 436)
    for kind, extension in (("state", "srew"), ("trans", "trew")):
        put(tmp_path, extension, (folder / "rew" / f"two_dice.flip.{kind}.rew").read_text())
    world = read(put(tmp_path, "tra", (folder / "tra" / "two_dice.tra").read_text()), 0.9)
    model = stormpy.build_model_from_explicit(
        str(folder / "tra" / "two_dice.tra"),
        str(folder / "lab" / "two_dice.lab"),
        state_rewards=str(folder / "rew" / "two_dice.flip.state.rew"),
        transition_rewards=str(folder / "rew" / "two_dice.flip.trans.rew"),
    )
    np.testing.assert_allclose(world.mean_rewards(), rewards_of(model, ""))
    for name in ("mdp_general", "mdp_whitespaces", "mdp_mixedStateOrder", "mdp_mixedTransitionOrder"):
        assert read(folder / "tra" / f"{name}.tra", 0.9) == read(folder / "tra" / "mdp_general.tra", 0.9)
    assert read(folder / "tra" / "mdp.tra", 0.9).n_states == 12
    with pytest.warns(UserWarning, match=r"^mdp_deadlock.tra has 1 state that is reached but never left"):
        assert read(folder / "tra" / "mdp_deadlock.tra", 0.9).n_states == 7
    with pytest.raises(ValueError, match=r"^the probabilities of state 0 and action 1 must sum to 1: got 1.4 at line"):
        read(folder / "tra" / "mdp_doubledLines.tra", 0.9)
    for name, sentence in (
        ("tra/dtmc.tra", "dtmc.tra must "),
        ("pomdp/maze.drn", "maze.drn must hold an MDP: it says 'POMDP'"),
        ("imdp/tiny-01.drn", "tiny-01.drn must hold numbers: it has intervals, as at line 13 of tiny-01.drn; use rm."),
        ("pdtmc/die.drn", "die.drn must hold an MDP: it says 'DTMC'"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
            read(folder / name, 0.9)
