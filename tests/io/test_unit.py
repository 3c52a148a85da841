"""A model and its notes are one unit, and writing keeps to ordinary files, their permissions and links."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import robustmdp as rm
from oracles.damaged_files import random_world
from robustmdp._files import replace_file
from robustmdp.io import read, write
from robustmdp.io.tables import write_table
from robustmdp.table import Table

BESIDE = [".csv", ".tra", ".drn"]
WITHIN = [".parquet", ".safetensors", ".safetensors.zst"]


def notes_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.meta.json")


def models() -> list[rm.MDP]:
    """Of equal shape, but nothing else: discounts, names, rewards and probabilities differ."""
    found = []
    for number in range(2):
        mdp = rm.problems.garnet(20, 2, 3, 0.5 + 0.25 * number, seed=number)
        found.append(mdp._replace(state_names=tuple(f"{'ab'[number]}{state}" for state in range(20))))
    return found


WRITER = """
import sys
from unit_models import models, write
worlds, path = models(), sys.argv[1]
print("ready", flush=True)
for number in range(10**6):
    write(worlds[number % 2], path)
"""


@pytest.mark.parametrize("extension", [*BESIDE, *WITHIN])
def test_a_reader_beside_a_writer_never_mixes_two_models(tmp_path: Path, extension: str) -> None:
    """Either model or one sentence: 26 of 100 readers got the data of one with the notes of the other."""
    if ".parquet" in extension or ".zst" in extension:
        pytest.importorskip("pyarrow")
    worlds, path = models(), tmp_path / f"model{extension}"
    write(worlds[0], path)
    (tmp_path / "unit_models.py").write_text(Path(__file__).read_text())
    command = [sys.executable, "-c", WRITER, str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            end, seen = time.monotonic() + 20, [_found(path, worlds) for _ in range(50)]
            while not {0, 1} <= set(seen) and time.monotonic() < end:
                seen.append(_found(path, worlds))
        finally:
            writer.kill()
    assert set(seen) - {None} == {0, 1}  # the writer did write both, and nothing else was read


def _found(path: Path, worlds: list[rm.MDP]) -> int | None:
    """Which model was read; None where reading was refused, -1 where neither of them came."""
    try:
        world = read(path)
    except ValueError as problem:
        refusals = ("must not be replaced while it is read", "its checksum is of another content")
        return None if any(refusal in str(problem) for refusal in refusals) else -1
    return worlds.index(world) if world in worlds else -1


@pytest.mark.parametrize("extension", BESIDE)
def test_notes_of_another_model_are_refused(tmp_path: Path, extension: str) -> None:
    """As two writers leave them that were cut off between two files."""
    first, second = models()
    path = write(first, tmp_path / f"model{extension}")
    foreign = notes_of(write(second, tmp_path / f"other{extension}"))
    notes_of(path).write_bytes(foreign.read_bytes())
    sentence = f"{path.name}.meta.json must belong to {path.name}: its checksum is of another content; write the model"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read(path)


def test_every_companion_is_in_the_checksum(tmp_path: Path) -> None:
    path = write(rm.problems.chain(), tmp_path / "chain.tra")
    trew = path.with_suffix(".trew")
    trew.write_text(trew.read_text().replace(" 1.0\n", " 2.0\n"))
    with pytest.raises(ValueError, match=r"^chain.tra.meta.json must belong to chain.tra: its checksum"):
        read(path)


@pytest.mark.parametrize("extension", BESIDE)
def test_notes_without_a_checksum_are_those_of_earlier_versions(tmp_path: Path, extension: str) -> None:
    world = random_world(3)
    path = write(world, tmp_path / f"model{extension}")
    record = msgspec.json.decode(notes_of(path).read_bytes())
    del record["sha256"]
    notes_of(path).write_bytes(msgspec.json.encode(record))
    assert read(path) == world
    assert read(write(rm.problems.chain(), path)) == rm.problems.chain()


def test_parquet_holds_its_notes_and_takes_those_that_earlier_versions_left_beside_it(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    world = random_world(3)
    path = write(world, tmp_path / "model.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["model.parquet"]
    assert read(path) == world
    table = parquet.read_table(path)
    notes = table.schema.metadata[b"robustmdp"]
    parquet.write_table(table.replace_schema_metadata(None), path)
    with pytest.raises(ValueError, match=r"^discount must be given: model.parquet holds none"):
        read(path)
    notes_of(path).write_bytes(notes)
    assert read(path) == world
    write(rm.problems.chain(), path)
    assert not notes_of(path).exists()
    parquet.write_table(table.replace_schema_metadata({b"robustmdp": b"{}"}), path)
    with pytest.raises(ValueError, match=r"^model.parquet must hold notes that this package wrote: "):
        read(path)


def test_the_notes_within_parquet_can_be_left_out(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.warns(UserWarning, match=r"^model.parquet will come back without the discount"):
        write(models()[0], tmp_path / "model.parquet", meta=False)
    with pytest.raises(ValueError, match=r"^discount must be given"):
        read(tmp_path / "model.parquet")


def test_companions_that_are_not_ours_are_never_replaced(tmp_path: Path) -> None:
    chain, path = rm.problems.chain(), tmp_path / "model.tra"
    (tmp_path / "model.lab").write_text("a list of my own\n")
    sentence = "model.lab must not be replaced: it is not as model.tra was written with it; move it away, or choose"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        write(chain, path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.lab"]
    (tmp_path / "model.lab").unlink()
    write(chain, path)
    write(rm.problems.two_state(0.5, 0.9), path)  # its own are replaced
    (tmp_path / "model.lab").write_text("a list of my own\n")
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        write(chain, path)
    assert (tmp_path / "model.lab").read_text() == "a list of my own\n"


def test_notes_that_are_not_ours_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "model.csv.meta.json").write_text('{"mine": 1}')
    with pytest.raises(ValueError, match=r"^model.csv.meta.json must hold notes that this package wrote"):
        write(rm.problems.chain(), tmp_path / "model.csv")
    assert [file.name for file in tmp_path.iterdir()] == ["model.csv.meta.json"]


def writers() -> dict[str, Any]:
    solution = rm.solve(rm.problems.chain(), rm.Nominal())
    return {
        "model.csv": lambda path: write(rm.problems.chain(), path),
        "model.safetensors": lambda path: write(rm.problems.chain(), path),
        "policy.csv": lambda path: write(solution, path),
        "table.csv": lambda path: write_table(Table.of(a=[1, 2]), path),
        "page.html": lambda path: _write_whole(path),
    }


def _write_whole(path: Path) -> None:
    with replace_file(path) as part:
        part.write_text("new")


@pytest.mark.parametrize("name", writers())
def test_a_rewrite_keeps_permissions_and_links(tmp_path: Path, name: str) -> None:
    save, folder = writers()[name], tmp_path / "data"
    folder.mkdir()
    real, link = folder / name, tmp_path / name
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(Path("data") / name)
    save(link)
    assert link.is_symlink()
    assert link.resolve() == real
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert real.read_bytes() != b"old"
    assert {file.name for file in folder.iterdir()} <= {name, f"{name}.meta.json"}


def test_a_new_file_has_the_permissions_of_new_files(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    path = write(rm.problems.chain(), tmp_path / "model.safetensors")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("name", writers())
def test_a_pipe_or_a_device_is_never_replaced(tmp_path: Path, name: str) -> None:
    pipe, link = tmp_path / f"pipe.{name}", tmp_path / f"null.{name}"
    os.mkfifo(pipe)
    link.symlink_to("/dev/null")
    for path, kind in ((pipe, "pipe"), (link, "device")):
        with pytest.raises(ValueError, match=f"^path must be a file: {re.escape(str(path))} is a {kind}$"):
            writers()[name](path)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([pipe.name, link.name])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_text("kept")
    path.chmod(0o400)
    with pytest.raises(PermissionError, match=re.escape(str(path))):
        write(rm.problems.chain(), path)
    assert path.read_text() == "kept"


def test_the_arrays_of_a_mapped_model_outlive_its_file(tmp_path: Path) -> None:
    first, second = models()
    path = write(first, tmp_path / "model.safetensors")
    mapped = read(path)
    write(second, path)
    np.testing.assert_array_equal(mapped.probabilities, first.probabilities)
    assert read(path) == second
