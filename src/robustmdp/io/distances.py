"""Distances between states, for Wasserstein balls: a matrix, or coordinates."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from robustmdp import _checks, _types
from robustmdp.io.text import is_number, open_text

_SUFFIXES = (".csv", ".npy", ".npz")


def read_distance(path: str | os.PathLike[str]) -> Any:
    r"""A matrix of distances or coordinates, a row per state, as `Wasserstein` takes it.

    Parameters
    ----------
    path : .csv, .npy or .npz
        CSV: numbers with commas between them, a line per state, inf where a move is forbidden; a first line of names
        is left out. .npz: as scipy.sparse.save_npz writes it, or a file with one array.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "distance.csv")
    ...     _ = file.write_text("0,1\n2,0\n")
    ...     read_distance(file).tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    _types.check_arguments(read_distance, locals())
    file = Path(os.fspath(path))
    suffix = file.suffix.lower()
    _checks.must(suffix in _SUFFIXES, f"distances must be in a .csv, .npy or .npz file: got {file.name}")
    _checks.file_there(file)
    return _read_text(file) if suffix == ".csv" else _read_arrays(file)


def _read_arrays(file: Path) -> Any:
    from scipy import sparse

    try:
        found = np.load(file)
        if isinstance(found, np.ndarray):
            return found
        with found:
            names = found.files
            if len(names) == 1:
                return found[names[0]]
        return sparse.load_npz(file)
    except (ValueError, KeyError, EOFError, BadZipFile):
        _checks.fail(f"{file.name} must hold one array of numbers or a sparse matrix that scipy.sparse.save_npz wrote")


def _read_text(file: Path) -> np.ndarray:
    rows: list[list[float]] = []
    with open_text(file) as lines:
        for number, line in enumerate(lines, 1):
            fields = [field.strip() for field in line.split(",")]
            if not any(fields) or (not rows and not any(map(is_number, fields))):
                continue  # an empty line, or names
            wrong = next((field for field in fields if not is_number(field)), None)
            if wrong is not None:
                _checks.fail(f"line {number} of {file.name} must hold numbers with commas between them: got {wrong!r}")
            expected = len(rows[0]) if rows else len(fields)
            if len(fields) != expected:
                _checks.fail(f"line {number} of {file.name} must hold {expected} numbers: got {len(fields)}")
            rows.append([float(field) for field in fields])
    _checks.must(bool(rows), f"{file.name} must hold a line of numbers per state: got none")
    return np.array(rows)
