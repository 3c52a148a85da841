"""The formats of models, by name and extension; one record each, and nothing else knows them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from robustmdp import _checks, _plugins
from robustmdp.io import drn, explicit, mapped, prism, tensors
from robustmdp.io.columns import TransitionTable
from robustmdp.io.meta import ReadNotes, read_meta, read_parquet_notes
from robustmdp.models import MDP

GYMNASIUM = "gym:"


@dataclass(frozen=True)
class Format:
    """How models are kept in files.

    Attributes
    ----------
    extensions : the first one is that of new files
    about : what it is, in a few words
    open : path -> transitions, or a whole model; with `choices` also (path, numbered=, intervals=, reward=)
    write : (model, path, *companions); each is a file that will take its name when all of them are complete
    read_notes : path -> notes on what it cannot hold; None where it holds everything
    holds_notes : are they within the file? `write` then takes their JSON as `notes`; otherwise they stand beside it
    choices : does it number the choices of a state and give each a reward, instead of actions and transitions? These
        formats can hold intervals; actions are the numbers of choices if `numbered`
    outcomes : can a pair have several?
    apart : can it keep the outcomes of a noise apart, where they have the same successor?
    companions : extensions of the files beside
    """

    name: str
    extensions: tuple[str, ...]
    about: str
    open: Callable[..., Any]
    write: Callable[..., None]
    read_notes: ReadNotes | None = read_meta
    holds_notes: bool = False
    choices: bool = False
    outcomes: bool = False
    apart: bool = False
    companions: tuple[str, ...] = ()


FORMATS = {
    format.name: format
    for format in (
        Format(
            "csv",
            (".csv",),
            "craam's table of transitions",
            TransitionTable.open_csv,
            explicit.write_csv,
            outcomes=True,
        ),
        Format(
            "parquet",
            (".parquet", ".pq"),
            "the same table as Parquet",
            TransitionTable.open_parquet,
            explicit.write_parquet,
            read_notes=read_parquet_notes,
            holds_notes=True,
            outcomes=True,
        ),
        Format(
            "prism",
            (".tra",),
            "PRISM's explicit files, with .sta, .lab, .srew and .trew beside",
            prism.read_prism,
            prism.write_prism,
            choices=True,
            companions=prism.COMPANIONS,
        ),
        Format("drn", (".drn",), "Storm's explicit file", drn.read_drn, drn.write_drn, choices=True),
        Format(
            "safetensors.zst",
            (".safetensors.zst",),
            "our own, compressed",
            mapped.read_compressed,
            tensors.write_compressed,
            read_notes=None,
            apart=True,
        ),
        Format(
            "safetensors",
            (".safetensors",),
            "our own, opened at once at any size",
            mapped.read_tensors,
            tensors.write_tensors,
            read_notes=None,
            apart=True,
        ),
    )
}


def formats() -> dict[str, tuple[str, ...]]:
    """The names of all formats of models, each with its extensions.

    >>> formats()["parquet"]
    ('.parquet', '.pq')
    """
    own = {name: format.extensions for name, format in FORMATS.items()}
    return own | {name: (f".{name}",) for name in _plugins.names("format") if name not in own}


def chosen(path: Path, name: str | None) -> Format:
    """The format by its name, or by the extension of the path."""
    if name is not None:
        return FORMATS.get(name) or _added(str(name)) or _checks.nearest("format", str(name), formats())
    for format in FORMATS.values():
        if path.name.lower().endswith(format.extensions):
            return format
    if main_file(path, FORMATS["prism"]).is_file():
        return FORMATS["prism"]
    if path.suffix and (added := _added(path.suffix[1:])) is not None:
        return added
    known = [extension for extensions in formats().values() for extension in extensions]
    _checks.fail(f"a model must end in {', '.join(known)}, or say its format: got {path.name!r}")


def check_ability(what: str, file: Path, format: Format) -> None:
    """Refuse a format that cannot hold outcomes or intervals, and name those that can."""
    abilities = {"outcomes": "outcomes", "intervals": "choices"}
    able = [each.name for each in FORMATS.values() if getattr(each, abilities[what])]
    _checks.must(format.name in able, f"{what} must be in a {' or '.join(able)} file: {file.name} is {format.name}")


def _added(name: str) -> Format | None:
    """The format that a package adds under this name, which is the ending of its files."""
    point = _plugins.find("format", name)
    if point is None:
        return None
    added = _plugins.load("format", point, "have read(path) and write(mdp, path)", _reads_and_writes)
    call = partial(_plugins.call, "format", point)
    return Format(
        point.name.lower(),
        (f".{point.name.lower()}",),
        "of a package",
        open=lambda path: call("read an MDP", lambda thing: isinstance(thing, MDP), added.read, path),
        write=lambda model, path: call("write an MDP", lambda _: True, added.write, model.mdp, path),
        read_notes=None,
    )


def _reads_and_writes(thing: object) -> bool:
    return callable(getattr(thing, "read", None)) and callable(getattr(thing, "write", None))


def model_files(file: Path, format: Format) -> list[Path]:
    """The main file and those beside it, without notes."""
    return [file, *(file.with_suffix(extension) for extension in format.companions)]


def main_file(path: Path, format: Format) -> Path:
    """The file itself; several files may be named by their stem."""
    if not format.companions or path.name.lower().endswith(format.extensions):
        return path
    return path.with_name(path.name + format.extensions[0])
