"""Numba, which compiles the kernels of the learners: its flags and the folder of its cache.

Numba's own disk cache watches only the file of the cached function, so an edited callee in another file would leave
its callers returning old numbers. Here the folder is named by a hash of every file that holds kernels.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import config

# No fast-math but fused multiply-add: sums keep their order, so a row has the same bits in every block and thread.
FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}

_PACKAGE = Path(__file__).parent
_KEPT_FOLDERS = 3


def sources_hash(package: Path = _PACKAGE) -> str:
    """Hash of all files of `package` that define kernels, and of the Numba that compiles them."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(package.rglob("*.py")):
        text = path.read_bytes()
        if b"_jit import" in text or path.name == "_jit.py":
            digest.update(str(path.relative_to(package)).encode() + b"\0" + text)
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where compiled kernels are kept: `ROBUSTMDP_CACHE_DIR`, or the user's cache folder, or a temporary one."""
    chosen = os.environ.get("ROBUSTMDP_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "robustmdp"
    name = f"kernels-{sources_hash()}"
    for parent in (base, Path(tempfile.gettempdir()) / f"robustmdp-{os.getuid() if hasattr(os, 'getuid') else 0}"):
        folder = parent / name
        try:
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                _forget_old(parent)
            if os.access(folder, os.W_OK):
                return folder
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="robustmdp-"))


def _forget_old(parent: Path) -> None:
    """Keep the newest few kernel folders, so that upgrades do not fill the disk."""
    folders = sorted(parent.glob("kernels-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for folder in folders[_KEPT_FOLDERS:]:
        shutil.rmtree(folder, ignore_errors=True)


_folder: Path | None = None


def inlined(function: Callable[..., Any]) -> Any:
    """A kernel that is compiled into its callers: for what runs once per row, where a call would cost as much."""
    return kernel(function, forceinline=True)


def kernel(function: Callable[..., Any], **options: Any) -> Any:
    """Compile with FLAGS, cached on disk; Numba fixes the cache's place while decorating."""
    global _folder
    if config.DISABLE_JIT:
        return function
    if _folder is None:
        _folder = cache_folder()
    before = config.CACHE_DIR
    config.CACHE_DIR = str(_folder)
    try:
        return numba.njit(cache=True, **FLAGS, **options)(function)
    finally:
        config.CACHE_DIR = before


def compile_own(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a user's function, in memory only: a disk cache keyed on the user's file served old results."""
    return function if config.DISABLE_JIT else numba.njit(**FLAGS, **options)(function)


def _inlining(function: Any) -> dict[str, Any]:
    return {"forceinline": True} if getattr(function, "targetoptions", {}).get("forceinline") else {}


def respecialise(entry: Any, done: dict[Any, Any]) -> Any:
    """A copy of the kernel `entry` in which every kernel of `done`, at any depth, is its replacement.

    Copies of the kernels in between are added to `done`, so that a second entry shares them.
    """

    def visit(function: Any) -> Any:
        if function in done:
            return done[function]
        done[function] = function  # names also hold attributes, through which a function may seem to call itself
        plain = getattr(function, "py_func", function)
        changed = {}
        for name in plain.__code__.co_names:
            callee = plain.__globals__.get(name)
            if _is_kernel(callee) and visit(callee) is not callee:
                changed[name] = done[callee]
        if changed:
            copy = types.FunctionType(plain.__code__, {**plain.__globals__, **changed}, plain.__name__)
            copy.__module__, copy.__qualname__ = plain.__module__, plain.__qualname__
            done[function] = compile_own(copy, **_inlining(function))
        return done[function]

    return visit(entry)


def _is_kernel(thing: Any) -> bool:
    if config.DISABLE_JIT:
        return isinstance(thing, types.FunctionType) and (thing.__module__ or "").startswith("robustmdp.")
    return hasattr(thing, "py_func")
