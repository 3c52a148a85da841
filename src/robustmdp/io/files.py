"""`read` and `write`: models, solutions and tables in files of any known format."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import msgspec

from robustmdp import _checks, _types
from robustmdp._files import replace_files, resolve_target
from robustmdp.io.explicit import Explicit
from robustmdp.io.formats import GYMNASIUM, Format, check_ability, chosen, main_file, model_files
from robustmdp.io.meta import (
    Meta,
    beside,
    check_replaceable,
    checksums,
    describe_losses,
    notes_on,
    read_together,
)
from robustmdp.io.policies import write_solution
from robustmdp.io.rows import Read, model_of, models_of
from robustmdp.io.tables import write_table
from robustmdp.io.tensors import write_source
from robustmdp.models import MDP, RowSource
from robustmdp.models.consistency import check_room
from robustmdp.result import Solution
from robustmdp.table import Table


def read(path: str | os.PathLike[str], discount: float | None = None, *, format: str | None = None) -> MDP:
    r"""A model from a file.

    Every file is checked; an error names file, line and column. What a format cannot hold (discount, names, endings) is
    read from the notes that `write` left in the file or in `<path>.meta.json`; notes on another content are refused. A
    file that is replaced while it is read is read again. A state that is only ever reached, never left, gets one action
    that stays and earns nothing, with a warning.

    Parameters
    ----------
    path : a file
        .csv or .parquet (columns idstatefrom, idaction, idstateto, probability and reward, as craam has them, or
        state, action, next_state, probability and reward, in any order), .tra
        or its stem (PRISM's explicit files), .drn (Storm's), .safetensors (our own, mapped into memory without a copy),
        .safetensors.zst, or "gym:ID" for a Gymnasium environment that publishes its transitions
    discount : float in [0, 1], instead of the file's own
        Needed where there is none.
    format : one of `formats()`, by default from the extension

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "coin.csv")
    >>> names = "idstatefrom,idaction,idstateto,probability,reward"
    >>> _ = file.write_text(f"{names}\n0,0,0,0.5,1\n0,0,1,0.5,1\n1,0,0,1,0\n")
    >>> world = read(file, discount=0.9)
    >>> world.n_states, world.nnz, world.rewards.tolist()
    (2, 3, [1.0, 0.0])
    >>> read(write(world, file.with_suffix(".drn"))) == world
    True
    """
    _types.check_arguments(read, locals())
    if isinstance(path, str) and path.startswith(GYMNASIUM):
        return _from_gymnasium(path, discount, format)
    file, kind = find_file(path, format)

    def build(meta: Meta | None) -> Read:
        opened = kind.open(file, numbered=meta is not None) if kind.choices else kind.open(file)
        if not isinstance(opened, MDP):
            return model_of(opened, meta, _discount(discount, meta, file.name))
        check_room(opened.n_states, opened.n_actions, opened.nnz, file.name)
        return Read(opened if discount is None else opened.with_discount(discount), stays=0)

    found = read_together(model_files(file, kind), kind.read_notes, build)
    warn_of_stays([found], file.name)
    return found.mdp


def read_outcomes(
    path: str | os.PathLike[str], discount: float | None = None, *, format: str | None = None
) -> list[MDP]:
    r"""The models of a .csv or .parquet file with a column idoutcome, one per outcome number, in their order.

    Each must be given at every pair of state and action. Without such a column there is one model.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "coin.csv")
    >>> names = "idstatefrom,idaction,idoutcome,idstateto,probability,reward"
    >>> _ = file.write_text(f"{names}\n0,0,0,0,1,1\n0,0,1,0,1,2\n")
    >>> [model.rewards.tolist() for model in read_outcomes(file, 0.9)]
    [[1.0], [2.0]]
    """
    _types.check_arguments(read_outcomes, locals())
    file, kind = find_file(path, format)
    check_ability("outcomes", file, kind)

    def build(meta: Meta | None) -> list[Read]:
        return models_of(kind.open(file), meta, _discount(discount, meta, file.name))

    found = read_together(model_files(file, kind), kind.read_notes, build)
    warn_of_stays(found, file.name)
    return [each.mdp for each in found]


def write(
    thing: MDP | RowSource | Solution | Table,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    meta: bool = True,
) -> Path:
    """A model, a solution or a table to a file, which appears whole or not at all; returns its path.

    Numbers are written with all their bits: `read(write(mdp, path)) == mdp` in every format. What a format cannot hold
    goes to notes: within a .parquet file, otherwise to `<path>.meta.json`. An ending becomes an explicit state that
    stays and earns nothing. An earlier file is replaced and keeps its permissions; the file behind a link is replaced,
    not the link. A device, a pipe, and files beside a .tra file that were not written with it are never replaced.

    Parameters
    ----------
    thing : MDP, RowSource, Solution, or a Table such as a robustness curve
    path : with an extension of `formats()`; for a solution or a table .csv, .parquet or .json; for a RowSource
        .safetensors, to which it is written range by range of its states, never all of it in memory, and likewise for a
        solution of a model in shards, with Q, penalties and the worst case
    format : one of `formats()`, by default from the extension
    meta : False leaves no notes and warns, naming what is lost

    >>> import pathlib, tempfile
    >>> import robustmdp as rm
    >>> chain = rm.problems.chain()
    >>> file = write(chain, pathlib.Path(tempfile.mkdtemp(), "chain.parquet"))
    >>> sorted(path.name for path in file.parent.iterdir()), read(file) == chain
    (['chain.parquet'], True)
    """
    _types.check_arguments(write, {"path": path, "format": format, "meta": meta})
    target = Path(os.fspath(path))
    resolve_target(target)
    _checks.must(not str(path).startswith(GYMNASIUM), f"path must be a file: environments such as {path} are only read")
    if isinstance(thing, Solution):
        if target.suffix.lower() == ".safetensors" and hasattr(thing, "write"):  # that of a model in shards
            return Path(thing.write(target))
        return write_solution(thing, target, format)
    if isinstance(thing, Table):
        return write_table(thing, target, format)
    if isinstance(thing, RowSource):
        name = chosen(target, format).name
        _checks.must(
            name == "safetensors",
            f"a RowSource must be written to a .safetensors file: got {name}; write its to_mdp() for other formats",
        )
        return write_source(thing, target)
    if not isinstance(thing, MDP):
        _checks.refuse_type("thing", "an MDP, a RowSource, a Solution or a Table", thing)
    return write_model(Explicit.of(thing), target, chosen(target, format), meta)


def write_model(model: Explicit, path: Path, format: Format, with_notes: bool) -> Path:
    """The files of a model, all of them or none; with a checksum of them in notes that stand beside."""
    _checks.must(
        model.mdp.noise is None or format.apart,
        f"a model made from noise must be in a .safetensors file, since {format.name} has one probability for each "
        "successor: write mdp.without_noise() to merge outcomes",
    )
    file = main_file(path, format)
    notes = None if format.read_notes is None else notes_on(model, choices=format.choices)
    kept = notes if with_notes else None
    files = model_files(file, format)
    if notes is not None:
        check_replaceable(files)
    if format.holds_notes or kept is None:
        with replace_files(files) as parts:
            format.write(model, *parts, **({"notes": kept and msgspec.json.encode(kept)} if format.holds_notes else {}))
    else:
        with replace_files([*files, beside(file)]) as (*parts, meta):
            format.write(model, *parts)
            meta.write_bytes(msgspec.json.encode(msgspec.structs.replace(kept, sha256=checksums(parts))) + b"\n")
    if notes is not None and (format.holds_notes or kept is None):
        beside(file).unlink(missing_ok=True)  # those of an earlier model
    if notes is not None and kept is None:
        warnings.warn(f"{file.name} will come back without {describe_losses(notes, model)}", UserWarning, stacklevel=3)
    return file


def find_file(path: str | os.PathLike[str], format: str | None) -> tuple[Path, Format]:
    """The file that a user names, and its format."""
    given = Path(os.fspath(path))
    _checks.must(not given.is_dir(), f"path must be a file: {path} is a folder")
    kind = chosen(given, format)
    file = main_file(given, kind)
    _checks.file_there(file)
    _checks.must(file.stat().st_size > 0, f"{file.name} must hold a model: it is empty")
    return file, kind


def _discount(given: float | None, meta: Meta | None, name: str) -> float:
    """The given one, or the noted one."""
    if given is not None:
        return _checks.model_discount(given)
    if meta is None:
        _checks.fail(f"discount must be given: {name} holds none", advice=f", as in read({name!r}, discount=0.95)")
    return meta.discount


def _from_gymnasium(path: str, discount: float | None, format: str | None) -> MDP:
    name = path.removeprefix(GYMNASIUM)
    _checks.must(format is None, f"format must be left out for an environment: got {format!r}")
    _checks.must(bool(name), "gym: must be followed by an environment's id, such as gym:FrozenLake-v1")
    if discount is None:
        advice = f", as in read({path!r}, discount=0.95)"
        _checks.fail("discount must be given: an environment has none", advice=advice)
    return MDP.from_gymnasium(name, discount)


def warn_of_stays(found: list[Read], name: str) -> None:
    """Say how many states were given an action."""
    count = found[0].stays
    if count:
        states = "1 state that is" if count == 1 else f"{count} states that are"
        warnings.warn(
            f"{name} has {states} reached but never left: given one action that stays and earns nothing",
            UserWarning,
            stacklevel=3,
        )
