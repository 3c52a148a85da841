"""Memory: the learners' grows with |S||A|, that of the model-based way with |S|²|A|."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

from robustmdp.paper import curves
from robustmdp.paper.figures import Key, Panel
from robustmdp.paper.params import Record, changes
from robustmdp.paper.runs import build_learner, replicate
from robustmdp.paper.work import Drawing, Experiment, Item, combine, rows, timed
from robustmdp.table import Table

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
    quick = changes(states=(3162, 31_623), model_states=(32, 128))


def tasks(params: Params) -> list[Item]:
    """One per method and size."""
    listed = []
    for method in _NAMES:
        sizes = params.model_states if method == _MODEL_BASED else params.states
        if method == "algorithm-1":  # it asks a simulator from Python, pair by pair
            sizes = tuple(size for size in sizes if size <= _SLOW_BEYOND) or sizes[:1]
        listed += combine(method=method, states=sizes, actions=params.actions, discount=params.discount)
    return listed


@timed
def measure(item: Item) -> Table:
    """One run, with Python's own account of what NumPy allocated."""
    from robustmdp.ambiguity import Penalized
    from robustmdp.divergences import ChiSquare

    for module in ("scipy.sparse.csgraph", "scipy.sparse.linalg"):  # planning's lazy imports are not memory, either
        import_module(module)
    world, pairs = _build_world(item), item["states"] * item["actions"]
    shares = {"d_min": 1.0 / pairs, "d_max": 1.0 / pairs} if item["method"] == "algorithm-2" else {}
    learner = build_learner(item["method"], Penalized(ChiSquare(), 1.0), **shares)
    samples = _DRAWS_PER_TRANSITION * item["states"] * pairs if item["method"] == _MODEL_BASED else 2 * pairs
    replicate(learner, world, samples=2 * pairs, seeds=1)  # what is compiled now is not the learner's memory
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        (solution,) = replicate(learner, world, samples=samples, seeds=1)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return rows(item, samples=[solution.samples], peak_bytes=[peak])


def _build_world(item: Item) -> Any:
    """Uniform over all states, compiled."""
    import numba

    from robustmdp.models import Simulator

    states = item["states"]

    @numba.njit
    def sample(state, action, rng):  # type: ignore[no-untyped-def]
        return (state + action) % 7 / 6.0, int(rng.random() * states), False

    return Simulator(sample, states, item["actions"], item["discount"], (0.0, 1.0))


def draw(records: Table) -> Drawing:
    """Bytes against |S||A| for all, and against |S|²|A| for the model-based way."""
    drawn, squared, parts = [], [], []
    for method, of in curves.named(records, "method", _NAMES):
        pairs = of["states"] * of["actions"]
        of = Table({**of.columns, "pairs": pairs, "transitions": pairs * of["states"]})
        key, style = Key("algorithm", _NAMES[method]), {"style": "line+points"}
        drawn.append(curves.sorted_curve(of, "pairs", "peak_bytes", key, **style))
        unit, count, place = "pair", "pairs", "|S||A|"
        if method == _MODEL_BASED:
            squared.append(curves.sorted_curve(of, "transitions", "peak_bytes", key, **style))
            unit, count, place = "transition", "transitions", "|S|²|A|"
        largest = curves.last(of, "states")
        peak, size = float(largest["peak_bytes"][0]), int(largest[count][0])
        parts.append(f"{_NAMES[method]} {peak / size:.0f} bytes per {unit} at {place} = {size:,}")
    panels = (
        Panel("Against |S||A|", "|S||A|", "peak bytes", tuple(drawn), "log", "log"),
        Panel("Against |S|²|A|", "|S|²|A|", "peak bytes", tuple(squared), "log", "log"),
    )
    caption = (
        "Largest memory during a run (NumPy's arrays, by Python's own account), in a world where any state may follow "
        "any other. The learners hold a few numbers per state and action, beside buffers of a fixed size; the "
        "model-based way holds every transition that it has seen."
    )
    return caption, f"{'; '.join(parts)}.", panels


EXPERIMENT = Experiment("memory", "Memory", Params, tasks, measure, draw, draws_all_worlds=True)
