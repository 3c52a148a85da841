"""Where work runs: here, in processes, on Ray; knows nothing of MDPs."""

from robustmdp.engine.base import Engine, Serial, TaskFailed
from robustmdp.engine.kept import Kept
from robustmdp.engine.processes import Processes
from robustmdp.engine.ray import Ray

__all__ = ["ENGINES", "Engine", "Kept", "Processes", "Ray", "Serial", "TaskFailed", "engine_of"]

ENGINES = ("serial", "processes", "ray")


def engine_of(name: str, workers: int | None = None, address: str | None = None) -> Engine:
    """The engine that a command line or a file asks for.

    >>> engine_of("processes", workers=4)
    Processes(workers=4)
    """
    from robustmdp import _checks

    if name not in ENGINES:
        _checks.nearest("engine", name, ENGINES)
    _checks.must(
        address is None or name == "ray", f"address must come with the engine 'ray': got {address!r} for {name!r}"
    )
    if name == "ray":
        return Ray(address, workers)
    if name == "processes":
        return Processes(workers)
    _checks.must(workers in (None, 1), f"workers must be 1 for the engine 'serial': got {workers}")
    return Serial()
