"""The formats of models, by name and extension; one record each, and nothing else knows them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from robustmdp import _checks, _plugins
from robustmdp.io import craam, drn, parquet, prism, tensors
from robustmdp.io.columns import Columns, Source
from robustmdp.io.meta import Meta, read_meta
from robustmdp.models import MDP

GYMNASIUM = "gym:"


@dataclass(frozen=True)
class Format:
    """How models are kept in files.

    Attributes
    ----------
    extensions : the first one is that of new files
    about : what it is, in a few words
    open : (path, numbered) -> transitions, whose actions are the numbers of choices if `numbered`; or a whole model
    open_intervals : (path, numbered, reward) -> transitions with intervals; None where there are none
    write : (model, path, *companions); each is a file that will take its name when all of them are complete
    noted : does it need notes on what it cannot hold?
    read_notes : path -> notes
    holds_notes : are they within the file? `write` then takes them as `notes`; otherwise they stand beside it
    choices : does it number the choices of a state and give each a reward, instead of actions and transitions?
    outcomes : can a pair have several?
    apart : can it keep the outcomes of a noise apart, where they have the same successor?
    companions : extensions of the files beside
    """

    name: str
    extensions: tuple[str, ...]
    about: str
    open: Callable[[Path, bool], Source | MDP]
    write: Callable[..., None]
    open_intervals: Callable[[Path, bool, str | None], Columns] | None = None
    noted: bool = True
    read_notes: Callable[[Path], Meta | None] = read_meta
    holds_notes: bool = False
    choices: bool = False
    outcomes: bool = False
    apart: bool = False
    companions: tuple[str, ...] = ()


FORMATS = {
    format.name: format
    for format in (
        Format(
            name="csv",
            extensions=(".csv",),
            about="craam's table of transitions",
            open=lambda path, numbered: craam.CsvTable.open(path),
            write=craam.write_csv,
            outcomes=True,
        ),
        Format(
            name="parquet",
            extensions=(".parquet", ".pq"),
            about="the same table as Parquet",
            open=lambda path, numbered: parquet.ParquetTable.open(path),
            write=parquet.write_parquet,
            read_notes=parquet.read_notes,
            holds_notes=True,
            outcomes=True,
        ),
        Format(
            name="prism",
            extensions=(".tra",),
            about="PRISM's explicit files, with .sta, .lab, .srew and .trew beside",
            open=lambda path, numbered: prism.read_prism(path, numbered=numbered),
            write=prism.write_prism,
            open_intervals=lambda path, numbered, reward: prism.read_prism(
                path, numbered=numbered, intervals=True, reward=reward
            ),
            choices=True,
            companions=prism.COMPANIONS,
        ),
        Format(
            name="drn",
            extensions=(".drn",),
            about="Storm's explicit file",
            open=lambda path, numbered: drn.read_drn(path, numbered=numbered),
            write=drn.write_drn,
            open_intervals=lambda path, numbered, reward: drn.read_drn(
                path, numbered=numbered, intervals=True, reward=reward
            ),
            choices=True,
        ),
        Format(
            name="safetensors.zst",
            extensions=(".safetensors.zst",),
            about="our own, compressed",
            open=lambda path, numbered: tensors.read_compressed(path),
            write=tensors.write_compressed,
            noted=False,
            apart=True,
        ),
        Format(
            name="safetensors",
            extensions=(".safetensors",),
            about="our own, opened at once at any size",
            open=lambda path, numbered: tensors.read_tensors(path),
            write=tensors.write_tensors,
            noted=False,
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


def _added(name: str) -> Format | None:
    """The format that a package adds under this name, which is the ending of its files."""
    point = _plugins.find("format", name)
    if point is None:
        return None
    added = _plugins.load("format", point, "have read(path) and write(mdp, path)", _reads_and_writes)
    call = partial(_plugins.call, "format", point)
    return Format(
        name=point.name.lower(),
        extensions=(f".{point.name.lower()}",),
        about="of a package",
        open=lambda path, numbered: call("read an MDP", _is_model, added.read, path),
        write=lambda model, path: call("write an MDP", lambda _: True, added.write, model.mdp, path),
        noted=False,
    )


def _reads_and_writes(thing: object) -> bool:
    return callable(getattr(thing, "read", None)) and callable(getattr(thing, "write", None))


def _is_model(thing: object) -> bool:
    return isinstance(thing, MDP)


def model_files(file: Path, format: Format) -> list[Path]:
    """The main file and those beside it, without notes."""
    return [file, *(file.with_suffix(extension) for extension in format.companions)]


def main_file(path: Path, format: Format) -> Path:
    """The file itself; several files may be named by their stem."""
    if not format.companions or path.name.lower().endswith(format.extensions):
        return path
    return path.with_name(path.name + format.extensions[0])
