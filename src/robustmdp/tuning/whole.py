"""Ctrl-C among many solves ends them all: nothing is built on half a value."""

from __future__ import annotations

from typing import Protocol, TypeVar

from robustmdp.result import Status


class _Ended(Protocol):
    @property
    def status(self) -> Status: ...


Found = TypeVar("Found", bound=_Ended)


def whole(found: Found) -> Found:
    """What was found, or KeyboardInterrupt where Ctrl-C stopped its solve."""
    if found.status.code == "interrupted":
        raise KeyboardInterrupt
    return found
