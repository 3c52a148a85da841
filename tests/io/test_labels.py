"""Labels and initial states in files: kept in every format, in the words of PRISM and Storm where these have some."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import robustmdp as rm
from oracles.damaged_files import ODD, random_world
from oracles.notes import accept_change
from robustmdp.io import formats, read, write

pytest.importorskip("pyarrow")
EXTENSIONS = [listed[0] for listed in formats().values()]
TRA = "3 3 4\n0 0 1 0.5\n0 0 2 0.5\n1 0 0 1\n2 0 2 1\n"
DRN = """\
@type: MDP
@nr_states
3
@nr_choices
3
@model
state 0 init
	action 0
		1 : 0.5
		2 : 0.5
state 1
	action 0
		0 : 1
state 2
	action 0
		2 : 1
"""

each_extension = pytest.mark.parametrize("extension", EXTENSIONS)


def labelled_world(seed: int) -> rm.MDP:
    """With labels whose names and states are odd, and no, one, several or unequal initial states."""
    rng = np.random.default_rng([seed, 5])
    world = random_world(seed)
    names = ["goal", "deadlock", "end", "init", "two words", '"', *(f"a{word}" for word in ODD)]
    chosen = rng.choice(names, size=int(rng.integers(6)), replace=False).tolist()
    world = world.with_labels({name: rng.random(world.n_states) < rng.choice([0.0, 0.5, 1.0]) for name in chosen})
    kind = seed % 4
    if kind == 0:
        return world
    if kind == 1:
        return world.with_initial(int(rng.integers(world.n_states)))
    weights = rng.random(world.n_states) if kind == 2 else (rng.random(world.n_states) < 0.5) + 0.0
    weights[0] += kind == 3 and not weights.any()
    return world.with_initial(weights / weights.sum())


@each_extension
def test_random_labels_come_back(tmp_path: Path, extension: str) -> None:
    for seed in range(80):
        world = labelled_world(seed)
        found = read(write(world, tmp_path / f"model{extension}"))
        assert found == world, seed
        assert list(found.labels) == sorted(found.labels)
        assert (found.initial is None) == (world.initial is None)
        if found.initial is not None and world.initial is not None:
            assert found.initial.tobytes() == world.initial.tobytes()
            assert not found.initial.flags.writeable
        assert not any(mask.flags.writeable for mask in found.labels.values())


def test_prisms_labels(tmp_path: Path) -> None:
    path = tmp_path / "model.tra"
    path.write_text(TRA)
    assert (read(path, 0.9).labels, read(path, 0.9).initial) == ({}, None)
    for text in (
        '0="init" 1="deadlock" 2="goal"\n0: 0\n1: 0 2\n2: 2\n',
        "#DECLARATION\ninit deadlock goal\n#END\n0 init\n1 init goal\n2 goal\n",  # Storm's
    ):
        path.with_suffix(".lab").write_text(text)
        for content in (TRA, "mdp\n" + TRA.partition("\n")[2]):
            path.write_text(content)
            world = read(path, 0.9)
            assert {name: mask.tolist() for name, mask in world.labels.items()} == {
                "deadlock": [False, False, False],
                "goal": [False, True, True],
            }
            assert world.initial is not None
            assert world.initial.tolist() == [0.5, 0.5, 0.0]


def test_storms_labels(tmp_path: Path) -> None:
    path = tmp_path / "model.drn"
    path.write_text(DRN.replace("state 1", 'state 1 [2] init goal "two words"').replace("state 2", "state 2 goal [7]"))
    world = read(path, 0.9)
    assert {name: mask.tolist() for name, mask in world.labels.items()} == {
        "goal": [False, True, True],
        "two words": [False, True, False],
    }
    assert world.initial is not None
    assert world.initial.tolist() == [0.5, 0.5, 0.0]
    assert world.rewards.tolist() == [0.0, 2.0, 7.0]  # in Storm's own tests rewards come after labels, too


def test_what_other_programs_see(tmp_path: Path) -> None:
    world = random_world(2).with_labels({})
    n = world.n_states
    goal = np.arange(n) == n - 1
    world = world.with_labels({"goal": goal, "odd name": ~goal}).with_initial(n - 1)
    text = write(world, tmp_path / "model.drn").read_text()
    assert f"state {n - 1} init goal\n" in text
    assert "odd name" not in text
    lines = (write(world, tmp_path / "model.tra").with_suffix(".lab")).read_text().splitlines()
    assert lines[0].startswith('0="init" 1="deadlock" ')
    number = re.findall(r'(\d+)="goal"', lines[0])[0]
    assert f"{n - 1}: 0 {number}" in lines
    plain = rm.problems.chain()
    assert "state 0 init\n" in write(plain, tmp_path / "plain.drn").read_text()  # Storm must have one
    assert read(tmp_path / "plain.drn").initial is None


@pytest.mark.parametrize("extension", [".tra", ".drn"])
def test_a_file_that_was_changed_wins_over_its_notes(tmp_path: Path, extension: str) -> None:
    path = write(rm.problems.chain(), tmp_path / f"model{extension}")
    if extension == ".drn":
        text = path.read_text().replace("state 0 init", "state 0").replace("state 3\n", "state 3 init goal\n")
        path.write_text(text)
    else:
        path.with_suffix(".lab").write_text('0="init" 1="goal"\n3: 0 1\n')
    with pytest.raises(ValueError, match=rf"^{path.name}.meta.json must belong to {path.name}: its checksum is of"):
        read(path)
    accept_change(path)
    world = read(path)
    assert world.initial is not None
    assert np.flatnonzero(world.initial).tolist() == [3]
    assert np.flatnonzero(world.labels["goal"]).tolist() == [3]
    uneven = rm.problems.chain().with_initial(np.arange(10) / 45)
    path = write(uneven, path)
    assert read(path) == uneven
    if extension == ".drn":
        path.write_text(path.read_text().replace("state 3 init", "state 3"))
    else:
        path.with_suffix(".lab").write_text('0="init"\n3: 0\n')
    sentence = f"the initial states in {path.name}.meta.json must be those of {path.name}; delete the notes if the file"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read(path)


@pytest.mark.parametrize("extension", [".csv", ".tra", ".drn"])
def test_without_notes_a_warning_names_lost_labels(tmp_path: Path, extension: str) -> None:
    world = rm.problems.two_state(0.5, 0.9).with_labels({"goal": [True, False], "odd name": [False, True]})
    world = world.with_initial([0.25, 0.75])
    lost = "label 'odd name'" if extension != ".csv" else "labels 'goal', 'odd name'"
    with pytest.warns(UserWarning, match=f"the {lost} and the initial probabilities$"):
        path = write(world, tmp_path / f"model{extension}", meta=False)
    found = read(path, 0.9)
    assert list(found.labels) == {".csv": [], ".tra": ["deadlock", "goal"], ".drn": ["goal"]}[extension]
    assert (found.initial is None) == (extension == ".csv")


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ('0="init" 0="goal"\n', """labels must be declared once: '0="goal"' comes again at line 1 of model.lab"""),
        ('0="goal" 1="goal"\n', """labels must be declared once: '1="goal"' comes again at line 1 of model.lab"""),
        ('0=""\n', """labels must be declared as in 0="init": got '0=""' at line 1 of model.lab"""),
        ('0="init"\n3: 0\n', "a state must lie in 0..2: got 3 at line 2 of model.lab"),
        ('0="init"\nx: 0\n', "a state must be a whole number in 0..2147483646: got 'x' at line 2 of model.lab"),
        ("#DECLARATION\ngoal\n#END\n0 init\n", "a label must be one that is declared: got 'init' at line 4 of"),
        ("#DECLARATION\ngoal\n#END\n9 goal\n", "a state must lie in 0..2: got 9 at line 4 of model.lab"),
    ],
)
def test_refused_labels(tmp_path: Path, labels: str, sentence: str) -> None:
    (tmp_path / "model.tra").write_text(TRA)
    (tmp_path / "model.lab").write_text(labels)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read(tmp_path / "model.tra", 0.9)


def test_so_many_labels_take_no_memory(tmp_path: Path) -> None:
    (tmp_path / "model.tra").write_text(TRA)
    (tmp_path / "model.lab").write_text(" ".join(f'{i}="a{i}"' for i in range(400_000)))
    with pytest.raises(ValueError, match=r"^model.tra must have fewer labels: 400000 for 3 states and 4 transitions"):
        read(tmp_path / "model.tra", 0.9)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"labels": {"a": [10]}}, "the states of label 'a' in model.csv.meta.json must lie in 0..9: got 10"),
        ({"labels": {"": [1]}}, "the labels of model.csv.meta.json must have names: got an empty one"),
        ({"labels": {"a": [-1]}}, "model.csv.meta.json must hold notes that this package wrote: Expected `int` >= 0"),
        ({"labels": ["a"]}, "model.csv.meta.json must hold notes that this package wrote: Expected `object | null`"),
        ({"initial": [[10, 1.0]]}, "the initial states in model.csv.meta.json must lie in 0..9: got 10"),
        ({"initial": [[0, 0.5]]}, "initial in model.csv.meta.json must sum to 1: got 0.5"),
        ({"initial": [[0, 2.0], [1, -1.0]]}, "initial in model.csv.meta.json must be at least 0 everywhere"),
    ],
)
def test_refused_notes(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    path = write(rm.problems.chain(), tmp_path / "model.csv")
    file = path.with_name("model.csv.meta.json")
    file.write_bytes(msgspec.json.encode(msgspec.json.decode(file.read_bytes()) | change))
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read(path)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (b'"goal"', b'"gaol"', None),
        (b'["', b'["","', "labels in model.safetensors must have 2 entries for each of 2 labels: got 2 in all"),
        (b"\x01\x00", b"\x02\x00", "labels in model.safetensors must be 0 or 1: got 2"),
    ],
)
def test_our_own_format_is_checked(tmp_path: Path, old: bytes, new: bytes, sentence: str | None) -> None:
    world = rm.MDP.from_rows([0, 1], [0, 0], [1, 0], [1, 1], [0, 0], 0.9, labels={"goal": [True, False]}, initial=1)
    path = write(world, tmp_path / "model.safetensors")
    assert read(path) == world
    data = path.read_bytes()
    head, tail = data[: 8 + int.from_bytes(data[:8], "little")], data[8 + int.from_bytes(data[:8], "little") :]
    if old == b"\x01\x00":
        tail = tail[: -len(old)] + new
    else:
        text = head[8:].replace(old.replace(b'"', b'\\"'), new.replace(b'"', b'\\"')).rstrip()
        assert text != head[8:].rstrip()
        text += b" " * (-len(text) % 8)
        head = len(text).to_bytes(8, "little") + text
    path.write_bytes(head + tail)
    if sentence is None:
        assert list(read(path).labels) == ["gaol"]
    else:
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            read(path)


def test_an_initial_distribution_that_cannot_be_is_refused_with_the_name_of_the_file(tmp_path: Path) -> None:
    path = write(rm.problems.two_state(0.5, 0.9).with_initial([0.0, 1.0]), tmp_path / "model.safetensors")
    data = path.read_bytes()
    good, bad = (np.array(numbers).tobytes() for numbers in ([0.0, 1.0], [0.0, 0.5]))
    place = data.rindex(good)  # the probabilities of the second row are before
    path.write_bytes(data[:place] + bad + data[place + len(good) :])
    with pytest.raises(ValueError, match=r"^initial in model.safetensors must sum to 1: got 0.5$"):
        read(path)


def test_storm_sees_our_labels(tmp_path: Path) -> None:
    stormpy = pytest.importorskip("stormpy")
    world = rm.problems.chain().with_labels({"goal": np.arange(10) > 7}).with_initial(4)
    model = stormpy.build_model_from_drn(str(write(world, tmp_path / "model.drn")))
    assert list(model.initial_states) == [4]
    assert list(model.labeling.get_states("goal")) == [8, 9]
