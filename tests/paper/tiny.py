"""Every experiment at parameters that take a moment, and its records, made once in a process."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from robustmdp.engine import Serial
from robustmdp.paper import NAMES, experiment_named
from robustmdp.paper.work import VOLATILE, Experiment
from robustmdp.table import Table

WEIGHTS = (0.5, 2.0, 10.0)
TINY: dict[str, dict[str, Any]] = {
    "chain-diagrams": {"stay": (0.6, 0.8)},
    "connection": {"stay": (0.6, 0.8), "weights": WEIGHTS, "sweeps": 30, "ascent_steps": 20},
    "statistical": {"weights": WEIGHTS, "seeds": 3, "sweeps": 60, "ascent_steps": 20, "sizes": (100, 1000)},
    "convergence": {"weights": WEIGHTS, "seeds": 3, "rounds": 60, "inner_steps": 5},
    "inner-steps": {"weights": (0.5, 10.0), "seeds": 3, "rounds": 60, "inner_levels": (2, 5)},
    "dmin": {"stay": (0.6, 0.8), "behaviours": (0.001, 0.3, 0.5, 0.7, 0.999)},
    "markovian": {"weights": WEIGHTS, "seeds": 3, "transitions": 3000, "rounds": 30, "inner_steps": 5},
    "behaviour": {"weights": (1.0, 10.0), "seeds": 3, "transitions": 3000, "behaviours": (0.05, 0.2, 0.5)},
    "rates": {"seeds": 3, "budgets": (3000, 10_000)},
    "step-sizes": {"seeds": 3, "inner_lengths": (30, 100), "rounds": 30, "inner_steps": 5, "alpha_powers": (0.3, 0.7)},
    "limits": {"seeds": 5, "weights": (1e-3, 1.0, 1e3)},
    "exploration": {"seeds": 2, "budgets": (300, 1000)},
    "equivalence": {"levels": 3, "divergences": ("chi2", "kl", "tv")},
    "sample-efficiency": {"seeds": 2, "budgets": (3000, 10_000), "inner_steps": 5},
    "memory": {"states": (300, 1200), "model_states": (64, 256)},
}
EXPERIMENTS: dict[str, Experiment] = {name: experiment_named(name) for name in NAMES}
SLOW = "memory"  # its worlds are compiled, one by one
OTHERS = tuple(name for name in NAMES if name != SLOW)


def params(name: str, **changed: Any) -> Any:
    return experiment_named(name).parameters(**{**TINY[name], **changed})


def plan(*names: str) -> dict[str, Any]:
    return {name: params(name) for name in names}


@functools.cache
def records(name: str) -> Table:
    return experiment_named(name).run(params(name), Serial())


def stable(table: Table) -> Table:
    """Without what the clock and the machine write."""
    return table.without(*VOLATILE)


def edited(table: Table, **columns: Any) -> Table:
    """The same rows with other numbers in some columns; a function is given the table."""
    made = {name: column(table) if callable(column) else np.asarray(column) for name, column in columns.items()}
    return Table({**table.columns, **made}, table.notes)
