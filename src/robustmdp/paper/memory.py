"""Memory: the learners' grows with |S||A|, that of the model-based way with |S|²|A|."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, ClassVar

import numpy as np

from robustmdp.paper.figures import Curve, Figure, Key, Panel
from robustmdp.paper.params import Record
from robustmdp.paper.work import Experiment, Item, replicate, rows, timed
from robustmdp.table import Table

TITLE = "Memory"
_NAMES = {
    "algorithm-1": "Algorithm 1",
    "algorithm-2": "Algorithm 2",
    "generative": "our default, generative",
    "markovian": "our default, trajectory",
    "plug-in": "model-based (plug-in)",
}
_MODEL_BASED = "plug-in"
_SLOW_BEYOND = 3162
_DRAWS_PER_TRANSITION = 3  # each of the |S|²|A| transitions is seen with probability 1 - exp(-3)


@dataclass(frozen=True, kw_only=True)
class Params(Record):
    """Bytes at the peak of a run, in a world where any state may follow any other.

    Rows: method, states, actions, samples, peak_bytes.
    """

    actions: Annotated[int, "Actions of every state"] = 4
    states: Annotated[tuple[int, ...], "Sizes |S| for the learners"] = (100, 316, 1000, 3162, 10_000, 31_623, 100_000)
    model_states: Annotated[tuple[int, ...], "Sizes |S| for the model-based way"] = (32, 64, 128, 256, 512)
    discount: Annotated[float, "Discount factor gamma"] = 0.9
    quick: ClassVar[Mapping[str, Any]] = {"states": (3162, 31_623), "model_states": (32, 128)}


def tasks(params: Params) -> list[Item]:
    """One per method and size."""
    listed = []
    for method in _NAMES:
        sizes = params.model_states if method == _MODEL_BASED else params.states
        if method == "algorithm-1":  # it asks a simulator from Python, pair by pair
            sizes = tuple(size for size in sizes if size <= _SLOW_BEYOND) or sizes[:1]
        shared = {"actions": params.actions, "discount": params.discount}
        listed += [{"method": method, "states": size, **shared} for size in sizes]
    return listed


def _samples(item: Item) -> int:
    pairs = item["states"] * item["actions"]
    return int(_DRAWS_PER_TRANSITION * item["states"] * pairs if item["method"] == _MODEL_BASED else 2 * pairs)


@timed
def measure(item: Item) -> Table:
    """One run, with Python's own account of what NumPy allocated."""
    for module in ("scipy.sparse.csgraph", "scipy.sparse.linalg"):  # planning's lazy imports are not memory, either
        import_module(module)
    world, learner = _world(item), _learner(item)
    replicate(learner, world, samples=2 * world.n_pairs, seeds=1)  # what is compiled now is not the learner's memory
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        (solution,) = replicate(learner, world, samples=_samples(item), seeds=1)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return rows(item, samples=[solution.samples], peak_bytes=[peak])


def _world(item: Item) -> Any:
    """Uniform over all states, compiled."""
    import numba

    from robustmdp.models import Simulator

    states = item["states"]

    @numba.njit
    def sample(state, action, rng):  # type: ignore[no-untyped-def]
        return (state + action) % 7 / 6.0, int(rng.random() * states), False

    return Simulator(sample, states, item["actions"], item["discount"], (0.0, 1.0))


def _learner(item: Item) -> Any:
    from robustmdp import learning
    from robustmdp.ambiguity import Penalized
    from robustmdp.divergences import ChiSquare

    doubt, share = Penalized(ChiSquare(), 1.0), 1.0 / (item["states"] * item["actions"])
    makers: dict[str, Callable[[], Any]] = {
        "algorithm-1": lambda: learning.GenerativeQLearning.paper(doubt, 1),
        "algorithm-2": lambda: learning.MarkovianQLearning.paper(doubt, d_min=share, d_max=share),
        "generative": lambda: learning.GenerativeQLearning(doubt),
        "markovian": lambda: learning.MarkovianQLearning(doubt),
        _MODEL_BASED: lambda: learning.PlugIn(doubt),
    }
    return makers[item["method"]]()


def figure(records: Table) -> Figure:
    """Bytes against |S||A| for all, and against |S|²|A| for the model-based way."""
    drawn = [_curve(method, of, of["states"] * of["actions"]) for method, of in _methods(records)]
    model = records.where(method=_MODEL_BASED)
    squared = _curve(_MODEL_BASED, model, model["states"] ** 2 * model["actions"])
    panels = (
        Panel("Against |S||A|", "|S||A|", "peak bytes", tuple(drawn), "log", "log"),
        Panel("Against |S|²|A|", "|S|²|A|", "peak bytes", (squared,), "log", "log"),
    )
    caption = (
        "Largest memory during a run (NumPy's arrays, by Python's own account), in a world where any state may follow "
        "any other. The learners hold a few numbers per state and action, beside buffers of a fixed size; the "
        "model-based way holds every transition that it has seen."
    )
    return Figure("memory", TITLE, caption, _reading(records), panels)


def _methods(records: Table) -> list[tuple[str, Table]]:
    return [(method, records.where(method=method)) for method in _NAMES if len(records.where(method=method))]


def _curve(method: str, records: Table, x: Any) -> Curve:
    order = np.argsort(x)
    key = Key("algorithm", _NAMES[method])
    return Curve(key, x[order].astype(np.float64), records["peak_bytes"][order].astype(np.float64), style="line+points")


def _reading(records: Table) -> str:
    parts = []
    for method, of in _methods(records):
        largest = int(of["states"].argmax())
        pairs, peak = int(of["states"][largest] * of["actions"][largest]), float(of["peak_bytes"][largest])
        if method == _MODEL_BASED:
            transitions = pairs * int(of["states"][largest])
            parts.append(f"{_NAMES[method]} {peak / transitions:.0f} bytes per transition at |S|²|A| = {transitions:,}")
        else:
            parts.append(f"{_NAMES[method]} {peak / pairs:.0f} bytes per pair at |S||A| = {pairs:,}")
    return f"{'; '.join(parts)}."


EXPERIMENT = Experiment("memory", TITLE, Params, tasks, measure, figure)
