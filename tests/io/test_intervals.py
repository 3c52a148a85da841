"""Models with intervals: those of Storm and PRISM are read as they are meant, and all bits of bounds come back."""

from __future__ import annotations

import inspect
import itertools
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robustmdp as rm
from oracles.damaged_files import flaw_of, random_world
from robustmdp.io import read, read_interval, write, write_interval

EXTERNAL = Path(__file__).parents[3] / "shared" / "external"
DRN = """\
// Exported by storm
@type: MDP
@value_type: double-interval
@parameters

@reward_models
cost time\x20
@nr_states
4
@nr_choices
4
@model
state 0 [1, [5, 5]] init
	action go [[2, 2], 0]
		1 : [0.25, 0.5]
		2 : [1/4, 1]
	action wait [0.5, 0]
		0 : 1
state 1 [[2, 2], 7]
	action go [0, 0]
		0 : [0.3, 0.3]
		2 : 0.7
		3 : [0, 0]
state 2 done
	action go
		2 : [1, 1]
		0 : [0, 0.5]
state 3
"""
TRA = "3 3 4\n0 0 1 [0.25,0.5] go\n0 0 2 [ 1/4 , 1 ] go\n1 0 0 1.0 go\n2 0 2 [1.0,1.0] go\n"


def put(folder: Path, **files: str) -> Path:
    for extension, text in files.items():
        (folder / f"model.{extension}").write_text(text)
    return folder / f"model.{next(iter(files))}"


def assert_same(found: tuple[rm.MDP, rm.Interval], wanted: tuple[rm.MDP, rm.Interval]) -> None:
    assert found[0] == wanted[0]
    assert found[0].probabilities.tobytes() == wanted[0].probabilities.tobytes()
    for one, other in zip(bounds_of(found[1]), bounds_of(wanted[1]), strict=True):
        assert one.tobytes() == other.tobytes()


def bounds_of(intervals: rm.Interval) -> tuple[np.ndarray, np.ndarray]:
    return intervals.lower, intervals.upper


@pytest.mark.filterwarnings("ignore:model.drn has 1 state that is reached")
def test_storms_intervals(tmp_path: Path) -> None:
    text = DRN.replace("state 3\n", "state 3\n\taction go\n\t\t3 : 1\n").replace("@nr_choices\n4", "@nr_choices\n5")
    mdp, intervals = read_interval(put(tmp_path, drn=text))
    assert mdp.discount == 1.0
    assert mdp.action_names == ("go", "wait")
    assert mdp.indptr.tolist() == [0, 2, 3, 5, 6, 7]
    assert mdp.indices.tolist() == [1, 2, 0, 0, 2, 2, 3]  # what can never get mass is gone
    np.testing.assert_allclose(mdp.probabilities, [0.375, 0.625, 1, 0.3, 0.7, 1, 1], rtol=1e-15)
    assert intervals.lower.tolist() == [0.25, 0.25, 1, 0.3, 0.7, 1, 1]
    assert intervals.upper.tolist() == [0.5, 1, 1, 0.3, 0.7, 1, 1]
    assert mdp.rewards.tolist() == [3.0, 1.5, 2.0, 0.0, 0.0]
    assert np.flatnonzero(mdp.labels["done"]).tolist() == [2]
    assert np.flatnonzero(mdp.initial).tolist() == [0]  # type: ignore[arg-type]
    other, _ = read_interval(tmp_path / "model.drn", 0.9, reward="time")
    assert other.discount == 0.9
    assert other.rewards.tolist() == [5.0, 5.0, 7.0, 0.0, 0.0]
    held = text.replace("1 : [0.25, 0.5]", "1 : $0")
    held = held.replace("@parameters", "@placeholders\n$0 : [0.25, 0.5]\n@parameters")
    assert_same(read_interval(put(tmp_path, drn=held)), (mdp, intervals))
    for header in ("@value_type: rational-interval\n", "@value_type: Interval\n", "@value_type: double\n", ""):
        assert_same(
            read_interval(put(tmp_path, drn=text.replace("@value_type: double-interval\n", header))), (mdp, intervals)
        )


def test_a_state_without_actions_stays(tmp_path: Path) -> None:
    path = put(tmp_path, drn=DRN.replace("3 : [0, 0]", "3 : [0, 0.1]").replace("2 : 0.7", "2 : [0.6, 0.7]"))
    with pytest.warns(UserWarning, match=r"^model.drn has 1 state that is reached but never left") as caught:
        mdp, intervals = read_interval(path)
    assert caught[0].filename == __file__
    assert mdp.indices.tolist()[-1] == 3
    assert (intervals.lower[-1], intervals.upper[-1], mdp.rewards[-1]) == (1.0, 1.0, 0.0)
    assert len(intervals.lower) == mdp.nnz


def test_prisms_intervals(tmp_path: Path) -> None:
    files = {"tra": TRA, "lab": '0="init" 1="goal"\n1: 0\n2: 1\n', "srew": "3 1\n1 2\n"}
    mdp, intervals = read_interval(put(tmp_path, **files))
    assert intervals.lower.tolist() == [0.25, 0.25, 1, 1]
    assert intervals.upper.tolist() == [0.5, 1, 1, 1]
    assert mdp.probabilities.tolist() == [0.375, 0.625, 1, 1]
    assert mdp.rewards.tolist() == [0.0, 2.0, 0.0]
    assert mdp.labels["goal"].tolist() == [False, False, True]
    assert mdp.initial.tolist() == [0.0, 1.0, 0.0]  # type: ignore[union-attr]
    assert_same(read_interval(tmp_path / "model"), (mdp, intervals))


def test_a_reward_structure_of_prism_by_its_name(tmp_path: Path) -> None:
    path = put(tmp_path, tra=TRA)
    for number, (name, state) in enumerate((("cost", 0), ("time", 1)), 1):
        (tmp_path / f"model{number}.srew").write_text(f'# Reward structure "{name}"\n# State rewards\n3 1\n{state} 4\n')
    assert read_interval(path)[0].rewards.tolist() == [4.0, 0.0, 0.0]
    assert read_interval(path, reward="time")[0].rewards.tolist() == [0.0, 4.0, 0.0]
    with pytest.raises(ValueError, match=r"^reward must be one of cost, time: got 'tine'; did you mean 'time'\?$"):
        read_interval(path, reward="tine")


def test_a_file_of_numbers_has_intervals_of_width_zero(tmp_path: Path) -> None:
    world = rm.problems.garnet(20, 3, 4, 0.9, seed=1)
    for extension in ("drn", "tra"):
        mdp, intervals = read_interval(write(world, tmp_path / f"model.{extension}"))
        assert mdp == world
        for bounds in bounds_of(intervals):
            assert bounds.tobytes() == world.probabilities.tobytes()


def test_intervals_of_one_successor_are_added(tmp_path: Path) -> None:
    text = "2 2 4\n0 0 1 [0.25,0.5]\n0 0 0 [0.25,0.75]\n0 0 1 [0.125,0.75]\n1 0 1 1\n"
    mdp, intervals = read_interval(put(tmp_path, tra=text))
    assert mdp.indices.tolist() == [0, 1, 1]
    assert intervals.lower.tolist() == [0.25, 0.375, 1.0]
    assert intervals.upper.tolist() == [0.75, 1.0, 1.0]


RANGE = "the bounds of a transition must satisfy 0 <= lower <= upper <= 1: got"
FORM = "an interval must be written as [0.1, 0.3]: got"
FIRST = "[0.25, 0.5]"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (FIRST, "[0.5, 0.25]", f"{RANGE} [0.5, 0.25] at state 0 and go, line 15 of model.drn"),
        (FIRST, "[-0.1, 0.5]", f"{RANGE} [-0.1, 0.5] at state 0"),
        (FIRST, "[0.1, 1.5]", f"{RANGE} [0.1, 1.5] at state 0"),
        (FIRST, "[nan, 0.5]", f"{RANGE} [nan, 0.5] at state 0"),
        (FIRST, "[0.1, inf]", f"{RANGE} [0.1, inf] at state 0"),
        (FIRST, "[0.9, 0.95]", "the lower bounds of state 0 and go must sum to at most 1: got 1.15 at line 15 of"),
        (
            "[1/4, 1]",
            "[1/4, 1/3]",
            "the upper bounds of state 0 and go must sum to at least 1: got 0.833333333 at line",
        ),
        ("2 : 0.7", "2 : 0.9", "the lower bounds of state 1 and go must sum to at most 1: got 1.2 at line 21 of"),
        (FIRST, "[0.25, 0.5", f"{FORM} '[0.25, 0.5' at line 15 of model.drn"),
        (FIRST, "[0.25, 0.5, 1]", f"{FORM} '[0.25, 0.5, 1]' at line 15 of model.drn"),
        (FIRST, "[0.25]", f"{FORM} '[0.25]' at line 15 of model.drn"),
        (FIRST, "[0.25, p]", "a bound of the probability must be a number: got 'p' at line 15 of model.drn"),
        (FIRST, "[1_0, 0.5]", "a bound of the probability must be a number: got '1_0' at line 15 of model.drn"),
        ("[[2, 2], 0]", "[[2, 3], 0]", "a reward must be a number: got the interval '[2, 3]' at line 14 of model.drn"),
        ("[[2, 2], 0]", "[[2, 2], 0", "rewards must stand in brackets: got '[[2, 2], 0' at line 14 of model.drn"),
        ("double-interval", "parametric", "model.drn must hold numbers: its values are 'parametric' at line 3 of"),
    ],
)
def test_refused_intervals(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in DRN
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read_interval(put(tmp_path, drn=DRN.replace(old, new, 1)))


def test_refused_calls(tmp_path: Path) -> None:
    path = put(tmp_path, drn=DRN)
    with pytest.raises(ValueError, match=r"^reward must be one of cost, time: got 'tine'; did you mean 'time'\?$"):
        read_interval(path, reward="tine")
    with pytest.raises(ValueError, match=r"^reward must be left out: there is none to choose from, got 'cost'$"):
        read_interval(put(tmp_path, tra=TRA), reward="cost")
    with pytest.raises(ValueError, match=r"^discount must lie in \[0, 1\]: got 2$"):
        read_interval(path, 2.0)
    sentence = "model.drn must hold numbers: it has intervals, as at line 3 of model.drn; use rm.read_interval"
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        read(path)
    with pytest.raises(ValueError, match=r"^model.tra must hold numbers: it has intervals, as at line 2 of model.tra;"):
        read(put(tmp_path, tra=TRA))
    world = rm.problems.chain()
    intervals = rm.Interval(world.probabilities, world.probabilities)
    with pytest.raises(ValueError, match=r"^intervals must be in a prism or drn file: model.csv is csv$"):
        write_interval(world, intervals, tmp_path / "model.csv")
    with pytest.raises(ValueError, match=r"^intervals must be in a prism or drn file: chain.csv is csv$"):
        read_interval(write(world, tmp_path / "chain.csv"))
    with pytest.raises(ValueError, match=r"^lower must have one entry per transition \(3\): got "):
        write_interval(rm.problems.two_state(0.5, 0.9), intervals, tmp_path / "model.drn")
    for things in ((intervals, intervals), (world, (1.0, 1.0))):
        with pytest.raises(TypeError, match=r"^write_interval takes an MDP and an Interval: got "):
            write_interval(*things, tmp_path / "model.drn")  # type: ignore[arg-type]
    wrong = np.zeros(world.nnz)
    with pytest.raises(ValueError, match=r"^the sum of upper bounds must be at least 1: got 0 at "):
        write_interval(world, rm.Interval(wrong, wrong), tmp_path / "model.drn")


def random_intervals(world: rm.MDP, seed: int) -> rm.Interval:
    """Around the probabilities: some of width zero, some that reach 0 or 1."""
    rng = np.random.default_rng([seed, 9])
    p = np.minimum(world.probabilities, 1.0)
    width = 10.0 ** rng.integers(-18, 1, size=world.nnz) * rng.random(world.nnz)
    width[rng.random(world.nnz) < 0.3] = 0.0
    return rm.Interval(np.maximum(p - width, 0.0), np.minimum(p + width, 1.0))


@pytest.mark.parametrize("extension", ["drn", "tra"])
def test_random_intervals_come_back_to_the_bit(tmp_path: Path, extension: str) -> None:
    for seed in range(60):
        world = random_world(seed)
        world = world.with_initial(0) if seed % 3 else world.with_labels({"goal": np.ones(world.n_states, bool)})
        intervals = random_intervals(world, seed)
        path = write_interval(world, intervals, tmp_path / f"model.{extension}")
        assert_same(read_interval(path), (world, intervals))
        assert_same(read_interval(path, 0.25), (world.with_discount(0.25), intervals))


def test_the_discount_is_1_unless_one_is_noted_or_given(tmp_path: Path) -> None:
    assert inspect.signature(read_interval).parameters["discount"].default == 1.0
    assert read_interval(put(tmp_path, tra=TRA))[0].discount == 1.0
    assert read_interval(tmp_path / "model.tra", 0.5)[0].discount == 0.5
    world = rm.problems.chain(discount=0.9)
    path = write_interval(world, random_intervals(world, 0), tmp_path / "noted.drn")
    assert read_interval(path)[0] == world
    assert read_interval(path, 1.0)[0] == world.with_discount(1.0)
    assert read_interval(path, discount=0.5)[0] == world.with_discount(0.5)
    with pytest.raises(TypeError, match=r"^discount must be a number: got None$"):
        read_interval(path, None)  # type: ignore[arg-type]


def test_any_form_of_intervals_is_written(tmp_path: Path) -> None:
    world = rm.problems.two_state(0.5, 0.9)
    dense = np.zeros((2, 1, 2))
    dense[world.states.repeat(np.diff(world.indptr)), 0, world.indices] = world.probabilities
    mdp, intervals = read_interval(write_interval(world, rm.Interval(0.5 * dense, dense), tmp_path / "model.drn"))
    assert mdp == world
    assert intervals.upper.tolist() == world.probabilities.tolist()
    assert intervals.lower.tolist() == (0.5 * world.probabilities).tolist()


def test_the_nominal_model_is_noted_where_the_bounds_do_not_imply_it(tmp_path: Path) -> None:
    world = rm.problems.garnet(6, 2, 3, 0.9, seed=0)
    wide = rm.Interval(np.zeros(world.nnz), np.ones(world.nnz))
    path = write_interval(world, wide, tmp_path / "model.drn")
    assert_same(read_interval(path), (world, wide))
    notes = path.with_name("model.drn.meta.json")
    assert "probabilities" in notes.read_text()
    with pytest.warns(UserWarning, match=r"^model.drn will come back without the discount and the nominal probab"):
        write_interval(world, wide, path, meta=False)
    mdp, intervals = read_interval(path)
    np.testing.assert_allclose(mdp.probabilities, 1 / 3)
    write_interval(mdp, intervals, path)
    assert "probabilities" not in notes.read_text()
    for noted, sentence in (
        ([0.5] * 999, "model.drn.meta.json must belong to model.drn: it tells of 999 transitions, but there are 36"),
        ([0.0, 0.5, 0.5], "the probabilities in model.drn.meta.json must all be positive"),
        ([0.5, 0.5, 0.5], "the probabilities of state 0 and action 0 must sum to 1: got 1.5 at line"),
    ):
        content = msgspec.json.decode(notes.read_bytes()) | {"probabilities": noted}
        notes.write_bytes(msgspec.json.encode(content))
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
            read_interval(path)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_nominal_model_lies_within(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    unit = st.floats(0, 1, allow_subnormal=True)
    weights = np.array(data.draw(st.lists(st.floats(1e-3, 1), min_size=n, max_size=n)))
    p = weights / weights.sum()
    shares = [np.array(data.draw(st.lists(unit, min_size=n, max_size=n))) for _ in range(2)]
    lower, upper = p * shares[0], np.minimum(p + (1 - p) * shares[1], 1.0)
    bounds = zip(lower.tolist(), upper.tolist(), strict=True)
    lines = [f"0 0 {i} [{low!r},{high!r}]\n" for i, (low, high) in enumerate(bounds)]
    stays = [f"{i} 0 {i} 1\n" for i in range(1, n)]
    path = tmp_path_factory.mktemp("nominal") / "model.tra"
    path.write_text(f"{n} {n} {len(lines + stays)}\n{''.join(lines + stays)}")
    mdp, intervals = read_interval(path)
    assert not flaw_of(mdp.with_discount(0.9))
    assert (mdp.probabilities >= intervals.lower * (1 - 1e-15)).all()
    assert (mdp.probabilities <= intervals.upper * (1 + 1e-15)).all()
    rm.RobustBellman(mdp.with_discount(0.9), intervals)  # accepts the bounds


@pytest.mark.parametrize("factor", [1 + 3e-7, 1 - 3e-7, 1 + 1e-15])
def test_points_that_do_not_quite_sum_to_one_are_normalised(tmp_path: Path, factor: float) -> None:
    p = [0.3 * factor, 0.7 * factor]
    path = put(tmp_path, tra=f"2 2 3\n0 0 0 [{p[0]!r},{p[0]!r}]\n0 0 1 {p[1]!r}\n1 0 1 1\n")
    mdp, intervals = read_interval(path)
    assert intervals.lower.tobytes() == intervals.upper.tobytes() == mdp.probabilities.tobytes()
    np.testing.assert_allclose(mdp.probabilities, [0.3, 0.7, 1.0], rtol=1e-14)
    assert_same(read_interval(write_interval(mdp, intervals, tmp_path / "again.drn")), (mdp, intervals))


needs_external = pytest.mark.skipif(not EXTERNAL.is_dir(), reason="needs the files of other projects")


@needs_external
def test_the_files_of_other_projects(tmp_path: Path) -> None:
    paths = sorted(EXTERNAL.glob("*.drn"))
    assert len(paths) >= 9
    for path in paths:
        mdp, intervals = read_interval(path)
        assert not flaw_of(mdp.with_discount(0.9))
        assert mdp.initial is not None
        assert mdp.initial.max() == 1.0
        assert mdp.labels
        for extension in ("drn", "tra"):
            assert_same(read_interval(write_interval(mdp, intervals, tmp_path / f"a.{extension}")), (mdp, intervals))


def reached(mdp: rm.MDP, intervals: rm.Interval, goal: str, player: Any, nature: Any, avoid: str = "") -> float:
    """The probability of reaching a label from the initial state, by plain value iteration over sorted outcomes."""
    goals = mdp.labels[goal]
    losing = mdp.labels[avoid] & ~goals if avoid else np.zeros(mdp.n_states, bool)
    value = goals.astype(float)
    for _ in range(3000):
        rows = np.empty(mdp.n_pairs)
        for pair in range(mdp.n_pairs):
            part = slice(int(mdp.indptr[pair]), int(mdp.indptr[pair + 1]))
            outcomes, lower = value[mdp.indices[part]], intervals.lower[part]
            room = intervals.upper[part] - lower
            left, total = 1.0 - lower.sum(), lower @ outcomes
            for i in np.argsort(outcomes if nature is min else -outcomes):
                given_mass = min(left, room[i])
                left, total = left - given_mass, total + given_mass * outcomes[i]
            rows[pair] = total
        new = np.array([player(rows[a:b]) for a, b in zip(mdp.state_ptr[:-1], mdp.state_ptr[1:], strict=True)])
        new = np.where(goals, 1.0, np.where(losing, 0.0, new))
        if np.abs(new - value).max() < 1e-13:
            break
        value = new
    assert mdp.initial is not None
    return float(mdp.initial @ value)


@needs_external
@pytest.mark.parametrize(
    ("name", "goal", "answers"),
    [
        ("tiny-01", "target", (0.4, 0.5, 0.5, 0.4)),
        ("tiny-03", "target", (0.4, 0.6, 0.5, 0.3)),
        ("tiny-04", "target", (1.0, 1.0, 3 / 7, 0.42)),
        ("tiny-05", "target", (0.3, 0.4, 0.4, 0.3)),
        ("crowds-quotient-3-5", "observe0Greater1", (0.1383409,) * 4),
        ("robot_delta0.1", "goal1", (0.4, 0.6, None, None)),
    ],
)
def test_published_answers(name: str, goal: str, answers: tuple[float | None, ...]) -> None:
    mdp, intervals = read_interval(EXTERNAL / f"{name}.drn")
    players = ((max, min), (max, max), (min, max), (min, min))
    for (player, nature), answer in zip(players, answers, strict=True):
        if answer is not None:
            assert reached(mdp, intervals, goal, player, nature) == pytest.approx(answer, abs=1e-6)


def test_storm_opens_our_intervals(tmp_path: Path) -> None:
    stormpy = pytest.importorskip("stormpy")
    world = rm.problems.machine_replacement().with_initial(3).with_labels({"new": np.arange(10) == 0})
    intervals = random_intervals(world, 0)
    path = write_interval(world, intervals, tmp_path / "model.drn")
    model = stormpy.build_model_from_drn[stormpy.Interval](str(path))
    assert (model.nr_states, model.nr_choices, model.nr_transitions) == (world.n_states, world.n_pairs, world.nnz)
    assert list(model.initial_states) == [3]
    assert list(model.labeling.get_states("new")) == [0]
    entries = [entry for row in range(model.nr_choices) for entry in model.transition_matrix.get_row(row)]
    assert [entry.column for entry in entries] == world.indices.tolist()
    np.testing.assert_allclose([entry.value.lower() for entry in entries], intervals.lower, rtol=1e-15)
    np.testing.assert_allclose([entry.value.upper() for entry in entries], intervals.upper, rtol=1e-15)


def test_convert_keeps_labels_and_intervals(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from robustmdp.app.commands.main import main

    world = rm.problems.chain().with_initial(2).with_labels({"goal": np.arange(10) > 7})
    paths = [str(tmp_path / f"model{e}") for e in (".csv", ".drn", ".tra", ".safetensors", ".parquet")]
    write(world, paths[0])
    for source, target in itertools.pairwise(paths):
        assert CliRunner().invoke(main, ["convert", source, target]).exit_code == 0
        assert read(target) == world
    intervals = random_intervals(world, 1)
    source = write_interval(world, intervals, tmp_path / "interval.drn")
    answer = CliRunner().invoke(main, ["convert", str(source), str(tmp_path / "interval.tra")])
    assert answer.exit_code == 0, answer.output
    assert_same(read_interval(tmp_path / "interval.tra"), (world, intervals))
    answer = CliRunner().invoke(main, ["convert", str(source), str(tmp_path / "interval.csv")])
    assert answer.exit_code == 1
    assert "intervals must be in a prism or drn file: interval.csv is csv" in answer.output
