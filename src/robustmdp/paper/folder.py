"""The folder of a reproduction: what may be in it, what is found there again, and what is never overwritten."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from robustmdp import __version__, _checks
from robustmdp._files import replace_file
from robustmdp.io.tables import read_table, write_parquet, write_table
from robustmdp.paper import NAMES
from robustmdp.table import Table

_MARK = "robustmdp.json"
_CONTENTS = ("records", "figures", "claims.csv", "report.html")
_UNFINISHED = "unfinished"
_CHECKSUM = "checksum"
TASK = ".parquet"  # how the file of a task ends


@dataclass(frozen=True)
class Folder:
    """records/, figures/, claims.csv and report.html, and the tasks of experiments that are not complete."""

    path: Path

    @classmethod
    @contextlib.contextmanager
    def opened(cls, path: str | Path) -> Iterator[Folder]:
        """Make it, or find it as a run of this version left it, and keep others out; nothing else is touched."""
        where = Path(path)
        mark = where / _MARK
        _make(where)
        if mark.exists():
            _check_version(where, _read_mark(mark))
        else:
            unknown = [name for name in (*_CONTENTS, _UNFINISHED) if (where / name).exists()]
            _checks.must(
                not unknown,
                f"the output folder must be empty or one of this command's: {where} holds {', '.join(unknown)} of "
                "unknown origin",
            )
            with replace_file(mark) as part:
                part.write_bytes(msgspec.json.encode({"robustmdp": __version__}) + b"\n")
        with mark.open("rb") as lock:  # the system lets go of it however we end
            _take(lock, where)
            yield cls(where)

    @property
    def work(self) -> Path:
        """Results of single tasks until all experiments are complete; those that two of them need are run once."""
        return self.path / _UNFINISHED

    @property
    def figures(self) -> Path:
        """Pictures for papers."""
        return self.path / "figures"

    def records(self, name: str) -> Path:
        """Where an experiment's records stand."""
        return self.path / "records" / f"{name}.parquet"

    def found(self, name: str, params: Any = None) -> Table | None:
        """Complete records of an experiment; refused where they are of another version or of other parameters."""
        path = self.records(name)
        if not path.exists():
            return None
        _checks.must(path.is_file(), f"the records must be a file: {path} is none")
        table = read_table(path)
        _check_version(path, table.notes.get("version"))
        made: Any = table.notes.get("parameters")
        wanted = made if params is None else msgspec.json.decode(msgspec.json.encode(params))  # as a file has them
        if made != wanted:
            differing = [key for key in wanted if not isinstance(made, dict) or made.get(key) != wanted[key]]
            _checks.fail(
                f"{path} was made with other parameters ({', '.join(differing) or 'other names'}): choose another "
                "--out, or remove it"
            )
        return _without_checksum(table, path)

    def complete(self, planned: Mapping[str, Any] | None = None) -> dict[str, Table]:
        """All records that are here; refused as in `found`."""
        found = {name: self.found(name, (planned or {}).get(name)) for name in NAMES}
        return {name: table for name, table in found.items() if table is not None}

    def keep(self, name: str, table: Table) -> None:
        """Write the records of an experiment."""
        write_table(_with_checksum(table), self.records(name))

    @staticmethod
    def write_task(path: Path, table: Table) -> None:
        """Just write the result of a single task; `Kept` sees to it that the file is whole."""
        write_parquet(_with_checksum(table), path)

    @staticmethod
    def read_task(path: Path) -> Table:
        """The result of a single task, refused if it was altered."""
        return _without_checksum(read_table(path), path)

    def keep_csv(self, name: str, table: Table) -> None:
        """The records once more, for programs that read nothing better."""
        write_table(table, self.records(name).with_suffix(".csv"))

    def forget(self, keys: Iterable[str]) -> None:
        """Remove the results of single tasks."""
        for key in keys:
            (self.work / f"{key}{TASK}").unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # others are not complete yet
            self.work.rmdir()


def _with_checksum(table: Table) -> Table:
    return table.with_notes(**{_CHECKSUM: _checksum(table)})


def _without_checksum(table: Table, path: Path) -> Table:
    """The table as it was before its checksum was noted."""
    notes = dict(table.notes)
    noted = notes.pop(_CHECKSUM, None)
    found = Table(table.columns, notes)
    _checks.must(
        noted == _checksum(found),
        f"records must be as this command wrote them: those in {path} were altered, their checksum differs; remove the "
        "file to compute them again",
    )
    return found


def _checksum(table: Table) -> str:
    """Of notes, names and every bit of the columns; it finds accidents, not intent."""
    digest = hashlib.sha256(msgspec.json.encode(table.notes))
    for name, column in table.columns.items():
        digest.update(repr((name, column.tolist())).encode())
    return digest.hexdigest()


def _make(where: Path) -> None:
    try:
        where.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=where):
            pass
    except OSError as problem:
        _checks.fail(f"the output folder must be one that can be written: {where} ({problem.strerror})")


def _take(lock: IO[bytes], where: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on this system
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        _checks.fail(f"the output folder must not be in use: another call is writing to {where}")


def _read_mark(mark: Path) -> str | None:
    try:
        return msgspec.json.decode(mark.read_bytes(), type=dict[str, str]).get("robustmdp")
    except (msgspec.MsgspecError, OSError) as problem:
        _checks.fail(f"{mark} must be a file of this command's: {problem}")


def _check_version(path: Path, version: Any) -> None:
    _checks.must(
        version == __version__,
        f"{path} holds records of robustmdp {version or 'unknown'}, which {__version__} neither mixes with its own nor "
        "overwrites: choose another --out",
    )
