"""`scipy.LowLevelCallable`: a function in machine code, which the core calls by its address."""

from __future__ import annotations

import ctypes
import re
from typing import Any, NamedTuple

_ALIASES = {"npy_int64": "int64_t", "npy_uint64": "uint64_t", "npy_double": "double", "npy_float64": "double"}


class MachineCode(NamedTuple):
    """The address of a function, that of its user data (0 for none), and the object that keeps both in memory."""

    address: int
    user_data: int
    owner: Any


def is_low_level(function: Any) -> bool:
    """Is it a `scipy.LowLevelCallable`?"""
    # By name, because an import of SciPy is slow and needed for nothing else here.
    return type(function).__name__ == "LowLevelCallable" and type(function).__module__.startswith("scipy.")


def machine_code(function: Any, signature: str) -> MachineCode:
    """The addresses of a `scipy.LowLevelCallable`, which must have this signature."""
    given = function.signature or "unknown"
    if _plain_types(given) != _plain_types(signature):
        raise TypeError(f"a LowLevelCallable must have the signature '{signature}': got '{given}'")
    api, capsule = ctypes.pythonapi, tuple.__getitem__(function, 0)  # its own __getitem__ refuses
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    context = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCapsule_GetContext", api))
    return MachineCode(pointer(capsule, function.signature.encode()), context(capsule) or 0, function)


def _plain_types(signature: str) -> list[str]:
    """The types of the result and of the arguments: ctypes, cffi and Cython write one type in several ways."""
    parts = re.match(r"^([^(]*)\((?:\*\)\s*\()?(.*)\)\s*$", signature.strip())
    if parts is None:
        return [signature]
    return [_plain_type(part) for part in (parts[1], *parts[2].split(","))]


def _plain_type(text: str) -> str:
    words = [word for word in text.replace("*", " ").split() if word not in ("const", "signed", "restrict")]
    is_unsigned = "unsigned" in words or words[:1] in (["ulong"], ["ulonglong"])
    name = " ".join(word for word in words if word != "unsigned")
    name = {"ulong": "long", "ulonglong": "long long", "longlong": "long long"}.get(name, name).removesuffix(" int")
    if name == "long long" or (name == "long" and ctypes.sizeof(ctypes.c_long) == 8):
        name = "uint64_t" if is_unsigned else "int64_t"
    elif is_unsigned:
        name = f"unsigned {name}"
    return _ALIASES.get(name, name) + "*" * text.count("*")
