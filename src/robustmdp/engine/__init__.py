"""Where work runs: here, in processes, on Ray; knows nothing of MDPs."""

from robustmdp.engine.base import Engine as Engine
from robustmdp.engine.base import TaskFailed as TaskFailed
from robustmdp.engine.choice import ENGINES as ENGINES
from robustmdp.engine.choice import engine_of as engine_of
from robustmdp.engine.kept import Kept as Kept
from robustmdp.engine.processes import Processes as Processes
from robustmdp.engine.ray import Ray as Ray
from robustmdp.engine.serial import Serial as Serial

__all__ = ["ENGINES", "Engine", "Kept", "Processes", "Ray", "Serial", "TaskFailed", "engine_of"]
