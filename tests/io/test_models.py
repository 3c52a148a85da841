"""Models in files: every format gives every bit back, and what it cannot hold is kept beside it or named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import robustmdp as rm
from oracles.damaged_files import flaw_of, random_world, worlds
from robustmdp.io import formats, read, read_outcomes, write

pytest.importorskip("pyarrow")
EXTENSIONS = [extension for listed in formats().values() for extension in listed]
NOTED = (".csv", ".parquet", ".tra", ".drn")
ARRAYS = ("indptr", "indices", "probabilities", "rewards", "state_ptr", "actions")
PROBLEMS = {
    "chain": rm.problems.chain(restart=0.5),
    "two_state": rm.problems.two_state(0.5, 0.9),
    "river_swim": rm.problems.river_swim(),
    "machine_replacement": rm.problems.machine_replacement(),
    "inventory": rm.problems.inventory(),
    "garnet": rm.problems.garnet(60, 4, 5, 0.95, seed=0),
    "grid_world": rm.problems.grid_world(8),
}
GYMNASIUM = ("FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "Taxi-v3")
HEADER = "idstatefrom,idaction,idstateto,probability,reward\n"

each_extension = pytest.mark.parametrize("extension", EXTENSIONS)


def assert_same_bits(one: rm.MDP, other: rm.MDP) -> None:
    assert one == other
    for name in ARRAYS:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
        assert getattr(one, name).dtype == getattr(other, name).dtype, name


def environment(name: str) -> rm.MDP:
    gymnasium = pytest.importorskip("gymnasium")
    if name == "Taxi-v3":
        name = max(known for known in gymnasium.registry if known.startswith("Taxi-v"))
    return rm.MDP.from_gymnasium(name, 0.95)


@each_extension
@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_come_back_to_the_bit(tmp_path: Path, name: str, extension: str) -> None:
    path = write(PROBLEMS[name], tmp_path / f"{name}{extension}")
    assert path == tmp_path / f"{name}{extension}"
    assert_same_bits(read(path), PROBLEMS[name])


@each_extension
@pytest.mark.parametrize("name", GYMNASIUM)
def test_environments_come_back_to_the_bit(tmp_path: Path, name: str, extension: str) -> None:
    world = environment(name)
    assert world.can_end
    assert_same_bits(read(write(world, tmp_path / f"env{extension}")), world)


@each_extension
def test_random_worlds_come_back_to_the_bit(tmp_path: Path, extension: str) -> None:
    worlds = [random_world(seed) for seed in range(50)]
    for world in worlds:
        assert not flaw_of(world)
        assert_same_bits(read(write(world, tmp_path / f"world{extension}")), world)
    assert sum(world.can_end for world in worlds) > 10
    assert sum(world.rewards_on_successors for world in worlds) > 10
    ends = [np.bincount(np.repeat(np.arange(w.n_pairs), np.diff(w.indptr))[w.indices == w.n_states]) for w in worlds]
    assert max(count.max(initial=0) for count in ends) >= 3  # several ways to end in one row


@each_extension
@pytest.mark.parametrize("divergence", [rm.TotalVariation(), rm.ChiSquare()], ids=repr)
def test_worst_cases_come_back_to_the_bit(tmp_path: Path, divergence: Any, extension: str) -> None:
    for world in (PROBLEMS["machine_replacement"], PROBLEMS["inventory"], worlds()[0]):
        worst = rm.solve(world, rm.Constrained(divergence, 0.4)).worst_case
        assert_same_bits(read(write(worst, tmp_path / f"worst{extension}")), worst)


@each_extension
@pytest.mark.parametrize("factor", [1 + 3e-7, 1 - 3e-7, 1 + 9e-13, 1 - 5e-15])
def test_rows_that_do_not_quite_sum_to_one_are_normalised(tmp_path: Path, extension: str, factor: float) -> None:
    world = PROBLEMS["garnet"]
    rough = world._replace(probabilities=world.probabilities * factor)  # as older versions wrote them
    mended = read(write(rough, tmp_path / f"rough{extension}"))
    assert np.abs(np.add.reduceat(mended.probabilities, mended.indptr[:-1]) - 1).max() <= 5 * 2.0**-52
    assert mended == world.with_probabilities(rough.probabilities)
    assert_same_bits(read(write(mended, tmp_path / f"mended{extension}")), mended)


@each_extension
def test_rewards_by_transition_stay_so_even_if_pairs_would_do(tmp_path: Path, extension: str) -> None:
    world = PROBLEMS["river_swim"]
    spread = world.with_rewards(np.repeat(world.mean_rewards(), np.diff(world.indptr)))
    assert spread.rewards_on_successors
    assert_same_bits(read(write(spread, tmp_path / f"spread{extension}")), spread)


@each_extension
def test_a_given_discount_wins(tmp_path: Path, extension: str) -> None:
    path = write(PROBLEMS["chain"], tmp_path / f"chain{extension}")
    assert_same_bits(read(path, 0.5), PROBLEMS["chain"].with_discount(0.5))
    with pytest.raises(ValueError, match=r"^discount must lie in \[0, 1\]: got 1.5$"):
        read(path, 1.5)


@pytest.mark.parametrize("format", formats())
def test_a_format_can_be_named(tmp_path: Path, format: str) -> None:
    world = random_world(1)
    path = write(world, tmp_path / "model.dat", format=format)
    assert path.name == ("model.dat.tra" if format == "prism" else "model.dat")
    assert_same_bits(read(path, format=format), world)


def test_prism_files_may_be_named_by_their_stem(tmp_path: Path) -> None:
    world = random_world(2)
    write(world, tmp_path / "model.tra")
    assert_same_bits(read(tmp_path / "model"), world)
    assert_same_bits(read(str(tmp_path / "model"), format="prism"), world)


def test_environments_are_read_by_their_id() -> None:
    pytest.importorskip("gymnasium")
    assert_same_bits(read("gym:FrozenLake-v1", 0.9), rm.MDP.from_gymnasium("FrozenLake-v1", 0.9))
    for path, options, sentence in (
        ("gym:FrozenLake-v1", {}, "discount must be given: an environment has none, as in read('gym:FrozenLake-v1', "),
        ("gym:", {"discount": 0.9}, "gym: must be followed by an environment's id, such as gym:FrozenLake-v1"),
        ("gym:Nothing-v0", {"discount": 0.9}, "Gymnasium must know the environment"),
        (
            "gym:FrozenLake-v1",
            {"discount": 0.9, "format": "csv"},
            "format must be left out for an environment: got 'csv'",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
            read(path, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="environments such as gym:FrozenLake-v1 are only read"):
        write(PROBLEMS["chain"], "gym:FrozenLake-v1")


@pytest.mark.parametrize("extension", NOTED)
def test_without_notes_a_warning_names_what_is_lost(tmp_path: Path, extension: str) -> None:
    world = random_world(1)
    path = write(world, tmp_path / f"model{extension}")
    choices = "the numbers of actions, the rewards by successor " if extension in (".tra", ".drn") else ""
    lost = "the discount, the names of states, the names of actions, which state is the end"
    sentence = f"model{extension} will come back without {lost}{', ' + choices if choices else ''}"
    with pytest.warns(UserWarning, match=f"^{re.escape(sentence.strip())}") as caught:
        write(world, path, meta=False)
    assert caught[0].filename == __file__
    assert not path.with_name(f"{path.name}.meta.json").exists()  # nor that of the first time
    with pytest.raises(ValueError, match=rf"^discount must be given: {path.name} holds none, as in read\("):
        read(path)
    bare = read(path, 0.9)
    ends = int(np.add.reduceat(world.indices == world.n_states, world.indptr[:-1], dtype=int).max())
    assert bare.n_states == world.n_states + ends
    assert (bare.n_pairs, bare.nnz, bare.can_end) == (world.n_pairs + ends, world.nnz + ends, False)
    same = rm.solve(bare, rm.Nominal()).value[: world.n_states]
    wanted = rm.solve(world.with_discount(0.9), rm.Nominal()).value
    np.testing.assert_allclose(same, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())


def test_nothing_is_lost_but_the_discount_of_a_plain_table(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"^model.csv will come back without the discount$"):
        write(PROBLEMS["garnet"], tmp_path / "model.csv", meta=False)
    assert_same_bits(read(tmp_path / "model.csv", 0.95), PROBLEMS["garnet"])


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_failed_write_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str
) -> None:
    world = random_world(1)
    write(world, tmp_path / f"model{extension}")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    broken = PROBLEMS["chain"]._replace(rewards=np.full(3, "no number"))
    with pytest.raises(Exception, match=r"."):
        write(broken, tmp_path / f"model{extension}")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_only_models_and_solutions_are_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^thing must be an MDP, a RowSource, a Solution or a Table: got \{\}$"):
        write({}, tmp_path / "model.csv")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("model.csv", None, "path must exist: there is no file {path}"),
        ("model", None, "a model must end in .csv, .parquet, .pq, .tra, .drn, .safetensors.zst, .safetensors, or say"),
        ("model.csv", b"", "model.csv must hold a model: it is empty"),
        ("model.drn", b"", "model.drn must hold a model: it is empty"),
        ("model.csv", b"\n \n", "model.csv must start with the names of its columns: got an empty file"),
        ("model.csv", HEADER.encode(), "model.csv must hold at least one transition: got none"),
        ("model.csv", b"\x93NUMPY\x01\x00\xff\n\x00", "model.csv must have a column 'idstatefrom': it has"),
        ("model.parquet", b"\x00" * 99, "model.parquet must be a Parquet file: "),
        ("model.tra", b"\xff" * 99, "model.tra must start with the numbers of states, choices and transitions"),
        ("model.drn", b"\xff\xfe" * 99, "model.drn must start with @type: MDP: got "),
        ("model.safetensors", b"\xff" * 99, "model.safetensors must start with a safetensors header: it is too short"),
        ("model.safetensors", b"\x00" * 3, "model.safetensors must start with a safetensors header: it is too short"),
        ("model.safetensors.zst", b"\xff" * 99, "model.safetensors.zst must be a whole zstd file: "),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, name: str, content: bytes | None, sentence: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence.format(path=path))}") as caught:
        read(path, 0.9)
    assert "\n" not in str(caught.value)


def test_folders_and_unknown_formats_are_refused(tmp_path: Path) -> None:
    for call in (read, lambda path: write(PROBLEMS["chain"], path)):
        with pytest.raises(ValueError, match=f"^path must be a file: {re.escape(str(tmp_path))} is a folder$"):
            call(tmp_path)
    with pytest.raises(ValueError, match=r"^format must be one of csv, .*: got 'parket'; did you mean 'parquet'\?$"):
        read(tmp_path / "model.csv", format="parket")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("0,0,x,1,0", "idstateto must be a whole number: got 'x' at line 2 of model.csv"),
        ("0,0,0,1,", "reward must be a number: got '' at line 2 of model.csv"),
        ("0,0,0,1", "each line must have 5 fields: got 4 at line 2 of model.csv"),
        ("0,0.5,0,1,0", "idaction must be a whole number: got 0.5 at line 2 of model.csv"),
        ("\n0,0,0,1,0\n\n1,0,-1,1,0", "idstateto must lie in 0..2147483646: got -1 at line 5 of model.csv"),
        (
            "0,0,0,1,0\n1000000000000000,0,0,1,0",
            "idstatefrom must lie in 0..2147483646: got 1000000000000000 at line 3",
        ),
        ("0,0,0,1,0\n0,1,0,nan,0", "probability must be finite and at least 0: got nan at line 3 of model.csv"),
        ("0,0,0,1,0\n0,1,0,-1,0", "probability must be finite and at least 0: got -1.0 at line 3 of model.csv"),
        ("0,0,0,1,1e400", "reward must be finite: got inf at line 2 of model.csv"),
        (
            "0,0,0,1,0\n0,1,0,0.5,0",
            "the probabilities of state 0 and action 1 must sum to 1: got 0.5 at line 3 of model.csv",
        ),
        (
            "0,1,0,0.5,0\n0,0,0,1,0",
            "the probabilities of state 0 and action 1 must sum to 1: got 0.5 at line 2 of model.csv",
        ),
        ("0,0,0,1,0\n2,0,2,1,0", "every state must have an action or be reached: state 1 of model.csv does neither"),
        (
            "0,0,0,1,0\n9,0,9,1,0",
            "every state must have an action or be reached: model.csv has states up to 9 and 2 trans",
        ),
        (
            "0,2000000000,0,1,0",
            "actions must be numbered from 0 on: model.csv has 1 states, 1 transitions and actions up",
        ),
        ("0,0,0,0,0", "model.csv must hold at least one transition: got none"),
    ],
)
def test_refusals_of_a_table_name_line_and_column(tmp_path: Path, lines: str, sentence: str) -> None:
    (tmp_path / "model.csv").write_text(HEADER + lines + "\n")
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read(tmp_path / "model.csv", 0.9)


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "model.csv").write_text(
        'note, reward ,idstateto,idaction,probability,idstatefrom\n"a, b",2.5,1,0,1,0\n,0,0,0,1,1\n'
    )
    world = read(tmp_path / "model.csv", 0.9)
    assert (world.indices.tolist(), world.rewards.tolist()) == ([1, 0], [2.5, 0.0])
    (tmp_path / "model.csv").write_text("idstatefrom,idaction,idstateto,probabilty,reward\n0,0,0,1,0\n")
    with pytest.raises(
        ValueError, match=r"^model.csv must have a column 'probability': it has .*; is it 'probabilty'\?$"
    ):
        read(tmp_path / "model.csv", 0.9)
    (tmp_path / "model.csv").write_text("reward," + HEADER + "0,0,0,0,1,0\n")
    with pytest.raises(ValueError, match=r"^the columns of model.csv must all differ: 'reward' came twice$"):
        read(tmp_path / "model.csv", 0.9)


def test_endings_in_a_column_are_not_ignored(tmp_path: Path) -> None:
    """A frame has them; a file of a model would silently mean another model."""
    path = tmp_path / "model.csv"
    path.write_text("state,action,next_state,probability,reward,terminated\n0,0,0,1,1,true\n")
    with pytest.raises(ValueError, match=r"^model.csv must hold no column 'terminated'.* rm.MDP.from_frame$"):
        rm.read(path, discount=0.9)


def test_a_state_that_is_only_reached_stays(tmp_path: Path) -> None:
    (tmp_path / "model.csv").write_text(HEADER + "0,0,3,0.5,1\n0,0,1,0.5,1\n2,1,0,1,5\n")
    with pytest.warns(UserWarning, match=r"^model.csv has 2 states that are reached but never left: ") as caught:
        world = read(tmp_path / "model.csv", 0.9)
    assert caught[0].filename == __file__
    wanted = rm.MDP.from_rows(
        [0, 0, 1, 2, 3], [0, 0, 0, 1, 0], [3, 1, 1, 0, 3], [0.5, 0.5, 1, 1, 1], [1, 1, 0, 5, 0], 0.9
    )
    assert_same_bits(world, wanted)


OUTCOMES = "idstatefrom,idaction,idoutcome,idstateto,probability,reward\n"


def test_several_outcomes_are_several_models(tmp_path: Path) -> None:
    path = tmp_path / "model.csv"
    path.write_text(OUTCOMES + "0,0,1,1,1,1\n1,0,1,0,1,2\n0,0,0,0,1,3\n1,0,0,1,0.5,4\n1,0,0,0,0.5,5\n")
    with pytest.raises(
        ValueError, match=r"^idoutcome must be one for all rows of a pair \(read_outcomes .* at line 4 of"
    ):
        read(path, 0.9)
    first, second = read_outcomes(path, 0.9)
    assert_same_bits(first, rm.MDP.from_rows([0, 1, 1], [0, 0, 0], [0, 1, 0], [1, 0.5, 0.5], [3, 4, 5], 0.9))
    assert_same_bits(second, rm.MDP.from_rows([0, 1], [0, 0], [1, 0], [1, 1], [1, 2], 0.9))
    path.write_text(OUTCOMES + "0,0,1,0,1,1\n1,0,1,0,1,2\n0,0,0,0,1,3\n")
    sentence = (
        "every outcome must be given at every pair: outcome 0 is missing at state 1 and action 0 of model.csv (line 3"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read_outcomes(path, 0.9)


def test_one_outcome_per_pair_is_one_model(tmp_path: Path) -> None:
    path = tmp_path / "model.csv"
    path.write_text(OUTCOMES + "0,0,1,1,1,1\n1,0,0,0,1,2\n")
    assert_same_bits(read(path, 0.9), rm.MDP.from_rows([0, 1], [0, 0], [1, 0], [1, 1], [1, 2], 0.9))
    plain = write(PROBLEMS["chain"], tmp_path / "chain.parquet")
    assert read_outcomes(plain) == [PROBLEMS["chain"]]
    with pytest.raises(ValueError, match=r"^outcomes must be in a csv or parquet file: chain.drn is drn$"):
        read_outcomes(write(PROBLEMS["chain"], tmp_path / "chain.drn"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"n_states": 4},
            "model.csv.meta.json must belong to model.csv: it tells of {told} states, but there are {came}",
        ),
        ({"n_actions": 1}, "model.csv.meta.json must belong to model.csv: it tells of 1 actions, but there are "),
        ({"discount": 1.5}, "the discount in model.csv.meta.json must lie in [0, 1]: got 1.5"),
        ({"version": 2}, "model.csv.meta.json must have version 1: got 2"),
        (
            {"path": "/etc/passwd"},
            "model.csv.meta.json must hold notes that this package wrote: Object contains unknown",
        ),
        (
            {"n_states": 10**12},
            "model.csv.meta.json must hold notes that this package wrote: Expected `int` <= 2147483646",
        ),
        ({"state_names": ["a"]}, "state_names must have one name per state: got 1 for "),
        ({"state_names": 5}, "model.csv.meta.json must hold notes that this package wrote: Expected `array | null`"),
    ],
)
def test_notes_are_taken_strictly(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    world = random_world(13)
    path = write(world, tmp_path / "model.csv")
    file = path.with_name("model.csv.meta.json")
    notes = msgspec.json.decode(file.read_bytes())
    states = notes["n_states"] + notes["ends"]
    file.write_bytes(msgspec.json.encode(notes | change))
    sentence = sentence.format(told=4 + notes["ends"], came=states)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read(path)


@pytest.mark.parametrize("extension", [".tra", ".drn"])
@pytest.mark.parametrize(
    ("field", "sentence"),
    [("actions", "it tells of 1 pairs, but there are"), ("rewards", "it tells of 1 transitions, but there are")],
)
def test_notes_on_choices_must_fit(tmp_path: Path, field: str, sentence: str, extension: str) -> None:
    path = write(random_world(1), tmp_path / f"model{extension}")
    file = path.with_name(f"{path.name}.meta.json")
    file.write_bytes(msgspec.json.encode(msgspec.json.decode(file.read_bytes()) | {field: [0]}))
    with pytest.raises(ValueError, match=f"^{re.escape(f'{file.name} must belong to {path.name}: {sentence}')}"):
        read(path)


def test_an_end_must_be_one(tmp_path: Path) -> None:
    path = write(random_world(1), tmp_path / "model.csv")
    text = path.read_text()
    last = text.splitlines()[-1]
    path.write_text(text.replace(last, last.removesuffix("0.0") + "1.0"))
    with pytest.raises(ValueError, match=r"^the last \d states of model.csv must stay and earn nothing: its meta file"):
        read(path)


def test_a_long_word_is_refused_at_once(tmp_path: Path) -> None:
    digits = "9" * 10**6 + "x"
    (tmp_path / "model.drn").write_text(f"@type: MDP\n@nr_states\n1\n@model\nstate 0\naction 0\n0 : {digits}\n")
    with pytest.raises(ValueError, match=r"^probability must be a number: got '9{79}... at line 7 of model.drn$"):
        read(tmp_path / "model.drn", 0.9)


def test_rewards_beside_a_file_that_was_changed(tmp_path: Path) -> None:
    """The notes' rewards replaced those of the file without a word."""
    rewards = np.array([[[1.0, 3.0]], [[0.0, 0.0]]])
    mdp = rm.MDP.from_arrays(np.full((2, 1, 2), 0.5), rewards, 0.9)
    path = write(mdp, tmp_path / "model.drn")
    assert read(path) == mdp
    text = path.read_text()
    assert "[2.0]" in text
    path.write_text(text.replace("[2.0]", "[100.0]"))
    with pytest.raises(
        ValueError, match=r"^the rewards in model.drn.meta.json must have the means that model.drn has: 2"
    ):
        read(path)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ("foo\n", """labels must be declared as in 0="init": got 'foo' at line 1 of chain.lab"""),
        ('0="init"\n0 0\n', "a line must be a state, a colon and labels: got '0' at line 2 of chain.lab"),
        ('0="init"\n0: 1\n', "a label must be one that is declared: got '1' at line 2 of chain.lab"),
    ],
)
def test_malformed_labels_are_refused(tmp_path: Path, labels: str, sentence: str) -> None:
    path = write(rm.problems.chain(), tmp_path / "chain.tra")
    assert read(path) == rm.problems.chain()
    path.with_suffix(".lab").write_text(labels)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        read(path)
